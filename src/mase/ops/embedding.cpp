// SPDX-License-Identifier: Apache-2.0
// Embedding: rows of a learned table by whole numbers of any shape. The row `padding_idx` gets no
// gradient. As a function, the table is the second input.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ir/op.h"
#include "mase/ops/call.h"

namespace mase::embedding_op {
namespace {

size_t row_of(double number, int64_t rows) {
  if (!(number >= 0 && number < static_cast<double>(rows)) || number != std::floor(number))
    throw Error("", fmt::format("index {} for a table of {} rows", number, rows),
                "check the vocabulary and the data");
  return static_cast<size_t>(number);
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape shape = inputs[0];
  if (inputs.size() > 1 && inputs[1].size() != 2)
    throw Error("", fmt::format("a table of shape {}", shape_text(inputs[1])), "it has rank 2");
  shape.push_back(inputs.size() > 1 ? inputs[1][1] : attributes["embedding_dim"].as_int());
  return shape;
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Array& table = *param_of(call, "weight", 1);
  Array y(infer(call.attributes, {x.shape, table.shape}));
  const auto width = static_cast<size_t>(table.shape[1]);
  for (size_t i = 0; i < x.data.size(); ++i)
    for (size_t d = 0; d < width; ++d)
      y.data[i * width + d] = table.data[row_of(x.data[i], table.shape[0]) * width + d];
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  const Array& table = *param_of(call, "weight", 1);
  const Value& padding = call.attributes["padding_idx"];
  Array gw(table.shape);
  const auto width = static_cast<size_t>(table.shape[1]);
  for (size_t i = 0; i < x.data.size(); ++i) {
    const size_t row = row_of(x.data[i], table.shape[0]);
    if (!padding.is_null() && padding.as_int() == static_cast<int64_t>(row)) continue;
    for (size_t d = 0; d < width; ++d) gw.data[row * width + d] += g.data[i * width + d];
  }
  return layer_gradients(call, Array(x.shape), std::move(gw));  // numbers have no gradient
}

const Register<OpRecord> registered{{
    .name = "embedding",
    .class_name = "Embedding",
    .function = "torch.nn.functional.embedding",
    .mase_type = "module_related_func",
    .summary = "rows of a learned table by number",
    .attributes = {{integer_field("num_embeddings", "rows of the table", 16).between(1, 1 << 24),
                    integer_field("embedding_dim", "size of a row", 16).from(1),
                    integer_field("padding_idx", "a row that is not trained").from(0)}},
    .function_arguments = {"padding_idx"},
    .max_inputs = 2,
    .index_inputs = {0},
    .operands = {"weight", "data_out"},
    .required_operands = {"weight"},
    .element = ElementRule::real,
    .params = table_of_rows,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .repr =
        [](const Value& attributes) {
          std::string text = fmt::format("{}, {}", attributes["num_embeddings"].as_int(),
                                         attributes["embedding_dim"].as_int());
          if (!attributes["padding_idx"].is_null())
            text += fmt::format(", padding_idx={}", attributes["padding_idx"].as_int());
          return text;
        },
    .lower = [](Lowering& lowering, const Value& attributes,
                const std::vector<Slot>& inputs) -> Slot {
      const Slot table = inputs.size() > 1 ? inputs[1] : *lowering.parameter("weight");
      if (attributes["padding_idx"].is_null()) return lowering.take(table, inputs[0]);
      return lowering.primitive("take", Dict{{"untrained", attributes["padding_idx"]}},
                                {table, inputs[0]});
    },
}};

}  // namespace
}  // namespace mase::embedding_op
