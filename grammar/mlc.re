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

// What every token leaves behind. The automaton is a leaf without a frame: it ends in jumps to the functions below,
// which are therefore never inlined.
template <bool kBare = false> int token(Reader &r, Value *v, const char *from, const char *to, int kind) {
  r.cursor = to, r.token = from;
  if (!kBare) r.last = kind;
  v->place(r.offset(from), uint32_t(to - from));
  return kind;
}

[[gnu::noinline]] int fail(Reader &r, const char *at, const char *what) {
  r.error(r.offset(at), what);
  r.cursor = r.end;
  return MLC_MLC_error;
}

// kSigil: 1 for the @ of a global.
template <int kKind> [[gnu::noinline]] int name(Reader &r, Value *v, const char *from, const char *to) {
  constexpr int kSigil = kKind == MLC_GLOBAL;
  v->number = r.b.names.intern_in_text({from + kSigil, size_t(to - from - kSigil)}).id;
  return token(r, v, from, to, kKind);
}
template <int kKind> [[gnu::noinline]] int quoted_name(Reader &r, Value *v, const char *from, const char *to) {
  v->number = r.b.sym(unescape(r, from + (kKind == MLC_GLOBAL ? 2 : 1), to - 1)).id;
  return token(r, v, from, to, kKind);
}
[[gnu::noinline]] int string(Reader &r, Value *v, const char *from, const char *to) {
  std::string_view text = unescape(r, from + 1, to - 1);
  token(r, v, from, to, MLC_STRING);
  v->text = text.data(), v->len = uint32_t(text.size());
  return MLC_STRING;
}

// The value of 1 to 8 digits, all at once: pairs, fours, eight.
uint64_t decimal(const char *digits, size_t n) {
  uint64_t v;
  memcpy(&v, digits, 8);
  v = v << 8 * (8 - n) & 0x0f0f0f0f0f0f0f0f;
  v = (v * 10 + (v >> 8)) & 0x00ff00ff00ff00ff;
  v = (v * 100 + (v >> 16)) & 0x0000ffff0000ffff;
  return (v * 10000 + (v >> 32)) & 0xffffffff;
}

[[gnu::noinline]] int integer(Reader &r, Value *v, const char *from, const char *to) {
  uint64_t n = 0;
  if (bool hex = from[1] == 'x'; !hex && to - from <= 8) {
    n = decimal(from, size_t(to - from));
  } else if (!hex && to - from <= 19) {  // fits
    for (const char *p = from; p < to; p++) n = n * 10 + uint64_t(*p - '0');
  } else {
    int base = from[1] == 'x' ? 16 : 10;
    auto [p, ec] = std::from_chars(from + (base == 16 ? 2 : 0), to, n, base);
    if (ec != std::errc() || p != to) return fail(r, from, "the integer does not fit 64 bits");
  }
  v->expr = r.b.integer(int64_t(n), r.offset(from), n > uint64_t(INT64_MAX));
  return token(r, v, from, to, MLC_INT);
}

[[gnu::noinline]] int number(Reader &r, Value *v, const char *from, const char *to) {
  double d = 0;
  uint64_t bits = 0;
  bool good = true;
  if (*from == 'n') {
    d = __builtin_nan("");
    if (to - from > 3) good = std::from_chars(from + 6, to - 1, bits, 16).ec == std::errc();  // nan(0xBITS)
  } else {
    good = parse_number({from, size_t(to - from)}, &d);
  }
  if (!good) return fail(r, from, "bad number");
  v->expr = r.b.number(d, r.offset(from), bits);
  return token(r, v, from, to, MLC_FLOAT);
}

template <bool kBare> int scan(Reader &r, Value *v);
int scan_line(Reader &r, Value *v);
int scan_type(Reader &r, Value *v, const char *colon);

/*!re2c
    re2c:define:YYCTYPE = "unsigned char"; re2c:define:YYCURSOR = p; re2c:define:YYMARKER = m; re2c:yyfill:enable = 0;
    word = [A-Za-z_][A-Za-z0-9_]*;
    dotted = word ("." [A-Za-z0-9_]+)+;
    special = "inf" | "nan" ("(0x" [0-9a-fA-F]+ ")")?;
    esc = "\\" ([nt\\'"] | "x" [0-9a-fA-F]{2});
    dq = ["] ([^\x00-\x1f\x7f"\\] | esc)* ["];
    sq = ['] ([^\x00-\x1f\x7f'\\] | esc)+ ['];
    digits = [0-9]+;
    global = [A-Za-z0-9_]+ ([./\-]+ [A-Za-z0-9_]+)*;
*/

// All tokens but words.
/*!rules:re2c:others
    [ ]+               { goto again; }
    "#" [^\n\x00]*     { if (kBare) goto again; return comment(r, v, s, p); }
    "\n"               { if (!kBare) r.lex = scan_line; T(MLC_NL) }
    "\x00"             {
      if (s != r.end) return fail(r, s, "NUL byte");
      p = s;
      T(kBare || !r.last || r.last == MLC_NL ? MLC_END : MLC_NL)
    }
    "\t"               { return fail(r, s, "a tab: indent with spaces"); }
    "\r"               { return fail(r, s, "a carriage return: lines end with a newline alone"); }

    digits "." digits ([eE] [+\-]? digits)? | digits [eE] [+\-]? digits
                                  { MAKE(number, MLC_FLOAT) }
    sq                            { MAKE(quoted_name<MLC_NAME>, MLC_NAME) }
    "@" global                    { MAKE(name<MLC_GLOBAL>, MLC_GLOBAL) }
    "@" sq                        { MAKE(quoted_name<MLC_GLOBAL>, MLC_GLOBAL) }
    digits | "0x" [0-9a-fA-F]+    { MAKE(integer, MLC_INT) }
    (digits | digits "." digits) [A-Za-z_.]  { return fail(r, s, "bad number"); }
    dq                            { MAKE(string, MLC_STRING) }
    ["']  { return fail(r, s, "bad quoted text: no end on this line, or a bad escape (\\n \\t \\\\ \\' \\\" \\xHH)"); }

    "->" { T(MLC_ARROW) } "+:" { T(MLC_PART) } "||" { T(MLC_OR) } "&&" { T(MLC_AND) } "==" { T(MLC_EQ) } "!=" { T(MLC_NE) }
    "<=" { T(MLC_LE) } ">=" { T(MLC_GE) } "//" { T(MLC_FLOORDIV) }
    ":" {
      if (!kBare && (r.last == MLC_NAME || r.last == MLC_GLOBAL)) return scan_type(r, v, s);
      T(MLC_COLON)
    }
    "[" { T(MLC_LBRACKET) } "]" { T(MLC_RBRACKET) } "(" { T(MLC_LPAREN) } ")" { T(MLC_RPAREN) } "{" { T(MLC_LBRACE) }
    "}" { T(MLC_RBRACE) } "," { T(MLC_COMMA) } "=" { T(MLC_ASSIGN) } "<" { T(MLC_LT) } ">" { T(MLC_GT) }
    "+" { T(MLC_PLUS) } "*" { T(MLC_STAR) } "/" { T(MLC_SLASH) } "%" { T(MLC_PERCENT) } "!" { T(MLC_BANG) } "-" { T(MLC_MINUS) }
    *    { return fail(r, s, "stray character"); }
*/

// A word is interned before anybody asks what it is: the reserved ones are the first names of all, in the order of their
// tokens. That is one path for all words, where an automaton of the reserved ones takes a guess at each letter.
constexpr uint32_t kTokens = MLC_FALSE - MLC_MLC + 1, kNan = kTokens + 2;
[[gnu::noinline]] int special_number(Reader &r, Value *v, const char *from) {
  const char *p = from, *m = nullptr;
  /*!re2c
    special { return number(r, v, from, p); }
    *       { __builtin_unreachable(); }
  */
}
[[gnu::noinline]] int word(Reader &r, Value *v, const char *from, const char *to) {
  Sym s = r.b.names.intern_in_text({from, size_t(to - from)});
  v->number = s.id;
  if (s.id > kNan) return token(r, v, from, to, MLC_NAME);
  if (s.id > kTokens) return special_number(r, v, from);
  return token(r, v, from, to, MLC_MLC + int(s.id) - 1);
}

// Kept for a statement to claim; the next token is the end of the line.
[[gnu::noinline]] int comment(Reader &r, Value *v, const char *from, const char *to) {
  r.cursor = to;
  while (to > from && (to[-1] == ' ' || to[-1] == '\r')) to--;
  r.comments.push_back({r.offset(r.line_token ? r.line_token : r.end), {from, size_t(to - from)}});
  return scan<false>(r, v);
}

// kBare: only the tokens are found, nothing is interned or built (what reading is measured against).
template <bool kBare> int scan(Reader &r, Value *v) {
  const char *p = r.cursor, *m = nullptr, *s;
#define T(kind) { return token<kBare>(r, v, s, p, kind); }
#define MAKE(function, kind) { return kBare ? token<kBare>(r, v, s, p, kind) : function(r, v, s, p); }
again:
  s = p;
  if constexpr (kBare) {
    /*!use:re2c:others
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
      special          { T(MLC_FLOAT) }
      word | dotted    { T(MLC_NAME) }
    */
  } else {
    /*!use:re2c:others
      word    { return word(r, v, s, p); }
      dotted  { return name<MLC_NAME>(r, v, s, p); }
    */
  }
}

// After `name:` a type follows; one whose text was read before is one token with the colon. What is not found is read
// token by token.
[[gnu::noinline]] int scan_type(Reader &r, Value *v, const char *colon) {
  const char *p = colon + 1, *s, *m = nullptr;
  while (*p == ' ') p++;
  s = p;
  /*!re2c
    [a-z] [a-z0-9]* ("[" [^[\]'"#\n\x00]* "]")? { goto found; }
    *  { goto other; }
  */
found:
  // more than this rule knows?
  if (bool goes_on = *p == '[' || *p == '.' || *p == '_' || (*p >= 'A' && *p <= 'Z'); !goes_on)
    if (Sym text = r.type_texts.find({s, size_t(p - s)})) {
      v->type = r.types[text.id];
      return token(r, v, colon, p, MLC_TYPE);
    }
other:
  return token(r, v, colon, colon + 1, MLC_COLON);
}

// The first token of a line: comments above it are its own. One NL stands for a run of line ends, none for those at the
// start of the text; the end of the text gives one where the last newline is missing.
int scan_line(Reader &r, Value *v) {
  if (r.start_expr) {
    r.start_expr = false;
    r.lex = scan<false>;
    return r.last = MLC_START_EXPR;
  }
  size_t above = r.comments.size();
  r.line_token = nullptr;
  for (uint64_t word;; r.cursor += 8) {  // the indentation
    memcpy(&word, r.cursor, 8);
    if (word ^= 0x2020202020202020) {
      r.cursor += std::countr_zero(word) / 8;
      break;
    }
  }
  int kind;
  do kind = scan<false>(r, v); while (kind == MLC_NL);
  r.lex = scan<false>;
  r.line_token = r.token;
  for (size_t i = above; i < r.comments.size(); i++) r.comments[i].at = v->at;
  return kind;
}

}  // namespace

int (*const first_token)(Reader &, Value *) = scan_line;

size_t scan_all(Reader &r) {
  size_t n = 0;
  for (Value v; scan<true>(r, &v) != MLC_END;) n++;
  return n;
}

}  // namespace mlc
