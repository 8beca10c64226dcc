// SPDX-License-Identifier: Apache-2.0
// The table of ch compress: as text, CSV and JSON.
#include <algorithm>
#include <cmath>

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/run/compress/compress.h"

namespace mase {
namespace {

std::string figure_cell(const CompressResult& result, double value) {
  return result.figure == "perplexity" ? fmt::format("{:.2f}", value) : figure_text(value);
}

std::string change_cell(const CompressResult& result, const CompressRow& row) {
  const std::string sign = row.difference > 0 ? "+" : "";
  if (!result.has_intervals) return sign + figure_cell(result, row.difference);
  return fmt::format("{}{} ± {}", sign, figure_text(row.difference),
                     figure_text((row.high - row.low) / 2));
}

std::string title(std::string word) {
  if (!word.empty()) word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return word;
}

// Cheapest first, equal ones in the order they were asked for.
std::vector<const CompressRow*> by_bits(const CompressResult& result) {
  std::vector<const CompressRow*> rows;
  for (const CompressRow& row : result.rows)
    if (row.trouble.empty()) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CompressRow* a, const CompressRow* b) { return a->bits < b->bits; });
  return rows;
}

Value row_value(const CompressRow& row) {
  return Dict{{"format", row.format},   {"method", row.method}, {"bits", row.bits},
              {"bytes", row.bytes},     {"value", row.value},   {"difference", row.difference},
              {"low", row.low},         {"high", row.high},     {"loss", row.loss},
              {"seconds", row.seconds}, {"front", row.front},   {"trouble", row.trouble},
              {"network", row.network}, {"passes", row.passes}};
}

}  // namespace

Value CompressResult::record() const {
  List list;
  for (const CompressRow& row : rows) list.push_back(row_value(row));
  return Dict{{"figure", figure},
              {"higher_is_better", higher_is_better},
              {"measured_on", measured_on},
              {"calibrated_on", calibrated_on},
              {"weights", weights},
              {"layers", layers},
              {"has_intervals", has_intervals},
              {"original", row_value(original)},
              {"rows", std::move(list)},
              {"stopped", stopped}};
}

std::string compress_table(const CompressResult& result) {
  Table table({"", "Format", "Method", "Bits per weight", "Parameters", title(result.figure),
               "Change", "Seconds"});
  const CompressRow& original = result.original;
  table.add({"", original.format, original.method, "32.00", human_bytes(original.bytes),
             figure_cell(result, original.value), "", ""});
  for (const CompressRow* row : by_bits(result))
    table.add({row->front ? "*" : "", printable(row->format), printable(row->method),
               fmt::format("{:.2f}", row->bits), human_bytes(row->bytes),
               figure_cell(result, row->value), change_cell(result, *row),
               fmt::format("{:.1f}", row->seconds)});
  std::string text = table.str();
  text += fmt::format(
      "\n* on the front: no other row has fewer bits and as good a figure, or as many and a better "
      "one.\nBits: of the {} weights of {} layers that get a format, scales counted; parameters: "
      "all, packed.\n{} on {}{}.\n",
      with_thousands(result.weights), with_thousands(result.layers), title(result.figure),
      result.measured_on,
      result.has_intervals ? ", with 95 % intervals of the change on the same rows" : "");
  for (const CompressRow& row : result.rows)
    if (!row.trouble.empty())
      text += fmt::format("not done: {} with {}: {}\n", printable(row.format),
                          printable(row.method), printable(row.trouble));
  return text;
}

std::string compress_csv(const CompressResult& result) {
  Table table({"format", "method", "bits_per_weight", "parameter_bytes", result.figure,
               "difference", "low", "high", "loss", "seconds", "front", "trouble", "network"});
  const auto number = [](double value) { return fmt::format("{:.9g}", value); };
  const auto add = [&](const CompressRow& row) {
    const bool there = row.trouble.empty();
    const auto cell = [&](double value, bool shown = true) {
      return there && shown ? number(value) : std::string();
    };
    table.add({row.format, row.method, cell(row.bits), cell(row.bytes), cell(row.value),
               cell(row.difference), cell(row.low, result.has_intervals),
               cell(row.high, result.has_intervals), cell(row.loss), cell(row.seconds),
               row.front ? "1" : "0", row.trouble, row.network});
  };
  add(result.original);
  for (const CompressRow& row : result.rows) add(row);
  return table.csv();
}

}  // namespace mase
