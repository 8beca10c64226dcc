// SPDX-License-Identifier: Apache-2.0
// permute: the dimensions in another order.
#include <algorithm>
#include <numeric>

#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/moving.h"

namespace mase::permute_op {
namespace {

std::vector<int64_t> order_of(const Value& attributes, size_t rank) {
  std::vector<int64_t> order = attributes["dims"].as_int_list("dims");
  for (int64_t& dim : order) dim = checked_dim(dim, rank);
  std::vector<int64_t> sorted = order, all(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    throw Error("", fmt::format("[{}] is no order of {} dimensions", fmt::join(order, ", "), rank),
                "name every dimension once");
  return order;
}

const Register<OpRecord> registered{permuting(
    {
        .name = "permute",
        .function = "torch.permute",
        .summary = "the dimensions in another order",
        .attributes = {{list_field("dims", "the order").needed()}},
        .complete =
            [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
              if (attributes.contains("dims")) return;
              List dims;
              for (size_t i = inputs[0].size(); i-- > 0;) dims.push_back(static_cast<int64_t>(i));
              attributes.set("dims", std::move(dims));
            },
    },
    order_of)};

}  // namespace
}  // namespace mase::permute_op
