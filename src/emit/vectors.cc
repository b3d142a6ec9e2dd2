// The vector forms of the small functions that emitted code calls.
#include <fmt/core.h>

#include <cstring>

#include "emit/helpers.h"

namespace mlc {
namespace {

// Words in a text: $N the function, $V the vector, $W one of unsigned integers of the same size, $M of signed ones, $T
// an element, $U an unsigned integer as wide, $n the lanes, $B bits, $E 2^(bits of the mantissa), $MAX, $L as in
// helpers.cc; $P the letter of instructions; $CHOOSE(max): see chosen(); $MASKED.. see masked();;
// $IOTA 0, 1, 2 ..; $EACH(text) the text once for each lane, which @ stands for. $(family) is a helper of the same
// type.
struct Family {
  std::string_view name;
  char kind;  // b integers, f f32 and f64, n both, s signed integers
  std::string_view text;
};
constexpr Family kFamilies[] = {
    {"splat", 'f', "$V $N($T x) { return x - $V{}; }  // keeps -0.0"},
    {"splat", 'b', "$V $N($T x) { return $V{} + x; }"},
    {"first", 's', R"($V $N(int64_t n) {  // the lanes before n
  const $V i = {$IOTA};
  const $T end = ($T)(n < 0 ? 0 : n > $n ? $n : n);
  return i < $V{} + end;
})"},
    {"between", 's', "$V $N(int64_t lo, int64_t hi) { return $(first)(hi) & ~$(first)(lo); }"},
    {"add", 'b', "$V $N($V a, $V b) { return ($V)(($W)a + ($W)b); }"},
    {"sub", 'b', "$V $N($V a, $V b) { return ($V)(($W)a - ($W)b); }"},
    {"mul", 'b', "$V $N($V a, $V b) { return ($V)(($W)a * ($W)b); }"},
    {"neg", 'b', "$V $N($V a) { return ($V)($W{} - ($W)a); }"},
    {"abs", 's', "$V $N($V a) { return a < $V{} ? ($V)($W{} - ($W)a) : a; }"},
    {"max", 'b', "$V $N($V a, $V b) { return a < b ? b : a; }"},
    {"min", 'b', "$V $N($V a, $V b) { return b < a ? b : a; }"},
    {"shl_by", 'b', "$V $N($V a, int n) { return ($V)(($W)a << ($W{} + ($U)n)); }"},
    {"shr_by", 'b', "$V $N($V a, int n) { return a >> ($V{} + ($T)n); }"},
    {"abs", 'f', "$V $N($V a) { return ($V)(($W)a & ~$(sign)()); }"},
    {"sign", 'f', "$W $N() { return $W{} + (($U)1 << ($B - 1)); }"},
    {"max", 'f', "$V $N($V a, $V b) { return b != b ? b : $(at_least)(a, b); }  // NaN wins"},
    {"min", 'f', "$V $N($V a, $V b) { return b != b ? b : $(at_most)(a, b); }  // NaN wins"},
    {"at_least", 'f', "$V $N($V x, $V c) {  // c > x ? c : x\n$CHOOSE(max)  return c > x ? c : x;\n}"},
    {"at_most", 'f', "$V $N($V x, $V c) {  // c < x ? c : x\n$CHOOSE(min)  return c < x ? c : x;\n}"},
    {"trunc", 'f', R"($V $N($V x) {
  const $M small = $(abs)(x) < $V{} + $E;  // others are integers, inf or NaN
  const $V t = __builtin_convertvector(__builtin_convertvector(small ? x : $V{}, $M), $V);
  return small ? ($V)(($W)t | (($W)x & $(sign)())) : x;
})"},
    {"floor", 'f', R"($V $N($V x) {
  const $V t = $(trunc)(x);
  return t > x ? t - ($T)1 : t;
})"},
    {"ceil", 'f', R"($V $N($V x) {
  const $V t = $(trunc)(x);
  return t < x ? t + ($T)1 : t;
})"},
    {"round_even", 'f', R"($V $N($V x) {
  const $V a = $(abs)(x), t = (a + $E) - $E;  // a sum above $E has no fraction
  return a < $V{} + $E ? ($V)(($W)t | (($W)x & $(sign)())) : x;
})"},
    {"sqrt", 'f', R"($V $N($V x) {
#if defined(__x86_64__)
  $SQRT
  return x;
#else
  return $V{$EACH(__builtin_sqrt$L(x[@]))};
#endif
})"},
    {"fma", 'f', R"($V $N($V x, $V y, $V z) {  // x * y + z, rounded once
#if defined(__clang__)
#pragma clang fp contract(on)
  return x * y + z;
#elif defined(__x86_64__)
  __asm__("vfmadd231p$P %2, %1, %0" : "+v"(z) : "v"(x), "vm"(y));
  return z;
#else
  return $V{$EACH(__builtin_fma$L(x[@], y[@], z[@]))};
#endif
})"},
    {"fma_neon", 'f', R"($V $N($V x, $V y, $V z) {  // x * y + z, rounded once
#if defined(__aarch64__)
  __asm__("fmla %0.$A, %1.$A, %2.$A" : "+w"(z) : "w"(x), "w"(y));
  return z;
#else
  return $V{$EACH(__builtin_fma$L(x[@], y[@], z[@]))};
#endif
})"},
    {"isnan", 'f', "$M $N($V x) { return x != x; }"},
    {"isinf", 'f', "$M $N($V x) { return $(abs)(x) > $V{} + $MAX; }"},
    {"strided", 'n', "$V $N(const $T *p, int64_t s) { return $V{$EACH(p[@ * s])}; }"},
    {"load_between", 'n', R"($V $N(const $T *p, int64_t at, int64_t lo, int64_t hi) {
  if (lo <= 0 && hi >= $n) return *(const $V_u *)(p + at);
  $V x = {};  // p[at + i] for lo <= i < hi
$MASKEDLOAD  for (int64_t i = lo < 0 ? 0 : lo; i < hi && i < $n; i++) x[i] = p[at + i];
  return x;
})"},
    {"store_first", 'n', R"(void $N($T *p, $V x, int64_t n) {
$MASKEDSTORE  for (int64_t i = 0; i < n && i < $n; i++) p[i] = x[i];
})"},
};

bool fits(char kind, DType t) {
  bool wide = t == DType::F32 || t == DType::F64;
  bool whole = is_int(t);
  return kind == 'n' || (kind == 'f' && wide) || (kind == 'b' && whole) || (kind == 's' && whole && is_signed(t));
}
DType value_type(DType t) { return is_small_float(t) ? DType::F32 : t == DType::Index ? DType::I64 : t; }
DType storage_type(DType t) {
  if (t == DType::F16 || t == DType::BF16) return DType::U16;
  return is_small_float(t) || t == DType::Bool ? DType::U8 : t;
}
DType integer_of(DType t, bool sign) {
  switch (info(t).bits) {
    case 8: return sign ? DType::I8 : DType::U8;
    case 16: return sign ? DType::I16 : DType::U16;
    case 32: return sign ? DType::I32 : DType::U32;
    default: return sign ? DType::I64 : DType::U64;
  }
}

}  // namespace

std::string Helpers::vector(DType t, int lanes) {
  t = value_type(t);
  int bytes = info(t).bits / 8 * lanes;
  std::string name = fmt::format("{}_{}x{}", prefix_, dtype_name(t), lanes);
  if (have_.insert(name).second)
    made_.push_back({name, fmt::format("typedef {} {} __attribute__((vector_size({}), may_alias));\n", c_storage(t),
                                       name, bytes)});
  return name;
}

std::string Helpers::unaligned(DType t, int lanes) {
  std::string name = vector(t, lanes) + "_u";
  int bytes = info(value_type(t)).bits / 8;
  if (have_.insert(name).second)
    made_.push_back({name, fmt::format("typedef {} {} __attribute__((vector_size({}), aligned({}), may_alias));\n",
                                       c_storage(value_type(t)), name, bytes * lanes, bytes)});
  return name;
}

// Vectors of 64 and of 32 bytes need the instructions that have them; 16 bytes are in every x86-64.
std::string Helpers::attribute(std::string_view text) {
  if (cuda_) return text.starts_with(prefix_ + "_size_") ? "" : "__host__ __device__ ";
  std::unordered_set<std::string_view> words;
  collect_identifiers(text, words);
  int bytes = 0;
  for (std::string_view w : words) {
    if (!w.starts_with(prefix_)) continue;
    if (w.ends_with("_u")) w.remove_suffix(2);
    size_t x = w.rfind('x'), from = x == w.npos ? x : w.rfind('_', x);
    if (from == w.npos || x + 1 == w.size()) continue;
    DType t = dtype_named(w.substr(from + 1, x - from - 1));
    int lanes = 0;
    for (char c : w.substr(x + 1)) lanes = c >= '0' && c <= '9' && lanes < 1000 ? lanes * 10 + c - '0' : 1 << 20;
    if (t != DType::Invalid && lanes <= 64) bytes = std::max(bytes, info(value_type(t)).bits / 8 * lanes);
  }
  for (std::string_view w : words)
    if (w.starts_with(prefix_) && w.find("_native_") != w.npos) bytes = std::max(bytes, 32);
  if (bytes <= 16) return "";
  bool wide = bytes > 32;
  std::string name = prefix_ + (wide ? "_AVX512" : "_AVX2");
  if (have_.insert(name).second) {
    std::string_view features = wide ? "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2" : "avx2,fma,f16c,bmi2";
    std::string width = wide ? ", min_vector_width(512)" : "";
    made_.push_back({name, fmt::format("#if !defined(__x86_64__)\n#define {0}\n#elif defined(__clang__)\n"
                                       "#define {0} __attribute__((target(\"{1}\"){2}))\n#else\n"
                                       "#define {0} __attribute__((target(\"{1}\")))\n#endif\n", name, features, width)});
  }
  return name + " ";
}

std::string Helpers::lane_calls(const std::string &scalar, std::span<const DType> args, DType result, int lanes) {
  DType widest = result;
  for (DType t : args)
    if (info(t).bits > info(widest).bits) widest = t;
  DType elem = result == DType::Bool ? DType::I32 : value_type(result);
  std::string name = fmt::format("{}_{}x{}", scalar, dtype_name(elem), lanes);
  if (!have_.insert(name).second) return name;
  std::string list, params;
  for (size_t i = 0; i < args.size(); i++)
    params += fmt::format("{}{} a{}", i ? ", " : "", vector(args[i] == DType::Bool ? DType::I32 : args[i], lanes), i);
  for (int l = 0; l < lanes; l++) {
    list += (l ? ", " : "") + scalar + "(";
    for (size_t i = 0; i < args.size(); i++)
      list += fmt::format("{}a{}[{}]{}", i ? ", " : "", i, l, args[i] == DType::Bool ? " != 0" : "");
    list += result == DType::Bool ? ") ? -1 : 0" : ")";
  }
  std::string type = vector(result == DType::Bool ? DType::I32 : result, lanes);
  std::string text = fmt::format("{} {}({}) {{\n  return {}{{{}}};\n}}\n", type, name, params, type, list);
  made_.push_back({name, "static inline " + attribute(text) + text});
  return name;
}

// Halves in vectors; $H: their bits, as many. SCALAR(x) does one.
constexpr Family kHalves[] = {
    {"decode", 'h', R"($V $N($H x) {
#if defined(__x86_64__)
  $V y;
  __asm__("vcvtph2ps %1, %0" : "=v"(y) : "vm"(x));
  return y;
#else
  return $V{$EACH(SCALAR(x[@]))};
#endif
})"},
    {"encode", 'h', R"($H $N($V x) {  // to nearest even
#if defined(__x86_64__)
  $H y;
  __asm__("vcvtps2ph %2, %1, %0" : "=v"(y) : "v"(x), "i"(0));
  return y;
#else
  return $H{$EACH(SCALAR(x[@]))};
#endif
})"},
    {"decode", 'b', "$V $N($H x) { return ($V)(__builtin_convertvector(x, $W) << 16); }"},
    {"encode", 'b', R"($H $N($V x) {  // to nearest even; NaN stays one
  const $W b = ($W)x, r = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  return __builtin_convertvector(x != x ? b >> 16 | 0x40 : r, $H);
})"},
};

std::string Helpers::halves(std::string_view family, DType t, int lanes) {
  char kind = t == DType::BF16 ? 'b' : t == DType::F16 && lanes >= 8 ? 'h' : ' ';
  if (family == "round" && kind != ' ') {
    std::string both = fmt::format("{}({}(x))", halves("decode", t, lanes), halves("encode", t, lanes));
    return add_lanes(fmt::format("{}_f32x{}", need("round", t), lanes), "$V $N($V x) { return " + both + "; }", DType::F32, lanes);
  }
  for (const Family &f : kHalves) {
    if (f.name != family || f.kind != kind) continue;
    std::string scalar = need(family, t), text(f.text);
    for (size_t at; (at = text.find("SCALAR")) != text.npos;) text.replace(at, 6, scalar);
    return add_lanes(fmt::format("{}_{}x{}", scalar, family == "decode" ? "f32" : "u16", lanes), text, DType::F32, lanes);
  }
  return "";
}

std::string Helpers::need_lanes(std::string_view family, DType t, int lanes) {
  if (t == DType::Index) t = DType::I64;
  if (std::string name = halves(family, t, lanes); !name.empty()) return name;
  if (family == "fma_native" && info(t).bits / 8 * lanes >= 32) family = "fma";  // who has such vectors has it
  for (const Family &f : kFamilies) {
    bool native = f.name == "fma" && family == "fma_native";
    if ((f.name != family && !native) || !fits(f.kind, t)) continue;
    int bytes = info(t).bits / 8 * lanes;
    if (family == "sqrt" && bytes < 16) break;  // no register of that size
    if (family.starts_with("fma") && bytes < (family == "fma" ? 32 : 16)) break;
    std::string name = fmt::format("{}_{}_{}x{}", prefix_, family, dtype_name(t), lanes);
    return add_lanes(name, f.text, t, lanes);
  }
  // Lane by lane.
  std::vector<DType> args;
  DType result = value_type(t);
  if (family == "decode") args = {storage_type(t)};
  else if (family.starts_with("encode")) args = {DType::F32}, result = storage_type(t);
  else args.assign(arity(family, t), value_type(t));
  if (family == "encode" || family == "decode" || family.starts_with("round")) args.resize(1);
  return lane_calls(need(family, t), args, result, lanes);
}

// The part of a load or store that AVX-512 and AVX2 do under a mask.
static std::string masked(bool load, DType t, int lanes, const std::string &vector, const std::string &signs) {
  int bits = info(t).bits;
  if (bits * lanes == 256 && bits >= 32) {  // AVX2 asks the signs of a vector; clang++ does better itself
    std::string name = t == DType::F32 ? "vmaskmovps" : t == DType::F64 ? "vmaskmovpd" : bits == 32 ? "vpmaskmovd" : "vpmaskmovq";
    std::string all;
    for (int l = 0; l < lanes; l++) all += fmt::format("{}{}", l ? ", " : "", l);
    auto clamped = [&](std::string_view n) {
      return fmt::format("{0}{{}} + {3}({1} < 0 ? 0 : {1} > {2} ? {2} : {1})", signs, n, lanes, bits == 32 ? "(int32_t)" : "");
    };
    std::string low = load ? fmt::format("(lanes >= {}) & ", clamped("lo")) : "";
    std::string mask = fmt::format("  const {} lanes = {{{}}}, mask = {}(lanes < {});\n", signs, all, low, clamped(load ? "hi" : "n"));
    return "#if defined(__x86_64__) && !defined(__clang__)\n" + mask + (load ? fmt::format(R"(  if (lo >= hi) return x;
  const uintptr_t from = (uintptr_t)p + (uintptr_t)at * sizeof *p;
  __asm__("{0} %1, %2, %0" : "=x"(x) : "m"(*(const {1}_u *)from), "x"(mask));
  return x;
#endif
)", name, vector) : fmt::format(R"(  __asm__("{0} %1, %2, %0" : "+m"(*({1} (*)[])p) : "x"(x), "x"(mask));  // some of them
  return;
#endif
)", name, c_storage(t)));
  }
  if (bits * lanes != 512 || bits < 32) return "";
  std::string_view kind = t == DType::F32 ? "ups" : t == DType::F64 ? "upd" : bits == 32 ? "dqu32" : "dqu64";
  return load ? fmt::format(R"(#if defined(__x86_64__)
  const uint16_t mask = (uint16_t)((1 << (hi < 0 ? 0 : hi > {0} ? {0} : hi)) - (1 << (lo < 0 ? 0 : lo > {0} ? {0} : lo)));
  if (lo >= hi) return x;
  const uintptr_t from = (uintptr_t)p + (uintptr_t)at * sizeof *p;
  __asm__("vmov{1} %1, %0%{{%2%}}%{{z%}}" : "=v"(x) : "m"(*(const {2}_u *)from), "Yk"(mask));
  return x;
#endif
)", lanes, kind, vector) : fmt::format(R"(#if defined(__x86_64__)
  const uint16_t mask = (uint16_t)((1 << (n < 0 ? 0 : n > {0} ? {0} : n)) - 1);
  __asm__("vmov{1} %1, %0%{{%2%}}" : "+m"(*({2} (*)[])p) : "v"(x), "Yk"(mask));  // some of them
  return;
#endif
)", lanes, kind, c_storage(t));
}

// g++ does not see the instruction in a selection.
static std::string chosen(std::string_view max, bool f64, int bytes) {
  if (bytes < 16) return "";
  std::string code = bytes == 16 ? R"("{}p{} %1, %0" : "+x"(c) : "x"(x))" : R"("v{}p{} %1, %0, %0" : "+v"(c) : "vm"(x))";
  return fmt::format("#if defined(__x86_64__) && !defined(__clang__)\n  __asm__({});\n  return c;\n#endif\n",
                     fmt::format(fmt::runtime(code), max, f64 ? "d" : "s"));
}

std::string Helpers::add_lanes(const std::string &name, std::string_view body, DType t, int lanes) {
  if (!have_.insert(name).second) return name;
  bool f64 = t == DType::F64;
  int bits = info(t).bits, bytes = bits / 8 * lanes;
  auto word = [&](std::string_view w) -> std::string {
    if (w == "N") return name;
    if (w == "V") return unaligned(t, lanes), vector(t, lanes);
    if (w == "W") return vector(integer_of(t, false), lanes);
    if (w == "M") return vector(integer_of(t, true), lanes);
    if (w == "T") return std::string(c_storage(t));
    if (w == "H") return vector(DType::U16, lanes);
    if (w == "U") return std::string(c_storage(integer_of(t, false)));
    if (w == "n") return fmt::format("{}", lanes);
    if (w == "B") return fmt::format("{}", bits);
    if (w == "E") return f64 ? "4503599627370496.0" : "8388608.0f";
    if (w == "P") return f64 ? "d" : "s";
    if (w == "A") return f64 ? "2d" : "4s";
    if (w.starts_with("MASKED")) return masked(w == "MASKEDLOAD", t, lanes, vector(t, lanes), vector(integer_of(t, true), lanes));
    if (w == "L") return f64 ? "" : "f";
    if (w == "MAX") return f64 ? "1.7976931348623157e+308" : "3.4028235e+38f";
    if (w == "SQRT") {
      return bytes == 16 ? fmt::format("__asm__(\"sqrtp{0} %0, %0\" : \"+x\"(x));", f64 ? "d" : "s")
                         : fmt::format("__asm__(\"vsqrtp{0} %0, %0\" : \"+v\"(x));", f64 ? "d" : "s");
    }
    std::string s;
    for (int l = 0; w == "IOTA" && l < lanes; l++) s += fmt::format("{}{}", l ? ", " : "", l);
    return s;
  };
  std::function<std::string(std::string_view)> filled = [&](std::string_view in) {
    std::string out;
    for (size_t i = 0; i < in.size(); i++) {
      if (in[i] != '$') {
        out += in[i];
      } else if (in[i + 1] == '(') {
        size_t end = in.find(')', i);
        std::string_view f = in.substr(i + 2, end - i - 2);
        out += need_lanes(f, t, lanes);
        i = end;
      } else if (in.substr(i).starts_with("$CHOOSE(")) {
        out += chosen(in.substr(i + 8, 3), f64, bytes);
        i += 11;
      } else if (in.substr(i).starts_with("$EACH(")) {
        size_t end = i + 6;
        for (int depth = 1; depth; end++) depth += in[end] == '(' ? 1 : in[end] == ')' ? -1 : 0;
        std::string one = filled(in.substr(i + 6, end - 1 - i - 6));
        for (int l = 0; l < lanes; l++) {
          std::string s = one;
          for (size_t at; (at = s.find('@')) != s.npos;) s.replace(at, 1, fmt::format("{}", l));
          out += (l ? ", " : "") + s;
        }
        i = end - 1;
      } else {
        size_t end = i + 1;
        if (in[end] == 'n') end++;
        else while (end < in.size() && in[end] >= 'A' && in[end] <= 'Z') end++;
        out += word(in.substr(i + 1, end - i - 1));
        i = end - 1;
      }
    }
    return out;
  };
  std::string text = filled(body) + "\n";
  made_.push_back({name, "static inline " + attribute(text) + text});
  return name;
}

}  // namespace mlc
