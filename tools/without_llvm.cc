#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "with_llvm.h"

namespace mlc {

bool with_llvm(const char *tool) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = self.parent_path().parent_path() / "libexec/mlc" / tool, word;
  std::ifstream line("/proc/self/cmdline");
  std::vector<std::string> words;
  while (std::getline(line, word, '\0')) words.push_back(word);
  std::vector<char *> argv;
  for (std::string &w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  fmt::print(stderr, "{}: error: {} cannot be run: {}\n", tool, program, strerror(errno));
  return false;
}

bool llvm_model(Build &, const Module &, const CppOptions &, const CppModel &,
                const std::function<std::span<const std::byte>(const Weight &)> &, bool, std::string &, Diag &diag) {
  return diag.error(kNowhere, "this program has no LLVM"), false;
}

std::unique_ptr<interp::KernelRunner> jit_runner(FILE *) { return nullptr; }

}  // namespace mlc
