// SPDX-License-Identifier: Apache-2.0
// transpose: two dimensions change places.
#include <numeric>

#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/moving.h"

namespace mase::transpose_op {
namespace {

std::vector<int64_t> order_of(const Value& attributes, size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  const auto first = static_cast<size_t>(checked_dim(attributes["dim0"].as_int(), rank)),
             second = static_cast<size_t>(checked_dim(attributes["dim1"].as_int(), rank));
  if (rank > 0) std::swap(order[first], order[second]);
  return order;
}

const Register<OpRecord> registered{permuting(
    {
        .name = "transpose",
        .function = "torch.transpose",
        .summary = "two dimensions change places",
        .attributes = {{
            integer_field("dim0", "a dimension").needed(),
            integer_field("dim1", "the other dimension").needed(),
        }},
        .complete =
            [](Dict& attributes, const std::vector<Shape>&, int64_t) {
              if (!attributes.contains("dim0")) attributes.set("dim0", 0);
              if (!attributes.contains("dim1")) attributes.set("dim1", -1);
            },
    },
    order_of)};

}  // namespace
}  // namespace mase::transpose_op
