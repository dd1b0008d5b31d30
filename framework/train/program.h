#pragma once

#include <functional>

namespace gs {

// Runs the body of main() and turns what it throws into one line "<program>: <message>" on stderr.
// Gives the exit status: the body's own; 2 for what the user can mend (Error, files that cannot be
// used, a full disk under stdout); 1 for anything else, memory that ran out included.
// A reader that closes stdout early (`| head`) ends the program quietly, as with other tools.
int run_program(int argc, char** argv, const std::function<int(int argc, char** argv)>& body);

}  // namespace gs
