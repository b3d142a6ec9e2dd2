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
    "uint8": T.UINT8, "bool": T.BOOL}.items()}
OPSETS = {"": 17, "ai.onnx.ml": 3, "com.microsoft": 1}
seen = set()


def write(name, model, inputs, rtol=1e-3, atol=1e-5, expected=None, outputs=None):
    """The model with its inputs (a dict) and what ONNX Runtime makes of them."""
    assert name not in seen, name
    seen.add(name)
    if ONLY and name not in ONLY:
        return
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(None, inputs)
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
            tensor = numpy_helper.from_array(np.asarray(value), info)
            (data / f"{tag}_{i}.pb").write_bytes(tensor.SerializeToString(deterministic=True))


def case(name, op, inputs, outputs=1, domain="com.microsoft", constants=(), opset=None, rtol=1e-3, atol=1e-5, free=None,
         **attributes):
    """One node. `inputs`: name -> array, or None where one is left out; those in `constants` are initializers.
    `free`: name -> dimensions with symbols. `outputs`: their number, or their names where some are left out ("")."""
    names = [k if v is not None else "" for k, v in inputs.items()]
    results = outputs if isinstance(outputs, list) else [f"y{i}" if i else "y" for i in range(outputs)]
    given = {k: np.asarray(v) for k, v in inputs.items() if v is not None}
    node = h.make_node(op, names, results, name=op.lower(), domain=domain, **attributes)
    free = free or {}
    infos = [h.make_tensor_value_info(k, TYPES[v.dtype], free.get(k, v.shape)) for k, v in given.items() if k not in constants]
    graph = h.make_graph([node], name, infos, [onnx.ValueInfoProto(name=r) for r in results if r],
                         [numpy_helper.from_array(given[k], k) for k in constants])
    opsets = dict(OPSETS)
    if opset:
        opsets[domain] = opset
    model = h.make_model(graph, opset_imports=[h.make_opsetid(d, v) for d, v in opsets.items()], ir_version=8,
                         producer_name="mlc test")
    write(name, model, {k: v for k, v in given.items() if k not in constants}, rtol, atol)


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
ml("feature_vectorizer", "FeatureVectorizer", {"a": f32(3, 2), "b": f32(3, 3)}, inputdimensions=[2, 3])
ml("array_feature_extractor", "ArrayFeatureExtractor", {"x": f32(3, 5), "i": np.int64([[4, 0, 4]])})
ml("label_encoder_int", "LabelEncoder", {"x": np.int64([[3, 1], [8, 2]])}, keys_int64s=[1, 2, 3], values_int64s=[10, 20, 30],
   default_int64=-7)
ml("label_encoder_float", "LabelEncoder", {"x": np.float32([1.5, np.nan, 2.5, 4])}, keys_floats=[1.5, np.nan, 2.5],
   values_floats=[0.5, 9.0, 0.25], default_float=-1.0, opset=4)
ml("label_encoder_mixed", "LabelEncoder", {"x": np.int64([3, 1, 8])}, keys_int64s=[1, 3], values_floats=[0.5, 1.5])
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
    model("svr", svm.SVR(kernel="rbf"), target=x[:, 0] - x[:, 2])


sklearn()
