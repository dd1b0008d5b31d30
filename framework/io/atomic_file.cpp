#include "framework/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "framework/core/error.h"

namespace gs {
namespace {

constexpr std::string_view kSuffix = ".gradstone_tmp";

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_write(const std::string& path, int error) {
  fail("save: cannot write {}, {}; what stood there before is unchanged", path, reason(error));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string temporary_name(const std::string& target) {
  static std::atomic<int64_t> count = 0;
  return fmt::format("{}.{}-{}{}", target, getpid(), count++, kSuffix);
}

// A living writer holds a lock on its temporary file, so whatever can be locked was left behind by
// a killed one. Where the file system has no locks, nothing is removed.
void remove_leftovers(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> leftovers;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().ends_with(kSuffix)) leftovers.push_back(entry->path());
  }
  for (const std::string& path : leftovers) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
    ::close(file);
  }
}

// Follows symbolic links, the last of which may lead to a file that is not there yet.
std::string linked_file(const std::string& path) {
  std::filesystem::path target = path;
  std::error_code error;
  constexpr int most = 40;  // as the kernel
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    if (links == most) fail_write(path, ELOOP);
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
    if (error) fail_write(path, error.value());
  }
  return target.string();
}

// The file that a path means once links are followed; refuses what a rename must not replace.
std::string checked_target(const std::string& path) {
  check(!path.empty(), "save: the path is empty; give the path of a file");
  std::string target = linked_file(path);
  struct stat status;
  if (stat(target.c_str(), &status) != 0) {
    if (errno != ENOENT) fail_write(path, errno);
    check(!target.ends_with('/'), "save: {} is a folder; give the path of a file", path);
    return target;
  }
  check(!S_ISDIR(status.st_mode), "save: {} is a folder; give the path of a file", path);
  check(S_ISREG(status.st_mode), "save: {} is not a regular file; give the path of a file", path);
  if (faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) fail_write(path, errno);
  return target;
}

// Not every file system flushes folders, and not every folder may be opened.
void flush_folder(const std::string& path, const std::string& target) {
  const int folder = open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const int error = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  check(error == 0 || error == EINVAL || error == ENOTSUP || error == EROFS,
        "save: {} is written, but its folder could not be flushed, {}", path, reason(error));
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(checked_target(path)) {
  remove_leftovers(folder_of(target_));
  open_temporary();
  struct stat status;
  if (stat(target_.c_str(), &status) == 0) {
    // A private file stays private. File systems without modes refuse; nothing is lost there.
    [[maybe_unused]] const int ignored = fchmod(file_, status.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) unlink(temporary_.c_str());
  close();
}

void AtomicFile::open_temporary() {
  // Another writer may take the new file for a leftover before it is locked: then a new name.
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = temporary_name(target_);
    file_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno == EEXIST) continue;
    if (file_ < 0) fail_write(path_, errno);
    const bool taken = flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status;
    if (!taken && fstat(file_, &status) == 0 && status.st_nlink > 0) return;
    unlink(temporary_.c_str());
    close();
  }
  fail("save: cannot write {}, other writers remove its temporary file; try again", path_);
}

void AtomicFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void AtomicFile::write(std::string_view bytes) {
  check(file_ >= 0, "save: {} is already committed; open it anew", path_);
  while (!bytes.empty()) {
    const ssize_t size = ::write(file_, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) fail_write(path_, size < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(size));
  }
}

void AtomicFile::flush() {
  check(file_ >= 0, "save: {} is already committed; open it anew", path_);
  while (fsync(file_) != 0) {
    if (errno == EINVAL || errno == ENOTSUP) return;  // nothing to flush to
    if (errno != EINTR) fail_write(path_, errno);
  }
}

void AtomicFile::commit() {
  flush();
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail_write(path_, errno);
  close();
  flush_folder(path_, target_);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

namespace {

void copy_file_atomically(int source, const std::string& path) {
  AtomicFile file(path);
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t size = read(source, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail_write(path, errno);
    if (size == 0) break;
    file.write({buffer.data(), static_cast<size_t>(size)});
  }
  file.commit();
}

// Whether the file system could make the link.
bool replace_by_link(const std::string& source, const std::string& path,
                     const std::string& target) {
  const std::string temporary = temporary_name(target);
  if (link(source.c_str(), temporary.c_str()) != 0) {
    if (errno == EPERM || errno == ENOTSUP || errno == EMLINK || errno == EXDEV || errno == ENOSYS)
      return false;
    fail_write(path, errno);
  }
  const int error = rename(temporary.c_str(), target.c_str()) == 0 ? 0 : errno;
  // Renaming one name of a file to another name of the same file leaves both.
  unlink(temporary.c_str());
  if (error != 0) fail_write(path, error);
  flush_folder(path, target);
  return true;
}

}  // namespace

void link_file_atomically(const std::string& source, const std::string& path) {
  const std::string target = checked_target(path);
  const int file = open(source.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("save: cannot read {}, {}", source, reason(errno));
  try {
    // The lock counts for all names of the file, so that no other writer removes the temporary one.
    flock(file, LOCK_SH | LOCK_NB);
    if (!replace_by_link(source, path, target)) copy_file_atomically(file, path);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
}

}  // namespace gs
