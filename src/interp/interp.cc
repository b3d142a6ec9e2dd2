#include "interp/interp.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "interp/machine.h"

namespace mlc {

using namespace interp;

namespace {

Ref from_array(Machine &m, const Array &a) {
  Ref r = Ref::dense(m.memory, a.type, a.dims, true);
  for (size_t i = 0; i < a.strings.size(); i++)
    store(stored(a.type), r.data(), i, Scalar::of_int(m.strings.number(a.strings[i])));
  memcpy(r.data(), a.bytes.data(), std::min(a.bytes.size(), size_t(r.storage->size)));
  return r;
}

Array to_array(const Machine &m, const Value &v) {
  if (v.is_scalar()) {
    Array a(v.type, {});
    a.set(0, v.scalar);
    return a;
  }
  Array a(v.type, v.ref.dims);
  int64_t i = 0;
  if (v.type == DType::Str) {
    each_element(v.ref, [&](int64_t off, const auto &) {
      a.strings[size_t(i++)] = m.strings.text(load(stored(v.type), v.ref.data(), size_t(off)).as_int());
    });
    return a;
  }
  each_element(v.ref, [&](int64_t off, const auto &) { a.set(i++, load(v.type, v.ref.data(), size_t(off))); });
  return a;
}

template <class F> bool guarded(RunFault &fault, F &&f) {
  try {
    f();
    return true;
  } catch (const Fault &e) {
    fault = {e.at, e.message, e.constant, e.endless, e.race};
  } catch (const std::bad_alloc &) {
    fault = {kNowhere, "out of memory"};
  } catch (const std::length_error &) {
    fault = {kNowhere, "an array is too large"};
  }
  return false;
}

}  // namespace

bool run(Build &b, const Module &m, const Func &entry, const std::vector<Array> &inputs, const RunOptions &options,
         std::vector<Array> &outputs, RunFault &fault) {
  return guarded(fault, [&] {
    Machine machine(b, m, options);
    std::vector<Value> args, results;
    for (int64_t turn = 0; turn < options.repeat; turn++) {
      args.clear(), results.clear();
      for (const Array &a : inputs) args.push_back(Value::of(from_array(machine, a)));
      auto start = std::chrono::steady_clock::now();
      results = machine.call(entry, args, {}, entry.at);
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (options.seconds) options.seconds->push_back(took.count());
    }
    outputs.clear();
    for (const Value &v : results) outputs.push_back(to_array(machine, v));
    size_t next = 0;
    for (const Param &p : entry.params) {
      if (p.mode == Mode::Scratch && args.size() != entry.params.size()) continue;
      if (p.mode == Mode::Inout) outputs.push_back(to_array(machine, args[next]));
      next++;
    }
    fault.turns = machine.turns;
  });
}

bool evaluate(Build &b, const Module &m, const Const &c, const RunOptions &options, Array &out, RunFault &fault) {
  return guarded(fault, [&] {
    Machine machine(b, m, options);
    out = to_array(machine, Value::of(machine.constant(c.name, c.at)));
  });
}

}  // namespace mlc
