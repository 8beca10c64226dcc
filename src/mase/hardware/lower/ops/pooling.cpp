// SPDX-License-Identifier: Apache-2.0
// Pools, sums and means. A mean of 2^k values only moves the binary point; of others it is a table
// of the sum, where the result is rounded.
#include <algorithm>
#include <bit>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/hardware/lower/lower_products.h"
#include "mase/hardware/lower/lower_rounding.h"
#include "mase/hardware/lower/lowering_probe.h"
#include "mase/hardware/lower/quantizer_format.h"
#include "mase/ops/windows.h"

namespace mase::pooling_lowering {
namespace {

// Sees the one pool or reduction that the op is.
class SeesPool final : public LoweringProbe {
 public:
  explicit SeesPool(const Shape& x) : x_(x) {}
  Shape shape(Slot slot) const override { return slot == 0 ? x_ : Shape{}; }
  Slot pool(PoolKind given, Slot, const Windows& over, bool count, const Shape&) override {
    kind = given;
    windows = over;
    count_padding = count;
    return 1;
  }
  Slot reduce(ReduceKind given, Slot, const std::vector<int64_t>& over, bool) override {
    reduction = given;
    dims = over;
    return 1;
  }
  std::optional<PoolKind> kind;
  std::optional<ReduceKind> reduction;
  Windows windows;
  std::vector<int64_t> dims;
  bool count_padding = true;

 private:
  Shape x_;
};

// The sum over a number: exact, or a table.
class Means {
 public:
  explicit Means(const IntegerCall& call)
      : call_(call), sums_(call), format_(call.format("data_out")) {}

  IntegerId sum(const std::vector<IntegerId>& values) { return weighted(values, 1); }
  IntegerId mean(const std::vector<IntegerId>& values, int64_t count) {
    if (std::has_single_bit(static_cast<uint64_t>(count)))
      return weighted(values, 1 / static_cast<double>(count));
    if (!format_ || !is_function_of_value(*format_))
      call_.refuse(fmt::format("a mean of {} values is no exact integer", count),
                   "take windows of 2, 4, 8, ... values, or give data_out_width, so that it is a "
                   "table of the sum");
    return lower_table(
        call_.builder, weighted(values, 1),
        [&](std::vector<float> numbers) {
          for (float& number : numbers) number /= static_cast<float>(count);
          format_->quantize(numbers.data(), numbers.data(), {static_cast<int64_t>(numbers.size())});
          return numbers;
        },
        call_.node.name);
  }
  // What was added up, one for each sum or mean that was asked for.
  const std::vector<IntegerId>& totals() const { return totals_; }
  void note() const { sums_.note(); }

 private:
  IntegerId weighted(const std::vector<IntegerId>& values, double weight) {
    std::vector<SumTerm> terms;
    for (const IntegerId id : values) terms.push_back({id, weight});
    int frac = no_least_frac;
    for (const IntegerId id : values)
      frac = std::max(frac, call_.builder.at(id).frac + dyadic(weight, call_.node.name).frac);
    totals_.push_back(sums_.sum(terms, 0, frac));
    return totals_.back();
  }

  const IntegerCall& call_;
  LayerSums sums_;
  QuantizerPtr format_;
  std::vector<IntegerId> totals_;
};

IntegerId largest(IntegerBuilder& builder, std::vector<IntegerId> values) {
  int frac = no_least_frac;
  for (const IntegerId id : values) frac = std::max(frac, builder.at(id).frac);
  for (IntegerId& id : values) id = builder.aligned(id, frac);
  while (values.size() > 1) {  // a tree: pairs side by side
    std::vector<IntegerId> next;
    for (size_t k = 0; k + 1 < values.size(); k += 2)
      next.push_back(
          builder.select(builder.compare(values[k], values[k + 1]), values[k + 1], values[k]));
    if (values.size() % 2 == 1) next.push_back(values.back());
    values = std::move(next);
  }
  return values[0];
}

std::vector<IntegerId> pooled(const IntegerCall& call, const SeesPool& seen) {
  const WindowPlane plane(seen.windows, call.shapes[0], call.shape);
  const size_t positions = static_cast<size_t>(plane.positions()),
               results = static_cast<size_t>(plane.results());
  const int64_t channels = call.shape[1];
  std::vector<std::vector<size_t>> windows(results);
  plane.each([&](size_t at, size_t, size_t from) { windows[at].push_back(from); });
  Means means(call);
  std::vector<IntegerId> result, values;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
    for (size_t at = 0; at < results; ++at) {
      values.clear();
      for (const size_t from : windows[at]) values.push_back(call.inputs[0][c * positions + from]);
      if (values.empty()) call.refuse("a window lies in the padding alone", "take less padding");
      result.push_back(*seen.kind == PoolKind::max
                           ? largest(call.builder, values)
                           : means.mean(values, seen.count_padding
                                                    ? plane.taps()
                                                    : static_cast<int64_t>(values.size())));
    }
  if (*seen.kind == PoolKind::mean) means.note();
  std::optional<IntegerGraph::Sliding> sliding =
      sliding_windows(seen.windows, call.shapes[0], call.shape);
  sliding->largest = *seen.kind == PoolKind::max;
  call.builder.note_linear(by_position(call.inputs[0], channels),
                           by_position(sliding->largest ? result : means.totals(), channels),
                           sliding);
  return result;
}

// Every result is the sum or mean of those that lie in the same place of the other dimensions.
std::vector<IntegerId> reduced(const IntegerCall& call, const SeesPool& seen) {
  const Shape& x = call.shapes[0];
  std::vector<std::vector<IntegerId>> parts(static_cast<size_t>(element_count(call.shape)));
  for (size_t i = 0; i < call.inputs[0].size(); ++i) {
    size_t rest = i, place = 0, stride = 1;
    for (size_t d = x.size(); d-- > 0;) {
      const size_t size = static_cast<size_t>(x[d]), at = rest % size;
      rest /= size;
      if (std::count(seen.dims.begin(), seen.dims.end(), static_cast<int64_t>(d))) continue;
      place += at * stride;
      stride *= size;
    }
    parts[place].push_back(call.inputs[0][i]);
  }
  if (std::count(seen.dims.begin(), seen.dims.end(), 0))
    call.refuse("it adds up rows of different inputs", "name other dimensions than the first");
  Means means(call);
  std::vector<IntegerId> result;
  for (const std::vector<IntegerId>& values : parts)
    result.push_back(*seen.reduction == ReduceKind::mean
                         ? means.mean(values, static_cast<int64_t>(values.size()))
                         : means.sum(values));
  means.note();
  call.builder.note_linear(call.inputs[0], means.totals());
  return result;
}

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  SeesPool seen(call.shapes[0]);
  call.call.op->lower(seen, call.call.attributes, {0});
  if (seen.kind) return pooled(call, seen);
  if (seen.reduction == ReduceKind::mean || seen.reduction == ReduceKind::sum)
    return reduced(call, seen);
  call.refuse(fmt::format("'{}' with these attributes has no integer form", call.call.op->name),
              "take windows of one size, without divisor_override");
}

IntegerLowering record(const std::string& name, const std::string& summary) {
  return {.name = name, .summary = summary, .lower = lower};
}

using Registered = const Register<IntegerLowering>;
Registered max1{record("max_pool1d", "the largest of every window")};
Registered max2{record("max_pool2d", "the largest of every window")};
Registered whole_max1{record("adaptive_max_pool1d", "the largest of windows of one size")};
Registered whole_max2{record("adaptive_max_pool2d", "the largest of windows of one size")};
Registered mean1{record("avg_pool1d", "the mean of 2^k values, or a table of the sum")};
Registered mean2{record("avg_pool2d", "the mean of 2^k values, or a table of the sum")};
Registered whole_mean1{record("adaptive_avg_pool1d", "the mean of windows of one size")};
Registered whole_mean2{record("adaptive_avg_pool2d", "the mean of windows of one size")};
Registered mean{record("mean", "the mean of 2^k values, or a table of the sum")};
Registered sum{record("sum", "the sum over dimensions")};

}  // namespace
}  // namespace mase::pooling_lowering
