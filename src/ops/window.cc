#include "ops/window.h"

namespace mlc {

std::vector<int64_t> per_axis(const OpUse &u, std::string_view name, size_t n, int64_t otherwise) {
  std::vector<int64_t> v = u.attr_ints(name);
  if (v.empty()) v.assign(n, otherwise);
  if (v.size() != n) u.fail(fmt::format("attribute '{}': expected {} integers, found {}", name, n, v.size()));
  return v;
}

Window::Window(OpUse &u, Dims in_, Dims size_, bool ceil) : in(std::move(in_)), size(std::move(size_)), ceil_(ceil) {
  size_t n = in.size();
  if (size.size() != n) u.fail(fmt::format("a kernel of {} dimensions for {} spatial dimensions", size.size(), n));
  stride = per_axis(u, "strides", n, 1);
  dilation = u.op.attr("dilations") ? per_axis(u, "dilations", n, 1) : std::vector<int64_t>(n, 1);
  for (size_t k = 0; k < n; ++k)
    if (stride[k] < 1 || dilation[k] < 1) u.fail("strides and dilations must be at least 1");
  std::vector<int64_t> pads = per_axis(u, "pads", 2 * n, 0);
  std::string mode = u.attr_str("auto_pad");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    u.fail(fmt::format("unknown auto_pad \"{}\"", mode));
  X none = u.lit(0);
  for (size_t k = 0; k < n; ++k) {
    X span = (size[k] - 1) * dilation[k] + 1, step = u.lit(stride[k]);
    if (mode.starts_with("SAME")) {
      X o = ceildiv(in[k], step), total = max((o - 1) * step + span - in[k], none);
      X half = floordiv(total, 2), rest = total - half;
      before.push_back(mode == "SAME_UPPER" ? half : rest);
      after.push_back(mode == "SAME_UPPER" ? rest : half);
      out.push_back(o);
      continue;
    }
    bool given = mode == "NOTSET";
    if (pads[k] < 0 || pads[n + k] < 0) u.fail("pads must not be negative");
    before.push_back(u.lit(given ? pads[k] : 0)), after.push_back(u.lit(given ? pads[n + k] : 0));
    X room = in[k] + before[k] + after[k] - span;
    // Less room than the kernel needs; with ceil_mode a first window that begins inside may go beyond the end.
    int64_t r;
    if (is_const(room, &r) && r <= (ceil ? -stride[k] : -1))
      u.fail(fmt::format("the kernel is larger than spatial dimension {} with its padding", k));
    X o = (ceil ? ceildiv(room, step) : floordiv(room, step)) + 1;
    out.push_back(ceil && stride[k] > 1 ? min(o, ceildiv(in[k] + before[k], step)) : o);
  }
}

bool Window::padded(size_t k) const {
  int64_t p, q;
  return !(is_const(before[k], &p) && is_const(after[k], &q) && p == 0 && q == 0) || (ceil_ && stride[k] > 1);
}
X Window::start(size_t k, X o) const { return o * stride[k] - before[k]; }
X Window::at(size_t k, X o, X t) const { return o * stride[k] + t * dilation[k] - before[k]; }

X Window::inside(Build &b, const Indices &o, const Indices &t) const {
  X all = truth(b, true);
  for (size_t k = 0; k < in.size(); ++k) {
    if (!padded(k)) continue;
    X p = at(k, o[k], t[k]);
    int64_t n;
    if (!(is_const(before[k], &n) && n == 0)) all = all && p >= 0;
    if (!(is_const(after[k], &n) && n == 0) || (ceil_ && stride[k] > 1)) all = all && p < in[k];
  }
  return all;
}

Tensor padded(Define &d, const Tensor &x, const Window &w, X fill) {
  bool any = false;
  Dims dims(x.dims.begin(), x.dims.begin() + 2);
  for (size_t k = 0; k < w.in.size(); ++k) any = any || w.padded(k), dims.push_back(w.in[k] + w.before[k] + w.after[k]);
  if (!any) return x;
  return d.make("padded", x.elem(), dims, [&](const Indices &i) {
    X all = truth(d.b, true);
    Indices at(i.begin(), i.begin() + 2);
    for (size_t k = 0; k < w.in.size(); ++k) {
      X p = i[2 + k] - w.before[k];
      int64_t n;
      if (!(is_const(w.before[k], &n) && n == 0)) all = all && p >= 0;
      if (!(is_const(w.after[k], &n) && n == 0)) all = all && p < w.in[k];
      at.push_back(p);
    }
    return where(all, x(at), fill);
  });
}

}  // namespace mlc
