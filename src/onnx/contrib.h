// What the operators of com.microsoft share. Included by src/onnx/contrib*.cc only.
#pragma once
#include "onnx/extras.h"

namespace mlc::onnx {

// Attributes of the model's node as they are, those that it has; each is taken.
std::vector<Attribute> passed(Expansion &e, std::initializer_list<Text> names);
Attribute epsilon(Expansion &e, float otherwise);
Term channels_first(Expansion &e, Term x);  // [n, .., c] -> [n, c, ..]
Term channels_last(Expansion &e, Term x);   // and back

// (a b) * scale + bias of integers with zero points; these and the bias may be left out (contrib_quant.cc).
Term integer_product(Expansion &e, Term a, Term b, Term a_zero, Term b_zero, Term scale, Term bias);

}  // namespace mlc::onnx
