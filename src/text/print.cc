// The printer says what is canonical: two spaces a level, one space around binary operators, minimal parentheses,
// shortest numbers, quotes only where they must be, a perfect nest of loops one line a loop.
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include "num/literal.h"
#include "text/text.h"

namespace mlc {

namespace {

bool word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

// [A-Za-z_][A-Za-z0-9_]* parts joined by `.`, where later parts may begin with a digit.
bool bare_name(std::string_view s) {
  if (s.empty() || digit(s[0])) return false;
  for (size_t i = 0; i < s.size(); i++)
    if (!word_char(s[i]) && !(s[i] == '.' && i && i + 1 < s.size() && s[i - 1] != '.')) return false;
  return true;
}
// [A-Za-z0-9_]+ parts joined by runs of `.`, `/`, `-`.
bool bare_global(std::string_view s) {
  for (char c : s)
    if (!word_char(c) && c != '.' && c != '/' && c != '-') return false;
  return !s.empty() && word_char(s[0]) && word_char(s.back());
}

bool plain(unsigned char c, char quote) { return c >= 32 && c != 127 && c != '\\' && c != static_cast<unsigned char>(quote); }

template <class Out> void escape(Out &out, std::string_view s, char quote) {
  out += quote;
  for (size_t i = 0; i < s.size();) {
    size_t from = i;
    while (i < s.size() && plain(s[i], quote)) i++;
    out += s.substr(from, i - from);
    if (i == s.size()) break;
    unsigned char c = s[i++];
    const char *hex = "0123456789abcdef";
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c >= 32 && c != 127) out += '\\', out += char(c);
    else out += "\\x", out += hex[c >> 4], out += hex[c & 15];
  }
  out += quote;
}

// Precedences, as in the grammar; an operand of lower precedence gets parentheses.
int precedence(Op op) {
  switch (op) {
    case Op::Or: return 1;
    case Op::And: return 2;
    case Op::Eq: case Op::Ne: case Op::Lt: case Op::Le: case Op::Gt: case Op::Ge: return 3;
    case Op::Add: case Op::Sub: return 4;
    case Op::Mul: case Op::Div: case Op::FloorDiv: case Op::Mod: return 5;
    default: return 6;
  }
}
constexpr std::string_view kSpelling[] = {"-", "!", "||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%"};

// What is printed, in pieces: a large text is never held as a whole unless somebody wants it so.
class Pieces {
 public:
  Pieces(const Sink &sink, size_t size) : sink_(sink), size_(size), buffer_(new char[size]), p_(buffer_.get()) {}
  ~Pieces() { flush(); }
  Pieces &operator+=(char c) {
    if (p_ == end()) flush();
    *p_++ = c;
    return *this;
  }
  Pieces &operator+=(std::string_view s) {
    size_t n = s.size();
    if (size_t(end() - p_) < n) return large(s);
    const char *from = s.data();
    if (n > 16) memcpy(p_, from, n);
    else if (n >= 8) word<uint64_t>(from, n);
    else if (n >= 4) word<uint32_t>(from, n);
    else for (size_t i = 0; i < n; i++) p_[i] = from[i];
    p_ += n;
    return *this;
  }
  void blanks(size_t n) {
    static constexpr std::string_view kBlanks = "                                                                ";
    for (; n > kBlanks.size(); n -= kBlanks.size()) *this += kBlanks;
    *this += kBlanks.substr(0, n);
  }

 private:
  char *end() const { return buffer_.get() + size_; }
  void flush() {
    if (p_ != buffer_.get()) sink_({buffer_.get(), size_t(p_ - buffer_.get())});
    p_ = buffer_.get();
  }
  Pieces &large(std::string_view s) {
    flush();
    if (s.size() > size_) return sink_(s), *this;
    memcpy(p_, s.data(), s.size());
    p_ += s.size();
    return *this;
  }
  // Two words that overlap cover 1 to 2 words of text: no call of memcpy for the short pieces that most are.
  template <class Word> void word(const char *from, size_t n) {
    memcpy(p_, from, sizeof(Word));
    memcpy(p_ + n - sizeof(Word), from + n - sizeof(Word), sizeof(Word));
  }
  const Sink &sink_;
  size_t size_;
  std::unique_ptr<char[]> buffer_;
  char *p_;
};

class Printer {
 public:
  enum class Size { Piece, Whole };
  Printer(const Build &b, const Sink &sink, Size size)
      : b_(b), out_(sink, size == Size::Whole ? 1 << 16 : 1 << 8), spelt_(size == Size::Whole ? b.names.size() : 0) {}

  void module(const Module &m) {
    comment(m.head_comment);
    put("mlc 1\n");
    bool group = true;  // files, devices and constants stand together
    for (const Item *i : m.items) {
      bool one_line = i->kind == Kind::File || i->kind == Kind::Device || i->kind == Kind::Const;
      bool first = i == m.items[0];
      if (first || !one_line || !group || !i->comment.empty()) put("\n");
      item(i);
      group = one_line;
    }
    if (!m.trailing_comment.empty()) put("\n"), comment(m.trailing_comment);
  }

  void item(const Item *i) {
    comment(i->comment);
    switch (i->kind) {
      case Kind::File: {
        auto &f = to<File>(i);
        put("file "), escape(out_, f.path, '"'), attrs(f.attrs, true);
        break;
      }
      case Kind::Device: {
        auto &d = to<Device>(i);
        put("device "), place(d.name, d.index), put(" = @"), global(d.target);
        break;
      }
      case Kind::Const: constant(to<Const>(i)); break;
      case Kind::Func: func(to<Func>(i)); return;
      case Kind::Target: {
        auto &t = to<Target>(i);
        put("target @"), global(t.name), put(" {\n");
        level_++;
        notes(t.notes);
        for (const Feature &f : t.features) {
          indent();
          if (f.kind == Feature::Use) put("use @"), global(f.name);
          else put(f.kind == Feature::Memory ? "memory " : "thread "), key(f.name), attrs(f.attrs, true);
          put("\n");
        }
        close();
        return;
      }
      case Kind::Schedule: {
        auto &s = to<Schedule>(i);
        put("schedule @"), global(s.name);
        if (s.target) put(" for @"), global(s.target);
        put(" {\n");
        level_++;
        notes(s.notes);
        for (const Step &step : s.steps) {
          comment(step.comment);
          indent();
          if (!step.results.empty()) names(step.results), put(" = ");
          expr(step.call), attrs(step.attrs), put("\n");
        }
        close();
        return;
      }
      default: break;
    }
    put("\n");
  }

  void stmts(Stmts body) {
    for (const Stmt *s : body) stmt(s);
  }

  void stmt(const Stmt *s, const char *prefix = "") {
    comment(s->comment);
    indent();
    put(prefix);
    switch (s->kind) {
      case Kind::Let: {
        auto &l = to<Let>(s);
        defs(l.defs), put(" = "), expr(l.value), attrs(l.attrs), from(l.from);
        break;
      }
      case Kind::IfValue: {
        auto &v = to<IfValue>(s);
        defs(v.defs), put(" = if "), expr(v.cond), put(" "), yield(v.then), put(" else "), yield(v.other), from(v.from);
        break;
      }
      case Kind::Loop: {
        auto &l = to<Loop>(s);
        defs(l.defs), put(" = loop "), iter(l.iter);
        for (size_t i = 0; i < l.carry.size(); i++)
          put(i ? ", " : " carry "), def(l.carry[i].def), put(" = "), expr(l.carry[i].init);
        if (l.until) put(" while "), name(l.until);
        put(" "), yield(l.body), from(l.from);
        break;
      }
      case Kind::Store: {
        auto &t = to<Store>(s);
        if (t.atomic) put("atomic ");
        expr(t.target), put(" = "), expr(t.value), from(t.from);
        break;
      }
      case Kind::Compute: {
        auto &c = to<Compute>(s);
        put("compute ");
        for (size_t i = 0; i < c.results.size(); i++) {
          if (i) put(", ");
          name(c.results[i].name), put("["), iters(c.results[i].iters), put("]");
        }
        put(" = "), expr(c.value), from(c.from);
        break;
      }
      case Kind::Alloc: {
        auto &a = to<Alloc>(s);
        put("alloc "), def(a.def);
        if (a.base) put(" = "), name(a.base), put(" at "), expr(a.offset);
        break;
      }
      case Kind::View: put("view "), def(to<View>(s).def), put(" = "), expr(to<View>(s).source); break;
      case Kind::CallStmt: {
        auto &c = to<CallStmt>(s);
        put("call "), expr(c.call);
        if (!c.dests.empty()) put(" -> "), exprs(c.dests);
        attrs(c.attrs), from(c.from);
        break;
      }
      case Kind::Assume: put("assume "), expr(to<Assume>(s).cond); break;
      case Kind::Code: put("code "), escape(out_, to<Code>(s).text, '"'); break;
      case Kind::Dataflow: {
        auto &d = to<Dataflow>(s);
        put("dataflow -> "), names(d.outputs), put(" "), body({}, d.body);
        break;
      }
      case Kind::For: nest(to<For>(s)); return;
      case Kind::If: {
        auto &i = to<If>(s);
        put("if "), expr(i.cond), put(" "), body({}, i.body);
        if (i.has_else) put(" else "), body({}, i.other);
        break;
      }
      case Kind::While: put("while "), expr(to<While>(s).cond), put(" "), body({}, to<While>(s).body); break;
      case Kind::Block: block(to<Block>(s)); break;
      default: break;
    }
    put("\n");
  }

  void expr(const Expr *e, int least = 0) {
    switch (e->kind) {
      case Kind::Int: integer(to<Int>(e)); break;
      case Kind::Float: {
        auto &f = to<Float>(e);
        if (!f.nan_bits) { put(shortest(f.value)); break; }
        char text[24];
        auto end = std::to_chars(text, text + sizeof text, f.nan_bits, 16).ptr;
        put(std::signbit(f.value) ? "-nan(0x" : "nan(0x"), put({text, size_t(end - text)}), put(")");
        break;
      }
      case Kind::Bool: put(to<Bool>(e).value ? "true" : "false"); break;
      case Kind::Str: escape(out_, to<Str>(e).value, '"'); break;
      case Kind::None: put("none"); break;
      case Kind::Name: name(to<Name>(e).name); break;
      case Kind::Global: put("@"), global(to<Global>(e).name); break;
      case Kind::Load: {
        auto &l = to<Load>(e);
        if (l.global) put("@"), global(l.buffer);
        else name(l.buffer);
        put("["), exprs(l.index), put("]");
        break;
      }
      case Kind::Range: expr(to<Range>(e).lo), put(" +: "), expr(to<Range>(e).extent); break;
      case Kind::All: put(":"); break;
      case Kind::Call: {
        auto &c = to<Call>(e);
        if (c.global) put("@"), global(c.callee);
        else callee(c.callee);
        put("("), exprs(c.args);
        if (!c.iters.empty()) put(" for "), iters(c.iters);
        put(")");
        break;
      }
      case Kind::Unary: {
        auto &u = to<Unary>(e);
        put(u.op == Op::Neg ? "-" : "!");
        // -(7) would read back as the literal -7, --x is two signs
        expr(u.a, 6);
        break;
      }
      case Kind::Binary: {
        auto &v = to<Binary>(e);
        int p = precedence(v.op);
        bool comparison = p == 3;
        if (p < least) put("(");
        expr(v.a, comparison ? p + 1 : p);
        put(" "), put(kSpelling[int(v.op)]), put(" ");
        expr(v.b, p + 1);
        if (p < least) put(")");
        break;
      }
      case Kind::List: put("["), exprs(to<List>(e).items), put("]"); break;
      case Kind::Map: expr(to<Map>(e).from), put(" -> "), expr(to<Map>(e).to); break;
      default: break;
    }
  }

  void type(const Type *t) {
    put(dtype_name(t->elem));
    if (t->tensor) put("["), exprs(t->dims), put("]");
    if (t->scope) put(" in "), name(t->scope);
    if (t->device) put(" on "), place(t->device, t->device_index);
    attrs(t->attrs);
  }

  void name(Sym s) {
    std::string_view text = b_.text(s);
    if (quoted(s, text)) escape(out_, text, '\'');
    else put(text);
  }

 private:
  void put(std::string_view s) { out_ += s; }
  void indent() { out_.blanks(size_t(level_) * 2); }
  void close() {
    level_--;
    indent(), put("}\n");
  }

  void comment(std::string_view c) {
    while (!c.empty()) {
      size_t nl = c.find('\n');
      indent(), put(c.substr(0, nl)), put("\n");
      c = nl == std::string_view::npos ? std::string_view() : c.substr(nl + 1);
    }
  }

  // Whether a name needs quotes, computed once a name: 1 no, 2 yes.
  bool quoted(Sym s, std::string_view text) {
    uint8_t once = 0;
    uint8_t &known = s.id < spelt_.size() ? spelt_[s.id] : once;
    if (!known) {
      known = bare_name(text) && !b_.is_reserved(s) ? 1 : 2;
    }
    return known == 2;
  }
  void global(Sym s) {
    std::string_view text = b_.text(s);
    if (bare_global(text)) put(text);
    else escape(out_, text, '\'');
  }
  // Attribute keys and primitives may be reserved words.
  void key(Sym s) {
    std::string_view text = b_.text(s);
    if (bare_name(text) && text != "inf" && text != "nan") put(text);
    else escape(out_, text, '\'');
  }
  void callee(Sym s) {
    std::string_view t = b_.text(s);
    if (t == "parallel" || t == "vectorize" || t == "unroll" || t == "bind") put(t);
    else name(s);
  }
  void integer(const Int &i) {
    char text[24];
    auto end = i.wide ? std::to_chars(text, text + 24, uint64_t(i.value)).ptr : std::to_chars(text, text + 24, i.value).ptr;
    put({text, size_t(end - text)});
  }
  void exprs(Exprs l) {
    for (size_t i = 0; i < l.size(); i++) {
      if (i) put(", ");
      expr(l[i]);
    }
  }
  void iter(const Iter &i) { name(i.name), put(" in "), expr(i.extent); }
  void iters(Iters l) {
    for (size_t i = 0; i < l.size(); i++) {
      if (i) put(", ");
      iter(l[i]);
    }
  }
  void names(Syms l) {
    for (size_t i = 0; i < l.size(); i++) {
      if (i) put(", ");
      name(l[i]);
    }
  }
  void def(const Def &d) { name(d.name), put(": "), type(d.type); }
  void defs(Defs l) {
    for (size_t i = 0; i < l.size(); i++) {
      if (i) put(", ");
      def(l[i]);
    }
  }
  void attrs(Attrs l, bool always = false) {
    if (l.empty() && !always) return;
    put(" {");
    for (size_t i = 0; i < l.size(); i++) {
      if (i) put(", ");
      key(l[i].key), put(" = "), expr(l[i].value);
    }
    put("}");
  }
  void from(Syms l, std::string_view word = " from ") {
    for (size_t i = 0; i < l.size(); i++) put(i ? ", " : word), escape(out_, b_.text(l[i]), '"');
  }
  void place(Sym device, int32_t index) {
    name(device);
    if (index >= 0) put(":"), put(std::to_string(index));
  }
  void notes(const Notes &n) {
    for (const Attr &a : n.attrs) indent(), put("attr "), key(a.key), put(" = "), expr(a.value), put("\n");
    if (n.from.empty()) return;
    indent();
    from(n.from, "from ");
    put("\n");
  }
  void body(const Notes &n, Stmts s) {
    put("{\n");
    level_++;
    notes(n), stmts(s);
    level_--;
    indent(), put("}");
  }
  void yield(const Yield &y) {
    put("{\n");
    level_++;
    stmts(y.body);
    indent(), put("yield "), exprs(y.yields), put("\n");
    if (!y.stacks.empty()) indent(), put("stack "), exprs(y.stacks), put("\n");
    level_--;
    indent(), put("}");
  }

  // for i in n          a loop that holds only a loop, without notes, stands above it on the same level
  // for j in m {
  void nest(const For &first) {
    const For *f = &first;
    for (;; f = &to<For>(f->body[0])) {
      put("for "), iter(f->iter);
      switch (f->loop) {
        case LoopKind::Serial: break;
        case LoopKind::Parallel: put(" parallel"); break;
        case LoopKind::Vectorize: put(" vectorize"); break;
        case LoopKind::Unroll: put(" unroll"); break;
        case LoopKind::Bind: put(" bind "), name(f->tag); break;
      }
      if (f->body.size() != 1 || f->body[0]->kind != Kind::For || !f->notes.attrs.empty() || !f->notes.from.empty()) break;
      put("\n"), comment(f->body[0]->comment), indent();
    }
    put(" "), body(f->notes, f->body), put("\n");
  }

  void block(const Block &k) {
    put("block "), name(k.name), put(" {\n");
    level_++;
    notes(k.notes);
    static constexpr std::string_view kAxis[] = {"spatial ", "reduce ", "scan "};
    for (const Axis &a : k.axes)
      indent(), put(kAxis[int(a.kind)]), name(a.name), put(" in "), expr(a.domain), put(" = "), expr(a.binding), put("\n");
    if (k.guard) indent(), put("guard "), expr(k.guard), put("\n");
    regions("reads ", k.reads), regions("writes ", k.writes);
    for (const Stmt *s : k.inits) stmt(s, "init ");
    stmts(k.body);
    level_--;
    indent(), put("}");
  }
  void regions(std::string_view word, std::span<const Load *const> l) {
    if (l.empty()) return;
    indent(), put(word);
    for (size_t i = 0; i < l.size(); i++) {
      if (i) put(", ");
      expr(l[i]);
    }
    put("\n");
  }

  void constant(const Const &c) {
    put("const @"), global(c.name), put(": "), type(c.type), put(" = ");
    if (c.value) expr(c.value), attrs(c.attrs);
    else escape(out_, c.path, '"'), put(" at "), put(std::to_string(c.offset));
    from(c.from);
  }

  void func(const Func &f) {
    static constexpr std::string_view kFunc[] = {"graph", "group", "kernel", "scalar", "reducer", "extern", "intrinsic"};
    put(kFunc[int(f.func)]), put(" @"), global(f.name);
    if (!f.dims.empty()) put("["), names(f.dims), put("]");
    put("(");
    static constexpr std::string_view kMode[] = {"", "inout ", "scratch "};
    for (size_t i = 0; i < f.params.size(); i++) put(i ? ", " : ""), put(kMode[int(f.params[i].mode)]), def(f.params[i].def);
    put(")");
    if (!f.results.empty()) put(" -> ("), defs(f.results), put(")");
    if (f.device) put(" on "), place(f.device, f.device_index);
    if (f.target) put(" for @"), global(f.target);
    put(" {\n");
    level_++;
    notes(f.notes);
    for (const Stmt *s : f.inits) stmt(s, "init ");
    stmts(f.body);
    for (const mlc::Part &p : f.parts) {
      indent(), put(p.desc ? "desc " : "impl "), body(p.notes, p.body), put("\n");
    }
    close();
  }

  const Build &b_;
  Pieces out_;
  std::vector<uint8_t> spelt_;
  int level_ = 0;
};

}  // namespace

void print(const Build &b, const Module &m, const Sink &sink) { Printer(b, sink, Printer::Size::Whole).module(m); }

void print(const Build &b, const Module &m, std::string &out) {
  print(b, m, [&](std::string_view piece) { out += piece; });
}

std::string print(const Build &b, const Module &m) {
  std::string out;
  print(b, m, out);
  return out;
}

// One part of a module as a string, without its last newline.
template <class F> static std::string part(const Build &b, const F &f) {
  std::string out;
  Sink sink = [&](std::string_view piece) { out += piece; };
  {
    Printer p(b, sink, Printer::Size::Piece);
    f(p);
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}
std::string print(const Build &b, const Expr *e) { return part(b, [&](Printer &p) { p.expr(e); }); }
std::string print(const Build &b, const Type *t) { return part(b, [&](Printer &p) { p.type(t); }); }
std::string print(const Build &b, const Stmt *s) { return part(b, [&](Printer &p) { p.stmt(s); }); }
std::string print(const Build &b, const Item *i) { return part(b, [&](Printer &p) { p.item(i); }); }
std::string print_name(const Build &b, Sym s) { return part(b, [&](Printer &p) { p.name(s); }); }
std::string quote(std::string_view s) {
  std::string out;
  escape(out, s, '"');
  return out;
}

}  // namespace mlc
