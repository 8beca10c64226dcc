// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/frozen.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/blocking.h"
#include "mase/formats/measure.h"
#include "mase/formats/scaled.h"

namespace mase {
namespace {

std::vector<int32_t> groups_of(const Grouping& groups, int64_t elements) {
  std::vector<int32_t> result(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i)
    result[static_cast<size_t>(i)] = static_cast<int32_t>(groups.group_of(i));
  return result;
}

std::vector<int32_t> blocks_of(const Blocking& blocks, int64_t elements) {
  std::vector<int32_t> result(static_cast<size_t>(elements));
  blocks.for_each([&](int64_t block, const std::vector<Run>& runs) {
    for (const Run& run : runs)
      std::fill_n(result.begin() + run.offset, run.length, static_cast<int32_t>(block));
  });
  return result;
}

// The numbers of a block with the exponent 0, whatever the dimension along which blocks run: a list
// of codes has one dimension only.
std::vector<float> element_levels(Block block) {
  if (block.axis) block.axis = 0;
  return representable_values(typed_quantizer({block}));
}

Error no_grid(const Quantizer& quantizer, const std::string& why) {
  return Error(quantizer.format, why, "take another number format for this method");
}

}  // namespace

FrozenGrid::FrozenGrid(const Quantizer& quantizer, const Tensor& tensor)
    : elements_(tensor.numel()) {
  const Tensor in = tensor.to(DType::f32);
  const Shape& shape = in.shape();
  if (quantizer.learned) throw no_grid(quantizer, "its scale is learned, not found from weights");
  if (quantizer.stochastic) throw no_grid(quantizer, "its rounding is drawn");
  const NumberType* type = quantizer.type ? &*quantizer.type : nullptr;
  if (const Fixed* fixed = type ? type->as<Fixed>() : nullptr) {
    if (fixed->rounding == Rounding::stochastic) throw no_grid(quantizer, "its rounding is drawn");
    for (int64_t g = 0; g < group_count(*fixed); ++g) {
      const Fixed own = fixed_at(*fixed, g);
      steps_.push_back({lowest_code(own), largest_code(own), std::ldexp(1.0, -own.frac), 0});
    }
    if (steps_.size() > 1) group_of_ = groups_of(grouping(shape, type->granularity), elements_);
    return;
  }
  if (quantizer.code_bits == 0) throw no_grid(quantizer, "it has no codes");
  const Scaled* scaled = type ? type->as<Scaled>() : nullptr;
  if (scaled && scaled->arithmetic == Scaled::Arithmetic::exact) {
    const Quantizer::Codes codes = quantizer.encode(in.data<float>(), shape);
    const ScaledSpec range = code_range(*scaled);
    for (size_t i = 0; i < codes.scales.size(); i += scaled->affine ? 2 : 1)
      steps_.push_back(
          {range.low, range.high, codes.scales[i], scaled->affine ? codes.scales[i + 1] : 0.0});
    if (steps_.size() > 1) group_of_ = groups_of(grouping(shape, type->granularity), elements_);
    return;
  }
  if (quantizer.code_bits <= 16 && (quantizer.elementwise || (type && type->as<Block>()))) {
    const Block* block = type ? type->as<Block>() : nullptr;
    levels_ = block ? element_levels(*block) : representable_values(quantizer);
    if (levels_.empty()) throw no_grid(quantizer, "no code is a number");
    scales_ = {1.0};
    if (block) {
      // The lowest number of two's complement would give its block another exponent.
      std::erase_if(levels_, [most = levels_.back()](float level) { return level < -most; });
      scales_.clear();
      for (const int32_t exponent : quantizer.encode(in.data<float>(), shape).exponents)
        scales_.push_back(std::ldexp(1.0, exponent));
      group_of_ = blocks_of(block_form(*block, shape), elements_);
    }
    count_ = levels_.size();
    return;
  }
  if (!type && quantizer.granularity.kind == Granularity::Kind::run && quantizer.code_bits <= 12) {
    // Every code decoded once in every group: a tensor of one value for each has the same groups.
    group_of_ = groups_of(grouping(shape, quantizer.granularity), elements_);
    Quantizer::Codes codes = quantizer.encode(in.data<float>(), shape);
    const size_t groups =
        group_of_.empty()
            ? 0
            : static_cast<size_t>(*std::max_element(group_of_.begin(), group_of_.end())) + 1;
    count_ = size_t{1} << quantizer.code_bits;
    levels_.resize(groups * count_);
    scales_.assign(groups, 1.0);
    own_levels_ = true;
    codes.codes.resize(groups);
    std::vector<float> values(groups);
    for (size_t code = 0; code < count_; ++code) {
      std::fill(codes.codes.begin(), codes.codes.end(), static_cast<uint32_t>(code));
      quantizer.decode(codes, values.data(), {static_cast<int64_t>(groups), 1});
      for (size_t g = 0; g < groups; ++g) levels_[g * count_ + code] = values[g];
    }
    for (size_t g = 0; g < groups; ++g)
      std::sort(levels_.begin() + static_cast<std::ptrdiff_t>(g * count_),
                levels_.begin() + static_cast<std::ptrdiff_t>((g + 1) * count_));
    return;
  }
  // Every code decoded at every place.
  constexpr int64_t most = int64_t{1} << 27;
  if (quantizer.code_bits > 16 || (elements_ << quantizer.code_bits) > most)
    throw no_grid(quantizer,
                  fmt::format("{} codes for each of {} weights are too many to list",
                              int64_t{1} << std::min(quantizer.code_bits, 40), elements_));
  Quantizer::Codes codes = quantizer.encode(in.data<float>(), shape);
  count_ = size_t{1} << quantizer.code_bits;
  table_.resize(count_ * static_cast<size_t>(elements_));
  for (size_t code = 0; code < count_; ++code) {
    std::fill(codes.codes.begin(), codes.codes.end(), static_cast<uint32_t>(code));
    quantizer.decode(codes, table_.data() + code * static_cast<size_t>(elements_), shape);
  }
  // Ascending at every place, so that both kinds of levels are searched alike. What is no number is
  // never the nearest.
  std::vector<float> column(count_);
  for (int64_t e = 0; e < elements_; ++e) {
    size_t finite = 0;
    for (size_t i = 0; i < count_; ++i) {
      const float value = table_[i * static_cast<size_t>(elements_) + static_cast<size_t>(e)];
      if (std::isfinite(value)) column[finite++] = value;
    }
    if (finite == 0) throw no_grid(quantizer, "no code is a number");
    std::sort(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(finite));
    std::fill(column.begin() + static_cast<std::ptrdiff_t>(finite), column.end(),
              column[finite - 1]);
    for (size_t i = 0; i < count_; ++i)
      table_[i * static_cast<size_t>(elements_) + static_cast<size_t>(e)] = column[i];
  }
}

double FrozenGrid::step_value(const Steps& steps, double code) const {
  return static_cast<float>((code - steps.zero) * steps.step + 0.0);  // no negative zero
}

double FrozenGrid::level(size_t index, int64_t element) const {
  if (!table_.empty())
    return table_[index * static_cast<size_t>(elements_) + static_cast<size_t>(element)];
  const size_t group =
      group_of_.empty() ? 0 : static_cast<size_t>(group_of_[static_cast<size_t>(element)]);
  return own_levels_ ? levels_[group * count_ + index] : levels_[index] * scales_[group];
}

size_t FrozenGrid::above(int64_t element, double value) const {
  size_t low = 0, high = count_ - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (level(middle, element) < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::pair<double, double> FrozenGrid::neighbours(int64_t element, double value) const {
  if (!steps_.empty()) {
    const Steps& steps =
        steps_[group_of_.empty() ? 0
                                 : static_cast<size_t>(group_of_[static_cast<size_t>(element)])];
    const double code = value / steps.step + steps.zero;
    const double below = std::clamp(std::floor(code), steps.low, steps.high);
    const double next = std::clamp(std::ceil(code), steps.low, steps.high);
    return {step_value(steps, below), step_value(steps, next)};
  }
  const size_t at = above(element, value);
  const double high = level(at, element);
  if (high <= value || at == 0) return {high, high};
  return {level(at - 1, element), high};
}

double FrozenGrid::round(int64_t element, double value) const {
  if (!steps_.empty()) {
    const Steps& steps =
        steps_[group_of_.empty() ? 0
                                 : static_cast<size_t>(group_of_[static_cast<size_t>(element)])];
    const double code = std::nearbyint(value / steps.step) + steps.zero;
    return step_value(steps, std::clamp(code, steps.low, steps.high));
  }
  const auto [low, high] = neighbours(element, value);
  return value - low < high - value ? low : high;
}

Value frozen_config(const Quantizer& quantizer, const Tensor& tensor) {
  const FormatRecord& record = Registry<FormatRecord>::instance().get(quantizer.format);
  if (!record.schema.find("step") || quantizer.code_bits == 0) return {};
  const Tensor in = tensor.to(DType::f32);
  const Quantizer::Codes codes = quantizer.encode(in.data<float>(), in.shape());
  const Scaled* scaled = quantizer.type ? quantizer.type->as<Scaled>() : nullptr;
  const bool zeros = scaled ? scaled->affine : quantizer.config["affine"] == Value(true);
  Value config = quantizer.config;
  List steps, zero_points;
  for (size_t i = 0; i < codes.scales.size(); ++i)
    (zeros && i % 2 ? zero_points : steps).push_back(codes.scales[i]);
  config.dict().set("step", steps);
  if (zeros) config.dict().set("zero_point", zero_points);
  using Kind = Granularity::Kind;
  if (!scaled || quantizer.granularity.kind == Kind::run) return config;
  const Kind kind = quantizer.type->granularity.kind;
  config.dict().set("granularity", kind == Kind::row    ? "row"
                                   : kind == Kind::axis ? "channel"
                                                        : "tensor");
  config.dict().set("narrow", scaled->narrow);
  return config;
}

}  // namespace mase
