// The files that a module names: where they are, that they are the right ones, their bytes. Files are mapped, never
// read: one of 2 GB costs nothing until its bytes are used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

class Mapped {  // a read-only mapping of a regular file
 public:
  Mapped() = default;
  Mapped(const Mapped &) = delete;
  Mapped &operator=(const Mapped &) = delete;
  ~Mapped();
  bool open(const std::string &path, std::string *error);  // at most once; `error` does not repeat the path
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

class Files {
 public:
  // Folders in the order in which they are looked through: those of -I, those of $MLC_PATH (joined by colons), the
  // module file's, the current one. `module_path`: "-" or "" has no folder.
  explicit Files(std::vector<std::string> folders = {}, const std::string &module_path = "");

  // The file `path` of a module (`file "m.onnx" {bytes = .., sha256 = ".."}`); null and a message if it is nowhere, if
  // the path is absolute, has a `..`, or leads out of the folder by a link, if its size is not `bytes` (-1: any), or if
  // it is smaller than 64 MB and `sha256` (64 hexadecimal digits, or empty) is not its hash. Mapped and checked once.
  const Mapped *open(std::string_view path, int64_t bytes, std::string_view sha256, std::string *error);

  std::vector<std::string> folders;

 private:
  struct Entry {
    Mapped file;
    std::string hash;  // once it was asked for
  };
  std::map<std::string, Entry, std::less<>> opened_;
};

// n bytes at `offset`, or false if they are not all there.
bool slice(const Mapped &file, int64_t offset, int64_t n, std::span<const std::byte> *out);

inline constexpr int64_t kHashedBelow = 64 << 20;
std::string sha256_of(std::span<const std::byte> bytes);  // 64 hexadecimal digits

}  // namespace mlc
