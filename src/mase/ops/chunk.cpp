// SPDX-License-Identifier: Apache-2.0
// chunk: a dimension in so many parts of one size; the last may be smaller, and where fewer parts
// are enough there are fewer.
#include "mase/base/fields.h"
#include "mase/ops/pieces.h"

namespace mase::chunk_op {
namespace {

int64_t part_size(const Value& attributes, const Shape& x) {
  if (x.empty()) throw Error("", "chunk wants a tensor of rank 1 or more");
  const int64_t size = x[static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()))];
  const int64_t chunks = attributes["chunks"].as_int();
  return (size + chunks - 1) / chunks;
}

int64_t count(const Value& attributes, const std::vector<Shape>& inputs) {
  const int64_t part = part_size(attributes, inputs[0]);
  if (part == 0) return attributes["chunks"].as_int();  // of nothing, as many as wanted
  const Shape& x = inputs[0];
  const int64_t size = x[static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()))];
  return (size + part - 1) / part;
}

Piece piece_of(const Value& attributes, const Shape& x) {
  const int64_t part = part_size(attributes, x);
  const auto dim = static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()));
  const int64_t start = checked_result(attributes, count(attributes, {x})) * part;
  return {dim, start, std::min(part, x[dim] - start)};
}

const Register<OpRecord> registered{taking_piece<piece_of>({
    .name = "chunk",
    .function = "torch.chunk",
    .summary = "a dimension in parts of one size",
    .attributes = {{integer_field("chunks", "how many parts", 2).from(1),
                    integer_field("dim", "the dimension", 0), result_field()}},
    .results = ResultsInfo{.count = count},
})};

}  // namespace
}  // namespace mase::chunk_op
