#pragma once

#include <string>

namespace gs::test {

// Where tests find the project's files and programs: as the build knows it, or below the folder
// that GRADSTONE_TEST_ROOT names, which holds bin/ and files laid out as in the repository.
std::string source_directory();
std::string program_directory();

// A file or folder of tests/data/, and a program's path.
std::string test_data(const std::string& name);
std::string program(const std::string& name);

}  // namespace gs::test
