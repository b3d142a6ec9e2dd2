#!/usr/bin/env python3
"""Writes the ONNX conformance suite of the installed `onnx` package: make_suite.py DIR      (no network, 10 s, 37 MB)

    DIR/KIND/NAME/model.onnx, tolerance ("RTOL ATOL"), test_data_set_N/input_M.pb, output_M.pb

The cases of kind node and simple are Python in the package; the pytorch kinds are data in it; of the networks of kind
light it holds models and outputs. DIR is complete once DIR/version is there; then nothing is done.
"""
import pathlib
import random
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.model import collect_testcases
from onnx.backend.test.loader import DATA_DIR, load_model_tests

READY_MADE = ("pytorch-converted", "pytorch-operator")
PACK = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
        "map_type": numpy_helper.from_dict}


def message(value, info):
    """A case's value as the protobuf message that `info` declares."""
    if isinstance(value, TensorProto):
        return value
    pack = PACK.get(info.type.WhichOneof("value"))
    return pack(value, info.name) if pack else numpy_helper.from_array(np.asarray(value), info.name)


def write(case, folder):
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(parents=True)
        for tag, values, infos in (("input", inputs, case.model.graph.input),
                                   ("output", outputs, case.model.graph.output)):
            for j, (value, info) in enumerate(zip(values, infos)):
                (data / f"{tag}_{j}.pb").write_bytes(message(value, info).SerializeToString(deterministic=True))
    (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")


def write_light(case, model_file, folder):
    """The input of these networks is x[i] = i / number of elements, as in the package's own runner."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    model = onnx.load(model_file)
    weights = {w.name for w in model.graph.initializer}
    for i, info in enumerate(v for v in model.graph.input if v.name not in weights):
        shape = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
        size = np.prod(shape)
        value = numpy_helper.from_array((np.arange(size) / size).astype(np.float32).reshape(shape), info.name)
        (data / f"input_{i}.pb").write_bytes(value.SerializeToString(deterministic=True))
    shutil.copy(model_file, folder / "model.onnx")
    for output in model_file.parent.glob(f"{model_file.stem}_output_*.pb"):
        shutil.copy(output, data / output.name.removeprefix(model_file.stem + "_"))
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")


def main(out):
    if (out / "version").exists() and (out / "version").read_text() == onnx.__version__ + "\n":
        return
    shutil.rmtree(out, ignore_errors=True)
    random.seed(0)
    np.random.seed(0)
    with np.errstate(all="ignore"):
        cases = [*load_model_tests(kind="node"), *collect_testcases()]
    for case in cases:
        if case.kind == "real":
            model_file = pathlib.Path(DATA_DIR) / "light" / pathlib.Path(case.url).name
            write_light(case, model_file, out / "light" / case.name)
        else:
            write(case, out / case.kind / case.name)
    for kind in READY_MADE:
        shutil.copytree(pathlib.Path(DATA_DIR) / kind, out / kind)
    counts = ", ".join(f"{len(list(kind.iterdir()))} {kind.name}" for kind in sorted(out.iterdir()))
    print(f"onnx {onnx.__version__} conformance suite: {counts}")
    (out / "version").write_text(onnx.__version__ + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
