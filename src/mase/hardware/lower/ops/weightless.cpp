// SPDX-License-Identifier: Apache-2.0
// Weightless layers: thresholds are tables of a feature's code (the highest bit alone is wiring),
// lut_layer is a table of the bits side by side, group_sum adds bits up.
#include "mase/ops/weightless.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/formats/number_type.h"
#include "mase/hardware/lower/integer_lowering.h"
#include "mase/hardware/lower/lower_linear.h"

namespace mase::weightless_lowering {
namespace {

QuantizerPtr thermometer_input(const Value& attributes) {
  const ThermometerShape shape(attributes);
  return std::make_shared<Quantizer>(
      typed_quantizer(NumberType{Fixed{.is_signed = shape.is_signed,
                                       .width = shape.input_width,
                                       .frac = shape.input_frac,
                                       .rounding = Rounding::half_up,
                                       .overflow = Overflow::saturate}}));
}

void require_vector(const IntegerCall& call) {
  if (call.shape.size() != 2)
    call.refuse("it is applied to several vectors of features for each row", "flatten before it");
}

// A table of bits, or what it is where it is simpler.
IntegerId bit_of(IntegerBuilder& builder, IntegerId a, const std::vector<int64_t>& entries) {
  const int64_t first = builder.at(a).range.low;
  if (std::all_of(entries.begin(), entries.end(),
                  [&](int64_t entry) { return entry == entries[0]; }))
    return builder.constant(entries[0], 0);
  if (first == 0 && entries == std::vector<int64_t>{0, 1} && builder.at(a).frac == 0) return a;
  return builder.table(a, first, 0, entries);
}

std::optional<std::vector<IntegerId>> lower_thermometer(const IntegerCall& call) {
  require_vector(call);
  const ThermometerShape shape(call.call.attributes);
  const Tensor& thresholds = *call.call.module->find("thresholds");
  const FixedFormat format{.is_signed = shape.is_signed,
                           .width = shape.input_width,
                           .frac = shape.input_frac,
                           .rounding = IntegerRounding::half_up,
                           .overflow = IntegerOverflow::saturate};
  std::vector<IntegerId> bits;
  for (int64_t i = 0; i < shape.in; ++i) {
    const IntegerId code = call.builder.requantize(call.inputs[0][static_cast<size_t>(i)], format);
    const IntegerRange range = call.builder.at(code).range;
    for (int64_t level = 0; level < shape.levels; ++level) {
      const double threshold = thresholds.item(i * shape.levels + level);
      std::vector<int64_t> entries;
      for (int64_t at = range.low; at <= range.high; ++at)
        entries.push_back(shape.value_of(at) >= threshold);
      bits.push_back(bit_of(call.builder, code, entries));
    }
  }
  return bits;
}

std::optional<std::vector<IntegerId>> lower_luts(const IntegerCall& call) {
  require_vector(call);
  const LutLayerShape shape(call.call.attributes);
  const Tensor &wiring = *call.call.module->find("wiring"),
               &entries = *call.call.module->find("entries");
  for (const IntegerId id : call.inputs[0]) {
    const IntegerNode& bit = call.builder.at(id);
    if (bit.range.low < 0 || bit.range.high > 1 || bit.frac != 0)
      call.refuse("its inputs are no bits", "put a thermometer before it");
  }
  std::vector<IntegerId> results;
  for (int64_t o = 0; o < shape.out; ++o) {
    // Inputs that are there twice, are constants or make no difference are left out.
    std::vector<IntegerId> sources;
    std::vector<std::vector<int64_t>> values;  // of each input, by the address of the sources
    std::vector<size_t> place;
    for (int64_t k = 0; k < shape.inputs; ++k) {
      const IntegerId source =
          call.inputs[0][static_cast<size_t>(shape.wire(wiring.item(o * shape.inputs + k)))];
      const auto found = std::find(sources.begin(), sources.end(), source);
      place.push_back(static_cast<size_t>(found - sources.begin()));
      if (found == sources.end()) sources.push_back(source);
    }
    const auto entry = [&](size_t address) -> int64_t {
      int64_t index = 0;
      for (size_t k = 0; k < place.size(); ++k)
        index |= static_cast<int64_t>(address >> place[k] & 1) << k;
      return entries.item(o * shape.entries() + index) > 0;
    };
    std::vector<int64_t> table;
    for (size_t address = 0; address < size_t{1} << sources.size(); ++address)
      table.push_back(entry(address));
    for (size_t k = sources.size(); k-- > 0;) {
      const size_t step = size_t{1} << k;
      bool depends = false;
      for (size_t i = 0; i < table.size(); ++i)
        depends = depends || ((i & step) == 0 && table[i] != table[i | step]);
      if (depends) continue;
      std::vector<int64_t> smaller;
      for (size_t i = 0; i < table.size(); ++i)
        if ((i & step) == 0) smaller.push_back(table[i]);
      table = std::move(smaller);
      sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(k));
    }
    if (sources.empty())
      results.push_back(call.builder.constant(table[0], 0));
    else if (sources.size() == 1)
      results.push_back(bit_of(call.builder, sources[0], table));
    else
      results.push_back(call.builder.table(
          call.builder.node("join", sources, std::vector<int64_t>(sources.size(), 1)), 0, 0,
          table));
  }
  return results;
}

std::optional<std::vector<IntegerId>> lower_counts(const IntegerCall& call) {
  require_vector(call);
  const GroupSumShape shape(call.call.attributes);
  const Tensor& weights = *call.call.module->find("weights");
  const int64_t each = shape.in / shape.groups;
  std::vector<IntegerId> sums;
  for (int64_t group = 0; group < shape.groups; ++group) {
    std::vector<SumTerm> terms;
    for (int64_t k = group * each; k < (group + 1) * each; ++k)
      terms.push_back({call.inputs[0][static_cast<size_t>(k)], weights.item(k)});
    sums.push_back(lower_sum(call.builder, terms, 0, call.node.name, 0));
  }
  return sums;
}

const Register<IntegerLowering> thermometer{{
    .name = "thermometer",
    .summary = "tables of features' codes, for one vector of features",
    .lower = lower_thermometer,
    .first_input = thermometer_input,
}};
const Register<IntegerLowering> lut_layer{{
    .name = "lut_layer",
    .summary = "tables of bits, for one vector of bits",
    .lower = lower_luts,
}};
const Register<IntegerLowering> group_sum{{
    .name = "group_sum",
    .summary = "counts of bits, for one vector of bits",
    .lower = lower_counts,
}};

}  // namespace
}  // namespace mase::weightless_lowering
