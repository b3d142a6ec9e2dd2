// dispatch: operators and kernels become calls of library functions whose description they are.
#include "base/first_error.h"
#include "base/shipped.h"
#include "check/check.h"
#include "dispatch/dispatch.h"
#include "pass/pass.h"
#include "target/target.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"library,l", "NAME", "look for the functions of blas, onednn, cublaslt, or of a FILE.mlc; repeated"},
    {"target", "TARGET", "use functions that are for this machine too"},
};

// A library by its name, or a file; its items are nodes of b.
bool add_library(Build &b, const std::string &name, std::vector<Module> &all, Diag &diag) {
  std::string known;
  for (const ShippedText &s : texts_of_dispatch()) known += (known.empty() ? "" : ", ") + std::string(s.name);
  bool file = name.find('/') != name.npos || name.ends_with(".mlc");
  const ShippedText *shipped = nullptr;
  for (const ShippedText &s : texts_of_dispatch())
    if (!file && s.name == name) shipped = &s;
  if (!file && !shipped) {
    diag.error(kNowhere, "there is no library {}; mlc has {}, and takes a FILE.mlc", name, known);
    return false;
  }
  auto *source = new Source(shipped ? Source::from_string(name + ".mlc", shipped->text) : Source::open(name));
  Diag own("dispatch", source);
  Module m;
  if (!source->error.empty()) {
    diag.error(kNowhere, "{}: {}", name, source->error);
    return false;
  }
  if (!read(b, *source, m, own) || !check(b, m, own)) {
    std::string why = first_error(own);
    diag.error(kNowhere, "{}", why.empty() ? name + ": no module" : why);
    return false;
  }
  all.push_back(std::move(m));
  return true;
}

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  std::vector<Module> libraries;
  for (const std::string &name : options.all("library"))
    if (!add_library(b, name, libraries, diag)) return;
  std::vector<std::string> targets;  // the one that is compiled for, and its bases
  std::string name = options.get("target");
  while (!name.empty()) {
    std::string error;
    auto t = find_target(b, &m, name, &error);
    if (!t) return diag.error(kNowhere, "{}", error);
    targets.push_back(t->name);
    name = t->base;
  }
  auto usable = [&](const Func &f) {
    return !f.target || std::find(targets.begin(), targets.end(), b.text(f.target)) != targets.end();
  };
  dispatch(b, m, libraries, usable, diag);
}

}  // namespace

extern const Pass pass_dispatch;
const Pass pass_dispatch = {"dispatch", "Map operators and kernels to library functions", kOptions, run};

}  // namespace mlc
