#include "data/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nettle/sha2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace mlc {

Mapped::~Mapped() {
  if (data_) munmap(const_cast<std::byte *>(data_), size_);
}

bool Mapped::open(const std::string &path, std::string *error) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block
  struct stat st;
  if (fd < 0 || fstat(fd, &st)) return *error = strerror(errno), false;
  bool regular = S_ISREG(st.st_mode);
  void *p = regular && st.st_size ? mmap(nullptr, size_t(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  *error = !regular ? "not a regular file" : p == MAP_FAILED ? strerror(errno) : "";
  close(fd);
  if (!error->empty()) return false;
  data_ = static_cast<const std::byte *>(p), size_ = size_t(st.st_size);
  return true;
}

// The path without links, "" if there is none.
static std::string real(const std::string &path) {
  char *p = realpath(path.c_str(), nullptr);
  std::string s = p ? p : "";
  free(p);
  return s;
}

static void split_path(std::string_view list, std::vector<std::string> *out) {
  while (!list.empty()) {
    size_t end = std::min(list.find(':'), list.size());
    if (end) out->emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

Files::Files(std::vector<std::string> given, const std::string &module_path) : folders(std::move(given)) {
  if (const char *env = getenv("MLC_PATH")) split_path(env, &folders);
  if (size_t slash = module_path.rfind('/'); slash != std::string::npos)
    folders.push_back(module_path.substr(0, slash + 1));
  folders.push_back(".");
}

// A path that stays below its folder as it is written: relative, no `..`, no NUL.
static bool stays_below(std::string_view path) {
  if (path.empty() || path[0] == '/' || path.find('\0') != path.npos) return false;
  for (size_t start = 0; start <= path.size();) {
    size_t end = std::min(path.find('/', start), path.size());
    if (path.substr(start, end - start) == "..") return false;
    start = end + 1;
  }
  return true;
}

const Mapped *Files::open(std::string_view path, int64_t bytes, std::string_view sha256, std::string *error) {
  auto wrong = [&](const std::string &message) {
    *error = fmt::format("file \"{}\": {}", path, message);
    return nullptr;
  };
  if (!stays_below(path)) return wrong("expected a relative path without `..`");
  auto it = opened_.find(path);
  if (it == opened_.end()) {
    std::string found;
    for (const std::string &folder : folders) {
      std::string base = real(folder), file = base.empty() ? "" : real(fmt::format("{}/{}", base, path));
      if (file.empty()) continue;
      if (base != "/" && !file.starts_with(base + "/"))
        return wrong(fmt::format("a link leads out of {}", folder));
      found = file;
      break;
    }
    if (found.empty()) return wrong(fmt::format("not found in {}", fmt::join(folders, ", ")));
    it = opened_.try_emplace(std::string(path)).first;
    if (!it->second.file.open(found, error)) {
      opened_.erase(it);
      return wrong(std::string(*error));
    }
  }
  auto &[file, hash] = it->second;
  auto data = file.bytes();
  if (bytes >= 0 && uint64_t(bytes) != data.size())
    return wrong(fmt::format("expected {} bytes, found {}", bytes, data.size()));
  if (!sha256.empty() && int64_t(data.size()) < kHashedBelow) {
    if (hash.empty()) hash = sha256_of(data);
    if (hash != sha256) return wrong(fmt::format("expected sha256 {}, found {}", sha256, hash));
  }
  return &file;
}

bool slice(const Mapped &file, int64_t offset, int64_t n, std::span<const std::byte> *out) {
  auto all = file.bytes();
  if (offset < 0 || n < 0 || uint64_t(offset) > all.size() || uint64_t(n) > all.size() - uint64_t(offset)) return false;
  *out = all.subspan(size_t(offset), size_t(n));
  return true;
}

std::string sha256_of(std::span<const std::byte> bytes) {
  sha256_ctx state;
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_init(&state);
  sha256_update(&state, bytes.size(), reinterpret_cast<const uint8_t *>(bytes.data()));
  sha256_digest(&state, sizeof digest, digest);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace mlc
