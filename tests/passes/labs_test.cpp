// SPDX-License-Identifier: Apache-2.0
// The labs' flows from end to end on networks that PyTorch trained, through the library.
#include <cstring>
#include <ctime>

#include "mase/base/text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/pass.h"
#include "passes/networks.h"

namespace mase::labs_test {
namespace {

Value integer_rule() {
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias"}) {
    config.set(fmt::format("{}_width", operand), 8);
    config.set(fmt::format("{}_frac_width", operand), 4);
  }
  return Dict{{"config", config}};
}

const Value untouched(Dict{{"config", Dict{{"name", nullptr}}}});

struct Lab {
  test::GoldenNetwork golden;
  Graph mg;
  std::string text;
  PassContext context;

  explicit Lab(const std::string& name) : golden(test::golden_network(name)), mg(golden.graph) {
    context.original = &golden.graph;
    context.samples = golden.x;
    context.test_x = golden.x;
    context.test_labels = golden.labels;
    context.batch_size = 8;
    context.print = [this](const std::string& more) { text += more; };
    for (const char* pass : {"init_metadata_analysis_pass", "add_common_metadata_analysis_pass",
                             "add_software_metadata_analysis_pass"})
      run(pass);
  }
  PassResult run(const std::string& pass, const Value& args = {}) {
    text.clear();
    return run_pass(mg, pass, args, context);
  }
};

Value profile_arguments() {
  return Dict{
      {"by", "type"},
      {"target_weight_nodes", List{Value("linear")}},
      {"target_activation_nodes", List{Value("relu")}},
      {"weight_statistics", Dict{{"variance_precise", Dict{{"device", "cpu"}, {"dims", "all"}}}}},
      {"activation_statistics",
       Dict{{"range_quantile", Dict{{"device", "cpu"}, {"dims", "all"}, {"quantile", 0.97}}}}},
      {"num_samples", 32}};
}

TEST(Labs, Report4ProfilesAndQuantisesTheLargerNetwork) {
  Lab lab("jsc-10x");
  lab.run("report_graph_analysis_pass");
  EXPECT_EQ(lab.text, test::read(test::golden_path("passes/report_graph_jsc-10x.txt")));
  lab.run("profile_statistics_analysis_pass", profile_arguments());
  const auto stat = [&](const char* node, const char* argument, const char* name) {
    return lab.mg.find(node)->meta.at("software")["args"][argument]["stat"][name]["count"];
  };
  EXPECT_EQ(stat("seq_blocks_1", "data_in_0", "range_quantile"), Value(512));
  EXPECT_EQ(stat("seq_blocks_2", "weight", "variance_precise"), Value(960));
  EXPECT_EQ(stat("seq_blocks_2", "bias", "variance_precise"), Value(60));
  EXPECT_EQ(stat("seq_blocks_4", "data_in_0", "range_quantile"), Value(1920));
  EXPECT_EQ(stat("seq_blocks_5", "weight", "variance_precise"), Value(1920));
  EXPECT_EQ(stat("seq_blocks_5", "bias", "variance_precise"), Value(32));
  EXPECT_EQ(stat("seq_blocks_7", "data_in_0", "range_quantile"), Value(1024));
  EXPECT_EQ(stat("seq_blocks_8", "weight", "variance_precise"), Value(160));
  EXPECT_EQ(stat("seq_blocks_8", "bias", "variance_precise"), Value(5));
  EXPECT_EQ(stat("seq_blocks_10", "data_in_0", "range_quantile"), Value(160));
  // The same table as the lab's, but for the numbers.
  lab.run("report_node_meta_param_analysis_pass", Dict{{"which", List{Value("software")}}});
  const auto without_numbers = [](std::string table) {
    std::string out;
    for (const char c : table)
      if (!std::isdigit(static_cast<unsigned char>(c)) && !strchr(".-+= |\n", c)) out += c;
    return replace_all(replace_all(out, "e,", ","), "e}", "}");
  };
  EXPECT_EQ(
      without_numbers(lab.text),
      without_numbers(test::read(test::golden_path("passes/report_node_meta_param_jsc-10x.txt"))));

  lab.run("quantize_transform_pass",
          Dict{{"by", "type"}, {"default", untouched}, {"linear", integer_rule()}});
  lab.context.save_dir = test::temporary_folder();
  lab.run("summarize_quantization_analysis_pass", Dict{{"save_dir", "quantize_summary"}});
  EXPECT_EQ(lab.text, test::read(test::golden_path("passes/histogram_jsc-10x.txt")));
  EXPECT_EQ(test::read(lab.context.save_dir + "/quantize_summary/quantize_histogram.csv"),
            "Original type,OP,Total,Changed,Unchanged\n"
            "BatchNorm1d,batch_norm1d,4,0,4\nLinear,linear,3,3,0\nReLU,relu,4,0,4\n"
            "output,output,1,0,1\nx,placeholder,1,0,1\n");
  EXPECT_EQ(lab.run("verify_quantization").data["off_grid"], Value(0));
}

TEST(Labs, Report5ComparesTheSmallNetworkNodeByNode) {
  Lab lab("jsc-tiny");
  lab.run("quantize", Dict{{"by", "type"}, {"default", untouched}, {"linear", integer_rule()}});
  const PassResult summary = lab.run("summarize_quantization");
  EXPECT_EQ(summary.data["changed"], Value(1));
  lab.run("compare_graphs");
  // Cells of the lab's table; blanks around them differ, as it was typed by hand.
  const std::vector<std::string> wanted = {
      "x|x|placeholder|placeholder|x|x|False|The Actual target is SAME      :x",
      "seq_blocks_0|seq_blocks_0|module|batch_norm1d|BatchNorm1d|BatchNorm1d|False|The Actual "
      "target is SAME      :BatchNorm1d(16, eps=1e-05, momentum=0.1, affine=True, "
      "track_running_stats=True)",
      "seq_blocks_1|seq_blocks_1|module_related_func|relu|ReLU|ReLU|False|The Actual target is "
      "SAME      :ReLU(inplace=True)",
      "seq_blocks_2|seq_blocks_2|module_related_func|linear|Linear|LinearInteger|True|The Actual "
      "target is DIFFERENT :LinearInteger(in_features=16, out_features=5, "
      "bias=True)/Linear(in_features=16, out_features=5, bias=True)",
      "seq_blocks_3|seq_blocks_3|module_related_func|relu|ReLU|ReLU|False|The Actual target is "
      "SAME      :ReLU(inplace=True)",
      "output|output|output|output|output|output|False|The Actual target is SAME      :output"};
  const std::vector<std::string> lines = split(lab.text, '\n');
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& cell : split(lines[i + 2], '|')) cells.push_back(strip(cell));
    cells.erase(cells.begin());
    cells.pop_back();
    EXPECT_EQ(join(cells, "|"), wanted[i]);
  }
}

TEST(Labs, Report5QuantisesLinearAndReluOfTheLargerNetwork) {
  Lab lab("jsc-toy10x");
  lab.run("quantize", Dict{{"by", "type"},
                           {"default", untouched},
                           {"linear", integer_rule()},
                           {"relu", integer_rule()}});
  lab.run("summarize_quantization");
  EXPECT_EQ(lab.text,
            "INFO     Quantized graph histogram:\n"
            "INFO     \n"
            "| Original type   | OP           |   Total |   Changed |   Unchanged |\n"
            "|-----------------+--------------+---------+-----------+-------------|\n"
            "| BatchNorm1d     | batch_norm1d |       5 |         0 |           5 |\n"
            "| Linear          | linear       |       4 |         4 |           0 |\n"
            "| ReLU            | relu         |       5 |         5 |           0 |\n"
            "| output          | output       |       1 |         0 |           1 |\n"
            "| x               | placeholder  |       1 |         0 |           1 |\n");
  EXPECT_EQ(lab.run("calculate_flops", Dict{{"batch_size", 8}}).data["total_flops"], Value(67784));
  EXPECT_NE(lab.text.find("Total FLOPs: 67.78 K"), std::string::npos);
  const Value costs = lab.run("calculate_bitops", Dict{{"batch_size", 8}}).data;
  EXPECT_EQ(costs["before"]["operand_bits"], Value(162368.0));
  EXPECT_EQ(costs["after"]["operand_bits"], Value(162368.0 / 4));
  EXPECT_EQ(costs["after"]["average_weight_bits"], Value(8.0));
}

// 160,000 rows before and after, and what that took.
TEST(Labs, QuantisingAndEvaluatingIsFast) {
  test::GoldenNetwork golden = test::golden_network("jsc-10x");
  const int64_t rows = 160000, features = 16;
  Tensor x({rows, features}), labels({rows}, DType::i32);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t source = r % golden.x.shape()[0];
    std::copy_n(golden.x.data<float>() + source * features, features,
                x.mutable_data<float>() + r * features);
    labels.mutable_data<int32_t>()[r] = static_cast<int32_t>(golden.labels.item(source));
  }
  const std::clock_t start = std::clock();  // of this process: other programs do not count
  Graph quantized = golden.graph;
  PassContext context;
  run_pass(quantized, "quantize", Dict{{"linear", integer_rule()}}, context);
  const double before = accuracy(golden.graph, x, labels);
  const double after = accuracy(quantized, x, labels);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("accuracy %.4f before, %.4f after (%+.4f), %.3f s\n", before, after, after - before,
              seconds);
  EXPECT_GT(before, 0.2);
  EXPECT_NEAR(after, before, 0.1);
}

}  // namespace
}  // namespace mase::labs_test
