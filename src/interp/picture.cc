// ImageDecoder: the bytes of a file -> y: u8[height, width, channels]; of 0 x 0 pixels where they are no picture.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstring>

#include "data/picture.h"
#include "interp/machine.h"

namespace mlc::interp {

std::vector<Value> decode_image(Machine &m, const OperatorUse &use) {
  auto fail = [&](const std::string &what) {
    throw Fault{use.at, fmt::format("ImageDecoder{}: {}", m.origin(use.from), what)};
  };
  if (use.args.empty() || use.args[0].literal) fail("the bytes are missing");
  const Value &x = use.args[0].value;
  if (x.is_scalar() || x.type != DType::U8 || x.ref.rank() != 1)
    fail(fmt::format("expected a list of u8, found {}", x.text()));
  std::vector<std::byte> file(size_t(x.ref.count()));
  each_element(x.ref, [&, at = size_t(0)](int64_t off, const auto &) mutable { file[at++] = x.ref.data()[off]; });
  auto *name = as<Str>(attr(m.b, use.attrs, "pixel_format"));
  PixelFormat format = !name || name->value == "RGB" ? PixelFormat::RGB
                       : name->value == "BGR"        ? PixelFormat::BGR
                                                     : PixelFormat::Grayscale;
  Picture p;
  std::string error;
  if (!decode_picture(file, format, m.memory.limit - m.memory.used, &p, &error)) fail(error);
  Ref y = Ref::dense(m.memory, DType::U8, {p.height, p.width, format == PixelFormat::Grayscale ? 1 : 3}, true);
  if (!p.samples.empty()) std::memcpy(y.data(), p.samples.data(), p.samples.size());
  return {Value::of(y)};
}

}  // namespace mlc::interp
