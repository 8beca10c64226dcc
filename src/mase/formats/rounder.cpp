// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/rounder.h"

#include <cmath>
#include <utility>

#include "mase/base/error.h"
#include "mase/formats/blocking.h"
#include "mase/formats/kernels/codes.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase {
namespace {

// visit(group, runs)
template <class Visit>
void for_each_group(const Rounder& rounder, const Shape& shape, const Visit& visit) {
  if (const auto problem = misfit(rounder, shape)) throw Error("granularity", *problem);
  if (rounder.groups > 1 && element_count(shape) == 0) return;  // there are no such groups
  if (!rounder.boxes) return grouping(shape, rounder.granularity).for_each_group(visit);
  block_form(*rounder.boxes, shape).for_each([&](int64_t group, const std::vector<Run>& runs) {
    visit(group, std::span<const Run>(runs));
  });
}

// run(in, runs) of each group, in the order of memory where nothing is found in the values.
template <class Visit>
void for_each_run(const Rounder& rounder, const Rounder::Fit& fit, const float* in,
                  const Shape& shape, GroupRun run, const Visit& visit) {
  const uint32_t first = run.first;
  const auto at = [&](const Run& values) {
    run.first = first + static_cast<uint32_t>(values.offset);
    visit(run, values.offset, static_cast<size_t>(values.length));
  };
  if (!fit && !rounder.boxes) {
    if (const auto problem = misfit(rounder, shape)) throw Error("granularity", *problem);
    if (element_count(shape) == 0) return;
    grouping(shape, rounder.granularity).for_each_run([&](int64_t g, int64_t offset, size_t count) {
      run.group = g;
      if (rounder.given) run.shared = rounder.given(g);
      at({offset, static_cast<int64_t>(count)});
    });
    return;
  }
  for_each_group(rounder, shape, [&](int64_t g, std::span<const Run> runs) {
    run.group = g;
    run.shared = fit ? fit(in, runs) : rounder.given ? rounder.given(g) : Shared{};
    for (const Run& values : runs) at(values);
  });
}

void check_codes(const Rounder& rounder, const Rounder::Codes& codes, const Shape& shape) {
  using Kept = Rounder::Kept;
  const auto groups = static_cast<size_t>(rounder.group_count(shape));
  const size_t scales = rounder.kept == Kept::scale            ? groups
                        : rounder.kept == Kept::scale_and_zero ? 2 * groups
                                                               : 0;
  const size_t exponents = rounder.kept == Kept::exponent ? groups : 0;
  MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)) &&
                 codes.scales.size() == scales && codes.exponents.size() == exponents,
             "{} codes, {} scales and {} exponents for shape {}", codes.codes.size(),
             codes.scales.size(), codes.exponents.size(), shape_text(shape));
}

void round_run(const Rounder& rounder, const GroupRun& run, const float* in, float* out,
               size_t count) {
  if (rounder.round) return rounder.round(run, in, out, count);
  for (size_t i = 0; i < count; ++i)
    out[i] = rounder.one(run, in[i], run.first + static_cast<uint32_t>(i));
}

Rounder rule_of(const Rounder& rounder) {
  Rounder rule;
  rule.round = rounder.round;
  rule.one = rounder.one;
  return rule;
}

// Codes of rounded values, piece by piece in the first-level cache.
template <class Encode>
auto codes_of_rounded(const Rounder& rounder, Encode encode) {
  return [rule = rule_of(rounder), encode = std::move(encode)](GroupRun run, const float* in,
                                                               uint32_t* codes, size_t count) {
    constexpr size_t most = 2048;
    float rounded[most];
    for (size_t i = 0; i < count; i += most) {
      const size_t piece = std::min(most, count - i);
      round_run(rule, run, in + i, rounded, piece);
      encode(rounded, codes + i, piece);
      run.first += static_cast<uint32_t>(piece);
    }
  };
}

}  // namespace

void Rounder::set_limits(const Limits& limits) {
  lowest = limits.lowest;
  largest = limits.largest;
  smallest_positive = limits.smallest_positive;
}

bool Rounder::is_elementwise() const {
  return !fit && !sweep_only() && !boxes && groups == 1 && !learned;
}

void Rounder::quantize(const float* in, float* out, const Shape& shape, uint64_t draw,
                       int64_t first) const {
  if (sweep && sweep(in, out, shape)) return;
  GroupRun run{.draw = draw, .first = static_cast<uint32_t>(first)};
  if (elementwise) {
    if (given) run.shared = given(0);
    round_run(*this, run, in, out, static_cast<size_t>(element_count(shape)));
    return;
  }
  for_each_run(*this, fit, in, shape, run, [&](const GroupRun& part, int64_t at, size_t count) {
    round_run(*this, part, in + at, out + at, count);
  });
}

void Rounder::reference(const float* in, float* out, const Shape& shape) const {
  if (!one) {
    quantize(in, out, shape);
    return;
  }
  const auto each = [&](const GroupRun& part, int64_t at, size_t count) {
    for (int64_t i = at; i < at + static_cast<int64_t>(count); ++i)
      out[i] = one(part, in[i], static_cast<uint32_t>(i));
  };
  if (elementwise)
    return each({.shared = given ? given(0) : Shared{}}, 0,
                static_cast<size_t>(element_count(shape)));
  for_each_run(*this, plain_fit ? plain_fit : fit, in, shape, {}, each);
}

void Rounder::quantize_part(int64_t group, const float* in, float* out, int64_t count,
                            uint64_t draw, int64_t first) const {
  const int64_t own = groups == 1 ? 0 : group;
  const GroupRun run{.group = own,
                     .shared = given ? given(own) : Shared{},
                     .draw = draw,
                     .first = static_cast<uint32_t>(first)};
  round_run(*this, run, in, out, static_cast<size_t>(count));
}

void Rounder::gradient(const float* in, const float* grad_out, float* grad_in,
                       const Shape& shape) const {
  if (lowest && largest)
    return clipped_gradient_kernel(static_cast<float>(*lowest), static_cast<float>(*largest), in,
                                   grad_out, grad_in, static_cast<size_t>(element_count(shape)));
  for_each_run(*this, fit, in, shape, {}, [&](const GroupRun& part, int64_t at, size_t count) {
    const Limits limits = group_limits(part.group);
    clipped_gradient_kernel(static_cast<float>(limits.lowest), static_cast<float>(limits.largest),
                            in + at, grad_out + at, grad_in + at, count);
  });
}

Rounder::Codes Rounder::encode(const float* in, const Shape& shape) const {
  Codes codes;
  codes.codes.resize(static_cast<size_t>(element_count(shape)));
  if (code_sweep && code_sweep(in, shape, codes)) return codes;
  for_each_group(*this, shape, [&](int64_t g, std::span<const Run> runs) {
    GroupRun run{.group = g};
    run.shared = fit ? fit(in, runs) : given ? given(g) : Shared{};
    if (kept == Kept::exponent) codes.exponents.push_back(static_cast<int32_t>(run.shared[0]));
    if (kept == Kept::scale || kept == Kept::scale_and_zero) codes.scales.push_back(run.shared[0]);
    if (kept == Kept::scale_and_zero) codes.scales.push_back(run.shared[1]);
    for (const Run& values : runs) {
      run.first = static_cast<uint32_t>(values.offset);
      to_codes(run, in + values.offset, codes.codes.data() + values.offset,
               static_cast<size_t>(values.length));
    }
  });
  return codes;
}

void Rounder::decode(const Codes& codes, float* out, const Shape& shape) const {
  if (element_count(shape) == 0) return;
  check_codes(*this, codes, shape);
  if (value_sweep && value_sweep(codes, out, shape)) return;
  for_each_group(*this, shape, [&](int64_t g, std::span<const Run> runs) {
    const auto at = static_cast<size_t>(g);
    GroupRun run{.group = g};
    if (kept == Kept::nothing && given) run.shared = given(g);
    if (kept == Kept::exponent) run.shared = {static_cast<double>(codes.exponents[at])};
    if (kept == Kept::scale) run.shared = {codes.scales[at]};
    if (kept == Kept::scale_and_zero) run.shared = {codes.scales[2 * at], codes.scales[2 * at + 1]};
    for (const Run& values : runs)
      to_values(run, codes.codes.data() + values.offset, out + values.offset,
                static_cast<size_t>(values.length));
  });
}

int64_t Rounder::group_count(const Shape& shape) const {
  return boxes ? block_form(*boxes, shape).count() : grouping(shape, granularity).groups;
}

double Rounder::bits_per_value(const Shape& shape) const {
  const int64_t values = element_count(shape);
  if (shared_bits == 0 || values == 0) return bits;
  const int64_t kept_for = given ? groups : group_count(shape);
  return bits + shared_bits * static_cast<double>(kept_for) / static_cast<double>(values);
}

std::optional<std::string> misfit(const Rounder& rounder, const Shape& shape) {
  using Kind = Granularity::Kind;
  const Granularity& granularity = rounder.granularity;
  std::optional<int64_t> axis;
  if (granularity.kind == Kind::axis) axis = granularity.axis;
  if (rounder.boxes) axis = rounder.boxes->axis;
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis && rank > 0 && (*axis < -rank || *axis >= rank))
    return fmt::format("axis {} is out of range for shape {}", *axis, shape_text(shape));
  if (granularity.kind == Kind::block && (shape.empty() || shape.back() % granularity.size != 0))
    return fmt::format("blocks of {} values in {}", granularity.size, shape_text(shape));
  if (rounder.groups == 1 || element_count(shape) == 0) return {};
  const int64_t groups = grouping(shape, granularity).groups;
  if (groups == rounder.groups) return {};
  return fmt::format("{} numbers in a list for {} groups of shape {}", rounder.groups, groups,
                     shape_text(shape));
}

void set_codes(Rounder& rounder, const CodeLayout& layout) {
  rounder.code_bits = layout.width;
  rounder.to_codes =
      codes_of_rounded(rounder, [layout](const float* values, uint32_t* codes, size_t count) {
        encode_kernel(layout, values, codes, count);
      });
  rounder.to_values = [layout](const GroupRun&, const uint32_t* codes, float* out, size_t count) {
    decode_kernel(layout, codes, out, count);
  };
}

void set_codes(Rounder& rounder, int bits, std::function<uint32_t(float)> code_of,
               std::function<float(uint32_t)> value_of) {
  rounder.code_bits = bits;
  rounder.to_codes = codes_of_rounded(
      rounder, [code_of = std::move(code_of)](const float* values, uint32_t* codes, size_t count) {
        for (size_t i = 0; i < count; ++i) codes[i] = code_of(values[i]);
      });
  rounder.to_values = [value_of = std::move(value_of)](const GroupRun&, const uint32_t* codes,
                                                       float* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = value_of(codes[i]);
  };
}

}  // namespace mase
