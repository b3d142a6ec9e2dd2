#!/usr/bin/env python3
"""Writes the cases of test/onnx/domains: operators of other domains, in the form of ONNX's own suite.

    python make_domains.py domains [NAME...]     # needs onnx, onnxruntime, scikit-learn, skl2onnx

Each case is a small model; what is expected comes from ONNX Runtime, for models of scikit-learn from scikit-learn too:
the two must agree. The cases are in the repository; this is how they were made.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OUT = pathlib.Path(sys.argv[1])
ONLY = sys.argv[2:]
TYPES = {np.dtype(k): v for k, v in {
    "float32": T.FLOAT, "float64": T.DOUBLE, "float16": T.FLOAT16, "int64": T.INT64, "int32": T.INT32, "int8": T.INT8,
    "uint8": T.UINT8, "int16": T.INT16, "uint16": T.UINT16, "bool": T.BOOL, "object": T.STRING}.items()}
OPSETS = {"": 17, "ai.onnx.ml": 3, "com.microsoft": 1}
seen = set()


def type_of(array):
    return T.STRING if array.dtype.kind in "UO" else TYPES[array.dtype]


def plain(array):
    return array.astype(object) if array.dtype.kind == "U" else array


def write(name, model, inputs, rtol=1e-3, atol=1e-5, expected=None, reference=None, found=None):
    """The model with its inputs (a dict) and what ONNX Runtime makes of them, unless that is given."""
    assert name not in seen, name
    seen.add(name)
    if ONLY and name not in ONLY:
        return
    if found is None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        text = (reference or model).SerializeToString()
        found = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"]).run(None, inputs)
    if expected is not None:
        for want, got in zip(expected, found):
            np.testing.assert_allclose(np.squeeze(want), np.squeeze(got), rtol=1e-3, atol=1e-4, err_msg=name)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (folder / "tolerance").write_text(f"{rtol} {atol}\n")
    for tag, values, infos in (("input", inputs.values(), inputs), ("output", found, [o.name for o in model.graph.output])):
        for i, (value, info) in enumerate(zip(values, infos)):
            tensor = numpy_helper.from_array(plain(np.asarray(value)), info)
            (data / f"{tag}_{i}.pb").write_bytes(tensor.SerializeToString(deterministic=True))


def case(name, op, inputs, outputs=1, domain="com.microsoft", constants=(), opset=None, rtol=1e-3, atol=1e-5, free=None,
         more=None, nodes=None, **attributes):
    """One node. `inputs`: name -> array, or None where one is left out; those in `constants` are initializers.
    `free`: name -> dimensions with symbols. `nodes`: the same in ONNX's own operators, where the runtime has no such
    operator on a CPU. `outputs`: their number, or their names where some are left out ("")."""
    names = [k if v is not None else "" for k, v in inputs.items()]
    results = outputs if isinstance(outputs, list) else [f"y{i}" if i else "y" for i in range(outputs)]
    given = {k: np.asarray(v) for k, v in inputs.items() if v is not None}
    node = h.make_node(op, names, results, name=op.lower(), domain=domain, **attributes, **(more or {}))
    free = free or {}
    infos = [h.make_tensor_value_info(k, type_of(v), free.get(k, v.shape)) for k, v in given.items() if k not in constants]
    opsets = dict(OPSETS)
    if opset:
        opsets[domain] = opset

    def model(nodes):
        graph = h.make_graph(nodes, name, infos, [onnx.ValueInfoProto(name=r) for r in results if r],
                             [numpy_helper.from_array(given[k], k) for k in constants if k in given])
        return h.make_model(graph, opset_imports=[h.make_opsetid(d, v) for d, v in opsets.items()], ir_version=8,
                            producer_name="mlc test")

    write(name, model([node]), {k: v for k, v in given.items() if k not in constants}, rtol, atol,
          reference=nodes and model(nodes))


rng = np.random.default_rng(0)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def quantized(dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape, dtype=dtype)


# ---- ai.onnx.ml

def ml(name, op, inputs, outputs=1, **more):
    case(name, op, inputs, outputs, domain="ai.onnx.ml", **more)


x = f32(5, 4)
x[1, 2] = 0
ml("scaler", "Scaler", {"x": x}, offset=[0.5, -1.0, 2.0, 0.0], scale=[2.0, 0.25, 1.0, 3.0], free={"x": ["n", 4]})
ml("scaler_one", "Scaler", {"x": np.int64([[1, 2], [3, -4]])}, offset=[0.5], scale=[2.0])
zeros = x.copy()
zeros[3] = 0
for norm in ("MAX", "L1", "L2"):
    ml(f"normalizer_{norm.lower()}", "Normalizer", {"x": np.abs(zeros) if norm == "MAX" else zeros}, norm=norm)
gaps = x.copy()
gaps[0, 1] = gaps[4, 3] = np.nan
ml("imputer_nan", "Imputer", {"x": gaps}, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=np.nan)
ml("imputer_value", "Imputer", {"x": x}, imputed_value_floats=[7.0], replaced_value_float=0.0)
ml("imputer_int", "Imputer", {"x": np.int64([[1, -1], [-1, 5]])}, imputed_value_int64s=[10, 20], replaced_value_int64=-1)
ml("binarizer", "Binarizer", {"x": x}, threshold=0.25)
ml("one_hot_encoder", "OneHotEncoder", {"x": np.int64([[2], [7], [5], [9]])}, cats_int64s=[5, 2, 9], zeros=1)
ml("one_hot_encoder_strings", "OneHotEncoder", {"x": np.array([["b"], ["c"], ["a"]], object)}, cats_strings=["a", "b"], zeros=1)
ml("linear_classifier_strings", "LinearClassifier", {"x": x}, 2, coefficients=[float(v) for v in f32(12)], intercepts=[0.5, 0.25, 0.75],
   classlabels_strings=["dog", "cat", "\u00e9l\u00e9phant"], multi_class=1)
ml("feature_vectorizer", "FeatureVectorizer", {"a": f32(3, 2), "b": f32(3, 3)}, inputdimensions=[2, 3])
ml("array_feature_extractor", "ArrayFeatureExtractor", {"x": f32(3, 5), "i": np.int64([[4, 0, 4]])})
ml("label_encoder_int", "LabelEncoder", {"x": np.int64([[3, 1], [8, 2]])}, keys_int64s=[1, 2, 3], values_int64s=[10, 20, 30],
   default_int64=-7)
ml("label_encoder_float", "LabelEncoder", {"x": np.float32([1.5, np.nan, 2.5, 4])}, keys_floats=[1.5, np.nan, 2.5],
   values_floats=[0.5, 9.0, 0.25], default_float=-1.0, opset=4)
ml("label_encoder_mixed", "LabelEncoder", {"x": np.int64([3, 1, 8])}, keys_int64s=[1, 3], values_floats=[0.5, 1.5])
words = np.array([["b", "a"], ["", "\u00e4"]])
ml("label_encoder_strings", "LabelEncoder", {"x": words}, keys_strings=["a", "b", "\u00e4"], values_strings=["first", "", "third"],
   default_string="none")
ml("label_encoder_string_float", "LabelEncoder", {"x": words}, keys_strings=["a", "b"], values_floats=[0.5, 1.5], free={"x": ["n", 2]})
ml("category_mapper", "CategoryMapper", {"x": words}, cats_int64s=[4, 7], cats_strings=["a", "b"], default_int64=-5)
ml("category_mapper_back", "CategoryMapper", {"x": np.int64([7, 1, 4])}, cats_int64s=[4, 7], cats_strings=["a", "b"])
coefficients = [float(v) for v in f32(12)]
for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"):
    ml(f"linear_regressor_{transform.lower()}", "LinearRegressor", {"x": x}, coefficients=[0.1 * v for v in coefficients] if transform == "PROBIT" else coefficients,
       intercepts=[0.5, 0.25, 0.75], targets=3, post_transform=transform)
for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
    ml(f"linear_classifier_{transform.lower()}", "LinearClassifier", {"x": x}, 2, coefficients=coefficients,
       intercepts=[0.5, 0.25, 0.75], classlabels_ints=[4, 2, 9], post_transform=transform)
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    ml(f"linear_classifier_one_{transform.lower()}", "LinearClassifier", {"x": x}, 2, coefficients=coefficients[:4],
       intercepts=[0.5], classlabels_ints=[3, 8], post_transform=transform)
for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
    ml(f"svm_regressor_{kernel.lower()}", "SVMRegressor", {"x": x}, coefficients=coefficients[:3], kernel_params=[0.3, 0.5, 3.0],
       kernel_type=kernel, n_supports=3, rho=[0.25], support_vectors=[float(v) for v in f32(12)])


def trees(prefix, seed, n_trees, targets, modes, depth=3, each_leaf=1, positive=False):
    """Attributes of full random trees."""
    r = np.random.default_rng(seed)
    a = {k: [] for k in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values",
                         "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true", f"{prefix}_treeids",
                         f"{prefix}_nodeids", f"{prefix}_ids", f"{prefix}_weights")}
    for t in range(n_trees):
        for i in range(2 ** (depth + 1) - 1):
            leaf = i >= 2 ** depth - 1
            a["nodes_treeids"].append(t)
            a["nodes_nodeids"].append(i)
            a["nodes_featureids"].append(0 if leaf else int(r.integers(4)))
            a["nodes_modes"].append("LEAF" if leaf else str(r.choice(modes)))
            a["nodes_values"].append(0.0 if leaf else float(np.float32(r.standard_normal() / 2)))
            a["nodes_truenodeids"].append(0 if leaf else 2 * i + 1)
            a["nodes_falsenodeids"].append(0 if leaf else 2 * i + 2)
            a["nodes_missing_value_tracks_true"].append(0 if leaf else int(r.integers(2)))
            for k in r.permutation(targets)[:each_leaf] if leaf else []:
                a[f"{prefix}_treeids"].append(t)
                a[f"{prefix}_nodeids"].append(i)
                a[f"{prefix}_ids"].append(int(k))
                w = float(np.float32(r.standard_normal()))
                a[f"{prefix}_weights"].append(abs(w) / n_trees if positive else w)
    return a


many = f32(20, 4)
some = many.copy()
some[::3, 1] = np.nan
ALL = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
    ml(f"tree_regressor_{aggregate.lower()}", "TreeEnsembleRegressor", {"x": some}, aggregate_function=aggregate, n_targets=1,
       base_values=[0.5], **trees("target", 1, 5, 1, ALL), free={"x": ["n", 4]})
ml("tree_regressor_targets", "TreeEnsembleRegressor", {"x": many}, n_targets=3, **trees("target", 2, 4, 3, ALL[:1], each_leaf=3))
ml("tree_regressor_softmax", "TreeEnsembleRegressor", {"x": many}, n_targets=3, post_transform="SOFTMAX",
   **trees("target", 3, 6, 3, ALL[:1]))
for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
    ml(f"tree_classifier_{transform.lower()}", "TreeEnsembleClassifier", {"x": many}, 2, classlabels_int64s=[1, 5, 3],
       post_transform=transform, **trees("class", 4, 9, 3, ALL[:1], each_leaf=3))
    for positive in (False, True):
        ml(f"tree_classifier_binary_{transform.lower()}{'_positive' if positive else ''}", "TreeEnsembleClassifier", {"x": many},
           2, classlabels_int64s=[3, 8], post_transform=transform, **trees("class", 5, 4, 1, ALL[:1], positive=positive))
ml("tree_classifier_base", "TreeEnsembleClassifier", {"x": many}, 2, classlabels_int64s=[0, 1, 2], base_values=[0.5, 0.25, -1.0],
   **trees("class", 6, 3, 3, ALL[:1], each_leaf=3))


def tree_ensemble(name, dtype, **more):  # nodes and leaves of three trees, each a root and two below it
    node = dict(nodes_featureids=[0, 1, 2, 3, 0, 1, 2, 3, 0], nodes_truenodeids=[1, 0, 2, 4, 4, 6, 7, 8, 10],
                nodes_trueleafs=[0, 1, 1, 0, 1, 1, 0, 1, 1], nodes_falsenodeids=[2, 1, 3, 5, 5, 7, 8, 9, 11],
                nodes_falseleafs=[0, 1, 1, 0, 1, 1, 0, 1, 1], tree_roots=[0, 3, 6])
    r = np.random.default_rng(7)

    def tensor(n, a):
        return numpy_helper.from_array(np.asarray(a), n)

    modes = np.uint8([0, 1, 2, 3, 0, 6, 1, 6, 0])
    ml(name, "TreeEnsemble", {"x": np.vstack([some, np.float32([[0.5, 2.0, 1.0, 1.5]] * 2)]).astype(dtype)}, opset=5,
       nodes_splits=tensor("s", r.standard_normal(9).astype(dtype) / 2), nodes_modes=tensor("m", modes),
       nodes_missing_value_tracks_true=[1, 0, 1, 0, 1, 0, 1, 0, 1], membership_values=tensor("v", np.array([1, 2, 3, np.nan, 0.5, 1.5, np.nan], dtype)),
       leaf_targetids=[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2], leaf_weights=tensor("w", r.standard_normal(12).astype(dtype)), n_targets=3,
       **node, **more)


tree_ensemble("tree_ensemble_sum", np.float32, aggregate_function=1)
tree_ensemble("tree_ensemble_average_f64", np.float64, aggregate_function=0)
tree_ensemble("tree_ensemble_softmax_zero", np.float32, post_transform=3)  # 1 and 2 are exchanged in the runtime



# ---- com.microsoft

def fit(a, dtype=np.uint8):
    """Scale and zero point that cover a's range, and a quantised."""
    info = np.iinfo(dtype)
    lo, hi = min(a.min(), 0), max(a.max(), 0)
    scale = np.float32((hi - lo) / (info.max - info.min))
    zero = dtype(np.clip(np.rint(info.min - lo / scale), info.min, info.max))
    return np.clip(np.rint(a / scale) + zero, info.min, info.max).astype(dtype), scale, zero


a, b = f32(3, 8), f32(8)
case("gelu", "Gelu", {"x": a}, free={"x": ["n", 8]})
case("bias_gelu", "BiasGelu", {"x": a, "b": b}, constants="b")
case("fast_gelu", "FastGelu", {"x": a, "b": b}, constants="b")
case("fast_gelu_plain", "FastGelu", {"x": a})
case("quick_gelu", "QuickGelu", {"x": a}, alpha=1.25)
m = f32(2, 3, 4, 5)
case("fused_matmul", "FusedMatMul", {"a": m, "b": f32(2, 3, 6, 5)}, alpha=0.5, transB=1)
case("fused_matmul_batch", "FusedMatMul", {"a": f32(4, 2, 3, 5), "b": f32(2, 3, 5, 6)}, transBatchA=1)
case("fused_matmul_both", "FusedMatMul", {"a": f32(2, 5, 3), "b": f32(2, 4, 5)}, transA=1, transB=1)
case("fused_gemm", "FusedGemm", {"a": a, "b": f32(5, 8), "c": f32(5)}, transB=1, alpha=0.5, activation="LeakyRelu",
     activation_alpha=0.1)
case("fused_gemm_relu", "FusedGemm", {"a": a, "b": f32(8, 5)}, activation="Relu")
image = f32(1, 4, 6, 6)
case("fused_conv", "FusedConv", {"x": image, "w": f32(2, 4, 3, 3), "b": f32(2)}, constants="wb", activation="Relu",
     pads=[1, 1, 1, 1], kernel_shape=[3, 3])
case("fused_conv_sum", "FusedConv", {"x": image, "w": f32(2, 4, 3, 3), "b": f32(2), "z": f32(1, 2, 4, 4)}, constants="wb",
     activation="Clip", activation_params=[-0.5, 1.5], kernel_shape=[3, 3])
h3 = f32(2, 3, 8)
case("skip_layer_norm", "SkipLayerNormalization", {"x": h3, "s": f32(2, 3, 8), "g": f32(8), "b": f32(8), "bias": f32(8)},
     ["y", "", "", "sum"], constants=("g", "b", "bias"), epsilon=1e-5, free={"x": ["n", "t", 8], "s": ["n", "t", 8]})
case("skip_layer_norm_plain", "SkipLayerNormalization", {"x": h3, "s": f32(2, 3, 8), "g": f32(8)})
case("skip_simplified_layer_norm", "SkipSimplifiedLayerNormalization", {"x": h3, "s": f32(2, 3, 8), "g": f32(8)},
     ["y", "", "", "sum"], epsilon=1e-6)
case("simplified_layer_norm", "SimplifiedLayerNormalization", {"x": h3, "g": f32(8)}, domain="", axis=-1, epsilon=1e-6)
ids = np.int32([[1, 4, 2], [0, 3, 1]])
case("embed_layer_norm", "EmbedLayerNormalization", {
    "ids": ids, "segments": np.int32([[0, 0, 1], [0, 1, 1]]), "words": f32(6, 8), "places": f32(5, 8), "kinds": f32(2, 8),
    "g": f32(8), "b": f32(8), "mask": np.int32([[1, 1, 0], [1, 1, 1]])}, 2, epsilon=1e-5)
case("embed_layer_norm_symbols", "EmbedLayerNormalization", {
    "ids": ids, "segments": None, "words": f32(6, 8), "places": f32(5, 8), "kinds": None, "g": f32(8), "b": f32(8)}, 2, epsilon=1e-5,
    constants=("words", "places", "g", "b"), free={"ids": ["n", "t"]})
case("embed_layer_norm_sum", "EmbedLayerNormalization", {
    "ids": ids, "segments": None, "words": f32(6, 8), "places": f32(5, 8), "kinds": None, "g": f32(8), "b": f32(8),
    "mask": None, "where": np.int32([[4, 0, 1], [2, 2, 3]])}, ["y", "", "sum"])


def blocks(n, k, block, bits):
    return quantized(np.uint8, n, -(-k // block), block * bits // 8)


wide = f32(2, 3, 32)
for bits in (4, 8):
    case(f"matmul_{bits}_bits", "MatMulNBits", {"a": wide, "b": blocks(6, 32, 16, bits), "s": np.abs(f32(6, 2))}, N=6, K=32,
         bits=bits, block_size=16, constants="bs", rtol=2e-3, atol=1e-3)
    case(f"matmul_{bits}_bits_zero", "MatMulNBits", {"a": f32(3, 40), "b": blocks(6, 40, 16, bits), "s": np.abs(f32(6, 3)),
         "z": quantized(np.uint8, 6, (3 * bits + 7) // 8)}, N=6, K=40, bits=bits, block_size=16, constants="bsz", rtol=2e-3, atol=1e-3)
case("matmul_4_bits_bias", "MatMulNBits", {"a": f32(3, 32), "b": blocks(6, 32, 32, 4), "s": np.abs(f32(6, 1)), "z": None, "g": None,
     "bias": f32(6)}, N=6, K=32, bits=4, block_size=32, constants=("b", "s", "bias"), rtol=2e-3, atol=1e-3)

# Quantised: all exact.
for dtype in (np.uint8, np.int8):
    tag = np.dtype(dtype).name
    qa, sa, za = fit(f32(3, 4, 5), dtype)
    qb, sb, zb = fit(f32(4, 5), dtype)
    out = {"sy": np.float32(0.04), "zy": dtype(7)}
    pair = {"a": qa, "sa": sa, "za": za, "b": qb, "sb": sb, "zb": zb}
    case(f"qlinear_add_{tag}", "QLinearAdd", {**pair, **out})
    case(f"qlinear_mul_{tag}", "QLinearMul", {**pair, **out})
    one = {"a": qa, "sa": sa, "za": za}
    case(f"qlinear_sigmoid_{tag}", "QLinearSigmoid", {**one, "sy": np.float32(1 / 256), "zy": dtype(np.iinfo(dtype).min)})
    case(f"qlinear_leaky_relu_{tag}", "QLinearLeakyRelu", {**one, **out}, alpha=0.2)
    least = {"sy": np.float32(1 / 256), "zy": dtype(np.iinfo(dtype).min)}
    case(f"qlinear_softmax_{tag}", "QLinearSoftmax", {**one, **least}, axis=-1, more={"opset": 13})
    case(f"qlinear_softmax_flat_{tag}", "QLinearSoftmax", {**one, **least}, axis=1, more={"opset": 12})
    case(f"qlinear_concat_{tag}", "QLinearConcat", {**out, "a": qa, "sa": sa, "za": za, "b": qb[None], "sb": sb, "zb": zb}, axis=0)
    qi, si, zi = fit(f32(1, 3, 6, 6), dtype)
    pool = {"x": qi, "sx": si, "zx": zi, **out}
    case(f"qlinear_average_pool_{tag}", "QLinearAveragePool", pool, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    case(f"qlinear_global_average_pool_{tag}", "QLinearGlobalAveragePool", pool, channels_last=0)
    case(f"qlinear_global_average_pool_last_{tag}", "QLinearGlobalAveragePool", pool, channels_last=1)
case("qlinear_where", "QLinearWhere", {"c": rng.integers(0, 2, (3, 4, 5)).astype(bool), "a": qa, "sa": sa, "za": za, "b": qb, "sb": sb,
     "zb": zb, **out})
qm, sm, zm = fit(f32(4, 6))
qw, sw, zw = fit(f32(6, 5), np.int8)
columns = {"w": qw, "sw": np.float32([0.01, 0.02, 0.03, 0.04, 0.05])}
case("qgemm", "QGemm", {"a": qm, "sa": sm, "za": zm, "b": qw, "sb": sw, "zb": zw, "c": rng.integers(-500, 500, 5).astype(np.int32),
     "sy": np.float32(0.05), "zy": np.uint8(100)}, alpha=1.0)
case("qgemm_float", "QGemm", {"a": qm.T.copy(), "sa": sm, "za": zm, "b": qw.T.copy(), "sb": columns["sw"], "zb": np.int8([0, 1, 2, -3, 0])},
     transA=1, transB=1, alpha=1.0)
case("matmul_integer_to_float", "MatMulIntegerToFloat", {"a": qm, "b": qw, "sa": sm, "sb": sw, "za": zm, "zb": zw, "bias": f32(5)})
case("matmul_integer_to_float_columns", "MatMulIntegerToFloat", {"a": qm, "b": qw, "sa": sm, "sb": columns["sw"]})
case("dynamic_quantize_matmul", "DynamicQuantizeMatMul", {"a": f32(4, 6), "b": qw, "sb": sw, "zb": zw, "bias": f32(5)}, constants=("b",),
     atol=1e-3)
case("dynamic_quantize_matmul_columns", "DynamicQuantizeMatMul", {"a": f32(2, 4, 6), "b": qw, "sb": columns["sw"]}, atol=1e-3)
case("ms_quantize_linear_u16", "QuantizeLinear", {"x": f32(3, 4), "s": np.float32(0.001), "z": np.uint16(30000)})
case("ms_dequantize_linear_i16", "DequantizeLinear", {"x": quantized(np.int16, 3, 4), "s": np.float32(0.001), "z": np.int16(-30)})

# Attention: 2 sequences, 4 tokens, 2 heads of 4.
tokens, weights, bias3 = f32(2, 4, 6), f32(6, 24), f32(24)
same = dict(constants=("w", "bias"), num_heads=2, atol=1e-4)
case("attention_plain", "Attention", {"x": tokens, "w": weights, "bias": bias3}, free={"x": ["n", "t", 6]}, **same)
case("attention_symbols", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": np.int32([[1, 1, 0, 1], [0, 1, 1, 1]]), "past": None},
     free={"x": ["n", "t", 6], "mask": ["n", "t"]}, **same)
case("attention_lengths_symbols", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": np.int32([3, 4])}, free={"x": ["n", "t", 6], "mask": ["n"]}, **same)
case("attention_causal", "Attention", {"x": tokens, "w": weights, "bias": bias3}, unidirectional=1, **same)
case("attention_lengths", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": np.int32([3, 4])}, **same)
case("attention_ends_starts", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": np.int32([4, 3, 1, 0])}, **same)
case("attention_mask", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": np.int32([[1, 1, 0, 1], [0, 1, 1, 1]])}, **same)
case("attention_mask_3d", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": rng.integers(0, 2, (2, 4, 4)).astype(np.int32)}, **same)
case("attention_past", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": None, "past": f32(2, 2, 2, 3, 4)}, 2, unidirectional=1, **same)
case("attention_bias", "Attention", {"x": tokens, "w": weights, "bias": bias3, "mask": None, "past": None, "extra": f32(1, 2, 4, 4)}, scale=0.3, **same)
case("attention_sizes", "Attention", {"x": tokens, "w": f32(6, 20), "bias": f32(20)}, qkv_hidden_sizes=[8, 8, 4], **same)
q, k, v = f32(2, 4, 8), f32(2, 5, 8), f32(2, 5, 6)
case("mha_plain", "MultiHeadAttention", {"q": q, "k": k, "v": v}, num_heads=2, free={"q": ["n", "t", 8], "k": ["n", "s", 8], "v": ["n", "s", 6]})
case("mha_symbols", "MultiHeadAttention", {"q": q, "k": k, "v": v, "b": f32(22), "mask": np.int32([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]])}, num_heads=2,
     constants="b", free={"q": ["n", "t", 8], "k": ["n", "s", 8], "v": ["n", "s", 6], "mask": ["n", "s"]})
case("mha_bias", "MultiHeadAttention", {"q": q, "k": k, "v": v, "b": f32(22)}, num_heads=2)
case("mha_mask", "MultiHeadAttention", {"q": q, "k": k, "v": v, "b": None, "mask": np.int32([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]])}, num_heads=2)
case("mha_past", "MultiHeadAttention", {"q": q, "k": f32(2, 4, 8), "v": f32(2, 4, 8), "b": None, "mask": None, "extra": f32(2, 2, 4, 7), "pk": f32(2, 2, 3, 4),
     "pv": f32(2, 2, 3, 4)}, 3, num_heads=2)
case("mha_causal", "MultiHeadAttention", {"q": q, "k": f32(2, 4, 8), "v": f32(2, 4, 8)}, num_heads=2, unidirectional=1, scale=0.4)
qx, sx, zx = fit(tokens)
qqw, sqw, zqw = fit(weights, np.int8)
case("qattention", "QAttention", {"x": qx, "w": qqw, "b": bias3, "sx": sx, "sw": sqw, "mask": np.int32([3, 4]), "zx": zx, "zw": zqw},
     constants=("w", "b", "sx", "sw", "zx", "zw"), num_heads=2, atol=1e-3)
case("qattention_causal", "QAttention", {"x": qx, "w": qqw, "b": bias3, "sx": sx, "sw": sqw, "mask": None, "zx": zx, "zw": zqw},
     constants=("w", "b", "sx", "sw", "zx", "zw"), num_heads=2, unidirectional=1, atol=1e-3)
angle = rng.uniform(0, 3, (10, 2)).astype(np.float32)
rope = {"cos": np.cos(angle), "sin": np.sin(angle)}
case("rotary_3d", "RotaryEmbedding", {"x": f32(2, 3, 8), "ids": np.int64([[0, 1, 2], [4, 5, 6]]), **rope}, constants=("cos", "sin"))
case("rotary_symbols", "RotaryEmbedding", {"x": f32(2, 3, 8), "ids": np.int64([5]), **rope}, constants=("cos", "sin"), free={"x": ["n", "t", 8]})
case("rotary_offset", "RotaryEmbedding", {"x": f32(2, 3, 8), "ids": np.int64([5]), **rope}, interleaved=1, constants=("cos", "sin"))
case("rotary_4d", "RotaryEmbedding", {"x": f32(2, 2, 3, 4), "ids": np.int64([[0, 1, 2], [4, 5, 6]]), **rope})


def lstm(name, directions, batch, columns=False, **more):
    """Weights of 2 inputs and 3 hidden numbers; rows of a batch are quantised together or apart, so there is one."""
    w, r = f32(directions, 2, 12), f32(directions, 3, 12)
    axis = (1,) if columns else (1, 2)

    def weights(a):
        scale = np.abs(a).max(axis=axis) / 127
        shape = (directions, 1, 12) if columns else (directions, 1, 1)
        return np.rint(a / scale.reshape(shape)).astype(np.int8), scale.astype(np.float32), np.zeros(scale.shape, np.int8)

    (qw, sw, zw), (qr, sr, zr) = weights(w), weights(r)
    case(name, "DynamicQuantizeLSTM", {
        "x": f32(5, batch, 2), "w": qw, "r": qr, "b": f32(directions, 24), "lens": None, "h": f32(directions, batch, 3), "c": f32(directions, batch, 3),
        "p": None, "sw": sw, "zw": zw, "sr": sr, "zr": zr}, 3, hidden_size=3, constants=("w", "r", "b", "sw", "zw", "sr", "zr"), atol=1e-4, **more)


lstm("dynamic_quantize_lstm", 1, 1)
lstm("dynamic_quantize_lstm_columns", 1, 1, columns=True)
lstm("dynamic_quantize_lstm_both", 2, 1, direction="bidirectional")


def gqa(name, batch, time, past, lengths, capacity=None, packed=False, bias=False, rotary=True, symbols=False, **more):
    """4 query heads, 2 of keys, of 16 numbers; `past` cached tokens, or a cache of `capacity`."""
    hidden = {"q": f32(batch, time, 128), "k": None, "v": None} if packed else {"q": f32(batch, time, 64), "k": f32(batch, time, 32), "v": f32(batch, time, 32)}
    held = capacity or past
    total = max(lengths)
    turn = rng.uniform(0, 3, (16, 8)).astype(np.float32)
    extra = {"cos": np.cos(turn), "sin": np.sin(turn)} if rotary else {"cos": None, "sin": None}
    if bias:
        extra.update({"ids": None, "bias": f32(1, 4, time, total)})
    caches = f32(2, batch, 2, held, 16)
    for b, length in enumerate(lengths):
        caches[:, b, :, max(length - time, 0):] = 0
    if symbols:
        more["free"] = {"q": ["b", "t", 64], "k": ["b", "t", 32], "v": ["b", "t", 32], "pk": ["b", 2, "p", 16], "pv": ["b", 2, "p", 16], "lens": ["b"]}
    fixed = ("cos", "sin") if symbols else ("cos", "sin", "total")
    case(name, "GroupQueryAttention", {**hidden, "pk": caches[0], "pv": caches[1], "lens": np.int32(lengths) - 1,
         "total": np.int32(total), **extra}, 3, num_heads=4, kv_num_heads=2, do_rotary=int(rotary), constants=fixed, atol=1e-4, **more)


gqa("gqa_prompt", 2, 5, 0, [5, 5])
gqa("gqa_prompt_packed", 1, 5, 0, [5], packed=True)
gqa("gqa_token", 1, 1, 6, [7])
gqa("gqa_tokens", 1, 3, 4, [7], rotary=False)
gqa("gqa_buffer", 2, 1, 6, [7, 4], capacity=9)
gqa("gqa_window", 1, 1, 6, [7], local_window_size=3)
gqa("gqa_window_prompt", 1, 6, 0, [6], local_window_size=2, rotary_interleaved=1)
gqa("gqa_softcap", 1, 4, 0, [4], softcap=1.5, scale=0.5)
gqa("gqa_bias", 1, 3, 0, [3], bias=True)
gqa("gqa_symbols", 1, 2, 5, [7], symbols=True)
gqa("gqa_symbols_buffer", 2, 1, 5, [6, 3], capacity=8, symbols=True)

case("early_layer_norm", "LayerNormalization", {"x": h3, "g": f32(8), "b": f32(8)}, domain="", axis=-1, epsilon=1e-4, opset=12)
case("torch_pad", "Pad", {"x": a, "p": np.int64([0, 2, 1, 0]), "v": np.float32([1.5])}, mode="constant", constants="pv")
embeddings = [f32(6, 8), f32(5, 8), f32(2, 8), f32(8), f32(8)]
codes, scales, zeros = zip(*[fit(t) for t in embeddings])
case("quantized_embed_layer_norm", "QEmbedLayerNormalization", {
    "ids": ids, "segments": np.int32([[0, 0, 1], [0, 1, 1]]), **{f"t{i}": t for i, t in enumerate(codes)}, "mask": np.int32([[1, 1, 0], [1, 1, 1]]),
    **{f"s{i}": s for i, s in enumerate(scales)}, **{f"z{i}": z for i, z in enumerate(zeros)}}, 2, epsilon=1e-5)
for bits in (4, 8):
    case(f"gather_block_quantized_{bits}", "GatherBlockQuantized", {"x": quantized(np.uint8, 6, 32 * bits // 8), "i": np.int64([[1, 5], [0, 3]]),
         "s": np.abs(f32(6, 2))}, bits=bits, block_size=16, gather_axis=0, quantize_axis=1, constants="xs")
case("gather_block_quantized_zero", "GatherBlockQuantized", {"x": quantized(np.uint8, 6, 24), "i": np.int32([2, 2, 4]), "s": np.abs(f32(6, 3)),
     "z": quantized(np.uint8, 6, 2)}, bits=4, block_size=16, gather_axis=0, quantize_axis=1, constants="xsz")
case("mul_integer", "MulInteger", {"a": quantized(np.uint8, 3, 4), "za": np.uint8(100), "b": quantized(np.uint8, 4), "zb": np.uint8(7)}, nodes=[
    *[h.make_node("Cast", [k], ["w" + k], to=T.INT32) for k in ("a", "za", "b", "zb")], h.make_node("Sub", ["wa", "wza"], ["ca"]),
    h.make_node("Sub", ["wb", "wzb"], ["cb"]), h.make_node("Mul", ["ca", "cb"], ["y"])])

# What the runtime has for other machines only, against the same in ONNX's operators.
n = h.make_node
last = f32(1, 5, 6, 4)
case("nhwc_conv", "NhwcConv", {"x": last, "w": f32(3, 4, 3, 3), "b": f32(3)}, constants=("w", "b"), pads=[1, 1, 1, 1], strides=[2, 2], nodes=[
    n("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), n("Conv", ["t", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
    n("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])])
case("bias_split_gelu", "BiasSplitGelu", {"x": f32(2, 3, 8), "b": f32(8)}, nodes=[
    n("Add", ["x", "b"], ["s"]), n("Split", ["s"], ["l", "r"], axis=-1), n("Gelu", ["r"], ["g"], domain="com.microsoft"),
    n("Mul", ["l", "g"], ["y"])])
case("bias_add", "BiasAdd", {"x": f32(2, 3, 4), "b": f32(4), "s": f32(2, 3, 4)}, nodes=[n("Add", ["x", "b"], ["t"]), n("Add", ["t", "s"], ["y"])])
group = [
    n("Constant", [], ["shape"], value_ints=[1, 2, -1]), n("Constant", [], ["one"], value_floats=[1.0, 1.0]),
    n("Constant", [], ["zero"], value_floats=[0.0, 0.0]), n("Constant", [], ["whole"], value_ints=[1, 4, 5, 6]),
    n("Transpose", ["sum"], ["t"], perm=[0, 3, 1, 2]), n("Reshape", ["t", "shape"], ["r"]),
    n("InstanceNormalization", ["r", "one", "zero"], ["i"], epsilon=1e-5), n("Reshape", ["i", "whole"], ["w"]),
    n("Transpose", ["w"], ["l"], perm=[0, 2, 3, 1]), n("Mul", ["l", "g"], ["m"]), n("Add", ["m", "b"], ["u"])]
case("group_norm", "GroupNorm", {"x": last, "g": f32(4), "b": f32(4)}, groups=2, activation=0, epsilon=1e-5,
     nodes=[n("Identity", ["x"], ["sum"]), *group, n("Identity", ["u"], ["y"])])
case("group_norm_silu", "GroupNorm", {"x": last, "g": f32(4), "b": f32(4)}, groups=2, activation=1, epsilon=1e-5,
     nodes=[n("Identity", ["x"], ["sum"]), *group, n("Sigmoid", ["u"], ["v"]), n("Mul", ["u", "v"], ["y"])])
case("skip_group_norm", "SkipGroupNorm", {"x": last, "g": f32(4), "b": f32(4), "s": f32(1, 4), "bias": f32(4)}, ["y", "sum"], groups=2,
     activation=0, epsilon=1e-5, nodes=[n("Add", ["x", "s"], ["xs"]), n("Add", ["xs", "bias"], ["sum"]), *group, n("Identity", ["u"], ["y"])])
case("mha_packed", "MultiHeadAttention", {"q": f32(2, 4, 2, 3, 4)}, num_heads=2, nodes=[
    n("Split", ["q"], ["a", "b", "c"], axis=3), n("Constant", [], ["flat"], value_ints=[2, 4, 8]),
    *[n("Reshape", [p, "flat"], [p + "f"]) for p in "abc"],
    n("MultiHeadAttention", ["af", "bf", "cf"], ["y"], domain="com.microsoft", num_heads=2)])


# ---- Gradient, against differences of the function in f64

def gradient(name, function, nodes, inputs, xs):
    """d y / d xs of `nodes`, whose result y is function(inputs)."""
    def of(key, place, by):
        moved = {k: v.astype(np.float64) for k, v in inputs.items()}
        moved[key][place] += by
        return function(**moved)

    slopes = [np.array([(of(k, i, 1e-5) - of(k, i, -1e-5)) / 2e-5 for i in np.ndindex(inputs[k].shape)]).reshape(inputs[k].shape).astype(np.float32)
              for k in xs]
    zs = [k for k in inputs if k not in xs]
    node = h.make_node("Gradient", list(inputs), ["d" + k for k in xs], domain="ai.onnx.preview.training", xs=xs,
                       **({"zs": zs} if zs else {}), y="y", name="gradient")
    infos = [h.make_tensor_value_info(k, TYPES[v.dtype], v.shape) for k, v in inputs.items()]
    graph = h.make_graph([*nodes, node], name, infos, [onnx.ValueInfoProto(name="d" + k) for k in xs])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("ai.onnx.preview.training", 1)], ir_version=8)
    write(name, model, inputs, found=slopes, rtol=1e-3, atol=1e-4)


def perceptron(x, w, b, v, t):
    return np.mean((np.tanh(x @ w + b) @ v.T * 0.5 - t) ** 2)


gradient("gradient_perceptron", perceptron, [
    n("MatMul", ["x", "w"], ["p"]), n("Add", ["p", "b"], ["q"]), n("Tanh", ["q"], ["r"]), n("Gemm", ["r", "v"], ["s"], transB=1, alpha=0.5),
    n("Sub", ["s", "t"], ["u"]), n("Mul", ["u", "u"], ["sq"]), n("ReduceMean", ["sq"], ["y"], keepdims=0),
], {"w": f32(3, 4), "b": f32(4), "v": f32(2, 4), "x": f32(5, 3), "t": f32(5, 2)}, ["w", "b", "v"])


def functions(a, b):
    s = 1 / (1 + np.exp(-(a.T.reshape(2, 6) + b)))
    return np.sum(np.maximum(np.log(s) / np.sqrt(b * b), -1.5) - s)


gradient("gradient_functions", functions, [
    n("Transpose", ["a"], ["p"], perm=[1, 0]), n("Constant", [], ["shape"], value_ints=[2, 6]), n("Reshape", ["p", "shape"], ["q"]), n("Add", ["q", "b"], ["r"]),
    n("Sigmoid", ["r"], ["s"]), n("Log", ["s"], ["l"]), n("Mul", ["b", "b"], ["bb"]), n("Sqrt", ["bb"], ["ab"]), n("Div", ["l", "ab"], ["d"]),
    n("Constant", [], ["floor"], value_float=1.5), n("Add", ["d", "floor"], ["e"]), n("Relu", ["e"], ["f"]), n("Sub", ["f", "floor"], ["g"]),
    n("Sub", ["g", "s"], ["z"]), n("ReduceSum", ["z"], ["y"], keepdims=0),
], {"a": f32(3, 4), "b": np.float32([[1.5], [-0.75]])}, ["a", "b"])


# ---- draws with a seed, as numpy's RandomState makes them

def drawn(name, op, inputs, found, shapes, constants=(), **attributes):
    free = {"x": ["n", 20]}
    infos = [h.make_tensor_value_info(k, type_of(v), free.get(k, v.shape)) for k, v in inputs.items() if k not in constants]
    results = [f"y{i}" if i else "y" for i in range(len(found))]
    outs = [h.make_tensor_value_info(k, type_of(v), shapes) for k, v in zip(results, found)]
    graph = h.make_graph([h.make_node(op, list(inputs), results, name=op.lower(), **attributes)], name, infos, outs,
                         [numpy_helper.from_array(inputs[k], k) for k in constants])
    write(name, h.make_model(graph, opset_imports=[h.make_opsetid("", 22)], ir_version=10),
          {k: v for k, v in inputs.items() if k not in constants}, found=found, rtol=1e-6, atol=0)


many = np.random.default_rng(1).standard_normal((50, 20)).astype(np.float32)  # more draws than one filling of the state
keep = np.random.RandomState(7).random_sample(many.shape) >= np.float32(0.3)
drawn("dropout_seed", "Dropout", {"x": many, "r": np.float32(0.3), "t": np.bool_(True)},
      [np.where(keep, many / (np.float32(1) - np.float32(0.3)), np.float32(0)), keep], ["n", 20], ("t",), seed=7)
drawn("dropout_seed_large", "Dropout", {"x": many.astype(np.float64), "r": np.float32(0.5), "t": np.bool_(True)},
      [np.where(np.random.RandomState(0xfedcba98).random_sample(many.shape) >= 0.5, 2 * many.astype(np.float64), 0)], ["n", 20], ("r", "t"),
      seed=0xfedcba98)
drawn("random_uniform_seed", "RandomUniform", {},
      [np.random.RandomState(12).rand(21, 20).astype(np.float32) * np.float32(3) + np.float32(-1)], [21, 20], shape=[21, 20], low=-1.0, high=2.0, seed=12.0)
drawn("random_uniform_like_seed", "RandomUniformLike", {"x": many}, [np.random.RandomState(3).rand(50, 20)], ["n", 20], dtype=T.DOUBLE, seed=3.0)
chance = np.random.default_rng(2).random((50, 20))
drawn("bernoulli_seed", "Bernoulli", {"x": chance}, [np.random.RandomState(5).binomial(1, chance).astype(np.int32)], ["n", 20], dtype=T.INT32, seed=5.0)

weights = np.random.default_rng(6).standard_normal((30, 20)).astype(np.float32)
parts = np.cumsum(np.exp(weights.astype(np.float64) - weights.max(1, keepdims=True)), 1)
draws = np.random.RandomState(9).random_sample((30, 4)) * parts[:, -1:]
drawn("multinomial_seed", "Multinomial", {"x": weights}, [np.stack([np.searchsorted(p, u, "right") for p, u in zip(parts, draws)])], ["n", 4],
      sample_size=4, dtype=T.INT64, seed=9.0)


# ---- Fourier transforms of lengths that take different passes, against numpy's in f64

def transformed(name, shape, length=None, free=None, double=False, **attributes):
    """Of axis 1 of a random x; the last dimension of `shape` is 1 for real numbers."""
    x = np.random.default_rng(len(name)).standard_normal(shape)
    z = x[..., 0] + (1j * x[..., 1] if shape[-1] == 2 else 0)
    inverse, half = attributes.get("inverse"), attributes.get("onesided")
    if half and inverse:
        y = np.fft.irfft(z, length, axis=1)[..., None]
    else:
        y = np.fft.rfft(z, length, axis=1) if half else (np.fft.ifft if inverse else np.fft.fft)(z, length, axis=1)
        y = np.stack([y.real, y.imag], -1)
    kind = np.float64 if double else np.float32
    sizes = {} if length is None else {"n": np.int64(length)}
    inputs = ["x", *(sizes or [""]), "axis"]
    infos = [h.make_tensor_value_info("x", TYPES[np.dtype(kind)], free or shape)]
    graph = h.make_graph([h.make_node("DFT", inputs, ["y"], name="dft", **attributes)], name, infos, [onnx.ValueInfoProto(name="y")],
                         [numpy_helper.from_array(v, k) for k, v in {**sizes, "axis": np.int64(1)}.items()])
    write(name, h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9), {"x": x.astype(kind)}, found=[y.astype(kind)],
          rtol=1e-12 if double else 1e-5, atol=1e-13 if double else 1e-5)


transformed("dft_60", [2, 60, 2])
transformed("dft_22_inverse", [1, 22, 3, 2], inverse=1)
transformed("dft_77_real", [2, 77, 1], double=True)
transformed("dft_prime", [1, 13, 2], double=True, inverse=1)
transformed("dft_padded", [2, 30, 2], length=48, free=["n", 30, 2])
transformed("dft_cut", [2, 30, 1], length=24, onesided=1)
transformed("dft_irfft", [2, 19, 2], onesided=1, inverse=1)
transformed("dft_irfft_odd", [2, 8, 2], length=15, onesided=1, inverse=1)
transformed("dft_symbols", [2, 12, 2], free=["n", "t", 2])
transformed("dft_symbols_real", [2, 9, 1], free=["n", "t", 1], inverse=1)


def framed(name, length, window, complex_=False):
    """STFT of a signal whose batch and time are symbols, in frames that are known."""
    x = np.random.default_rng(5).standard_normal((2, 70, 2 if complex_ else 1)).astype(np.float32)
    z = x[..., 0].astype(np.float64) + (1j * x[..., 1] if complex_ else 0)
    cut = np.stack([z[:, s:s + length] * window for s in range(0, 70 - length + 1, 6)], 1)
    y = (np.fft.fft if complex_ else np.fft.rfft)(cut, axis=-1)
    graph = h.make_graph([h.make_node("STFT", ["x", "step", "w"], ["y"], name="stft", onesided=int(not complex_))], name,
                         [h.make_tensor_value_info("x", T.FLOAT, ["n", "t", x.shape[-1]])], [onnx.ValueInfoProto(name="y")],
                         [numpy_helper.from_array(np.int64(6), "step"), numpy_helper.from_array(window.astype(np.float32), "w")])
    write(name, h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9), {"x": x},
          found=[np.stack([y.real, y.imag], -1).astype(np.float32)], rtol=1e-5, atol=1e-5)


framed("stft_symbols", 24, np.float64(np.float32(np.hanning(24))))
framed("stft_symbols_complex", 15, np.ones(15), True)


# ---- regions: whole, of one cell, on halves, beyond the picture, turned round

picture = np.random.default_rng(4).standard_normal((2, 3, 7, 9)).astype(np.float32)
regions = np.float32([[0, 0, 0, 8, 6], [1, 2, 3, 2, 3], [1, 1.5, 0.5, 4.5, 5.49], [0, -3, 2, 20, 4], [1, 30, 30, 40, 40], [0, 5, 5, 2, 1],
                      [1, -0.5, -0.5, 2.5, 3.5], [0, 3, 0, 8, 1]])
case("max_roi_pool", "MaxRoiPool", {"x": picture, "r": regions}, domain="", pooled_shape=[3, 2], rtol=0, atol=0,
     free={"x": ["n", 3, "h", "w"], "r": ["k", 5]})
case("max_roi_pool_scaled", "MaxRoiPool", {"x": picture, "r": regions * np.float32([1, 3, 3, 3, 3])}, domain="", pooled_shape=[4, 5], spatial_scale=0.3,
     rtol=0, atol=0)


def sklearn():
    from sklearn import datasets, ensemble, linear_model, pipeline, preprocessing, svm
    from skl2onnx import to_onnx
    x, y = datasets.load_iris(return_X_y=True)
    x = x.astype(np.float32)
    two = y < 2
    rows = x[::9]

    def model(name, estimator, classes=None, target=None, probabilities=False):
        keep = two if classes == 2 else y >= 0
        goal = y if target is None else target
        estimator.fit(x[keep], goal[keep])
        options = {id(estimator): {"zipmap": False}} if classes else None
        m = to_onnx(estimator, x[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
        m.ir_version = 8
        m.producer_version, m.doc_string = "", ""
        want = [estimator.predict(rows)] + ([estimator.predict_proba(rows)] if probabilities else [])
        write(f"sklearn_{name}", m, {m.graph.input[0].name: rows}, expected=want)

    model("logistic", pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()), 3, probabilities=True)
    model("logistic_two", linear_model.LogisticRegression(), 2, probabilities=True)
    model("ridge", linear_model.Ridge(), target=x[:, 0] * 2 - x[:, 3])
    model("forest", ensemble.RandomForestClassifier(5, max_depth=4, random_state=0), 3, probabilities=True)
    model("forest_two", ensemble.RandomForestClassifier(5, max_depth=4, random_state=0), 2, probabilities=True)
    model("forest_regressor", ensemble.RandomForestRegressor(4, max_depth=4, random_state=0), target=x[:, 0] * x[:, 1])
    model("boosting", ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0), 3, probabilities=True)
    model("boosting_two", ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0), 2, probabilities=True)
    model("svc_linear", svm.SVC(kernel="linear", random_state=0), 3)
    model("svc_rbf", svm.SVC(kernel="rbf", random_state=0), 3)
    model("svc_two", svm.SVC(kernel="poly", random_state=0), 2)
    model("svc_probability", svm.SVC(kernel="rbf", probability=True, random_state=0), 3)
    model("svc_two_probability", svm.SVC(kernel="linear", probability=True, random_state=0), 2)
    model("svr", svm.SVR(kernel="rbf"), target=x[:, 0] - x[:, 2])


sklearn()
