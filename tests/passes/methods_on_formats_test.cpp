// SPDX-License-Identifier: Apache-2.0
// Every pass that works on quantised weights, on every family of number formats and every kind of
// network: it runs, and what it promises holds, or it refuses in one line and nothing is changed.
#include <cmath>

#include "mase/formats/format.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/pass.h"
#include "mase/run/network.h"
#include "passes/networks.h"

namespace mase::methods_on_formats_test {
namespace {

struct Network {
  std::string name;
  Graph graph;
  Tensor samples;
};

Tensor drawn(const Graph& graph, bool tokens, int64_t rows) {
  Shape shape = graph.node(graph.placeholders().front()).sample_shape;
  shape.insert(shape.begin(), rows);
  Tensor x(shape);
  Random random(5, "methods_on_formats");
  for (float& value : std::span(x.mutable_data<float>(), static_cast<size_t>(x.numel())))
    value = tokens ? static_cast<float>(random.below(200)) : static_cast<float>(random.normal());
  return x;
}

std::vector<Network> networks() {
  std::vector<Network> result;
  for (const char* name : {"jsc-tiny", "lenet"}) {
    Graph graph = make_model(name);
    result.push_back({name, graph, drawn(graph, false, 16)});
  }
  for (const char* name : {"bert_cls", "llama_bf16"}) {
    Graph graph = graph_of_file(test::golden_path(std::string("language/") + name));
    result.push_back({name, graph, drawn(graph, true, 16)});
  }
  return result;
}

// The narrowest and a middle config of every family, and its defaults.
std::vector<Value> configs_of(const FormatRecord& record) {
  std::vector<Value> configs;
  if (record.ladder) {
    const std::vector<Value> ladder = record.ladder(1.0);
    if (!ladder.empty()) configs.push_back(ladder[ladder.size() / 2]);
  } else {
    Dict config;
    for (const Field& field : record.schema.fields)
      if (field.required) config.set(field.name, 4);
    configs.emplace_back(config);
  }
  return configs;
}

std::string state_text(const Graph& graph) {
  std::string text = graph.text();
  for (const auto& [path, module] : graph.modules())
    text += path + to_json(module.quantization.config);
  return text;
}

bool same_tensors(const Graph& a, const Graph& b) {
  if (a.modules().size() != b.modules().size()) return false;
  for (const auto& [path, module] : a.modules()) {
    const auto other = b.modules().find(path);
    if (other == b.modules().end() || other->second.parameters.size() != module.parameters.size())
      return false;
    for (const auto& [name, tensor] : module.parameters)
      if (!other->second.find(name) || !tensor.same_bits(*other->second.find(name))) return false;
  }
  return true;
}

struct Method {
  std::string name;
  Value args;
  bool on_grid = false;  // weights that were changed lie on the format's grid
};

std::vector<Method> methods() {
  const Dict rows{{"rows", 8}, {"heldout_rows", 8}};
  const auto with = [&](Dict more) {
    for (const auto& [key, value] : rows) more.set(key, value);
    return Value(more);
  };
  return {{"gptq", with({}), true},
          {"gptq", with({{"clip", List{1.0, 0.8}}}), true},
          {"clip_search", with({{"shares", List{1.0, 0.8}}}), false},
          {"adaround", with({{"steps", 4}}), true},
          {"flexround", with({{"steps", 4}}), true},
          {"awq", with({{"ratios", List{0.0, 0.5}}}), false},
          {"smoothquant", with({}), false},
          {"rotate", with({}), false},
          {"cross_layer_equalisation", with({}), false},
          {"bias_correction", with({}), false},
          {"lqer", with({{"rank", 2}}), false},
          {"lqer", with({{"rank", 2}, {"rounding", "gptq"}, {"rounds", 2}}), true}};
}

// What a method told of its layers: not worse on held-out rows.
void expect_not_worse(const Value& data) {
  if (data["layers"].is_null()) return;
  for (const auto& [name, layer] : data["layers"].as_dict()) {
    const double before = layer["heldout_before"].as_double(),
                 after = layer["heldout_after"].as_double();
    EXPECT_TRUE(after <= before) << name << " " << before << " " << after;
  }
}

void expect_on_grid(const Graph& graph, const Value& layers) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (!module || layers[node.name].is_null() || !(layers[node.name]["kept"] == Value(true)))
      continue;
    const std::string& name = op_of(graph, node)->product->weight;
    EXPECT_TRUE(quantize(*module->quantization.find(name), *module->find(name))
                    .same_bits(*module->find(name)))
        << node.name;
  }
}

int ran = 0, refused = 0;

void try_methods(const Network& network, const Graph& quantised) {
  for (const Method& method : methods()) {
    SCOPED_TRACE(method.name + to_json(method.args));
    Graph graph = quantised;
    PassContext context;
    context.original = &network.graph;
    context.samples = network.samples;
    const std::string before = state_text(graph);
    try {
      const PassResult result = run_pass(graph, method.name, method.args, context);
      verify(graph);
      ++ran;
      expect_not_worse(result.data);
      if (method.on_grid && !result.data["layers"].is_null())
        expect_on_grid(graph, result.data["layers"]);
      if (!result.changed) {
        EXPECT_EQ(state_text(graph), before);
        EXPECT_TRUE(same_tensors(graph, quantised));
      }
      // It still computes something.
      for (const double value :
           evaluate(graph,
                    {Array::from(drawn(graph, network.name.find('_') != std::string::npos, 2))})[0]
               .data)
        ASSERT_TRUE(std::isfinite(value));
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    } catch (const Error& error) {
      ++refused;
      const std::string what = error.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      EXPECT_GT(what.size(), 10U);
      EXPECT_EQ(state_text(graph), before) << what;
      EXPECT_TRUE(same_tensors(graph, quantised)) << what;
    }
  }
}

TEST(MethodsOnFormats, RunOrRefuseInOneLine) {
  for (const Network& network : networks())
    for (const FormatRecord* record : Registry<FormatRecord>::instance().all())
      for (const Value& config : configs_of(*record)) {
        SCOPED_TRACE(network.name + " " + record->name + to_json(config));
        Dict layer{{"name", record->name}, {"weight_only", true}};
        for (const auto& [key, value] : config.as_dict()) layer.set("weight_" + key, value);
        Dict rules;
        for (const char* op : {"linear", "conv2d"})
          for (const auto& [path, module] : network.graph.modules())
            if (module.op == op) rules.set(op, Dict{{"config", layer}});
        Graph quantised = network.graph;
        PassContext context;
        context.original = &network.graph;
        context.samples = network.samples;
        try {
          run_pass(quantised, "quantize", Value(rules), context);
        } catch (const InternalError& error) {
          ADD_FAILURE() << error.what();
          continue;
        } catch (const Error&) {
          continue;  // no format of weights
        }
        try_methods(network, quantised);
      }
  EXPECT_GT(ran, 500);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace mase::methods_on_formats_test
