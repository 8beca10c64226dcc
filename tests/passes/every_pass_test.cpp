// SPDX-License-Identifier: Apache-2.0
// Every registered pass on every built-in network and on 200 random graphs: the graph verifies
// before and after, what a pass calls unchanged is unchanged, and a transform that promises to keep
// outputs keeps them.
#include <cmath>

#include "mase/ir/evaluate.h"
#include "mase/passes/metadata.h"
#include "mase/passes/pass.h"
#include "passes/networks.h"

namespace mase::every_pass_test {
namespace {

// Arguments with which each pass has something to do; passes not listed run with none.
Value arguments_for(const std::string& pass) {
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias", "data_out"}) {
    config.set(fmt::format("{}_width", operand), 8);
    config.set(fmt::format("{}_frac_width", operand), 4);
  }
  if (pass == "quantize" || pass == "training_base")
    return Dict{{"default", Dict{{"config", config}}}};
  if (pass == "prune") return Dict{{"weight", Dict{{"sparsity", 0.5}}}};
  if (pass == "profile_statistics") {
    const Value all(
        Dict{{"range_quantile", Dict()}, {"variance_precise", Dict()}, {"histogram", Dict()}});
    return Dict{{"by", "regex_name"},
                {"target_weight_nodes", List{Value(".*")}},
                {"target_activation_nodes", List{Value(".*")}},
                {"weight_statistics", all},
                {"activation_statistics", all},
                {"num_samples", 8}};
  }
  if (pass == "draw_graph") return Dict{{"layout", "builtin"}};
  if (pass == "calibrate") return Dict{{"num_samples", 16}};
  if (pass == "compare_graphs" || pass == "verify_quantization" || pass == "add_pruning_metadata")
    return Dict{{"num_samples", 16}};
  return Dict();
}

bool has_linear(const Graph& graph) {
  for (const auto& [path, module] : graph.modules())
    if (module.op == "linear") return true;
  return false;
}

void expect_pass_keeps_its_word(const PassRecord& pass, const Graph& network,
                                PassContext& context) {
  // Files of others, which tests/run/adapter_passes_test.cpp has.
  if (pass.name == "load_lora_adapter" || pass.name == "save_lora_adapter") return;
  if ((pass.name == "prune" || pass.name == "calibrate") && !has_linear(network)) return;
  Graph graph = network;
  verify(graph);
  context.original = &network;
  const Value args = arguments_for(pass.name);
  PassResult result;
  try {
    prepare_passes(graph, {{pass.name, args, pass.name}});
    result = run_pass(graph, pass.name, args, context);
  } catch (const Error& error) {
    FAIL() << pass.name << ": " << error.what() << "\n" << network.text();
  }
  verify(graph);
  if (pass.pass_kind == PassKind::analysis) {
    EXPECT_FALSE(result.changed) << pass.name;
  }
  if (!result.changed) {
    EXPECT_EQ(graph.text(), network.text()) << pass.name;
    for (const auto& [path, module] : graph.modules())
      for (const auto& [name, tensor] : module.parameters)
        EXPECT_TRUE(tensor.same_bits(*network.modules().at(path).find(name))) << pass.name << path;
  }
  if (pass.tolerance < 0) return;
  std::vector<Array> inputs;
  for (const Tensor& tensor : sample_inputs(network, context, 5))
    inputs.push_back(Array::from(tensor));
  const Array before = evaluate(network, inputs)[0], after = evaluate(graph, inputs)[0];
  ASSERT_EQ(before.shape, after.shape) << pass.name;
  for (size_t i = 0; i < before.data.size(); ++i)
    ASSERT_NEAR(before.data[i], after.data[i],
                pass.tolerance * std::max(1.0, std::abs(before.data[i])))
        << pass.name << "\n"
        << network.text();
}

TEST(EveryPass, RunsOnEveryModel) {
  PassContext context;
  context.batch_size = 8;
  context.save_dir = test::temporary_folder();
  for (const ModelRecord* model : Registry<ModelRecord>::instance().all()) {
    // Every pass over a large network takes minutes, and its layers are those of the small ones.
    if (make_model(model->name, {.values = false}).parameter_count() > 100000) continue;
    Graph graph = make_model(model->name);
    Random random(1, model->name);
    test::shake(graph, random);
    for (const PassRecord* pass : Registry<PassRecord>::instance().all()) {
      SCOPED_TRACE(model->name);
      expect_pass_keeps_its_word(*pass, graph, context);
    }
  }
}

TEST(EveryPass, RunsOnRandomGraphs) {
  PassContext context;
  context.batch_size = 4;
  context.save_dir = test::temporary_folder();
  for (uint64_t seed = 0; seed < (test::sanitized ? 50 : 200); ++seed) {
    const Graph graph = test::random_graph(seed);
    context.seed = seed;
    for (const PassRecord* pass : Registry<PassRecord>::instance().all()) {
      SCOPED_TRACE(seed);
      expect_pass_keeps_its_word(*pass, graph, context);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(EveryPass, HasItsLongNameAndHelp) {
  for (const PassRecord* pass : Registry<PassRecord>::instance().all()) {
    EXPECT_FALSE(pass->summary.empty()) << pass->name;
    ASSERT_FALSE(pass->aliases.empty()) << pass->name;
    EXPECT_EQ(pass->aliases[0],
              pass->name +
                  (pass->pass_kind == PassKind::analysis ? "_analysis_pass" : "_transform_pass"));
    for (const Field& field : pass->schema.fields) EXPECT_FALSE(field.help.empty()) << field.name;
  }
}

}  // namespace
}  // namespace mase::every_pass_test
