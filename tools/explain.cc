#include "explain.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <unordered_set>

#include "data/compare.h"
#include "data/npy.h"
#include "ir/edit.h"
#include "ir/walk.h"

namespace mlc {

extern const char explain_script[];

namespace {

namespace fs = std::filesystem;

struct Origin {  // a value of the graph and where it comes from
  std::string value, by;
};

// Values of the graph's own lines, with sizes that its caller can know; in order.
void collect(Stmts body, const Build &b, const std::unordered_set<Sym> &dims, std::vector<Origin> &steps,
             std::vector<Def> &defs) {
  for (const Stmt *s : body) {
    if (auto *d = as<Dataflow>(s)) collect(d->body, b, dims, steps, defs);
    auto *l = as<Let>(s);
    if (!l) continue;
    for (const Def &d : l->defs) {
      std::unordered_set<Sym> used;
      collect_names(d.type, used);
      bool known = std::all_of(used.begin(), used.end(), [&](Sym n) { return dims.count(n); });
      if (!known || !d.type->tensor) continue;
      std::vector<std::string> nodes;
      for (Sym f : l->from) nodes.push_back(fmt::format("\"{}\"", b.text(f)));
      if (nodes.empty()) nodes.push_back(fmt::format("of \"{}\"", b.text(d.name)));
      auto *c = as<Call>(l->value);
      steps.push_back({std::string(b.text(d.name)),
                       fmt::format("node {} ({})", fmt::join(nodes, ", "), c ? b.text(c->callee) : "a value")});
      defs.push_back(d);
    }
  }
}

// Makes results of values: each is one already, or becomes one, of the graph and of the dataflow region it is in.
Stmts shown(Build &b, Stmts body, const std::unordered_set<Sym> &names) {
  std::vector<const Stmt *> out;
  for (const Stmt *s : body) {
    auto *d = as<Dataflow>(s);
    if (!d) {
      out.push_back(s);
      continue;
    }
    std::vector<Sym> outputs(d->outputs.begin(), d->outputs.end());
    for (const Stmt *x : d->body)
      if (auto *l = as<Let>(x))
        for (const Def &def : l->defs)
          if (names.count(def.name) && std::find(outputs.begin(), outputs.end(), def.name) == outputs.end())
            outputs.push_back(def.name);
    Dataflow made = *d;
    made.outputs = b.list(outputs), made.body = shown(b, d->body, names);
    out.push_back(b.make(made));
  }
  return b.list(out);
}

void expose(Build &b, Module &m, const std::unordered_set<std::string> *only, std::vector<Origin> &steps) {
  const Func *f = m.func(b.sym("main"));
  if (!f) return;
  std::unordered_set<Sym> dims(f->dims.begin(), f->dims.end()), names;
  std::vector<Def> defs, results(f->results.begin(), f->results.end());
  steps.clear();
  collect(f->body, b, dims, steps, defs);
  for (const Def &d : defs) {
    if (only && !only->count(std::string(b.text(d.name)))) continue;
    names.insert(d.name);
    auto same = [&](const Def &r) { return r.name == d.name; };
    if (std::none_of(results.begin(), results.end(), same)) results.push_back(d);
  }
  Func made = *f;
  made.results = b.list(results), made.body = shown(b, f->body, names);
  std::vector<const Item *> items(m.items.begin(), m.items.end());
  std::replace(items.begin(), items.end(), static_cast<const Item *>(f), static_cast<const Item *>(b.make(made)));
  m.set(std::move(items));
}

std::map<std::string, Array> by_name(const CaseValues &v) {
  std::map<std::string, Array> out;
  for (size_t i = 0; i < v.names.size() && i < v.values.size(); i++) out.emplace(v.names[i], v.values[i]);
  return out;
}

// The first step whose values differ; none: "".
std::string first_difference(const std::vector<Origin> &steps, const std::map<std::string, Array> &found,
                             const std::map<std::string, Array> &expected, const CaseValues &by, size_t *compared) {
  for (const Origin &s : steps) {
    auto x = found.find(s.value), y = expected.find(s.value);
    if (x == found.end() || y == expected.end()) continue;
    ++*compared;
    Comparison c = compare(x->second, y->second, Tolerance::of_suite(y->second.type, by.rtol, by.atol));
    if (!c.same()) return fmt::format("{}: {}", s.by, describe(c, s.value, y->second));
  }
  return "";
}

// What ONNX Runtime or the reference evaluator says; false: neither runs.
bool reference(const std::string &folder, const std::string &python, std::map<std::string, Array> &out,
               std::string &error) {
  std::string dir = (fs::temp_directory_path() / "mlc-explain-XXXXXX").string();
  if (!mkdtemp(dir.data())) return error = strerror(errno), false;
  auto quoted = [](const std::string &s) {
    std::string q = "'";
    for (char c : s) q += c == '\'' ? "'\\''" : std::string(1, c);
    return q + "'";
  };
  std::ofstream(dir + "/script.py") << explain_script;
  std::string line = fmt::format("{} {}/script.py {} {} > {}/names 2> {}/log", python, quoted(dir), quoted(folder),
                                 quoted(dir), quoted(dir), quoted(dir));
  bool ok = system(line.c_str()) == 0;
  std::ifstream names(dir + "/names"), log(dir + "/log");
  std::string type, name;
  for (int i = 0; ok && names >> type && std::getline(names >> std::ws, name); i++) {
    Array a;
    DType want = type == "bfloat16" ? DType::BF16 : DType::Invalid;
    if (read_npy_file(fmt::format("{}/{}.npy", dir, i), want, &a, &error)) out.emplace(name, std::move(a));
  }
  if (!ok) {
    for (std::string l; std::getline(log, l);)
      if (!l.empty()) error = l;
    error = fmt::format("`{}`: {}", python, error);
  }
  std::error_code e;
  fs::remove_all(dir, e);
  return ok;
}

std::string_view route_name(Route r) {
  constexpr std::string_view kNames[] = {"the interpreter", "the kernels",     "the compiled kernels",
                                          "the emitted C++", "the object file", "the CUDA C++"};
  return kNames[size_t(r)];
}

}  // namespace

std::string explain(const std::string &folder, const CaseOptions &options, const std::string &python) {
  std::vector<Origin> steps;
  CaseOptions all = options;
  all.adapt = [&](Build &b, Module &m) { expose(b, m, nullptr, steps); };
  all.route = Route::Interp;
  CaseValues right = case_values(folder, all);
  if (!right.fault.empty()) return "explain: the interpreter does not run it: " + right.fault;
  std::map<std::string, Array> expected = by_name(right);
  std::string out;
  size_t compared = 0;

  if (options.route != Route::Interp) {
    // All values at once; what only goes wrong when a value may vanish into its users, one value at a time.
    all.route = options.route;
    CaseValues found = case_values(folder, all);
    std::string which = first_difference(steps, by_name(found), expected, right, &compared);
    for (size_t i = 0; which.empty() && i < steps.size(); i++) {
      std::unordered_set<std::string> only{steps[i].value};
      std::vector<Origin> unused;
      all.adapt = [&](Build &b, Module &m) { expose(b, m, &only, unused); };
      CaseValues one = case_values(folder, all);
      if (!one.fault.empty()) which = fmt::format("{}: {}", steps[i].by, one.fault);
      else which = first_difference({steps[i]}, by_name(one), expected, right, &compared);
    }
    out = which.empty() ? fmt::format("explain: {} values are the same by {} and by the interpreter", compared,
                                      route_name(options.route))
                        : fmt::format("explain: first difference between {} and the interpreter: {}",
                                      route_name(options.route), which);
    if (!which.empty()) return out;
    out += '\n';
  }
  std::map<std::string, Array> reference_values;
  std::string error;
  if (!reference(folder, python, reference_values, error))
    return out + "explain: the reference does not run: " + error;
  compared = 0;
  std::string which = first_difference(steps, expected, reference_values, right, &compared);
  return out + (which.empty()
                    ? fmt::format("explain: {} values are the same by the interpreter and the reference", compared)
                    : "explain: first difference between the interpreter and the reference: " + which);
}

}  // namespace mlc
