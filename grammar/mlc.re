// Tokens of the language. One buffer with a NUL behind its last byte; a newline is a token, blank lines are none.
#include "text/reader.h"

#include <charconv>

#include "mlc.tab.h"
#include "num/literal.h"

namespace mlc {

namespace {

// The text of a quoted token without its quotes, escapes resolved. Escapes are rare: without one nothing is copied.
std::string_view unescape(Reader &r, const char *from, const char *to) {
  if (!memchr(from, '\\', size_t(to - from))) return {from, size_t(to - from)};
  std::string s;
  for (const char *p = from; p < to; p++) {
    if (*p != '\\') { s += *p; continue; }
    switch (*++p) {
      case 'n': s += '\n'; break;
      case 't': s += '\t'; break;
      case 'x': {
        auto hex = [](char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; };
        s += char(hex(p[1]) * 16 + hex(p[2]));
        p += 2;
        break;
      }
      default: s += *p;
    }
  }
  return r.b.arena.text(s);
}

bool lex_int(Reader &r, Value *v, const char *from, const char *to) {
  uint64_t n = 0;
  int base = to - from > 2 && from[1] == 'x' ? 16 : 10;
  auto [p, ec] = std::from_chars(from + (base == 16 ? 2 : 0), to, n, base);
  if (ec != std::errc() || p != to) return false;
  v->expr = r.b.integer(int64_t(n), r.offset(from), n > uint64_t(INT64_MAX));
  return true;
}

bool lex_float(Reader &r, Value *v, const char *from, const char *to) {
  double d = 0;
  uint64_t bits = 0;
  if (*from == 'n') {
    d = __builtin_nan("");
    if (to - from > 3) {  // nan(0xBITS)
      auto [p, ec] = std::from_chars(from + 6, to - 1, bits, 16);
      if (ec != std::errc()) return false;
    }
  } else if (!parse_number({from, size_t(to - from)}, &d)) {
    return false;
  }
  v->expr = r.b.number(d, r.offset(from), bits);
  return true;
}

int fail(Reader &r, const char *at, const char *what) {
  r.error(r.offset(at), what);
  r.cursor = r.end;
  return MLC_MLC_error;
}

}  // namespace

// kBare: only the tokens are found, nothing is interned or built (what reading is measured against).
template <bool kBare> static int scan(Reader &r, Value *v) {
  const char *p = r.cursor, *m = nullptr, *s;
#define T(kind) { r.cursor = p; r.token = s; v->at = r.offset(s); v->len = uint32_t(p - s); return kind; }
#define T_STRING(t) { r.cursor = p; r.token = s; v->text = t.data(); v->at = r.offset(s); v->len = uint32_t(t.size()); return MLC_STRING; }
#define QUOTED(from) unescape(r, from, p - 1)
again:
  s = p;
  /*!re2c
    re2c:define:YYCTYPE = "unsigned char"; re2c:define:YYCURSOR = p; re2c:define:YYMARKER = m; re2c:yyfill:enable = 0;
    word = [A-Za-z_][A-Za-z0-9_]*;
    esc = "\\" ([nt\\'"] | "x" [0-9a-fA-F]{2});
    dq = ["] ([^\x00-\x1f\x7f"\\] | esc)* ["];
    sq = ['] ([^\x00-\x1f\x7f'\\] | esc)+ ['];
    digits = [0-9]+;
    global = [A-Za-z0-9_]+ ([./\-]+ [A-Za-z0-9_]+)*;

    [ ]+               { goto again; }
    "#" [^\n\x00]*     {
      if (kBare) goto again;
      const char *to = p;
      while (to > s && (to[-1] == ' ' || to[-1] == '\r')) to--;
      r.comments.push_back({r.offset(r.line_token ? r.line_token : r.end), {s, size_t(to - s)}});
      goto again;
    }
    "\n"               { T(MLC_NL) }
    "\x00"             { if (s == r.end) { p = s; T(MLC_END) } return fail(r, s, "NUL byte"); }
    "\t"               { return fail(r, s, "a tab: indent with spaces"); }
    "\r"               { return fail(r, s, "a carriage return: lines end with a newline alone"); }

    "mlc" { T(MLC_MLC) } "file" { T(MLC_FILE) } "device" { T(MLC_DEVICE) } "const" { T(MLC_CONST) } "graph" { T(MLC_GRAPH) }
    "group" { T(MLC_GROUP) } "kernel" { T(MLC_KERNEL) } "scalar" { T(MLC_SCALAR) } "reducer" { T(MLC_REDUCER) }
    "extern" { T(MLC_EXTERN) } "intrinsic" { T(MLC_INTRINSIC) } "target" { T(MLC_TARGET) }
    "schedule" { T(MLC_SCHEDULE) } "desc" { T(MLC_DESC) } "impl" { T(MLC_IMPL) } "code" { T(MLC_CODE) }
    "memory" { T(MLC_MEMORY) } "thread" { T(MLC_THREAD) } "use" { T(MLC_USE) } "dataflow" { T(MLC_DATAFLOW) }
    "alloc" { T(MLC_ALLOC) } "view" { T(MLC_VIEW) } "call" { T(MLC_CALL) } "assume" { T(MLC_ASSUME) }
    "compute" { T(MLC_COMPUTE) } "block" { T(MLC_BLOCK) } "spatial" { T(MLC_SPATIAL) } "reduce" { T(MLC_REDUCE) }
    "scan" { T(MLC_SCAN) } "guard" { T(MLC_GUARD) } "reads" { T(MLC_READS) } "writes" { T(MLC_WRITES) }
    "init" { T(MLC_INIT) } "for" { T(MLC_FOR) } "in" { T(MLC_IN) } "if" { T(MLC_IF) } "else" { T(MLC_ELSE) }
    "while" { T(MLC_WHILE) } "loop" { T(MLC_LOOP) } "carry" { T(MLC_CARRY) } "yield" { T(MLC_YIELD) }
    "stack" { T(MLC_STACK) } "parallel" { T(MLC_PARALLEL) } "vectorize" { T(MLC_VECTORIZE) }
    "unroll" { T(MLC_UNROLL) } "bind" { T(MLC_BIND) } "attr" { T(MLC_ATTR) } "from" { T(MLC_FROM) } "at" { T(MLC_AT) }
    "on" { T(MLC_ON) } "inout" { T(MLC_INOUT) } "scratch" { T(MLC_SCRATCH) } "atomic" { T(MLC_ATOMIC) }
    "none" { T(MLC_NONE) } "true" { T(MLC_TRUE) } "false" { T(MLC_FALSE) }

    digits "." digits ([eE] [+\-]? digits)? | digits [eE] [+\-]? digits | "inf" | "nan" ("(0x" [0-9a-fA-F]+ ")")? {
      if (!kBare && !lex_float(r, v, s, p)) return fail(r, s, "bad number");
      T(MLC_FLOAT)
    }
    word ("." [A-Za-z0-9_]+)*     { if (!kBare) v->sym = r.b.sym({s, size_t(p - s)}); T(MLC_NAME) }
    sq                            { if (!kBare) v->sym = r.b.sym(QUOTED(s + 1)); T(MLC_NAME) }
    "@" global                    { if (!kBare) v->sym = r.b.sym({s + 1, size_t(p - s - 1)}); T(MLC_GLOBAL) }
    "@" sq                        { if (!kBare) v->sym = r.b.sym(QUOTED(s + 2)); T(MLC_GLOBAL) }
    digits | "0x" [0-9a-fA-F]+    { if (!kBare && !lex_int(r, v, s, p)) return fail(r, s, "the integer does not fit 64 bits"); T(MLC_INT) }
    (digits | digits "." digits) [A-Za-z_.]  { return fail(r, s, "bad number"); }
    dq                            {
      std::string_view t = kBare ? std::string_view() : QUOTED(s + 1);
      T_STRING(t)
    }
    ["']  { return fail(r, s, "bad quoted text: no end on this line, or a bad escape (\\n \\t \\\\ \\' \\\" \\xHH)"); }

    "->" { T(MLC_ARROW) } "+:" { T(MLC_PART) } "||" { T(MLC_OR) } "&&" { T(MLC_AND) } "==" { T(MLC_EQ) } "!=" { T(MLC_NE) }
    "<=" { T(MLC_LE) } ">=" { T(MLC_GE) } "//" { T(MLC_FLOORDIV) }
    "[" { T(MLC_LBRACKET) } "]" { T(MLC_RBRACKET) } "(" { T(MLC_LPAREN) } ")" { T(MLC_RPAREN) } "{" { T(MLC_LBRACE) }
    "}" { T(MLC_RBRACE) } "," { T(MLC_COMMA) } ":" { T(MLC_COLON) } "=" { T(MLC_ASSIGN) } "<" { T(MLC_LT) } ">" { T(MLC_GT) }
    "+" { T(MLC_PLUS) } "*" { T(MLC_STAR) } "/" { T(MLC_SLASH) } "%" { T(MLC_PERCENT) } "!" { T(MLC_BANG) } "-" { T(MLC_MINUS) }
    *    { return fail(r, s, "stray character"); }
  */
}

// After `name:` a type follows; one whose text was read before is one token. What is not found is read token by token.
static bool scan_type(Reader &r, Value *v) {
  const char *p = r.cursor, *s, *m = nullptr;
  while (*p == ' ') p++;
  s = p;
  /*!re2c
    [a-z] [a-z0-9]* ("[" [^[\]'"#\n\x00]* "]")? { goto found; }
    *  { return false; }
  */
found:
  if (*p == '[' || *p == '.' || *p == '_' || (*p >= 'A' && *p <= 'Z')) return false;  // more than this rule knows
  auto it = r.types.find({s, size_t(p - s)});
  if (it == r.types.end()) return false;
  r.cursor = p, r.token = s;
  v->type = it->second, v->at = r.offset(s), v->len = uint32_t(p - s);
  return true;
}

// One NL for a run of line ends, none at the start of the text, one at its end even if the last newline is missing.
int lex(Value *v, Reader &r) {
  if (r.start_expr) {
    r.start_expr = false;
    return r.last = MLC_START_EXPR;
  }
  if (r.last == MLC_COLON && (r.before_last == MLC_NAME || r.before_last == MLC_GLOBAL) && scan_type(r, v)) {
    r.before_last = r.last;
    return r.last = MLC_TYPE;
  }
  size_t above = 0;  // comments before it belong to lines above
  if (r.last == MLC_NL || r.last == 0) r.line_token = nullptr, above = r.comments.size();
  for (;;) {
    int kind = scan<false>(r, v);
    if (kind == MLC_NL && (r.last == MLC_NL || r.last == 0)) continue;
    if (kind == MLC_END && r.last != MLC_NL && r.last != 0) kind = MLC_NL;
    if (!r.line_token && kind != MLC_NL) {
      r.line_token = r.token;
      for (size_t i = above; i < r.comments.size(); i++) r.comments[i].at = v->at;
    }
    r.before_last = r.last;
    return r.last = kind;
  }
}

size_t scan_all(Reader &r) {
  size_t n = 0;
  for (Value v; scan<true>(r, &v) != MLC_END;) n++;
  return n;
}

}  // namespace mlc
