// SPDX-License-Identifier: Apache-2.0
// ch transform and ch pass: a lab's file as it was written, its folders and files, and the lessons
// in examples/.
#include <filesystem>

#include "mase/base/text.h"
#include "mase/base/value.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/layer_text.h"
#include "support/support.h"

namespace mase::transform_command_test {
namespace {

// report_3's file, indented lines included; only the checkpoint's path is this machine's.
std::string lab_file(const std::string& checkpoint) {
  return "# jsc_txl_quantized_by_type.toml\n# self-defined configuration\nmodel = \"jsc-txl\"\n"
         "dataset = \"jsc\"\ntask = \"cls\"\n\nmax_epochs = 300\nbatch_size = 1024\n"
         "learning_rate = 1e-2\naccelerator = \"cpu\"\nproject = \"jsc-txl\"\nseed = 42\n"
         "log_every_n_steps = 5\n load_name = \"" +
         checkpoint +
         "\"\n load_type = \"pl\"\n\n[passes.quantize]\nby = \"type\"\n"
         "[passes.quantize.default.config]\nname = \"NA\"\n[passes.quantize.linear.config]\n"
         "name = \"integer\"\n\"data_in_width\" = 8\n\"data_in_frac_width\" = 4\n"
         "\"weight_width\" = 8\n\"weight_frac_width\" = 4\n\"bias_width\" = 8\n"
         "\"bias_frac_width\" = 4\n";
}

TEST(Transform, TakesTheLabsFileAndLeavesItsFolder) {
  const std::string folder = test::temporary_folder();
  test::write(folder + "/lab.toml", lab_file(test::golden_path("torch/jsc-10x.ckpt")));
  const test::RunResult result = test::ch({"transform", "--config", "lab.toml", "--task", "cls",
                                           "--cpu=0", "--sim-rows", "2000", "--data-dir", folder},
                                          folder);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(test::read(test::golden_path("passes/histogram_jsc-10x.txt"))),
            std::string::npos)
      << result.out;
  const std::string base = folder + "/mase_output/jsc-txl/";
  const std::string transform = base + "software/transform/";
  for (const char* file : {"quantize/quantize_table.csv", "quantize/quantize_histogram.csv",
                           "transformed_ckpt/graph_module.mz", "transformed_ckpt/state_dict.pt",
                           "transformed_ckpt/node_meta_param.toml"})
    EXPECT_TRUE(std::filesystem::exists(transform + file)) << file;

  const Value results = read_json(transform + "results.json");
  ASSERT_EQ(results.as_list().size(), 2u);
  EXPECT_EQ(results.as_list()[0]["pass"], Value("quantize"));
  EXPECT_EQ(results.as_list()[0]["changed"], Value(true));
  EXPECT_EQ(results.as_list()[1]["result"]["changed"], Value(3));

  const Checkpoint checkpoint = load_checkpoint(transform + "transformed.mz");
  ASSERT_TRUE(checkpoint.graph);
  EXPECT_EQ(class_text(*checkpoint.graph, *checkpoint.graph->find("seq_blocks_5")),
            "LinearInteger");

  const Value run = read_json(base + "run.json");
  EXPECT_EQ(run["kind"], Value("transform"));
  EXPECT_EQ(run["status"], Value("finished"));
  const Value& page = run["transform"];
  EXPECT_EQ(page["nodes"].as_list().size(), 13u);
  EXPECT_EQ(page["layers"].as_list().size(), 3u);
  EXPECT_EQ(page["before_after"].as_list().size(), 14u);
  EXPECT_TRUE(page["accuracy"]["after"].is_number());
  EXPECT_EQ(page["accuracy"]["split"].as_string(), "test");
  EXPECT_GT(page["accuracy"]["rows"].as_int(), 0);
  EXPECT_TRUE(page["costs"]["after"]["bitops"].is_number());
  bool limited = false;
  for (const Value& histogram : page["histograms"].as_list()) {
    EXPECT_EQ(histogram["edges"].as_list().size(), histogram["counts"].as_list().size() + 1);
    limited = limited ||
              (histogram["operand"] == Value("weight") && histogram["largest"] == Value(7.9375));
  }
  EXPECT_TRUE(limited);
}

TEST(Transform, DryRunPrintsThePlanAndDoesNothing) {
  const std::string folder = test::temporary_folder();
  const test::RunResult result = test::ch(
      {"transform", "jsc-tiny", "--config", test::source_path("examples/lab2.toml"), "--dry-run"},
      folder);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("LinearInteger"), std::string::npos);
  EXPECT_NE(result.out.find("and the default is NA"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder + "/mase_output"));
}

TEST(Transform, APassMayBeListedMoreThanOnce) {
  const std::string folder = test::temporary_folder();
  test::write(folder + "/twice.toml",
              "model = \"jsc-toy\"\nproject = \"twice\"\n"
              "[[passes.run]]\nname = \"report_graph\"\n"
              "[[passes.run]]\nname = \"fuse_batch_norm\"\n"
              "[[passes.run]]\nname = \"report_graph\"\n");
  const test::RunResult result = test::ch({"transform", "--config", "twice.toml"}, folder);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Value results = read_json(folder + "/mase_output/twice/software/transform/results.json");
  ASSERT_EQ(results.as_list().size(), 3u);
  EXPECT_EQ(results.as_list()[0]["result"]["counts"]["call_module"], Value(11));
  EXPECT_EQ(results.as_list()[2]["result"]["counts"]["call_module"], Value(8));
  EXPECT_TRUE(
      std::filesystem::exists(folder + "/mase_output/twice/software/transform/report_graph.txt"));
}

TEST(Transform, ReadyConfigsAreValid) {
  int count = 0;
  const std::string folder = test::temporary_folder();
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_path("configs/examples"))) {
    const Value config = read_toml(entry.path().string());
    if (config["passes"].is_null()) continue;
    ++count;
    std::vector<std::string> words = {"transform"};
    if (config["model"].is_null())
      words.insert(words.end(), {"jsc-tiny", "jsc"});  // for any network
    words.insert(words.end(), {"--config", entry.path().string(), "--sim-rows", "500", "--data-dir",
                               folder, "--dry-run"});
    const test::RunResult result = test::ch(words, folder);
    EXPECT_EQ(result.exit_code, 0) << entry.path() << result.err;
  }
  EXPECT_GE(count, 4);
}

TEST(Pass, RunsOneWithSettings) {
  const std::string folder = test::temporary_folder();
  const test::RunResult report = test::ch({"pass", "report_graph", "jsc-tiny"}, folder);
  EXPECT_EQ(report.out, test::read(test::golden_path("passes/report_graph_jsc-tiny.txt")));
  const test::RunResult flops =
      test::ch({"pass", "calculate_flops", "jsc-toy10x", "--set", "batch_size=8"}, folder);
  EXPECT_NE(flops.out.find("Total FLOPs: 67.78 K"), std::string::npos);
  const test::RunResult quantize =
      test::ch({"pass", "quantize", "jsc-toy", "--set", "linear.config.name=integer", "--set",
                "linear.config.data_in_width=8", "--set", "linear.config.weight_width=8", "--save",
                "toy.mz"},
               folder);
  ASSERT_EQ(quantize.exit_code, 0) << quantize.err;
  const test::RunResult verify =
      test::ch({"pass", "verify_quantization", "--load", "toy.mz"}, folder);
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
  EXPECT_NE(verify.out.find("3 quantised nodes"), std::string::npos);
  EXPECT_NE(verify.out.find(", 0 off their format's grid"), std::string::npos);
}

TEST(Pass, MistakesAreTold) {
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"pass", "report_grph", "jsc-tiny"}, "did you mean 'report_graph'?"},
           {{"pass", "report_graph", "jsc-tiny", "--set", "file=x"}, "did you mean 'file_name'?"},
           {{"pass", "report_graph", "jsc-tiny", "--set", "place=x"}, "known: file_name"},
           {{"pass", "report_graph", "jsc-tiny", "--set", "file_name"}, "is not key=value"},
           {{"pass", "calculate_flops", "jsc-tiny", "--set", "batch_size=no"},
            "expected an integer"}}) {
    const test::RunResult result = test::ch(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
}

TEST(Examples, Lab2InCppAndInShellPrintTheSameTables) {
  const char* build = std::getenv("MASE_BUILD");
  if (!build) GTEST_SKIP() << "MASE_BUILD is not set";
  const std::string program = std::string(build) + "/bin/lab2";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "the examples are not built";
  const std::string folder = test::temporary_folder();
  const std::string checkpoint = test::golden_path("torch/jsc-10x.ckpt");
  const test::RunResult cpp = test::run({program, "jsc-10x", checkpoint}, folder);
  ASSERT_EQ(cpp.exit_code, 0) << cpp.err;
  const test::RunResult shell =
      test::run({"bash", test::source_path("examples/lab2.sh"), "jsc-10x", checkpoint}, folder,
                {std::string("CH=") + std::getenv("MASE_CH")});
  ASSERT_EQ(shell.exit_code, 0) << shell.err;
  for (const char* golden : {"passes/report_graph_jsc-10x.txt", "passes/histogram_jsc-10x.txt"})
    for (const test::RunResult* result : {&cpp, &shell})
      EXPECT_NE(result->out.find(test::read(test::golden_path(golden))), std::string::npos)
          << golden << "\n"
          << result->out;
  for (const char* part :
       {"'count': 960", "'count': 1920", "The Actual target is DIFFERENT :LinearInteger(",
        "Quantised graph target: LinearInteger(", "Total FLOPs: ", "Total BitOPs: "})
    for (const test::RunResult* result : {&cpp, &shell})
      EXPECT_NE(result->out.find(part), std::string::npos) << part;
  EXPECT_NE(cpp.out.find(" original module: Linear --> new module LinearInteger"),
            std::string::npos);
}

}  // namespace
}  // namespace mase::transform_command_test
