// SPDX-License-Identifier: Apache-2.0
// Ops that work element by element.
#include <cmath>

#include "mase/io/onnx/write/writer.h"

namespace mase::onnx::elementwise_writers {
namespace {

OnnxWriter plain(const char* op, const char* onnx) {
  return {.name = op, .write = [onnx](WriteContext& c) { c.result(c.add(onnx, {c.input(0)})); }};
}

OnnxWriter with_number(const char* op, const char* onnx, const char* own, const char* attribute) {
  return {.name = op, .write = [=](WriteContext& c) {
            c.result(c.add(onnx, {c.input(0)}, {number_attribute(attribute, c[own].as_double())}));
          }};
}

// Two operands, either of which may be a number.
std::pair<std::string, std::string> operands(WriteContext& c) {
  if (!c["other"].is_null()) return {c.input(0), c.number(c["other"].as_double())};
  if (!c["input"].is_null()) return {c.number(c["input"].as_double()), c.input(0)};
  return {c.input(0), c.input(1)};
}

OnnxWriter pair(const char* op, const char* onnx) {
  return {.name = op, .write = [onnx](WriteContext& c) {
            const auto [a, b] = operands(c);
            c.result(c.add(onnx, {a, b}));
          }};
}

// Comparisons give truth values; ours are 0 and 1.
OnnxWriter comparison(const char* op, const char* onnx) {
  return {.name = op, .write = [onnx](WriteContext& c) {
            const auto [a, b] = operands(c);
            c.result(c.add("Cast", {c.add(onnx, {a, b})}, {integer_attribute("to", 1)}));
          }};
}

void silu(WriteContext& c) {
  const std::string x = c.input(0);
  c.result(c.add("Mul", {x, c.add("Sigmoid", {x})}));
}

void hardswish(WriteContext& c) {
  constexpr int64_t since = 14;
  const std::string x = c.input(0);
  if (c.operator_set() >= since) return c.result(c.add("HardSwish", {x}));
  const std::string gate = c.add(
      "HardSigmoid", {x}, {number_attribute("alpha", 1.0 / 6), number_attribute("beta", 0.5)});
  c.result(c.add("Mul", {x, gate}));
}

void mish(WriteContext& c) {
  const std::string x = c.input(0);
  c.result(c.add("Mul", {x, c.add("Tanh", {c.add("Softplus", {x})})}));
}

// Beyond the threshold the line itself, from which the curve is no longer to be told.
void softplus(WriteContext& c) {
  const double beta = c["beta"].as_double();
  if (beta * c["threshold"].as_double() < 20) c.fail("its threshold is below 20");
  std::string x = c.input(0);
  if (beta != 1) x = c.add("Mul", {x, c.number(beta)});
  x = c.add("Softplus", {x});
  c.result(beta == 1 ? x : c.add("Div", {x, c.number(beta)}));
}

void trunc(WriteContext& c) {
  const std::string x = c.input(0);
  c.result(c.add("Mul", {c.add("Sign", {x}), c.add("Floor", {c.add("Abs", {x})})}));
}

void tanhshrink(WriteContext& c) {
  const std::string x = c.input(0);
  c.result(c.add("Sub", {x, c.add("Tanh", {x})}));
}

OnnxWriter shrink(const char* op, bool soft) {
  return {.name = op, .write = [soft](WriteContext& c) {
            const double lambda = c["lambd"].as_double();
            c.result(c.add(
                "Shrink", {c.input(0)},
                {number_attribute("lambd", lambda), number_attribute("bias", soft ? lambda : 0)}));
          }};
}

void not_equal(WriteContext& c) {
  const auto [a, b] = operands(c);
  c.result(c.add("Cast", {c.add("Not", {c.add("Equal", {a, b})})}, {integer_attribute("to", 1)}));
}

void square(WriteContext& c) {
  const std::string x = c.input(0);
  c.result(c.add("Mul", {x, x}));
}

void rsqrt(WriteContext& c) { c.result(c.add("Reciprocal", {c.add("Sqrt", {c.input(0)})})); }

void gelu(WriteContext& c) {
  const std::string x = c.input(0), form = c["approximate"].as_string();
  constexpr int64_t gelu_since = 20;
  if (c.operator_set() >= gelu_since)
    return c.result(c.add("Gelu", {x}, {text_attribute("approximate", form)}));
  std::string inner;
  if (form == "tanh") {
    const std::string cube =
        c.add("Mul", {c.add("Mul", {c.add("Mul", {x, x}), x}), c.number(0.044715)});
    inner = c.add("Tanh", {c.add("Mul", {c.add("Add", {x, cube}), c.number(std::sqrt(2 / M_PI))})});
  } else {
    inner = c.add("Erf", {c.add("Mul", {x, c.number(std::sqrt(0.5))})});
  }
  const std::string half = c.add("Mul", {x, c.number(0.5)});
  c.result(c.add("Mul", {half, c.add("Add", {inner, c.number(1)})}));
}

void clamp(WriteContext& c) {
  const auto limit = [&](const char* name) {
    return c[name].is_null() ? std::string() : c.number(c[name].as_double());
  };
  c.result(c.add("Clip", {c.input(0), limit("min"), limit("max")}));
}

void hardtanh(WriteContext& c) {
  c.result(c.add("Clip", {c.input(0), c.number(c["min_val"].as_double()),
                          c.number(c["max_val"].as_double())}));
}

void relu6(WriteContext& c) { c.result(c.add("Clip", {c.input(0), c.number(0), c.number(6)})); }

void hardsigmoid(WriteContext& c) {
  c.result(c.add("HardSigmoid", {c.input(0)},
                 {number_attribute("alpha", 1.0 / 6), number_attribute("beta", 0.5)}));
}

void log_sigmoid(WriteContext& c) { c.result(c.add("Log", {c.add("Sigmoid", {c.input(0)})})); }

void where(WriteContext& c) {
  const std::string condition =
      c.add("Cast", {c.input(0)}, {integer_attribute("to", 9)});  // to truth values
  c.result(c.add("Where", {condition, c.input(1), c.input(2)}));
}

// Nothing happens in evaluation.
void same(WriteContext& c) {
  const std::string x = c.input(0);
  c.result(x);
}

const Register<OnnxWriter> writers[] = {
    Register<OnnxWriter>(plain("relu", "Relu")),
    Register<OnnxWriter>(plain("sigmoid", "Sigmoid")),
    Register<OnnxWriter>(plain("tanh", "Tanh")),
    Register<OnnxWriter>({.name = "hardswish", .write = hardswish}),
    Register<OnnxWriter>({.name = "mish", .write = mish}),
    Register<OnnxWriter>({.name = "softplus", .write = softplus}),
    Register<OnnxWriter>({.name = "trunc", .write = trunc}),
    Register<OnnxWriter>({.name = "tanhshrink", .write = tanhshrink}),
    Register<OnnxWriter>(shrink("hardshrink", false)),
    Register<OnnxWriter>(shrink("softshrink", true)),
    Register<OnnxWriter>({.name = "ne", .write = not_equal}),
    Register<OnnxWriter>(plain("floor", "Floor")),
    Register<OnnxWriter>(plain("ceil", "Ceil")),
    Register<OnnxWriter>(plain("round", "Round")),
    Register<OnnxWriter>(plain("sign", "Sign")),
    Register<OnnxWriter>(plain("sin", "Sin")),
    Register<OnnxWriter>(plain("cos", "Cos")),
    Register<OnnxWriter>(plain("softsign", "Softsign")),
    Register<OnnxWriter>(plain("erf", "Erf")),
    Register<OnnxWriter>(plain("exp", "Exp")),
    Register<OnnxWriter>(plain("log", "Log")),
    Register<OnnxWriter>(plain("sqrt", "Sqrt")),
    Register<OnnxWriter>(plain("abs", "Abs")),
    Register<OnnxWriter>(plain("neg", "Neg")),
    Register<OnnxWriter>(plain("selu", "Selu")),
    Register<OnnxWriter>(with_number("leaky_relu", "LeakyRelu", "negative_slope", "alpha")),
    Register<OnnxWriter>(with_number("elu", "Elu", "alpha", "alpha")),
    Register<OnnxWriter>(pair("add", "Add")),
    Register<OnnxWriter>(pair("sub", "Sub")),
    Register<OnnxWriter>(pair("mul", "Mul")),
    Register<OnnxWriter>(pair("div", "Div")),
    Register<OnnxWriter>(pair("pow", "Pow")),
    Register<OnnxWriter>(pair("maximum", "Max")),
    Register<OnnxWriter>(pair("minimum", "Min")),
    Register<OnnxWriter>(comparison("eq", "Equal")),
    Register<OnnxWriter>(comparison("lt", "Less")),
    Register<OnnxWriter>(comparison("le", "LessOrEqual")),
    Register<OnnxWriter>(comparison("gt", "Greater")),
    Register<OnnxWriter>(comparison("ge", "GreaterOrEqual")),
    Register<OnnxWriter>({.name = "silu", .write = silu}),
    Register<OnnxWriter>({.name = "square", .write = square}),
    Register<OnnxWriter>({.name = "rsqrt", .write = rsqrt}),
    Register<OnnxWriter>({.name = "gelu", .write = gelu}),
    Register<OnnxWriter>({.name = "clamp", .write = clamp}),
    Register<OnnxWriter>({.name = "hardtanh", .write = hardtanh}),
    Register<OnnxWriter>({.name = "relu6", .write = relu6}),
    Register<OnnxWriter>({.name = "hardsigmoid", .write = hardsigmoid}),
    Register<OnnxWriter>({.name = "log_sigmoid", .write = log_sigmoid}),
    Register<OnnxWriter>({.name = "where", .write = where}),
    Register<OnnxWriter>({.name = "identity", .aliases = {"detach"}, .write = same}),
    Register<OnnxWriter>({.name = "dropout", .write = same}),
};

}  // namespace
}  // namespace mase::onnx::elementwise_writers
