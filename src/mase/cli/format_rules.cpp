// SPDX-License-Identifier: Apache-2.0
// ch format rules: where the default rule and MASE's published one differ, and by how much.
#include "mase/cli/format_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/formats/measure.h"
#include "mase/formats/rounding.h"

namespace mase {
namespace {

bool has_reference(const FormatRecord& record) {
  const Field* field = record.schema.find("rounding");
  return field && std::count(field->choices.begin(), field->choices.end(), reference_rounding);
}

Value with_reference(Value config) {
  config.dict().set("rounding", reference_rounding);
  return config;
}

std::string number(float value) { return std::isnan(value) ? "NaN" : fmt::format("{:.5g}", value); }

struct Pair {
  std::string config;
  QuantizerPtr ours, theirs;
};

std::vector<Pair> pairs_of(const FormatRecord& record) {
  std::vector<Pair> pairs;
  if (!has_reference(record) || !record.ladder) return pairs;
  for (const Value& config : record.ladder(4))
    pairs.push_back({config_text(record, config), make_quantizer(record.name, config),
                     make_quantizer(record.name, with_reference(config))});
  return pairs;
}

// How much, on normal numbers.
void add_figures(Table& table, const std::string& name, const Pair& pair, const Tensor& x) {
  const Tensor a = quantize(*pair.ours, x), b = quantize(*pair.theirs, x);
  int64_t differ = 0;
  double largest = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (a.item(i) == b.item(i)) continue;
    ++differ;
    largest = std::max(largest, std::fabs(a.item(i) - b.item(i)));
  }
  const double share = static_cast<double>(differ) / static_cast<double>(x.numel());
  table.add({name, pair.config, fmt::format("{:.2f}%", 100 * share), fmt::format("{:.5g}", largest),
             fmt::format("{:.2f}", measure_error(*pair.ours, x, a).sqnr),
             fmt::format("{:.2f}", measure_error(*pair.theirs, x, b).sqnr)});
}

// Where: telling numbers, each in a row, and so a block, of its own.
void add_places(Table& table, const std::string& name, const Pair& pair) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> inputs = {0, 1e-9f, 1e-3f, 0.3f, 1, -1, 1.45f, 1.99f, 1000, inf};
  const Shape shape = {static_cast<int64_t>(inputs.size()), 1};
  std::vector<float> ours(inputs.size()), theirs(inputs.size());
  pair.ours->quantize(inputs.data(), ours.data(), shape);
  pair.theirs->quantize(inputs.data(), theirs.data(), shape);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (ours[i] != theirs[i])
      table.add({name, pair.config, number(inputs[i]), number(ours[i]), number(theirs[i])});
}

}  // namespace

int format_rules() {
  Tensor x({256, 64});
  Random random(7, "format rules");
  float* values = x.mutable_data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = static_cast<float>(random.normal());
  Table figures({"Format", "Config", "Differ", "Largest difference", "SQNR default [dB]",
                 "SQNR reference [dB]"});
  Table places({"Format", "Config", "Input", "Default", "Reference"});
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    const std::vector<Pair> pairs = pairs_of(*record);
    for (const Pair& pair : pairs) add_figures(figures, record->name, pair, x);
    if (!pairs.empty()) add_places(places, record->name, pairs.back());
  }
  fmt::print("How much, on 256 x 64 normal numbers:\n{}\n", figures.str());
  fmt::print("Where, on single numbers:\n{}", places.str());
  return 0;
}

}  // namespace mase
