// Feature transforms and linear models of ai.onnx.ml, written in ONNX's own operators. Results are f32 where they say
// so; what the text leaves open is as in the runtime that most of these models run on.
#include "onnx/ml.h"

#include <cmath>

namespace mlc::onnx {

Term features(Expansion &e, Term x) {
  if (x.rank() == 1) x = e.unsqueeze(x, 0);
  if (x.rank() != 2) invalid("expected a matrix, found rank {}", x.rank());
  return e.cast(x, x.elem() == DType::F64 ? DType::F64 : DType::F32);
}

// ---- scores

Text post_transform(Expansion &e) {
  Text t = e.text("post_transform", "NONE");
  for (Text known : {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"})
    if (t == known) return known;
  invalid("unknown post_transform \"{}\"", one_line(t));
}

namespace {

// exp(x - max), but x * exp(-max) where x is nearly 0; by their sum, or 0.5 where that is 0.
Term softmax_zero(Expansion &e, Term x) {
  Term top = e.reduce("ReduceMax", x, 1);
  Term small = e.op("LessOrEqual", {e.op("Abs", {x}), e.num(1e-7, x.elem())});
  Term raised = e.where(small, x * e.op("Exp", {e.op("Neg", {top})}), e.op("Exp", {x - top}));
  Term sum = e.reduce("ReduceSum", raised, 1);
  return e.where(e.op("Equal", {sum, e.num(0, x.elem())}), e.num(0.5, x.elem()), raised / sum);
}

// sqrt(2) * erf^-1(2 x - 1), by Winitzki's approximation of the inverse.
Term probit(Expansion &e, Term x) {
  constexpr double a = 0.147;
  Term y = x * 2.0 - 1.0, log = e.op("Log", {(1.0 - y) * (1.0 + y)});
  Term v = log * 0.5 + 2.0 / (M_PI * a);
  return e.op("Sign", {y}) * e.op("Sqrt", {e.op("Sqrt", {v * v - log / a}) - v}) * 1.41421356;
}

}  // namespace

Term transformed(Expansion &e, Term x, Text transform) {
  if (transform == "SOFTMAX") return e.op("Softmax", {x}, {attribute("axis", int64_t{1})});
  if (transform == "LOGISTIC") return e.op("Sigmoid", {x});
  if (transform == "SOFTMAX_ZERO") return softmax_zero(e, x);
  return transform == "PROBIT" ? probit(e, x) : x;
}

Term two_classes(Expansion &e, Term s, Text transform, bool complement) {
  if (transform == "PROBIT") return transformed(e, s, transform);
  if (transform != "LOGISTIC" && complement) return e.concat({1.0 - s, s}, 1);
  Term both = e.concat({e.op("Neg", {s}), s}, 1);
  return transform == "LOGISTIC" ? e.op("Sigmoid", {both}) : both;
}

Labels labels(Expansion &e, Text ints, Text strings) {
  Labels l{e.integers(ints), e.texts(strings)};
  if (!l.ints.empty() && !l.names.empty()) invalid("both '{}' and '{}'", ints, strings);
  l.count = std::max(l.ints.size(), l.names.size());
  return l;
}

Term best(Expansion &e, Term scores) {
  return e.op("ArgMax", {scores}, {attribute("axis", int64_t{1}), attribute("keepdims", int64_t{0})});
}

void give_label(Expansion &e, const Labels &l, Term number) {
  if (!e.is_read(0)) return e.give(0, number);
  if (!l.names.empty())
    return e.give(0, e.op("Gather", {e.strings("labels", l.names, {int64_t(l.names.size())}), number}));
  bool counted = true;  // 0, 1, 2 ..
  for (size_t k = 0; k < l.ints.size(); ++k) counted = counted && l.ints[k] == int64_t(k);
  if (counted) return e.give(0, number);
  e.give(0, e.op("Gather", {e.ints("labels", l.ints, {int64_t(l.ints.size())}), number}));
}

// ---- transforms of features

void array_feature_extractor(Expansion &e) {
  Term x = e.in(0), y = e.op("Reshape", {e.in(1), e.axes({-1})});
  if (x.rank() == 1) x = e.unsqueeze(x, 0);
  e.give(0, e.op("Gather", {x, y}, {attribute("axis", int64_t(x.rank()) - 1)}));
}

void binarizer(Expansion &e) {
  Term x = e.in(0);
  Term over = e.op("Greater", {x, e.floats("threshold", {e.number("threshold", 0)}, {}, x.elem())});
  e.give(0, e.cast(over, x.elem()));
}

// Each input as a matrix of as many columns as its dimension says, cut or filled with zeros; side by side.
void feature_vectorizer(Expansion &e) {
  std::vector<int64_t> sizes = e.integers("inputdimensions");
  if (sizes.size() != e.inputs()) invalid("expected {} 'inputdimensions', found {}", e.inputs(), sizes.size());
  std::vector<Term> parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Term x = e.cast(e.in(i), DType::F32);
    if (x.rank() == 1) x = e.unsqueeze(x, 1);
    if (x.rank() != 2) invalid("input {}: expected a vector or a matrix, found rank {}", i, x.rank());
    int64_t columns;
    if (!is_const(x.dim(1), &columns)) unsupported("input {}: a number of columns that is not known", i);
    if (sizes[i] < 0 || sizes[i] >= int64_t{1} << 40) invalid("attribute 'inputdimensions': found {}", sizes[i]);
    if (columns < sizes[i]) x = e.op("Pad", {x, e.axes({0, 0, 0, sizes[i] - columns})});
    if (columns > sizes[i]) x = e.slice(x, 1, lit(e.b, int64_t{0}), lit(e.b, sizes[i]));
    parts.push_back(x);
  }
  e.give(0, e.concat(parts, 1));
}

void imputer(Expansion &e) {
  Term x = e.in(0);
  bool whole = is_int(x.elem());
  std::vector<float> floats = e.numbers("imputed_value_floats");
  std::vector<int64_t> ints = e.integers("imputed_value_int64s");
  float replaced = e.number("replaced_value_float", 0);
  int64_t replaced_int = e.integer("replaced_value_int64", 0), count = int64_t(whole ? ints.size() : floats.size());
  if (count == 0) invalid("attribute '{}' is missing", whole ? "imputed_value_int64s" : "imputed_value_floats");
  Term with = whole ? e.ints("imputed", ints, {count}, x.elem()) : e.floats("imputed", floats, {count}, x.elem());
  Term gone = !whole && std::isnan(replaced) ? e.op("IsNaN", {x})
              : whole                        ? e.op("Equal", {x, e.ints("replaced", {replaced_int}, {}, x.elem())})
                                             : e.op("Equal", {x, e.floats("replaced", {replaced}, {}, x.elem())});
  e.give(0, e.where(gone, with, x));
}

// (x - offset) * scale, each one number or one a column
void scaler(Expansion &e) {
  Term x = e.cast(e.in(0), DType::F32);
  std::vector<float> offset = e.numbers("offset"), scale = e.numbers("scale");
  if (offset.empty() || scale.empty()) invalid("attributes 'offset' and 'scale' are needed");
  x = x - e.floats("offset", offset, {int64_t(offset.size())});
  e.give(0, x * e.floats("scale", scale, {int64_t(scale.size())}));
}

// x / max, sum |x| or sqrt(sum x^2) of its row; rows without length stay as they are
void normalizer(Expansion &e) {
  Term x = features(e, e.in(0));
  x = e.cast(x, DType::F32);
  Text norm = e.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") invalid("unknown norm \"{}\"", one_line(norm));
  Term length = e.reduce(norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2", x, 1);
  Term none = e.op("Equal", {length, e.num(0, DType::F32)});
  Term y = x / e.where(none, e.num(1, DType::F32), length);
  e.give(0, e.in(0).rank() == 1 ? e.op("Squeeze", {y, e.axes({0})}) : y);
}

void one_hot_encoder(Expansion &e) {
  Term x = e.in(0);
  std::vector<Text> names = e.texts("cats_strings");
  std::vector<int64_t> cats = e.integers("cats_int64s");
  if (cats.empty() && names.empty()) invalid("attribute 'cats_int64s' is missing");
  if ((x.elem() == DType::Str) != cats.empty()) invalid("categories and values differ in type");
  if (!e.integer("zeros", 1)) unsupported("attribute 'zeros' = 0: an error where no category fits");
  Term known = cats.empty() ? e.strings("cats", names, {int64_t(names.size())})
                            : e.ints("cats", cats, {int64_t(cats.size())});
  Term hit = e.op("Equal", {e.unsqueeze(cats.empty() ? x : e.cast(x, DType::I64), -1), known});
  e.give(0, e.cast(hit, DType::F32));
}

// ---- LabelEncoder, CategoryMapper: the value of the first key that equals x, or a default

namespace {
struct List {  // keys or values, in one of the forms that the attributes have
  DType type = DType::Invalid;
  Term term;
  int64_t count = 0;
};
List listed(Expansion &e, Text floats, Text ints, Text strings, Text tensor) {
  if (e.has_attr(strings)) {
    std::vector<Text> v = e.texts(strings);
    if (!v.empty()) return {DType::Str, e.strings(strings, v, {int64_t(v.size())}), int64_t(v.size())};
  }
  if (auto a = e.use.take(tensor)) {
    if (a->kind != AttrKind::Tensor) invalid("attribute '{}': expected a tensor, found {}", tensor, kind_name(a->kind));
    Term t = e.tensor(a->tensors[0], tensor);
    if (t.rank() != 1 && !t.type()->dims.empty()) t = e.op("Reshape", {t, e.axes({-1})});
    int64_t n = 1;
    if (t.rank()) is_const(t.dim(0), &n);
    return {t.elem(), t, n};
  }
  if (e.has_attr(floats)) {
    std::vector<float> v = e.numbers(floats);
    if (!v.empty()) return {DType::F32, e.floats(floats, v, {int64_t(v.size())}), int64_t(v.size())};
  }
  std::vector<int64_t> v = e.integers(ints);
  if (v.empty()) return {};
  return {DType::I64, e.ints(ints, v, {int64_t(v.size())}), int64_t(v.size())};
}

Term looked_up(Expansion &e, Term x, Term keys, Term values, Term otherwise, bool nan_fits) {
  Term hits = e.op("Equal", {e.unsqueeze(x, -1), keys});
  if (nan_fits) {
    Term both = e.op("And", {e.unsqueeze(e.op("IsNaN", {x}), -1), e.op("IsNaN", {keys})});
    hits = e.op("Or", {hits, both});
  }
  Term flags = e.cast(hits, DType::I32);
  auto keep = attribute("keepdims", int64_t{0});
  Term place = e.op("ArgMax", {flags}, {attribute("axis", int64_t{-1}), keep});
  Term any = e.cast(e.op("ReduceMax", {flags, e.axes({-1})}, {keep}), DType::Bool);
  return e.where(any, e.op("Gather", {values, place}), otherwise);
}
}  // namespace

// Strings become integers, integers strings.
void category_mapper(Expansion &e) {
  Term x = e.in(0);
  std::vector<int64_t> ints = e.integers("cats_int64s");
  std::vector<Text> texts = e.texts("cats_strings");
  int64_t n = int64_t(ints.size()), integer = e.integer("default_int64", -1);
  Text text = e.text("default_string", "_Unused");
  if (ints.empty() || ints.size() != texts.size())
    invalid("{} categories that are integers and {} that are strings", ints.size(), texts.size());
  Term numbers = e.ints("cats_int64s", ints, {n}), names = e.strings("cats_strings", texts, {n});
  if (x.elem() == DType::Str) return e.give(0, looked_up(e, x, names, numbers, e.ints("default", {integer}, {}), false));
  if (x.elem() != DType::I64) invalid("expected i64 or str, found {}", dtype_name(x.elem()));
  e.give(0, looked_up(e, x, numbers, names, e.strings("default", {text}, {}), false));
}

void label_encoder(Expansion &e) {
  Term x = e.in(0);
  List keys = listed(e, "keys_floats", "keys_int64s", "keys_strings", "keys_tensor");
  List values = listed(e, "values_floats", "values_int64s", "values_strings", "values_tensor");
  if (e.use.opset < 2) unsupported("labels that are strings");
  if (keys.count == 0 || keys.count != values.count) invalid("{} keys and {} values", keys.count, values.count);
  if (keys.type != x.elem()) invalid("keys of {}, values of {}", dtype_name(keys.type), dtype_name(x.elem()));
  float number = e.number("default_float", -0.0f);
  int64_t integer = e.integer("default_int64", -1);
  Text text = e.text("default_string", "_Unused");
  List given = listed(e, "", "", "", "default_tensor");
  Term otherwise = given.count ? e.op("Reshape", {given.term, e.axes({})})
                   : values.type == DType::Str ? e.strings("default", {text}, {})
                   : is_int(values.type) ? e.ints("default", {integer}, {}, values.type)
                                         : e.floats("default", {number}, {}, values.type);
  bool nan_fits = is_float(x.elem()) && e.use.opset >= 4;  // a key that is NaN fits NaN
  e.give(0, looked_up(e, x, keys.term, values.term, otherwise, nan_fits));
}

// ---- linear models: x c' + intercepts

namespace {
Term linear(Expansion &e, Term x, int64_t rows) {
  std::vector<float> c = e.numbers("coefficients"), intercepts = e.numbers("intercepts");
  int64_t n = int64_t(c.size());
  if (rows < 1 || n == 0 || n % rows) invalid("{} coefficients do not divide into {}", n, rows);
  Term with = e.none();
  if (!intercepts.empty()) with = e.floats("intercepts", intercepts, {int64_t(intercepts.size())}, x.elem());
  return e.op("Gemm", {x, e.floats("coefficients", c, {rows, n / rows}, x.elem()), with},
              {attribute("transB", int64_t{1})});
}
}  // namespace

void linear_regressor(Expansion &e) {
  Term x = e.cast(features(e, e.in(0)), DType::F32);
  Text transform = post_transform(e);
  e.give(0, transformed(e, linear(e, x, e.integer("targets", 1)), transform));
}

void linear_classifier(Expansion &e) {
  Term x = e.cast(features(e, e.in(0)), DType::F32);
  Labels l = labels(e, "classlabels_ints", "classlabels_strings");
  Text transform = post_transform(e);
  e.integer("multi_class", 0);
  int64_t rows = int64_t(e.use.attribute("intercepts") ? e.use.attribute("intercepts")->floats.size() : l.count);
  Term scores = linear(e, x, rows);
  if (rows > 1) {
    give_label(e, l, best(e, scores));
    return e.give(1, transformed(e, scores, transform));
  }
  // One score tells two classes apart.
  Term positive = e.op("Greater", {scores, e.num(0, DType::F32)});
  give_label(e, l, e.op("Squeeze", {e.cast(positive, DType::I64), e.axes({1})}));
  e.give(1, l.count == 2 ? two_classes(e, scores, transform, true) : transformed(e, scores, transform));
}

}  // namespace mlc::onnx
