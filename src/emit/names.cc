#include "emit/names.h"

#include <algorithm>

#include <fmt/core.h>

#include "text/text.h"

namespace mlc {
namespace {

// Words that cannot name a variable, member or function: keywords of C11 and C++20, macros in small letters that
// compilers and the standard's headers define, names of the two headers that emitted files include, and what emitted
// functions call their own. Macros in capitals are many (NULL, EOF, INT64_MAX, NAN, I): no name is of capitals alone.
constexpr std::string_view kWords[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "assert", "atomic_cancel", "atomic_commit", "atomic_noexcept",
    "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class",
    "co_await", "co_return", "co_yield", "compl", "complex", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else",
    "enum", "errno", "explicit", "export", "extern", "false", "far", "float", "for", "friend", "goto", "i386", "if",
    "imaginary", "inline", "int", "int16_t", "int32_t", "int64_t", "int8_t", "linux", "long", "main",
    "math_errhandling", "max_align_t", "mutable", "namespace", "near", "new", "noexcept", "noreturn", "not", "not_eq",
    "nullptr", "nullptr_t", "offsetof", "operator", "or", "or_eq", "private", "protected", "ptrdiff_t", "public",
    "reflexpr", "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "size_t",
    "sizeof", "small", "static", "static_assert", "static_cast", "std", "stderr", "stdin", "stdout", "struct",
    "switch", "synchronized", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
    "typename", "typeof", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "uintptr_t", "union", "unix", "unsigned",
    "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq"};
static_assert(std::is_sorted(std::begin(kWords), std::end(kWords)));

// Names of files NAME.h that would stand before the system's, and of targets that CMake or make keep to themselves.
constexpr std::string_view kProjects[] = {
    "aio", "all", "alloca", "assert", "clean", "complex", "ctype", "dirent", "dlfcn", "elf", "endian", "errno",
    "execinfo", "fcntl", "features", "fenv", "float", "glob", "help", "inttypes", "install", "iso646", "libgen",
    "limits", "link", "locale", "malloc", "math", "memory", "netdb", "package", "poll", "pthread", "pwd", "regex",
    "sched", "search", "semaphore", "setjmp", "signal", "spawn", "stdalign", "stdarg", "stdatomic", "stdbool",
    "stdckdint", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings", "syscall", "tar",
    "termios", "test", "tgmath", "threads", "time", "uchar", "unistd", "utime", "values", "wait", "wchar", "wctype"};

bool digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool plain(unsigned char c) { return digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// Bytes of the well-formed UTF-8 sequence at s[i], and its code point; 0: it is none.
size_t sequence(std::string_view s, size_t i, uint32_t *code) {
  auto byte = [&](size_t k) { return k < s.size() ? uint8_t(s[k]) : 0; };
  uint8_t a = byte(i);
  size_t n = a < 0x80 ? 1 : a >= 0xc2 && a < 0xe0 ? 2 : a >= 0xe0 && a < 0xf0 ? 3 : a >= 0xf0 && a < 0xf5 ? 4 : 0;
  *code = n > 1 ? a & (0x7f >> n) : a;
  for (size_t k = 1; k < n; k++) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (byte(i + k) & 0x3f);
  }
  bool low = (n == 3 && *code < 0x800) || (n == 4 && *code < 0x10000);
  return low || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}
// Control characters, separators of lines, marks that turn or hide text.
bool invisible(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe0fff);
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string s;
  for (unsigned char c : name)
    if (plain(c)) s += char(c);
    else if (!s.empty() && s.back() != '_') s += '_';
  if (s.size() > 1 && s.back() == '_') s.pop_back();
  if (s.empty() || digit(uint8_t(s[0]))) s = "v" + s;
  if (s.size() > 80) s.resize(80);
  auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  bool capitals = (s.size() > 1 || s == "I") && std::none_of(s.begin(), s.end(), small);
  if (capitals || std::binary_search(std::begin(kWords), std::end(kWords), s)) s += '_';
  return s;
}

std::string project_name(std::string_view name) {
  std::string s = identifier(name);
  return std::find(std::begin(kProjects), std::end(kProjects), s) == std::end(kProjects) ? s : s + "_model";
}

std::string Namer::make(std::string_view name) {
  log_.push_back(keep(name));
  return log_.back();
}
std::string Namer::keep(std::string_view name) {
  std::string base = identifier(name);
  if (!prefix_.empty() && base.starts_with(prefix_ + "_")) base = "v_" + base;
  std::string s = base;
  for (int n = 1; !taken_.insert(s).second; n++) s = fmt::format("{}{}{}", base, base.back() == '_' ? "" : "_", n);
  return s;
}
void Namer::pop(size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) taken_.erase(log_.back());
}

std::string comment_text(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    uint32_t code;
    size_t n = sequence(s, i, &code);
    if (!n || invisible(code)) {
      for (size_t end = i + std::max<size_t>(n, 1); i < end; i++) out += fmt::format("\\x{:02x}", uint8_t(s[i]));
      continue;
    }
    char last = out.empty() ? 0 : out.back();
    if ((last == '*' && s[i] == '/') || (last == '/' && s[i] == '*') || (last == '?' && s[i] == '?')) out += '\\';
    out.append(s.substr(i, n));
    i += n;
  }
  if (size_t end = out.find_last_not_of(' '); end != out.npos && out[end] == '\\') out += " .";
  return out;
}

std::string string_literal(std::string_view s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\' || c == '?') out += '\\', out += char(c);
    else if (c < 0x20 || c >= 0x7f) out += fmt::format("\\{:03o}", c);
    else out += char(c);
  }
  return out + '"';
}

std::string node_list(const Build &b, Syms from) {
  std::string out;
  for (Sym s : from) out += (out.empty() ? "" : ", ") + quote(b.text(s));
  return comment_text(out);
}

void comment_lines(std::string &out, std::string_view indent, std::string_view text) {
  constexpr size_t kWidth = 120;
  std::string_view more;
  while (true) {
    size_t room = kWidth - std::min(kWidth - 40, indent.size() + 3 + more.size());
    size_t cut = text.size();
    if (text.size() > room) {
      cut = text.rfind(' ', room);
      if (cut == text.npos || cut < room / 2) cut = std::min(text.find(' ', room), text.size());
    }
    std::string_view line = text.substr(0, cut);
    out.append(indent).append("// ").append(more).append(line);
    if (line.ends_with('\\')) out += " .";  // not the last of its line: that would join it with the next
    out += '\n';
    if (cut >= text.size()) return;
    text.remove_prefix(cut + 1);
    more = "  ";
  }
}

}  // namespace mlc
