// SPDX-License-Identifier: Apache-2.0
// Softmax: exp(x) / sum(exp(x)) along one dimension, shifted by the largest x so that nothing
// overflows; and its logarithm. The exponentials of a softmax, numbers from 0 to 1, have a number
// format of their own where `exponentials` asks for one; their sum is that of the rounded ones.
#include <cmath>
#include <limits>

#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/softmax_parts.h"

namespace mase::softmax_ops {
namespace {

// PyTorch's choice when none is given: 0 for ranks 0, 1 and 3, else 1.
int64_t chosen_dim(const Value& attributes, const Shape& shape) {
  const Value& dim = attributes["dim"];
  const size_t rank = shape.size();
  if (dim.is_null()) return rank == 0 || rank == 1 || rank == 3 ? 0 : 1;
  return checked_dim(dim.as_int(), rank);
}

// Calls visit(start, stride, size) for each line along the dimension.
template <class Visit>
void each_line(const Shape& shape, int64_t dim, const Visit& visit) {
  size_t outer = 1, size = 1, stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto n = static_cast<size_t>(shape[i]);
    (static_cast<int64_t>(i) < dim ? outer : static_cast<int64_t>(i) == dim ? size : stride) *= n;
  }
  for (size_t o = 0; o < outer; ++o)
    for (size_t s = 0; s < stride; ++s) visit(o * size * stride + s, stride, size);
}

Array softmax_eval(const OpCall& call, bool logarithm) {
  const Array& x = *call.inputs[0];
  const int64_t dim = chosen_dim(call.attributes, x.shape);
  Array y(x.shape);
  each_line(x.shape, dim, [&](size_t start, size_t stride, size_t size) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t i = 0; i < size; ++i) most = std::max(most, x.data[start + i * stride]);
    if (!logarithm) {
      for (size_t i = 0; i < size; ++i)
        y.data[start + i * stride] = std::exp(x.data[start + i * stride] - most);
      return;
    }
    for (size_t i = 0; i < size; ++i) sum += std::exp(x.data[start + i * stride] - most);
    for (size_t i = 0; i < size; ++i)
      y.data[start + i * stride] = x.data[start + i * stride] - most - std::log(sum);
  });
  if (logarithm) return y;
  y = call.rounded(std::move(y), "exponentials");
  each_line(x.shape, dim, [&](size_t start, size_t stride, size_t size) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += y.data[start + i * stride];
    for (size_t i = 0; i < size; ++i) y.data[start + i * stride] /= sum;
  });
  return y;
}

OpGradients softmax_grad(const OpCall& call, const Array& y, const Array& g, bool logarithm) {
  Array gx(y.shape);
  each_line(
      y.shape, chosen_dim(call.attributes, y.shape), [&](size_t start, size_t stride, size_t size) {
        double sum = 0;
        for (size_t i = start, n = 0; n < size; ++n, i += stride)
          sum += logarithm ? g.data[i] : g.data[i] * y.data[i];
        for (size_t i = start, n = 0; n < size; ++n, i += stride)
          gx.data[i] =
              logarithm ? g.data[i] - std::exp(y.data[i]) * sum : y.data[i] * (g.data[i] - sum);
      });
  return OpGradients{{std::move(gx)}};
}

OpRecord softmax_record(OpRecord record, bool logarithm) {
  record.mase_type = "module_related_func";
  record.attributes = {{integer_field("dim", "the dimension; PyTorch's own choice if not given")}};
  record.operands = {"data_in", "data_out"};
  if (!logarithm) record.operands.insert(record.operands.begin() + 1, "exponentials");
  if (!logarithm) record.inner_operands = {"exponentials"};
  record.required_operands = {"data_in"};
  record.element = ElementRule::real;
  record.infer = [](const Value& attributes, const std::vector<Shape>& inputs) {
    chosen_dim(attributes, inputs[0]);
    return inputs[0];
  };
  record.eval = [logarithm](const OpCall& call) { return softmax_eval(call, logarithm); };
  record.grad = [logarithm](const OpCall& call, const Array& y, const Array& g) {
    return softmax_grad(call, y, g, logarithm);
  };
  record.cost = [](const Value&, const std::vector<Shape>&, const Shape& out) {
    return OpCost{0, 3 * element_count(out)};  // exponential, sum, division
  };
  record.repr = [](const Value& attributes) { return "dim=" + python_repr(attributes["dim"]); };
  record.lower = [logarithm](Lowering& lowering, const Value& attributes,
                             const std::vector<Slot>& inputs) {
    return softmax_by_exponentials(lowering, inputs[0],
                                   chosen_dim(attributes, lowering.shape(inputs[0])), logarithm);
  };
  return record;
}

const Register<OpRecord> softmax{
    softmax_record({.name = "softmax",
                    .class_name = "Softmax",
                    .function = "torch.nn.functional.softmax",
                    .summary = "exp(x) / sum(exp(x)) along a dimension"},
                   false)};
const Register<OpRecord> log_softmax{
    softmax_record({.name = "log_softmax",
                    .aliases = {"logsoftmax"},
                    .class_name = "LogSoftmax",
                    .function = "torch.nn.functional.log_softmax",
                    .summary = "x - log(sum(exp(x))) along a dimension"},
                   true)};

}  // namespace
}  // namespace mase::softmax_ops
