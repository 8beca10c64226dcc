// SPDX-License-Identifier: Apache-2.0
// Every edge of a table_linear is a table of its input's codes; edges that are constant join the
// sum's constant.
#include <algorithm>
#include <cmath>

#include "mase/hardware/integer_lowering.h"
#include "mase/hardware/lower_linear.h"
#include "mase/ops/table_linear.h"

namespace mase::table_linear_lowering {
namespace {

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  const TableEdges edges(call.call.attributes);
  if (!edges.rounded)
    call.refuse("its edges are straight lines, not tables", "give it rounded = true and train it");
  if (call.shape.size() != 2)
    call.refuse("it is applied to several vectors of features for each row", "flatten before it");
  const std::vector<IntegerId>& inputs = call.inputs[0];
  const Tensor& heights = *call.call.module->find("heights");
  const auto knots = static_cast<size_t>(edges.knots);
  std::vector<IntegerId> sums;
  for (int64_t o = 0; o < edges.out; ++o) {
    std::vector<IntegerId> tables;
    double constant = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::vector<double> edge(knots);
      for (size_t k = 0; k < knots; ++k)
        edge[k] = heights.item((o * edges.in + static_cast<int64_t>(i)) * edges.knots +
                               static_cast<int64_t>(k));
      const IntegerNode& x = call.builder.at(inputs[i]);
      if (x.range.width() > 12)
        call.refuse(fmt::format("its input has {} bits", x.range.width()),
                    "round its data_in to at most 12");
      std::vector<int64_t> entries;
      for (int64_t code = x.range.low; code <= x.range.high; ++code) {
        const double v = edges.rounded_input(std::ldexp(static_cast<double>(code), -x.frac));
        const double entry = edges.output_code(edge.data(), v);
        if (!(std::abs(entry) < std::ldexp(1.0, 20)))
          call.refuse(
              fmt::format("an edge has the value {}", std::ldexp(entry, -edges.output_frac)),
              "tables hold numbers of at most 20 bits");
        entries.push_back(static_cast<int64_t>(entry));
      }
      if (std::all_of(entries.begin(), entries.end(),
                      [&](int64_t entry) { return entry == entries[0]; })) {
        constant += std::ldexp(static_cast<double>(entries[0]), -edges.output_frac);
        continue;
      }
      tables.push_back(call.builder.table(inputs[i], x.range.low, edges.output_frac, entries));
    }
    const std::vector<std::vector<double>> ones(tables.size(), {1.0});
    sums.push_back(lower_linear(call.builder, tables, ones, {constant}, call.node.name)[0]);
  }
  return sums;
}

const Register<IntegerLowering> registered{{
    .name = "table_linear",
    .summary = "sums of one table for each edge, for one vector of features",
    .lower = lower,
}};

}  // namespace
}  // namespace mase::table_linear_lowering
