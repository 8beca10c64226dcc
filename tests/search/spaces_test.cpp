// SPDX-License-Identifier: Apache-2.0
// What ch search searches over besides number formats: channels, pruning, options of training; and
// training in the loop, interrupted and gone on with.
#include <filesystem>
#include <set>

#include "mase/base/text.h"
#include "mase/base/value.h"
#include "search/jets_table.h"

namespace mase::spaces_test {
namespace {

namespace fs = std::filesystem;
using test::RunResult;
using test::search_folder;

// A configuration for jsc-toy with this space, this strategy.sw_runner and this setup.
std::string config(const std::string& space, const std::string& runner, const std::string& setup,
                   const std::string& metrics) {
  static int count = 0;
  const std::string name = fmt::format("space{}.toml", count++);
  test::write(search_folder() + "/" + name,
              "model = \"jsc-toy\"\nlearning_rate = 1e-2\nbatch_size = 64\nseed = 3\n" + space +
                  "\n[search.strategy]\nname = \"optuna\"\n" + runner +
                  "\n[search.strategy.setup]\n" + setup + "\n[search.strategy.metrics]\n" +
                  metrics);
  return name;
}

RunResult search(const std::string& file, const std::string& project,
                 std::vector<std::string> words = {}) {
  std::vector<std::string> all = {"search", "jsc-toy",   "table.csv", "--target",
                                  "kind",   "--config",  file,        "--project-dir",
                                  project,  "--project", "run"};
  all.insert(all.end(), words.begin(), words.end());
  return test::ch(all, search_folder(), {"MASE_DATA=" + search_folder() + "/data"});
}

std::string results(const std::string& project) {
  return search_folder() + "/" + project + "/run/software/search_ckpts";
}

const std::string channels = R"(
[search.search_space]
name = "graph/quantize/channel_size_modifier"
[search.search_space.setup]
by = "name"
[search.search_space.seed.default.config]
name = ["NA"]
[search.search_space.seed.seq_blocks_2.config]
name = ["output_only"]
channel_multiplier = [1, 2]
[search.search_space.seed.seq_blocks_5.config]
name = ["both"]
parent = ["seq_blocks_2"]
channel_multiplier = [1, 2, 4]
[search.search_space.seed.seq_blocks_8.config]
name = ["input_only"]
)";
const std::string evaluation = "[search.strategy.sw_runner.basic_evaluation]\nnum_samples = 512\n";
const std::string brute = "sampler = \"brute-force\"\n";
const std::string accuracy_and_size =
    "accuracy.direction = \"maximize\"\nparameters.direction = \"minimize\"\n";

TEST(SearchSpaces, ChannelsChangeWhatTheNetworkCosts) {
  const RunResult result = search(config(channels, evaluation, brute, accuracy_and_size), "c");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("6 configurations"), std::string::npos) << result.out;
  const Value log = read_json(results("c") + "/log.json");
  std::set<double> sizes;
  for (const auto& [index, row] : log.as_dict())
    sizes.insert(row["user_attrs_hardware_metrics"]["parameters"].as_double());
  EXPECT_EQ(sizes.size(), 6u);
  // The best configuration goes through ch transform.
  const Value best = read_json(results("c") + "/best.json");
  const std::string stem = fmt::format("{}/best_{}", results("c"), best["0"]["number"].as_int());
  const RunResult transformed =
      test::ch({"transform", "jsc-toy", "table.csv", "--target", "kind", "--config", stem + ".toml",
                "--project-dir", "ct"},
               search_folder(), {"MASE_DATA=" + search_folder() + "/data"});
  EXPECT_EQ(transformed.exit_code, 0) << transformed.err;
}

TEST(SearchSpaces, WidthsAreSearchedWithFormatsThatHeedThem) {
  const std::string mixed = R"(
[search.search_space]
name = "graph/quantize/mixed_precision_ptq"
[search.search_space.setup]
by = "name"
[search.search_space.seed.default.config]
name = ["NA"]
[search.search_space.seed.seq_blocks_2.config]
name = ["integer", "binary"]
data_in_width = [4, 8]
data_in_frac_width = [2]
weight_width = [4, 6, 8]
weight_frac_width = [2]
bias_width = [8]
bias_frac_width = [2]
[search.search_space.seed.seq_blocks_5.config]
name = ["ternary"]
data_in_width = [2, 4]
weight_width = [2, 4]
)";
  const RunResult result =
      search(config(mixed, evaluation, brute, "accuracy.direction = \"maximize\"\n"), "mixed");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // Six of integers, one of binary numbers; ternary ones have no width either.
  EXPECT_NE(result.out.find("7 configurations"), std::string::npos) << result.out;
  std::set<std::string> tried;
  const Value log = read_json(results("mixed") + "/log.json");
  for (const auto& [index, row] : log.as_dict())
    tried.insert(to_json(row["user_attrs_sampled_config"]));
  EXPECT_EQ(tried.size(), 7u);
  const std::string all = join({tried.begin(), tried.end()}, "\n");
  // Every operand is binary all the same, as its keys ask for.
  EXPECT_NE(all.find(R"("name":"binary")"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("name":"binary","data_in_width":4,"weight_width":4,"bias_width":8)"),
            std::string::npos)
      << all;
}

TEST(SearchSpaces, ASpaceWithANameOfItsOwnIsKnownByItsSeeds) {
  const std::string renamed =
      replace_all(channels, "graph/quantize/channel_size_modifier", "LAB4/graph_lab4");
  const RunResult result = search(config(renamed, evaluation, brute, accuracy_and_size), "l");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("'LAB4/graph_lab4' is not known here"), std::string::npos)
      << result.err;
}

const std::string training =
    "[search.strategy.sw_runner.basic_train]\nmax_epochs = 2\noptimizer = \"adam\"\n"
    "lr_scheduler = \"linear\"\nlearning_rate = 1e-2\nnum_warmup_steps = 0\n";

TEST(SearchSpaces, TrainingOptionsAreSearchedOver) {
  const std::string space = R"(
[search.search_space.train]
learning_rate = {low = 1e-4, high = 1e-1, log = true}
batch_size = [32, 64]
optimizer = ["adam", "sgd"]
optimizer_beta1 = [0.8, 0.9]
)";
  const std::string setup = "sampler = \"tpe\"\nn_trials = 8\n";
  const std::string file = config(space, training, setup, "loss.direction = \"minimize\"\n");
  const RunResult result = search(file, "t");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Value log = read_json(results("t") + "/log.json");
  EXPECT_EQ(log.as_dict().size(), 8u);
  for (const auto& [index, row] : log.as_dict()) {
    const bool adam = row["params_train/optimizer"].as_string() == "adam";
    EXPECT_EQ(adam, !row["params_train/optimizer_beta1"].is_null()) << index;
  }
  // The same trials with two at a time, as far as a window of two sees.
  const RunResult again =
      search(file, "t2", {"--n-jobs", "2", "--set", "search.strategy.setup.window=1"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(to_json(read_json(results("t") + "/best.json")["0"]["sampled_config"]),
            to_json(read_json(results("t2") + "/best.json")["0"]["sampled_config"]));
  // best_N.toml trains that network again with ch train.
  const int64_t number = read_json(results("t") + "/best.json")["0"]["number"].as_int();
  const RunResult trained =
      test::ch({"train", "jsc-toy", "table.csv", "--target", "kind", "--config",
                fmt::format("{}/best_{}.toml", results("t"), number), "--project-dir", "tt"},
               search_folder(), {"MASE_DATA=" + search_folder() + "/data"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

const std::string widths = R"(
[search.search_space]
name = "graph/quantize/mixed_precision_ptq"
[search.search_space.setup]
by = "type"
[search.search_space.seed.default.config]
name = ["NA"]
[search.search_space.seed.linear.config]
name = ["integer"]
data_in_width = [8]
data_in_frac_width = ["NA"]
weight_width = [2, 8]
weight_frac_width = ["NA"]
bias_width = [8]
bias_frac_width = ["NA"]
)";

TEST(SearchSpaces, QuantisedNetworksAreTrained) {
  const std::string metrics =
      "accuracy.direction = \"maximize\"\naverage_bitwidth.direction = \"minimize\"\n";
  const RunResult trained = search(config(widths, training, brute, metrics), "q");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("8 configurations"), std::string::npos);
  const RunResult untrained = search(config(widths, evaluation, brute, metrics), "u");
  ASSERT_EQ(untrained.exit_code, 0) << untrained.err;
  const auto best_accuracy = [](const std::string& folder) {
    double best = 0;
    const Value trials = read_json(folder + "/best.json");
    for (const auto& [index, row] : trials.as_dict())
      best = std::max(best, row["software_metrics"]["accuracy"].as_double());
    return best;
  };
  EXPECT_GT(best_accuracy(results("q")), best_accuracy(results("u")) + 0.1);
}

TEST(SearchSpaces, PruningPerLayerAndForTheWholeNetwork) {
  const std::string metrics =
      "accuracy.direction = \"maximize\"\nebops_exact.direction = \"minimize\"\n";
  const std::string layers = R"(
[search.search_space]
name = "graph/prune"
[search.search_space.setup]
by = "type"
[search.search_space.seed.linear.config]
sparsity = [0.0, 0.5]
)";
  const RunResult each = search(config(layers, evaluation, brute, metrics), "p");
  ASSERT_EQ(each.exit_code, 0) << each.err;
  EXPECT_NE(each.out.find("8 configurations"), std::string::npos) << each.out;
  // Pruned weights are parameters still; what is left is a figure of its own.
  const RunResult counted =
      search(config(layers, evaluation, brute,
                    accuracy_and_size + "unpruned_parameters.direction = \"minimize\"\n"),
             "left");
  ASSERT_EQ(counted.exit_code, 0) << counted.err;
  std::set<double> all_parameters, left;
  const Value pruned = read_json(results("left") + "/log.json");
  for (const auto& [index, row] : pruned.as_dict()) {
    all_parameters.insert(row["user_attrs_hardware_metrics"]["parameters"].as_double());
    left.insert(row["user_attrs_hardware_metrics"]["unpruned_parameters"].as_double());
  }
  EXPECT_EQ(all_parameters, (std::set<double>{327}));
  EXPECT_EQ(*left.rbegin(), 327);
  EXPECT_EQ(*left.begin(), 327 - (16 * 8 + 8 * 8 + 8 * 5) / 2);
  const std::string whole = R"(
[search.search_space]
name = "graph/prune"
[search.search_space.seed.all.config]
sparsity = [0.0, 0.5, 0.9]
scope = ["local", "global"]
)";
  const RunResult all = search(config(whole, evaluation, brute, metrics), "w");
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("6 configurations"), std::string::npos) << all.out;
}

TEST(SearchSpaces, PrunersStopTrainingEarly) {
  const std::string space = R"(
[search.search_space.train]
learning_rate = [1e-2, 1e-6, 1e-7, 1e-8, 1e-9, 3e-7]
)";
  const std::string runner =
      "[search.strategy.sw_runner.basic_train]\nmax_epochs = 6\noptimizer = \"adam\"\n";
  const std::string setup =
      "sampler = \"brute-force\"\npruner = {name = \"median\", n_startup_trials = 2}\n";
  const RunResult result =
      search(config(space, runner, setup, "loss.direction = \"minimize\"\n"), "m");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int pruned = 0;
  const Value log = read_json(results("m") + "/log.json");
  for (const auto& [index, row] : log.as_dict()) pruned += row["state"].as_string() == "PRUNED";
  EXPECT_GE(pruned, 1);
  const int64_t best = read_json(results("m") + "/best.json")["0"]["number"].as_int();
  EXPECT_EQ(log[std::to_string(best)]["params_train/learning_rate"].as_double(), 1e-2);
}

TEST(SearchSpaces, TheFrontAloneIsTrainedOn) {
  const std::string space = R"(
[search.search_space]
name = "graph/quantize/mixed_precision_ptq"
[search.search_space.setup]
by = "type"
[search.search_space.seed.linear.config]
name = ["integer"]
data_in_width = [6, 8]
data_in_frac_width = ["NA"]
weight_width = [6, 8]
weight_frac_width = ["NA"]
bias_width = [8]
bias_frac_width = ["NA"]
)";
  const std::string runner =
      "[search.strategy.sw_runner.basic_train]\nmax_epochs = 10\nlearning_rate = 1e-2\n"
      "front_only = true\n";
  const RunResult result = search(config(space, runner, "sampler = \"brute-force\"\n",
                                         "accuracy.direction = \"maximize\"\n"
                                         "average_bitwidth.direction = \"minimize\"\n"),
                                  "levels");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Value best = read_json(results("levels") + "/best.json");
  const Value trained = read_json(results("levels") + "/trained.json");
  ASSERT_EQ(trained.as_list().size(), best.as_dict().size());
  EXPECT_EQ(read_json(results("levels") + "/log.json").as_dict().size(), 64u);
  for (size_t i = 0; i < trained.as_list().size(); ++i) {
    const Value& one = trained.as_list()[i];
    EXPECT_EQ(one["number"].as_int(), best[std::to_string(i)]["number"].as_int());
    EXPECT_EQ(to_json(one["before"]), to_json(best[std::to_string(i)]["software_metrics"]));
    EXPECT_LT(one["after"]["loss"].as_double(), one["before"]["loss"].as_double());
    EXPECT_TRUE(fs::exists(
        fmt::format("{}/best_{}_trained.mz", results("levels"), one["number"].as_int())));
  }
}

TEST(SearchSpaces, EveryMistakeIsOneLine) {
  const std::string many =
      "accuracy.direction = \"maximize\"\nparameters.direction = \"minimize\"\n";
  const std::string one = "loss.direction = \"minimize\"\n";
  const std::string rates = "[search.search_space.train]\nlearning_rate = [1e-3, 1e-2]\n";
  struct Mistake {
    std::string cause, space, runner, setup, metrics;
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    return replace_all(channels, from, to);
  };
  const std::vector<Mistake> mistakes = {
      {"unknown kind 'outputs'", changed("output_only", "outputs"), evaluation, brute, many},
      {"-1 is no factor", changed("[1, 2]", "[1, -1]"), evaluation, brute, many},
      {"is fed by 'seq_blocks_2'",
       changed("parent = [\"seq_blocks_2\"]", "parent = [\"seq_blocks_8\"]"), evaluation, brute,
       many},
      {"unknown key 'chanels'", changed("channel_multiplier = [1, 2]", "chanels = [1]"), evaluation,
       brute, many},
      {"network's outputs", changed("[\"input_only\"]", "\"both\"\nchannel_multiplier = [1, 2]"),
       evaluation, brute, many},
      {"nothing is trained", rates, evaluation, brute, one},
      {"unknown key 'learning_rat'", replace_all(rates, "learning_rate", "learning_rat"), training,
       brute, one},
      {"is continuous", "[search.search_space.train]\nlearning_rate = {low = 1e-3, high = 1e-2}\n",
       training, brute + "n_trials = 3\n", one},
      {"'n_trials' is missing",
       "[search.search_space.train]\nlearning_rate = {low = 1e-3, high = 1e-2}\n", training,
       "sampler = \"tpe\"\n", one},
      {"belongs to adam", rates + "optimizer = [\"sgd\"]\noptimizer_beta1 = [0.8, 0.9]\n", training,
       brute, one},
      {"unknown pruner 'medium'", rates, training, brute + "pruner = \"medium\"\n", one},
      {"there are several", rates, training, brute + "pruner = \"median\"\n", many},
      {"unknown key 'epochs'", rates, training + "epochs = 3\n", brute, one},
      {"data_loader", rates, training + "data_loader = \"test_dataloader\"\n", brute, one},
      {"'sparcity'",
       "[search.search_space]\nname = \"graph/prune\"\n"
       "[search.search_space.seed.default.config]\nsparcity = [0.1, 0.2]\n",
       evaluation, brute, many},
      {"linear.config.name: the list is empty",
       "[search.search_space]\nname = \"graph/quantize/mixed_precision_ptq\"\n"
       "[search.search_space.setup]\nby = \"type\"\n"
       "[search.search_space.seed.linear.config]\nname = []\nweight_width = [4, 8]\n",
       evaluation, brute, many},
  };
  for (const Mistake& mistake : mistakes) {
    const RunResult result =
        search(config(mistake.space, mistake.runner, mistake.setup, mistake.metrics), "none");
    EXPECT_EQ(result.exit_code, 2) << mistake.cause << "\n" << result.err << result.out;
    EXPECT_NE(result.err.find(mistake.cause), std::string::npos) << mistake.cause << "\n"
                                                                 << result.err;
  }
  EXPECT_FALSE(fs::exists(search_folder() + "/none"));
}

}  // namespace
}  // namespace mase::spaces_test
