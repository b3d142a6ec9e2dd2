#!/usr/bin/env python3
"""Random well-formed ONNX graphs, as cases of mlc-test: onnx_graphs.py FOLDER COUNT SEED

Each graph grows node by node. A maker of OPERATORS picks operands that fit among the values so far and attributes; the
reference evaluator of the onnx package runs the node at once, so every shape is known and a node whose values are of no
use (too large, not finite) is dropped again. What the evaluator gives for the whole graph is the expected output.

Results of floating-point arithmetic are compared with a tolerance, so what jumps (comparisons, rounding, casts to
integers, sorting) only gets values that every order of evaluation gives exactly: see `exact`.
"""
import pathlib
import random
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 21
FLOATS = ("float32", "float64", "float16")
INTS = ("int32", "int64", "int8", "uint8")
NUMBERS = FLOATS + INTS
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 17)
MOST_ELEMENTS = 5000


def exact(a):
    """Small multiples of 1/16: sums and products of a few of them are the same in any order and precision."""
    if a.dtype.kind in "iub":
        return True
    limit = 16 if a.dtype == np.float16 else 512
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(a)) and np.all(np.abs(a) <= limit) and np.all(a * 16 == np.round(a * 16)))


class Value:
    def __init__(self, name, array, is_exact):
        self.name, self.array, self.exact = name, array, is_exact

    dtype = property(lambda v: v.array.dtype.name)
    shape = property(lambda v: v.array.shape)
    rank = property(lambda v: v.array.ndim)


class Graph:
    def __init__(self, rng):
        self.rng, self.nodes, self.values, self.inputs, self.constants = rng, [], [], [], []
        self.count = 0

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    # ---- operands
    def data(self, dtype, shape, low=-4, high=4):
        """Multiples of 1/4 (integers: whole numbers) between low and high."""
        r = np.random.default_rng(self.rng.randrange(1 << 32))
        if dtype == "bool":
            return r.integers(0, 2, shape).astype(bool)
        if np.dtype(dtype).kind == "f":
            return np.asarray(r.integers(low * 4, high * 4 + 1, shape) / 4).astype(dtype)
        low = max(low, 0) if dtype.startswith("u") else low
        return r.integers(low, high + 1, shape).astype(dtype)

    def new(self, array, constant=None):
        """An input, or a constant, that holds the array."""
        constant = self.rng.random() < 0.4 if constant is None else constant
        v = Value(self.fresh("w" if constant else "x"), array, exact(array))
        (self.constants if constant else self.inputs).append(v)
        self.values.append(v)
        return v

    def fixed(self, items, dtype="int64"):
        return self.new(np.array(items, dtype=dtype), constant=True)

    def pick(self, test):
        fits = [v for v in self.values if test(v)]
        return self.rng.choice(fits[-12:]) if fits and self.rng.random() < 0.9 else None

    def some(self, dtypes=NUMBERS, rank=None, need_exact=False, shape=None):
        """A value of one of these types; rank: a number, or (least, most)."""
        low, high = (rank, rank) if isinstance(rank, int) else rank or (0, 5)
        v = self.pick(lambda v: v.dtype in dtypes and low <= v.rank <= high and (v.exact or not need_exact) and
                      (shape is None or v.shape == tuple(shape)))
        if v is None:
            dims = shape if shape is not None else [self.rng.choice(SIZES) for _ in range(self.rng.randint(low, min(high, 4)))]
            v = self.new(self.data(self.rng.choice(dtypes), dims))
        return v

    def broadcast_mate(self, v, dtypes=None):
        """A value of the same type (or of `dtypes`) whose shape broadcasts with that of v."""
        def fits(u):
            return all(a == b or 1 in (a, b) for a, b in zip(u.shape[::-1], v.shape[::-1]))
        mate = self.pick(lambda u: u.dtype in (dtypes or (v.dtype,)) and fits(u))
        if mate is None:
            shape = [d if self.rng.random() < 0.7 else 1 for d in v.shape][self.rng.randint(0, v.rank):]
            mate = self.new(self.data((dtypes or (v.dtype,))[0], shape))
        return mate

    def axis(self, v):
        return self.rng.randint(-v.rank, v.rank - 1)

    def axes(self, v):
        chosen = self.rng.sample(range(v.rank), self.rng.randint(1, v.rank))
        return [a - v.rank if self.rng.random() < 0.3 else a for a in chosen]

    # ---- nodes
    def add(self, op, operands, attributes=None, keeps_exact=False, outputs=1):
        names = [v.name if v else "" for v in operands]
        while names and not names[-1]:
            names.pop()
        results = [self.fresh(op.lower()) for _ in range(outputs)]
        node = helper.make_node(op, names, results, name=f"/{results[0]}", **(attributes or {}))
        feeds = {v.name: v.array for v in operands if v}
        info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
        graph = helper.make_graph([node], "node", info, [helper.make_tensor_value_info(r, TensorProto.UNDEFINED, None) for r in results])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        try:
            arrays = [np.asarray(a) for a in ReferenceEvaluator(model).run(None, feeds)]
        except Exception as e:  # the evaluator's own faults: it cannot say what is right
            REFUSED.add(f"{op}: {e}")
            return False
        for a in arrays:
            if a.size > MOST_ELEMENTS or a.size == 0:
                return False
            if a.dtype.kind == "f" and not (np.all(np.isfinite(a)) and np.max(np.abs(a)) < (500 if a.dtype == np.float16 else 1e4)):
                return False
            if a.dtype.kind in "iu" and np.max(np.abs(a.astype(np.float64))) > 1e6:
                return False
        was = all(v.exact for v in operands if v)
        self.nodes.append(node)
        for name, a in zip(results, arrays):
            self.values.append(Value(name, a, a.dtype.kind in "iub" or (was and keeps_exact and exact(a))))
        return True


OPERATORS = {}
REFUSED = set()


def operator(*names):
    def register(make):
        for name in names:
            OPERATORS[name] = make
        return make
    return register


@operator("Relu", "Neg", "Abs", "Identity", "Sign")
def _(g, op):
    types = FLOATS + (() if op == "Relu" else ("int32", "int64"))
    return g.add(op, [g.some(types, need_exact=op == "Sign")], keeps_exact=True)


@operator("Floor", "Ceil", "Round")
def _(g, op):
    return g.add(op, [g.some(FLOATS, need_exact=True)], keeps_exact=True)


@operator("Sigmoid", "Tanh", "Exp", "Erf", "Softplus", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh", "Mish", "HardSwish",
          "Gelu")
def _(g, op):
    return g.add(op, [g.some(FLOATS[:2])])


@operator("Elu", "LeakyRelu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu")
def _(g, op):
    attributes = {} if op == "Selu" else {"alpha": g.rng.choice((0.25, 0.5, 1.0))}
    return g.add(op, [g.some(("float32",), need_exact=op == "ThresholdedRelu")], attributes)


@operator("Add", "Sub", "Mul", "Min", "Max")
def _(g, op):
    v = g.some(("float32", "float64", "float16", "int32", "int64"))
    return g.add(op, [v, g.broadcast_mate(v)][::g.rng.choice((1, -1))], keeps_exact=True)


@operator("Div", "Pow", "PRelu", "Mod")
def _(g, op):
    v = g.some(("float32", "float64") if op != "Mod" else ("int32", "int64"))
    shape = v.shape[g.rng.randint(0, v.rank):]
    w = g.new(g.data(v.dtype, shape, 1, 3 if op == "Pow" else 4))
    if op == "Pow":
        v = g.new(g.data(v.dtype, v.shape, 1, 3))
    return g.add(op, [v, w])


@operator("Sum", "Mean")
def _(g, op):
    v = g.some(("float32", "float64"))
    mates = [g.broadcast_mate(v) if op == "Sum" else g.some((v.dtype,), rank=v.rank, shape=v.shape) for _ in range(g.rng.randint(0, 2))]
    return g.add(op, [v, *mates], keeps_exact=op == "Sum")


@operator("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def _(g, op):
    v = g.some(("float32", "float64") + INTS, need_exact=True)
    w = g.fixed(0, v.dtype) if g.rng.random() < 0.2 else g.broadcast_mate(v)
    return w.exact and g.add(op, [v, w])


@operator("And", "Or", "Xor")
def _(g, op):
    v = g.some(("bool",))
    return g.add(op, [v, g.broadcast_mate(v)])


@operator("Not")
def _(g, op):
    return g.add(op, [g.some(("bool",))])


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _(g, op):
    v = g.some(INTS)
    return g.add(op, [v, g.broadcast_mate(v)])


@operator("Where")
def _(g, op):
    v = g.some(NUMBERS)
    return g.add(op, [g.broadcast_mate(v, ("bool",)), v, g.broadcast_mate(v)], keeps_exact=True)


@operator("Clip")
def _(g, op):
    v = g.some(("float32", "int32"))
    low, high = (g.fixed(x, v.dtype) if g.rng.random() < 0.7 else None for x in (-1, 2))
    return g.add(op, [v, low, high], keeps_exact=True)


@operator("Cast")
def _(g, op):
    v = g.some(NUMBERS + ("bool",), need_exact=True)
    to = g.rng.choice(NUMBERS + ("bool",))
    if to.startswith("u") and np.any(v.array < 0) or np.any(np.abs(v.array.astype(np.float64)) > 100):
        return False  # what does not fit is up to the machine
    return g.add(op, [v], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}, keeps_exact=True)


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
def _(g, op):
    v = g.some(("float32", "float64") + (("int32", "int64") if op in ("ReduceSum", "ReduceMax", "ReduceMin") else ()), rank=(1, 4))
    axes = g.fixed(sorted(set(a % v.rank for a in g.axes(v)))) if g.rng.random() < 0.8 else None
    return g.add(op, [v, axes], {"keepdims": g.rng.randint(0, 1)}, keeps_exact=op in ("ReduceMax", "ReduceMin", "ReduceSum"))


@operator("ArgMax", "ArgMin")
def _(g, op):
    v = g.some(("float32", "int32"), rank=(1, 4), need_exact=True)
    return g.add(op, [v], {"axis": g.axis(v), "keepdims": g.rng.randint(0, 1), "select_last_index": g.rng.randint(0, 1)})


@operator("Softmax", "LogSoftmax")
def _(g, op):
    v = g.some(FLOATS, rank=(1, 4))
    return g.add(op, [v], {"axis": g.axis(v)})


@operator("Hardmax")
def _(g, op):
    v = g.some(("float32",), rank=(1, 4), need_exact=True)
    return g.add(op, [v], {"axis": g.axis(v)}, keeps_exact=True)


@operator("CumSum")
def _(g, op):
    v = g.some(("float32", "int32"), rank=(1, 3))
    return g.add(op, [v, g.fixed(g.axis(v))], {"exclusive": g.rng.randint(0, 1), "reverse": g.rng.randint(0, 1)}, keeps_exact=True)


@operator("MatMul")
def _(g, op):
    v = g.some(FLOATS, rank=(1, 4))
    lead = v.shape[:-2] if g.rng.random() < 0.5 else ()
    return g.add(op, [v, g.new(g.data(v.dtype, (*lead, v.shape[-1], g.rng.choice(SIZES))))], keeps_exact=True)


@operator("Gemm")
def _(g, op):
    v = g.some(("float32", "float64"), rank=2)
    ta, tb, n = g.rng.randint(0, 1), g.rng.randint(0, 1), g.rng.choice(SIZES)
    k, m = v.shape if ta else v.shape[::-1]
    w = g.new(g.data(v.dtype, (n, k) if tb else (k, n)))
    c = g.new(g.data(v.dtype, g.rng.choice([(n,), (1, n), (m, 1), (m, n), ()]))) if g.rng.random() < 0.7 else None
    return g.add(op, [v, w, c], {"transA": ta, "transB": tb, "alpha": g.rng.choice((1.0, 0.5)), "beta": g.rng.choice((1.0, 0.25))},
                 keeps_exact=True)


def window(g, v):
    """Attributes of a sliding window over the spatial axes of v that leaves something."""
    spatial = v.shape[2:]
    kernel = [g.rng.randint(1, min(3, n)) for n in spatial]
    pads = [g.rng.randint(0, (k - 1) // 2 if k > 1 else 0) for k in kernel]
    return {"kernel_shape": kernel, "strides": [g.rng.randint(1, 2) for _ in spatial], "pads": pads + pads}


@operator("Conv")
def _(g, op):
    v = g.some(("float32",), rank=(3, 4))
    attributes = window(g, v)
    group = g.rng.choice([d for d in range(1, v.shape[1] + 1) if v.shape[1] % d == 0])
    out = group * g.rng.randint(1, 3)
    w = g.new(g.data(v.dtype, (out, v.shape[1] // group, *attributes["kernel_shape"])))
    b = g.new(g.data(v.dtype, (out,))) if g.rng.random() < 0.5 else None
    return g.add(op, [v, w, b], {**attributes, "group": group}, keeps_exact=True)


@operator("MaxPool", "AveragePool")
def _(g, op):
    v = g.some(("float32",), rank=(3, 4))
    attributes = window(g, v)
    if op == "MaxPool" and len(set(attributes["pads"])) > 1:
        attributes["pads"] = [0] * len(attributes["pads"])  # the evaluator mixes up the axes
    return g.add(op, [v], attributes, keeps_exact=op == "MaxPool")


@operator("GlobalAveragePool", "GlobalMaxPool")
def _(g, op):
    rank = (3, 4) if op == "GlobalAveragePool" else 4  # the evaluator loses a dimension of a maximum over one axis
    return g.add(op, [g.some(("float32",), rank=rank)], keeps_exact=op == "GlobalMaxPool")


@operator("LayerNormalization")
def _(g, op):
    v = g.some(("float32",), rank=(2, 4))
    axis = g.rng.randint(1, v.rank - 1)
    return g.add(op, [v, g.new(g.data(v.dtype, v.shape[axis:])), g.new(g.data(v.dtype, v.shape[axis:]))], {"axis": axis, "epsilon": 0.01})


@operator("BatchNormalization", "InstanceNormalization")
def _(g, op):
    v = g.some(("float32",), rank=(3, 4))
    c = (v.shape[1],)
    operands = [v, g.new(g.data(v.dtype, c)), g.new(g.data(v.dtype, c))]
    if op == "BatchNormalization":
        operands += [g.new(g.data(v.dtype, c)), g.new(g.data(v.dtype, c, 1, 4))]
    return g.add(op, operands, {"epsilon": 0.01})


@operator("Transpose")
def _(g, op):
    v = g.some(NUMBERS + ("bool",), rank=(1, 5))
    return g.add(op, [v], {"perm": g.rng.sample(range(v.rank), v.rank)}, keeps_exact=True)


@operator("Reshape")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 5))
    dims, left = [], v.array.size
    while left > 1 and len(dims) < 4:
        d = g.rng.choice([d for d in range(1, left + 1) if left % d == 0])
        dims.append(d)
        left //= d
    dims.append(left)
    if g.rng.random() < 0.5:
        dims[g.rng.randrange(len(dims))] = -1
    return g.add(op, [v, g.fixed(dims)], keeps_exact=True)


@operator("Flatten")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 4))
    return g.add(op, [v], {"axis": g.rng.randint(0, v.rank)}, keeps_exact=True)


@operator("Unsqueeze")
def _(g, op):
    v = g.some(NUMBERS, rank=(0, 3))
    return g.add(op, [v, g.fixed([g.rng.randint(0, v.rank)])], keeps_exact=True)


@operator("Squeeze")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 5))
    ones = [i for i, d in enumerate(v.shape) if d == 1]
    return bool(ones) and g.add(op, [v, g.fixed([g.rng.choice(ones)])], keeps_exact=True)


@operator("Concat")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 4))
    axis = g.axis(v)
    shape = list(v.shape)
    shape[axis] = g.rng.choice(SIZES)
    return g.add(op, [v, g.some((v.dtype,), rank=v.rank, shape=shape)], {"axis": axis}, keeps_exact=True)


@operator("Split")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 4))
    axis = g.axis(v)
    n = v.shape[axis]
    if n < 2:
        return False
    first = g.rng.randint(1, n - 1)
    return g.add(op, [v, g.fixed([first, n - first])], {"axis": axis}, keeps_exact=True, outputs=2)


@operator("Slice")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 4))
    axes = sorted(g.rng.sample(range(v.rank), g.rng.randint(1, v.rank)))
    starts, ends, steps = [], [], []
    for a in axes:
        n, step = v.shape[a], g.rng.choice((1, 1, 2, -1))
        low = g.rng.randint(0, n - 1)
        high = g.rng.randint(low + 1, n)
        starts.append(low if step > 0 else high - 1)
        ends.append(g.rng.choice((high, high - n if high < n else 1 << 40)) if step > 0 else (low - 1 - n if low else -(1 << 40)))
        steps.append(step)
    return g.add(op, [v, g.fixed(starts), g.fixed(ends), g.fixed(axes), g.fixed(steps)], keeps_exact=True)


@operator("Pad")
def _(g, op):
    v = g.some(("float32", "int32"), rank=(1, 4))
    mode = g.rng.choice(("constant", "edge", "reflect"))
    most = [2 if mode == "constant" else min(2, n - 1) for n in v.shape]
    pads = [g.rng.randint(0, m) for m in most * 2]
    return g.add(op, [v, g.fixed(pads)] + ([g.fixed(2, v.dtype)] if mode == "constant" else []), {"mode": mode}, keeps_exact=True)


@operator("Expand")
def _(g, op):
    v = g.some(NUMBERS, rank=(0, 3))
    shape = [d if d > 1 else g.rng.choice(SIZES) for d in v.shape]
    return g.add(op, [v, g.fixed(([g.rng.choice(SIZES)] if g.rng.random() < 0.5 else []) + shape)], keeps_exact=True)


@operator("Tile")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 3))
    return g.add(op, [v, g.fixed([g.rng.randint(1, 3) for _ in v.shape])], keeps_exact=True)


@operator("Gather")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 4))
    axis = g.axis(v)
    indices = g.data("int64", [g.rng.choice(SIZES) for _ in range(g.rng.randint(0, 2))], -v.shape[axis], v.shape[axis] - 1)
    return g.add(op, [v, g.new(indices)], {"axis": axis}, keeps_exact=True)


@operator("GatherElements")
def _(g, op):
    v = g.some(NUMBERS, rank=(1, 4))
    axis = g.axis(v)
    return g.add(op, [v, g.new(g.data("int64", v.shape, 0, v.shape[axis] - 1))], {"axis": axis}, keeps_exact=True)


@operator("ScatterElements")
def _(g, op):
    v = g.some(("float32", "int32"), rank=(1, 3))
    axis = g.rng.randrange(v.rank)
    shape = [g.rng.randint(1, d) for d in v.shape]
    order = np.argsort(np.random.default_rng(g.rng.randrange(1 << 32)).random((*shape[:axis], v.shape[axis], *shape[axis + 1:])), axis)
    indices = np.take(order, range(shape[axis]), axis).astype(np.int64)  # no index twice
    updates = g.new(g.data(v.dtype, shape))
    return g.add(op, [v, g.new(indices), updates], {"axis": axis, "reduction": g.rng.choice(("none", "add"))}, keeps_exact=True)


@operator("OneHot")
def _(g, op):
    v = g.new(g.data("int64", [g.rng.choice(SIZES) for _ in range(g.rng.randint(0, 2))], -3, 4))
    return g.add(op, [v, g.fixed(5), g.fixed([0, 1], "float32")], {"axis": -1}, keeps_exact=True)


@operator("TopK")
def _(g, op):
    v = g.some(("float32", "int32"), rank=(1, 3), need_exact=True)
    axis = g.axis(v)
    return g.add(op, [v, g.fixed([g.rng.randint(1, v.shape[axis])])], {"axis": axis, "largest": g.rng.randint(0, 1)}, keeps_exact=True, outputs=2)


@operator("Trilu")
def _(g, op):
    v = g.some(("float32", "int64"), rank=(2, 4))
    return g.add(op, [v, g.fixed(g.rng.randint(-2, 2))], {"upper": g.rng.randint(0, 1)}, keeps_exact=True)


@operator("DepthToSpace", "SpaceToDepth")
def _(g, op):
    shape = (g.rng.randint(1, 2), 4 * g.rng.randint(1, 2), 2, 3) if op == "DepthToSpace" else (1, g.rng.randint(1, 3), 4, 6)
    v = g.some(("float32",), rank=4, shape=shape)
    return g.add(op, [v], {"blocksize": 2}, keeps_exact=True)


@operator("QuantizeLinear", "DynamicQuantizeLinear")
def _(g, op):
    v = g.some(("float32",), rank=(1, 4), need_exact=True)
    if op == "DynamicQuantizeLinear":
        return False  # its scale is not exact
    return g.add(op, [v, g.fixed(0.5, "float32"), g.fixed(3, g.rng.choice(("int8", "uint8")))])


@operator("DequantizeLinear")
def _(g, op):
    v = g.some(("int8", "uint8"))
    return g.add(op, [v, g.fixed(0.25, "float32"), g.fixed(2, v.dtype)], keeps_exact=True)


@operator("MatMulInteger")
def _(g, op):
    v = g.some(("int8", "uint8"), rank=2)
    return g.add(op, [v, g.new(g.data(v.dtype, (v.shape[1], g.rng.choice(SIZES))))])


@operator("Einsum")
def _(g, op):
    v = g.some(("float32",), rank=3)
    b, i, j = v.shape
    equation, shape = g.rng.choice((("bij,bjk->bik", (b, j, 3)), ("bij,kj->bki", (4, j)), ("bij,bij->b", (b, i, j)), ("bij,i->jb", (i,))))
    return g.add(op, [v, g.new(g.data("float32", shape))], {"equation": equation}, keeps_exact=True)


@operator("DFT")
def _(g, op):
    complex_, dims = g.rng.random() < 0.5, [g.rng.choice(SIZES) for _ in range(g.rng.randint(1, 3))]
    v = g.new(g.data(g.rng.choice(FLOATS[:2]), (*dims, 2 if complex_ else 1)))
    axis = g.rng.randrange(len(dims))
    n = g.rng.choice((None, None, dims[axis] + 2, max(1, dims[axis] // 2), 12))
    return g.add(op, [v, g.fixed(n) if n else None, g.fixed(axis)],
                 {"inverse": g.rng.randint(0, 1), "onesided": int(not complex_ and g.rng.random() < 0.3)})


@operator("Dropout")
def _(g, op):
    v = g.some(("float32", "float64"))
    return g.add(op, [v, g.fixed(g.rng.choice((0.25, 0.5)), v.dtype), g.fixed(True, "bool")], {"seed": g.rng.randint(0, 1 << 32)}, outputs=2)


@operator("Bernoulli", "RandomUniformLike")
def _(g, op):
    v = g.some(("float32",), rank=(1, 4))
    if op == "Bernoulli":
        v = g.new(g.data("float32", v.shape, 0, 1))
    return g.add(op, [v], {"seed": float(g.rng.randint(0, 1000))}, keeps_exact=True)


# ---- a case

def tensor_type(v, shape=None):
    return helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.array.dtype), v.shape if shape is None else shape)


def build(seed):
    """A graph and its operators."""
    rng = random.Random(seed)
    g = Graph(rng)
    wanted = rng.randint(2, 14)
    for _ in range(wanted * 6):
        if len(g.nodes) == wanted:
            break
        op = rng.choice(sorted(OPERATORS))
        values, inputs, constants = len(g.values), len(g.inputs), len(g.constants)
        if not OPERATORS[op](g, op):
            del g.values[values:], g.inputs[inputs:], g.constants[constants:]
    return g


def write(folder, g):
    used = {n for node in g.nodes for n in node.input}
    inputs = [v for v in g.inputs if v.name in used]
    produced = [v for v in g.values if any(v.name in n.output for n in g.nodes)]
    outputs = [v for v in produced if v.name not in used] or produced[-1:]
    model = helper.make_model(
        helper.make_graph(g.nodes, "fuzz", [tensor_type(v) for v in inputs], [tensor_type(v) for v in outputs],
                          [numpy_helper.from_array(v.array, v.name) for v in g.constants if v.name in used]),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model)
    results = ReferenceEvaluator(model).run(None, {v.name: v.array for v in inputs})
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    half = any(v.dtype == "float16" for v in g.values)
    (folder / "tolerance").write_text("2e-2 2e-2\n" if half else "1e-3 1e-4\n")
    for kind, values, arrays in (("input", inputs, [v.array for v in inputs]), ("output", outputs, results)):
        for i, (v, a) in enumerate(zip(values, arrays)):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(a), v.name).SerializeToString())


def main():
    folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    made, ops = 0, set()
    for s in range(seed, seed + count):
        with np.errstate(all="ignore"):
            g = build(s)
            if g.nodes:
                write(folder / f"{s:06}", g)
                made += 1
                ops.update(n.op_type for n in g.nodes)
    print(f"{made} graphs of {len(ops)} operators; the evaluator failed in {len({r.split(':')[0] for r in REFUSED})} of them")
    if "-v" in sys.argv:
        print("\n".join(sorted(REFUSED)))


if __name__ == "__main__":
    main()
