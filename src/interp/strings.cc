// What reads letters: StringConcat, StringSplit, StringNormalizer, RegexFullMatch.
#include "interp/strings.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/utf8.h"
#include "interp/machine.h"
#include "interp/regex.h"
#include "text/text.h"

namespace mlc::interp {

int64_t Strings::number(std::string_view s) {
  if (auto it = numbers_.find(s); it != numbers_.end()) return it->second;
  int64_t bytes = int64_t(s.size()) + 128;  // with its places in the table
  if (bytes > memory_.limit - memory_.used)
    throw Fault{kNowhere, fmt::format("strings go beyond the limit of {} bytes", memory_.limit)};
  memory_.used += bytes;
  texts_.emplace_back(s);
  return numbers_[texts_.back()] = int64_t(texts_.size()) - 1;
}

const std::string &Strings::text(int64_t number) const {
  if (number < 0 || size_t(number) >= texts_.size()) throw Fault{kNowhere, "no string has this number"};
  return texts_[size_t(number)];
}

namespace {

// ---- letters

// Lower or upper case, letter by letter, as Unicode has it in no particular language; what is no UTF-8 stays.
class Letters {
 public:
  Letters() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{})) {
    if (!locale_) throw Fault{kNowhere, "the system lacks the locale C.UTF-8"};
  }
  ~Letters() { freelocale(locale_); }
  Letters(const Letters &) = delete;

  std::string turned(std::string_view s, bool upper) const {
    std::string out;
    for (size_t at = 0; at < s.size();) {
      size_t n;
      uint32_t letter = first_letter(s.substr(at), &n);
      if (letter == kNoLetter) out += s[at];
      else append_letter(upper ? towupper_l(letter, locale_) : towlower_l(letter, locale_), out);
      at += n;
    }
    return out;
  }

 private:
  locale_t locale_;
};

// ---- operators

class Text {
 public:
  Text(Machine &m, const OperatorUse &use) : m_(m), use_(use), op_(*find_op(m.b.text(use.name))) {}

  std::vector<Value> run() {
    if (op_.name == "StringConcat") return concat();
    if (op_.name == "StringSplit") return split();
    if (op_.name == "StringNormalizer") return normalize();
    return match();
  }

 private:
  template <class... A> [[noreturn]] void fail(fmt::format_string<A...> f, A &&...a) const {
    std::string what = fmt::format(f, std::forward<A>(a)...);
    throw Fault{use_.at, fmt::format("{}{}: {}", op_.name, m_.origin(use_.from), what)};
  }

  const Expr *attr(std::string_view name) const { return mlc::attr(m_.b, use_.attrs, name); }
  int64_t number(std::string_view name, int64_t otherwise) const {
    int64_t v;
    return int_value(attr(name), &v) ? v : otherwise;
  }
  std::string_view word(std::string_view name, std::string_view otherwise) const {
    auto *s = as<Str>(attr(name));
    return s ? s->value : otherwise;
  }

  // Input i by the numbers of its strings; each different string is looked at once, whatever the size of the tensor.
  struct Input {
    std::vector<int64_t> dims, numbers;
  };
  Input input(size_t i) {
    Input in;
    if (i >= use_.args.size()) fail("input {} is missing", i);
    const OperatorArg &a = use_.args[i];
    if (a.literal) {
      auto *list = as<List>(a.literal);
      if (list) in.dims = {int64_t(list->items.size())};
      for (const Expr *e : list ? list->items : Exprs(&a.literal, 1)) {
        if (!as<Str>(e)) fail("input {}: expected strings", i);
        in.numbers.push_back(m_.strings.number(to<Str>(e).value));
      }
      return in;
    }
    if (a.value.type != DType::Str || a.value.is_scalar()) fail("input {}: expected str, found {}", i, a.value.text());
    const Ref &r = a.value.ref;
    in.dims = r.dims;
    each_element(r, [&](int64_t off, const auto &) {
      in.numbers.push_back(load(stored(DType::Str), r.data(), size_t(off)).as_int());
    });
    return in;
  }
  template <class T, class F> std::unordered_map<int64_t, T> of_each(const Input &in, F &&f) {
    std::unordered_map<int64_t, T> results;
    for (int64_t n : in.numbers)
      if (!results.count(n)) results.emplace(n, f(std::string_view(m_.strings.text(n))));
    return results;
  }

  // A tensor whose elements give(i) says, in row-major order.
  template <class F> Value made(DType t, std::vector<int64_t> dims, F &&give) {
    Ref r = Ref::dense(m_.memory, t, std::move(dims), true);
    for (int64_t i = 0, n = r.count(); i < n; i++)
      store(stored(t), r.data(), size_t(i), Scalar::of_int(give(size_t(i))));
    return Value::of(r);
  }

  std::vector<Value> concat() {  // numpy's broadcasting
    Input x = input(0), y = input(1);
    size_t rank = std::max(x.dims.size(), y.dims.size());
    auto shown = [](const Input &in) { return fmt::format("[{}]", fmt::join(in.dims, ", ")); };
    std::string shapes = shown(x) + " and " + shown(y);
    for (Input *in : {&x, &y}) in->dims.insert(in->dims.begin(), rank - in->dims.size(), 1);
    std::vector<int64_t> dims;
    for (size_t d = 0; d < rank; d++) {
      int64_t p = x.dims[d], q = y.dims[d];
      if (p != q && p != 1 && q != 1) fail("{} do not broadcast", shapes);
      dims.push_back(p == 1 ? q : p);
    }
    auto element = [&](const Input &in, int64_t i) {
      int64_t at = 0, stride = 1;
      for (size_t d = rank; d-- > 0; i /= dims[d])
        at += in.dims[d] == 1 ? 0 : i % dims[d] * stride, stride *= in.dims[d];
      return in.numbers[size_t(at)];
    };
    std::map<std::pair<int64_t, int64_t>, int64_t> joined;
    return {made(DType::Str, dims, [&](size_t i) {
      int64_t p = element(x, int64_t(i)), q = element(y, int64_t(i));
      auto [it, added] = joined.try_emplace({p, q});
      if (added) it->second = m_.strings.number(m_.strings.text(p) + m_.strings.text(q));
      return it->second;
    })};
  }

  // At a delimiter, or at white space that counts once and not at the ends; at most `most` times, the rest stays whole.
  std::vector<int64_t> parts(std::string_view s, std::string_view delimiter, int64_t most) {
    std::vector<int64_t> list;
    constexpr std::string_view kSpace = " \t\n\v\f\r";
    auto skip = [&] { s.remove_prefix(delimiter.empty() ? std::min(s.find_first_not_of(kSpace), s.size()) : 0); };
    skip();
    if (delimiter.empty() && s.empty()) return list;
    while (most < 0 || int64_t(list.size()) < most) {
      size_t end = delimiter.empty() ? s.find_first_of(kSpace) : s.find(delimiter);
      if (end == s.npos) break;
      list.push_back(m_.strings.number(s.substr(0, end)));
      s.remove_prefix(end + std::max<size_t>(delimiter.size(), 1));
      skip();
      if (delimiter.empty() && s.empty()) return list;
    }
    list.push_back(m_.strings.number(s));
    return list;
  }

  std::vector<Value> split() {
    Input x = input(0);
    std::string_view delimiter = word("delimiter", "");
    int64_t most = number("maxsplit", -1);
    auto all = of_each<std::vector<int64_t>>(x, [&](std::string_view s) { return parts(s, delimiter, most); });
    size_t width = 0;
    for (auto &[n, list] : all) width = std::max(width, list.size());
    std::vector<int64_t> dims = x.dims;
    dims.push_back(int64_t(width));
    Value y = made(DType::Str, dims, [&](size_t i) {
      const auto &list = all.at(x.numbers[i / width]);
      return i % width < list.size() ? list[i % width] : 0;
    });
    return {y, made(DType::I64, x.dims, [&](size_t i) { return int64_t(all.at(x.numbers[i]).size()); })};
  }

  // Without the stop words; one empty string if nothing is left.
  std::vector<Value> normalize() {
    Input x = input(0);
    if (x.dims.empty() || x.dims.size() > 2 || (x.dims.size() == 2 && x.dims[0] != 1))
      fail("expected a list or a row, found [{}]", fmt::join(x.dims, ", "));
    Letters letters;
    bool exact = number("is_case_sensitive", 0) != 0;
    auto key = [&](std::string_view s) { return exact ? std::string(s) : letters.turned(s, false); };
    std::set<std::string> stops;
    if (auto *l = as<List>(attr("stopwords")))
      for (const Expr *e : l->items) stops.insert(key(to<Str>(e).value));
    std::string_view action = word("case_change_action", "NONE");
    constexpr int64_t kStop = -1;
    auto normal = of_each<int64_t>(x, [&](std::string_view s) {
      if (stops.count(key(s))) return kStop;
      return m_.strings.number(action == "NONE" ? std::string(s) : letters.turned(s, action == "UPPER"));
    });
    std::vector<int64_t> kept;
    for (int64_t n : x.numbers)
      if (normal.at(n) != kStop) kept.push_back(normal.at(n));
    if (kept.empty()) kept.push_back(0);
    x.dims.back() = int64_t(kept.size());
    return {made(DType::Str, x.dims, [&](size_t i) { return kept[i]; })};
  }

  std::vector<Value> match() {
    Input x = input(0);
    Regex pattern(word("pattern", ""));
    if (!pattern.error().empty()) fail("pattern {}: {}", quote(word("pattern", "")), pattern.error());
    auto fits = of_each<bool>(x, [&](std::string_view s) { return pattern.matches(s); });
    return {made(DType::Bool, x.dims, [&](size_t i) { return int64_t(fits.at(x.numbers[i])); })};
  }

  Machine &m_;
  const OperatorUse &use_;
  const OpInfo &op_;
};

}  // namespace

std::vector<Value> text_operator(Machine &m, const OperatorUse &use) {
  std::vector<Value> results = Text(m, use).run();
  results.resize(std::min(results.size(), use.results));
  return results;
}

// The same use where strings are numbers; `strings`: which results are strings again.
OperatorUse over_numbers(Machine &m, const OperatorUse &use, std::vector<bool> &strings) {
  const OpInfo &op = *find_op(m.b.text(use.name));
  OperatorUse u = use;
  std::set<std::string> variables{"str"};  // types of operands that are strings
  auto see = [&](const mlc::Operand *o) {
    if (o) variables.insert(o->type);
  };
  auto number = [&](const Expr *e) -> const Expr * {
    auto *s = as<Str>(e);
    return s ? m.b.integer(m.strings.number(s->value)) : e;
  };
  auto plain = [](Value &v) {
    if (v.type == DType::Str) v.type = DType::I64, v.ref.elem = DType::I64;
  };
  for (size_t i = 0; i < u.args.size(); i++) {
    OperatorArg &a = u.args[i];
    auto *list = as<List>(a.literal);
    bool text = as<Str>(a.literal) || (list && !list->items.empty() && as<Str>(list->items[0]));
    if (text || a.value.type == DType::Str) see(op.input(i));
    plain(a.value);
    std::vector<const Expr *> items;
    for (size_t k = 0; list && k < list->items.size(); k++) items.push_back(number(list->items[k]));
    if (text) a.literal = list ? m.b.make_list(m.b.list(items)) : number(a.literal);
  }
  for (Value &v : u.into) plain(v);
  if (u.wanted && u.wanted->elem == DType::Str) {
    u.wanted = m.b.with_elem(u.wanted, DType::I64);
    if (!op.outputs.empty()) see(op.output(0));
  }
  for (size_t i = 0; i < u.results; i++) strings.push_back(op.output(i) && variables.count(op.output(i)->type));
  return u;
}

bool has_strings(const OperatorUse &use) {
  auto text = [](const Expr *e) {
    auto *list = as<List>(e);
    return as<Str>(e) || (list && !list->items.empty() && as<Str>(list->items[0]));
  };
  auto is_text = [&](const OperatorArg &a) { return a.value.type == DType::Str || (a.literal && text(a.literal)); };
  return (use.wanted && use.wanted->elem == DType::Str) || std::any_of(use.args.begin(), use.args.end(), is_text);
}

}  // namespace mlc::interp
