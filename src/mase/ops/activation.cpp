// SPDX-License-Identifier: Apache-2.0
// Activations without options of their own, a row each. Those that PyTorch can compute in place
// take that word, and most print it.
#include "mase/ops/elementwise.h"

namespace mase::activation_ops {
namespace {

enum class InPlace { none, taken, printed };

OpRecord plain(const char* name, const char* class_name, const char* function, const char* summary,
               InPlace in_place, Expr (*expr)(const Expr&)) {
  OpRecord record{.name = name, .class_name = class_name, .function = function, .summary = summary};
  if (in_place != InPlace::none) record.attributes.fields = {inplace_field()};
  if (in_place == InPlace::printed) record.repr = inplace_repr;
  return activation(std::move(record), [expr](const Value&) { return expr(Expr::operand(0)); });
}

using E = const Expr&;

// Constants that keep mean 0 and variance 1 (Klambauer et al., 2017).
Expr selu(E x) {
  constexpr double alpha = 1.6732632423543772848170429916717,
                   scale = 1.0507009873554804934193349852946;
  return select(less(0.0, x), scale * x, scale * alpha * (exp(x) - 1.0));
}

OpRecord relu() {  // its gradient at 0 is 0, as PyTorch's
  OpRecord record = plain("relu", "ReLU", "torch.nn.functional.relu", "max(x, 0)", InPlace::printed,
                          [](E x) { return max(x, 0.0); });
  record.unsigned_operands = {"data_in"};
  return record;
}

struct Activation : Register<OpRecord> {
  Activation(const char* name, const char* class_name, const char* function, const char* summary,
             InPlace in_place, Expr (*expr)(E))
      : Register(plain(name, class_name, function, summary, in_place, expr)) {}
};

constexpr InPlace none = InPlace::none, taken = InPlace::taken, printed = InPlace::printed;

const Register<OpRecord> rectifier{relu()};
const Activation registered[] = {
    {"relu6", "ReLU6", "torch.nn.functional.relu6", "min(max(x, 0), 6)", printed,
     [](E x) { return min(max(x, 0.0), 6.0); }},
    {"sigmoid", "Sigmoid", "torch.sigmoid", "1 / (1 + exp(-x))", none, sigmoid},
    {"log_sigmoid", "LogSigmoid", "torch._C._nn.log_sigmoid", "log(1 / (1 + exp(-x)))", none,
     [](E x) { return -softplus(-x); }},
    {"softsign", "Softsign", "torch.nn.functional.softsign", "x / (1 + |x|)", none,
     [](E x) { return x / (1.0 + abs(x)); }},
    {"tanh", "Tanh", "torch.tanh", "hyperbolic tangent", none, tanh},
    {"tanhshrink", "Tanhshrink", "torch.nn.functional.tanhshrink", "x - tanh(x)", none,
     [](E x) { return x - tanh(x); }},
    {"hardsigmoid", "Hardsigmoid", "torch.nn.functional.hardsigmoid", "relu6(x + 3) / 6", taken,
     [](E x) { return min(max(x + 3.0, 0.0), 6.0) / 6.0; }},
    {"hardswish", "Hardswish", "torch.nn.functional.hardswish", "x * relu6(x + 3) / 6", taken,
     [](E x) { return x * min(max(x + 3.0, 0.0), 6.0) / 6.0; }},
    {"mish", "Mish", "torch._C._nn.mish", "x tanh(log(1 + exp(x)))", printed,
     [](E x) { return x * tanh(softplus(x)); }},
    {"silu", "SiLU", "torch.nn.functional.silu", "x * sigmoid(x)", printed,
     [](E x) { return x * sigmoid(x); }},
    {"selu", "SELU", "torch.nn.functional.selu", "self-normalising ELU", printed, selu},
};

}  // namespace
}  // namespace mase::activation_ops
