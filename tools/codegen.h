// What mlc-codegen does after its command line, for mlc too: a module becomes a C++ project in a folder, or one text.
#pragma once
#include "base/diag.h"
#include "emit/model.h"

namespace mlc {

enum class Emit : uint8_t { Cpp, Llvm, Object };

struct CodegenOptions {
  Emit emit = Emit::Cpp;             // others: the program has LLVM (with_llvm.h)
  CppOptions cpp;
  std::string folder;                // where the project goes; empty: the source alone, as text
  bool with_main = false;            // NAME_main.cc too
  std::vector<std::string> folders;  // where weight files are looked for (data/files.h)
  std::string module_path;           // the module's file: its folder is looked through too
};

// --emit cpp, llvm, obj; false: it is none of these.
bool set_emit(std::string_view form, CodegenOptions &options);
// Why these options do not go together; empty: they do.
std::string conflict(const CodegenOptions &options);

// A prefix for what comes of a file: "a/digits cnn.mlc" -> digits_cnn; "model" for "-".
std::string model_name(const std::string &path);

// The command that makes the same of a module on standard input, as the project's files tell it.
std::string codegen_command(const CodegenOptions &options);

// Runs the passes that are still due, emits, and writes the folder; or `text` gets the source. Nothing is written
// unless all is well. False: diag says why.
bool codegen(Build &b, Module &m, const CodegenOptions &options, std::string &text, Diag &diag);

}  // namespace mlc
