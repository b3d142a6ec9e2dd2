// A filter of the shell as a function of texts.
#pragma once
#include <string>
#include <string_view>

namespace mlc {

// Runs `sh -c COMMAND` with `input` on its standard input; `output` gets its standard output, its errors go to ours.
// False: it could not be run, or did not end with 0; `error` says which. `status`, if given, gets its exit code.
bool run_through(const std::string &command, std::string_view input, std::string *output, std::string *error,
                 int *status = nullptr);

}  // namespace mlc
