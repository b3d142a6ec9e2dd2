// What the classical models (ai.onnx.ml) share. Included by src/onnx/ml*.cc only.
#pragma once
#include "onnx/extras.h"

namespace mlc::onnx {

// x as a matrix of f32, or of f64 where it is that.
Term features(Expansion &e, Term x);
// The attribute post_transform, checked: NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT.
Text post_transform(Expansion &e);
Term transformed(Expansion &e, Term scores, Text transform);  // along the rows of a matrix
// What one score s says of two classes: 1 - s or -s, and s; LOGISTIC is the only transform of both.
Term two_classes(Expansion &e, Term s, Text transform, bool complement);

// Labels of a classifier: as many as there are classes.
struct Labels {
  std::vector<int64_t> ints;
  std::vector<Text> names;  // in place of them
  size_t count = 0;
};
Labels labels(Expansion &e, Text ints, Text strings);
// Output 0: the label of the largest score in each row, or of a class that is known by its number, i64[n].
void give_label(Expansion &e, const Labels &l, Term number);
Term best(Expansion &e, Term scores);

}  // namespace mlc::onnx
