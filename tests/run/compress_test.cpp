// SPDX-License-Identifier: Apache-2.0
// ch compress: what the table says is what a network with these formats, made by hand, has; the
// front is exact; a run that was stopped goes on, and only with what it began with.
#include "mase/run/compress/compress.h"

#include <cmath>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/models/hf.h"
#include "mase/passes/observe.h"
#include "mase/passes/pass.h"
#include "mase/run/compress/compress_measure.h"
#include "mase/run/compress/compress_plan.h"
#include "mase/run/language.h"
#include "mase/train/paired.h"
#include "support/support.h"

namespace mase::compress_test {
namespace {

Settings settings_of(Dict given) {
  return experiment_settings(Value(std::move(given)), "", compress_options());
}

Dict small(std::vector<std::string> formats, std::vector<std::string> methods) {
  return Dict{
      {"model", "jsc-tiny"},           {"dataset", "jsc-sim"},  {"sim_rows", 3000},
      {"disable_dataset_cache", true}, {"no_warnings", true},   {"formats", Value::of(formats)},
      {"methods", Value::of(methods)}, {"calibration_rows", 64}};
}

CompressResult run_small(const Dict& given, const std::function<RunFolder()>& folder = {},
                         const Observer& observer = {}) {
  const Settings settings = settings_of(given);
  const CompressSpec spec = compress_spec(settings);
  const auto experiment = compress_experiment(settings, spec, observer);
  return compress(*experiment, spec, observer, folder);
}

TEST(Compress, FormatsAndMethodsAreRead) {
  const CompressFormat format = compress_format("group_integer:width=3,group_size=16");
  EXPECT_EQ(format.config["name"], Value("group_integer"));
  EXPECT_EQ(format.config["weight_width"], Value(3));
  EXPECT_EQ(format.config["weight_group_size"], Value(16));
  EXPECT_EQ(format.config["weight_only"], Value(true));
  const CompressFormat both =
      compress_format("integer:width=8,frac_width=6,data_in_width=8,bias_width=8");
  EXPECT_EQ(both.config["data_in_width"], Value(8));
  EXPECT_EQ(both.config["weight_only"], Value(false));
  EXPECT_EQ(compress_format("block_fp:width=4,block_size=[1,16]").config["weight_block_size"],
            Value(List{1, 16}));
  EXPECT_TRUE(compress_format("none").config.is_null());
  EXPECT_TRUE(compress_format("nf4").config.as_dict().contains("weight_group_size"));

  const CompressMethod chain = compress_method("fuse_batch_norm+rtn+awq:ratios=[0,0.5]+gptq", 99);
  ASSERT_EQ(chain.before.size(), 1u);
  ASSERT_EQ(chain.after.size(), 2u);
  EXPECT_EQ(chain.after[0].call.args["ratios"], Value(List{0, 0.5}));
  EXPECT_EQ(chain.after[1].call.args["rows"], Value(99));
  EXPECT_EQ(compress_method("gptq:rows=32", 99).after[0].call.args["rows"], Value(32));
  EXPECT_TRUE(compress_method("rtn", 0).after.empty());
  EXPECT_TRUE(compress_method("train:max_epochs=1", 0).after.at(0).trains);
  const auto expect_error = [](const auto& step, const char* said) {
    try {
      step();
      FAIL() << "no error: " << said;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    }
  };
  expect_error([] { compress_format("group_intger:width=4"); }, "group_integer");
  expect_error([] { compress_format("nf4:group_size"); }, "is not key=value");
  expect_error([] { compress_method("gtpq", 0); }, "gptq");
  expect_error([] { compress_method("rtn+gptq+rtn", 0); }, "rounds twice");
  expect_error([] { compress_method("gptq++awq", 0); }, "names nothing");
  expect_error([] { compress_method("report_graph", 0); }, "no pass that changes");
}

TEST(Compress, MistakesAreToldTogetherBeforeAnythingRuns) {
  try {
    run_small(small({"group_integer:widht=4", "nf5"}, {"gptq:dampin=1", "rtn"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.count(), 3) << error.what();
  }
  EXPECT_THROW(settings_of(Dict{{"formts", "nf4"}}), Error);
  EXPECT_THROW(compress_spec(settings_of(Dict{{"input", "a.txt"}})), Error);
  EXPECT_THROW(run_small([] {
                 Dict given = small({"nf4"}, {"rtn"});
                 given.set("leave", List{"no_such_layer"});
                 return given;
               }()),
               Error);
}

TEST(Compress, FiguresAreThoseOfNetworksMadeByHand) {
  const std::vector<std::string> formats = {"group_integer:width=4,group_size=5",
                                            "integer:width=3,frac_width=2"};
  const Dict given = small(formats, {"rtn", "gptq", "clip_search+bias_correction"});
  const CompressResult result = run_small(given);
  ASSERT_EQ(result.rows.size(), 6u);
  EXPECT_EQ(result.figure, "accuracy");
  EXPECT_EQ(result.layers, 1);
  EXPECT_EQ(result.weights, 16 * 5);
  // By hand: the same network and rows, one pass, the engine's own count of hits.
  const Settings settings = settings_of(given);
  const auto experiment = compress_experiment(settings, compress_spec(settings), {});
  const Split& test = experiment->dataset()->test;
  Graph graph = experiment->graph();
  EXPECT_EQ(result.original.value, accuracy(graph, test.samples(), test.labels));
  PassContext context;
  run_pass(graph, "quantize",
           parse_toml("by = \"type\"\n[linear.config]\nname = \"group_integer\"\nweight_width = 4\n"
                      "weight_group_size = 5\nweight_only = true\n",
                      "t"),
           context);
  const CompressRow& row = result.rows[0];
  EXPECT_EQ(row.format, formats[0]);
  EXPECT_EQ(row.method, "rtn");
  EXPECT_EQ(row.value, accuracy(graph, test.samples(), test.labels));
  EXPECT_NEAR(row.bits, 4 + 32.0 * (5 * 4) / 80, 1e-12);  // 4 groups in a row of 16
  EXPECT_EQ(result.rows[3].bits, 3);
  EXPECT_NEAR(result.original.bytes - row.bytes, 80 * (32 - row.bits) / 8, 1e-9);
  EXPECT_NEAR(row.difference, row.value - result.original.value, 1e-12);
  EXPECT_LE(row.low, row.difference);
  EXPECT_GE(row.high, row.difference);
  for (const CompressRow& one : result.rows) {
    EXPECT_EQ(one.trouble, "");
    bool beaten = false;
    for (const CompressRow& other : result.rows)
      beaten = beaten || (other.bits <= one.bits && other.value >= one.value &&
                          (other.bits < one.bits || other.value > one.value));
    EXPECT_EQ(one.front, !beaten) << one.format << one.method;
  }
  for (const auto& [index, network] : result.networks) {
    EXPECT_TRUE(result.rows[index].front);
    EXPECT_EQ(accuracy(network, test.samples(), test.labels), result.rows[index].value);
  }
  EXPECT_FALSE(result.networks.empty());
  const std::string table = compress_table(result), csv = compress_csv(result);
  EXPECT_NE(table.find("clip_search+bias_correction"), std::string::npos);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 8);
}

TEST(Compress, WhatAMethodCannotDoIsARow) {
  const CompressResult result =
      run_small(small({"nf4", "binary:stochastic=true"}, {"gptq", "rtn"}));
  ASSERT_EQ(result.rows.size(), 4u);
  EXPECT_EQ(result.rows[0].trouble, "");
  EXPECT_NE(result.rows[2].trouble, "");
  EXPECT_EQ(result.rows[3].trouble, "");
  EXPECT_FALSE(result.rows[2].front);
  EXPECT_NE(compress_table(result).find("not done: binary:stochastic=true with gptq: "),
            std::string::npos);
}

TEST(Compress, PrunedWeightsCountTheirMasks) {
  const CompressResult result =
      run_small(small({"none", "group_integer:width=4,group_size=16"},
                      {"rtn", "prune:weight.granularity=n:m,weight.method=sparsegpt",
                       "prune:weight.sparsity=0.25"}));
  ASSERT_EQ(result.rows.size(), 6u);
  EXPECT_EQ(result.rows[0].value, result.original.value);
  EXPECT_EQ(result.rows[0].bits, 32);
  EXPECT_EQ(result.rows[1].bits, 32 * 0.5 + 1);
  EXPECT_EQ(result.rows[2].bits, 32 * 0.75 + 1);
  EXPECT_EQ(result.rows[4].bits, (4 + 2) * 0.5 + 1);
}

TEST(Compress, TrainingIsAStep) {
  const CompressResult result =
      run_small(small({"group_integer:width=2"}, {"rtn", "train:max_epochs=2,learning_rate=0.01"}));
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[1].trouble, "");
  EXPECT_LT(result.rows[1].loss, result.rows[0].loss);  // the network had random weights
  EXPECT_EQ(result.rows[1].bits, result.rows[0].bits);
  EXPECT_THROW(run_small(small({"nf4"}, {"train:max_epoch=2"})), Error);
}

TEST(Compress, GoesOnWhereItWasStopped) {
  const std::string parent = test::temporary_folder();
  const std::vector<std::string> formats = {"nf4", "group_integer:width=3"};
  Dict given = small(formats, {"rtn", "gptq"});
  const auto create = [&] { return RunFolder::create(parent, "run", Dict{{"kind", "compress"}}); };
  int asked = 0;
  Observer observer;
  observer.cancelled = [&] { return ++asked > 4; };
  const CompressResult stopped = run_small(given, create, observer);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_LT(stopped.rows.size(), 4u);
  EXPECT_EQ(RunFolder::open(stopped.folder).status(), "interrupted");
  const CompressResult whole = run_small(given);
  given.set("resume", stopped.folder);
  const auto again = [&] { return resumed_compress_folder(compress_spec(settings_of(given))); };
  const CompressResult rest = run_small(given, again);
  ASSERT_EQ(rest.rows.size(), whole.rows.size());
  for (size_t i = 0; i < whole.rows.size(); ++i) {
    EXPECT_EQ(rest.rows[i].value, whole.rows[i].value);
    EXPECT_EQ(rest.rows[i].bits, whole.rows[i].bits);
    EXPECT_EQ(rest.rows[i].front, whole.rows[i].front);
    if (i < stopped.rows.size()) {
      EXPECT_EQ(rest.rows[i].seconds, stopped.rows[i].seconds);  // it was not run again
    }
  }
  EXPECT_EQ(RunFolder::open(rest.folder).status(), "finished");
  const std::string files = rest.folder + "/software/compress/";
  EXPECT_EQ(read_json(files + "compress.json")["rows"].as_list().size(), 4u);
  for (const CompressRow& row : rest.rows)
    EXPECT_EQ(std::filesystem::exists(files + row.network) && !row.network.empty(), row.front);
  // Other formats are added to what there is.
  given.set("formats", List{"mxint:width=4"});
  const CompressResult more = run_small(given, again);
  ASSERT_EQ(more.rows.size(), 6u);
  EXPECT_EQ(more.rows[0].value, rest.rows[0].value);
  EXPECT_EQ(more.rows[4].format, "mxint:width=4");
  given.set("seed", 7);
  EXPECT_THROW(run_small(given, again), Error);
  // Mistakes leave no folder behind.
  EXPECT_THROW(run_small(small({"nf5"}, {"rtn"}), create), Error);
  EXPECT_FALSE(std::filesystem::exists(parent + "/run_2"));
}

TEST(Compress, TextsHavePerplexities) {
  const std::string parent = test::temporary_folder();
  const std::string path = test::golden_path("language/llama_bf16");
  const auto write = [&](const char* name, uint64_t seed, int64_t count) {
    Tensor ids({count}, DType::i32);
    Random random(seed, "text");
    for (int64_t i = 0; i < count; ++i)
      ids.mutable_data<int32_t>()[i] = static_cast<int32_t>(random.below(250));
    std::string header =
        fmt::format("{{'descr': '<i4', 'fortran_order': False, 'shape': ({},), }}", count);
    header.resize((header.size() + 10 + 63) / 64 * 64 - 10 - 1, ' ');
    header += '\n';
    std::string file = "\x93NUMPY";
    file += {1, 0, static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
    file += header;
    file.append(reinterpret_cast<const char*>(ids.raw()), ids.bytes());
    write_file_atomically(parent + "/" + name, file);
    return parent + "/" + name;
  };
  const std::string held = write("held.npy", 1, 70), seen = write("seen.npy", 2, 400);
  Dict given{{"load", path},
             {"input", held},
             {"calibration", seen},
             {"length", 16},
             {"formats", List{"group_integer:width=4,group_size=32", "mxint:width=3"}},
             {"methods", List{"rtn", "gptq", "rotate+gptq"}},
             {"leave", List{"model_layers_0_mlp_down_proj", "lm_head"}}};
  const CompressResult result = run_small(given);
  ASSERT_EQ(result.rows.size(), 6u);
  EXPECT_EQ(result.figure, "perplexity");
  EXPECT_FALSE(result.higher_is_better);
  EXPECT_EQ(result.layers, 13);
  for (const CompressRow& row : result.rows) EXPECT_EQ(row.trouble, "");
  Graph graph = resized_hf_network(graph_of_file(path), {.shapes = {{16}}});
  const std::vector<int32_t> ids = text_tokens(path, held);
  EXPECT_NEAR(result.original.value, perplexity(graph, ids, 16, 1).value(), 1e-9);
  PassContext context;
  run_pass(
      graph, "quantize",
      parse_toml("by = \"regex_name\"\n"
                 "[\"model_layers_0_mlp_(gate|up)_proj|model_layers_1.*_proj|.*self_attn_._proj"
                 "\".config]\nname = \"group_integer\"\nweight_width = 4\n"
                 "weight_group_size = 32\nweight_only = true\n",
                 "t"),
      context);
  EXPECT_NEAR(result.rows[0].value, perplexity(graph, ids, 16, 1).value(), 1e-9);
  given.set("calibration", held);
  EXPECT_THROW(run_small(given), Error);
  given.set("calibration", seen);
  given.set("length", 300);
  EXPECT_THROW(run_small(given), Error);
}

TEST(PairedDifference, IsTheNormalIntervalOfDifferences) {
  Random random(1, "pairs");
  std::vector<bool> first, second;
  for (int i = 0; i < 500; ++i) {
    first.push_back(random.uniform() < 0.8);
    second.push_back(random.uniform() < 0.7);
  }
  double mean = 0, square = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const double d = (second[i] ? 1.0 : 0.0) - (first[i] ? 1.0 : 0.0);
    mean += d / 500;
    square += d * d / 500;
  }
  const PairedDifference found = paired_difference(first, second);
  EXPECT_NEAR(found.mean, mean, 1e-12);
  EXPECT_NEAR(found.high - found.mean, 1.959964 * std::sqrt((square - mean * mean) / 500), 1e-6);
  EXPECT_NEAR(found.mean - found.low, found.high - found.mean, 1e-12);
}

}  // namespace
}  // namespace mase::compress_test
