#include "base/source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mlc {

namespace {

constexpr size_t kPipeRoom = size_t(1) << 36;  // address space only: pages that are never touched cost nothing

char *reserve(size_t n) {
  void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char *>(p);
}

// A pipe is read straight into reserved pages; untouched bytes are NULs. Where address space is limited, there are
// fewer.
std::string slurp(int fd, std::string_view *text) {
  size_t room = kPipeRoom;
  char *buffer = reserve(room);
  while (!buffer && room > size_t(1) << 24) buffer = reserve(room >>= 1);
  if (!buffer) return strerror(errno);
  size_t n = 0;
  for (;;) {
    if (n == room - Source::kBehind) return "larger than the address space that is left";
    ssize_t got = ::read(fd, buffer + n, std::min<size_t>(1 << 20, room - Source::kBehind - n));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return strerror(errno);
    if (got == 0) break;
    n += size_t(got);
  }
  *text = {buffer, n};
  return "";
}

// A file is mapped over zero pages that are longer: behind its last byte there are always NULs.
std::string map_file(int fd, size_t size, std::string_view *text) {
  size_t page = size_t(sysconf(_SC_PAGESIZE)), room = (size + Source::kBehind + page - 1) / page * page;
  char *buffer = reserve(room);
  if (!buffer) return strerror(errno);
  if (size && mmap(buffer, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
    return strerror(errno);
  *text = {buffer, size};
  return "";
}

}  // namespace

Source Source::open(const std::string &path) {
  Source s;
  s.text = {"", 0};
  if (path == "-") {
    s.name = "<stdin>";
    s.error = slurp(0, &s.text);
    return s;
  }
  s.name = path;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) {
    s.error = strerror(errno);
  } else if (S_ISDIR(st.st_mode)) {
    s.error = "is a directory";
  } else {
    s.error = S_ISREG(st.st_mode) ? map_file(fd, size_t(st.st_size), &s.text) : slurp(fd, &s.text);
  }
  if (fd >= 0) close(fd);
  return s;
}

Source Source::from_string(std::string name, std::string_view text) {
  Source s;
  s.name = std::move(name);
  char *copy = new char[text.size() + kBehind];  // lives as long as the process, as nodes point into it
  memcpy(copy, text.data(), text.size());
  memset(copy + text.size(), 0, kBehind);
  s.text = {copy, text.size()};
  return s;
}

Source Source::join(const Source &a, const Source &b) {
  std::string both(a.text);
  if (!both.empty() && both.back() != '\n') both += '\n';
  size_t second = both.size();
  Source s = from_string(a.name, both += b.text);
  s.error = a.error.empty() ? b.error : a.error;
  s.second_ = second;
  s.second_name_ = b.name;
  return s;
}

Source::Place Source::place(uint32_t at) const {
  size_t end = std::min<size_t>(at, text.size());
  uint32_t line = 1;
  const char *start = text.data() + (at >= second_ ? second_ : 0), *stop = text.data() + end;
  while (const void *nl = memchr(start, '\n', size_t(stop - start))) start = static_cast<const char *>(nl) + 1, line++;
  return {line, uint32_t(stop - start) + 1};
}

std::string_view Source::line_of(uint32_t at) const {
  size_t end = std::min<size_t>(at, text.size());
  size_t from = text.rfind('\n', end ? end - 1 : 0);
  from = end == 0 || from == std::string_view::npos ? 0 : from + 1;
  size_t to = text.find('\n', end);
  return text.substr(from, (to == std::string_view::npos ? text.size() : to) - from);
}

}  // namespace mlc
