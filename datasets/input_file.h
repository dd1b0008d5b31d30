#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct z_stream_s;

namespace gs {

// The bytes of a plain or gzip file, told apart by the first two bytes; several gzip members read
// as one. Missing and unreadable files, damaged or cut gzip data and bytes after its end throw.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // Writes up to `size` bytes to `bytes` and returns how many; 0 at the end alone.
  size_t read(char* bytes, size_t size);

 private:
  bool fill();  // more input where there is none; false at the end of the file
  bool begin_member();
  size_t read_plain(char* bytes, size_t size);
  size_t read_gzip(char* bytes, size_t size);

  std::string path_;
  std::FILE* file_ = nullptr;
  std::vector<char> input_;
  size_t begin_ = 0, end_ = 0;  // what is unread of input_
  std::unique_ptr<z_stream_s> gzip_;
  bool inside_member_ = false;
};

}  // namespace gs
