#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/input_file.h"

namespace gs {

// The lines of a plain or gzip text file, one at a time, in time linear in its size. LF alone ends
// a line; a CR before it and a UTF-8 byte order mark at the start of the file are dropped; a last
// line needs no LF. Refused: UTF-16 and UTF-32 (by their byte order marks), and files whose lines
// end in CR alone.
class LineReader {
 public:
  explicit LineReader(std::string path);

  bool next();                                     // goes to the next line; false after the last
  std::string_view line() const { return line_; }  // bytes as they stand, perhaps not UTF-8
  int64_t number() const { return number_; }       // of the line, from 1
  int64_t offset() const { return offset_; }       // of its first byte in the (unpacked) file
  const std::string& path() const { return file_.path(); }

 private:
  bool fill();
  void skip_byte_order_mark();
  void check_line_ends() const;

  InputFile file_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // what is unread of buffer_
  std::string line_;
  int64_t number_ = 0, offset_ = 0, next_offset_ = 0;
};

}  // namespace gs
