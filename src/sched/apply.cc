#include "sched/apply.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "sched/layout.h"
#include "sched/step.h"
#include "text/text.h"

namespace mlc {

const Func *apply_schedule(Build &b, const Module &m, const Func *f, const Schedule &script,
                           const ScheduleOptions &options, Diag &diag, std::vector<const Step *> &done,
                           std::vector<LayoutChange> &layouts) {
  State s(b, m, f);
  int line = 0;
  for (const Step &step : script.steps) {
    std::string name(b.text(step.call->callee));
    try {
      done.push_back(b.arena.make(run_step(s, step, options.seed, line++, options.unsafe)));
    } catch (const BadStep &e) {
      diag.error(e.at, "{}: {}", name, e.message);
      return nullptr;
    } catch (const Refused &e) {
      diag.error(step.call->at, "{}: {}", name, e.message);
      if (e.at != kNowhere) diag.note(e.at, "here, in kernel @{}", b.text(f->name));
      if (!e.hint.empty()) diag.note(step.call->at, "legal: {}", e.hint);
      return nullptr;
    }
    if (options.each_step) options.each_step(*done.back(), *s.func());
  }
  layouts = s.layouts;
  return s.func();
}

static std::string as_name(const Build &b, const Schedule &s) {
  auto *t = as<Str>(attr(b, s.notes.attrs, "as"));
  return t ? std::string(t->value) : "";
}

// Kernels whose names fit, those that there were before.
static std::vector<const Func *> matches(const Build &b, const Module &m, const std::string &pattern) {
  std::vector<const Func *> out;
  if (pattern.find_first_of("*?[\\") == pattern.npos) {
    const Func *f = m.func(b.names.find(pattern));
    if (f && f->func == FuncKind::Kernel) out.push_back(f);
    return out;
  }
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i); f && f->func == FuncKind::Kernel)
      if (!fnmatch(pattern.c_str(), std::string(b.text(f->name)).c_str(), 0)) out.push_back(f);
  return out;
}
static std::string kernels_of(const Build &b, const Module &m) {
  std::string all;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i); f && f->func == FuncKind::Kernel) all += fmt::format("{}@{}", all.empty() ? "" : ", ", b.text(f->name));
  return all.empty() ? "none" : all;
}

bool apply_schedules(Build &b, Module &m, const ScheduleOptions &options, Diag &diag,
                     std::vector<const Schedule *> *trace) {
  std::vector<const Schedule *> scripts;
  std::vector<const Item *> rest;
  for (const Item *i : m.items) {
    if (auto *s = as<Schedule>(i)) scripts.push_back(s);
    else rest.push_back(i);
  }
  if (scripts.empty()) {
    diag.error(kNowhere, "the module has no schedule");
    return false;
  }
  m.set(rest);
  std::unordered_map<Sym, size_t> place;
  auto find_places = [&] {
    for (size_t i = 0; i < m.items.size(); i++) place[name_of(m.items[i])] = i;
  };
  find_places();
  std::vector<Relaid> relaid;  // whose callers do not follow yet
  std::unordered_set<Sym> names_of_relaid;
  auto follow = [&] {
    std::vector<const Item *> now = m.items;
    bool good = callers_follow(b, now, relaid, diag);
    m.set(now);
    relaid.clear(), names_of_relaid.clear();
    find_places();
    return good;
  };
  for (const Schedule *script : scripts) {
    std::string pattern = options.kernel.empty() ? std::string(b.text(script->name)) : options.kernel;
    if (!pattern.empty() && pattern[0] == '@') pattern.erase(0, 1);
    if (script->target && !options.target.empty() && b.text(script->target) != options.target) {
      diag.remark("schedule @{} is for @{}, left", b.text(script->name), b.text(script->target));
      continue;
    }
    std::vector<const Func *> matching = matches(b, m, pattern);
    if (matching.empty()) {
      diag.error(script->at, "no kernel matches @{}; the module has {}", pattern, kernels_of(b, m));
      return false;
    }
    for (const Func *f : matching) {
      if (names_of_relaid.count(f->name) && !follow()) return false;
      std::vector<const Step *> done;
      std::vector<LayoutChange> layouts;
      const Func *made = apply_schedule(b, m, f, *script, options, diag, done, layouts);
      if (!made) return false;
      if (trace) {
        std::vector<Step> steps;
        for (const Step *s : done)
          steps.push_back(*s);
        trace->push_back(edited(b, *script, [&](Schedule &s) { s.name = f->name, s.steps = b.list(steps); }));
      }
      if (std::string name = as_name(b, *script); !name.empty()) {
        if (m.find(b.sym(name))) {
          diag.error(script->at, "as = \"{}\": the module has @{} already", name, name);
          return false;
        }
        m.add(edited(b, *made, [&](Func &g) { g.name = b.sym(name), g.comment = {}; }));
      } else {
        m.replace(place.at(f->name), made);
        if (!layouts.empty()) relaid.push_back({f, layouts}), names_of_relaid.insert(f->name);
      }
    }
  }
  return relaid.empty() || follow();
}

}  // namespace mlc
