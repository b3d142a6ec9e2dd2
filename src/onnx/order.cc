#include "onnx/importer.h"

namespace mlc::onnx {

void each_read(const Node &n, const std::function<void(Text)> &f) {
  for (Text name : n.inputs)
    if (!name.empty()) f(name);
  for (const Attribute &a : n.attributes) {
    if (n.op == "Gradient" && a.name == "y") f(a.s);
    for (const Graph &g : a.graphs) {
      std::unordered_set<Text> own;
      for (const ValueInfo &v : g.inputs) own.insert(v.name);
      for (const Tensor &t : g.initializers) own.insert(t.name);
      for (const Node &inner : g.nodes) own.insert(inner.outputs.begin(), inner.outputs.end());
      auto outer = [&](Text name) {
        if (!own.count(name)) f(name);
      };
      for (const Node &inner : g.nodes) each_read(inner, outer);
      for (const ValueInfo &v : g.outputs) outer(v.name);
    }
  }
}

namespace {

struct Order {
  const std::vector<Node> &nodes;
  std::unordered_map<Text, size_t> giver;
  std::vector<std::vector<size_t>> needs;  // of the nodes that are wanted
  std::vector<bool> wanted;
  std::vector<size_t> result;

  void give() {
    for (size_t i = 0; i < nodes.size(); ++i)
      for (Text name : nodes[i].outputs)
        if (!name.empty() && !giver.emplace(name, i).second) invalid("value \"{}\" is defined twice", name);
  }
  void want(const std::vector<Text> &names) {
    std::vector<size_t> todo;
    auto add = [&](Text name, std::vector<size_t> *needed) {
      auto it = giver.find(name);
      if (it == giver.end()) return;
      if (needed) needed->push_back(it->second);
      if (!wanted[it->second]) wanted[it->second] = true, todo.push_back(it->second);
    };
    for (Text name : names) add(name, nullptr);
    while (!todo.empty()) {
      size_t i = todo.back();
      todo.pop_back();
      each_read(nodes[i], [&](Text name) { add(name, &needs[i]); });
    }
  }
  // In the order of the file, but each node behind what it needs.
  void sort() {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(nodes.size(), kNew);
    struct Visit { size_t node, next; };
    std::vector<Visit> stack;
    for (size_t first = 0; first < nodes.size(); ++first) {
      if (!wanted[first] || state[first] != kNew) continue;
      state[first] = kOpen, stack.push_back({first, 0});
      while (!stack.empty()) {
        auto &[node, next] = stack.back();
        if (next == needs[node].size()) {
          state[node] = kDone, result.push_back(node), stack.pop_back();
          continue;
        }
        size_t needed = needs[node][next++];
        if (state[needed] == kOpen) {
          std::string cycle;
          size_t from = stack.size() - 1;
          while (stack[from].node != needed) --from;
          for (size_t i = from; i < stack.size(); ++i)
            cycle += (i == from ? "" : ", ") + node_title(nodes[stack[i].node], "", 0);
          invalid("a cycle of nodes: {}", cycle);
        }
        if (state[needed] == kNew) state[needed] = kOpen, stack.push_back({needed, 0});
      }
    }
  }
};

}  // namespace

std::vector<size_t> order(const std::vector<Node> &nodes, const std::vector<Text> &wanted) {
  Order o{nodes, {}, {}, {}, {}};
  o.needs.resize(nodes.size());
  o.wanted.resize(nodes.size());
  o.give();
  o.want(wanted);
  o.sort();
  return std::move(o.result);
}

}  // namespace mlc::onnx
