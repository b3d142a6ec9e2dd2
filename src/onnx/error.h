// What is wrong with a model. The two kinds are told apart in every message: a model that ONNX itself does not allow,
// and one that is fine but asks for something that mlc does not have.
#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace mlc::onnx {

struct Invalid : std::runtime_error { using runtime_error::runtime_error; };
struct Unsupported : std::runtime_error { using runtime_error::runtime_error; };

struct BadBinding : std::runtime_error { using runtime_error::runtime_error; };  // --bind, not the model, is wrong

template <class... A> [[noreturn]] void invalid(fmt::format_string<A...> f, A &&...a) {
  throw Invalid(fmt::format(f, std::forward<A>(a)...));
}
template <class... A> [[noreturn]] void unsupported(fmt::format_string<A...> f, A &&...a) {
  throw Unsupported(fmt::format(f, std::forward<A>(a)...));
}

}  // namespace mlc::onnx
