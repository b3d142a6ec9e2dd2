#include "mlc.tab.h"
#include "text/text.h"

namespace mlc {

static constexpr size_t kMostText = size_t(0xfffffff0);  // offsets are 32 bits

Reader::Reader(Build &b, std::string_view text, Diag &diag, Module *m)
    : b(b), diag(diag), m(m), lex(first_token), begin(text.data()), end(begin + text.size()), cursor(begin),
      token(begin), line_token(nullptr) {}

bool Reader::error(uint32_t at, const char *message) {
  if (!failed) diag.error(at, "{}", message);
  failed = true;
  return false;
}

std::string_view Reader::claim_some(uint32_t at) {
  size_t first = comments.size();
  while (first && comments[first - 1].at >= at) first--;
  if (comments.size() - first == 1) {
    std::string_view one = comments.back().text;
    comments.pop_back();
    return one;
  }
  std::string joined;
  for (size_t i = first; i < comments.size(); i++) {
    if (i > first) joined += '\n';
    joined += comments[i].text;
  }
  comments.resize(first);
  return b.arena.text(joined);
}

Value Reader::begin_type(Value name) { return array_type_of(name, {}, false, name.at + name.len); }

Value Reader::array_type(Value name, Exprs dims, Value close) { return array_type_of(name, dims, true, close.at + 1); }

Value Reader::array_type_of(Value name, Exprs dims, bool tensor, uint32_t stop) {
  DType elem = dtype_named(b.text(name.sym));
  if (elem == DType::Invalid) {
    if (!failed) diag.error(name.at, "unknown element type `{}`", b.text(name.sym));
    failed = true;
  }
  Value v = name;
  v.type = b.type({elem, tensor, {}, {}, -1, dims, {}});
  Sym text = type_texts.intern({begin + name.at, stop - name.at});
  if (text.id == types.size()) types.push_back(v.type);
  return v;
}

// Names of tokens as a message prints them: words for kinds, `x` for what is spelt so.
static std::string token_name(std::string_view s) {
  for (const char *kind : {"name", "@name", "integer", "number", "string", "type", "end of line", "end of file"})
    if (s == kind) return std::string(s);
  return "`" + std::string(s) + "`";
}

void syntax_error(Reader &r, std::string_view expected, std::string_view found) {
  std::string text(r.token, size_t(r.cursor - r.token));
  std::string what = token_name(found);
  if ((found == "name" || found == "@name") && text.size() < 60) what += " `" + text + "`";
  if (!r.failed) {
    uint32_t at = r.offset(r.token);
    if (at == uint32_t(r.end - r.begin) && at && r.begin[at - 1] == '\n' && found == "end of line") at--;
    if (expected.empty()) r.diag.error(at, "{} cannot stand here", what);
    else r.diag.error(at, "expected {}, found {}", expected, what);
  }
  r.failed = true;
}

std::string expected_list(const std::vector<std::string_view> &tokens) {
  std::string list;
  for (size_t i = 0; i < tokens.size(); i++)
    list += (i ? i + 1 == tokens.size() ? " or " : ", " : "") + token_name(tokens[i]);
  return list;
}

bool read(Build &b, const Source &source, Module &m, Diag &diag) {
  if (source.text.empty() || source.text.find_first_not_of(" \n") == std::string_view::npos) {
    diag.error(kNowhere, "empty input: expected a module, which begins with `mlc 1`");
    return false;
  }
  if (source.text.size() > kMostText) {
    diag.error(kNowhere, "the text is larger than 4 GB");
    return false;
  }
  // 0 to 8 stand in no text, and every ONNX model begins with one of them
  if (unsigned(source.text[0]) <= 8) {
    diag.error(kNowhere, "this is no text: mlc-import makes a module of an ONNX model");
    return false;
  }
  Reader r(b, source.text, diag, &m);
  int rc = mlc_parse(r);
  if (rc == 2 && !r.failed) diag.error(r.offset(r.token), "nested too deeply");
  m.trailing_comment = r.claim(0);
  return rc == 0 && !r.failed;
}

const Expr *read_expr(Build &b, std::string_view text, std::string *error) {
  Source source = Source::from_string("", text);
  Diag diag("", &source);
  Reader r(b, source.text, diag, nullptr);
  r.start_expr = true;
  if (mlc_parse(r) == 0 && !r.failed && r.result) return r.result;
  if (error) *error = diag.messages().empty() ? "bad expression" : diag.messages()[0];
  return nullptr;
}

size_t scan(std::string_view text_with_nul) {
  Build b;
  Diag diag("");
  Module m;
  Reader r(b, text_with_nul, diag, &m);
  return scan_all(r);
}

}  // namespace mlc
