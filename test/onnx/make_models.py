#!/usr/bin/env python3
"""Real trained models from PyPI packages as cases of mlc-test: make_models.py FOLDER [NAME ...]

FOLDER/NAME/ gets model.onnx and one data set a size: random inputs by a fixed seed and what ONNX Runtime makes of them,
without its optimisations. A model is imported once, so the sets show that its open dimensions are open. The packages
keep their licences; nothing of them is part of this project.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import onnxruntime
from onnx import numpy_helper

PACKAGES = ["magika==1.0.3", "silero-vad==6.2.3", "rapidocr-onnxruntime==1.4.4", "basic-pitch==0.4.0", "text2tashkeel==0.1.0"]


def ids(high):
    return lambda rng, shape: rng.integers(0, high, shape).astype(np.int64)


def bytes_(rng, shape):
    return rng.integers(0, 257, shape).astype(np.int32)


def floats(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


def quiet(rng, shape):
    return (rng.standard_normal(shape) * 0.1).astype(np.float32)


def rate(rng, shape):
    return np.full(shape, 16000, np.int64)


# NAME: (file, {input: what fills it}, [{input: shape} a data set], (rtol, atol))
CLOSE, LOOSE = (1e-3, 1e-4), (1e-2, 5e-3)
SHORT = [{"": [1, 9]}, {"": [2, 4]}]  # of int8: a value beside the middle of two quanta goes either way, and loops amplify it
MODELS = {
    "magika": ("magika/models/standard_v3_3/model.onnx", {"bytes": bytes_}, [{"bytes": [n, 2048]} for n in (1, 3)], CLOSE),
    "vad": ("silero_vad/data/silero_vad_op18_ifless.onnx", {"input": quiet, "state": quiet, "sr": rate},
            [{"input": [n, 576], "state": [2, n, 128], "sr": []} for n in (1, 2)], CLOSE),
    "vad_sequence": ("silero_vad/data/silero_vad_16k_sequence.onnx", {"input": quiet, "h": quiet, "c": quiet},
                     [{"input": [n, 576], "h": [1, 1, 128], "c": [1, 1, 128]} for n in (1, 4)], CLOSE),
    "vad_openvino": ("silero_vad/data/silero_vad_openvino_16k.onnx", {}, [{}], CLOSE),
    "ocr_detect": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {"x": floats},
                   [{"x": [1, 3, 64, 96]}, {"x": [2, 3, 96, 32]}], CLOSE),
    "ocr_read": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", {"x": floats},
                 [{"x": [1, 3, 48, 64]}, {"x": [2, 3, 48, 40]}], CLOSE),
    "ocr_turn": ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": floats},
                 [{"x": [n, 3, 48, 192]} for n in (1, 2)], CLOSE),
    "pitch": ("basic_pitch/saved_models/icassp_2022/nmp.onnx", {}, [{"": [1, 43844, 1]}], CLOSE),
    "tashkeel_lstm": ("text2tashkeel/models/bilstm.int8.onnx", {}, SHORT, LOOSE),
    "tashkeel": ("text2tashkeel/models/rawi.int8.onnx", {}, SHORT, LOOSE),
    "tashkeel_2": ("text2tashkeel/models/rawi_v2.int8.onnx", {}, SHORT, LOOSE),
    "tashkeel_3": ("text2tashkeel/models/rawi_v3.int8.onnx", {}, SHORT, LOOSE),
    "tashkeel_both": ("text2tashkeel/models/rawi_ensemble.int8.onnx", {}, SHORT, LOOSE),
}


def fetch(folder):
    """The packages, unpacked below FOLDER/packages; once."""
    packages = folder / "packages"
    if (packages / "done").exists():
        return packages
    wheels = folder / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", wheels, *PACKAGES],
                   check=True)
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as z:
            for name in z.namelist():
                if name.endswith(".onnx"):
                    z.extract(name, packages)
    shutil.rmtree(wheels)
    (packages / "done").touch()
    return packages


def case(path, folder, fills, sets, tolerance):
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "model.onnx"
    target.unlink(missing_ok=True)
    os.link(path, target)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    (folder / "tolerance").write_text("%g %g\n" % tolerance)
    for k, shapes in enumerate(sets):
        rng = np.random.default_rng(k)
        feeds = {}
        for i in session.get_inputs():
            shape = shapes.get(i.name, shapes.get("", i.shape))
            fill = fills.get(i.name, ids(20) if "int64" in i.type else quiet)
            feeds[i.name] = np.asarray(fill(rng, shape))
        data = folder / f"test_data_set_{k}"
        data.mkdir(exist_ok=True)
        results = session.run(None, feeds)
        for kind, arrays in (("input", feeds.values()), ("output", results)):
            for n, a in enumerate(arrays):
                (data / f"{kind}_{n}.pb").write_bytes(numpy_helper.from_array(np.asarray(a)).SerializeToString())


def main():
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:] or MODELS
    packages = fetch(folder)
    for name in wanted:
        path, fills, sets, tolerance = MODELS[name]
        found = packages / path
        case(found, folder / "cases" / name, fills, sets, tolerance)
        print(f"{name}: {len(sets)} data sets")


if __name__ == "__main__":
    main()
