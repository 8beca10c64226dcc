// SPDX-License-Identifier: Apache-2.0
// ch bench primitives: what the engine's primitives reach of what the core can do, each at a size
// that networks have, forward in every variant and backward.
#include "mase/cli/bench_primitives.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "mase/engine/kernels/peak.h"
#include "mase/engine/trial.h"

namespace mase::primitive_bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Seconds of the shortest run; `before` is not counted.
template <class Before, class Body>
double shortest(double seconds, const Before& before, const Body& body) {
  double best = 1e30;
  const Clock::time_point start = Clock::now();
  for (int runs = 0; runs < 3 || since(start) < seconds; ++runs) {
    before();
    const Clock::time_point begin = Clock::now();
    body();
    best = std::min(best, since(begin));
  }
  return best;
}

struct Peaks {
  double flops, cache, memory;  // a second: operations, and bytes read and written by a copy
};

Peaks measure_peaks(double seconds) {
  Peaks peaks{};
  float keep[2] = {1e-9f, 0};
  double flops = 0;
  const auto nothing = [] {};
  const double time =
      shortest(seconds, nothing, [&] { flops = kernels::peak_multiply_adds(20000, keep); });
  peaks.flops = flops / time;
  const auto copy = [&](size_t bytes) {
    const auto from = aligned_bytes(bytes), to = aligned_bytes(bytes);
    std::memset(from.get(), 1, bytes);
    return 2 * static_cast<double>(bytes) /
           shortest(seconds, nothing, [&] { std::memcpy(to.get(), from.get(), bytes); });
  };
  peaks.cache = copy(size_t{1} << 17);
  peaks.memory = copy(size_t{1} << 26);
  return peaks;
}

class Measuring {
 public:
  Measuring(PrimitiveFigures& figures, const Peaks& peaks, double seconds)
      : figures_(figures), peaks_(peaks), seconds_(seconds) {}

  // On operands of the first kind that it takes: floats, or where it takes nothing else numbers of
  // few bits, or in training. The plain forms, a thousand times slower, are timed on a small case.
  void variant(const engine::PrimitiveRecord& record, const engine::Variant& variant) {
    const bool large = variant.name != "reference";
    int64_t kinds = 1;
    for (int64_t kind = 0; kind < kinds; ++kind)
      for (const engine::Trial::Options& options :
           {engine::Trial::Options{.large = large, .kind = kind},
            {.large = large, .kind = kind, .few_bits = true},
            {.large = large, .kind = kind, .training = true}}) {
        engine::Trial trial(record, options);
        kinds = trial.kinds();
        if (!trial.exists() || !trial.prepare(variant)) continue;
        add(record.name, variant.name, trial, 1,
            shortest(
                seconds_, [] {}, [&] { trial.run_forward(); }));
        return;
      }
  }

  void gradient(const engine::PrimitiveRecord& record) {
    engine::Trial trial(record, {.large = true, .training = true});
    if (!trial.exists() || !trial.has_gradient()) return;
    for (const engine::Variant& variant : engine::variants_of(record))
      if (trial.prepare(variant)) break;
    trial.run_forward();
    // A product has two of its own size: by the input and by the weights.
    add(record.name, "gradient", trial, 2,
        shortest(
            seconds_, [&] { trial.seed_gradients(); }, [&] { trial.run_backward(); }));
  }

 private:
  void add(const std::string& name, const std::string& variant, const engine::Trial& trial,
           double products, double time) {
    const double flops = 2 * products * trial.multiply_adds() / time;
    const double bytes = products * trial.bytes() / time;
    Value row = Dict{{"primitive", name},
                     {"variant", variant},
                     {"shapes", trial.shapes()},
                     {"microseconds", time * 1e6},
                     {"bytes_per_second", bytes}};
    if (flops > 0) row["flops"] = flops;
    figures_.result["primitives"].list().push_back(row);
    figures_.table.add({name, variant, trial.shapes(), fmt::format("{:.1f}", time * 1e6),
                        flops > 0 ? fmt::format("{:.1f}", flops / 1e9) : "",
                        fmt::format("{:.1f}", bytes / 1e9),
                        fmt::format("{:.0f} %", flops > 0 ? 100 * flops / peaks_.flops
                                                          : 100 * bytes / peaks_.cache)});
  }

  PrimitiveFigures& figures_;
  Peaks peaks_;
  double seconds_;
};

}  // namespace
}  // namespace mase::primitive_bench

namespace mase {

PrimitiveFigures bench_primitives(const std::string& name, double seconds) {
  const auto& registry = Registry<engine::PrimitiveRecord>::instance();
  std::vector<const engine::PrimitiveRecord*> records = registry.all();
  if (!name.empty()) records = {&registry.get(name, "ch bench primitives")};
  PrimitiveFigures figures{
      Dict{{"mode", "primitives"}, {"primitives", List{}}},
      Table({"Primitive", "Variant", "Shapes", "us", "GFLOP/s", "GB/s", "Of peak"}),
      {}};
  const double share = seconds / static_cast<double>(3 * records.size() + 3);
  const primitive_bench::Peaks peaks = primitive_bench::measure_peaks(share);
  figures.result["peak_flops"] = peaks.flops;
  figures.result["peak_cache_bytes_per_second"] = peaks.cache;
  figures.result["peak_memory_bytes_per_second"] = peaks.memory;
  figures.peaks = fmt::format(
      "peaks of one core: {:.1f} GFLOP/s of multiply-adds; copies read and write {:.1f} GB/s in "
      "cache, {:.1f} GB/s from memory",
      peaks.flops / 1e9, peaks.cache / 1e9, peaks.memory / 1e9);
  primitive_bench::Measuring measuring(figures, peaks, share);
  for (const engine::PrimitiveRecord* record : records) {
    if (!record->generate) continue;
    for (const engine::Variant& variant : engine::variants_of(*record))
      measuring.variant(*record, variant);
    measuring.gradient(*record);
  }
  return figures;
}

}  // namespace mase
