// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/shrink.h"

#include <algorithm>
#include <cmath>

#include "mase/base/file.h"
#include "mase/run/experiment.h"
#include "mase/run/hardware/feature_ranges.h"
#include "mase/run/hardware/shrinker.h"

namespace mase {
namespace {

// Fewest LUTs first, each with a smaller loss than those before.
std::vector<ShrinkPoint> front_of(std::vector<ShrinkPoint> all) {
  std::sort(all.begin(), all.end(), [](const ShrinkPoint& a, const ShrinkPoint& b) {
    return a.step.luts != b.step.luts ? a.step.luts < b.step.luts
                                      : a.step.train_loss < b.step.train_loss;
  });
  std::vector<ShrinkPoint> front;
  for (ShrinkPoint& one : all)
    if (front.empty() || one.step.train_loss < front.back().step.train_loss)
      front.push_back(std::move(one));
  return front;
}

void emit_point(ShrinkPoint& point, const ShrinkSpec& spec, const Dataset& dataset) {
  HardwareNetwork network;
  network.network = point.graph;
  network.lowered = lower(point.graph);
  network.origin = spec.network.network.load;
  network.test_rows = dataset.test.samples();
  network.rows_origin = fmt::format("{} test rows of {} ({})", dataset.test.rows(),
                                    printable(dataset.name), printable(dataset.variant));
  if (dataset.classification) network.labels = dataset.test.labels;
  const Compared compared = compare_with_engine(network, spec.network);
  point.folder = fmt::format("{}/luts_{:.0f}", spec.designs, point.step.luts);
  point.proof = emit_hardware(network, compared, {}, point.folder, true).proof_text;
}

}  // namespace

ShrinkResult shrink(const ShrinkSpec& spec, const ShrinkObserver& observer) {
  std::string why = "shrinking watches the loss on training rows";
  Observer preparation;
  preparation.log = [&](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning) why = line;
  };
  ExperimentSpec prepared{.network = spec.network.network,
                          .data = spec.network.data,
                          .passes = spec.network.passes,
                          .seed = spec.network.seed};
  prepared.data.noted = true;
  Experiment experiment(prepared, preparation);
  experiment.prepare();
  if (!experiment.dataset()) throw Error("--dataset", why, "name a data set");
  experiment.apply_passes();
  const Dataset& dataset = *experiment.dataset();
  lower(experiment.graph());  // what has no integers is refused before any work
  if (spec.retrain_epochs > 0) ranged_layers(experiment.graph());
  Shrinker shrinker(experiment.graph(), dataset);
  ShrinkResult result;
  result.contents = experiment.file_contents();
  result.dataset = fmt::format("{} ({})", dataset.name, dataset.variant);
  result.test_rows = dataset.test.rows();
  result.test_before = shrinker.accuracy(dataset.test);
  const double first = shrinker.loss(), limit = first * (1 + spec.max_loss);
  std::vector<ShrinkPoint> points;
  const auto reached = [&] {
    const ShrinkStep& now = result.steps.back();
    return (spec.luts <= 0 || now.luts <= spec.luts) &&
           (spec.delay_ns <= 0 || now.delay_ns <= spec.delay_ns);
  };
  const bool bounded = spec.luts > 0 || spec.delay_ns > 0;
  // True if that was enough.
  const auto note = [&](const std::string& what) {
    result.steps.push_back(shrinker.measure(what, shrinker.loss()));
    points.push_back({shrinker.graph(), result.steps.back(), shrinker.accuracy(dataset.test)});
    if (observer.step) observer.step(result.steps.back());
    return bounded && reached();
  };
  bool enough = note("as it was");
  for (int64_t round = 0; round < spec.rounds && !enough; ++round) {
    // Half of what the loss may still rise is for features, the rest for weights.
    const double now = shrinker.loss();
    int64_t taken = shrinker.take_bits(now + (limit - now) / 2);
    if (taken > 0) enough = note("bits");
    while (!enough) {
      const int64_t digits = shrinker.take_digits(limit);
      if (digits == 0) break;
      taken += digits;
      enough = note("digits");
    }
    if (enough || taken == 0 || spec.retrain_epochs == 0 || round + 1 == spec.rounds) break;
    if (!shrinker.retrain(spec.retrain_epochs, spec.learning_rate,
                          spec.network.seed + static_cast<uint64_t>(round)))
      break;
    enough = note("retrained");
  }
  result.reached = !bounded || reached();
  result.test_after = shrinker.accuracy(dataset.test);
  result.graph = shrinker.graph();
  result.front = front_of(std::move(points));
  if (observer.shrunk) observer.shrunk(result);
  if (spec.designs.empty()) return result;
  make_directories(spec.designs);
  for (ShrinkPoint& point : result.front) {
    emit_point(point, spec, dataset);
    if (observer.emitted) observer.emitted(point);
  }
  return result;
}

}  // namespace mase
