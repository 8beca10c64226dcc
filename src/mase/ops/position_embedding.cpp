// SPDX-License-Identifier: Apache-2.0
// PositionEmbedding: adds row s + offset of a learned table to position s of [N, S, D].
#include <algorithm>

#include "mase/base/fields.h"
#include "mase/ir/op.h"
#include "mase/ops/call.h"

namespace mase::position_embedding_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape& x = inputs[0];
  const int64_t rows = attributes["num_embeddings"].as_int();
  const int64_t width = attributes["embedding_dim"].as_int();
  const int64_t most = std::max<int64_t>(0, rows - attributes["offset"].as_int());
  if (x.size() != 3 || x[2] != width || x[1] > most)
    throw Error("", fmt::format("PositionEmbedding wants [N, up to {}, {}], got {}", most, width,
                                shape_text(x)));
  return x;
}

size_t first_of(const OpCall& call) {
  return static_cast<size_t>(call.attributes["offset"].as_int() *
                             call.attributes["embedding_dim"].as_int());
}

Array eval(const OpCall& call) {
  Array y = *call.inputs[0];
  const Array& table = *call.params.at("weight");
  const auto sample = static_cast<size_t>(y.shape[1] * y.shape[2]);
  const size_t first = first_of(call);
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] += table.data[first + i % sample];
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  Array gw(call.params.at("weight")->shape);
  const auto sample = static_cast<size_t>(g.shape[1] * g.shape[2]);
  const size_t first = first_of(call);
  for (size_t i = 0; i < g.data.size(); ++i) gw.data[first + i % sample] += g.data[i];
  return layer_gradients(call, g, std::move(gw));
}

const Register<OpRecord> registered{{
    .name = "position_embedding",
    .class_name = "PositionEmbedding",
    .mase_type = "module_related_func",
    .summary = "a learned row for each position, added",
    .attributes =
        {{integer_field("num_embeddings", "positions there are rows for", 512).from(1),
          integer_field("embedding_dim", "size of a row").needed().from(1),
          integer_field("offset", "rows before the one of the first position", 0).from(0)}},
    .operands = {"data_in", "weight", "data_out"},
    .params = table_of_rows,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost =
        [](const Value&, const std::vector<Shape>&, const Shape& out) {
          return OpCost{0, element_count(out)};
        },
    .repr =
        [](const Value& attributes) {
          const int64_t offset = attributes["offset"].as_int();
          return fmt::format("{}, {}{}", attributes["num_embeddings"].as_int(),
                             attributes["embedding_dim"].as_int(),
                             offset > 0 ? fmt::format(", offset={}", offset) : "");
        },
    .lower =
        [](Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
          const int64_t positions = lowering.shape(inputs[0])[1];
          const Slot rows = lowering.slice(*lowering.parameter("weight"), 0,
                                           attributes["offset"].as_int(), 1, positions);
          return lowering.map(Expr::operand(0) + Expr::operand(1), {inputs[0], rows});
        },
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
          if (!attributes.contains("embedding_dim") && !inputs[0].empty())
            attributes.set("embedding_dim", inputs[0].back());
        },
}};

}  // namespace
}  // namespace mase::position_embedding_op
