// Operators: shape rules against shapes that ONNX's specification and numpy give, and the kernels that are written.
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "check/check.h"
#include "interp/interp.h"
#include "text/text.h"

namespace mlc {
namespace {

// One use, written as text:  use("x: f32[n, 3], w: f32[4, 3]", "y: f32[n, 4] = Gemm(x, w) {transB = 1}")
// Result types in the text need only be there where the operator does not know them: `y: f32[] = ..` will do.
class Ops : public ::testing::Test {
 protected:
  Build b;
  Module m;

  OpUse use(std::string_view params, std::string_view line, std::string_view constants = "") {
    std::string text = fmt::format("mlc 1\n{}\ngraph @g[{}]({}) -> () {{\n  {}\n}}\n", constants, dims_, params, line);
    m = Module();
    auto *source = new Source(Source::from_string("test", text));
    Diag diag("test", source);
    if (!read(b, *source, m, diag)) throw std::runtime_error(diag.messages().empty() ? "?" : diag.messages()[0] + text);
    const Func *f = m.func(b.sym("g"));
    const Let &let = to<Let>(f->body[0]);
    const Call &call = to<Call>(let.value);
    std::vector<const Type *> types;
    for (const Expr *a : call.args) {
      const Type *t = nullptr;
      if (auto *n = as<Name>(a))
        for (const Param &p : f->params)
          if (p.def.name == n->name) t = p.def.type;
      if (auto *g = as<Global>(a)) t = m.constant(g->name)->type;
      types.push_back(t);
    }
    const OpInfo *op = find_op(b.text(call.callee));
    if (!op) throw OpError(fmt::format("no operator {}", b.text(call.callee)));
    OpUse u(b, *op, types, call.args, let.attrs, &m);
    for (const Def &d : let.defs) u.results.push_back(d.name);
    u.wanted = let.defs[0].type;
    return u;
  }

  // The types of the results, and what is assumed: "f32[n, 4] | assume n == m"
  std::string shape(std::string_view params, std::string_view line, std::string_view constants = "") {
    try {
      OpUse u = use(params, line, constants);
      std::string out;
      for (const Type *t : infer(u)) out += (out.empty() ? "" : ", ") + print(b, t);
      for (const Expr *e : u.assumptions) out += " | assume " + print(b, e);
      return out;
    } catch (const OpError &e) {
      return std::string("error: ") + e.what();
    }
  }

  // The kernel of one use.
  std::string kernel(std::string_view params, std::string_view line, std::string_view constants = "") {
    try {
      OpUse u = use(params, line, constants);
      auto types = infer(u);
      types.resize(std::min(types.size(), u.result_count()));
      return "\n" + print(b, op_kernel(u, types, b.sym("k"), {}).kernel);
    } catch (const OpError &e) {
      return std::string("error: ") + e.what();
    }
  }

  // Runs `graph @main() -> (..) { .. }` without inputs: the elements of its results.
  std::vector<std::vector<double>> run(std::string_view text) {
    m = Module();
    auto *source = new Source(Source::from_string("test", fmt::format("mlc 1\n{}", text)));
    Diag diag("test", source);
    if (!read(b, *source, m, diag) || !check(b, m, diag)) throw std::runtime_error(diag.messages()[0]);
    std::vector<Array> results;
    RunFault fault;
    if (!mlc::run(b, m, *entry(b, m), {}, {}, results, fault)) throw std::runtime_error(fault.message);
    std::vector<std::vector<double>> out;
    for (const Array &a : results) {
      out.emplace_back();
      for (int64_t i = 0; i < a.size(); ++i) out.back().push_back(cast(a, DType::F64).as<double>()[size_t(i)]);
    }
    return out;
  }

  std::string dims_ = "n, m";
};

TEST_F(Ops, TableIsWellFormed) {
  std::string_view before;
  for (const OpInfo &op : all_ops()) {
    EXPECT_LT(before, op.name);
    before = op.name;
    EXPECT_EQ(find_op(op.name), &op);
    EXPECT_TRUE(op.shape && (op.define || op.inputs[0].type == "str" || op.name == "ImageDecoder")) << op.name;
    auto known = [&](const std::string &type) {
      bool variable = type == "size" || dtype_named(type) != DType::Invalid;
      for (const TypeVar &v : op.types) variable = variable || v.name == type;
      return variable;
    };
    for (auto *list : {&op.inputs, &op.outputs})
      for (const Operand &o : *list) {
        EXPECT_TRUE(known(o.type)) << op.name << " " << o.name;
        EXPECT_EQ(print_name(b, b.sym(o.name)), o.name) << op.name;  // no reserved word
      }
    for (const AttrSpec &a : op.attrs) EXPECT_NE(std::string_view("ifsvmIFS").find(a.type), std::string::npos) << op.name;
    std::string error;
    if (!op.expression.empty()) {
      EXPECT_TRUE(read_expr(b, op.expression, &error)) << op.name << ": " << error;
    }
  }
  EXPECT_EQ(find_op("NoSuch"), nullptr);
}

TEST_F(Ops, Elementwise) {
  EXPECT_EQ(shape("x: f32[n, 3]", "y: f32[] = Relu(x)"), "f32[n, 3]");
  EXPECT_EQ(shape("x: f32[n, 3], c: f32[4, 1, 1]", "y: f32[] = Add(x, c)"), "f32[4, n, 3]");
  EXPECT_EQ(shape("x: f32[n], c: f32[m]", "y: f32[] = Add(x, c)"), "f32[n] | assume n == m");
  EXPECT_EQ(shape("x: f32[3], c: f32[n]", "y: f32[] = Less(x, c)"), "bool[3] | assume n == 3");
  EXPECT_EQ(shape("x: f32[3], c: f32[4]", "y: f32[] = Add(x, c)"), "error: dimension 0 of the inputs: expected 3, found 4");
  EXPECT_EQ(shape("x: f32[3], c: i32[3]", "y: f32[] = Add(x, c)"),
            "error: input 1 (b): expected f32 like the inputs before it, found i32");
  EXPECT_EQ(shape("x: bool[3]", "y: f32[] = Relu(x)"), "error: input 0 (x): expected num, found bool");
  EXPECT_EQ(shape("x: f32[3]", "y: f32[] = Relu(x) {beta = 1}"), "error: unknown attribute 'beta'");
  EXPECT_EQ(shape("x: f32[3]", "y: f32[] = Relu(x, x)"), "error: expected at most 1 inputs, found 2");
  EXPECT_EQ(shape("x: f32[3]", "y: f32[] = Add(x, 1)"), "error: input 1 (b): expected f32, found a literal of another type");
}

TEST_F(Ops, ElementwiseKernels) {
  EXPECT_EQ(kernel("x: f32[n, 3]", "y: f32[] = Relu(x)"), R"(
kernel @k[n](x: f32[n, 3]) -> (y: f32[n, 3]) {
  compute y[i in n, j in 3] = max(x[i, j], 0.0)
})");
  EXPECT_EQ(kernel("x: i8[n]", "y: f32[] = Relu(x)"), R"(
kernel @k[n](x: i8[n]) -> (y: i8[n]) {
  compute y[i in n] = max(x[i], 0)
})");
  EXPECT_EQ(kernel("x: u8[n]", "y: f32[] = Sign(x)"), R"(
kernel @k[n](x: u8[n]) -> (y: u8[n]) {
  compute y[i in n] = where(x[i] > 0, 1, where(x[i] < 0, 255, x[i]))
})");
  EXPECT_EQ(kernel("x: f32[n, 3], c: f32[4, 1, 1]", "y: f32[] = Add(x, c)"), R"(
kernel @k[n](a: f32[n, 3], b: f32[4, 1, 1]) -> (c: f32[4, n, 3]) {
  compute c[i in 4, j in n, k in 3] = a[j, k] + b[i, 0, 0]
})");
  EXPECT_EQ(kernel("x: f16[2]", "y: f32[] = Gelu(x) {approximate = \"tanh\"}"), R"(
kernel @k(x: f16[2]) -> (y: f16[2]) {
  compute y[i in 2] = f16(0.5 * f32(x[i]) * (1.0 + tanh(0.7978846 * (f32(x[i]) + 0.044715 * f32(x[i]) * f32(x[i]) * f32(x[i])))))
})");
  EXPECT_EQ(kernel("x: f32[n]", "y: f32[] = Clip(x, none, 6.0)"), R"(
kernel @k[n](x: f32[n]) -> (y: f32[n]) {
  compute y[i in n] = min(x[i], 6.0)
})");
  EXPECT_EQ(kernel("x: f32[n]", "y: f16[n] = Cast(x)"), R"(
kernel @k[n](x: f32[n]) -> (y: f16[n]) {
  compute y[i in n] = f16(x[i])
})");
  EXPECT_EQ(kernel("x: i64[m]", "y: i64[m] = Add(x, n + 1)"), R"(
kernel @k[m](n: index, a: i64[m]) -> (c: i64[m]) {
  compute c[i in m] = a[i] + i64(n + 1)
})");
}

TEST_F(Ops, Products) {
  EXPECT_EQ(shape("x: f32[n, 8], w: f32[4, 8]", "y: f32[] = Gemm(x, w) {transB = 1}"), "f32[n, 4]");
  EXPECT_EQ(shape("x: f32[n, 8], w: f32[4, 7]", "y: f32[] = Gemm(x, w) {transB = 1}"),
            "error: the dimension summed over: expected 8, found 7");
  EXPECT_EQ(shape("x: f32[2, 1, 3, 4], w: f32[5, 4, 6]", "y: f32[] = MatMul(x, w)"), "f32[2, 5, 3, 6]");
  EXPECT_EQ(shape("x: f32[4], w: f32[5, 4, 6]", "y: f32[] = MatMul(x, w)"), "f32[5, 6]");
  EXPECT_EQ(shape("x: f32[4], w: f32[4]", "y: f32[] = MatMul(x, w)"), "f32[]");
  EXPECT_EQ(kernel("x: f32[n, 8], w: f32[4, 8], b: f32[4]", "y: f32[] = Gemm(x, w, b) {transB = 1}"), R"(
kernel @k[n](a: f32[n, 8], b: f32[4, 8], c: f32[4]) -> (y: f32[n, 4]) {
  compute y[i in n, j in 4] = sum(a[i, k] * b[j, k] for k in 8) + c[j]
})");
  EXPECT_EQ(kernel("x: f16[n, 8], w: f16[8, 4]", "y: f32[] = MatMul(x, w)"), R"(
kernel @k[n](a: f16[n, 8], b: f16[8, 4]) -> (y: f16[n, 4]) {
  compute y[i in n, j in 4] = f16(sum(f32(a[i, k]) * f32(b[k, j]) for k in 8))
})");
}

TEST_F(Ops, Convolutions) {
  auto conv = [&](std::string_view attrs) {
    return shape("x: f32[n, 4, 7, 9], w: f32[6, 4, 3, 3]", fmt::format("y: f32[] = Conv(x, w) {{{}}}", attrs));
  };
  EXPECT_EQ(conv("group = 1"), "f32[n, 6, 5, 7]");
  EXPECT_EQ(conv("pads = [1, 1, 1, 1], strides = [2, 2]"), "f32[n, 6, 4, 5]");
  EXPECT_EQ(conv("dilations = [2, 2], pads = [0, 1, 2, 3]"), "f32[n, 6, 5, 9]");
  EXPECT_EQ(conv("auto_pad = \"SAME_UPPER\", strides = [2, 2]"), "f32[n, 6, 4, 5]");
  EXPECT_EQ(conv("auto_pad = \"VALID\", strides = [2, 2]"), "f32[n, 6, 3, 4]");
  EXPECT_EQ(conv("group = 2"), "error: channels of the input: expected 8, found 4");
  EXPECT_EQ(conv("strides = [0, 1]"), "error: strides and dilations must be at least 1");
  dims_ = "n, h, w";
  EXPECT_EQ(shape("x: f32[n, 4, h, w], k: f32[6, 4, 3, 3]", "y: f32[] = Conv(x, k) {pads = [1, 1, 1, 1]}"), "f32[n, 6, h, w]");
  EXPECT_EQ(shape("x: f32[n, 4, h, w], k: f32[6, 4, 3, 3]", "y: f32[] = Conv(x, k) {pads = [1, 1, 1, 1], strides = [2, 1]}"),
            "f32[n, 6, (h + 1) // 2, w]");
  EXPECT_EQ(shape("x: f32[1, 1, 3, 3], k: f32[1, 2, 3, 3]", "y: f32[] = ConvTranspose(x, k) {strides = [3, 2], output_padding = [1, 1]}"),
            "f32[1, 2, 10, 8]");
  EXPECT_EQ(kernel("x: f32[1, 1, 5, 5], w: f32[2, 1, 3, 3], b: f32[2]", "y: f32[] = Conv(x, w, b) {pads = [1, 1, 1, 1]}"), R"(
kernel @k(x: f32[1, 1, 5, 5], w: f32[2, 1, 3, 3], b: f32[2]) -> (y: f32[1, 2, 5, 5]) {
  alloc padded: f32[1, 1, 7, 7]
  compute padded[i in 1, j in 1, k in 7, l in 7] = where(k >= 1 && k < 6 && l >= 1 && l < 6, x[i, j, k - 1, l - 1], 0.0)
  compute y[i in 1, j in 2, k in 5, l in 5] = sum(padded[i, p, k + q, l + r] * w[j, p, q, r] for p in 1, q in 3, r in 3) + b[j]
})");
}

TEST_F(Ops, Pools) {
  auto pool = [&](std::string_view op, std::string_view attrs) {
    return shape("x: f32[1, 3, 32, 32]", fmt::format("y: f32[] = {}(x) {{{}}}", op, attrs));
  };
  EXPECT_EQ(pool("MaxPool", "kernel_shape = [2, 2]"), "f32[1, 3, 31, 31], i64[1, 3, 31, 31]");
  EXPECT_EQ(pool("AveragePool", "kernel_shape = [3, 3], pads = [2, 2, 2, 2]"), "f32[1, 3, 34, 34]");
  EXPECT_EQ(pool("AveragePool", "ceil_mode = 1, kernel_shape = [3, 3], strides = [2, 2]"), "f32[1, 3, 16, 16]");
  EXPECT_EQ(pool("AveragePool", "auto_pad = \"SAME_LOWER\", kernel_shape = [2, 2]"), "f32[1, 3, 32, 32]");
  EXPECT_EQ(pool("MaxPool", "strides = [2, 2]"), "error: attribute 'kernel_shape' is missing");
  // The last window of an axis may not begin in the padding behind it.
  EXPECT_EQ(shape("x: f32[1, 1, 2]", "y: f32[] = MaxPool(x) {ceil_mode = 1, kernel_shape = [1], strides = [2]}").substr(0, 12),
            "f32[1, 1, 1]");
}

TEST_F(Ops, Reductions) {
  EXPECT_EQ(shape("x: f32[n, 3, 4]", "y: f32[] = ReduceSum(x, [1, -1]) {keepdims = 0}"), "f32[n]");
  EXPECT_EQ(shape("x: f32[n, 3, 4]", "y: f32[] = ReduceSum(x)"), "f32[1, 1, 1]");
  EXPECT_EQ(shape("x: f32[n, 3]", "y: f32[] = ReduceSum(x, []) {noop_with_empty_axes = 1}"), "f32[n, 3]");
  EXPECT_EQ(shape("x: f32[n, 3]", "y: f32[] = ReduceSum(x, [2])"), "error: axis 2 is outside the rank 2");
  EXPECT_EQ(shape("x: f32[n, 3], a: i64[1]", "y: f32[] = ReduceSum(x, a)"),
            "error: input 1 (axes) must be known when compiling");
  EXPECT_EQ(shape("x: f32[n, 3]", "y: f32[] = ReduceMean(x, @a)", "const @a: i64[1] = [1]\n"), "f32[n, 1]");
  EXPECT_EQ(kernel("x: f16[n, 3]", "y: f32[] = ReduceMean(x, [1]) {keepdims = 0}"), R"(
kernel @k[n](x: f16[n, 3]) -> (y: f16[n]) {
  compute y[i in n] = f16(sum(f32(x[i, j]) for j in 3) / 3.0)
})");
  EXPECT_EQ(kernel("x: f32[n, m]", "y: f32[] = ArgMax(x) {axis = 1, keepdims = 0}"), R"(
kernel @k[n, m](x: f32[n, m]) -> (y: i64[n]) {
  alloc m_1: f32[n]
  compute m_1[i in n] = max(x[i, j] for j in m)
  compute y[i in n] = min(where(x[i, j] == m_1[i] || isnan(x[i, j]), i64(j), 9223372036854775807) for j in m)
})");
}

TEST_F(Ops, Softmax) {
  EXPECT_EQ(kernel("x: f32[n, 10]", "y: f32[] = Softmax(x)"), R"(
kernel @k[n](x: f32[n, 10]) -> (y: f32[n, 10]) {
  alloc m: f32[n]
  compute m[i in n] = max(x[i, j] for j in 10)
  alloc e: f32[n, 10]
  compute e[i in n, j in 10] = exp(x[i, j] - m[i])
  alloc s: f32[n]
  compute s[i in n] = sum(e[i, j] for j in 10)
  compute y[i in n, j in 10] = e[i, j] / s[i]
})");
}

TEST_F(Ops, Shapes) {
  EXPECT_EQ(shape("x: f32[n, 16, 4, 4]", "y: f32[] = Reshape(x, [n, -1])"), "f32[n, 256]");
  EXPECT_EQ(shape("x: f32[n, 16, 4, 4]", "y: f32[] = Reshape(x, [0, -1])"), "f32[n, 256]");
  EXPECT_EQ(shape("x: f32[n, 12]", "y: f32[] = Reshape(x, [-1, 3, 4])"), "f32[n, 3, 4]");
  EXPECT_EQ(shape("x: f32[n, 2]", "y: f32[] = Reshape(x, [-1, 4])"), "f32[n // 2, 4] | assume n * 2 % 4 == 0");
  EXPECT_EQ(shape("x: f32[2, 3]", "y: f32[] = Reshape(x, [4, -1])"), "error: 6 elements do not divide by 4");
  EXPECT_EQ(shape("x: f32[2, 3]", "y: f32[] = Reshape(x, [7])"), "error: number of elements: expected 6, found 7");
  EXPECT_EQ(shape("x: f32[n, 3, 4]", "y: f32[] = Flatten(x)"), "f32[n, 12]");
  EXPECT_EQ(shape("x: f32[2, 3, 4]", "y: f32[] = Flatten(x) {axis = 0}"), "f32[1, 24]");
  EXPECT_EQ(shape("x: f32[1, n, 1]", "y: f32[] = Squeeze(x, [0])"), "f32[n, 1]");
  EXPECT_EQ(shape("x: f32[1, n, 1]", "y: f32[] = Squeeze(x)"), "f32[n]");
  EXPECT_EQ(shape("x: f32[n]", "y: f32[] = Unsqueeze(x, [0, -1])"), "f32[1, n, 1]");
  EXPECT_EQ(shape("x: f32[n, 3, 4]", "y: f32[] = Transpose(x)"), "f32[4, 3, n]");
  EXPECT_EQ(shape("x: f32[n, 3], z: f32[m, 3]", "y: f32[] = Concat(x, z) {axis = 0}"), "f32[m + n, 3]");
  EXPECT_EQ(shape("x: f32[7, 2]", "y: f32[], z: f32[], w: f32[] = Split(x) {num_outputs = 3}"), "f32[3, 2], f32[3, 2], f32[1, 2]");
  EXPECT_EQ(shape("x: f32[20, 10, 5]", "y: f32[] = Slice(x, [0, 0], [3, 10], [0, 1])"), "f32[3, 10, 5]");
  EXPECT_EQ(shape("x: f32[20, 10]", "y: f32[] = Slice(x, [20, 0], [0, 9223372036854775807], [0, 1], [-4, 3])"), "f32[5, 4]");
  EXPECT_EQ(shape("x: f32[n, 10]", "y: f32[] = Slice(x, [1], [9223372036854775807], [0])"), "f32[max(n - 1, 0), 10]");
  EXPECT_EQ(shape("x: f32[3, 1]", "y: f32[] = Expand(x, [2, 1, 6])"), "f32[2, 3, 6]");
  EXPECT_EQ(shape("x: f32[n, 3]", "y: f32[] = Tile(x, [2, 3])"), "f32[n * 2, 9]");
  EXPECT_EQ(shape("x: f32[1, 3, 4, 5]", "y: f32[] = Pad(x, [0, 0, 1, 2, 0, 0, 3, 4])"), "f32[1, 3, 8, 11]");
  EXPECT_EQ(shape("x: f32[n, 3, 4]", "y: i64[] = Shape(x) {start = 1}"), "i64[2]");
  EXPECT_EQ(kernel("x: f32[n, 16]", "y: f32[] = Reshape(x, [n, 4, 4])"), R"(
kernel @k[n](x: f32[n, 16]) -> (y: f32[n, 4, 4]) {
  compute y[i in n, j in 4, k in 4] = x[i, j * 4 + k]
})");
  EXPECT_EQ(kernel("x: f32[n, 3, 4]", "y: f32[] = Flatten(x)"), R"(
kernel @k[n](x: f32[n, 3, 4]) -> (y: f32[n, 12]) {
  compute y[i in n, j in 12] = x[i, j // 4, j % 4]
})");
  EXPECT_EQ(kernel("x: f32[n, 3]", "s: i64[] = Shape(x)"), R"(
kernel @k(n: index) -> (y: i64[2]) {
  compute y[i in 2] = where(i == 0, i64(n), i64(3))
})");
}

TEST_F(Ops, Indices) {
  EXPECT_EQ(shape("x: f32[n, 4], ids: i64[2, m]", "y: f32[] = Gather(x, ids)"), "f32[2, m, 4]");
  EXPECT_EQ(shape("x: f32[n, 4], ids: i64[n, 2]", "y: f32[] = GatherElements(x, ids) {axis = 1}"), "f32[n, 2]");
  EXPECT_EQ(shape("x: f32[2, 3, 4], ids: i64[2, 5, 1]", "y: f32[] = GatherND(x, ids) {batch_dims = 1}"), "f32[2, 5, 4]");
  EXPECT_EQ(shape("x: f32[4, 4, 4], ids: i64[2, 1], u: f32[2, 4, 4]", "y: f32[] = ScatterND(x, ids, u)"), "f32[4, 4, 4]");
  EXPECT_EQ(shape("x: f32[4, 4, 4], ids: i64[2, 1], u: f32[2, 4]", "y: f32[] = ScatterND(x, ids, u)"),
            "error: updates of rank 2, expected 3");
  EXPECT_EQ(shape("i: i64[2, 3], v: f32[2]", "y: f32[] = OneHot(i, 10, v) {axis = 1}"), "f32[2, 10, 3]");
  EXPECT_EQ(shape("x: f32[n, 8]", "v: f32[], i: i64[] = TopK(x, [5])"), "f32[n, 5], i64[n, 5]");
  EXPECT_EQ(shape("x: f32[n, 8]", "v: f32[], i: i64[] = TopK(x, [9])"), "error: k is 9, the axis has 8");
  EXPECT_EQ(kernel("x: f32[n, 4], ids: i64[m]", "y: f32[] = Gather(x, ids)"), R"(
kernel @k[n, m](x: f32[n, 4], ids: i64[m]) -> (y: f32[m, 4]) {
  for i in m
  for j in 4 {
    block gather {
      spatial i in m = i
      spatial j in 4 = j
      reads ids[i], x[:, j]
      writes y[i, j]
      id: index = index(ids[i])
      r: index = where(id < 0, id + n, id)
      assume r >= 0 && r < n
      y[i, j] = x[r, j]
    }
  }
})");
  EXPECT_EQ(kernel("x: i64[3]", "y: i64[] = Gather(x, -1)"), R"(
kernel @k(x: i64[3]) -> (y: i64[]) {
  compute y[] = x[2]
})");
}

TEST_F(Ops, SizesThatAreData) {
  EXPECT_EQ(shape("x: f32[n, m]", "k: index, y: i64[2, k] = NonZero(x)"), "index, i64[2, k]");
  EXPECT_EQ(shape("x: f32[n, m]", "y: i64[2, n] = NonZero(x)"), "index, i64[2, y]");
  EXPECT_EQ(shape("x: f32[n, 12], s: i64[2]", "p: index, q: index, y: f32[p, q] = Reshape(x, s)"),
            "index, index, f32[p, q] | assume n * 12 == p * q");
  OpUse u = use("x: bool[n]", "k: index, y: i64[1, k] = NonZero(x)");
  infer(u);
  EXPECT_EQ(print(b, count_kernel(u, b.sym("count"), {}).kernel), R"(kernel @count[n](x: bool[n]) -> (k: i64[]) {
  compute k[] = sum(i64(x[i]) for i in n)
})");
  OpKernel fill = op_kernel(u, infer(u), b.sym("fill"), {});
  EXPECT_EQ(fill.indices.size(), 1u);
  EXPECT_EQ(print(b, fill.kernel).substr(0, 57), "kernel @fill[n](k: index, x: bool[n]) -> (y: i64[1, k]) {");
}

TEST_F(Ops, Larger) {
  dims_ = "n, h, w";
  EXPECT_EQ(shape("x: f32[1, 3, h, w]", "y: f32[] = Resize(x, none, [1.0, 1.0, 2.0, 0.5], none)"), "f32[1, 3, h * 2, w // 2]");
  EXPECT_EQ(shape("q: f32[2, 3, 4, 8], k: f32[2, 3, 6, 8], v: f32[2, 3, 6, 10]", "y: f32[] = Attention(q, k, v)"),
            "f32[2, 3, 4, 10], f32[2, 3, 6, 8], f32[2, 3, 6, 10], f32[2, 3, 4, 6]");
  EXPECT_EQ(shape("x: f32[n, 3, 2], w: f32[1, 20, 2], r: f32[1, 20, 5]", "y: f32[] = LSTM(x, w, r) {hidden_size = 5}"),
            "f32[n, 1, 3, 5], f32[1, 3, 5], f32[1, 3, 5]");
  EXPECT_EQ(shape("a: f32[n, 3, 4], c: f32[n, 4, 5]", "y: f32[] = Einsum(a, c) {equation = \"bij, bjk -> bik\"}"), "f32[n, 3, 5]");
  EXPECT_EQ(shape("x: f32[20, 8, 56, 56]", "y: f32[] = LayoutTransform(x) {map = [n, c, h, w] -> [n, c // 4, h, w, c % 4]}"),
            "f32[20, 2, 56, 56, 4]");
  EXPECT_EQ(shape("x: f32[2, 10, 1]", "y: f32[] = DFT(x, none, 1) {onesided = 1}"), "f32[2, 6, 2]");
}

TEST_F(Ops, ConstantsAreFolded) {
  EXPECT_EQ(kernel("x: f32[n, 8, 5]", "y: f32[] = LayerNormalization(x, @s)", "const @s: f32[5] = 1.0"), R"(
kernel @k[n](x: f32[n, 8, 5], scale: f32[5]) -> (y: f32[n, 8, 5]) {
  alloc mean: f32[n, 8]
  compute mean[i in n, j in 8] = sum(x[i, j, k] for k in 5) / 5.0
  alloc inv: f32[n, 8]
  compute inv[i in n, j in 8] = 1.0 / sqrt(sum((x[i, j, k] - mean[i, j]) * (x[i, j, k] - mean[i, j]) for k in 5) / 5.0 + 1e-05)
  compute y[i in n, j in 8, k in 5] = (x[i, j, k] - mean[i, j]) * inv[i, j] * scale[k]
})");
}

// Known answer of Philox 4x32-10 for key 0 and counter 0 (kat_vectors of Random123): 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
TEST_F(Ops, Philox) {
  auto results = run(R"(graph @main() -> (y: f32[5], s: u64[2]) {
  s0: u64[2] = ConstantOfShape([2]) {value = 0}
  y: f32[5], s: u64[2] = RandomUniform(s0)
}
)");
  std::vector<double> want;
  for (uint32_t u : {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}) want.push_back((u >> 8) * 0x1p-24);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(results[0][i], want[i]);
  EXPECT_EQ(results[1], (std::vector<double>{0, 2}));
}

// Of 1000 draws, as many of each class as its weight says, within four standard deviations.
TEST_F(Ops, MultinomialCounts) {
  for (const char *generator : {"s0: u64[2] = RngSeed() {seed = 3.0}", "s0: u32[625] = MersenneTwister() {seed = 3}"}) {
    std::string type(std::string_view(generator).substr(4, std::string_view(generator).find(' ', 4) - 4));
    auto results = run(fmt::format(R"(const @x: f32[2, 4] = [0.0, 0.6931472, 1.3862944, -inf, 100.0, 0.0, 101.0, -100.0]
graph @main() -> (y: i64[2, 1000], s: {0}) {{
  {1}
  y: i64[2, 1000], s: {0} = Multinomial(@x, s0) {{sample_size = 1000}}
}}
)", type, generator));
    const double kWant[2][4] = {{1 / 7.0, 2 / 7.0, 4 / 7.0, 0}, {1 / (1 + std::exp(1.0)), 0, std::exp(1.0) / (1 + std::exp(1.0)), 0}};
    for (size_t row = 0; row < 2; ++row)
      for (size_t c = 0; c < 4; ++c) {
        double p = kWant[row][c], n = 1000;
        auto begin = results[0].begin() + ptrdiff_t(row * 1000);
        double found = double(std::count(begin, begin + 1000, double(c)));
        EXPECT_NEAR(found, n * p, 4 * std::sqrt(n * p * (1 - p))) << row << " " << c;
      }
  }
}

// numpy: np.mod and C's % of mixed signs; x mod 0 = 0 for integers.
TEST_F(Ops, Integers) {
  auto results = run(R"(const @a: i8[6] = [-4, 7, 5, -128, 100, 3]
const @b: i8[6] = [3, -3, 8, -1, 100, 0]
graph @main() -> (c: i8[6], d: i8[6], e: i8[6], f: i8[6]) {
  c: i8[6] = Mod(@a, @b)
  d: i8[6] = Mod(@a, @b) {fmod = 1}
  e: i8[6] = Div(@a, @b)
  f: i8[6] = Add(@a, @b)
}
)");
  EXPECT_EQ(results[0], (std::vector<double>{2, -2, 5, 0, 0, 0}));
  EXPECT_EQ(results[1], (std::vector<double>{-1, 1, 5, 0, 0, 0}));
  EXPECT_EQ(results[2], (std::vector<double>{-1, -2, 0, -128, 1, 0}));
  EXPECT_EQ(results[3], (std::vector<double>{-1, 4, 13, 127, -56, 3}));
}

// Every operator that is not a line of expressions: the shapes of its results (from ONNX's documentation and the shapes of
// its own test cases), and its kernel, which must read back and pass the verifier.
struct Row {
  const char *params, *line, *shape;
};
constexpr Row kRows[] = {
    // arithmetic, casts
    {"a: f32[n, 3], c: f32[3]", "y: f32[] = Mod(a, c) {fmod = 1}", "f32[n, 3]"},
    {"a: i64[n], c: f32[1]", "y: f32[] = Pow(a, c)", "i64[n]"},
    {"a: f32[n, 1], c: f32[1, 4], d: f32[4]", "y: f32[] = Sum(a, c, d)", "f32[n, 4]"},
    {"a: f16[n, 1], c: f16[1, 4]", "y: f32[] = Mean(a, c)", "f16[n, 4]"},
    {"a: i8[n], c: i8[n]", "y: f32[] = Max(a, c)", "i8[n]"},
    {"a: f32[n]", "y: f32[] = Min(a)", "f32[n]"},
    {"x: f32[n, 3], lo: f32[]", "y: f32[] = Clip(x, lo, 6.0)", "f32[n, 3]"},
    {"x: f32[n, 3, 4], s: f32[3, 1]", "y: f32[] = PRelu(x, s)", "f32[n, 3, 4]"},
    {"x: i8[n], s: i8[n]", "y: f32[] = BitShift(x, s) {direction = \"RIGHT\"}", "i8[n]"},
    {"x: f32[n]", "y: f8e5m2[n] = Cast(x) {saturate = 0}", "f8e5m2[n]"},
    {"x: f32[n], z: u8[2]", "y: u8[n] = CastLike(x, z)", "u8[n]"},
    {"x: f32[n]", "y: u32[n] = BitCast(x)", "u32[n]"},
    {"x: f32[n, 3]", "y: f32[], m: bool[] = Dropout(x, 0.5)", "f32[n, 3], bool[n, 3]"},
    {"x: f32[n, 3], s: u64[2]", "y: f32[], m: bool[], t: u64[] = Dropout(x, 0.5, true, s)", "f32[n, 3], bool[n, 3], u64[2]"},
    // reductions
    {"x: f32[n, 3]", "y: f32[] = ReduceLogSumExp(x, [0])", "f32[1, 3]"},
    {"x: f32[n, 3]", "y: f32[] = ArgMax(x) {axis = -1}", "i64[n, 1]"},
    {"x: i32[n, 3]", "y: f32[] = ArgMin(x) {axis = 1, keepdims = 0, select_last_index = 1}", "i64[n]"},
    {"x: f16[n, 3]", "y: f32[] = CumSum(x, 1) {exclusive = 1, reverse = 1}", "f16[n, 3]"},
    {"x: f32[n, 3]", "y: f32[] = CumProd(x, -1)", "f32[n, 3]"},
    // normalisations
    {"x: f16[n, 3]", "y: f32[] = Softmax(x)", "f16[n, 3]"},
    {"x: f32[n, 3]", "y: f32[] = LogSoftmax(x) {axis = 0}", "f32[n, 3]"},
    {"x: f32[n, 3]", "y: f32[] = Hardmax(x)", "f32[n, 3]"},
    {"x: f16[n, 3, 4], s: f16[4], c: f16[4]", "y: f32[], m: f32[], v: f32[] = LayerNormalization(x, s, c)",
     "f16[n, 3, 4], f32[n, 3, 1], f32[n, 3, 1]"},
    {"x: f32[n, 3, 4], s: f32[3, 4]", "y: f32[] = RMSNormalization(x, s) {axis = 1}", "f32[n, 3, 4]"},
    {"x: f32[n, 4, 7], s: f32[4], c: f32[4]", "y: f32[] = GroupNormalization(x, s, c) {num_groups = 2}", "f32[n, 4, 7]"},
    {"x: f32[n, 4, 7], s: f32[4], c: f32[4]", "y: f32[] = InstanceNormalization(x, s, c)", "f32[n, 4, 7]"},
    {"x: f32[n, 4, 7], s: f32[4], c: f32[4]", "y: f32[] = BatchNormalization(x, s, c, s, c)", "f32[n, 4, 7]"},
    {"x: f32[n, 4, 7], s: f32[4], c: f32[4]",
     "y: f32[], m: f32[], v: f32[] = BatchNormalization(x, s, c, s, c) {training_mode = 1}", "f32[n, 4, 7], f32[4], f32[4]"},
    {"x: f32[5, 5, 5, 5]", "y: f32[] = LRN(x) {size = 3}", "f32[5, 5, 5, 5]"},
    {"x: f32[n, 3]", "y: f32[] = LpNormalization(x) {p = 1}", "f32[n, 3]"},
    {"x: f32[3, 3, 3, 1]", "y: f32[] = MeanVarianceNormalization(x)", "f32[3, 3, 3, 1]"},
    // products, convolutions, pools
    {"a: i32[n, 8], c: i32[8, 4]", "y: f32[] = Gemm(a, c)", "i32[n, 4]"},
    {"a: f64[5, n, 8], c: f64[8, 4]", "y: f32[] = MatMul(a, c)", "f64[5, n, 4]"},
    {"a: u8[4, 3], c: i8[3, 2], z: u8[], v: i8[2]", "y: f32[] = MatMulInteger(a, c, z, v)", "i32[4, 2]"},
    {"a: u8[2, 4], s: f32[], z: u8[], c: u8[4, 3]", "y: f32[] = QLinearMatMul(a, s, z, c, s, z, s, z)", "u8[2, 3]"},
    {"x: f16[1, 4, 5, 5], w: f16[4, 2, 3, 3]", "y: f32[] = Conv(x, w) {group = 2, pads = [1, 1, 1, 1], strides = [2, 2]}",
     "f16[1, 4, 3, 3]"},
    {"x: u8[1, 1, 3, 3], w: u8[1, 1, 2, 2], z: u8[]", "y: f32[] = ConvInteger(x, w, z) {pads = [1, 1, 1, 1]}", "i32[1, 1, 4, 4]"},
    {"x: u8[1, 1, 7, 7], s: f32[], z: u8[], w: u8[1, 1, 1, 1], t: f32[1], v: u8[1]",
     "y: f32[] = QLinearConv(x, s, z, w, t, v, s, z)", "u8[1, 1, 7, 7]"},
    {"x: f32[1, 1, 3, 3], w: f32[1, 2, 3, 3]", "y: f32[] = ConvTranspose(x, w)", "f32[1, 2, 5, 5]"},
    {"x: f32[1, 1, 3, 3], w: f32[1, 2, 3, 3]", "y: f32[] = ConvTranspose(x, w) {auto_pad = \"SAME_UPPER\", strides = [2, 2]}",
     "f32[1, 2, 6, 6]"},
    {"x: f32[1, 1, 5, 5]", "y: f32[], i: i64[] = MaxPool(x) {kernel_shape = [5, 5], pads = [2, 2, 2, 2]}",
     "f32[1, 1, 5, 5], i64[1, 1, 5, 5]"},
    {"x: f16[1, 3, 28, 28]", "y: f32[] = AveragePool(x) {count_include_pad = 1, kernel_shape = [3, 3], pads = [2, 2, 2, 2]}",
     "f16[1, 3, 30, 30]"},
    {"x: f32[1, 3, 32]", "y: f32[] = LpPool(x) {kernel_shape = [2], p = 3}", "f32[1, 3, 31]"},
    {"x: f32[1, 3, 5, 5]", "y: f32[] = GlobalMaxPool(x)", "f32[1, 3, 1, 1]"},
    {"x: f32[1, 3, 5, 5]", "y: f32[] = GlobalAveragePool(x)", "f32[1, 3, 1, 1]"},
    {"x: f32[1, 3, 5, 5]", "y: f32[] = GlobalLpPool(x)", "f32[1, 3, 1, 1]"},
    // shapes
    {"x: f32[2, 3, 4]", "y: f32[] = Reshape(x, [2, 0, 1, -1])", "f32[2, 3, 1, 4]"},
    {"x: f32[2, 3, 4]", "y: f32[] = Flatten(x) {axis = 3}", "f32[24, 1]"},
    {"x: f32[1, 3, 4, 5]", "y: f32[] = Squeeze(x, [0])", "f32[3, 4, 5]"},
    {"x: f32[3, 4, 5]", "y: f32[] = Unsqueeze(x, [2, 4, 5])", "f32[3, 4, 1, 5, 1, 1]"},
    {"x: f32[2, 3, n]", "y: f32[] = Transpose(x) {perm = [2, 0, 1]}", "f32[n, 2, 3]"},
    {"x: f32[2, 3], z: f32[2, n], w: f32[2, 1]", "y: f32[] = Concat(x, z, w) {axis = -1}", "f32[2, n + 4]"},
    {"x: f32[n, 6]", "y: f32[], z: f32[] = Split(x, [2, 4]) {axis = 1}", "f32[n, 2], f32[n, 4]"},
    {"x: f32[20, 10, 5]", "y: f32[] = Slice(x, [20, 10, 4], [0, 0, 1], [0, 1, 2], [-1, -3, -2])", "f32[19, 3, 2]"},
    {"x: f32[3, 1]", "y: f32[] = Expand(x, [3, 4])", "f32[3, 4]"},
    {"x: f32[n, 3]", "y: f32[] = Tile(x, [2, 2])", "f32[n * 2, 6]"},
    {"x: f32[3, 4]", "y: f32[] = Pad(x, [0, 2, 0, -1], 1.0)", "f32[3, 5]"},
    {"x: f32[3, 4]", "y: f32[] = Pad(x, [1, 1], none, [1]) {mode = \"reflect\"}", "f32[3, 6]"},
    {"x: f32[1, 8, 2, 3]", "y: f32[] = DepthToSpace(x) {blocksize = 2, mode = \"CRD\"}", "f32[1, 2, 4, 6]"},
    {"x: f32[1, 2, 4, 6]", "y: f32[] = SpaceToDepth(x) {blocksize = 2}", "f32[1, 8, 2, 3]"},
    {"x: f32[n, 4, 5]", "y: f32[] = Trilu(x, -1) {upper = 0}", "f32[n, 4, 5]"},
    {"x: f32[n, 4, 5]", "y: f32[] = Shape(x) {end = -1}", "i64[2]"},
    {"x: f32[n, 4, 5]", "y: f32[] = Size(x)", "i64[]"},
    {"x: f32[n]", "y: i32[n, 2] = ConstantOfShape([n, 2]) {value = 7}", "i32[n, 2]"},
    {"x: f32[3, 4]", "y: f64[3, 4] = EyeLike(x) {k = 1}", "f64[3, 4]"},
    {"x: f32[n]", "y: i32[5] = Range(10, 0, -2)", "i32[5]"},
    {"x: f32[n]", "y: f32[2] = Range(1.0, 5.0, 2.0)", "f32[2]"},
    {"x: f32[n]", "y: i64[n] = Range(0, n, 1)", "i64[n] | assume n >= 0"},
    {"x: f32[n]", "y: i64[max(n - 2, 0)] = Range(2, n, 1)", "i64[max(n - 2, 0)]"},
    // indices that are data
    {"x: f32[5, 4, 3], i: i32[3]", "y: f32[] = Gather(x, i) {axis = 1}", "f32[5, 3, 3]"},
    {"x: f32[3, 3], i: i64[2, 3]", "y: f32[] = GatherElements(x, i)", "f32[2, 3]"},
    {"x: f32[2, 2], i: i64[2, 2]", "y: f32[] = GatherND(x, i)", "f32[2]"},
    {"x: f32[1, 5], i: i64[1, 2], u: f32[1, 2]", "y: f32[] = ScatterElements(x, i, u) {axis = 1, reduction = \"max\"}", "f32[1, 5]"},
    {"x: f32[4, 4], i: i64[2, 1], u: f32[2, 4]", "y: f32[] = ScatterND(x, i, u) {reduction = \"add\"}", "f32[4, 4]"},
    {"i: i64[3], v: f32[2]", "y: f32[] = OneHot(i, 12, v)", "f32[3, 12]"},
    {"x: f32[4, 4], l: i64[4]", "y: f32[] = ReverseSequence(x, l)", "f32[4, 4]"},
    {"x: f32[3, 4]", "v: f32[], i: i64[] = TopK(x, [3]) {largest = 0}", "f32[3, 3], i64[3, 3]"},
    {"x: f32[3, 4], u: f32[3, 1]", "y: f32[] = TensorScatter(x, u) {axis = 1, mode = \"circular\"}", "f32[3, 4]"},
    {"x: f32[n, 40], b: u8[6, 3, 8], s: f32[6, 3], z: u8[6, 2]", "y: f32[] = MatMulNBits(x, b, s, z) {block_size = 16}", "f32[n, 6]"},
    // quantisation, losses
    {"x: f32[n, 4], s: f32[4], z: i8[4]", "y: f32[] = QuantizeLinear(x, s, z)", "i8[n, 4]"},
    {"x: u8[n, 4], s: f16[]", "y: f32[] = DequantizeLinear(x, s)", "f32[n, 4]"},
    {"x: u4[6, 4], s: f32[3, 4]", "y: f32[] = DequantizeLinear(x, s) {axis = 0, block_size = 2}", "f32[6, 4]"},
    {"x: f32[n]", "y: u8[], s: f32[], z: u8[] = DynamicQuantizeLinear(x)", "u8[n], f32[], u8[]"},
    {"x: f32[3, 5, 2], t: i64[3, 2], w: f32[5]", "y: f32[] = NegativeLogLikelihoodLoss(x, t, w)", "f32[]"},
    {"x: f32[3, 5], t: i32[3]",
     "y: f32[], l: f32[] = SoftmaxCrossEntropyLoss(x, t) {ignore_index = 2, reduction = \"none\"}", "f32[3], f32[3, 5]"},
    // interpolation
    {"x: f32[1, 1, 2, 4]", "y: f32[] = Resize(x, none, [1.0, 1.0, 0.6, 0.6]) {mode = \"linear\"}", "f32[1, 1, 1, 2]"},
    {"x: f32[1, 1, 4, 4]", "y: f32[] = Resize(x, none, none, [9, 10]) {axes = [2, 3], mode = \"cubic\"}", "f32[1, 1, 9, 10]"},
    {"x: f32[1, 1, 2, 2]", "y: f32[] = Resize(x, none, none, [1, 1, 7, 8])", "f32[1, 1, 7, 8]"},
    {"x: f32[1, 1, 4, 4], g: f32[1, 6, 6, 2]", "y: f32[] = GridSample(x, g) {padding_mode = \"reflection\"}", "f32[1, 1, 6, 6]"},
    {"x: f32[3, 4]", "y: f32[] = Einsum(x) {equation = \"ij->i\"}", "f32[3]"},
    {"x: f32[3, 5, 5]", "y: f32[] = Einsum(x) {equation = \"...ii ->...i\"}", "f32[3, 5]"},
    // attention
    {"q: f32[2, 4, 24], k: f32[2, 6, 24], v: f32[2, 6, 30], m: bool[4, 6]",
     "y: f32[] = Attention(q, k, v, m) {is_causal = 1, kv_num_heads = 3, q_num_heads = 3}",
     "f32[2, 4, 30], f32[2, 3, 6, 8], f32[2, 3, 6, 10], f32[2, 3, 4, 6]"},
    {"x: f32[2, 4, 3, 8], c: f32[50, 4], s: f32[50, 4], p: i64[2, 3]", "y: f32[] = RotaryEmbedding(x, c, s, p)", "f32[2, 4, 3, 8]"},
    {"x: f32[2, 3, 8], w: f32[3, 1, 4]", "y: f32[], s: f32[] = CausalConvWithState(x, w)", "f32[2, 3, 8], f32[2, 3, 3]"},
    {"q: f32[1, 5, 8], k: f32[1, 5, 8], v: f32[1, 5, 12]",
     "y: f32[], s: f32[] = LinearAttention(q, k, v) {kv_num_heads = 2, q_num_heads = 2, update_rule = \"linear\"}",
     "f32[1, 5, 12], f32[1, 2, 4, 6]"},
    // recurrent
    {"x: f32[1, 3, 2], w: f32[1, 4, 2], r: f32[1, 4, 4]", "y: f32[], h: f32[] = RNN(x, w, r)", "f32[1, 1, 3, 4], f32[1, 3, 4]"},
    {"x: f32[3, 1, 2], w: f32[1, 18, 2], r: f32[1, 18, 6], l: i32[3]",
     "y: f32[], h: f32[] = GRU(x, w, r, none, l) {layout = 1}", "f32[3, 1, 1, 6], f32[3, 1, 6]"},
    {"x: f32[1, 3, 2], w: f32[2, 20, 2], r: f32[2, 20, 5]",
     "y: f32[], h: f32[], c: f32[] = LSTM(x, w, r) {direction = \"bidirectional\"}", "f32[1, 2, 3, 5], f32[2, 3, 5], f32[2, 3, 5]"},
    {"x: f32[5, 1, 2], w: i8[1, 12, 2], r: i8[1, 12, 3], s: f32[1], z: i8[1], u: f32[1, 12], v: i8[1, 12]",
     "y: f32[], h: f32[], c: f32[] = DynamicQuantizeLSTM(x, w, r, none, none, none, none, none, s, z, u, v)",
     "f32[5, 1, 1, 3], f32[1, 1, 3], f32[1, 1, 3]"},
    // signals
    {"x: f32[1, 10, 10, 2]", "y: f32[] = DFT(x, 8, 1) {inverse = 1}", "f32[1, 8, 10, 2]"},
    {"x: f32[1, 128, 1], w: f32[16]", "y: f32[] = STFT(x, 8, w)", "f32[1, 15, 9, 2]"},
    {"x: f32[n]", "y: f32[10] = HannWindow(10)", "f32[10]"},
    {"x: f32[n]", "y: f32[10] = HammingWindow(10) {periodic = 0}", "f32[10]"},
    {"x: f32[n]", "y: f64[10] = BlackmanWindow(10)", "f64[10]"},
    {"x: f32[n]", "y: f32[9, 8] = MelWeightMatrix(8, 16, 8192, 0.0, 4096.0)", "f32[9, 8]"},
    // images
    {"x: f32[20, 10, 3]", "y: f32[] = CenterCropPad(x, [10, 11, 3])", "f32[10, 11, 3]"},
    {"t: f32[2, 2, 3]", "y: f32[] = AffineGrid(t, [2, 3, 5, 6])", "f32[2, 5, 6, 2]"},
    {"x: f32[1, 5, 5]", "y: f32[] = Col2Im(x, [5, 5], [1, 5])", "f32[1, 1, 5, 5]"},
    {"x: f32[1, 1, 2, 2], i: i64[1, 1, 2, 2]", "y: f32[] = MaxUnpool(x, i) {kernel_shape = [2, 2], strides = [2, 2]}", "f32[1, 1, 4, 4]"},
    {"x: f32[1, 1, 3, 3], w: f32[1, 1, 2, 2], o: f32[1, 8, 4, 4]", "y: f32[] = DeformConv(x, w, o) {pads = [1, 1, 1, 1]}",
     "f32[1, 1, 4, 4]"},
    {"x: f32[1, 1, 10, 10], r: f32[3, 4], i: i64[3]", "y: f32[] = RoiAlign(x, r, i) {output_height = 5, output_width = 5}",
     "f32[3, 1, 5, 5]"},
    {"x: f32[2, 3, 3]", "y: f32[] = Det(x)", "f32[2]"},
    {"x: f32[n, 6]", "y: f32[] = PairProbabilities(x) {classes = 4}", "f32[n, 4]"},
    {"x: f32[n, 9], r: i32[3], f: i32[5], s: f32[5], i: i32[5], t: i32[6, 2], w: f32[6, 2], m: u8[5], z: bool[5]",
     "y: f32[] = TreeEnsemble(x, r, f, s, i, i, t, w, m, z) {aggregate = \"AVERAGE\", depth = 4, n_targets = 2}", "f32[n, 2]"},
    // text
    {"x: str[2, 1], y: str[3]", "z: str[] = StringConcat(x, y)", "str[2, 3]"},
    {"x: str[n]", "k: index, y: str[], l: i64[] = StringSplit(x)", "index, str[n, k], i64[n]"},
    {"x: str[1, n]", "k: index, y: str[] = StringNormalizer(x)", "index, str[1, k]"},
    {"x: str[n, 2]", "y: bool[] = RegexFullMatch(x) {pattern = \"a*\"}", "bool[n, 2]"},
    {"x: i32[n, 6]", "y: f32[] = TfIdfVectorizer(x) {max_gram_length = 2, max_skip_count = 5, min_gram_length = 1, mode = "
     "\"TF\", ngram_counts = [0, 1], ngram_indexes = [3, 0], pool_int64s = [7, 5, 6]}", "f32[n, 4]"},
    {"x: i64[4]", "y: f32[] = TfIdfVectorizer(x) {max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, mode = "
     "\"TFIDF\", ngram_counts = [0], ngram_indexes = [0], pool_int64s = [7], weights = [0.5]}", "f32[1]"},
    {"x: str[n, 3]", "y: str[] = Transpose(x)", "str[3, n]"},
    {"x: str[n, 3], i: i64[2]", "y: str[] = Gather(x, i)", "str[2, 3]"},
    {"x: str[n]", "y: bool[] = Equal(x, \"a\")", "bool[n]"},
    // sizes that are data
    {"x: f32[n, 3]", "k: index, y: i64[] = NonZero(x)", "index, i64[2, k]"},
    {"x: f32[3, 2], c: bool[3]", "k: index, y: f32[] = Compress(x, c) {axis = 0}", "index, f32[k, 2]"},
    {"x: f16[n, 3, h, w], r: f16[k, 5]", "y: f16[] = MaxRoiPool(x, r) {pooled_shape = [2, 3]}", "f16[k, 3, 2, 3]"},
    {"c: f32[1, 6, 4], s: f32[1, 1, 6]", "k: index, y: i64[] = NonMaxSuppression(c, s, 3, 0.5, 0.0)", "index, i64[k, 3]"},
    {"x: f32[6]", "k: index, y: f32[], i: i64[], v: i64[], c: i64[] = Unique(x)", "index, f32[k], i64[k], i64[6], i64[k]"},
    {"x: u8[n]", "h: index, w: index, y: u8[] = ImageDecoder(x)", "index, index, u8[h, w, 3]"},
    // our own
    {"x: f32[n]", "y: f32[] = Copy(x)", "f32[n]"},
    {"x: f32[n]", "y: bool[n, 2] = Fill(true)", "bool[n, 2]"},
    {"x: f32[2, 3]", "y: f32[] = LayoutTransform(x) {map = [i, j] -> [j // 2, i, j % 2]}", "f32[2, 2, 2]"},
    {"x: f32[n]", "s: u64[2] = RngSeed() {seed = 42.0}", "u64[2]"},
    {"s: u64[2]", "y: f32[4, 3], t: u64[2] = RandomUniform(s)", "f32[4, 3], u64[2]"},
    {"s: u64[2]", "y: f16[5], t: u64[2] = RandomNormal(s) {scale = 2.0}", "f16[5], u64[2]"},
    {"p: f32[n], s: u64[2]", "y: bool[n], t: u64[2] = Bernoulli(p, s)", "bool[n], u64[2]"},
    {"x: f32[n]", "s: u32[625] = MersenneTwister() {seed = 42}", "u32[625]"},
    {"x: f32[n, 7], s: u64[2]", "y: i32[n, 3], t: u64[2] = Multinomial(x, s) {sample_size = 3}", "i32[n, 3], u64[2]"},
    {"x: f64[2, 7], s: u32[625]", "y: i64[2, 1], t: u32[625] = Multinomial(x, s)", "i64[2, 1], u32[625]"},
    {"p: f16[n], s: u32[625]", "y: i8[n], t: u32[625] = Bernoulli(p, s)", "i8[n], u32[625]"},
};

TEST_F(Ops, EveryOperator) {
  std::set<std::string> tried = {"Item", "Match"};  // those have no kernel
  for (const Row &row : kRows) {
    SCOPED_TRACE(row.line);
    dims_ = "n";
    EXPECT_EQ(shape(row.params, row.line), row.shape);
    try {
      OpUse u = use(row.params, row.line);
      tried.insert(u.op.name);
      auto types = infer(u);
      types.resize(u.results.size());
      if (!u.op.define) continue;  // of letters or files
      std::vector<OpKernel> kernels{op_kernel(u, types, b.sym("k"), {})};
      if (u.op.count) kernels.push_back(count_kernel(u, b.sym("k"), {}));
      for (const OpKernel &k : kernels) {
        std::string text = "mlc 1\n\n" + print(b, k.kernel) + "\n";
        Source source = Source::from_string("kernel", text);
        Diag diag("test", &source);
        Module written;
        EXPECT_TRUE(read(b, source, written, diag) && check(b, written, diag)) << diag.messages()[0] << "\n" << text;
        EXPECT_EQ(print(b, written), text);
      }
    } catch (const OpError &e) {
      ADD_FAILURE() << e.what();
    }
  }
  for (const OpInfo &op : all_ops()) {
    if (op.expression.empty()) {
      EXPECT_TRUE(tried.count(op.name)) << op.name;
    }
  }
}

// Rules meet sizes and attributes of any value.
TEST_F(Ops, OutOfRange) {
  EXPECT_EQ(shape("x: f32[9223372036854775807, 2]", "y: f32[] = Flatten(x) {axis = 0}"), "error: a dimension of the result overflows");
  EXPECT_EQ(shape("x: f32[1, 1, 4]", "y: f32[] = MaxPool(x) {kernel_shape = [9223372036854775807]}"),
            "error: attribute 'kernel_shape': 9223372036854775807 is out of range");
  EXPECT_EQ(shape("x: f32[4]", "y: f32[] = Split(x) {num_outputs = 9223372036854775807}"), "error: 9223372036854775807 outputs");
  EXPECT_EQ(shape("x: f32[4]", "y: f32[] = Slice(x, [0], [4], [0], [-9223372036854775808])"), "f32[0]");
  EXPECT_EQ(shape("x: f32[4]", "y: f32[] = Resize(x, none, [1e+30])"), "error: 4.000000060189865e+30 is out of range");
  EXPECT_EQ(shape("x: f32[4]", "y: f32[] = Pad(x, [-9, 0])"), "error: a dimension of the result would be -5");
  EXPECT_EQ(shape("x: f32[n, 8]", "y: f32[] = DFT(x, none, [])"), "error: input 2 (axis): expected one integer, found 0");
}

}  // namespace
}  // namespace mlc
