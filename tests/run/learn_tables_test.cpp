// SPDX-License-Identifier: Apache-2.0
// Fronts of networks of tables, and weightless networks: what is written is what was measured, the
// same again, and the same where a run was killed and taken up.
#include "mase/run/hardware/learn_tables.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "mase/io/networks/checkpoint.h"
#include "mase/run/hardware/hardware.h"
#include "mase/run/hardware/learn_weightless.h"
#include "support/support.h"

namespace mase::test::learn_tables_test {
namespace {

std::string described(const std::string& name, const std::string& text) {
  const std::string path = temporary_folder() + "/" + name + ".toml";
  write(path, text);
  return path;
}

struct Setting {
  Experiment experiment;
  Observer observer;
  std::optional<RunFolder> run;
};

// `killed`: the run ends, as by a signal, when this is about to be done so many times.
std::unique_ptr<Setting> setting(const std::string& network, const std::string& folder, bool resume,
                                 const std::string& killed, int64_t times) {
  auto seen = std::make_shared<int64_t>(0);
  std::unique_ptr<Setting> result(new Setting{
      Experiment({.network = {.model = network},
                  .data = {.name = "jsc-sim",
                           .options = {.arguments = Dict{{"rows", 1500}}, .scaling = "quantile"},
                           .needed = true},
                  .seed = 3}),
      {},
      {}});
  result->observer.progress = [=](const Progress& progress) {
    if (progress.what == killed && ++*seen == times) throw std::runtime_error("killed");
  };
  result->experiment.prepare();
  if (!folder.empty())
    result->run = resume ? RunFolder::open(folder)
                         : result->experiment.create_folder(
                               {.project_dir = std::filesystem::path(folder).parent_path().string(),
                                .project = std::filesystem::path(folder).filename().string()},
                               "train");
  return result;
}

LearnTablesResult tables(const std::string& folder = "", bool resume = false,
                         const std::string& killed = "", int64_t times = 0) {
  static const std::string network = described(
      "tables",
      "input = [16]\nseq_blocks = [\n"
      "{type = 'TableLinear', out_features = 6, knots = 9, input_width = 7, input_frac = 6, "
      "output_frac = 3, rounded = true},\n"
      "{type = 'TableLinear', out_features = 5, knots = 9, input_width = 6, input_frac = 3, "
      "output_frac = 3, rounded = true, overflow = 'wrap'}]\n");
  const auto one = setting(network, folder, resume, killed, times);
  return learn_tables(one->experiment,
                      {.teachers = 4,
                       .teacher_epochs = 20,
                       .start_epochs = 100,
                       .step = 0.15,
                       .step_epochs = 20,
                       .points = 4,
                       .point_epochs = 20,
                       .luts = 100},
                      one->observer, one->run ? &*one->run : nullptr, resume);
}

void expect_same(const LearnTablesResult& a, const LearnTablesResult& b) {
  ASSERT_EQ(a.front.size(), b.front.size());
  for (size_t k = 0; k < a.front.size(); ++k) {
    EXPECT_EQ(a.front[k].step, b.front[k].step);
    EXPECT_EQ(a.front[k].loss, b.front[k].loss);
    EXPECT_EQ(a.front[k].test, b.front[k].test);
    for (const auto& [path, module] : a.front[k].graph.modules())
      for (const auto& [name, tensor] : module.parameters)
        EXPECT_TRUE(b.front[k].graph.modules().at(path).find(name)->same_bits(tensor)) << name;
  }
}

TEST(learn_tables, the_front_is_what_it_says) {
  const LearnTablesResult result = tables();
  ASSERT_GE(result.front.size(), 2u);
  double luts = -1, loss = INFINITY;
  for (const LearnedTables& point : result.front) {
    EXPECT_GT(point.luts, luts);
    EXPECT_LT(point.loss, loss);
    luts = point.luts;
    loss = point.loss;
    HardwareNetwork network;
    network.network = point.graph;
    network.lowered = lower(point.graph);
    EXPECT_TRUE(compare_with_engine(network, {.rows = 300, .seed = 1}).engine);
  }
  EXPECT_LT(result.front.front().luts * 1.5, result.front.back().luts);
  EXPECT_GT(result.front.back().test, 0.4);
}

TEST(learn_tables, killed_anywhere_it_is_taken_up_again_bit_for_bit) {
  const std::string base = temporary_folder();
  const LearnTablesResult whole = tables(base + "/whole");
  int run = 0;
  for (const auto& [what, times] : {std::pair{"Training the ensemble", 3},
                                    {"Taking tables away", 1},
                                    {"Taking tables away", 4},
                                    {"Training the front on", 2}}) {
    const std::string folder = base + "/killed" + std::to_string(run++);
    EXPECT_THROW(tables(folder, false, what, times), std::runtime_error) << what;
    expect_same(tables(folder, true), whole);
    EXPECT_NO_THROW(
        load_checkpoint(folder + "/software/training_ckpts/best.mz", CheckpointType::mz));
    EXPECT_FALSE(std::filesystem::exists(folder + "/software/tables"));
  }
}

LearnedWeightless bits(const std::string& folder = "", bool resume = false,
                       const std::string& killed = "", int64_t times = 0) {
  static const std::string network = described(
      "bits",
      "input = [16]\nseq_blocks = [\n"
      "{type = 'Thermometer', levels = 7, input_width = 8, input_frac = 7, input_signed = true},\n"
      "{type = 'LutLayer', out_features = 60},\n{type = 'GroupSum', groups = 5}]\n");
  const auto one = setting(network, folder, resume, killed, times);
  return learn_weightless(one->experiment, {.epochs = 12}, one->observer,
                          one->run ? &*one->run : nullptr, resume);
}

TEST(learn_weightless, a_killed_run_is_taken_up_again_bit_for_bit) {
  const std::string base = temporary_folder();
  const LearnedWeightless whole = bits(base + "/whole");
  EXPECT_GT(whole.test, 0.4);
  EXPECT_THROW(bits(base + "/killed", false, "Training tables of bits", 8), std::runtime_error);
  const LearnedWeightless resumed = bits(base + "/killed", true);
  EXPECT_EQ(resumed.loss, whole.loss);
  EXPECT_EQ(resumed.test, whole.test);
  for (const auto& [path, module] : whole.graph.modules())
    for (const auto& [name, tensor] : module.parameters)
      EXPECT_TRUE(resumed.graph.modules().at(path).find(name)->same_bits(tensor)) << name;
  HardwareNetwork network;
  network.network = whole.graph;
  network.lowered = lower(whole.graph);
  EXPECT_TRUE(compare_with_engine(network, {.rows = 300, .seed = 1}).engine);
}

TEST(learn_weightless, what_is_no_such_network_is_refused) {
  const auto one = setting(described("none",
                                     "input = [16]\nseq_blocks = [{type = 'Linear', "
                                     "out_features = 5}]\n"),
                           "", false, "", 0);
  EXPECT_FALSE(is_weightless_network(one->experiment.graph()));
  EXPECT_FALSE(is_table_network(one->experiment.graph()));
  EXPECT_THROW(learn_weightless(one->experiment, {}, {}, nullptr), Error);
  EXPECT_THROW(learn_tables(one->experiment, {}, {}, nullptr), Error);
}

}  // namespace
}  // namespace mase::test::learn_tables_test
