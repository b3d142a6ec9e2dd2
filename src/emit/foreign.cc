#include "emit/foreign.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "emit/helpers.h"
#include "text/text.h"

namespace mlc {
namespace {

const Part *impl_of(const Func &f) {
  auto part = std::find_if(f.parts.begin(), f.parts.end(), [](const Part &p) { return !p.desc; });
  return part == f.parts.end() ? nullptr : &*part;
}

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::vector<std::string> strings(const Build &b, const Func &f, std::string_view key) {
  std::vector<std::string> all;
  auto add = [&](const Expr *e) {
    if (auto *s = as<Str>(e)) all.emplace_back(s->value);
  };
  const Expr *e = attr(b, f.notes.attrs, key);
  if (auto *l = as<List>(e)) std::for_each(l->items.begin(), l->items.end(), add);
  else add(e);
  return all;
}

struct Argument {
  Sym name;
  std::string type, ident;
  bool used = false;
};

// Dimensions, parameters, results, as C has them.
std::vector<Argument> arguments(Build &b, const Func &f) {
  Namer namer;
  namer.reserve("stream");
  std::vector<Argument> all;
  auto add = [&](Sym name, std::string type) { all.push_back({name, std::move(type), namer.make(b.text(name))}); };
  auto buffer = [&](const Def &d, bool written) {
    add(d.name, fmt::format("{}{} *", written ? "" : "const ", c_storage(d.type->elem)));
  };
  for (Sym d : f.dims) add(d, "int64_t ");
  for (const Param &p : f.params) {
    if (p.def.type->tensor) buffer(p.def, p.mode != Mode::In);
    else add(p.def.name, fmt::format("{} ", c_value(p.def.type->elem)));
  }
  for (const Def &d : f.results) {
    if (d.type->tensor) buffer(d, true);
    else add(d.name, fmt::format("{} *", c_value(d.type->elem)));
  }
  return all;
}

// A line of code with its names filled in. False: it has one that is not known.
bool fill(const Build &b, const Func &f, const Code &line, std::vector<Argument> &args, bool cuda, Foreign &made,
          std::string &out, Diag &diag) {
  auto word = [&](size_t at, std::string_view w) {
    std::string_view s = line.text;
    return s.substr(at, w.size()) == w && (at + w.size() == s.size() || !is_name(s[at + w.size()]));
  };
  std::string_view s = line.text;
  for (size_t at = 0; at < s.size();) {
    if (s[at] != '$') {
      out += s[at++];
      continue;
    }
    if (s.substr(at, 2) == "$$") {
      out += '$', at += 2;
      continue;
    }
    // The longest name that there is: `$x.first` is x and `.first`, unless a parameter is called so.
    Argument *found = nullptr;
    for (Argument &a : args) {
      std::string_view name = b.text(a.name);
      if (word(at + 1, name) && (!found || name.size() > b.text(found->name).size())) found = &a;
    }
    if (found) {
      found->used = true;
      out += found->ident, at += 1 + b.text(found->name).size();
    } else if (word(at, "$fail")) {
      made.fails = true;
      out += "return 1", at += 5;
    } else if (word(at, "$stream")) {
      made.stream |= cuda;
      out += cuda ? "stream" : "0", at += 7;
    } else {
      size_t end = at + 1;
      while (end < s.size() && is_name(s[end])) end++;
      diag.error(line.at, "@{}: {} is no dimension, parameter or result of it", b.text(f.name), s.substr(at, end - at));
      return false;
    }
  }
  return true;
}

// Up to 120 columns, four more where a line goes on.
std::string signature(std::string head, const std::vector<Argument> &args, const std::vector<bool> &taken,
                      std::string_view end) {
  std::string last(end);
  bool first = true;
  for (size_t i = 0; i < args.size(); i++) {
    if (!taken[i]) continue;
    std::string item = args[i].type + args[i].ident;
    head += first ? "" : ",";
    if (head.size() - (head.rfind('\n') + 1) + item.size() > 114) head += "\n    ";
    else if (!first) head += " ";
    head += item, first = false;
  }
  return head + ")" + last;
}

}  // namespace

std::optional<std::string> foreign_symbol(const Build &b, const Func &f) {
  if (impl_of(f)) return {};
  auto *s = as<Str>(attr(b, f.notes.attrs, "symbol"));
  return std::string(s ? s->value : b.text(f.name));
}

std::vector<std::string> foreign_includes(const Build &b, const Func &f, Diag &diag) {
  std::vector<std::string> all = strings(b, f, "include");
  for (const std::string &s : all) {
    auto between = [&](char first, char last) { return s.size() > 2 && s.front() == first && s.back() == last; };
    if ((!between('<', '>') && !between('"', '"')) || s.find('\n') != s.npos)
      diag.error(f.at, "@{}: include {}: expected \"<FILE>\" or one in quotes", b.text(f.name), quote(s));
  }
  return all;
}

std::vector<std::string> foreign_links(const Build &b, const Func &f, Diag &diag) {
  std::vector<std::string> all;
  for (const std::string &s : strings(b, f, "link")) {
    bool plain = !s.empty() && std::all_of(s.begin(), s.end(), [](char c) {
      return is_name(c) || std::string_view("-+.,:=@/").find(c) != std::string_view::npos;
    });
    if (!plain) {
      diag.error(f.at, "@{}: link {}: expected the name of a library, a file or an option", b.text(f.name), quote(s));
      continue;
    }
    bool itself = s[0] == '-' || s.find('/') != s.npos;
    for (const char *suffix : {".a", ".o", ".so"}) itself |= s.ends_with(suffix);
    all.push_back(itself ? s : "-l" + s);
  }
  return all;
}

std::optional<Foreign> foreign_function(Build &b, const Func &f, const std::string &ident, bool cuda, Diag &diag) {
  Foreign out;
  std::vector<Argument> args = arguments(b, f);
  std::vector<bool> taken(args.size(), true);
  auto *returns = as<Str>(attr(b, f.notes.attrs, "returns"));
  if (returns && returns->value != "int" && returns->value != "void") {
    diag.error(f.at, "@{}: returns {}: expected \"int\" or \"void\"", b.text(f.name), quote(returns->value));
    return {};
  }
  const Part *impl = impl_of(f);
  if (!impl) {
    std::string symbol = *foreign_symbol(b, f);
    if (identifier(symbol) != symbol) {
      diag.error(f.at, "@{} has no impl, and {} is no name of a C function: attr symbol = \"..\" names one",
                 b.text(f.name), quote(symbol));
      return {};
    }
    out.dims.assign(f.dims.size(), true);
    out.fails = returns && returns->value == "int";
    out.text = signature(fmt::format("extern \"C\" {} {}(", out.fails ? "int" : "void", symbol), args, taken, ";\n");
    return out;
  }
  std::string body;
  for (const Stmt *s : impl->body) {
    std::string line;
    if (auto *c = as<Code>(s); c && !fill(b, f, *c, args, cuda, out, line, diag)) return {};
    body += "  " + line + "\n";
  }
  std::string unused;
  for (size_t i = 0; i < args.size(); i++) {
    bool dim = i < f.dims.size();
    if (dim) out.dims.push_back(args[i].used), taken[i] = args[i].used;
    else if (!args[i].used) unused += fmt::format("  (void){};\n", args[i].ident);
  }
  std::string head = fmt::format("static {} {}(", out.fails ? "int" : "void", ident);
  if (out.stream) args.insert(args.begin(), {Sym{}, "cudaStream_t ", "stream"}), taken.insert(taken.begin(), true);
  out.text = signature(head, args, taken, " {\n") + unused + body + (out.fails ? "  return 0;\n}\n" : "}\n");
  return out;
}

}  // namespace mlc
