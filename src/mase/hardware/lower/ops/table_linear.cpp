// SPDX-License-Identifier: Apache-2.0
// Every edge of a table_linear is a table of its input's codes; edges that are constant join the
// sum's constant.
#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/formats/number_type.h"
#include "mase/hardware/lower/integer_lowering.h"
#include "mase/hardware/lower/lower_linear.h"
#include "mase/ops/table_linear.h"

namespace mase::table_linear_lowering {
namespace {

// As the op rounds its inputs by itself.
FixedFormat input_format(const TableEdges& edges) {
  return {.width = edges.input_width,
          .frac = edges.input_frac,
          .rounding = IntegerRounding::half_up,
          .overflow = edges.wraps ? IntegerOverflow::wrap : IntegerOverflow::saturate};
}

QuantizerPtr first_input(const Value& attributes) {
  const TableEdges edges(attributes);
  if (!edges.rounded) return nullptr;
  // Software saturates what comes from outside; only inside a network wrapping saves logic.
  if (edges.wraps) return nullptr;
  return std::make_shared<Quantizer>(
      typed_quantizer(NumberType{Fixed{.width = edges.input_width,
                                       .frac = edges.input_frac,
                                       .rounding = Rounding::half_up,
                                       .overflow = Overflow::saturate}}));
}

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  const TableEdges edges(call.call.attributes);
  if (!edges.rounded)
    call.refuse("its edges are straight lines, not tables", "give it rounded = true and train it");
  if (call.shape.size() != 2)
    call.refuse("it is applied to several vectors of features for each row", "flatten before it");
  const Tensor &heights = *call.call.module->find("heights"),
               &bits = *call.call.module->find("edge_bits"),
               &fracs = *call.call.module->find("edge_frac");
  const std::vector<IntegerId> inputs =
      call.each([&](IntegerId id) { return call.builder.requantize(id, input_format(edges)); });
  std::vector<IntegerId> sums;
  for (int64_t o = 0; o < edges.out; ++o) {
    std::vector<IntegerId> tables;
    double constant = 0;
    for (int64_t i = 0; i < edges.in; ++i) {
      const int64_t index = o * edges.in + i;
      const TableWidth width = edges.width(bits.item(index), fracs.item(index));
      std::vector<double> edge;
      for (int64_t k = 0; k < edges.knots; ++k)
        edge.push_back(heights.item(index * edges.knots + k));
      const int drop = edges.input_width - width.bits;
      // The cell's number, negative below the middle, as the code's top bits are.
      const int64_t half = edges.codes() / 2;
      const IntegerId cell = width.bits == 0 ? -1
                                             : call.builder.round(inputs[static_cast<size_t>(i)],
                                                                  drop, IntegerRounding::floor);
      const IntegerRange range = cell < 0 ? IntegerRange{} : call.builder.at(cell).range;
      std::vector<int64_t> entries;
      for (int64_t at = range.low; at <= range.high; ++at) {
        const double entry = edges.entry(edge.data(), cell < 0 ? 0 : (at << drop) + half, width);
        if (!(std::abs(entry) < std::ldexp(1.0, 20)))
          call.refuse(fmt::format("an edge has the value {}", std::ldexp(entry, -width.frac)),
                      "tables hold numbers of at most 20 bits");
        entries.push_back(static_cast<int64_t>(entry));
      }
      if (std::all_of(entries.begin(), entries.end(),
                      [&](int64_t entry) { return entry == entries[0]; })) {
        constant += std::ldexp(static_cast<double>(entries[0]), -width.frac);
        continue;
      }
      tables.push_back(call.builder.table(cell, range.low, width.frac, entries));
    }
    // A neuron without inputs is a constant.
    if (tables.empty()) {
      sums.push_back(lower_sum(call.builder, {}, constant, call.node.name));
      continue;
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
    .first_input = first_input,
}};

}  // namespace
}  // namespace mase::table_linear_lowering
