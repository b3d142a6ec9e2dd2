// The ONNX front end: a model file becomes a module with one `graph @main`, in the operators of the newest opset.
//
//   file "m.onnx" {bytes = 38780, sha256 = ".."}
//   const @fc1.weight: f32[128, 64] = "m.onnx" at 212 from "fc1.weight"
//   graph @main[n](img: f32[n, 64]) -> (logits: f32[n, 10]) {
//     dataflow -> logits {
//       h: f32[n, 128] = Gemm(img, @fc1.weight, @fc1.bias) {transB = 1} from "/fc1/Gemm"
//
// Weights stay in their files. Integer tensors that shapes are made of become index expressions where an operator has
// to know them (Shape, Gather, Concat, Reshape: Reshape(x, [n, 12])). Opset differences end here (onnx/convert.cc).
#pragma once
#include <map>
#include <string>

#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

struct ImportOptions {
  std::string path;  // of the model; external data lies in its folder or below
  // What is fixed: "n" -> "8" for a dimension by its name in the model, "axes" -> "[0, 2]" for an input, which becomes
  // a constant.
  std::map<std::string, std::string> bind;
  // File that takes large tensors without raw bytes in the model file; empty: they go into the text up to a limit.
  std::string side;
  bool hash = false;  // write the hash of files of 64 MB and more too
};

// Adds the items to `m`. If it fails, `error_lines` holds one line for each thing that is wrong, in the order of the
// model:
//   not supported here: node "/act" (Celu, opset 12): no such operator
//   invalid model: node of "y" (Reshape, opset 13): ...
// without the file's name; nothing was added and no side file was written then.
bool import_onnx(Build &b, const ImportOptions &options, Module &m, std::string &error_lines);

}  // namespace mlc
