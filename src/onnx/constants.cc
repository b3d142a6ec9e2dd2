// Constants: where their bytes are, or their elements as text.
#include <charconv>
#include <cmath>

#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kInline = 16;            // elements that the text holds even if a file has them
constexpr int64_t kMostInline = 1 << 16;   // elements without raw bytes that the text holds
constexpr size_t kAlign = 64;              // of tensors in a side file

}  // namespace

// nan is the type's usual one; any other is written with its bits.
const Expr *float_literal(Build &b, DType t, Scalar s) {
  double v = to_double(t, s);
  if (!std::isnan(v)) return b.number(v, t);
  uint64_t bits = to_bits(t, s), usual = to_bits(t, scalar_of(t, std::nan("")));
  return b.number(std::copysign(std::nan(""), std::signbit(v) ? -1.0 : 1.0), kNowhere, bits == usual ? 0 : bits);
}

Value *Importer::constant(const Tensor &t, Text name, Text from) {
  if (auto it = constant_of_.find(&t); it != constant_of_.end()) return it->second;
  Extent e = extent_of(t);
  if (t.segmented) unsupported("tensors in segments");
  if (t.external) external(t, e);  // that it is there
  else if (t.has_raw && int64_t(t.raw.size()) != e.bytes)
    invalid("it has {} raw bytes, its shape needs {}", t.raw.size(), e.bytes);
  std::vector<const Expr *> dims;
  for (int64_t d : t.dims) dims.push_back(b.integer(d));
  Constant c{module_names_.make(name), b.tensor(e.type, b.list(dims)), &t, {}, from};
  constants_.push_back(c);
  Value v{name, b.global(c.name), c.type};
  v.constant = &constants_.back();
  return constant_of_[&t] = keep(v);
}

Value *Importer::constant(Text name, Text from, const IrType *type, std::vector<const Expr *> elements) {
  constants_.push_back({module_names_.make(name), type, nullptr, std::move(elements), from});
  Value v{name, b.global(constants_.back().name), type};
  v.constant = &constants_.back();
  return keep(v);
}

std::vector<const Expr *> Importer::literals(const Array &a) {
  std::vector<const Expr *> list;
  for (const std::string &s : a.strings) list.push_back(b.string(s));
  for (int64_t i = 0, n = a.strings.empty() ? a.size() : 0; i < n; ++i) {
    Scalar s = a.get(i);
    if (a.type == DType::Bool) list.push_back(b.boolean(s.as_bool()));
    else if (is_int(a.type)) list.push_back(b.integer(s.as_int(), kNowhere, !is_signed(a.type) && s.as_int() < 0));
    else list.push_back(float_literal(b, a.type, s));
  }
  return list;
}

Array Importer::array_of(const Tensor &t) {
  if (!t.external) return decode(t);
  auto bytes = external(t, extent_of(t)).bytes;
  return decode(t, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

// external_data: location (relative to the model's folder), offset, length.
Importer::Place Importer::external(const Tensor &t, const Extent &e) {
  std::string_view location;
  int64_t offset = 0, length = e.bytes;
  for (auto &[key, text] : t.where) {
    int64_t *number = key == "offset" ? &offset : key == "length" ? &length : nullptr;
    if (key == "location") location = text;
    if (!number) continue;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc{} || end != text.data() + text.size() || *number < 0)
      invalid("its external {} is \"{}\", not a size", key, text);
  }
  if (length != e.bytes) invalid("it has {} external bytes, its shape needs {}", length, e.bytes);
  if (options_.path == "-") unsupported("a model with external data must be a file");
  std::string error;
  const Mapped *file = folder_.open(location, -1, "", &error);
  if (!file) invalid("external data: {}", error);
  std::span<const std::byte> bytes;
  if (!slice(*file, offset, length, &bytes))
    invalid("external data: {} bytes at {} are beyond the {} bytes of \"{}\"", length, offset, file->bytes().size(),
            location);
  return {location, offset, file->bytes(), bytes};
}

std::string_view Importer::model_path() {
  size_t slash = options_.path.rfind('/');
  return std::string_view(options_.path).substr(slash == std::string::npos ? 0 : slash + 1);
}

// The item of a file whose bytes constants name; once.
void Importer::file_item(std::string_view path, std::span<const std::byte> bytes) {
  if (!file_paths_.insert(path).second) return;
  std::vector<Attr> attrs{{b.sym("bytes"), kNowhere, b.integer(int64_t(bytes.size()))}};
  if (options_.hash || int64_t(bytes.size()) < kHashedBelow)
    attrs.push_back({b.sym("sha256"), kNowhere, b.string(sha256_of(bytes))});
  files_.push_back(b.make(File{{}, b.arena.text(path), b.list(attrs)}));
}

const Item *Importer::item(const Constant &c) {
  Const node{};
  node.name = c.name;
  node.type = c.type;
  if (!c.from.empty()) node.from = b.one(b.sym(c.from));
  auto in_text = [&](const std::vector<const Expr *> &elements) {
    bool scalar = c.type->rank() == 0;
    node.value = scalar ? elements[0] : b.make_list(b.list(elements));
    return b.make(node);
  };
  if (!c.tensor) return in_text(c.elements);
  Extent e = extent_of(*c.tensor);
  if (e.type == DType::Str && e.count > kMostInline)
    unsupported("constant \"{}\": {} strings, the text holds {} at most", c.from, e.count, kMostInline);
  if (e.count <= kInline || e.type == DType::Str) return in_text(literals(array_of(*c.tensor)));
  if (c.tensor->external) {
    Place p = external(*c.tensor, e);
    file_item(p.path, p.file);
    node.path = b.arena.text(p.path), node.offset = p.offset;
  } else if (c.tensor->has_raw && options_.path != "-") {
    file_item(model_path(), file_.bytes());
    node.path = b.arena.text(model_path()), node.offset = c.tensor->raw.data() - bytes_.data();
  } else if (!options_.side.empty()) {
    side_.resize((side_.size() + kAlign - 1) / kAlign * kAlign);
    node.path = b.arena.text(options_.side.substr(options_.side.rfind('/') + 1)), node.offset = int64_t(side_.size());
    Array a = array_of(*c.tensor);
    side_.append(reinterpret_cast<const char *>(a.bytes.data()), a.bytes.size());
  } else if (e.count <= kMostInline) {
    return in_text(literals(array_of(*c.tensor)));
  } else {
    unsupported("constant \"{}\": its {} elements have no bytes in a file; --side FILE writes them to one", c.from,
                e.count);
  }
  return b.make(node);
}

}  // namespace mlc::onnx
