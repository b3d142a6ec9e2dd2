#!/usr/bin/env python3
"""Trains two classifiers of handwritten digits with numpy and writes them as ONNX: train_digits.py [DIR]

The data are scikit-learn's bundled 8x8 digits: 1437 images train, the first 200 of the others are written as a test set.
Needs numpy, onnx and scikit-learn; takes 5 seconds. Seeds are fixed; another BLAS may differ in the last bits.

    digits_mlp.onnx  img f32[n,64]     -> logits f32[n,10]   64-128-10 with Relu                                  39 kB
    digits_cnn.onnx  img f32[n,1,8,8]  -> logits f32[n,10]   two of Conv 3x3, Relu, MaxPool (8, 16 channels), Gemm 8 kB
    digits_test_images.npy  f32[200,64] in [0,1]
    digits_test_labels.npy  i64[200]
"""
import pathlib
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save
from sklearn.datasets import load_digits

TRAIN, TEST = 1437, 200  # images
EPOCHS, BATCH, RATE = 60, 32, 2e-3
DECAY1, DECAY2 = 0.9, 0.999  # of Adam's moments


class Layer:
    """forward(x) keeps what backward(dy) needs; backward returns dx and leaves the gradients in `grads`."""
    weights, grads = {}, {}

    def nodes(self, x, y):
        """The ONNX node x -> y, and its weights in ONNX's layout."""
        return helper.make_node(self.op, [x], [y], name=f"/{self.name}/{self.op}", **self.attributes), {}

    attributes = {}

    def __init__(self, name):
        self.name = name


class Weighted(Layer):
    """A layer with a weight, whose last axis is its output's, and a bias. He initialisation."""

    def __init__(self, name, rng, *shape):
        super().__init__(name)
        w = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:-1]))
        self.weights = {"weight": w.astype(np.float32), "bias": np.zeros(shape[-1], np.float32)}

    def nodes(self, x, y):
        named = {f"{self.name}.{k}": w for k, w in zip(self.weights, (self.onnx_weight(), self.weights["bias"]))}
        return helper.make_node(self.op, [x, *named], [y], name=f"/{self.name}/{self.op}", **self.attributes), named


class Dense(Weighted):
    op, attributes = "Gemm", {"transB": 1}

    def forward(self, x):
        self.shape, self.x = x.shape, x.reshape(len(x), -1)
        return self.x @ self.weights["weight"] + self.weights["bias"]

    def backward(self, dy):
        self.grads = {"weight": self.x.T @ dy, "bias": dy.sum(0)}
        return (dy @ self.weights["weight"].T).reshape(self.shape)

    def onnx_weight(self):
        w = self.weights["weight"]
        if len(self.shape) == 4:  # trained on [n,h,w,c], while ONNX flattens [n,c,h,w]
            w = w.reshape(*self.shape[1:], -1).transpose(2, 0, 1, 3).reshape(w.shape)
        return w.T


class Conv3x3(Weighted):
    """x[n,h,w,c], weight[3,3,c,k]; stride 1, zero padding 1."""
    op, attributes = "Conv", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]}
    taps = [(i, j) for i in range(3) for j in range(3)]

    def forward(self, x):
        n, h, w, c = x.shape
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        self.columns = np.concatenate([padded[:, i:i + h, j:j + w] for i, j in self.taps], axis=3)
        weight = self.weights["weight"]
        return self.columns @ weight.reshape(9 * c, -1) + self.weights["bias"]

    def backward(self, dy):
        n, h, w, k = dy.shape
        weight = self.weights["weight"]
        c = weight.shape[2]
        flat = self.columns.reshape(-1, 9 * c).T @ dy.reshape(-1, k)
        self.grads = {"weight": flat.reshape(weight.shape), "bias": dy.sum((0, 1, 2))}
        columns = dy @ weight.reshape(9 * c, k).T
        dx = np.zeros((n, h + 2, w + 2, c), dy.dtype)
        for t, (i, j) in enumerate(self.taps):
            dx[:, i:i + h, j:j + w] += columns[..., t * c:(t + 1) * c]
        return dx[:, 1:-1, 1:-1]

    def onnx_weight(self):
        return self.weights["weight"].transpose(3, 2, 0, 1)


class Relu(Layer):
    op = "Relu"

    def forward(self, x):
        self.positive = x > 0
        return np.maximum(x, 0)

    def backward(self, dy):
        return dy * self.positive


class MaxPool2(Layer):
    op, attributes = "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}

    def forward(self, x):
        n, h, w, c = x.shape
        cells = x.reshape(n, h // 2, 2, w // 2, 2, c)
        y = cells.max((2, 4), keepdims=True)
        self.hit = cells == y
        return y.reshape(n, h // 2, w // 2, c)

    def backward(self, dy):
        n, h, w, c = dy.shape
        share = dy.reshape(n, h, 1, w, 1, c) / self.hit.sum((2, 4), keepdims=True)
        return (self.hit * share).reshape(n, 2 * h, 2 * w, c).astype(dy.dtype)


class Flatten(Layer):
    """Dense flattens by itself in training; ONNX wants a node."""
    op, attributes = "Flatten", {"axis": 1}

    def forward(self, x):
        return x

    backward = forward


def logits(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return x


def train(layers, x, labels, rng):
    """Softmax cross-entropy, Adam, a learning rate that falls along a cosine."""
    moments = [{k: (np.zeros_like(w), np.zeros_like(w)) for k, w in layer.weights.items()} for layer in layers]
    one_hot = np.eye(10, dtype=np.float32)[labels]
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(x))
        for pick in (order[i:i + BATCH] for i in range(0, len(x), BATCH)):
            y = logits(layers, x[pick])
            e = np.exp(y - y.max(1, keepdims=True))
            d = (e / e.sum(1, keepdims=True) - one_hot[pick]) / len(pick)
            for layer in reversed(layers):
                d = layer.backward(d)
            step += 1
            for layer, of in zip(layers, moments):
                for k, g in layer.grads.items():
                    first, second = of[k]
                    first += (1 - DECAY1) * (g - first)
                    second += (1 - DECAY2) * (g * g - second)
                    change = rate * (first / (1 - DECAY1**step)) / (np.sqrt(second / (1 - DECAY2**step)) + 1e-8)
                    layer.weights[k] -= change.astype(np.float32)


def write_onnx(path, layers, in_shape):
    nodes, weights, x = [], {}, "img"
    for layer in layers:
        y = "logits" if layer is layers[-1] else layer.name
        node, named = layer.nodes(x, y)
        nodes.append(node)
        weights |= named
        x = y
    graph = helper.make_graph(
        nodes, path.stem,
        [helper.make_tensor_value_info("img", TensorProto.FLOAT, ["n", *in_shape])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(w), k) for k, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="train_digits")
    checker.check_model(model, full_check=True)
    save(model, path)


def mlp(rng):
    return [Dense("fc1", rng, 64, 128), Relu("relu"), Dense("fc2", rng, 128, 10)]


def cnn(rng):
    return [Conv3x3("conv1", rng, 3, 3, 1, 8), Relu("relu1"), MaxPool2("pool1"),
            Conv3x3("conv2", rng, 3, 3, 8, 16), Relu("relu2"), MaxPool2("pool2"),
            Flatten("flatten"), Dense("fc", rng, 64, 10)]


def main(out):
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.data))
    images = (data.data[order] / 16).astype(np.float32)
    labels = data.target[order].astype(np.int64)
    for name, model, channels_last, channels_first in (("mlp", mlp, (64,), (64,)), ("cnn", cnn, (8, 8, 1), (1, 8, 8))):
        rng = np.random.default_rng(1)
        layers = model(rng)
        x = images.reshape(-1, *channels_last)
        train(layers, x[:TRAIN], labels[:TRAIN], rng)
        hits = logits(layers, x[TRAIN:]).argmax(1) == labels[TRAIN:]
        write_onnx(out / f"digits_{name}.onnx", layers, channels_first)
        print(f"{name}: {hits.mean():.2%} of {len(hits)} unseen images, {hits[:TEST].mean():.2%} of the {TEST} written")
    np.save(out / "digits_test_images.npy", images[TRAIN:TRAIN + TEST])
    np.save(out / "digits_test_labels.npy", labels[TRAIN:TRAIN + TEST])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent)
