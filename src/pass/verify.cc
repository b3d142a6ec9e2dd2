#include "pass/verify.h"

#include <cstdlib>
#include <string_view>

namespace mlc {

bool verify_wanted() {
  const char *v = getenv("MLC_VERIFY");
  return v && *v && std::string_view(v) != "0";
}

void verify_same(Build &b, const Module &before, const Module &after, const std::string &path, Diag &diag) {
  EquivOptions options;
  options.turns = 20000000;
  EquivSide x{b, before, "the input", path, nullptr}, y{b, after, "the result", path, nullptr};
  EquivReport r = equiv(x, y, options);
  if (r.same) return diag.remark("{}", r.text);
  diag.error(r.side == 0 ? r.at : kNowhere, "MLC_VERIFY: {}", r.text);
}

void report(const EquivReport &r, const EquivSide &a, const EquivSide &b, const std::string &tool, FILE *out) {
  if (r.side < 0) {
    fprintf(out, "mlc-%s: error: %s\n", tool.c_str(), r.text.c_str());
    return;
  }
  Diag diag(tool, (r.side ? b : a).source);
  diag.error(r.at, "{}", r.text);
  diag.print(out);
}

}  // namespace mlc
