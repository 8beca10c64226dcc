// SPDX-License-Identifier: Apache-2.0
// ch search from the outside: the lab's flow, the same front every time, its files, and mistakes.
#include <filesystem>
#include <map>

#include "mase/base/text.h"
#include "mase/base/value.h"
#include "search/jets_table.h"

namespace mase::command_test {
namespace {

namespace fs = std::filesystem;
using test::RunResult;
using test::search_folder;
using test::search_jets;

std::string config(const std::map<std::string, std::string>& changes = {}) {
  std::string text = test::read(test::source_path("configs/examples/search_jsc_tiny.toml"));
  for (const auto& [from, to] : changes) text = replace_all(text, from, to);
  static int count = 0;
  const std::string name = fmt::format("config{}.toml", count++);
  test::write(search_folder() + "/" + name, text);
  return name;
}

std::string results(const std::string& project) {
  return search_folder() + "/" + project + "/run/software/search_ckpts";
}

TEST(SearchCommand, TheLabsEighteenConfigurations) {
  const RunResult first =
      search_jets({"--config", config(), "--project-dir", "a", "--project", "run"});
  ASSERT_EQ(first.exit_code, 0) << first.err << first.out;
  EXPECT_NE(first.out.find("18 configurations"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("|    |   number | software_metrics"), std::string::npos) << first.out;
  const Value log = read_json(results("a") + "/log.json");
  EXPECT_EQ(log.as_dict().size(), 18u);
  const Value best = read_json(results("a") + "/best.json");
  ASSERT_GE(best.as_dict().size(), 1u);
  // The same front from two threads, and from another sampler that covers the space.
  for (const char* sampler : {"brute-force", "tpe", "nsgaii", "random", "qmc"}) {
    const std::string project = std::string("again_") + sampler;
    const RunResult again =
        search_jets({"--config", config(), "--project-dir", project, "--project", "run", "--n-jobs",
                     "2", "--sampler", sampler});
    ASSERT_EQ(again.exit_code, 0) << again.err;
    const Value other = read_json(results(project) + "/best.json");
    ASSERT_EQ(other.as_dict().size(), best.as_dict().size()) << sampler;
    std::map<std::string, int> configurations;
    for (const auto& [index, row] : best.as_dict())
      ++configurations[to_json(row["sampled_config"])];
    for (const auto& [index, row] : other.as_dict())
      EXPECT_EQ(configurations.count(to_json(row["sampled_config"])), 1u) << sampler;
  }
}

TEST(SearchCommand, BestConfigurationsAreReadyForTransform) {
  ASSERT_EQ(search_jets({"--config", config(), "--project-dir", "t", "--project", "run"}).exit_code,
            0);
  const Value best = read_json(results("t") + "/best.json");
  const std::string number = std::to_string(best["0"]["number"].as_int());
  const std::string stem = results("t") + "/best_" + number;
  EXPECT_TRUE(fs::exists(stem + ".mz"));
  const RunResult transformed =
      test::ch({"transform", "jsc-tiny", "table.csv", "--target", "kind", "--config",
                stem + ".toml", "--project-dir", "u"},
               search_folder(), {"MASE_DATA=" + search_folder() + "/data"});
  EXPECT_EQ(transformed.exit_code, 0) << transformed.err;
}

TEST(SearchCommand, AStudyGoesOnInItsStorage) {
  const std::vector<std::string> base = {"--config",  config(),         "--project-dir", "s",
                                         "--storage", "sqlite:///s.db", "--study",       "lab"};
  const auto with = [&](const char* trials) {
    std::vector<std::string> words = base;
    words.insert(words.end(), {"--n-trials", trials, "--sampler", "tpe"});
    return search_jets(words);
  };
  ASSERT_EQ(with("5").exit_code, 0);
  const RunResult more = with("12");
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_NE(more.out.find("Trial 12/12"), std::string::npos) << more.out;
}

TEST(SearchCommand, FlagsWithoutAFile) {
  const RunResult result = search_jets({"--space", "bits=2,4,8", "--objective", "accuracy,bitops",
                                        "--project-dir", "f", "--project", "run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_json(results("f") + "/log.json").as_dict().size(), 9u);
}

// Fewer trials than configurations would be drawn blindly.
TEST(SearchCommand, TheSamplerSuitsTheTrials) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"--space", "bits=2,4,8", "--objective", "accuracy"});
    return search_jets(words).out;
  };
  for (const auto& [words, sampler] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "sampler brute-force"},
           {{"--n-trials", "9"}, "sampler brute-force"},
           {{"--n-trials", "5"}, "sampler tpe"},
           {{"--n-trials", "5", "--sampler", "grid"}, "sampler grid"}})
    EXPECT_NE(told(words).find(sampler), std::string::npos) << told(words);
}

TEST(SearchCommand, BoundsAreConstraints) {
  const std::string file =
      config({{"average_bitwidth.scale = 0.2", "average_bitwidth.upper_bound = 4"}});
  ASSERT_EQ(search_jets({"--config", file, "--project-dir", "b", "--project", "run"}).exit_code, 0);
  const Value best = read_json(results("b") + "/best.json");
  for (const auto& [index, row] : best.as_dict())
    EXPECT_LE(row["hardware_metrics"]["average_bitwidth"].as_double(), 4);
}

TEST(SearchCommand, EveryMistakeIsOneLine) {
  const std::map<std::string, std::pair<std::string, std::string>> mistakes = {
      {"unknown sampler 'tpee'", {"\"brute-force\"", "\"tpee\""}},
      {"unknown key 'n_trails'", {"n_jobs = 1", "n_trails = 1"}},
      {"unknown search space", {"mixed_precision_ptq", "systolic"}},
      {"unknown loader", {"val_dataloader", "vall_dataloader"}},
      {"'accuracyy' is not measured", {"accuracy.", "accuracyy."}},
      {"unknown key 'weigth_width'", {"weight_width", "weigth_width"}},
      {"unknown format 'integr'", {"\"integer\"", "\"integr\""}},
      {"'linaer' is no op", {"seed.linear", "seed.linaer"}},
      {"sum_scaled_metrics needs 'direction'",
       {"sum_scaled_metrics = false", "sum_scaled_metrics = true"}},
  };
  for (const auto& [cause, change] : mistakes) {
    const RunResult result = search_jets({"--config", config({change}), "--project-dir", "none"});
    EXPECT_EQ(result.exit_code, 2) << cause << "\n" << result.err;
    EXPECT_NE(result.err.find(cause), std::string::npos) << cause << "\n" << result.err;
  }
  EXPECT_FALSE(fs::exists(search_folder() + "/none"));
  for (const char* storage : {"mongodb://x", "/proc/no/such.db"}) {
    const RunResult result =
        search_jets({"--config", config(), "--project-dir", "none", "--storage", storage});
    EXPECT_EQ(result.exit_code, 2) << result.err;
  }
  EXPECT_FALSE(fs::exists(search_folder() + "/none"));
}

}  // namespace
}  // namespace mase::command_test
