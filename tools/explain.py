# Every value of a model by the reference evaluator of the onnx package, for mlc-test --explain:
#   python3 - CASE OUT    writes OUT/0.npy, OUT/1.npy .. and prints a line for each: type and name
import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

case, out = map(pathlib.Path, sys.argv[1:])
model = onnx.load(case / "model.onnx")
constants = {t.name for t in model.graph.initializer}
feeds = {}
for i, value in enumerate(v for v in model.graph.input if v.name not in constants):
    tensor = onnx.TensorProto()
    tensor.ParseFromString((case / "test_data_set_0" / f"input_{i}.pb").read_bytes())
    feeds[value.name] = numpy_helper.to_array(tensor)
results = ReferenceEvaluator(model).run(None, feeds, intermediate=True)
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
