#include "data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/utf8.h"
#include "data/files.h"

namespace mlc {
namespace {

constexpr size_t kMaxRank = 64, kMaxHeader = 1 << 20;
constexpr std::string_view kMagic = "\x93NUMPY";

template <class... A> bool wrong(std::string *error, fmt::format_string<A...> f, A &&...a) {
  *error = "npy: " + fmt::format(f, std::forward<A>(a)...);
  return false;
}

// numpy's letter and size, and ours.
struct Letter {
  char kind;
  int size;
  DType type;
};
constexpr Letter kLetters[] = {
    {'b', 1, DType::Bool}, {'i', 1, DType::I8},  {'i', 2, DType::I16}, {'i', 4, DType::I32}, {'i', 8, DType::I64},
    {'u', 1, DType::U8},   {'u', 2, DType::U16}, {'u', 4, DType::U32}, {'u', 8, DType::U64}, {'f', 2, DType::F16},
    {'f', 4, DType::F32},  {'f', 8, DType::F64}, {'V', 1, DType::U8},  {'V', 2, DType::U16},
};
// The type in whose elements numpy holds t.
DType carrier(DType t) {
  switch (t) {
    case DType::BF16: return DType::U16;
    case DType::I4: case DType::I2: return DType::I8;
    case DType::Index: return DType::I64;
    default: return is_float(t) && info(t).bits <= 8 ? DType::U8 : t == DType::U4 || t == DType::U2 ? DType::U8 : t;
  }
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
struct Header {
  std::string_view descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : p_(text) {}

  bool read(Header *h, std::string *error) {
    bool descr = false, order = false, shape = false;
    if (!take('{')) return wrong(error, "the header is malformed");
    while (!take('}')) {
      std::string_view key;
      if (!string(&key) || !take(':')) return wrong(error, "the header is malformed");
      if (key == "descr") {
        if (next() == '[') return wrong(error, "structured elements, expected numbers");
        if (!string(&h->descr)) return wrong(error, "the header is malformed");
        descr = true;
      } else if (key == "fortran_order") {
        h->fortran = word("True");
        if (!h->fortran && !word("False")) return wrong(error, "the header is malformed");
        order = true;
      } else if (key == "shape") {
        if (!tuple(&h->shape)) return wrong(error, "the header is malformed");
        shape = true;
      } else {
        return wrong(error, "unknown key '{}' in the header", key);
      }
      if (!take(',') && next() != '}') return wrong(error, "the header is malformed");
    }
    if (descr && order && shape && next() == 0) return true;
    return wrong(error, "the header is malformed");
  }

 private:
  char next() {
    while (!p_.empty() && (p_[0] == ' ' || p_[0] == '\n')) p_.remove_prefix(1);
    return p_.empty() ? 0 : p_[0];
  }
  bool take(char c) {
    if (next() != c) return false;
    p_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    next();
    if (!p_.starts_with(w)) return false;
    p_.remove_prefix(w.size());
    return true;
  }
  bool string(std::string_view *s) {
    char quote = next();
    size_t end = quote == '\'' || quote == '"' ? p_.find(quote, 1) : p_.npos;
    if (end == p_.npos) return false;
    *s = p_.substr(1, end - 1);
    p_.remove_prefix(end + 1);
    return true;
  }
  bool tuple(std::vector<int64_t> *dims) {
    dims->clear();
    if (!take('(')) return false;
    while (!take(')')) {
      int64_t d;
      next();
      auto r = std::from_chars(p_.data(), p_.data() + p_.size(), d);
      if (r.ec != std::errc{} || d < 0 || dims->size() == kMaxRank) return false;
      p_.remove_prefix(size_t(r.ptr - p_.data()));
      dims->push_back(d);
      take('L');  // Python 2
      if (!take(',') && next() != ')') return false;
    }
    return true;
  }
  std::string_view p_;
};

// Elements of `size` bytes from column-major to row-major order.
void transpose(const std::byte *src, std::byte *dst, std::span<const int64_t> dims, size_t size) {
  size_t rank = dims.size();
  std::vector<int64_t> index(rank), stride(rank, 1);
  for (size_t i = 1; i < rank; i++) stride[i] = stride[i - 1] * dims[i - 1];
  int64_t n = element_count(dims), from = 0;
  for (int64_t to = 0; to < n; to++) {
    memcpy(dst + size_t(to) * size, src + size_t(from) * size, size);
    for (size_t i = rank; i-- > 0;) {
      from += stride[i];
      if (++index[i] < dims[i]) break;
      from -= stride[i] * dims[i];
      index[i] = 0;
    }
  }
}

// numpy's strings: `letters` code points of 32 bits each, 0 behind the end.
bool read_strings(const Header &h, std::span<const std::byte> data, size_t letters, Array *out, std::string *error) {
  int64_t count = element_count(h.shape), bytes = -1, size = int64_t(letters) * 4;
  bool fits = count >= 0 && !__builtin_mul_overflow(count, size, &bytes) && uint64_t(bytes) == data.size();
  if (!fits || (!letters && count)) return wrong(error, "the bytes of '{}' do not fit the shape", h.descr);
  std::vector<std::byte> turned;
  if (h.fortran && h.shape.size() > 1) {
    turned.resize(data.size());
    transpose(data.data(), turned.data(), h.shape, size_t(size));
    data = turned;
  }
  Array a(DType::Str, h.shape);
  for (size_t i = 0; i < a.strings.size(); i++) {
    std::vector<uint32_t> text(letters);
    memcpy(text.data(), data.data() + i * letters * 4, letters * 4);
    while (!text.empty() && !text.back()) text.pop_back();
    for (uint32_t c : text) append_letter(h.descr[0] == '>' ? __builtin_bswap32(c) : c, a.strings[i]);
  }
  *out = std::move(a);
  return true;
}

std::vector<uint32_t> letters_of(std::string_view s) {
  std::vector<uint32_t> list;
  for (size_t n; !s.empty(); s.remove_prefix(n)) list.push_back(first_letter(s, &n));
  return list;
}

// From numpy's element to ours; bits stay, or integers become sub-byte ones.
bool become(Array &a, DType want, std::string_view descr, std::string *error) {
  if (want == DType::Invalid || want == a.type) return true;
  if (carrier(want) != a.type)
    return wrong(error, "expected elements of {}, found {} ('{}')", dtype_name(want), dtype_name(a.type), descr);
  if (info(want).bits == info(a.type).bits) return a.type = want, true;
  Array packed(want, a.dims);
  for (int64_t i = 0, n = a.size(); i < n; i++) packed.set(i, from_bits(want, a.get(i).bits));
  a = std::move(packed);
  return true;
}

}  // namespace

bool read_npy(std::span<const std::byte> file, DType want, Array *out, std::string *error) {
  std::string_view text(reinterpret_cast<const char *>(file.data()), file.size());
  if (text.size() < 12 || !text.starts_with(kMagic)) return wrong(error, "no npy file");
  unsigned version = uint8_t(text[6]);
  if (version < 1 || version > 3) return wrong(error, "version {}, expected 1 to 3", version);
  size_t start = version == 1 ? 10 : 12, length = 0;
  for (size_t i = start; i-- > 8;) length = length << 8 | uint8_t(text[i]);
  if (length > kMaxHeader || length > text.size() - start) return wrong(error, "the header is cut off");
  Header h;
  if (!HeaderReader(text.substr(start, length)).read(&h, error)) return false;

  char order = h.descr.empty() ? 0 : h.descr[0];
  int size = 0;
  const Letter *letter = nullptr;
  if (h.descr.size() >= 3 && std::from_chars(h.descr.data() + 2, h.descr.data() + h.descr.size(), size).ptr ==
                                 h.descr.data() + h.descr.size())
    for (const Letter &l : kLetters)
      if (l.kind == h.descr[1] && l.size == size) letter = &l;
  if (order && size >= 0 && h.descr.starts_with(std::string{order, 'U'}) && strchr("<>", order)) {
    if (want != DType::Str && want != DType::Invalid)
      return wrong(error, "expected elements of {}, found str ('{}')", dtype_name(want), h.descr);
    return read_strings(h, file.subspan(start + length), size_t(size), out, error);
  }
  if (!letter || !strchr("<>|=", order))
    return wrong(error, "elements '{}' are not supported", h.descr);

  std::span<const std::byte> data = file.subspan(start + length);
  int64_t bytes = array_bytes(letter->type, h.shape);
  if (bytes < 0 || uint64_t(bytes) != data.size())
    return wrong(error, "expected {} bytes of elements, found {}",
                 bytes < 0 ? "fewer than 2^63" : std::to_string(bytes), data.size());
  Array a(letter->type, h.shape);
  if (h.fortran && h.shape.size() > 1) {
    transpose(data.data(), a.bytes.data(), h.shape, size_t(size));
  } else if (bytes) {
    memcpy(a.bytes.data(), data.data(), data.size());
  }
  if (order == '>')
    for (size_t i = 0; i + size_t(size) <= a.bytes.size(); i += size_t(size))
      std::reverse(a.bytes.begin() + long(i), a.bytes.begin() + long(i) + size);
  if (a.type == DType::Bool)
    for (std::byte &b : a.bytes) b = std::byte(b != std::byte(0));
  if (!become(a, want, h.descr, error)) return false;
  *out = std::move(a);
  return true;
}

bool read_npy_file(const std::string &path, DType want, Array *out, std::string *error) {
  Mapped file;
  bool good = file.open(path, error) && read_npy(file.bytes(), want, out, error);
  if (!good) *error = path + ": " + *error;
  return good;
}

std::string write_npy(const Array &a) {
  DType t = carrier(a.type);
  const Letter *letter = kLetters;
  std::vector<std::vector<uint32_t>> texts;
  for (const std::string &s : a.strings) texts.push_back(letters_of(s));
  size_t width = 1;
  for (auto &s : texts) width = std::max(width, s.size());
  Letter of_strings{'U', int(width), DType::Str};
  if (a.type == DType::Str) letter = &of_strings;
  while (letter->type != t) letter++;
  std::string dims;
  for (int64_t d : a.dims) dims += fmt::format("{}{}", dims.empty() ? "" : " ", d) + ",";
  if (a.rank() > 1) dims.pop_back();
  bool bytes = letter->size == 1 && a.type != DType::Str;
  std::string header = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}", bytes ? '|' : '<',
                                   letter->kind, letter->size, dims);
  header.append(63 - (10 + header.size()) % 64, ' ') += '\n';  // elements start at a multiple of 64
  std::string out(kMagic);
  out += {1, 0, char(header.size() & 0xff), char(header.size() >> 8)};
  out += header;
  for (auto &s : texts) {
    for (uint32_t &c : s) c = c == kNoLetter ? 0xfffd : c;
    s.resize(width);
    out.append(reinterpret_cast<const char *>(s.data()), width * 4);
  }
  if (info(t).bits == info(a.type).bits)
    return out.append(reinterpret_cast<const char *>(a.bytes.data()), a.bytes.size());
  for (int64_t i = 0, n = a.size(); i < n; i++) {  // sub-byte: a byte each
    Scalar v = a.get(i);
    out += char(is_float(a.type) ? to_bits(a.type, v) : v.bits);
  }
  return out;
}

bool write_npy_file(const std::string &path, const Array &a, std::string *error) {
  std::string data = write_npy(a);
  FILE *f = fopen(path.c_str(), "wb");
  bool good = f && fwrite(data.data(), 1, data.size(), f) == data.size();
  if (f && fclose(f)) good = false;
  if (!good) *error = fmt::format("{}: {}", path, strerror(errno));
  return good;
}

}  // namespace mlc
