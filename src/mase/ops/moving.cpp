// SPDX-License-Identifier: Apache-2.0
#include "mase/ops/moving.h"

#include "mase/base/broadcast.h"
#include "mase/ops/call.h"
#include "mase/ops/dimensions.h"

namespace mase {
namespace {

std::vector<size_t> permuted_places(const Shape& x, const std::vector<int64_t>& order) {
  const std::vector<int64_t> strides = row_major_strides(x);
  std::vector<size_t> places(static_cast<size_t>(element_count(x)));
  for (size_t i = 0; i < places.size(); ++i) {
    size_t rest = i;
    for (size_t d = x.size(); d-- > 0;) {
      const auto from = static_cast<size_t>(order[d]), size = static_cast<size_t>(x[from]);
      places[i] += rest % size * static_cast<size_t>(strides[from]);
      rest /= size;
    }
  }
  return places;
}

}  // namespace

OpRecord moving(OpRecord record, const SourcesOf& sources) {
  record.eval = [sources, infer = record.infer](const OpCall& call) {
    Array y(infer(call.attributes, shapes_of(call)));
    const std::vector<size_t> from = sources(call);
    for (size_t i = 0; i < from.size(); ++i) y.data[i] = call.inputs[0]->data[from[i]];
    return y;
  };
  record.grad = [sources](const OpCall& call, const Array&, const Array& g) {
    OpGradients result;
    for (const Array* input : call.inputs) result.inputs.emplace_back(input->shape);
    const std::vector<size_t> to = sources(call);
    for (size_t i = 0; i < to.size(); ++i) result.inputs[0].data[to[i]] += g.data[i];
    return result;
  };
  return record;
}

OpRecord by_number(OpRecord record, const SourcesOf& sources, const std::string& primitive) {
  record.mase_type = "builtin_func";
  record.min_inputs = record.max_inputs = 2;
  record.index_inputs = {1};
  record.lower = [primitive](Lowering& to, const Value& attributes,
                             const std::vector<Slot>& inputs) {
    const int64_t dim = checked_dim(attributes["dim"].as_int(), to.shape(inputs[0]).size());
    return to.primitive(primitive, Dict{{"dim", dim}}, inputs);
  };
  return moving(std::move(record), sources);
}

OpRecord permuting(OpRecord record, OrderOf order_of) {
  record.mase_type = "implicit_func";
  record.infer = [order_of](const Value& attributes, const std::vector<Shape>& inputs) {
    Shape out;
    for (const int64_t dim : order_of(attributes, inputs[0].size()))
      out.push_back(inputs[0][static_cast<size_t>(dim)]);
    return out;
  };
  record.lower = [order_of](Lowering& lowering, const Value& attributes,
                            const std::vector<Slot>& inputs) {
    const std::vector<int64_t> order = order_of(attributes, lowering.shape(inputs[0]).size());
    return order.empty() ? inputs[0] : lowering.permute(inputs[0], order);
  };
  return moving(std::move(record), [order_of](const OpCall& call) {
    const Shape& x = call.inputs[0]->shape;
    return permuted_places(x, order_of(call.attributes, x.size()));
  });
}

}  // namespace mase
