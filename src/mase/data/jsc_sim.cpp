// SPDX-License-Identifier: Apache-2.0
#include "mase/data/jsc_sim.h"

#include <omp.h>

#include <algorithm>

#include "mase/base/fields.h"
#include "mase/data/digest.h"
#include "mase/data/jets.h"
#include "mase/data/prepared_cache.h"
#include "mase/data/shower.h"
#include "mase/data/substructure.h"
#include "mase/data/table.h"

namespace mase {
namespace {

constexpr int simulation_version = 3;     // of the physics: kept samples of another are not used
constexpr uint64_t simulation_seed = 42;  // one sample for everybody; --seed is for training

int64_t rows_of(const DatasetOptions& options) { return options.arguments["rows"].as_int("rows"); }

std::string content_hash(const RawTable& table) {
  Sha256 hash;
  hash.add({table.x.get(), static_cast<size_t>(table.rows * table.features()) * sizeof(float)});
  hash.add(std::as_bytes(std::span(table.labels)));
  return "sha256:" + hash.hex();
}

Dataset make_simulated_jets(const DatasetOptions& options) {
  Dataset dataset;
  dataset.name = "jsc-sim";
  dataset.variant = "simulated";
  dataset.notice =
      "simulated jets (jsc-sim): figures are not comparable with published JSC results";
  dataset.class_names = jet_class_names();
  RawTable table = simulate_jets(rows_of(options), simulation_seed);
  dataset.identity = content_hash(table);
  TablePlan plan;
  for (const std::string& name : jet_feature_names()) plan.features.push_back({name});
  plan.target = TargetRole::one_hot;
  plan.target_columns = plan.classes = jet_class_names();
  prepare(std::move(table), options, "jsc-sim", dataset);
  dataset.preprocessing.description = plan.to_value();
  return dataset;
}

}  // namespace

const std::vector<std::string>& jet_class_names() {
  static const std::vector<std::string> names = {"g", "q", "w", "z", "t"};
  return names;
}

RawTable simulate_jets(int64_t rows, uint64_t seed, int threads) {
  RawTable table;
  table.feature_names = jet_feature_names();
  table.rows = rows;
  table.x = aligned_bytes(static_cast<size_t>(rows) * jet_feature_count * sizeof(float));
  table.labels.resize(static_cast<size_t>(rows));
  float* x = table.data();
  int32_t* labels = table.labels.data();
  if (threads <= 0) threads = omp_get_max_threads();
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
  for (int64_t row = 0; row < rows; ++row) {
    Random random(seed, "jsc-sim", static_cast<uint64_t>(row));
    const auto label = static_cast<int32_t>(random.below(5));
    std::vector<Particle> particles = simulate_jet(static_cast<JetKind>(label), random);
    const auto features = jet_features(particles);
    std::copy(features.begin(), features.end(), x + row * jet_feature_count);
    labels[row] = label;
  }
  return table;
}

Schema simulation_options() {
  return {{integer_field("rows", "simulated jets", 100000).from(1).also({"sim_rows"})}};
}

Dataset load_simulated_jets(const DatasetOptions& options) {
  const int64_t rows = rows_of(options);
  if (rows < 100 || rows > 100'000'000)
    throw Error("--sim-rows", fmt::format("{} rows cannot be simulated", rows),
                "give a number from 100 to 100,000,000");
  const PreparedKey key =
      prepared_key(fmt::format("jsc-sim-{}", rows), "", options,
                   Dict{{"kind", "jsc-sim"}, {"simulation", simulation_version}});
  return load_or_prepare(key, options, [&] { return make_simulated_jets(options); });
}

}  // namespace mase

namespace mase::jsc_sim_dataset {
namespace {

const Register<DatasetRecord> registered{
    {.name = "jsc-sim",
     .summary = "Simulated jets: the 16 substructure features and five classes of JSC",
     .help = "A built-in physics simulation, for when the real file is not at hand. The same for "
             "everybody; --sim-rows sets its size. Not comparable with published JSC results.",
     .options = simulation_options(),
     .load = load_simulated_jets}};

}  // namespace
}  // namespace mase::jsc_sim_dataset
