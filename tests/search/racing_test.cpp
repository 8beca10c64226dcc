// SPDX-License-Identifier: Apache-2.0
// Racing: the sign test by hand, what is certain, whom a candidate races against, and on jets: the
// front is that of a search in which every candidate met all rows.
#include "mase/search/measure/racing.h"

#include <cmath>
#include <map>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/base/value.h"
#include "search/jets_table.h"

namespace mase::racing_test {
namespace {

using search::Race;
using test::search_folder;
using test::search_jets;

std::vector<bool> rows(int64_t right, int64_t all) {
  std::vector<bool> correct(static_cast<size_t>(all), false);
  for (int64_t i = 0; i < right; ++i) correct[static_cast<size_t>(i)] = true;
  return correct;
}

TEST(Racing, SignTestByHand) {
  EXPECT_NEAR(search::sign_test(0, 10), std::pow(0.5, 10), 1e-15);
  EXPECT_NEAR(search::sign_test(1, 2), 0.5, 1e-12);
  EXPECT_NEAR(search::sign_test(5, 5), 0.623046875, 1e-12);
  EXPECT_NEAR(search::sign_test(3, 0), 1, 1e-12);
}

TEST(Racing, OnlyThoseThatCostNoMoreAreRivals) {
  Race race(0.01);
  race.finish({10.0}, rows(900, 1000));
  // 0 of 128 rows right against 128 of 128.
  EXPECT_TRUE(race.look({10.0}, rows(0, 128), 1000));
  EXPECT_TRUE(race.look({11.0}, rows(0, 128), 1000));
  EXPECT_FALSE(race.look({9.0}, rows(0, 128), 1000));
  // Two rows behind is no difference.
  EXPECT_FALSE(race.look({10.0}, rows(126, 128), 1000));
}

TEST(Racing, WithoutRiskOnlyWhatIsCertain) {
  Race race(0);
  race.finish({1.0}, rows(900, 1000));
  EXPECT_FALSE(race.look({1.0}, rows(0, 100), 1000));  // 900 of 1000 can still be reached
  EXPECT_TRUE(race.look({1.0}, rows(0, 101), 1000));
  EXPECT_EQ(race.look({1.0}, rows(0, 101), 1000)->probability, 0);
}

TEST(Racing, TheFrontIsThatOfASearchThatMetAllRows) {
  const std::string space = R"(
seed = 1
[search.search_space.setup]
by = "type"
[search.search_space.seed.default.config]
name = ["NA"]
[search.search_space.seed.linear.config]
name = ["integer"]
data_in_width = [2, 3, 4, 6, 8]
data_in_frac_width = ["NA"]
weight_width = [2, 3, 4, 6, 8]
weight_frac_width = ["NA"]
bias_width = [2, 8]
bias_frac_width = ["NA"]
[search.strategy.sw_runner.basic_evaluation]
data_loader = "val_dataloader"
num_samples = 100000
[search.strategy.setup]
sampler = "grid"
RACING
[search.strategy.metrics]
accuracy.direction = "maximize"
bitops.direction = "minimize"
)";
  Random random(2, "racing_test");
  std::string csv;
  for (int f = 0; f < 16; ++f) csv += fmt::format("f{},", f);
  csv += "kind\n";
  for (int row = 0; row < 6000; ++row) {
    const uint64_t kind = random.below(5);
    for (uint64_t f = 0; f < 16; ++f)
      csv += fmt::format("{:.3f},", random.normal() + (f % 5 == kind ? 1.5 : 0));
    csv += fmt::format("class{}\n", kind);
  }
  test::write(search_folder() + "/many.csv", csv);
  const auto program = [](std::vector<std::string> words) {
    words.insert(words.begin() + 1,
                 {"jsc-tiny", "many.csv", "--target", "kind", "--val-split", "0.4"});
    return test::ch(words, search_folder(), {"MASE_DATA=" + search_folder() + "/data"});
  };
  const test::RunResult trained =
      program({"train", "--max-epochs", "4", "--project-dir", "trained", "--project", "run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  std::map<std::string, std::string> fronts;
  std::map<std::string, int64_t> dropped;
  for (const char* racing : {"", "racing = 0", "racing = 1e-4"}) {
    const std::string project = fmt::format("racing{}", fronts.size());
    test::write(search_folder() + "/racing.toml", replace_all(space, "RACING", racing));
    const test::RunResult result = program({"search", "--config", "racing.toml", "--load",
                                            "trained/run/software/training_ckpts/best.ckpt",
                                            "--project-dir", project, "--project", "run"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string folder = search_folder() + "/" + project + "/run/software/search_ckpts";
    std::string front;
    const Value best = read_json(folder + "/best.json"), log = read_json(folder + "/log.json");
    for (const auto& [index, row] : best.as_dict())
      front += to_json(row["sampled_config"]) + to_json(row["software_metrics"]) + "\n";
    fronts[racing] = front;
    int64_t given_up = 0;
    for (const auto& [index, row] : log.as_dict()) given_up += row["state"].as_string() == "PRUNED";
    dropped[racing] = given_up;
  }
  EXPECT_EQ(dropped[""], 0);
  EXPECT_GT(dropped["racing = 1e-4"], 0);
  EXPECT_EQ(fronts[""], fronts["racing = 0"]);
  EXPECT_EQ(fronts[""], fronts["racing = 1e-4"]);
}

TEST(Racing, RefusesWhatCannotRace) {
  test::write(search_folder() + "/no_race.toml",
              "[search.strategy.setup]\nsampler = \"grid\"\nracing = true\n"
              "[search.strategy.metrics]\nloss.direction = \"minimize\"\n");
  const test::RunResult result = search_jets({"--config", "no_race.toml", "--space", "bits=2,4"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("race for accuracy"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace mase::racing_test
