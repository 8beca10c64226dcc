// SPDX-License-Identifier: Apache-2.0
// ch format rules: where the default rule and MASE's published one differ, on one fixed tensor of
// 256 x 64 normal numbers.
#include "mase/cli/format_rules.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

int format_rules() {
  Tensor x({256, 64});
  Random random(7, "format rules");
  float* values = x.mutable_data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = static_cast<float>(random.normal());
  Table table({"Format", "Config", "Differ", "Largest difference", "SQNR default [dB]",
               "SQNR reference [dB]"});
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    if (!has_reference(*record) || !record->ladder) continue;
    for (const Value& config : record->ladder(4)) {
      const auto ours = make_quantizer(record->name, config);
      const auto theirs = make_quantizer(record->name, with_reference(config));
      const Tensor a = quantize(*ours, x), b = quantize(*theirs, x);
      int64_t differ = 0;
      double largest = 0;
      for (int64_t i = 0; i < x.numel(); ++i) {
        if (a.item(i) == b.item(i)) continue;
        ++differ;
        largest = std::max(largest, std::fabs(a.item(i) - b.item(i)));
      }
      table.add({record->name, config_text(*record, config),
                 fmt::format("{:.2f}%",
                             100.0 * static_cast<double>(differ) / static_cast<double>(x.numel())),
                 fmt::format("{:.5g}", largest),
                 fmt::format("{:.2f}", measure_error(*ours, x, a).sqnr),
                 fmt::format("{:.2f}", measure_error(*theirs, x, b).sqnr)});
    }
  }
  fmt::print("{}", table.str());
  return 0;
}

}  // namespace mase
