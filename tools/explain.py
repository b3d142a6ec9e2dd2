# Every value of a model by ONNX Runtime, or else by the reference evaluator of the onnx package, for mlc-test --explain:
#   python3 explain.py CASE OUT    writes OUT/0.npy, OUT/1.npy .. and prints a line for each: type and name
import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper


def by_runtime(model, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    names = [n for node in model.graph.node for n in node.output if n]
    known = {o.name for o in model.graph.output}
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    wide.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    session = onnxruntime.InferenceSession(wide.SerializeToString(), options)
    return dict(zip(names, session.run(names, feeds)))


def by_reference(model, feeds):
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(model).run(None, feeds, intermediate=True)


case, out = map(pathlib.Path, sys.argv[1:])
model = onnx.load(case / "model.onnx")
constants = {t.name for t in model.graph.initializer}
feeds = {}
for i, value in enumerate(v for v in model.graph.input if v.name not in constants):
    tensor = onnx.TensorProto()
    tensor.ParseFromString((case / "test_data_set_0" / f"input_{i}.pb").read_bytes())
    feeds[value.name] = numpy_helper.to_array(tensor)
try:
    results = by_runtime(model, feeds)
except Exception:  # it is not there, or does not have the types or operators
    results = by_reference(model, feeds)
count = 0
for name, value in results.items():
    value = numpy.asarray(value)
    kind = value.dtype.name
    if kind == "bfloat16":
        value = value.view(numpy.uint16)
    if name and value.dtype.kind in "biuf" and "\n" not in name:
        numpy.save(out / f"{count}.npy", value)
        print(kind, name)
        count += 1
