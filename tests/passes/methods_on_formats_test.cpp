// SPDX-License-Identifier: Apache-2.0
// Every pass that works on quantised weights, on every family of number formats and, in turn, every
// kind of network: it runs, and what it promises holds, or it refuses in one line and nothing is
// changed.
#include <cmath>
#include <map>

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

// A config from the middle of every family's widths, or its defaults; scales with a format of their
// own and blocks that run across rows.
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
  if (record.schema.find("scale_format")) {
    Value config = configs.front();
    config.dict().set("scale_format", Dict{{"name", "half"}});
    config.dict().set("group_size", 24);  // ragged ends
    configs.push_back(config);
  }
  if (record.name == "mxint") configs.push_back(Dict{{"width", 4}, {"axis", 1}});
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

struct Outcomes {
  int ran = 0, changed = 0, refused = 0;
};

// Every method for a small network; larger ones take one in five, other ones for each format, so
// that the whole takes seconds.
void try_methods(const Network& network, const Graph& quantised, size_t place, size_t shares,
                 std::map<std::string, Outcomes>& outcomes) {
  const std::vector<Method> all = methods();
  for (size_t at = place % shares; at < all.size(); at += shares) {
    const Method& method = all[at];
    SCOPED_TRACE(method.name + to_json(method.args));
    Outcomes& outcome = outcomes[method.name + to_json(method.args)];
    Graph graph = quantised;
    PassContext context;
    context.original = &network.graph;
    context.samples = network.samples;
    const std::string before = state_text(graph);
    try {
      const PassResult result = run_pass(graph, method.name, method.args, context);
      verify(graph);
      ++outcome.ran;
      if (result.changed) ++outcome.changed;
      expect_not_worse(result.data);
      if (method.on_grid && !result.data["layers"].is_null())
        expect_on_grid(graph, result.data["layers"]);
      if (!result.changed) {
        EXPECT_EQ(state_text(graph), before);
        EXPECT_TRUE(same_tensors(graph, quantised));
      }
      // It still computes something.
      const auto results = evaluate(
          graph, {Array::from(drawn(graph, network.name.find('_') != std::string::npos, 2))});
      for (const double value : results[0].data) ASSERT_TRUE(std::isfinite(value));
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    } catch (const Error& error) {
      ++outcome.refused;
      const std::string what = error.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      EXPECT_GT(what.size(), 10U);
      EXPECT_EQ(state_text(graph), before) << what;
      EXPECT_TRUE(same_tensors(graph, quantised)) << what;
    }
  }
}

TEST(MethodsOnFormats, RunOrRefuseInOneLine) {
  const std::vector<Network> all = networks();
  std::map<std::string, Outcomes> outcomes;
  for (size_t n = 0; n < all.size(); ++n) {
    const Network& network = all[n];
    size_t place = n;  // so that networks take turns
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
        try_methods(network, quantised, place++, n == 0 ? 1 : 5, outcomes);
      }
  }
  // None of them passes by refusing everything.
  EXPECT_EQ(outcomes.size(), methods().size());
  int refused = 0;
  for (const auto& [method, outcome] : outcomes) {
    EXPECT_GT(outcome.ran, 20) << method;
    EXPECT_GT(outcome.changed, 5) << method;
    refused += outcome.refused;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace mase::methods_on_formats_test
