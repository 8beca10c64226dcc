// SPDX-License-Identifier: Apache-2.0
// Files that are whole networks, figures that say what they were measured on, options that come
// from the records, and keys that nobody reads: as a user meets them.
#include <algorithm>
#include <filesystem>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/base/value.h"
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::whole_network_test {
namespace {

namespace fs = std::filesystem;
using test::RunResult;

// Three clouds far from the origin: a network that gets unscaled rows is lost.
std::string cloud_table(const std::vector<std::string>& kinds, uint64_t index) {
  Random random(3, "whole_network_test", index);
  std::string csv = "a,b,c,kind\n";
  for (int row = 0; row < 600; ++row) {
    const uint64_t kind = random.below(3);
    for (uint64_t f = 0; f < 3; ++f)
      csv += fmt::format("{:.4f},", 1000 + 40 * random.normal() * 0.3 + (f == kind ? 60 : 0));
    csv += kinds[kind] + "\n";
  }
  return csv;
}

const std::string quantize_linear =
    "[passes.quantize]\nby = \"type\"\n[passes.quantize.default.config]\nname = \"NA\"\n"
    "[passes.quantize.linear.config]\nname = \"integer\"\ndata_in_width = 8\n"
    "data_in_frac_width = 4\nweight_width = 8\nweight_frac_width = 4\nbias_width = 8\n"
    "bias_frac_width = 4\n";

class WholeNetwork : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = test::temporary_folder();
    test::write(folder_ + "/table.csv", cloud_table({"red", "green", "blue"}, 0));
    test::write(folder_ + "/qat.toml", quantize_linear);
    const RunResult result = train({"--project", "run", "--max-epochs", "12"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    trained_ = result.out;
  }

  static RunResult ch(const std::vector<std::string>& words) {
    return test::ch(words, folder_, {"MASE_DATA=" + folder_ + "/data", "COLUMNS=100"});
  }
  static RunResult train(std::vector<std::string> words) {
    std::vector<std::string> all = {"train", "jsc-toy",      "table.csv", "--target",
                                    "kind",  "--batch-size", "16",        "--learning-rate",
                                    "0.01"};
    all.insert(all.end(), words.begin(), words.end());
    return ch(all);
  }
  static Value record(const std::string& run) {
    return read_json(folder_ + "/mase_output/" + run + "/run.json");
  }
  static std::string file(const std::string& name, const std::string& run = "run") {
    return "mase_output/" + run + "/software/training_ckpts/" + name;
  }
  static double test_accuracy(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"test", "--no-output", "--json", "figures.json"};
    all.insert(all.end(), words.begin(), words.end());
    const RunResult result = ch(all);
    EXPECT_EQ(result.exit_code, 0) << join(words, " ") << result.err;
    return result.exit_code == 0
               ? read_json(folder_ + "/figures.json")["test_acc_epoch"].as_double()
               : -1;
  }

  static inline std::string folder_, trained_;
};

TEST_F(WholeNetwork, TrainingEndsWithATestOfItsBestCheckpoint) {
  const Value run = record("run");
  EXPECT_EQ(run["evaluation"]["split"], Value("test"));
  EXPECT_EQ(run["evaluations"]["validation"]["split"], Value("validation"));
  const double tested = test_accuracy({"--load", file("best.mz")});
  EXPECT_EQ(run["test_acc_epoch"].as_double(), tested);
  EXPECT_GT(tested, 0.6);
  EXPECT_NE(trained_.find("Test of the best epoch on 120 rows: test_acc_epoch "), std::string::npos)
      << trained_;
  for (const char* next : {"Next:  ch test --load ", "ch predict --load ", "ch report "})
    EXPECT_NE(trained_.find(next), std::string::npos) << next;
  ASSERT_EQ(train({"--project", "untested", "--max-epochs", "1", "--no-test"}).exit_code, 0);
  EXPECT_EQ(record("untested")["evaluation"]["split"], Value("validation"));
  EXPECT_TRUE(record("untested")["test_acc_epoch"].is_null());
}

TEST_F(WholeNetwork, OneFileIsEnoughToTestPredictAndTrain) {
  const double named =
      test_accuracy({"jsc-toy", "table.csv", "--target", "kind", "--load", file("best.ckpt")});
  EXPECT_EQ(test_accuracy({"--load", file("best.mz")}), named);
  EXPECT_EQ(test_accuracy({"--load", file("best.ckpt")}), named);
  const auto predicted = [&](const std::string& name) {
    const RunResult result =
        ch({"predict", "--load", file(name), "--input", "table.csv", "--classes"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string classes = predicted("best.mz");
  EXPECT_EQ(classes, predicted("best.ckpt"));
  size_t reds = 0, greens = 0;
  for (const std::string& line : split(classes, '\n')) {
    reds += ends_with(line, ",red");
    greens += ends_with(line, ",green");
  }
  EXPECT_GT(reds, 100u);
  EXPECT_GT(greens, 100u);
  const RunResult further = ch({"train", "--load", file("best.mz"), "--max-epochs", "1",
                                "--learning-rate", "1e-4", "--project", "further"});
  ASSERT_EQ(further.exit_code, 0) << further.err;
  EXPECT_NE(further.out.find("Data set: table.csv, as "), std::string::npos) << further.out;
  EXPECT_NEAR(record("further")["test_acc_epoch"].as_double(), named, 0.1);
  // A folder takes the network's own name.
  ASSERT_EQ(ch({"train", "--load", file("best.mz"), "--max-epochs", "1"}).exit_code, 0);
  bool found = false;
  for (const auto& entry : fs::directory_iterator(folder_ + "/mase_output"))
    found |= starts_with(entry.path().filename().string(), "jsc-toy_classification_table_");
  EXPECT_TRUE(found);
}

TEST_F(WholeNetwork, ATransformedGraphKeepsWhatItIsFor) {
  const RunResult result = ch({"transform", "jsc-toy", "table.csv", "--target", "kind", "--config",
                               "qat.toml", "--load", file("best.ckpt"), "--project", "quantised"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string graph = "mase_output/quantised/software/transform/transformed.mz";
  const Value after = record("quantised")["transform"]["accuracy"]["after"];
  EXPECT_NEAR(test_accuracy({"--load", graph}), after.as_double(), 1e-6);
}

TEST_F(WholeNetwork, ClassesGoByNameNotByNumber) {
  // The same classes in another order of appearance and of numbers.
  test::write(
      folder_ + "/other.toml",
      "file = \"table.csv\"\ntarget = \"kind\"\nclasses = [\"red\", \"green\", \"blue\"]\n");
  const double sorted = test_accuracy({"--load", file("best.mz")});
  const RunResult result = ch({"test", "other.toml", "--load", file("best.mz"), "--no-output"});
  EXPECT_EQ(result.exit_code, 2);  // a data set needs its place: MODEL DATASET
  EXPECT_EQ(test_accuracy({"jsc-toy", "other.toml", "--load", file("best.mz")}), sorted);
  EXPECT_EQ(test_accuracy({"jsc-toy", "other.toml", "--load", file("best.ckpt")}), sorted);
  ASSERT_EQ(ch({"train", "jsc-toy", "other.toml", "--batch-size", "16", "--learning-rate", "0.01",
                "--max-epochs", "12", "--project", "other"})
                .exit_code,
            0);
  EXPECT_GT(test_accuracy(
                {"jsc-toy", "table.csv", "--target", "kind", "--load", file("best.mz", "other")}),
            0.6);
  test::write(folder_ + "/strange.csv", cloud_table({"red", "green", "violet"}, 0));
  const RunResult strange = ch({"test", "jsc-toy", "strange.csv", "--target", "kind", "--load",
                                file("best.mz"), "--no-output"});
  EXPECT_EQ(strange.exit_code, 2) << strange.out;
  EXPECT_NE(strange.err.find("violet"), std::string::npos) << strange.err;
}

TEST_F(WholeNetwork, AQuantisedCheckpointSaysWhatItIs) {
  ASSERT_EQ(train({"--config", "qat.toml", "--load", file("best.ckpt"), "--max-epochs", "2",
                   "--project", "qat"})
                .exit_code,
            0);
  const double whole = test_accuracy({"--load", file("best.mz", "qat")});
  EXPECT_EQ(test_accuracy({"--load", file("best.ckpt", "qat")}), whole);
  EXPECT_EQ(test_accuracy({"jsc-toy", "table.csv", "--target", "kind", "--load",
                           file("best.ckpt", "qat"), "--config", "qat.toml"}),
            whole);
  const RunResult bare = ch({"test", "jsc-toy", "table.csv", "--target", "kind", "--load",
                             file("best.ckpt", "qat"), "--no-output"});
  EXPECT_EQ(bare.exit_code, 2) << bare.out;
  EXPECT_NE(bare.err.find("quantised"), std::string::npos) << bare.err;
  EXPECT_NE(bare.err.find("LinearInteger"), std::string::npos) << bare.err;
  EXPECT_NE(ch({"test", "--load", file("best.mz", "qat"), "--no-output"})
                .out.find("holds a quantised network: 3 LinearInteger"),
            std::string::npos);
}

TEST_F(WholeNetwork, NamesNobodyKnowsAreRefusedWithAFileToo) {
  for (const char* name : {"best.mz", "best.ckpt"}) {
    const RunResult result = ch(
        {"test", "jsc-toi", "table.csv", "--target", "kind", "--load", file(name), "--no-output"});
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_NE(result.err.find("unknown model 'jsc-toi'"), std::string::npos) << result.err;
  }
  const RunResult other = ch({"test", "jsc-tiny", "table.csv", "--target", "kind", "--load",
                              file("best.mz"), "--no-output"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("holds the network jsc-toy, not jsc-tiny"), std::string::npos)
      << other.err;
}

TEST_F(WholeNetwork, ATestSaysItsSplitInEveryLine) {
  for (const auto& [split, prefix] :
       {std::pair("validation", "val"), std::pair("train", "train")}) {
    const RunResult result =
        ch({"test", "--load", file("best.mz"), "--split", split, "--json", "split.json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find("test_acc"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("test_loss"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find(fmt::format("{}_acc_epoch", prefix)), std::string::npos);
    EXPECT_NE(result.out.find(fmt::format(", {} rows", split)), std::string::npos) << result.out;
    const Value figures = read_json(folder_ + "/split.json");
    EXPECT_TRUE(figures["test_acc_epoch"].is_null());
    EXPECT_TRUE(figures[fmt::format("{}_acc_epoch", prefix)].is_number());
  }
  const RunResult random = ch({"test", "jsc-toy", "table.csv", "--target", "kind", "--no-output"});
  EXPECT_NE(random.err.find("random weights"), std::string::npos) << random.err;
}

TEST_F(WholeNetwork, DescribedNetworksTakeTheirShapeFromTheData) {
  test::write(folder_ + "/net.toml",
              "name = \"mine\"\n[[seq_blocks]]\ntype = \"Linear\"\nout_features = 6\n"
              "[[seq_blocks]]\ntype = \"ReLU\"\n[[seq_blocks]]\ntype = \"Linear\"\n");
  const RunResult result = ch({"transform", "net.toml", "table.csv", "--target", "kind", "--config",
                               "qat.toml", "--project", "described"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(ch({"train", "net.toml", "table.csv", "--target", "kind", "--max-epochs", "1",
                "--project", "mine"})
                .exit_code,
            0);
  EXPECT_EQ(record("mine")["model"]["name"], Value("mine"));
  EXPECT_GE(test_accuracy({"--load", file("best.ckpt", "mine")}), 0.0);
}

TEST_F(WholeNetwork, PredictTakesRowsWithoutNames) {
  std::string rows;
  for (const std::string& line : split(strip(test::read(folder_ + "/table.csv")), '\n'))
    if (!starts_with(line, "a,")) rows += line.substr(0, line.rfind(',')) + "\n";
  test::write(folder_ + "/rows.csv", rows);
  const auto predict = [&](const char* input) {
    const RunResult result = ch({"predict", "--load", file("best.mz"), "--input", input});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(predict("rows.csv"), predict("table.csv"));
}

TEST_F(WholeNetwork, FirstMistakesAreExplained) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
  std::string npy = "\x93NUMPY\x01";
  npy += '\0';
  npy += static_cast<char>(header.size());
  npy += '\0';
  test::write(folder_ + "/one.npy", npy + header + std::string(12, '\0'));
  for (const auto& [words, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"predict", "--load", file("best.mz"), "--input", "one.npy"},
            "a single row has the shape [1, 3]"},
           {{"predict", "--load", file("best.mz")}, "name the rows to predict"},
           {{"predict", "--input", "table.csv"}, "name the network that predicts"},
           {{"sweep", "train", "jsc-toy", "table.csv"}, "nothing is varied"},
           {{"train", "jsc-toi", "jsc-sim"}, "did you mean 'jsc-toy'?"}}) {
    const RunResult result = ch(words);
    EXPECT_EQ(result.exit_code, 2) << join(words, " ");
    EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
    EXPECT_EQ(split(strip(result.err), '\n').size(), 1u) << result.err;
  }
  // A PyTorch file is as good as a safetensors one.
  EXPECT_EQ(ch({"quantize", "--format", "integer", "--set", "width=8", "--set", "frac_width=4",
                "--input", test::golden_path("torch/jsc-toy.pt")})
                .exit_code,
            0);
}

TEST_F(WholeNetwork, RegressionPredictsNumbersNotLogits) {
  std::string csv = "a,b,weight\n";
  for (int row = 0; row < 200; ++row)
    csv += fmt::format("{},{},{}\n", row * 0.1, (row * 7) % 13, row * 0.25 + 0.5);
  test::write(folder_ + "/numbers.csv", csv);
  ASSERT_EQ(ch({"train", "toy", "numbers.csv", "--target", "weight", "--max-epochs", "1",
                "--project", "numbers"})
                .exit_code,
            0);
  const RunResult result = ch({"predict", "--load", file("best.mz", "numbers"), "--input",
                               "numbers.csv", "--output", "out.csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("Wrote predictions"), std::string::npos) << result.out;
  EXPECT_TRUE(starts_with(test::read(folder_ + "/out.csv"), "weight\n"));
}

TEST_F(WholeNetwork, ResumingWithMoreEpochsGoesOn) {
  ASSERT_EQ(train({"--project", "long", "--max-epochs", "2", "--schedule", "constant"}).exit_code,
            0);
  ASSERT_EQ(train({"--project", "whole", "--max-epochs", "4", "--schedule", "constant"}).exit_code,
            0);
  const RunResult more = ch({"train", "--resume", "mase_output/long", "--max-epochs", "4"});
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(record("long")["best"], record("whole")["best"]);
  EXPECT_EQ(record("long")["test_loss_epoch"], record("whole")["test_loss_epoch"]);
}

TEST_F(WholeNetwork, FilesOfOurOwnAreAcceptedEverywhere) {
  const std::string config = "mase_output/run/software/config.toml";
  EXPECT_EQ(test_accuracy({"--config", config, "--load", file("best.mz")}),
            test_accuracy({"--load", file("best.mz")}));
  EXPECT_EQ(ch({"train", "--config", config, "--max-epochs", "1", "--project", "again"}).exit_code,
            0);
  EXPECT_EQ(ch({"train", "--config", config, "--max-epochs", "1", "--schedule", "constant",
                "--training-optimizer", "sgd", "--project", "changed"})
                .exit_code,
            0);
  ASSERT_EQ(ch({"transform", "jsc-toy", "--config", "qat.toml", "--project", "plain"}).exit_code,
            0);
  EXPECT_EQ(ch({"transform", "--config", "mase_output/plain/software/config.toml", "--project",
                "plain-again"})
                .exit_code,
            0);
}

TEST_F(WholeNetwork, AFileStandsWhereANetworkIsNamed) {
  for (const char* name : {"best.mz", "best.ckpt"})
    EXPECT_EQ(test_accuracy({file(name)}), test_accuracy({"--load", file(name)})) << name;
  EXPECT_EQ(test_accuracy({file("best.mz"), "table.csv", "--target", "kind"}),
            test_accuracy({"--load", file("best.mz")}));
  EXPECT_EQ(ch({"predict", file("best.ckpt"), "--input", "table.csv"}).out,
            ch({"predict", "--load", file("best.ckpt"), "--input", "table.csv"}).out);
  EXPECT_EQ(ch({"summary", file("best.ckpt")}).out, ch({"summary", file("best.mz")}).out);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", file("best.ckpt"), "--max-epochs", "1", "--project",
                                 "on"},
        {"transform", file("best.mz"), "--config", "qat.toml", "--project", "by-word"},
        {"pass", "report_graph", file("best.mz")},
        {"export", file("best.mz"), "--to", "word.onnx"},
        {"summary", "word.onnx"}}) {
    const RunResult result = ch(words);
    EXPECT_EQ(result.exit_code, 0) << join(words, " ") << result.err;
  }
  const std::string quantised = "mase_output/by-word/software/transform/transformed.mz";
  EXPECT_EQ(ch({"estimate", quantised}).err, ch({"estimate", "--load", quantised}).err);
  EXPECT_NE(ch({"test", "nowhere.mz"}).err.find("no such file: nowhere.mz"), std::string::npos);
  EXPECT_NE(ch({"test", file("best.mz"), "--load", file("best.ckpt")}).err.find("leave one of"),
            std::string::npos);
  EXPECT_NE(ch({"estimate", "jsc-toy"}).err.find("--load"), std::string::npos);
}

TEST_F(WholeNetwork, OptionsOfTheRecordsReachFlagsAndTables) {
  const std::string help = ch({"train", "--help"}).out;
  for (const char* flag : {"--optimizer-beta1", "--optimizer-eps", "--schedule-pct-start",
                           "--weight-decay", "--momentum", "--eta-min", "--sim-rows"})
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  test::write(folder_ + "/tables.toml",
              "[optimizer]\nname = \"adamw\"\nbeta1 = 0.5\n[schedule]\nname = \"one-cycle\"\n"
              "pct_start = 0.2\n");
  const auto effective = [&](const std::string& run, const std::string& name) {
    const Value whole = record(run);
    for (const Value& row : whole["options"].as_list())
      if (row["name"] == Value(name)) return Value(row["effective"]);
    return Value();
  };
  ASSERT_EQ(
      train({"--config", "tables.toml", "--max-epochs", "1", "--project", "tables"}).exit_code, 0);
  EXPECT_EQ(effective("tables", "optimizer_beta1"), Value(0.5));
  EXPECT_EQ(effective("tables", "schedule_pct_start"), Value(0.2));
  EXPECT_EQ(effective("tables", "weight_decay"), Value(0.01));  // AdamW's own, as PyTorch's
  ASSERT_EQ(
      train({"--training-optimizer", "adamw", "--optimizer-beta1", "0.5", "--schedule", "one-cycle",
             "--schedule-pct-start", "0.2", "--max-epochs", "1", "--project", "flags"})
          .exit_code,
      0);
  EXPECT_EQ(record("flags")["test_loss_epoch"], record("tables")["test_loss_epoch"]);
  ASSERT_EQ(train({"--training-optimizer", "adamw", "--schedule", "one-cycle", "--max-epochs", "1",
                   "--project", "default"})
                .exit_code,
            0);
  EXPECT_NE(record("default")["test_loss_epoch"], record("tables")["test_loss_epoch"]);
}

TEST_F(WholeNetwork, WhatNobodyReadsIsAnErrorBeforeDataAreRead) {
  struct Mistake {
    std::string text, says;
  };
  for (const Mistake& mistake :
       std::vector<Mistake>{{"[pases.quantize]\nby = \"type\"\n", "did you mean 'passes'?"},
                            {"[optimizer]\nbetta1 = 0.5\n", "did you mean 'beta1'?"},
                            {"[optimizer]\nname = \"adamm\"\n", "adamw"},
                            {"[schedule]\npct_start = 0.5\n", "cosine has no option 'pct_start'"},
                            {"momentum = 0.5\n", "adam has no option 'momentum'"},
                            {"[passes.quantise]\nby = \"type\"\n", "did you mean 'quantize'?"},
                            {"batch_sise = 4\n", "did you mean 'batch_size'?"},
                            {"profile = true\n", "unknown key"},
                            {"[optimizer]\nbeta1 = 3\n", "too large"}}) {
    test::write(folder_ + "/mistake.toml", mistake.text);
    const RunResult result = ch({"train", "jsc-toy", "jsc-sim", "--config", "mistake.toml"});
    EXPECT_EQ(result.exit_code, 2) << mistake.text << result.out;
    EXPECT_NE(result.err.find(mistake.says), std::string::npos) << mistake.text << result.err;
    EXPECT_EQ(result.out.find("Data set"), std::string::npos) << result.out;
  }
  test::write(folder_ + "/mistake.toml", "[pases.quantize]\nby = \"type\"\n");
  for (const char* command : {"test", "transform"})
    EXPECT_EQ(ch({command, "jsc-toy", "jsc-sim", "--config", "mistake.toml"}).exit_code, 2);
}

TEST_F(WholeNetwork, ACosineNeverRises) {
  const RunResult result =
      train({"--learning-rate", "1e-7", "--max-epochs", "3", "--project", "low"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("eta_min 1e-06 is above the learning rate"), std::string::npos)
      << result.err;
  const std::string csv = test::read(folder_ + "/mase_output/low/software/metrics.csv");
  const std::vector<std::string> names = split(csv.substr(0, csv.find('\n')), ',');
  const auto column =
      static_cast<size_t>(std::find(names.begin(), names.end(), "learning_rate") - names.begin());
  for (const std::string& line : split(strip(csv), '\n'))
    if (const auto rate = parse_number(split(line, ',').at(column))) {
      EXPECT_EQ(*rate, 1e-7) << line;
    }
}

TEST_F(WholeNetwork, TheOptionTableShowsWhatDiffers) {
  const RunResult few = train({"--max-epochs", "1", "--project", "few"});
  EXPECT_NE(few.out.find("| max_epochs"), std::string::npos) << few.out;
  EXPECT_EQ(few.out.find("| accumulate_grad_batches"), std::string::npos) << few.out;
  const RunResult all = train({"--max-epochs", "1", "--project", "all", "--show-options"});
  EXPECT_NE(all.out.find("| accumulate_grad_batches"), std::string::npos);
}

TEST_F(WholeNetwork, SweepsGoOverSeedsAndPasses) {
  const RunResult seeds = ch({"sweep", "train", "jsc-toy", "table.csv", "--target", "kind",
                              "--max-epochs", "1", "--seeds", "2", "--project", "seeds"});
  ASSERT_EQ(seeds.exit_code, 0) << seeds.out << seeds.err;
  EXPECT_NE(seeds.out.find("±"), std::string::npos) << seeds.out;
  EXPECT_NE(seeds.out.find("test_acc"), std::string::npos) << seeds.out;
  const RunResult train_seeds = train({"--max-epochs", "1", "--seeds", "2", "--project", "both"});
  ASSERT_EQ(train_seeds.exit_code, 0) << train_seeds.out << train_seeds.err;
  EXPECT_TRUE(fs::exists(folder_ + "/mase_output/both/runs/seed=1/run.json"));
  const std::string key = "passes.quantize.linear.config.weight_width";
  const RunResult widths =
      ch({"sweep", "train", "jsc-toy", "table.csv", "--target", "kind", "--max-epochs", "1",
          "--config", "qat.toml", "--vary", key + "=4,8", "--project", "widths"});
  ASSERT_EQ(widths.exit_code, 0) << widths.out << widths.err;
  const RunResult typo =
      ch({"sweep", "train", "jsc-toy", "table.csv", "--target", "kind", "--config", "qat.toml",
          "--vary", "passes.quantize.linear.config.weigth_width=4,8"});
  EXPECT_EQ(typo.exit_code, 2) << typo.out;
  EXPECT_NE(typo.err.find("did you mean 'weight_width'?"), std::string::npos) << typo.err;
  for (const char* width : {"4", "8"}) {
    const std::string run =
        folder_ + "/mase_output/widths/runs/" + key + "=" + width + "/software/config.toml";
    const Value config = read_toml(run)["passes"]["quantize"]["linear"]["config"];
    EXPECT_EQ(config["weight_width"], Value(*parse_integer(width))) << run;
    EXPECT_EQ(config["data_in_width"], Value(8));
  }
}

}  // namespace
}  // namespace mase::whole_network_test
