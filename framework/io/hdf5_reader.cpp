#include "framework/io/hdf5_reader.h"

#include <algorithm>
#include <array>
#include <span>

#include "framework/core/error.h"
#include "framework/io/hdf5_session.h"

namespace gs {
namespace {

using hdf5::Handle;

// Lets HDF5 work on the caller's bytes in place.
struct Borrowed {
  void* data;
  size_t size;
};

void lend(hid_t access, Borrowed& bytes) {
  H5FD_file_image_callbacks_t callbacks = {};
  callbacks.udata = &bytes;
  callbacks.image_malloc = [](size_t size, H5FD_file_image_op_t, void* data) -> void* {
    const auto* lent = static_cast<Borrowed*>(data);
    return size == lent->size ? lent->data : nullptr;
  };
  callbacks.image_memcpy = [](void* to, const void* from, size_t, H5FD_file_image_op_t,
                              void*) -> void* { return to == from ? to : nullptr; };
  callbacks.image_realloc = [](void*, size_t, H5FD_file_image_op_t, void*) -> void* {
    return nullptr;
  };
  callbacks.image_free = [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; };
  callbacks.udata_copy = [](void* data) { return data; };
  callbacks.udata_free = [](void*) -> herr_t { return 0; };
  H5Pset_file_image_callbacks(access, &callbacks);
  H5Pset_file_image(access, bytes.data, bytes.size);
}

}  // namespace

struct Hdf5Reader::State {
  explicit State(std::string name) : path(std::move(name)) {}

  void check_done(bool done, const std::string& what) const {
    check(done, "load: {}: {} cannot be read, {}", path, what, hdf5::reason());
  }

  // A data set that lies in the file in one piece of the size that its shape needs.
  struct Data {
    Handle dataset, type;
    Shape shape;
  };

  Data open(const std::string& name) const {
    Data data;
    data.dataset = Handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    check_done(data.dataset >= 0, name);
    data.type = Handle(H5Dget_type(data.dataset), H5Tclose);
    const Handle space(H5Dget_space(data.dataset), H5Sclose);
    const Handle options(H5Dget_create_plist(data.dataset), H5Pclose);
    check_done(data.type >= 0 && space >= 0 && options >= 0, name);
    const H5D_layout_t layout = H5Pget_layout(options);
    check(
        (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT) && H5Pget_external_count(options) == 0,
        "load: {}: {} is not stored in one piece; write it without chunks", path, name);
    check(H5Sget_simple_extent_type(space) != H5S_NULL, "load: {}: {} is empty", path, name);
    const int rank = H5Sget_simple_extent_ndims(space);
    check(rank >= 0 && rank <= Shape::kMaxRank, "load: {}: {} has {} dimensions, at most {}", path,
          name, rank, Shape::kMaxRank + 0);
    std::array<hsize_t, Shape::kMaxRank> sizes{};
    H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
    std::array<int64_t, Shape::kMaxRank> signed_sizes{};
    std::copy(sizes.begin(), sizes.end(), signed_sizes.begin());
    data.shape = Shape(std::span<const int64_t>(signed_sizes.data(), static_cast<size_t>(rank)));
    int64_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(
        data.shape.elements(), static_cast<int64_t>(H5Tget_size(data.type)), &bytes);
    const hsize_t stored = H5Dget_storage_size(data.dataset);
    check(!overflow && stored <= file_bytes && static_cast<int64_t>(stored) == bytes,
          "load: {}: {} needs {} of {} bytes, but {} are stored", path, name, data.shape,
          H5Tget_size(data.type), stored);
    return data;
  }

  void read(const Data& data, const std::string& name, void* values) const {
    if (data.shape.elements() == 0) return;
    check_done(H5Dread(data.dataset, data.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, name);
  }

  bool is(const Data& data, const Handle& type) const { return H5Tequal(data.type, type) > 0; }

  std::string read_text(const Handle& type, const std::string& name, auto&& read) const {
    check(H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0,
          "load: {}: {} is not text of fixed length", path, name);
    std::string value(H5Tget_size(type), '\0');
    read(value.data());
    if (H5Tget_strpad(type) == H5T_STR_NULLTERM) {
      value.pop_back();
    } else {
      value.resize(value.find_last_not_of('\0') + 1);  // fixed length as NumPy writes it
    }
    return value;
  }

  Handle open_attribute(const std::string& name) const {
    check(H5Aexists(file, name.c_str()) > 0, "load: {} has no attribute {}", path, name);
    Handle attribute(H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose);
    check_done(attribute >= 0, name);
    const Handle space(H5Aget_space(attribute), H5Sclose);
    check(H5Sget_simple_extent_type(space) == H5S_SCALAR, "load: {}: attribute {} is not one value",
          path, name);
    return attribute;
  }

  hdf5::Session session;
  std::string path;
  hsize_t file_bytes = 0;
  Borrowed borrowed{};
  Handle file;
};

Hdf5Reader::Hdf5Reader(std::string path, char* file, size_t size)
    : state_(std::make_unique<State>(std::move(path))) {
  State& state = *state_;
  state.file_bytes = size;
  state.borrowed = {file, size};
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, 1 << 16, false);
  lend(access, state.borrowed);
  state.file = Handle(H5Fopen(hdf5::fresh_label().c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  check(state.file >= 0, "load: {} is not an HDF5 file, {}", state.path, hdf5::reason());
}

Hdf5Reader::~Hdf5Reader() = default;

int64_t Hdf5Reader::integer_attribute(const std::string& name) const {
  const Handle attribute = state_->open_attribute(name);
  int64_t value = 0;
  state_->check_done(H5Aread(attribute, H5T_NATIVE_INT64, &value) >= 0, name);
  return value;
}

std::string Hdf5Reader::text_attribute(const std::string& name) const {
  const Handle attribute = state_->open_attribute(name);
  const Handle type(H5Aget_type(attribute), H5Tclose);
  return state_->read_text(type, name, [&](char* values) {
    state_->check_done(H5Aread(attribute, type, values) >= 0, name);
  });
}

Hdf5Reader::Names Hdf5Reader::names(const std::string& path) const {
  check(H5Lexists(state_->file, path.c_str(), H5P_DEFAULT) > 0,
        "load: {} has no group /{}; is it a checkpoint?", state_->path, path);
  const Handle group(H5Gopen2(state_->file, path.c_str(), H5P_DEFAULT), H5Gclose);
  state_->check_done(group >= 0, path);
  std::vector<std::pair<std::string, H5L_type_t>> found;
  const auto note = [](hid_t, const char* name, const H5L_info_t* info, void* data) -> herr_t {
    static_cast<decltype(found)*>(data)->emplace_back(name, info->type);
    return 0;
  };
  state_->check_done(H5Lvisit(group, H5_INDEX_NAME, H5_ITER_INC, note, &found) >= 0, path);
  Names names;
  for (const auto& [name, kind] : found) {
    check(kind == H5L_TYPE_HARD || kind == H5L_TYPE_SOFT,
          "load: {}: {}/{} leads to another file; put its values here", state_->path, path, name);
    if (kind == H5L_TYPE_SOFT) {
      H5L_info_t info;
      H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT);
      std::string target(info.u.val_size, '\0');
      state_->check_done(
          H5Lget_val(group, name.c_str(), target.data(), target.size(), H5P_DEFAULT) >= 0, name);
      names.links.emplace_back(name, target.c_str());
      continue;
    }
    const Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    const H5I_type_t type = H5Iget_type(object);
    check(type == H5I_DATASET || type == H5I_GROUP, "load: {}: {}/{} is neither values nor a group",
          state_->path, path, name);
    if (type == H5I_DATASET) names.data.push_back(name);
  }
  return names;
}

Array Hdf5Reader::array(const std::string& path) const {
  const State::Data data = state_->open(path);
  for (const DType dtype : {kFloat32, kFloat64, kInt32, kBool, kBFloat16}) {
    if (!state_->is(data, hdf5::type_of(dtype))) continue;
    Array array = Array::empty(data.shape, dtype);
    state_->read(data, path, array.raw());
    if (dtype == kBool) {
      const std::span<const uint8_t> values(static_cast<const uint8_t*>(array.raw()),
                                            static_cast<size_t>(array.elements()));
      for (const uint8_t value : values)
        check(value <= 1, "load: {}: {} holds {}, not a bool", state_->path, path, value);
    }
    return array;
  }
  fail("load: {}: {} has an element type that no array has; write it as float32", state_->path,
       path);
}

Hdf5Reader::Value Hdf5Reader::value(const std::string& path) const {
  const State::Data data = state_->open(path);
  check(data.shape.rank() == 0, "load: {}: {} is not one value, got {}", state_->path, path,
        data.shape);
  if (state_->is(data, hdf5::copy_of(H5T_STD_I64LE))) {
    int64_t value = 0;
    state_->read(data, path, &value);
    return value;
  }
  if (state_->is(data, hdf5::copy_of(H5T_IEEE_F64LE))) {
    double value = 0;
    state_->read(data, path, &value);
    return value;
  }
  return state_->read_text(data.type, path,
                           [&](char* values) { state_->read(data, path, values); });
}

std::string Hdf5Reader::text(const std::string& path) const {
  const Value found = value(path);
  const std::string* text = std::get_if<std::string>(&found);
  check(text != nullptr, "load: {}: {} is a number, not text", state_->path, path);
  return *text;
}

std::string Hdf5Reader::bytes(const std::string& path) const {
  const State::Data data = state_->open(path);
  check(data.shape.rank() == 1 && state_->is(data, hdf5::copy_of(H5T_STD_U8LE)),
        "load: {}: {} is not a list of uint8", state_->path, path);
  std::string value(static_cast<size_t>(data.shape.elements()), '\0');
  state_->read(data, path, value.data());
  return value;
}

}  // namespace gs
