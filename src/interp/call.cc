// Calls: from kernels, of operators, of effects.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interp/exec.h"
#include "interp/machine.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc::interp {

namespace {

Ref ref_of(int k, Frame &f) {
  const BufferInfo &info = f.unit->buffers[size_t(k)];
  const Buffer &b = f.buffer[k];
  Ref r{StorageRef(StorageRef(), b.storage), info.elem, b.data - b.storage->bytes, b.first, {}, {}};
  for (size_t d = 0; d < info.dims.size(); d++)
    r.dims.push_back(f.slot[info.dims[d]]), r.strides.push_back(f.slot[info.strides[d]]);
  return r;
}

Ref region_of(const Operand &o, Frame &f, uint32_t at) {
  Ref whole = ref_of(o.buffer, f);
  if (!o.region) return whole;
  std::vector<int64_t> lo, extent;
  for (size_t d = 0; d < o.lo.size(); d++) {
    lo.push_back(o.lo[d] ? eval<int64_t>(o.lo[d], f) : 0);
    extent.push_back(o.extent[d] ? eval<int64_t>(o.extent[d], f) : o.drop[d] ? 1 : whole.dims[d]);
    if (lo[d] < 0 || extent[d] < 0 || lo[d] > whole.dims[d] - extent[d])
      throw Fault{at,
                  fmt::format("the region of {} is outside: {} +: {} of dimension {}, which is {}",
                              name_of(f, f.unit->buffers[size_t(o.buffer)].name), lo[d], extent[d], d, whole.dims[d])};
  }
  return whole.region(lo, extent, o.drop);
}

}  // namespace

void run_view(const Act &a, Frame &f) {
  const auto &s = *static_cast<const ViewAct *>(a.what);
  const BufferInfo &info = f.unit->buffers[size_t(s.buffer)];
  Ref r = region_of(*s.region, f, a.at);
  for (size_t d = 0; d < info.dims.size(); d++) {
    int64_t n = eval<int64_t>(info.dim_nodes[d], f);
    f.slot[info.dims[d]] = n;
    if (n != r.dims[d])
      throw Fault{a.at, fmt::format("view {}: dimension {} is {}, that of the region {}", name_of(f, info.name), d, n,
                                    r.dims[d])};
  }
  Storage *st = r.storage.get();
  f.buffer[s.buffer] = {st->bytes + r.start, st->shadow ? st->shadow + r.start : nullptr, st, r.first};
}

void run_call(const Act &a, Frame &f) {
  const auto &s = *static_cast<const CallAct *>(a.what);
  Machine &m = *f.machine;
  std::vector<Value> args, into;
  for (const Operand &o : s.args) {
    if (o.value) args.push_back(Value::of(o.value->type, eval_any(o.value, f)));
    else args.push_back(o.buffer >= 0 ? Value::of(region_of(o, f, a.at)) : Value{});
  }
  for (const Operand &o : s.dests) into.push_back(Value::of(region_of(o, f, a.at)));
  if (m.races && !s.callee) {  // a kernel tells its accesses itself
    for (size_t i = 0; i < args.size(); i++)
      if (!args[i].is_scalar() && s.args[i].buffer >= 0)
        access_all(*m.races, args[i].ref, false, a.at, name_of(f, f.unit->buffers[size_t(s.args[i].buffer)].name), f);
    for (size_t i = 0; i < into.size(); i++)
      access_all(*m.races, into[i].ref, true, a.at, name_of(f, f.unit->buffers[size_t(s.dests[i].buffer)].name), f);
  }
  if (s.callee) {
    m.call(*s.callee, std::move(args), std::move(into), a.at);
    return;
  }
  OperatorUse use;
  for (size_t i = 0; i < args.size(); i++)
    use.args.push_back({s.args[i].literal && !s.args[i].value ? s.args[i].literal : nullptr, args[i]});
  std::string_view name = m.b.text(s.stmt->call->callee);
  if (m.call_effect(name, use.args, into, a.at)) return;
  use.name = s.stmt->call->callee, use.attrs = s.stmt->attrs, use.from = s.stmt->from, use.at = a.at;
  use.results = into.size(), use.into = into;
  m.call_operator(std::move(use));
}

// ---- effects

bool Machine::call_effect(std::string_view name, const std::vector<OperatorArg> &args, const std::vector<Value> &into,
                          uint32_t at) {
  if (name == "fill" && args.size() == 1) {
    for (const Value &v : into) {
      Scalar x =
          args[0].literal ? eval(args[0].literal, v.type, [](Sym) { return nullptr; }).scalar : args[0].value.element();
      Ref one = rank0(Value::of(v.type, x), v.type).ref;
      one.dims = v.ref.dims, one.strides.assign(v.ref.rank(), 0);
      copy(v.ref, one);
    }
    return true;
  }
  if (name == "Copy" && args.size() == 1 && into.size() == 1 && !args[0].literal && !args[0].value.is_scalar()) {
    const Ref &from = args[0].value.ref;
    if (from.elem != into[0].ref.elem || from.dims != into[0].ref.dims)
      throw Fault{at, "Copy between buffers of different types"};
    copy(into[0].ref, from);
    return true;
  }
  if (name == "print") {
    if (!options.print) return true;
    std::string line;
    for (const OperatorArg &a : args) {
      if (!line.empty()) line += ' ';
      if (auto *s = as<Str>(a.literal)) line += s->value;
      else if (a.literal) line += print(b, a.literal);
      else if (a.value.is_scalar() || !a.value.ref.rank()) line += print(b, literal(a.value.type, a.value.element()));
      else line += fmt::format("{}[{}]", dtype_name(a.value.type), fmt::join(a.value.ref.dims, ", "));
    }
    fprintf(options.print, "%s\n", line.c_str());
    return true;
  }
  // In sequence everything is done when its line is over.
  constexpr std::string_view kNothing[] = {"wait", "event_record", "event_wait", "synchronize", "prefetch"};
  if (std::find(std::begin(kNothing), std::end(kNothing), name) != std::end(kNothing)) return true;
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z')
    throw Fault{at, fmt::format("{} needs threads side by side, the interpreter runs in sequence", name)};
  return false;
}

// ---- operators

Value Machine::rank0(const Value &v, DType t) {
  Ref r = Ref::dense(memory, t, {}, true);
  store(stored(t), r.data(), 0, v.type == t ? v.scalar : cast(v.scalar, v.type, t));
  return Value::of(r);
}

const Expr *Machine::literal(DType t, Scalar v) {
  if (t == DType::Bool) return b.boolean(v.as_bool());
  if (!is_float(t)) return b.integer(v.as_int(), kNowhere, t == DType::U64 && v.as_int() < 0);
  return b.number(to_double(t, v), t);
}

Machine::Operator Machine::make_operator(const OperatorUse &use, std::vector<size_t> *asked) {
  const OpInfo *op = find_op(b.text(use.name));
  std::vector<const Expr *> args;
  std::vector<const Type *> types;
  std::unordered_map<Sym, size_t> position;
  for (size_t i = 0; i < use.args.size(); i++) {
    const OperatorArg &a = use.args[i];
    if (a.literal || a.value.is_scalar()) {
      args.push_back(a.literal ? a.literal : literal(a.value.type, a.value.scalar));
      types.push_back(nullptr);
      continue;
    }
    std::vector<const Expr *> dims;
    for (int64_t d : a.value.ref.dims) dims.push_back(b.integer(d));
    types.push_back(b.tensor(a.value.type, b.list(dims)));
    Sym s = b.sym(fmt::format("in{}", i));
    position[s] = i;
    args.push_back(b.name(s));
  }
  OpUse u(b, *op, types, b.list(args), use.attrs, nullptr);
  u.wanted = use.wanted;
  for (size_t i = 0; i < use.results; i++) u.results.push_back(b.sym(fmt::format("out{}", i)));
  if (op->count) u.results[0] = b.sym("size");
  u.known = [&](Sym s) -> std::optional<std::vector<const Expr *>> {
    auto it = position.find(s);
    if (it == position.end()) return {};
    const Ref &r = use.args[it->second].value.ref;
    constexpr int64_t kMost = 4096;  // nothing larger is a shape, a list of axes, a list of scales
    std::vector<int64_t> index;
    if (r.count() > kMost || r.find_undefined(&index)) return {};
    if (std::find(asked->begin(), asked->end(), it->second) == asked->end()) asked->push_back(it->second);
    std::vector<const Expr *> v;
    each_element(r,
                 [&](int64_t off, const auto &) { v.push_back(literal(r.elem, load(r.elem, r.data(), size_t(off)))); });
    return v;
  };
  Operator made;
  made.results = infer(u);
  if (made.results.size() > use.results) made.results.resize(use.results);
  made.kernel = op_kernel(u, made.results, use.name, use.from);
  if (op->count) made.count = count_kernel(u, use.name, use.from);
  for (Sym s : made.kernel.indices)
    if (s != b.sym("size")) throw OpError(fmt::format("{} does not follow from the inputs", name(s)));
  return made;
}

std::vector<Value> Machine::call_operator(OperatorUse use) {
  const OpInfo *op = find_op(b.text(use.name));
  if (!op) throw Fault{use.at, fmt::format("no operator {}", b.text(use.name))};
  if (op->define && !has_strings(use)) return compute(std::move(use));
  std::vector<Value> results;
  if (op->define) {
    std::vector<bool> text;
    results = compute(over_numbers(*this, use, text));
    for (size_t i = 0; i < results.size(); i++)
      if (text[i]) results[i].type = results[i].ref.elem = DType::Str;
    return results;
  }
  results = op->name == "ImageDecoder" ? decode_image(*this, use) : text_operator(*this, use);
  for (size_t i = 0; i < use.into.size(); i++) {
    if (use.into[i].text() != results[i].text())
      throw Fault{use.at, fmt::format("{} gives {}, its destination is {}", op->name, results[i].text(),
                                      use.into[i].text())};
    copy(use.into[i].ref, results[i].ref);
  }
  return results;
}

std::vector<Value> Machine::compute(OperatorUse use) {
  std::string_view op = b.text(use.name);
  std::string what(op);
  std::string key(op);
  for (const Attr &a : use.attrs) key += fmt::format(" {}={}", b.text(a.key), print(b, a.value));
  key += fmt::format(" -> {} {}", use.results, use.wanted ? print(b, use.wanted) : "");
  for (Sym s : use.from) key += fmt::format(" {}", s.id);
  for (const OperatorArg &a : use.args) {
    if (a.literal) key += " | " + print(b, a.literal);
    else if (a.value.is_scalar()) key += fmt::format(" | {} {}", dtype_name(a.value.type), a.value.scalar.bits);
    else key += fmt::format(" | {}[{}]", dtype_name(a.value.type), fmt::join(a.value.ref.dims, ","));
  }
  Family &family = operators_[key];
  auto values_key = [&] {
    std::string k;
    for (size_t i : family.asked) {
      k += fmt::format("{}:", i);
      const Ref &r = use.args[i].value.ref;
      each_element(r, [&](int64_t off, const auto &) {
        k += fmt::format("{} ", to_bits(r.elem, load(r.elem, r.data(), size_t(off))));
      });
    }
    return k;
  };
  const Operator *found = nullptr;
  if (auto it = family.known.find(values_key()); it != family.known.end()) {
    found = &it->second;
  } else {
    try {
      Operator made = make_operator(use, &family.asked);
      found = &(family.known[values_key()] = std::move(made));
    } catch (const OpError &e) {
      throw Fault{use.at, fmt::format("{}{}: {}", op, origin(use.from), e.what())};
    }
  }
  auto args_of = [&](const OpKernel &k, std::vector<Value> args) {
    for (size_t i : k.inputs) args.push_back(use.args[i].value);
    return args;
  };
  if (!use.into.empty())
    for (size_t i = 0; i < use.into.size(); i++) {
      std::vector<int64_t> dims;
      if (!all_static(found->results[i], &dims) || dims != use.into[i].ref.dims ||
          found->results[i]->elem != use.into[i].type)
        throw Fault{use.at, fmt::format("{} gives {}, its destination is {}[{}]", op, print(b, found->results[i]),
                                        dtype_name(use.into[i].type), fmt::join(use.into[i].ref.dims, ", "))};
    }
  try {
    if (!found->count)
      return call(*found->kernel.kernel, args_of(found->kernel, {}), std::move(use.into), use.at, what, use.from);
    Value size = call(*found->count->kernel, args_of(*found->count, {}), {}, use.at, what, use.from)[0];
    size = Value::of_index(size.element().as_int());
    std::vector<Value> index(found->kernel.indices.size(), size);
    auto results =
        call(*found->kernel.kernel, args_of(found->kernel, index), std::move(use.into), use.at, what, use.from);
    results.insert(results.begin(), size);
    return results;
  } catch (Fault &e) {
    e.at = use.at;  // the nodes of the definition have no place in this text
    throw;
  }
}

}  // namespace mlc::interp
