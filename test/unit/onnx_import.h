// Imports a model made by hand (onnx_model.h), and shows what came of it.
#pragma once
#include <fmt/core.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "check/check.h"
#include "onnx/import.h"
#include "text/text.h"
#include "unit/onnx_model.h"

namespace mlc {

using namespace onnx_model;

// A folder of its own, gone afterwards.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/onnx_test_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string &name, std::string_view text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
    return path + "/" + name;
  }
  std::string path;
};

struct Imported {
  bool ok;
  std::string text, errors;
};

inline Imported import_file(const std::string &path, std::map<std::string, std::string> bind = {},
                            const std::string &side = "") {
  Build b;
  Module m;
  Imported r;
  ImportOptions options{path, std::move(bind), side, false};
  r.ok = import_onnx(b, options, m, r.errors);
  if (r.ok) {
    Source source = Source::from_string("m", "");
    Diag diag("import", &source);
    if (!check(b, m, diag)) r.errors = "check: " + diag.messages().at(0), r.ok = false;
    r.text = print(b, m);
  }
  return r;
}

inline Imported import_model(const std::string &model, std::map<std::string, std::string> bind = {}) {
  Folder folder;
  return import_file(folder.write("m.onnx", model), std::move(bind));
}

// Without the nodes that the lines come from.
inline std::string without_from(std::string text) {
  for (size_t at; (at = text.find(" from \"")) != text.npos;) text.erase(at, text.find('\n', at) - at);
  return text;
}

// The statements of the dataflow region, one a line without the indentation.
inline std::string statements(const Imported &r) {
  if (!r.ok) return r.errors;
  size_t from = r.text.find(" {\n", r.text.find("dataflow"));
  std::string body = r.text.substr(from + 3, r.text.find("\n  }\n", from) - from - 3), out;
  for (size_t at = 0; at <= body.size();) {
    size_t end = std::min(body.find('\n', at), body.size());
    out += body.substr(at + 4, end - at - 4) + "\n";
    at = end + 1;
  }
  return out;
}

// A model of one node: x is f32[n, 3, 4], others are given.
inline std::string one(int64_t opset, const Message &n, std::vector<Message> inits = {},
                std::vector<Message> inputs = {value("x", kFloat, {"n", "3", "4"})}, int64_t out = kFloat) {
  Message y = Message().text(1, "y").part(2, Message().part(1, Message().number(1, out)));
  return model(opset, {{n}, std::move(inputs), {y}, std::move(inits), {}});
}

// A body without inputs that gives one value.
inline Message branch(const std::vector<Message> &nodes, const std::string &out) {
  return Graph{nodes, {}, {Message().text(1, out)}, {}, {}}.message();
}

}  // namespace mlc
