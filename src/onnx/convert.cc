// Opsets end here: one row for each operator and version at which its inputs, attributes or meaning changed. A use of
// an opset before `before` goes through the row; rows of an operator are in the order of versions.
//
//   Clip (6): attributes min, max        Clip(x, -1.0, 1.0)
//   Softmax (11): axis 1 of [n, 3, 4]    Flatten, Softmax, Reshape
//   Upsample (9)                         Resize, asymmetric, floor
#include <cmath>

#include "onnx/importer.h"
#include "onnx/schema.h"

namespace mlc::onnx {

namespace {

using Convert = void (*)(Importer &, Use &);

const IrType *type_of(const Use &u, size_t i) {
  if (!u.input(i)) invalid("input {} is missing", i);
  return u.inputs[i]->type;
}
int64_t rank_of(const Use &u, size_t i) { return int64_t(type_of(u, i)->rank()); }

int64_t normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis > rank) invalid("axis {} is outside the rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

// Attribute -> input: axes = [1] becomes the list [1].
void list_input(Importer &im, Use &u, Text name, size_t i) {
  auto a = u.take(name);
  if (!a) return;
  if (a->kind != AttrKind::Ints) invalid("attribute '{}': expected ints, found {}", name, kind_name(a->kind));
  u.set_input(i, im.list(a->ints));
}
void need_list_input(Importer &im, Use &u, Text name, size_t i) {
  if (!u.attribute(name)) invalid("attribute '{}' is missing", name);
  list_input(im, u, name, i);
}
void number_input(Importer &im, Use &u, Text name, size_t i) {  // of the type of input 0
  auto a = u.take(name);
  if (!a) return;
  if (a->kind != AttrKind::Float) invalid("attribute '{}': expected a float, found {}", name, kind_name(a->kind));
  u.set_input(i, im.number(a->f, type_of(u, 0)->elem));
}

Value *floats(Importer &im, const std::vector<float> &v) {
  std::vector<X> items;
  for (float x : v) items.push_back(lit(im.b, x, DType::F32));
  Value *list = im.list(items);
  list->type = im.b.with_elem(list->type, DType::F32);
  return list;
}

bool is_empty(const Value *v) {  // a tensor of no elements that stands for an input left out
  int64_t n;
  return v && v->type && v->type->rank() == 1 && int_value(v->type->dims[0], &n) && n == 0;
}

std::vector<X> shape_of(Importer &im, const IrType *t, bool *zero) {
  std::vector<X> dims;
  for (const Expr *e : t->dims) dims.emplace_back(im.b, e), *zero = *zero || is_int(e, 0);
  return dims;
}

// ---- before opset 7, b was aligned with the dimensions of a from `axis` on

void broadcast_axis(Importer &im, Use &u) {
  u.take("broadcast");
  if (!u.attribute("axis") || u.inputs.size() != 2) return void(u.take("axis"));
  int64_t rank = rank_of(u, 0), own = rank_of(u, 1), axis = normal_axis(u.take_int("axis", 0), rank);
  if (axis + own > rank) invalid("axis {}: rank {} does not fit into rank {}", axis, own, rank);
  std::vector<int64_t> axes;
  for (int64_t i = axis + own; i < rank; ++i) axes.push_back(own + (i - axis - own));
  if (!axes.empty()) u.inputs[1] = im.emit(u.inputs[1]->name, "Unsqueeze", {u.inputs[1], im.list(axes)});
}

void prelu_slope(Importer &im, Use &u) {  // one number a channel
  int64_t rank = rank_of(u, 0), n = 0;
  if (rank_of(u, 1) != 1 || rank <= 2 || (int_value(type_of(u, 1)->dims[0], &n) && n == 1)) return;
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  u.inputs[1] = im.emit(u.inputs[1]->name, "Unsqueeze", {u.inputs[1], im.list(axes)});
}

// ---- before opset 13, softmax ran over all dimensions from `axis` on

void softmax(Importer &im, Use &u) {
  int64_t rank = rank_of(u, 0), axis = normal_axis(u.take_int("axis", 1), rank);
  u.set(attribute("axis", int64_t{-1}));
  if (axis == rank - 1) return;
  bool zero = false;
  std::vector<X> dims = shape_of(im, type_of(u, 0), &zero);
  u.inputs[0] = im.emit(u.base, "Flatten", {u.inputs[0]}, {attribute("axis", axis)});
  u.then = [&im, dims, zero](Value *y) {
    Use back;
    back.op = "Reshape";
    back.inputs = {y, im.list(dims)};
    if (zero) back.set(attribute("allowzero", int64_t{1}));
    return back;
  };
}

// ---- modes of training

void batch_norm_spatial(Importer &, Use &u) {
  if (u.take_int("spatial", 1) != 1) unsupported("attribute 'spatial' = 0");
}
void batch_norm_test(Importer &, Use &u) {
  if (u.take_int("is_test", 0) == 0) unsupported("training: attribute 'is_test' = 0");
}
void batch_norm_outputs(Importer &, Use &u) {
  if (u.listed > 1) unsupported("training: {} outputs", u.listed);
}
void dropout_test(Importer &, Use &u) {
  if (u.take_int("is_test", 0) == 0) unsupported("training: attribute 'is_test' = 0");
}
void dropout_mask(Importer &, Use &u) {
  if (u.outputs > 1) unsupported("a mask that is not bool, as before opset 10");
}
void dropout_ratio(Importer &, Use &u) { u.take("ratio"); }  // says nothing where nothing is dropped

// ---- resizing

void upsample_sides(Importer &, Use &u) {  // opset 1: of images
  auto h = u.take("height_scale"), w = u.take("width_scale");
  if (!h || !w || h->kind != AttrKind::Float || w->kind != AttrKind::Float)
    invalid("'height_scale' and 'width_scale' must be floats");
  Attribute scales = attribute("scales", std::vector<int64_t>{});
  scales.kind = AttrKind::Floats;
  scales.floats = {1, 1, h->f, w->f};
  u.set(scales);
  if (const Attribute *mode = u.attribute("mode"); mode && mode->s == "bilinear")
    u.set(attribute("mode", Text("linear")));
}
void upsample_scales(Importer &im, Use &u) {
  auto scales = u.take("scales");
  if (!scales || scales->kind != AttrKind::Floats) invalid("attribute 'scales': expected floats");
  u.set_input(1, floats(im, scales->floats));
}
void resize_from_scales(Use &u, Text nearest_mode) {  // (x, scales) -> (x, none, scales)
  u.op = "Resize";
  if (u.inputs.size() != 2) invalid("expected 2 inputs, found {}", u.inputs.size());
  u.inputs = {u.inputs[0], nullptr, u.inputs[1]};
  const Attribute *mode = u.attribute("mode");
  if (!mode || mode->s == "nearest") u.set(attribute("nearest_mode", nearest_mode));
  u.set(attribute("coordinate_transformation_mode", Text("asymmetric")));
}
void upsample(Importer &, Use &u) { resize_from_scales(u, "floor"); }
void resize_10(Importer &im, Use &u) {  // rounds down where it grows, up where it shrinks
  const Elements *scales = u.input(1) ? &im.known(u.input(1)) : nullptr;
  bool grows = false, shrinks = false;
  if (scales && *scales)
    for (X x : **scales) {
      auto *f = as<Float>(x.e);
      grows |= f && f->value > 1, shrinks |= f && f->value < 1;
    }
  const Attribute *mode = u.attribute("mode");
  if (grows && shrinks && (!mode || mode->s == "nearest"))
    unsupported("nearest that grows one dimension and shrinks another");
  resize_from_scales(u, shrinks ? "ceil" : "floor");
}
void resize_empty(Importer &, Use &u) {
  const Attribute *mode = u.attribute("coordinate_transformation_mode");
  for (size_t i = 1; i < u.inputs.size(); ++i)
    if (is_empty(u.inputs[i])) u.inputs[i] = nullptr;
  if (u.inputs.size() > 1 && !(mode && mode->s == "tf_crop_and_resize")) u.inputs[1] = nullptr;  // roi of nothing
}

// ---- attributes that became inputs

void slice(Importer &im, Use &u) {
  need_list_input(im, u, "starts", 1);
  need_list_input(im, u, "ends", 2);
  list_input(im, u, "axes", 3);
}
void reshape(Importer &im, Use &u) { need_list_input(im, u, "shape", 1); }
void squeeze(Importer &im, Use &u) { list_input(im, u, "axes", 1); }
void unsqueeze(Importer &im, Use &u) { need_list_input(im, u, "axes", 1); }
void reduce(Importer &im, Use &u) {
  if (const Attribute *a = u.attribute("axes"); a && a->ints.empty()) u.take("axes");
  list_input(im, u, "axes", 1);
}
void clip(Importer &im, Use &u) {
  number_input(im, u, "min", 1);
  number_input(im, u, "max", 2);
}
void pad_paddings(Importer &, Use &u) {
  auto a = u.take("paddings");
  if (!a) invalid("attribute 'paddings' is missing");
  a->name = "pads";
  u.set(*a);
}
void pad(Importer &im, Use &u) {
  need_list_input(im, u, "pads", 1);
  number_input(im, u, "value", 2);
}
void pad_wrap(Importer &, Use &u) {
  if (const Attribute *a = u.attribute("mode"); a && a->s == "wrap") invalid("mode 'wrap' came with opset 19");
}
void top_k(Importer &im, Use &u) {
  if (!u.attribute("k")) invalid("attribute 'k' is missing");
  u.set_input(1, im.list(std::vector<int64_t>{u.take_int("k", 0)}));
}
void split_input(Importer &, Use &u) {
  if (u.input(1)) unsupported("sizes as an input, as in opset 1");
}
void split(Importer &im, Use &u) { list_input(im, u, "split", 1); }
void split_equal(Importer &, Use &u) {
  if (!u.input(1)) u.set(attribute("num_outputs", int64_t(u.listed)));
}
void tile(Importer &im, Use &u) {  // (x, tiles, axis) -> (x, repeats)
  auto tiles = u.input(1) ? im.known_ints(u.input(1)) : std::nullopt,
       axis = u.input(2) ? im.known_ints(u.input(2)) : std::nullopt;
  if (!tiles || !axis || tiles->size() != 1 || axis->size() != 1)
    unsupported("tiles or an axis that is not known when compiling");
  std::vector<int64_t> repeats(size_t(rank_of(u, 0)), 1);
  int64_t at = normal_axis((*axis)[0], int64_t(repeats.size()));
  if (at == int64_t(repeats.size())) invalid("axis {} is outside the rank {}", at, repeats.size());
  repeats[size_t(at)] = (*tiles)[0];
  u.inputs = {u.inputs[0], im.list(repeats)};
}
void dft(Importer &im, Use &u) { u.set_input(2, im.integer(u.take_int("axis", 1))); }

// ---- other changes

void drop_broadcast(Importer &, Use &u) { u.take("broadcast"); }
void drop_output_sequence(Importer &, Use &u) { u.take("output_sequence"); }
void concat(Importer &, Use &u) {
  if (!u.attribute("axis")) u.set(attribute("axis", int64_t{1}));
}
void selu(Importer &, Use &u) {
  if (!u.attribute("alpha")) u.set(attribute("alpha", 1.6732f));
  if (!u.attribute("gamma")) u.set(attribute("gamma", 1.0507f));
}
void cast_name(Importer &, Use &u) {  // to = "FLOAT"
  static constexpr Text kNames[] = {"UNDEFINED", "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",
                                    "INT64",     "STRING", "BOOL",   "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
  auto to = u.take("to");
  if (!to || to->kind != AttrKind::String) return to ? u.set(*to) : void();
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == to->s) return u.set(attribute("to", int64_t(i)));
  invalid("attribute 'to': no type is called {}", one_line(to->s));
}
void whole_p(Importer &, Use &u) {
  auto p = u.take("p");
  if (!p) return;
  if (p->kind != AttrKind::Float || p->f != std::floor(p->f) || !(std::fabs(p->f) < 1e9f))
    unsupported("attribute 'p' is no integer");
  u.set(attribute("p", int64_t(p->f)));
}
void scatter(Importer &, Use &u) { u.op = "ScatterElements"; }
void roi_align(Importer &, Use &u) { u.set(attribute("coordinate_transformation_mode", Text("output_half_pixel"))); }
void grid_sample(Importer &, Use &u) {
  const Attribute *mode = u.attribute("mode");
  if (mode && mode->s == "bilinear") u.set(attribute("mode", Text("linear")));
  else if (mode && mode->s == "bicubic") u.set(attribute("mode", Text("cubic")));
}
void group_norm(Importer &im, Use &u) {  // scale and bias of a group -> of its channels
  int64_t groups = u.attribute("num_groups") ? u.attribute("num_groups")->i : 0;
  if (groups < 1 || u.inputs.size() != 3 || rank_of(u, 0) < 2) invalid("expected 3 inputs and a positive 'num_groups'");
  X channels(im.b, type_of(u, 0)->dims[1]), each = floordiv(channels, groups);
  for (size_t i = 1; i < 3; ++i) {
    Text base = u.inputs[i]->name;
    Value *column = im.emit(base, "Unsqueeze", {u.inputs[i], im.list(std::vector<int64_t>{1})});
    Value *wide = im.emit(base, "Expand", {column, im.list(std::vector<X>{lit(im.b, groups), each})});
    u.inputs[i] = im.emit(base, "Reshape", {wide, im.list(std::vector<X>{channels})});
  }
}
// Range(0, n, 1) of a size n: i64[n], not i64[max(n, 0)].
void range_size(Importer &im, Use &u) {
  if (u.inputs.size() != 3 || !u.input(0) || type_of(u, 0)->elem != DType::I64) return;
  std::vector<X> known;
  for (Value *v : u.inputs)
    if (v && im.known(v) && im.known(v)->size() == 1) known.push_back(im.known(v)->at(0));
  int64_t step, n;
  if (known.size() != 3 || !is_const(known[2], &step) || step == 0 || step == INT64_MIN) return;
  X span = step > 0 ? known[1] - known[0] : known[0] - known[1];
  if (is_const(span, &n) || interval(span.e, im.bounds()).lo < 0) return;
  u.wanted = DType::I64;
  u.wanted_dims = {ceildiv(span, lit(im.b, step > 0 ? step : -step))};
}
// Range of i32 over what is known: a literal is i64 where nothing else says its type.
void range(Importer &im, Use &u) {
  if (u.inputs.size() != 3 || !u.input(0) || !is_int(type_of(u, 0)->elem) || type_of(u, 0)->elem == DType::I64) return;
  DType elem = type_of(u, 0)->elem;
  bool constant = true;
  for (Value *v : u.inputs) {
    if (!v || !im.known(v) || im.known(v)->size() != 1) return;
    constant = constant && v->constant;
  }
  if (constant) return;
  for (Value *&v : u.inputs) {
    v = im.index(im.known(v)->at(0));
  }
  u.then = [elem](Value *y) {
    Use cast;
    cast.op = "Cast", cast.inputs = {y}, cast.wanted = elem;
    return cast;
  };
}

struct Row {
  Text op;
  int64_t before;
  Convert convert;
};
constexpr int64_t kAlways = kNewestOpset + 1;
constexpr Row kRows[] = {
    {"Add", 7, broadcast_axis},     {"Sub", 7, broadcast_axis},     {"Mul", 7, broadcast_axis},
    {"Div", 7, broadcast_axis},     {"Pow", 7, broadcast_axis},     {"And", 7, broadcast_axis},
    {"Or", 7, broadcast_axis},      {"Xor", 7, broadcast_axis},     {"Equal", 7, broadcast_axis},
    {"Greater", 7, broadcast_axis}, {"Less", 7, broadcast_axis},    {"Gemm", 7, drop_broadcast},
    {"PRelu", 7, prelu_slope},      {"Selu", 6, selu},              {"Concat", 4, concat},
    {"Cast", 6, cast_name},         {"Clip", 11, clip},             {"Reshape", 5, reshape},
    {"Tile", 6, tile},              {"Slice", 10, slice},
    {"Slice", kAlways, far_slice_end},           {"TopK", 10, top_k},
    {"Softmax", 13, softmax},       {"LogSoftmax", 13, softmax},    {"Hardmax", 13, softmax},
    {"BatchNormalization", 9, batch_norm_spatial},                  {"BatchNormalization", 7, batch_norm_test},
    {"BatchNormalization", 14, batch_norm_outputs},                 {"Dropout", 7, dropout_test},
    {"Dropout", 10, dropout_mask},  {"Dropout", 12, dropout_ratio}, {"Split", 2, split_input},
    {"Split", 13, split},           {"Split", 18, split_equal},     {"Squeeze", 13, squeeze},
    {"Unsqueeze", 13, unsqueeze},   {"Pad", 2, pad_paddings},       {"Pad", 11, pad},
    {"Pad", 19, pad_wrap},          {"ReduceSum", 13, reduce},      {"ReduceMean", 18, reduce},
    {"ReduceMax", 18, reduce},      {"ReduceMin", 18, reduce},      {"ReduceProd", 18, reduce},
    {"ReduceL1", 18, reduce},       {"ReduceL2", 18, reduce},       {"ReduceSumSquare", 18, reduce},
    {"ReduceLogSum", 18, reduce},   {"ReduceLogSumExp", 18, reduce}, {"LpPool", 2, whole_p},
    {"GlobalLpPool", 2, whole_p},   {"RNN", 7, drop_output_sequence}, {"GRU", 7, drop_output_sequence},
    {"LSTM", 7, drop_output_sequence},
    // Upsample becomes Resize behind Resize's own rows.
    {"Upsample", 7, upsample_sides}, {"Upsample", 9, upsample_scales},
    {"Resize", 11, resize_10},      {"Upsample", kAlways, upsample}, {"Resize", kAlways, resize_empty},
    {"Scatter", kAlways, scatter},  {"RoiAlign", 16, roi_align},    {"GridSample", 20, grid_sample},
    {"TfIdfVectorizer", kAlways, number_pool},
    {"Reshape", kAlways, unknown_reshape}, {"Expand", kAlways, unknown_expand},
    {"RandomNormal", kAlways, draw_tensor}, {"RandomNormalLike", kAlways, draw_tensor},
    {"RandomUniform", kAlways, draw_tensor}, {"RandomUniformLike", kAlways, draw_tensor},
    {"Bernoulli", kAlways, draw_each},
    {"Multinomial", kAlways, draw_each}, {"Dropout", kAlways, draw_dropout},
    {"DFT", 20, dft},               {"GroupNormalization", 21, group_norm}, {"Range", kAlways, range},
    {"Range", kAlways, range_size},
};

// Attributes that only say the element type of the result: the text has it in the result's type. `otherwise`: its
// number where the attribute is left out; 0: the operator's rule decides.
struct ResultType {
  Text op, attribute;
  int32_t otherwise;
};
constexpr ResultType kResultTypes[] = {
    {"Cast", "to", 0},                  {"BitCast", "to", 0},
    {"EyeLike", "dtype", -1},           {"Bernoulli", "dtype", -1},
    {"Multinomial", "dtype", 6},        {"BlackmanWindow", "output_datatype", 1},
    {"HammingWindow", "output_datatype", 1}, {"HannWindow", "output_datatype", 1},
    {"MelWeightMatrix", "output_datatype", 1}, {"QuantizeLinear", "output_dtype", 2},
    {"DequantizeLinear", "output_dtype", 0},
};

void result_type(Use &u) {
  for (const ResultType &r : kResultTypes) {
    if (r.op != u.op) continue;
    const OpInfo *op = find_op(u.op);
    if (op && op->attr(r.attribute)) return;
    int64_t type = u.take_int(r.attribute, 0);
    if (type == 0 && r.otherwise == -1) u.wanted = type_of(u, 0)->elem;
    else if (type != 0 || r.otherwise != 0) u.wanted = need_dtype(int32_t(type ? type : r.otherwise));
    else if (r.attribute == "to") invalid("attribute 'to' is missing");
  }
  if (u.op != "ConstantOfShape") return;
  const Attribute *value = u.attribute("value");
  if (value && value->kind != AttrKind::Tensor)
    invalid("attribute 'value': expected a tensor, found {}", kind_name(value->kind));
  u.wanted = value ? need_dtype(value->tensors[0].type) : DType::F32;
}

}  // namespace

void convert(Importer &im, Use &use) {
  use.take("consumed_inputs");  // before opset 6: buffers that could be overwritten
  for (const Row &row : kRows)
    if (row.op == use.op && use.opset < row.before) row.convert(im, use);
  result_type(use);
}

bool is_converted(std::string_view op) {
  return op == "Upsample" || op == "Scatter" || op == "RandomNormalLike" || op == "RandomUniformLike";
}

}  // namespace mlc::onnx
