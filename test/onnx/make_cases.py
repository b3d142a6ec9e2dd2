"""Writes the models of test/case/import, each a few nodes. They are in the repository; this is how they were made.

    python make_cases.py ../case/import
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OUT = pathlib.Path(sys.argv[1])
value = h.make_tensor_value_info
node = h.make_node


def const(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def save(name, nodes, inputs, outputs, initializers=(), opset=17, functions=(), **more):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers), **more)
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid("local", 1)] * bool(functions)
    model = h.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions), producer_name="mlc test")
    onnx.save(model, OUT / f"{name}.onnx")


# Attention heads split and merged: shapes that are computed from shapes.
save("heads", [
    node("MatMul", ["x", "w"], ["q"], "/q/MatMul"),
    node("Shape", ["q"], ["shape"]),
    node("Gather", ["shape", "zero"], ["batch"], axis=0),
    node("Gather", ["shape", "one"], ["length"], axis=0),
    node("Unsqueeze", ["batch", "axes"], ["batch_1"]),
    node("Unsqueeze", ["length", "axes"], ["length_1"]),
    node("Concat", ["batch_1", "length_1", "heads"], ["split_shape"], axis=0),
    node("Reshape", ["q", "split_shape"], ["split"], "/split"),
    node("Transpose", ["split"], ["turned"], "/turn", perm=[0, 2, 1, 3]),
    node("Softmax", ["turned"], ["soft"], "/Softmax", axis=-1),
    node("Mul", ["length", "two"], ["doubled"]),
    node("Unsqueeze", ["doubled", "axes"], ["doubled_1"]),
    node("Concat", ["batch_1", "doubled_1", "rest"], ["merged_shape"], axis=0),
    node("Reshape", ["soft", "merged_shape"], ["y"], "/merge"),
], [value("x", T.FLOAT, ["batch size", "n", 8])], [value("y", T.FLOAT, ["batch size", None, None])], [
    const("w", np.arange(64, dtype=np.float32).reshape(8, 8) / 64), const("zero", np.int64(0)), const("one", np.int64(1)),
    const("two", np.int64(2)), const("axes", np.int64([0])), const("heads", np.int64([2, 4])), const("rest", np.int64([-1]))])

# Operators as opset 6 wrote them; weights listed as inputs too.
save("old", [
    node("Add", ["x", "b"], ["a"], "add", broadcast=1, axis=1),
    node("BatchNormalization", ["a", "s", "b", "b", "s"], ["n"], "bn", is_test=1, epsilon=1e-3),
    node("Clip", ["n"], ["c"], "clip", min=0.0, max=6.0),
    node("Dropout", ["c"], ["d"], "drop", is_test=1, ratio=0.5),
    node("Pad", ["d"], ["p"], "pad", pads=[0, 0, 1, 1, 0, 0, 1, 1], value=-1.0),
    node("Softmax", ["p"], ["y"], "softmax"),
], [value("x", T.FLOAT, ["n", 3, 4, 4]), value("b", T.FLOAT, [3]), value("s", T.FLOAT, [3])],
    [value("y", T.FLOAT, ["n", 3, 6, 6])],
    [const("b", np.float32([0.1, -0.0, 1e-7])), const("s", np.float32([1, 2, np.inf]))], opset=6)

# A branch, a loop that stops by a condition, a scan from the end.
then = h.make_graph([node("Relu", ["x"], ["a"], "relu")], "then", [], [value("a", T.FLOAT, None)])
other = h.make_graph([node("Concat", ["x", "x"], ["b"], "twice", axis=0)], "else", [], [value("b", T.FLOAT, None)])
body = h.make_graph([
    node("Mul", ["s", "half"], ["s1"], "mul"), node("ReduceMax", ["s1"], ["m"], "max", keepdims=0),
    node("Greater", ["m", "half"], ["c1"], "greater")], "body",
    [value("i", T.INT64, []), value("c", T.BOOL, []), value("s", T.FLOAT, [4])],
    [value("c1", T.BOOL, []), value("s1", T.FLOAT, [4]), value("m", T.FLOAT, [])])
step = h.make_graph([node("Add", ["acc", "row"], ["acc1"], "sum"), node("Identity", ["acc1"], ["out"])], "step",
                    [value("acc", T.FLOAT, [4]), value("row", T.FLOAT, [4])],
                    [value("acc1", T.FLOAT, [4]), value("out", T.FLOAT, [4])])
save("control", [
    node("If", ["flag"], ["branch"], "if", then_branch=then, else_branch=other),
    node("Loop", ["", "flag", "zero"], ["last", "trace"], "loop", body=body),
    node("Scan", ["last", "x"], ["total", "sums"], "scan", body=step, num_scan_inputs=1, scan_input_directions=[1]),
], [value("x", T.FLOAT, ["n", 4]), value("flag", T.BOOL, [])],
    [value(v, T.FLOAT, None) for v in ("branch", "trace", "total", "sums")],
    [const("half", np.float32(0.5)), const("zero", np.ones(4, np.float32))])

# A function of the model's own, called twice.
save("function", [
    node("norm", ["x"], ["h"], "first", domain="local", axis=1),
    node("norm", ["h"], ["y"], "second", domain="local", axis=2),
], [value("x", T.FLOAT, ["n", 3, 4])], [value("y", T.FLOAT, ["n", 3, 4])], functions=[h.make_function(
    "local", "norm", ["a"], ["b"], [
        node("Constant", [], ["tiny"], value_float=1e-5),
        node("LpNormalization", ["a"], ["l"], "lp") ,
        node("Softmax", ["l"], ["soft"], "soft"),
        node("Add", ["soft", "tiny"], ["b"], "add")],
    [h.make_opsetid("", 17)], ["axis"])])
model = onnx.load(OUT / "function.onnx")  # attributes that are the function's
for n in model.functions[0].node[1:3]:
    n.attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT))
onnx.save(model, OUT / "function.onnx")

# Shapes that the running program knows, and those that --bind gives.
save("shapes", [
    node("Reshape", ["x", "shape"], ["r"], "reshape"),
    node("ReduceSum", ["r", "axes"], ["y"], "sum"),
], [value("x", T.FLOAT, ["n", 6]), value("shape", T.INT64, [2]), value("axes", T.INT64, ["k"])], [value("y", T.FLOAT, None)])

# All that is wrong, at once.
save("problems", [
    node("Gadget", ["x"], ["a"], "g"), node("Relu", ["x"], ["b"], "r", alpha=0.5), node("Gelu", ["x"], ["c"], "gelu"),
    node("FusedGemm", ["x", "x"], ["d"], "f", domain="com.microsoft"), node("TfIdfVectorizer", ["x"], ["e"], "t", max_gram_length=1,
         max_skip_count=0, min_gram_length=1, mode="TF", ngram_counts=[0], ngram_indexes=[0]),
    node("Flatten", ["x"], ["f"], "flat", axis=3), node("MatMul", ["x", "w"], ["m"]), node("Sum", ["a", "b", "c", "d", "e", "f", "m"], ["y"]),
], [value("x", T.FLOAT, ["n", 4])], [value("y", T.FLOAT, ["n", 4])], [const("w", np.zeros((3, 3), np.float32))])
model = onnx.load(OUT / "problems.onnx")
model.opset_import.append(h.make_opsetid("com.microsoft", 1))
onnx.save(model, OUT / "problems.onnx")

# Sequences and optionals: inputs, outputs, a sequence that a loop makes longer, a body for each element.
def sequence(name, dims):
    return h.make_value_info(name, h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, dims)))


then = h.make_graph([node("OptionalGetElement", ["o"], ["a"], "get")], "then", [], [value("a", T.FLOAT, None)])
other = h.make_graph([node("SequenceAt", ["s", "last"], ["b"], "at")], "else", [], [value("b", T.FLOAT, None)])
body = h.make_graph([
    node("Identity", ["c"], ["c1"]), node("Gather", ["x", "i"], ["row"], "row", axis=0),
    node("SequenceInsert", ["q", "row", "zero"], ["q1"], "grow")], "body",
    [value("i", T.INT64, []), value("c", T.BOOL, []), sequence("q", None)],
    [value("c1", T.BOOL, []), sequence("q1", None)])
each = h.make_graph([node("Mul", ["e", "f"], ["g"], "scale")], "each", [value("e", T.FLOAT, None), value("f", T.FLOAT, None)],
                    [value("g", T.FLOAT, None)])
save("sequences", [
    node("OptionalHasElement", ["o"], ["has"], "has"),
    node("If", ["has"], ["chosen"], "choose", then_branch=then, else_branch=other),
    node("SequenceInsert", ["s", "chosen"], ["s1"], "insert"),
    node("SequenceMap", ["s1", "chosen"], ["scaled"], "map", body=each),
    node("SequenceErase", ["s1", "zero"], ["s2"], "erase"),
    node("ConcatFromSequence", ["s2"], ["joined"], "join", axis=0),
    node("SequenceEmpty", [], ["none"], "none"),
    node("Loop", ["two", "", "none"], ["rows"], "loop", body=body),
    node("ConcatFromSequence", ["rows"], ["stacked"], "stack", axis=-1, new_axis=1),
    node("SplitToSequence", ["x"], ["pieces"], "split", axis=1, keepdims=0),
    node("SequenceLength", ["pieces"], ["count"], "count"),
], [sequence("s", ["n", 4]), h.make_value_info("o", h.make_optional_type_proto(h.make_tensor_type_proto(T.FLOAT, [1, 4]))),
    value("x", T.FLOAT, [2, 4])],
    [sequence("scaled", None), value("joined", T.FLOAT, None), value("stacked", T.FLOAT, None), sequence("pieces", None),
     value("count", T.INT64, [])],
    [const("zero", np.int64(0)), const("last", np.int64(-1)), const("two", np.int64(2))])

# Strings: constants of both kinds, a pool that becomes numbers, labels.
save("strings", [
    node("Constant", [], ["marks"], "marks", value_strings=["!", "?"]),
    node("StringConcat", ["x", "dot"], ["dotted"], "dots"),
    node("Gather", ["marks", "i"], ["mark"], "mark", axis=0),
    node("StringSplit", ["x"], ["words", "counts"], "split", maxsplit=1),
    node("StringNormalizer", ["x"], ["plain"], "normal", case_change_action="LOWER", stopwords=["the", "\u00e9t\u00e9"]),
    node("TfIdfVectorizer", ["plain"], ["found"], "count", max_gram_length=2, max_skip_count=0, min_gram_length=1, mode="TF",
         ngram_counts=[0, 1], ngram_indexes=[0, 1], pool_strings=["a", "b", "a"]),
    node("LabelEncoder", ["x"], ["labels"], "number", domain="ai.onnx.ml", keys_strings=["a", "b"], values_int64s=[5, 7],
         default_int64=-3),
    node("LabelEncoder", ["labels"], ["names"], "name", domain="ai.onnx.ml", keys_int64s=[5], values_strings=["five"]),
], [value("x", T.STRING, ["n"]), value("i", T.INT64, [])],
    [value("dotted", T.STRING, ["n"]), value("mark", T.STRING, []), value("words", T.STRING, None), value("counts", T.INT64, ["n"]),
     value("found", T.FLOAT, None), value("names", T.STRING, ["n"])],
    [h.make_tensor("dot", T.STRING, [1], [b"."])], opset=20)
model = onnx.load(OUT / "strings.onnx")
model.opset_import.append(h.make_opsetid("ai.onnx.ml", 4))
onnx.save(model, OUT / "strings.onnx")
np.save(OUT / "strings_x.npy", np.array(["a", "The B", "b c  d", "\u00e9t\u00e9", ""]))

# What sequences must not leave open.
save("open_sequences", [
    node("SequenceConstruct", ["x", "x"], ["s"], "construct"),
    node("SequenceAt", ["s", "at"], ["a"], "at"),
    node("SplitToSequence", ["x"], ["t"], "split"),
    node("Relu", ["s"], ["r"], "relu"),
    node("SequenceAt", ["s", "five"], ["c"], "outside"),
    node("SequenceConstruct", ["x", "five"], ["u"], "mixed"),
    node("SequenceLength", ["t"], ["l"]), node("SequenceLength", ["u"], ["m"]),
], [value("x", T.FLOAT, ["n", 4]), value("at", T.INT64, [])],
    [value(v, T.FLOAT, None) for v in ("a", "r", "c")] + [value(v, T.INT64, []) for v in ("l", "m")],
    [const("five", np.int64(5))])

# Weights in a file beside the model.
save("external", [node("Add", ["x", "w"], ["y"], "add")], [value("x", T.FLOAT, ["n", 20])], [value("y", T.FLOAT, ["n", 20])],
     [const("w", np.arange(20, dtype=np.float32))])
model = onnx.load(OUT / "external.onnx")
onnx.save(model, OUT / "external.onnx", save_as_external_data=True, location="external.weights", size_threshold=0)


def domains(name, nodes, inputs, outputs, initializers=()):
    save(name, nodes, inputs, outputs, initializers)
    model = onnx.load(OUT / f"{name}.onnx")
    model.opset_import.extend(h.make_opsetid(d, v) for d, v in (("com.microsoft", 1), ("ai.onnx.ml", 3)))
    onnx.save(model, OUT / f"{name}.onnx")


# Operators of other domains; what is wrong with them, at once.
domains("domains", [
    node("SkipLayerNormalization", ["x", "x", "g", "b"], ["n", "", "", "sum"], "skip", domain="com.microsoft"),
    node("MatMulNBits", ["n", "w", "s"], ["m"], "fc", domain="com.microsoft", N=4, K=16, block_size=16),
    node("FastGelu", ["m", "c"], ["f"], "act", domain="com.microsoft"),
    node("LinearClassifier", ["f"], ["label", "scores"], "classify", domain="ai.onnx.ml", coefficients=[1.0, 0.5, -1.0, 2.0, 0.25, -0.5, 1.5, 1.0],
         intercepts=[0.5, -0.5], classlabels_ints=[7, 3], post_transform="SOFTMAX"),
], [value("x", T.FLOAT, ["n", 16])], [value("label", T.INT64, ["n"]), value("scores", T.FLOAT, ["n", 2]), value("sum", T.FLOAT, ["n", 16])],
    [const("g", np.ones(16, np.float32)), const("b", np.zeros(16, np.float32)), const("w", np.arange(32, dtype=np.uint8).reshape(4, 1, 8)),
     const("s", np.float32([[0.5], [0.25], [0.125], [1]])), const("c", np.float32([0, 1, 2, 3]))])
ml = dict(domain="ai.onnx.ml")
domains("domain_problems", [
    node("BeamSearch", ["x"], ["a"], "beam", domain="com.microsoft"), node("Gadget", ["x"], ["b"], "gadget", domain="com.example"),
    node("BiasGelu", ["x"], ["c"], "bias", domain="com.microsoft"), node("QuickGelu", ["x"], ["d"], "quick", domain="com.microsoft", beta=1.0),
    node("RotaryEmbedding", ["x", "x", "x", "x"], ["e"], "rope", domain="com.microsoft", scale=2.0),
    node("LabelEncoder", ["x"], ["f"], "strings", keys_strings=["a"], values_int64s=[1], **ml),
    node("TreeEnsembleRegressor", ["x"], ["g"], "loop", nodes_treeids=[0, 0], nodes_nodeids=[0, 1], nodes_featureids=[0, 0], nodes_values=[1.0, 0.0],
         nodes_modes=["BRANCH_LEQ", "LEAF"], nodes_truenodeids=[0, 0], nodes_falsenodeids=[1, 0], target_treeids=[0], target_nodeids=[1],
         target_ids=[0], target_weights=[1.0], **ml),
    node("TreeEnsembleRegressor", ["x"], ["h"], "child", nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_values=[1.0],
         nodes_modes=["BRANCH_LEQ"], nodes_truenodeids=[5], nodes_falsenodeids=[6], **ml),
    node("Scaler", ["x"], ["i"], "scaler", scale=[1.0], **ml), node("Sum", list("abcdefghi"), ["y"]),
], [value("x", T.FLOAT, ["n", 4])], [value("y", T.FLOAT, ["n", 4])])
