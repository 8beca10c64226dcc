// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/runs.h"
#include "mase/base/fields.h"
#include "mase/formats/elementwise.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace mase {
namespace {

struct RunGroups {
  RunRule rule;
  int64_t size = 64;

  int64_t row_of(const Shape& shape) const {
    const int64_t total = element_count(shape);
    return shape.size() < 2 || shape[0] == 0 ? total : total / shape[0];
  }
  int64_t count(const Shape& shape) const {
    const int64_t row = row_of(shape);
    return row == 0 ? 0 : element_count(shape) / row * ((row + size - 1) / size);
  }
  // visit(group, first value, count)
  template <class Visit>
  void each(const Shape& shape, const Visit& visit) const {
    const int64_t total = element_count(shape), row = row_of(shape);
    size_t group = 0;
    for (int64_t start = 0; start < total; start += row)
      for (int64_t at = 0; at < row; at += size)
        visit(group++, start + at, std::min(size, row - at));
  }
  // No scale of something becomes that of nothing.
  double rounded_scale(double scale) const {
    const auto in = static_cast<float>(scale);
    float out = 0;
    rule.scale->quantize(&in, &out, {1});
    if (in > 0 && out <= 0 && rule.scale->smallest_positive) return *rule.scale->smallest_positive;
    return out;
  }
  std::vector<double> numbers(size_t group, const float* in, int64_t count) const {
    if (rule.given.empty()) {
      std::vector<double> found = rule.find(in, count);
      if (rule.scale) found[0] = rounded_scale(found[0]);
      return found;
    }
    const size_t first = rule.given.size() == rule.per_group ? 0 : group * rule.per_group;
    return {rule.given.begin() + static_cast<std::ptrdiff_t>(first),
            rule.given.begin() + static_cast<std::ptrdiff_t>(first + rule.per_group)};
  }
};

}  // namespace

std::vector<int32_t> run_groups(const Shape& shape, int64_t size) {
  std::vector<int32_t> groups(static_cast<size_t>(element_count(shape)));
  RunGroups{{}, size}.each(shape, [&](size_t group, int64_t first, int64_t count) {
    std::fill_n(groups.begin() + first, count, static_cast<int32_t>(group));
  });
  return groups;
}

Quantizer run_quantizer(RunRule given, int64_t size) {
  const auto own = std::make_shared<const RunGroups>(RunGroups{std::move(given), size});
  Quantizer q;
  q.misfit = [own](const Shape& shape) -> std::optional<std::string> {
    const size_t numbers = own->rule.given.size() / own->rule.per_group;
    if (numbers <= 1 || element_count(shape) == 0 ||
        static_cast<int64_t>(numbers) == own->count(shape))
      return {};
    return fmt::format("{} numbers in a list for {} groups of shape {}", numbers, own->count(shape),
                       shape_text(shape));
  };
  q.quantize = [own, misfit = q.misfit](const float* in, float* out, const Shape& shape) {
    if (const auto problem = misfit(shape)) throw Error("group_size", *problem);
    own->each(shape, [&](size_t group, int64_t first, int64_t count) {
      const std::vector<double> numbers = own->numbers(group, in + first, count);
      for (int64_t i = first; i < first + count; ++i)
        out[i] = std::isnan(in[i]) ? in[i] : own->rule.round(numbers, in[i]);
    });
  };
  q.reference = q.quantize;
  q.code_bits = own->rule.width;
  q.encode = [own](const float* in, const Shape& shape) {
    Quantizer::Codes codes;
    codes.codes.resize(static_cast<size_t>(element_count(shape)));
    own->each(shape, [&](size_t group, int64_t first, int64_t count) {
      const std::vector<double> numbers = own->numbers(group, in + first, count);
      codes.scales.insert(codes.scales.end(), numbers.begin(), numbers.end());
      for (int64_t i = first; i < first + count; ++i)
        codes.codes[static_cast<size_t>(i)] =
            own->rule.code(numbers, std::isnan(in[i]) ? 0.0f : in[i]);
    });
    return codes;
  };
  q.decode = [own](const Quantizer::Codes& codes, float* out, const Shape& shape) {
    const size_t each = own->rule.per_group;
    MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)) &&
                   codes.scales.size() == each * static_cast<size_t>(own->count(shape)),
               "{} codes and {} scales for shape {}", codes.codes.size(), codes.scales.size(),
               shape_text(shape));
    own->each(shape, [&](size_t group, int64_t first, int64_t count) {
      const auto at = codes.scales.begin() + static_cast<std::ptrdiff_t>(group * each);
      const std::vector<double> numbers(at, at + static_cast<std::ptrdiff_t>(each));
      for (int64_t i = first; i < first + count; ++i)
        out[i] = own->rule.value(numbers, codes.codes[static_cast<size_t>(i)]);
    });
  };
  q.bits_per_value = [own](const Shape& shape) {
    const auto values = static_cast<double>(std::max<int64_t>(1, element_count(shape)));
    return own->rule.width +
           own->rule.shared_bits * static_cast<double>(own->count(shape)) / values;
  };
  return q;
}

Field scale_format_field() {
  return table_field("scale_format",
                     "a number format of the scales themselves: {name = \"minifloat_ieee\", "
                     "width = 8, exponent_width = 4}; float32 if not given");
}

QuantizerPtr scale_format(const Value& config) {
  const Value& table = config["scale_format"];
  if (table.is_null()) return {};
  if (!table["name"].is_string())
    throw config_error(config, "scale_format", "names no number format",
                       "write {name = \"minifloat_ieee\", ...}");
  Value keys = Dict{};
  for (const auto& [key, value] : table.as_dict())
    if (key != "name") keys.dict().set(key, value);
  QuantizerPtr scale = make_quantizer(table["name"].as_string(), keys, "scale_format");
  if (!scale->elementwise || scale->learned || scale->quantize_drawn)
    throw config_error(config, "scale_format", "scales are rounded one by one",
                       "take a format without scales of its own, and without learning or chance");
  return scale;
}

Field group_size_field() {
  return integer_field(
             "group_size",
             "consecutive values of a row that share a scale; the last group may be shorter", 64)
      .between(1, 1e9);
}

}  // namespace mase
