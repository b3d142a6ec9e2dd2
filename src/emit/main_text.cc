// NAME_main.cc: a program that reads .npy files, runs the model, writes .npy files.
#include "arith/prove.h"
#include "arith/simplify.h"
#include "emit/helpers.h"
#include "emit/model.h"
#include "emit/names.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc {
namespace {

// What is the same for every model: $P is its name. Of the C library: containers of C++ take longer to compile than a model.
constexpr std::string_view kHead = R"(#include <chrono>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

$CUDA#include "$P.h"

namespace {

[[noreturn]] __attribute__((format(printf, 1, 2))) void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("$P_main: error: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

struct Buffer {  // zeros, aligned to 64 bytes
  unsigned char *data = nullptr;
  size_t bytes = 0;
  explicit Buffer(size_t n) { resize(n); }
  Buffer(Buffer &&b) : data(b.data), bytes(b.bytes) { b.data = nullptr; }
  ~Buffer() { free(data); }
  void resize(size_t n) {  // loses what is there
    free(data);
    data = static_cast<unsigned char *>(aligned_alloc(64, (n + 64) / 64 * 64));
    if (!data) die("no memory for %zu bytes", n);
    memset(data, 0, n);
    bytes = n;
  }
};

$DEVICEconstexpr size_t kMostDims = 64;
struct Array {
  size_t rank;
  int64_t dims[kMostDims];
  Buffer buffer;
};

struct Text {
  char s[2048];
};
[[maybe_unused]] Text text(const int64_t *dims, size_t rank) {
  Text t = {"["};
  size_t at = 1;
  for (size_t i = 0; i < rank; i++)
    at += size_t(snprintf(t.s + at, sizeof t.s - at, "%s%lld", i ? ", " : "", static_cast<long long>(dims[i])));
  snprintf(t.s + at, sizeof t.s - at, "]");
  return t;
}

[[maybe_unused]] void expect_dims(const char *path, const Array &a, const int64_t *want) {
  if (memcmp(a.dims, want, a.rank * sizeof *want))
    die("%s: expected dimensions %s, found %s", path, text(want, a.rank).s, text(a.dims, a.rank).s);
}

[[maybe_unused]] Buffer read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) die("%s: cannot be opened", path);
  size_t size = 0, room = 65536;
  char *all = static_cast<char *>(malloc(room));
  for (size_t n; all && (n = fread(all + size, 1, room - size, f)) > 0;)
    if ((size += n) == room) all = static_cast<char *>(realloc(all, room *= 2));
  if (!all) die("no memory for %zu bytes", room);
  if (ferror(f)) die("%s: cannot be read", path);
  fclose(f);
  Buffer b(size);
  memcpy(b.data, all, size);
  free(all);
  return b;
}

// The value behind 'key': in the header of an .npy file, up to `end`, which a zero takes the place of.
char *field(const char *path, char *header, const char *key, char begin, char end) {
  char *at = strstr(header, key);
  if (at) at += strlen(key), at += strspn(at, " ");
  if (!at || (begin && *at != begin)) die("%s: its header has no %s", path, key);
  if (begin) at++;
  char *to = strchr(at, end);
  if (!to) die("%s: its header ends too early", path);
  *to = 0;
  return at;
}
bool same_type(const char *found, const char *wanted) {
  return !strcmp(found, wanted) || (wanted[0] == '|' && found[0] && !strcmp(found + 1, wanted + 1));
}

// Row-major elements of type `descr` (numpy's name), `size` bytes each, of `rank` dimensions.
[[maybe_unused]] Array read_npy(const char *path, const char *descr, size_t size, size_t rank) {
  const Buffer file = read_file(path);
  const unsigned char *s = file.data;
  const bool longer = file.bytes >= 12 && s[6] != 1;
  if (file.bytes < 10 || memcmp(s, "\x93NUMPY", 6) || (s[6] != 1 && !longer)) die("%s: no .npy file", path);
  const size_t start = longer ? 12 : 10, few = size_t(s[8]) | size_t(s[9]) << 8;
  const size_t length = longer ? few | size_t(s[10]) << 16 | size_t(s[11]) << 24 : few;
  if (length > file.bytes - start) die("%s: its header ends too early", path);
  Buffer header[3] = {Buffer(length + 1), Buffer(length + 1), Buffer(length + 1)};
  char *copies[3];
  for (int i = 0; i < 3; i++) {
    copies[i] = reinterpret_cast<char *>(header[i].data);
    memcpy(copies[i], s + start, length);
  }
  const char *type = field(path, copies[0], "'descr':", '\'', '\'');
  if (!same_type(type, descr)) die("%s: expected elements of type %s, found %s", path, descr, type);
  Array a{0, {}, Buffer(0)};
  size_t count = 1;
  for (char *p = field(path, copies[1], "'shape':", '(', ')'), *end; *p; p = end + strspn(end, ", ")) {
    const long long d = strtoll(p, &end, 10);
    if (end == p) break;
    if (a.rank == kMostDims) die("%s: expected at most %zu dimensions", path, kMostDims);
    if (d < 0 || (d > 0 && count > (size_t(1) << 48) / size_t(d))) die("%s: the file is too short for its shape", path);
    a.dims[a.rank++] = d, count *= size_t(d);
  }
  if (a.rank != rank) die("%s: expected %zu dimensions, found %s", path, rank, text(a.dims, a.rank).s);
  if (!strcmp(field(path, copies[2], "'fortran_order':", 0, ','), "True") && rank > 1)
    die("%s: its elements are in column-major order", path);
  if (file.bytes - start - length < count * size) die("%s: the file is too short for its shape", path);
  a.buffer.resize(count * size);
  memcpy(a.buffer.data, s + start + length, count * size);
  return a;
}

// Output i of `count`: to the path that `pattern` says.
[[maybe_unused]] void write_npy(const char *pattern, size_t i, size_t count, const char *descr, const int64_t *dims,
                                size_t rank, const void *data, size_t bytes) {
  const char *number = strstr(pattern, "%d");
  if (!number && count > 1) die("-o %s: expected a %%d in the name for %zu outputs", pattern, count);
  char path[4096], header[4096] = "\x93NUMPY\x01";
  const int stem = number ? int(number - pattern) : 0;
  if (number) snprintf(path, sizeof path, "%.*s%zu%s", stem, pattern, i, number + 2);
  else snprintf(path, sizeof path, "%s", pattern);
  size_t n = 10;
  n += size_t(snprintf(header + n, sizeof header - n, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr));
  for (size_t d = 0; d < rank; d++)
    n += size_t(snprintf(header + n, sizeof header - n, "%lld,", static_cast<long long>(dims[d])));
  n += size_t(snprintf(header + n, sizeof header - n, "), }"));
  while (n % 64 != 63) header[n++] = ' ';
  header[n++] = '\n';
  header[8] = char((n - 10) & 255), header[9] = char((n - 10) >> 8);
  FILE *f = fopen(path, "wb");
  const bool ok = f && fwrite(header, 1, n, f) == n && (!bytes || fwrite(data, 1, bytes, f) == bytes);
  if (!f || fclose(f) || !ok) die("%s: cannot be written", path);
}

int by_size(const void *a, const void *b) {
  const double x = *static_cast<const double *>(a), y = *static_cast<const double *>(b);
  return (x > y) - (x < y);
}
)";

constexpr std::string_view kCudaHead = R"(#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include "$SIMULATOR"
#endif

)";
// The exit code is its own where there is no device to run on.
constexpr std::string_view kDevice = R"(struct DeviceBuffer {  // device memory
  void *data = nullptr;
  explicit DeviceBuffer(size_t n) {
    const cudaError_t e = cudaMalloc(&data, n + 64);
    if (e == cudaSuccess) return;
    const bool none = e == cudaErrorInsufficientDriver || e == cudaErrorNoDevice || e == cudaErrorStubLibrary;
    fprintf(stderr, "$P_main: error: %s: %s\n", none ? "no device" : "no device memory", cudaGetErrorString(e));
    exit(none ? 3 : 1);
  }
  DeviceBuffer(const DeviceBuffer &) = delete;
  ~DeviceBuffer() { cudaFree(data); }
};

)";

constexpr std::string_view kPack = R"(
// Elements of `bits` bits, in .npy files one a byte, packed from the low bits; and back.
[[maybe_unused]] void pack(Buffer &b, int bits) {
  const size_t each = size_t(8 / bits), n = b.bytes;
  const unsigned mask = (1u << bits) - 1;
  for (size_t i = 0; i < n; i++) {
    const unsigned v = b.data[i] & mask;
    const size_t at = i / each, shift = i % each * size_t(bits);
    b.data[at] = static_cast<unsigned char>((shift ? b.data[at] : 0u) | v << shift);
  }
  b.bytes = (n * size_t(bits) + 7) / 8;
}
[[maybe_unused]] Buffer unpack(const void *data, size_t n, int bits, bool sign) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  Buffer out(n);
  const size_t each = size_t(8 / bits);
  for (size_t i = 0; i < n; i++) {
    unsigned v = p[i / each] >> i % each * size_t(bits) & ((1u << bits) - 1);
    if (sign && v >> (bits - 1)) v |= 255u << bits;
    out.data[i] = static_cast<unsigned char>(v);
  }
  return out;
}
)";

constexpr std::string_view kFloorDiv = R"(
int64_t floor_div(int64_t a, int64_t b) { return b ? a / b - (a % b && (a < 0) != (b < 0)) : 0; }
)";
constexpr std::string_view kFloorMod = R"(
int64_t floor_mod(int64_t a, int64_t b) { return b ? a - b * floor_div(a, b) : 0; }
)";
constexpr std::string_view kMinMax = R"(
[[maybe_unused]] int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
[[maybe_unused]] int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
)";

std::string descr(DType t) {
  if (t == DType::Bool) return "|b1";
  int bytes = std::max(info(t).bits / 8, 1);
  char letter = t == DType::F16 || t == DType::F32 || t == DType::F64 ? 'f' : is_int(t) && is_signed(t) ? 'i' : 'u';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', letter, bytes);
}

class MainPrinter {
 public:
  MainPrinter(Build &b, const CppModel &model, const CppOptions &o) : b_(b), model_(model), p_(o.name), o_(o) {}

  std::string run() {
    std::string body = main_body();
    std::string s = fmt::format("// {0}_main: runs {0} on .npy files.\n{1}//   {0}_main [--repeat N]{2}", p_,
                                o_.command.empty() ? "" : "// Made by: " + comment_text(o_.command) + "\n",
                                has_file() ? " [--weights FILE]" : "");
    for (const Port &x : model_.inputs) s += " " + x.member + ".npy";
    s += " [-o out%d.npy]\n// prints the median time of a run; -o writes the outputs";
    for (const Port &x : model_.inputs)
      if (x.written) s += ", then what became of " + x.member;
    s += ".\n";
    std::string head(kHead);
    head.replace(head.find("$CUDA"), 5, o_.cuda ? kCudaHead : "");
    if (o_.cuda) head.replace(head.find("$SIMULATOR"), 10, "mlc_cuda.h");
    head.replace(head.find("$DEVICE"), 7, o_.cuda ? kDevice : "");
    for (size_t at; (at = head.find("$P")) != head.npos;) head.replace(at, 2, p_);
    s += head;
    if (packs_) s += kPack;
    if (divides_) s += kFloorDiv;
    if (remainders_) s += std::string_view(kFloorMod).substr(1);
    if (compares_) s += kMinMax;
    return s + "\n}  // namespace\n" + body;
  }

 private:
  bool has_file() const { return model_.form == WeightForm::File && !model_.weights.empty(); }
  template <class... A> void line(fmt::format_string<A...> f, A &&...a) {
    out_ += "  " + fmt::format(f, std::forward<A>(a)...) + "\n";
  }

  // An index expression over dims, scalar inputs and index outputs.
  std::string expr(const Expr *e) {
    if (auto *i = as<Int>(e)) return fmt::format("{}", i->value);
    if (auto *n = as<Name>(e)) {
      for (auto &[sym, member] : model_.dims)
        if (sym == n->name) return "in.dims." + member;
      for (const Port &x : model_.inputs)
        if (x.def.name == n->name) return "in." + x.member;
      for (const Port &x : model_.outputs)
        if (x.def.name == n->name) return "out." + x.member;
    }
    if (auto *x = as<Binary>(e)) {
      std::string a = expr(x->a), b = expr(x->b);
      switch (x->op) {
        case Op::Add: return fmt::format("({} + {})", a, b);
        case Op::Sub: return fmt::format("({} - {})", a, b);
        case Op::Mul: return fmt::format("({} * {})", a, b);
        case Op::FloorDiv: divides_ = true; return fmt::format("floor_div({}, {})", a, b);
        case Op::Mod: divides_ = remainders_ = true; return fmt::format("floor_mod({}, {})", a, b);
        default: break;
      }
    }
    if (auto *c = as<Call>(e); c && c->args.size() == 2)
      return compares_ = true, fmt::format("{}({}, {})", b_.text(c->callee), expr(c->args[0]), expr(c->args[1]));
    return "0";
  }

  // Symbols from the shapes: an equation affine in one that is not known gives it; then all are compared.
  void solve() {
    std::vector<Sym> open;
    for (auto &[sym, member] : model_.dims) open.push_back(sym);
    for (bool progress = true; progress && !open.empty();) {
      progress = false;
      for (size_t i = 0; i < model_.inputs.size(); i++) {
        const Port &x = model_.inputs[i];
        for (size_t d = 0; d < x.def.type->dims.size(); d++) {
          const Expr *e = x.def.type->dims[d];
          std::vector<Sym> unknown;
          for (Sym s : open)
            if (mentions(e, s)) unknown.push_back(s);
          if (unknown.size() != 1) continue;
          auto at = [&](int64_t v) { return simplify(b_, substitute(b_, e, {{unknown[0], b_.integer(v)}})); };
          const Expr *base = at(0);
          int64_t k;
          if (!int_value(simplify(b_, b_.binary(Op::Sub, at(1), base)), &k) || !k) continue;
          const Expr *name = b_.name(unknown[0]);
          const Expr *line_of = b_.binary(Op::Add, b_.binary(Op::Mul, b_.integer(k), name), base);
          if (!provably_equal(b_, line_of, e)) continue;
          std::string shape = fmt::format("x{}.dims[{}]", i, d);
          std::string value = is_int(base, 0) ? shape : fmt::format("({} - {})", shape, expr(base));
          line("{} = {}{};", expr(name), value, k == 1 ? "" : fmt::format(" / {}", k));
          open.erase(std::find(open.begin(), open.end(), unknown[0]));
          progress = true;
        }
      }
    }
    for (size_t i = 0; i < model_.inputs.size(); i++) {
      const Port &x = model_.inputs[i];
      if (!x.def.type->tensor || x.def.type->dims.empty()) continue;
      std::string list;
      for (const Expr *e : x.def.type->dims) list += (list.empty() ? "" : ", ") + expr(e);
      line("const int64_t want{}[] = {{{}}};", i, list);
      line("expect_dims(files[{0}], x{0}, want{0});", i);
    }
  }

  std::string main_body() {
    size_t inputs = model_.inputs.size();
    out_ = "\nint main(int argc, char **argv) {\n";
    if (inputs) line("const char *files[{}] = {{}};", inputs);
    line("const char *pattern = nullptr{};", has_file() ? ", *weight_path = nullptr" : "");
    line("int found = 0;");
    line("long repeat = 1;");
    line("for (int i = 1; i < argc; i++) {{");
    line("  const char *a = argv[i];");
    line("  const bool more = i + 1 < argc;");
    line("  if (!strcmp(a, \"--repeat\") && more) repeat = strtol(argv[++i], nullptr, 10);");
    if (has_file()) line("  else if (!strcmp(a, \"--weights\") && more) weight_path = argv[++i];");
    line("  else if (!strcmp(a, \"-o\") && more) pattern = argv[++i];");
    line("  else if (a[0] == '-' && a[1]) die(\"unknown option %s\", a);");
    line("  else{};", inputs ? fmt::format(" if (found++ < {}) files[found - 1] = a", inputs) : " found++");
    line("}}");
    line("if (repeat < 1 || repeat > 100000000) die(\"--repeat: expected a number from 1 to 100000000\");");
    line("if (found != {0}) die(\"expected {0} input file{1}, found %d\", found);", inputs, inputs == 1 ? "" : "s");
    line("{}_in in = {{}};", p_);
    for (size_t i = 0; i < inputs; i++) input(i, model_.inputs[i]);
    solve();
    line("{}_context context;", p_);
    if (has_file()) {
      out_ += "#ifdef WEIGHTS\n";
      line("if (!weight_path) weight_path = WEIGHTS;");
      out_ += "#endif\n";
      line("char beside[4096];  // the program");
      line("if (!weight_path) {{");
      line("  const char *slash = strrchr(argv[0], '/');");
      line("  const int folder = slash ? int(slash + 1 - argv[0]) : 0;");
      line("  snprintf(beside, sizeof beside, \"%.*s{}.weights\", folder, argv[0]);", p_);
      line("  weight_path = beside;");
      line("}}");
      line("const Buffer weights = read_file(weight_path);");
      line("int code = {}_init(&context, weights.data, weights.bytes, nullptr);", p_);
    } else {
      line("int code = {}_init(&context, nullptr, 0, nullptr);", p_);
    }
    line("if (code) die(\"%s\", {}_error(code));", p_);
    line("const size_t arena_bytes = {}_arena_bytes({}, 1);", p_, model_.dims.empty() ? "nullptr" : "&in.dims");
    line("if (!arena_bytes) die(\"a dimension is too large\");");
    line("const {}Buffer arena(arena_bytes);", o_.cuda ? "Device" : "");
    if (o_.cuda && !model_.weights.empty()) {
      line("const DeviceBuffer device_weights({}_WEIGHTS_BYTES);", p_);
      line("code = {}_upload(&context, device_weights.data, nullptr);", p_);
      line("if (code) die(\"%s\", {}_error(code));", p_);
    }
    line("{}_out out = {{}};", p_);
    bool capacity = false;
    for (size_t i = 0; i < model_.outputs.size(); i++) {
      const Port &x = model_.outputs[i];
      bool open = x.capacity && !x.most;
      capacity |= open;
      if (!x.def.type->tensor) continue;
      if (open) {
        line("Buffer y{}(0);", i);
        continue;
      }
      std::string n = x.most ? expr(x.most) : count(x);
      line("const Buffer y{}(size_t({}) * {});", i, n, element_bytes(x));
      if (x.capacity) line("out.{}_capacity = {};", x.member, n);
      line("out.{} = reinterpret_cast<{} *>(y{}.data);", x.member, c_storage(x.def.type->elem), i);
    }
    if (capacity) {
      line("for (int64_t room = 4096;; room *= 4) {{  // until the outputs whose size is data have room");
      for (size_t i = 0; i < model_.outputs.size(); i++) {
        const Port &x = model_.outputs[i];
        if (!x.capacity || x.most) continue;
        line("  y{}.resize(size_t(room) * {});", i, element_bytes(x));
        line("  out.{} = reinterpret_cast<{} *>(y{}.data);", x.member, c_storage(x.def.type->elem), i);
        line("  out.{}_capacity = room;", x.member);
      }
      line("  code = {}_run(&context, &in, &out, arena.data);", p_);
      line("  if (code != {} || room > INT64_C(1) << 40) break;", model_.capacity_code);
      line("}}");
      line("if (code) die(\"%s\", {}_error(code));", p_);
    }
    line("const Buffer memory(size_t(repeat) * sizeof(double));");
    line("double *const times = reinterpret_cast<double *>(memory.data);");
    line("for (long i = 0; i < repeat; i++) {{");
    line("  const auto start = std::chrono::steady_clock::now();");
    line("  code = {}_run(&context, &in, &out, arena.data);", p_);
    line("  const auto end = std::chrono::steady_clock::now();");
    line("  times[i] = std::chrono::duration<double, std::micro>(end - start).count();");
    line("  if (code) die(\"%s\", {}_error(code));", p_);
    line("}}");
    line("qsort(times, size_t(repeat), sizeof *times, by_size);");
    line("const char *plural = repeat == 1 ? \"\" : \"s\";");
    line("printf(\"{}: %.3f us, the median of %ld run%s\\n\", times[repeat / 2], repeat, plural);", p_);
    line("if (!pattern) return 0;");
    outputs();
    out_ += "}\n";
    return out_;
  }

  static int element_bytes(const Port &x) { return std::max(info(x.def.type->elem).bits / 8, 1); }
  std::string count(const Port &x) {
    std::string s;
    for (const Expr *d : x.def.type->dims) s += (s.empty() ? "" : " * ") + expr(d);
    return s.empty() ? "1" : s;
  }
  bool packed(const Port &x) {
    bool yes = info(x.def.type->elem).bits < 8;
    packs_ |= yes;
    return yes;
  }

  void input(size_t i, const Port &x) {
    DType t = x.def.type->elem;
    line("{0}Array x{1} = read_npy(files[{1}], \"{2}\", {3}, {4});", packed(x) ? "" : "const ", i, descr(t),
         element_bytes(x), x.def.type->rank());
    if (packed(x)) line("pack(x{}.buffer, {});", i, info(t).bits);
    std::string_view c = c_storage(t);
    if (x.def.type->tensor) line("in.{} = reinterpret_cast<{} *>(x{}.buffer.data);", x.member, c, i);
    else line("in.{} = *reinterpret_cast<const {} *>(x{}.buffer.data);", x.member, c, i);
  }

  void outputs() {
    size_t n = model_.outputs.size(), index = 0;
    for (const Port &x : model_.inputs) n += x.written;
    auto put = [&](const Port &x, const std::string &data, const std::string &dims, const std::string &elements) {
      DType t = x.def.type->elem;
      std::string bytes = data;
      if (packed(x))
        bytes = fmt::format("unpack({}, size_t({}), {}, {}).data", data, elements, info(t).bits, is_signed(t));
      line("write_npy(pattern, {}, {}, \"{}\", {}, {}, {}, size_t({}) * {});", index++, n, descr(t), dims,
           x.def.type->tensor ? x.def.type->rank() : 0, bytes, elements, element_bytes(x));
    };
    for (const Port &x : model_.outputs) {
      if (!x.def.type->tensor) {
        put(x, "&out." + x.member, "nullptr", "1");
        continue;
      }
      std::string elements;
      for (size_t d = 0; d < x.def.type->rank(); d++)
        elements += fmt::format("{}out.{}_dims[{}]", d ? " * " : "", x.member, d);
      put(x, "out." + x.member, elements.empty() ? "nullptr" : fmt::format("out.{}_dims", x.member),
          elements.empty() ? "1" : elements);
    }
    for (size_t i = 0; i < model_.inputs.size(); i++) {
      const Port &x = model_.inputs[i];
      if (x.written) put(x, "in." + x.member, fmt::format("x{}.dims", i), count(x));
    }
  }

  Build &b_;
  const CppModel &model_;
  const std::string p_;
  const CppOptions &o_;
  std::string out_;
  bool packs_ = false, divides_ = false, remainders_ = false, compares_ = false;
};

}  // namespace

std::string main_text(Build &b, const CppModel &model, const CppOptions &options) {
  return MainPrinter(b, model, options).run();
}

}  // namespace mlc
