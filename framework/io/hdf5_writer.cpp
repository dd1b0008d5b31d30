#include "framework/io/hdf5_writer.h"

#include <algorithm>
#include <array>

#include "framework/core/error.h"
#include "framework/io/hdf5_session.h"

namespace gs {
namespace {

using hdf5::Handle;

Handle text_type(size_t size) {
  Handle type = hdf5::copy_of(H5T_C_S1);
  H5Tset_size(type, size + 1);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

Handle scalar() { return {H5Screate(H5S_SCALAR), H5Sclose}; }

Handle space_of(const Shape& shape) {
  if (shape.rank() == 0) return scalar();
  std::array<hsize_t, Shape::kMaxRank> sizes{};
  std::copy(shape.begin(), shape.end(), sizes.begin());
  return {H5Screate_simple(shape.rank(), sizes.data(), nullptr), H5Sclose};
}

}  // namespace

struct Hdf5Writer::State {
  explicit State(std::string name) : path(std::move(name)) {}

  void check_done(bool done, const std::string& what) const {
    check(done, "save: {}: {} cannot be written, {}", path, what, hdf5::reason());
  }

  // HDF5 would take "a//b" for "a/b", skip "." and end a name at a NUL.
  void check_name(const std::string& name) const {
    bool good = name.find('\0') == std::string::npos;
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      const std::string_view part = std::string_view(name).substr(begin, end - begin);
      good = good && !part.empty() && part != ".";
      begin = end + 1;
    }
    check(good, "save: {}: bad name \"{}\"; parts between '/' must not be empty or \".\"", path,
          name);
  }

  void write(const std::string& name, const Handle& type, const Handle& space, const void* data) {
    check_name(name);
    check_done(type >= 0 && space >= 0, name);
    const Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(options, false);  // same contents, same bytes
    H5Pset_fill_time(options, H5D_FILL_TIME_NEVER);
    const Handle dataset(H5Dcreate2(file, name.c_str(), type, space, parents, options, H5P_DEFAULT),
                         H5Dclose);
    check_done(dataset >= 0, name);
    if (H5Sget_simple_extent_npoints(space) == 0) return;
    check_done(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, name);
  }

  void write_attribute(const std::string& name, const Handle& type, const void* data) {
    check_name(name);
    const Handle space = scalar();
    const Handle attribute(H5Acreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose);
    check_done(attribute >= 0 && H5Awrite(attribute, type, data) >= 0, name);
  }

  hdf5::Session session;
  std::string path;
  Handle access, parents, file;
};

Hdf5Writer::Hdf5Writer(std::string path, int64_t user_bytes)
    : state_(std::make_unique<State>(std::move(path))) {
  State& state = *state_;
  constexpr size_t growth = size_t{1} << 20;
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation, static_cast<hsize_t>(user_bytes));
  H5Pset_obj_track_times(creation, false);
  state.access = Handle(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(state.access, growth, false);
  state.parents = Handle(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(state.parents, 1);
  H5Pset_char_encoding(state.parents, H5T_CSET_UTF8);
  state.file = Handle(H5Fcreate(hdf5::fresh_label().c_str(), H5F_ACC_TRUNC, creation, state.access),
                      H5Fclose);
  state.check_done(state.file >= 0, "the file");
}

Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::attribute(const std::string& name, int64_t value) {
  state_->write_attribute(name, hdf5::copy_of(H5T_STD_I64LE), &value);
}

void Hdf5Writer::attribute(const std::string& name, const std::string& value) {
  state_->write_attribute(name, text_type(value.size()), value.c_str());
}

void Hdf5Writer::group(const std::string& path) {
  state_->check_name(path);
  const Handle options(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(options, false);
  const Handle group(H5Gcreate2(state_->file, path.c_str(), state_->parents, options, H5P_DEFAULT),
                     H5Gclose);
  state_->check_done(group >= 0, path);
}

void Hdf5Writer::array(const std::string& path, const Array& array) {
  check(array.defined(), "save: {}: {} has no value; give it one first", state_->path, path);
  const bool here = array.device() == Device::cpu();
  const Array values = here ? array : array.to(Device::cpu());
  state_->write(path, hdf5::type_of(values.dtype()), space_of(values.shape()), values.raw());
}

void Hdf5Writer::integer(const std::string& path, int64_t value) {
  state_->write(path, hdf5::copy_of(H5T_STD_I64LE), scalar(), &value);
}

void Hdf5Writer::number(const std::string& path, double value) {
  state_->write(path, hdf5::copy_of(H5T_IEEE_F64LE), scalar(), &value);
}

void Hdf5Writer::text(const std::string& path, const std::string& value) {
  state_->write(path, text_type(value.size()), scalar(), value.c_str());
}

void Hdf5Writer::bytes(const std::string& path, std::string_view value) {
  const Shape shape = {static_cast<int64_t>(value.size())};
  state_->write(path, hdf5::copy_of(H5T_STD_U8LE), space_of(shape), value.data());
}

void Hdf5Writer::link(const std::string& path, const std::string& target) {
  state_->check_name(path);
  state_->check_name(target);
  state_->check_done(H5Lcreate_soft(("/" + target).c_str(), state_->file, path.c_str(),
                                    state_->parents, H5P_DEFAULT) >= 0,
                     path);
}

std::string_view Hdf5Writer::finish() {
  const State& state = *state_;
  const bool flushed = H5Fflush(state.file, H5F_SCOPE_GLOBAL) >= 0;
  hsize_t user_bytes = 0;
  const Handle creation(H5Fget_create_plist(state.file), H5Pclose);
  H5Pget_userblock(creation, &user_bytes);
  // The memory of the core driver itself: a copy would double what a save needs.
  const ssize_t size = H5Fget_file_image(state.file, nullptr, 0);
  void* handle = nullptr;
  const bool found = H5Fget_vfd_handle(state.file, state.access, &handle) >= 0;
  state.check_done(flushed && size >= 0 && found && handle != nullptr, "the file");
  return {*static_cast<const char**>(handle) + user_bytes, static_cast<size_t>(size)};
}

}  // namespace gs
