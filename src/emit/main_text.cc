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

// What is the same for every model: $P is its name.
constexpr std::string_view kHead = R"(#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

$CUDA#include "$P.h"

namespace {

[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "$P_main: error: %s\n", message.c_str());
  std::exit(1);
}

struct Buffer {  // aligned to 64 bytes
  std::unique_ptr<void, void (*)(void *)> memory;
  size_t bytes;
  explicit Buffer(size_t n) : memory(std::aligned_alloc(64, (n + 64) / 64 * 64), std::free), bytes(n) {
    if (!memory) die("no memory for " + std::to_string(n) + " bytes");
    std::memset(memory.get(), 0, n);
  }
  void *data() const { return memory.get(); }
};

$DEVICEstruct Array {
  std::vector<int64_t> dims;
  Buffer buffer;
};

[[maybe_unused]] std::string text(const std::vector<int64_t> &dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); i++) s += (i ? ", " : "") + std::to_string(dims[i]);
  return s + "]";
}

std::string read_file(const std::string &path) {
  std::FILE *f = std::fopen(path.c_str(), "rb");
  if (!f) die(path + ": cannot be opened");
  std::string s;
  char part[65536];
  for (size_t n; (n = std::fread(part, 1, sizeof part, f)) > 0;) s.append(part, n);
  if (std::ferror(f)) die(path + ": cannot be read");
  std::fclose(f);
  return s;
}

// The value behind 'key': in the header of an .npy file, up to `end`.
std::string field(const std::string &path, const std::string &header, const std::string &key, char begin, char end) {
  size_t at = header.find("'" + key + "':");
  at = at == header.npos ? at : header.find_first_not_of(' ', at + key.size() + 3);
  if (at == header.npos || (begin && header[at] != begin)) die(path + ": its header has no " + key);
  size_t from = begin ? at + 1 : at, to = header.find(end, from);
  if (to == header.npos) die(path + ": its header ends too early");
  return header.substr(from, to - from);
}

// Row-major elements of type `descr` (numpy's name), `size` bytes each, of `rank` dimensions.
[[maybe_unused]] Array read_npy(const std::string &path, const std::string &descr, size_t size, size_t rank) {
  std::string s = read_file(path);
  if (s.size() < 10 || s.compare(0, 6, "\x93NUMPY") != 0) die(path + ": no .npy file");
  auto byte = [&](size_t i) { return size_t(static_cast<unsigned char>(s[i])); };
  size_t start = s[6] == 1 ? 10 : 12, length = byte(8) | byte(9) << 8;
  if (s[6] != 1) {
    if (s.size() < 12) die(path + ": no .npy file");
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > s.size() - start) die(path + ": its header ends too early");
  std::string header = s.substr(start, length), type = field(path, header, "descr", '\'', '\'');
  if (type != descr && !(descr[0] == '|' && type.substr(1) == descr.substr(1)))
    die(path + ": expected elements of type " + descr + ", found " + type);
  std::vector<int64_t> dims;
  size_t count = 1;
  std::string shape = field(path, header, "shape", '(', ')');
  for (const char *p = shape.c_str(); *p;) {
    char *end;
    long long d = std::strtoll(p, &end, 10);
    if (end == p) break;
    if (d < 0 || (d > 0 && count > (size_t(1) << 48) / size_t(d))) die(path + ": the file is too short for its shape");
    dims.push_back(d), count *= size_t(d);
    for (p = end; *p == ',' || *p == ' ';) p++;
  }
  if (dims.size() != rank) die(path + ": expected " + std::to_string(rank) + " dimensions, found " + text(dims));
  if (field(path, header, "fortran_order", 0, ',') == "True" && dims.size() > 1)
    die(path + ": its elements are in column-major order");
  if (s.size() - start - length < count * size) die(path + ": the file is too short for its shape");
  Array a{dims, Buffer(count * size)};
  std::memcpy(a.buffer.data(), s.data() + start + length, count * size);
  return a;
}

[[maybe_unused]] void write_npy(const std::string &path, const std::string &descr, const std::vector<int64_t> &dims,
                                const void *data, size_t bytes) {
  std::string shape;
  for (int64_t d : dims) shape += std::to_string(d) + ",";
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (header.size() + 10) % 64, ' ') += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += char(header.size() & 255), head += char(header.size() >> 8);
  std::FILE *f = std::fopen(path.c_str(), "wb");
  bool ok = f && std::fwrite(head.data(), 1, head.size(), f) == head.size() &&
            std::fwrite(header.data(), 1, header.size(), f) == header.size() && std::fwrite(data, 1, bytes, f) == bytes;
  if (!f || std::fclose(f) != 0 || !ok) die(path + ": cannot be written");
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
  void *memory = nullptr;
  explicit DeviceBuffer(size_t n) {
    const cudaError_t e = cudaMalloc(&memory, n + 64);
    if (e == cudaSuccess) return;
    const bool none = e == cudaErrorInsufficientDriver || e == cudaErrorNoDevice || e == cudaErrorStubLibrary;
    std::fprintf(stderr, "$P_main: error: %s: %s\n", none ? "no device" : "no device memory", cudaGetErrorString(e));
    std::exit(none ? 3 : 1);
  }
  DeviceBuffer(const DeviceBuffer &) = delete;
  ~DeviceBuffer() { cudaFree(memory); }
  void *data() const { return memory; }
};

)";

constexpr std::string_view kPack = R"(
// Elements of `bits` bits, in .npy files one a byte, packed from the low bits; and back.
size_t packed_bytes(size_t n, int bits) { return (n * size_t(bits) + 7) / 8; }
[[maybe_unused]] void pack(Buffer &b, int bits) {
  unsigned char *p = static_cast<unsigned char *>(b.data());
  const size_t each = size_t(8 / bits), n = b.bytes;
  const unsigned mask = (1u << bits) - 1;
  for (size_t i = 0; i < n; i++) {
    const unsigned v = p[i] & mask;
    const size_t at = i / each, shift = i % each * size_t(bits);
    p[at] = static_cast<unsigned char>((shift ? p[at] : 0u) | v << shift);
  }
  b.bytes = packed_bytes(n, bits);
}
[[maybe_unused]] std::vector<unsigned char> unpack(const void *data, size_t n, int bits, bool sign) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  std::vector<unsigned char> out(n);
  const size_t each = size_t(8 / bits);
  for (size_t i = 0; i < n; i++) {
    unsigned v = p[i / each] >> i % each * size_t(bits) & ((1u << bits) - 1);
    if (sign && v >> (bits - 1)) v |= 255u << bits;
    out[i] = static_cast<unsigned char>(v);
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

constexpr std::string_view kLast = R"(
[[maybe_unused]] std::string out_path(const std::string &pattern, size_t i, size_t count) {
  size_t at = pattern.find("%d");
  if (at != pattern.npos) return pattern.substr(0, at) + std::to_string(i) + pattern.substr(at + 2);
  if (count > 1) die("-o " + pattern + ": expected a %d in the name for " + std::to_string(count) + " outputs");
  return pattern;
}

}  // namespace
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
    return s + std::string(kLast) + body;
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
      return fmt::format("std::{}<int64_t>({}, {})", b_.text(c->callee), expr(c->args[0]), expr(c->args[1]));
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
      line("if (const std::vector<int64_t> want = {{{}}}; x{}.dims != want)", list, i);
      line("  die(files[{}] + \": expected dimensions \" + text(want) + \", found \" + text(x{}.dims));", i, i);
    }
  }

  std::string main_body() {
    size_t inputs = model_.inputs.size();
    out_ = "\nint main(int argc, char **argv) {\n";
    line("std::vector<std::string> files;");
    line("std::string pattern{};", has_file() ? fmt::format(", weight_path") : "");
    line("long repeat = 1;");
    line("for (int i = 1; i < argc; i++) {{");
    line("  const std::string a = argv[i];");
    line("  const bool more = i + 1 < argc;");
    line("  if (a == \"--repeat\" && more) repeat = std::strtol(argv[++i], nullptr, 10);");
    if (has_file()) line("  else if (a == \"--weights\" && more) weight_path = argv[++i];");
    line("  else if (a == \"-o\" && more) pattern = argv[++i];");
    line("  else if (a.size() > 1 && a[0] == '-') die(\"unknown option \" + a);");
    line("  else files.push_back(a);");
    line("}}");
    line("if (repeat < 1) die(\"--repeat: expected a number of at least 1\");");
    line("if (files.size() != {}) die(\"expected {} input file{}, found \" + std::to_string(files.size()));", inputs,
         inputs, inputs == 1 ? "" : "s");
    line("{}_in in = {{}};", p_);
    for (size_t i = 0; i < inputs; i++) input(i, model_.inputs[i]);
    solve();
    line("{}_context context;", p_);
    if (has_file()) {
      out_ += "#ifdef WEIGHTS\n";
      line("if (weight_path.empty()) weight_path = WEIGHTS;");
      out_ += "#endif\n";
      line("if (weight_path.empty()) {{");
      line("  const std::string self = argv[0];");
      line("  weight_path = self.substr(0, self.rfind('/') + 1) + \"{}.weights\";", p_);
      line("}}");
      line("const std::string file = read_file(weight_path);");
      line("const Buffer weights(file.size());");
      line("std::memcpy(weights.data(), file.data(), file.size());");
      line("int code = {}_init(&context, weights.data(), weights.bytes, nullptr);", p_);
    } else {
      line("int code = {}_init(&context, nullptr, 0, nullptr);", p_);
    }
    line("if (code) die({}_error(code));", p_);
    line("const size_t arena_bytes = {}_arena_bytes({}, 1);", p_, model_.dims.empty() ? "nullptr" : "&in.dims");
    line("if (!arena_bytes) die(\"a dimension is too large\");");
    line("const {}Buffer arena(arena_bytes);", o_.cuda ? "Device" : "");
    if (o_.cuda && !model_.weights.empty()) {
      line("const DeviceBuffer device_weights({}_WEIGHTS_BYTES);", p_);
      line("code = {}_upload(&context, device_weights.data(), nullptr);", p_);
      line("if (code) die({}_error(code));", p_);
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
      line("out.{} = static_cast<{} *>(y{}.data());", x.member, c_storage(x.def.type->elem), i);
    }
    if (capacity) {
      line("for (int64_t room = 4096;; room *= 4) {{  // until the outputs whose size is data have room");
      for (size_t i = 0; i < model_.outputs.size(); i++) {
        const Port &x = model_.outputs[i];
        if (!x.capacity || x.most) continue;
        line("  y{} = Buffer(size_t(room) * {});", i, element_bytes(x));
        line("  out.{} = static_cast<{} *>(y{}.data());", x.member, c_storage(x.def.type->elem), i);
        line("  out.{}_capacity = room;", x.member);
      }
      line("  code = {}_run(&context, &in, &out, arena.data());", p_);
      line("  if (code != {} || room > INT64_C(1) << 40) break;", model_.capacity_code);
      line("}}");
      line("if (code) die({}_error(code));", p_);
    }
    line("std::vector<double> times;");
    line("for (long i = 0; i < repeat; i++) {{");
    line("  const auto start = std::chrono::steady_clock::now();");
    line("  code = {}_run(&context, &in, &out, arena.data());", p_);
    line("  const auto end = std::chrono::steady_clock::now();");
    line("  times.push_back(std::chrono::duration<double, std::micro>(end - start).count());");
    line("  if (code) die({}_error(code));", p_);
    line("}}");
    line("std::sort(times.begin(), times.end());");
    line("const char *plural = repeat == 1 ? \"\" : \"s\";");
    line("std::printf(\"{}: %.3f us, the median of %ld run%s\\n\", times[times.size() / 2], repeat, plural);", p_);
    line("if (pattern.empty()) return 0;");
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
    if (x.def.type->tensor) line("in.{} = static_cast<{} *>(x{}.buffer.data());", x.member, c, i);
    else line("in.{} = *static_cast<const {} *>(x{}.buffer.data());", x.member, c, i);
  }

  void outputs() {
    size_t n = model_.outputs.size(), index = 0;
    for (const Port &x : model_.inputs) n += x.written;
    auto put = [&](const Port &x, const std::string &data, const std::string &dims, const std::string &elements) {
      DType t = x.def.type->elem;
      std::string bytes = data;
      if (packed(x))
        bytes = fmt::format("unpack({}, size_t({}), {}, {}).data()", data, elements, info(t).bits, is_signed(t));
      line("write_npy(out_path(pattern, {}, {}), \"{}\", {}, {}, size_t({}) * {});", index++, n, descr(t), dims, bytes,
           elements, element_bytes(x));
    };
    for (const Port &x : model_.outputs) {
      if (!x.def.type->tensor) {
        put(x, "&out." + x.member, "{}", "1");
        continue;
      }
      std::string dims, elements;
      for (size_t d = 0; d < x.def.type->rank(); d++) {
        std::string one = fmt::format("out.{}_dims[{}]", x.member, d);
        dims += (d ? ", " : "") + one, elements += (d ? " * " : "") + one;
      }
      put(x, "out." + x.member, "{" + dims + "}", elements.empty() ? "1" : elements);
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
  bool packs_ = false, divides_ = false, remainders_ = false;
};

}  // namespace

std::string main_text(Build &b, const CppModel &model, const CppOptions &options) {
  return MainPrinter(b, model, options).run();
}

}  // namespace mlc
