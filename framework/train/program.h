#pragma once

#include <functional>
#include <string>

namespace gs {

// Runs the body of main() and turns what it throws into one line "<program>: <message>" on stderr.
// Gives the exit status: the body's own; 2 for what the user can mend (Error, files that cannot be
// used, a full disk under stdout); 1 for anything else, memory that ran out included.
// A profile that the options asked for is shown at the end, after errors, too.
// A reader that closes stdout early (`| head`) ends the program quietly, as with other tools.
int run_program(int argc, char** argv, const std::function<int(int argc, char** argv)>& body);

// What computes in this process, for logs: "AVX-512 kernels, products by oneDNN (AVX-512)". Opens
// the library of matrix products.
std::string compute_title();

}  // namespace gs
