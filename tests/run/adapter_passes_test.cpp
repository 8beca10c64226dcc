// SPDX-License-Identifier: Apache-2.0
// Adapters: inserting changes nothing, fusing changes rounding only, only they are trained, and
// PEFT's folders are read and written; against weights that PEFT itself merged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "mase/base/random.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/peft.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "mase/passes/lora.h"
#include "mase/passes/metadata.h"
#include "mase/passes/pass.h"
#include "support/support.h"

namespace mase::test::adapter_passes_test {
namespace {

// Within 0.05: what five steps of Adam at 1e-2 make of B. The fused weight is stored in float32, so
// the error of fusing grows with the adapter (1.6e-6 on bert-tiny at ten times this size).
void fill(Tensor& tensor, Random& random) {
  float* values = tensor.mutable_data<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    values[i] = static_cast<float>(0.1 * (random.uniform() - 0.5));
}

// As if trained: no B is zero.
void fill_adapters(Graph& graph) {
  Random random(3, "adapters");
  for (auto& [path, module] : graph.modules())
    if (is_lora_part(path) && module.op == "linear") fill(*module.find("weight"), random);
}

double difference(const Graph& one, const Graph& other, bool& same_bits) {
  PassContext context;
  context.seed = 5;
  std::vector<Array> inputs;
  for (const Tensor& tensor : sample_inputs(one, context, 7)) inputs.push_back(Array::from(tensor));
  const Array a = evaluate(one, inputs)[0], b = evaluate(other, inputs)[0];
  double largest = 0;
  same_bits = a.data == b.data;
  for (size_t i = 0; i < a.data.size(); ++i)
    largest =
        std::max(largest, std::abs(a.data[i] - b.data[i]) / std::max(1.0, std::abs(a.data[i])));
  return largest;
}

TEST(adapters, inserted_nothing_changes_and_fused_only_rounding) {
  for (const std::string model : {"jsc-tiny", "jsc-toy", "toy", "bert-tiny", "llama-tiny"}) {
    SCOPED_TRACE(model);
    const Graph before = make_model(model);
    for (const double dropout : {0.0, 0.25}) {
      Graph graph = before;
      PassContext context;
      const PassResult inserted =
          run_pass(graph, "insert_lora_adapter",
                   Dict{{"rank", 3}, {"alpha", 6.0}, {"dropout", dropout}}, context);
      bool same = false;
      difference(before, graph, same);
      EXPECT_TRUE(same);
      // Counted by hand: rank (in + out) for each linear layer, and nothing else.
      int64_t expected = 0;
      for (const auto& [path, module] : before.modules())
        if (module.op == "linear")
          expected += 3 * (module.find("weight")->dim(0) + module.find("weight")->dim(1));
      EXPECT_EQ(inserted.data["trainable"].as_int(), expected);
      EXPECT_EQ(inserted.data["total"].as_int(), before.parameter_count(false) + expected);
      fill_adapters(graph);
      const Graph adapted = graph;
      EXPECT_GT(difference(before, graph, same), 1e-3);
      const PassResult fused = run_pass(graph, "fuse_lora_weights", Dict{}, context);
      EXPECT_EQ(fused.data["fused"].as_list().size(), inserted.data["replaced"].as_list().size());
      EXPECT_TRUE(fused.data["left_alone"].as_dict().empty());
      EXPECT_EQ(graph.text(), before.text());  // biases and all
      EXPECT_EQ(graph.parameter_count(false), before.parameter_count(false));
      EXPECT_LT(difference(adapted, graph, same), 1e-6);
    }
  }
}

TEST(adapters, of_quantised_layers_stand_beside_the_rounded_base) {
  Graph graph = make_model("jsc-toy");
  PassContext context;
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias"}) {
    config.set(fmt::format("{}_width", operand), 8);
    config.set(fmt::format("{}_frac_width", operand), 5);
  }
  run_pass(graph, "quantize", Dict{{"linear", Dict{{"config", config}}}}, context);
  const Graph rounded = graph;
  run_pass(graph, "insert_lora_adapter", Dict{{"rank", 2}}, context);
  bool same = false;
  difference(rounded, graph, same);
  EXPECT_TRUE(same);
  fill_adapters(graph);
  const PassResult fused = run_pass(graph, "fuse_lora_weights", Dict{}, context);
  EXPECT_EQ(fused.data["rounded_anew"].as_list().size(), fused.data["fused"].as_list().size());
  EXPECT_EQ(graph.text(), rounded.text());  // the classes stay
}

TEST(adapters, wrong_arguments_are_told) {
  const auto message = [](const Dict& args) {
    Graph graph = make_model("bert-tiny");
    PassContext context;
    try {
      prepare_passes(graph, {{"insert_lora_adapter", args, "passes.insert_lora_adapter"}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message(Dict{{"rank", 0}}), testing::HasSubstr("rank"));
  EXPECT_THAT(message(Dict{{"alhpa", 2}}), testing::HasSubstr("alpha"));
  EXPECT_THAT(message(Dict{{"alpha", 2}, {"lora_alpha", 3}}), testing::HasSubstr("says the same"));
  EXPECT_THAT(message(Dict{{"by", "name"}, {"targets", List{Value("nobody")}}}),
              testing::HasSubstr("nobody"));
  EXPECT_THAT(message(Dict{{"by", "type"}, {"targets", "layer_norm"}}),
              testing::HasSubstr("no linear layer"));
  EXPECT_THAT(message(Dict{{"by", "regex_name"}, {"targets", ".*query.*"}, {"rank", 2}}),
              testing::Eq("nothing"));
}

// Linear layers with the names and weights of a BERT, one behind another.
Graph bert_layers(const Checkpoint& golden) {
  Graph graph;
  graph.name = "layers";
  NodeId x = graph.add_placeholder("x", {64});
  for (int layer = 0; layer < 2; ++layer)
    for (const std::string part : {"query", "value"}) {
      const std::string path = fmt::format("bert.encoder.layer.{}.attention.self.{}", layer, part);
      Module module =
          make_module("linear", Dict{{"in_features", 64}, {"out_features", 64}}, 1, path);
      for (const auto& [name, tensor] : golden.tensors)
        for (const char* own : {"weight", "bias"})
          if (name == "base." + path + "." + own) *module.find(own) = tensor.to(DType::f32);
      x = graph.add_module(path, std::move(module), {x});
    }
  graph.add_output({x});
  verify(graph);
  return graph;
}

TEST(adapters, of_peft_are_read_merged_and_written) {
  const std::string folder = golden_path("lora/peft_adapter");
  const Checkpoint golden = load_checkpoint(golden_path("lora/bert_cls.safetensors"));
  const auto tensor = [&](const std::string& name) -> const Tensor& {
    for (const auto& [own, value] : golden.tensors)
      if (own == name) return value;
    throw std::runtime_error(name);
  };
  Graph graph = bert_layers(golden);
  PassContext context;
  const PassResult loaded = run_pass(graph, "load_lora_adapter", Dict{{"folder", folder}}, context);
  EXPECT_EQ(loaded.data["trainable"].as_int(), 2048);  // PEFT's own count
  for (const LoraAdapter& adapter : lora_adapters(graph)) {
    EXPECT_EQ(adapter.scale, 2);
    EXPECT_EQ(adapter.rank(graph), 4);
    for (const std::string part : {".lora_A", ".lora_B"})
      EXPECT_TRUE(graph.modules()
                      .at(adapter.path + part)
                      .find("weight")
                      ->same_bits(tensor("final." + adapter.path + part + ".weight")));
  }
  // Written and read again: the same bits.
  context.save_dir = temporary_folder();
  run_pass(graph, "save_lora_adapter", Dict{{"folder", "adapter"}}, context);
  const PeftAdapter first = read_peft(folder), again = read_peft(context.save_dir + "/adapter");
  ASSERT_EQ(first.layers.size(), again.layers.size());
  for (const PeftLayer& one : first.layers) {
    const auto other = std::find_if(again.layers.begin(), again.layers.end(),
                                    [&](const PeftLayer& layer) { return layer.path == one.path; });
    ASSERT_NE(other, again.layers.end());
    EXPECT_TRUE(one.a.same_bits(other->a) && one.b.same_bits(other->b));
    EXPECT_EQ(one.scale, other->scale);
  }
  run_pass(graph, "fuse_lora_weights", Dict{}, context);
  for (const auto& [path, module] : graph.modules()) {
    const Tensor& merged = tensor("merged." + path + ".weight");
    for (int64_t i = 0; i < merged.numel(); ++i)
      ASSERT_NEAR(module.find("weight")->item(i), merged.item(i), 1e-6) << path;
  }
}

TEST(adapters, of_peft_that_ask_for_more_are_refused) {
  namespace fs = std::filesystem;
  const std::string original = read(golden_path("lora/peft_adapter/adapter_config.json"));
  const auto message = [&](const std::string& from, const std::string& to) {
    const std::string folder = temporary_folder() + "/peft";
    fs::create_directories(folder);
    fs::copy_file(golden_path("lora/peft_adapter/adapter_model.safetensors"),
                  folder + "/adapter_model.safetensors", fs::copy_options::overwrite_existing);
    std::string text = original;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(folder + "/adapter_config.json") << text;
    try {
      read_peft(folder);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message("\"use_dora\": false", "\"use_dora\": true"), testing::HasSubstr("use_dora"));
  EXPECT_THAT(message("\"bias\": \"none\"", "\"bias\": \"all\""), testing::HasSubstr("biases"));
  EXPECT_THAT(message("\"LORA\"", "\"IA3\""), testing::HasSubstr("LORA"));
  EXPECT_THAT(message("\"r\": 4", "\"r\": 0"), testing::HasSubstr("no rank"));
  EXPECT_THAT(message("\"r\": 4", "\"r\": 4, \"surprise\": 1"), testing::HasSubstr("surprise"));
  EXPECT_EQ(message("\"use_rslora\": false", "\"use_rslora\": true"), "nothing");
}

}  // namespace
}  // namespace mase::test::adapter_passes_test
