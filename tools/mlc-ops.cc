// mlc-ops: the operators, one line each, as grammar/ops.def has them.
//   Relu(x: T) -> (y: T)  T = num  opset 1  elementwise  max(x, 0.0)
#include "onnx/schema.h"
#include "ops/ops.h"
#include "pass/command.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"output,o", "FILE", "write to FILE instead of standard output"},
};

void operands(const std::vector<Operand> &list, std::string &out) {
  for (const Operand &o : list) {
    if (&o != list.data()) out += ", ";
    out += o.name + ": " + o.type + (o.optional ? "?" : o.variadic ? "*" : "");
  }
}

// An attribute without a default is `?` where it may be absent, and stands alone where it must be given.
std::string line(const OpInfo &op) {
  std::string out = op.name + "(";
  operands(op.inputs, out);
  out += ") -> (";
  operands(op.outputs, out);
  out += ")";
  for (const AttrSpec &a : op.attrs) {
    out += &a == op.attrs.data() ? " {" : ", ";
    out += a.name + (a.fallback.empty() ? "" : " = " + a.fallback);
  }
  if (!op.attrs.empty()) out += "}";
  for (const TypeVar &v : op.types) {
    out += (&v == op.types.data() ? "  " : ", ") + v.name + " = " + v.group;
    if (!v.otherwise.empty()) out += " else " + v.otherwise;
  }
  const onnx::Schema *schema = onnx::find_schema(op.name);
  out += schema ? fmt::format("  opset {}", schema->first) : "  own";
  return out + "  " + std::string(pattern_name(op.pattern)) + (op.expression.empty() ? "" : "  " + op.expression) + "\n";
}

int list(const Options &options) {
  std::string text, error;
  for (const std::string &name : options.files) {
    const OpInfo *op = find_op(name);
    if (!op) {
      fmt::print(stderr, "mlc-ops: error: no operator {}\n", name);
      return 1;
    }
    text += line(*op);
  }
  if (options.files.empty())
    for (const OpInfo &op : all_ops()) text += line(op);
  if (write_all(options.get("output"), text, &error)) return 0;
  fmt::print(stderr, "mlc-ops: error: cannot write: {}\n", error);
  return 1;
}

}  // namespace

}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"ops", "list the operators", "[NAME...]", mlc::kOptions, mlc::list});
}
