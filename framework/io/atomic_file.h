#pragma once

#include <string>
#include <string_view>

namespace gs {

// A file that appears whole or not at all: the bytes go to a temporary name in the same folder and
// take the place of `path` at commit. Until then, and after any Error, what stood at `path` is
// untouched; readers that hold the old file keep it. A symbolic link is followed; a folder, a
// device and a file without write permission are refused. Temporary files of writers that were
// killed are removed by the next writer in the folder; those of living ones are locked.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // removes the temporary file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  // Sends the bytes to the disk, so that the temporary file may be opened and checked.
  void flush();
  const std::string& temporary_path() const { return temporary_; }
  // Flushes, takes the place of the old file and flushes the folder.
  void commit();

 private:
  void open_temporary();
  void close();

  std::string path_;    // as given, for messages
  std::string target_;  // with links followed
  std::string temporary_;
  int file_ = -1;
};

// The whole of a file (text, JSON, ...) in one call.
void write_file_atomically(const std::string& path, std::string_view bytes);

// Makes `path` another name of the file `source`, in place of what stood there: a hard link, or a
// copy where the file system has no links.
void link_file_atomically(const std::string& source, const std::string& path);

}  // namespace gs
