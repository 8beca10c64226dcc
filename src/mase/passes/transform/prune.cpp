// SPDX-License-Identifier: Apache-2.0
// prune: sets the least important weights of products to zero and keeps a mask, so that
// retraining leaves them there. Exactly the asked share is removed: round(sparsity * n) values (or
// channels), ties broken by index. `activation` removes input features: a masked input is the same
// as a zeroed column of weights, so it becomes part of the same mask.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/formats/groups.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"
#include "mase/passes/select.h"

namespace mase::prune_pass {
namespace {

// One thing that is kept or removed: a value, or a channel of values.
struct Item {
  size_t layer = 0;
  int64_t index = 0;
  double importance = 0;
};

struct Layer {
  std::string path, node, weight;  // the weight: one of the layer's
  NodeId id = -1;
  Grouping outputs, inputs;  // of the weight, by channel
  std::vector<Item> weight_items, input_items;
  Tensor mask;
};

const Schema settings = {{
    number_field("sparsity", "share that is set to zero", 0.0).between(0, 1),
    text_field("scope", "the share holds in each layer, or over all of them", "local",
               {"local", "global"}),
    text_field("granularity", "single values, or whole output channels", "elementwise",
               {"elementwise", "channel"}),
    text_field("method", "what is removed first: the smallest, or any", "l1-norm",
               {"l1-norm", "l1", "random"}),
}};

// The weights a node's layer multiplies by; none if it calls no such layer.
std::vector<std::string> weights_of(const Graph& graph, const Node& node) {
  const Module* module = graph.module_of(node);
  if (!module || !op_of(graph, node)->multiplies_weights()) return {};
  std::vector<std::string> names = operand_rules(*op_of(graph, node)).parts_of("weight");
  std::erase_if(names, [&](const std::string& name) { return !module->find(name); });
  return names;
}

// Channels of a grouped product meet only some of the weights, those of several products several.
bool has_channels(const Graph& graph, const Node& node) {
  const auto& product = op_of(graph, node)->product;
  if (!product) return false;
  const std::string& attribute = product->groups_attribute;
  return attribute.empty() || graph.module_of(node)->attributes[attribute].as_int() == 1;
}

std::vector<NodeId> targets(const Graph& graph, const Value& args, const std::string& path,
                            Problems& problems) {
  std::vector<NodeId> nodes;
  for (const NodeId id : args["target_nodes"].is_null()
                             ? graph.order()
                             : select_nodes(graph, select_by(args["by"]), args["target_nodes"],
                                            path + ".target_nodes", problems)) {
    const Node& node = graph.node(id);
    const bool shared = std::any_of(nodes.begin(), nodes.end(), [&](NodeId other) {
      return graph.node(other).target == node.target;
    });
    if (!weights_of(graph, node).empty() && !shared) nodes.push_back(id);
  }
  return nodes;
}

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  const size_t before = problems.errors().size();
  for (const char* kind : {"weight", "activation"})
    if (!args[kind].is_null()) validate(args[kind], settings, path + "." + kind, problems);
  if (args["weight"].is_null() && args["activation"].is_null())
    problems.add(Error(args.position(), path, "nothing says what to prune",
                       "add a table [" + path + ".weight] with a sparsity"));
  const std::vector<NodeId> nodes = targets(graph, args, path, problems);
  if (nodes.empty() && problems.errors().size() == before)
    problems.add(Error(args.position(), path, "there is no layer with a weight to prune"));
  const Value& granularity = args["weight"]["granularity"];
  const bool channels = granularity.is_string() && granularity.as_string() == "channel";
  if (channels || !args["activation"].is_null())
    for (const NodeId id : nodes)
      if (!has_channels(graph, graph.node(id)))
        problems.add(Error(
            args.position(), path,
            fmt::format("'{}' multiplies in {}: its channels are not pruned", graph.node(id).name,
                        op_of(graph, graph.node(id))->product ? "groups" : "several products"),
            "leave it out of target_nodes, or prune single weights"));
}

// Marks round(sparsity * n) items as removed, least important first, ties by layer and index.
void choose(std::vector<Item> items, double sparsity,
            const std::function<void(const Item&)>& drop) {
  const auto count =
      static_cast<size_t>(std::llround(sparsity * static_cast<double>(items.size())));
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.importance < b.importance; });
  for (size_t i = 0; i < count && i < items.size(); ++i) drop(items[i]);
}

void choose_all(const std::vector<Layer>& layers, std::vector<Item> Layer::*items,
                const Value& options, const std::function<void(const Item&)>& drop) {
  const double sparsity = options["sparsity"].as_double();
  std::vector<Item> all;
  for (const Layer& layer : layers) {
    if (options["scope"].as_string() == "local")
      choose(layer.*items, sparsity, drop);
    else
      all.insert(all.end(), (layer.*items).begin(), (layer.*items).end());
  }
  if (!all.empty()) choose(std::move(all), sparsity, drop);
}

std::vector<Item> weight_items(const Tensor& weight, const Grouping& outputs, size_t layer,
                               const Value& options, Random& random) {
  const bool channel = options["granularity"].as_string() == "channel";
  const bool chance = options["method"].as_string() == "random";
  std::vector<Item> items;
  const float* values = weight.data<float>();
  for (int64_t i = 0; i < (channel ? outputs.groups : weight.numel()); ++i) {
    double importance = 0;
    if (channel)
      outputs.for_each(i, [&](int64_t at) { importance += std::abs(values[at]); });
    else
      importance = std::abs(values[i]);
    items.push_back({layer, i, chance ? random.uniform() : importance});
  }
  return items;
}

// Sum of absolute values of every input channel of the layers, on the samples.
std::map<NodeId, std::vector<double>> input_importance(const Graph& graph,
                                                       const std::vector<Layer>& layers,
                                                       PassContext& context, int64_t rows) {
  std::map<NodeId, std::vector<double>> sums;  // by layer
  std::vector<NodeId> sources;
  for (const Layer& layer : layers) sources.push_back(graph.inputs_of(layer.id).front());
  observe_nodes(graph, sample_inputs(graph, context, rows), sources,
                [&](NodeId source, const Tensor& result) {
                  for (const Layer& layer : layers) {
                    if (graph.inputs_of(layer.id).front() != source) continue;
                    const OpRecord& op = *op_of(graph, graph.node(layer.id));
                    const Grouping channels = grouping(
                        result.shape(), {Granularity::Kind::axis, op.product->channel_axis});
                    std::vector<double>& sum = sums[layer.id];
                    sum.resize(static_cast<size_t>(channels.groups));
                    const float* values = result.data<float>();
                    for (int64_t c = 0; c < channels.groups; ++c)
                      channels.for_each(c, [&](int64_t at) {
                        sum[static_cast<size_t>(c)] += std::abs(values[at]);
                      });
                  }
                });
  return sums;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Problems problems;
  Random random(context.seed, "prune");
  std::vector<Layer> layers;
  const Value weight_options =
      args["weight"].is_null() ? Value() : validate(args["weight"], settings, "prune.weight");
  const Value input_options = args["activation"].is_null()
                                  ? Value()
                                  : validate(args["activation"], settings, "prune.activation");
  for (const NodeId id : targets(graph, args, "prune", problems)) {
    const Node& node = graph.node(id);
    const std::vector<std::string> names = weights_of(graph, node);
    const ProductInfo product = op_of(graph, node)->product.value_or(ProductInfo{});
    using Kind = Granularity::Kind;
    for (const std::string& name : names) {
      const Tensor& weight = *graph.module_of(node)->find(name);
      Layer layer{node.target,
                  names.size() > 1 ? node.name + "." + name : node.name,
                  name,
                  id,
                  grouping(weight.shape(), {Kind::axis, product.out_axis}),
                  grouping(weight.shape(), {Kind::axis, product.in_axis}),
                  {},
                  {},
                  Tensor(weight.shape())};
      std::fill_n(layer.mask.mutable_data<float>(), layer.mask.numel(), 1.0f);
      if (!weight_options.is_null())
        layer.weight_items =
            weight_items(weight, layer.outputs, layers.size(), weight_options, random);
      layers.push_back(std::move(layer));
    }
  }
  if (!weight_options.is_null()) {
    const bool channel = weight_options["granularity"].as_string() == "channel";
    choose_all(layers, &Layer::weight_items, weight_options, [&](const Item& item) {
      float* mask = layers[item.layer].mask.mutable_data<float>();
      if (channel)
        layers[item.layer].outputs.for_each(item.index, [&](int64_t at) { mask[at] = 0; });
      else
        mask[item.index] = 0;
    });
  }
  if (!input_options.is_null()) {
    const bool chance = input_options["method"].as_string() == "random";
    const auto importance = input_importance(graph, layers, context, args["num_samples"].as_int());
    for (size_t l = 0; l < layers.size(); ++l) {
      const std::vector<double>& sums = importance.at(layers[l].id);
      for (size_t i = 0; i < sums.size(); ++i)
        layers[l].input_items.push_back(
            {l, static_cast<int64_t>(i), chance ? random.uniform() : sums[i]});
    }
    choose_all(layers, &Layer::input_items, input_options, [&](const Item& item) {
      float* mask = layers[item.layer].mask.mutable_data<float>();
      layers[item.layer].inputs.for_each(item.index, [&](int64_t at) { mask[at] = 0; });
    });
  }

  Table table({"Layer", "Weights", "Removed", "Sparsity"});
  List rows;
  int64_t all = 0, all_removed = 0;
  for (const Layer& layer : layers) {
    Module& module = graph.modules().at(layer.path);
    float* values = module.find(layer.weight)->mutable_data<float>();
    int64_t removed = 0;
    for (int64_t i = 0; i < layer.mask.numel(); ++i) {
      if (layer.mask.data<float>()[i] != 0) continue;
      values[i] = 0;
      ++removed;
    }
    const auto old = std::find_if(module.masks.begin(), module.masks.end(),
                                  [&](const auto& entry) { return entry.first == layer.weight; });
    if (old != module.masks.end()) module.masks.erase(old);
    if (removed > 0) module.masks.emplace_back(layer.weight, layer.mask);
    all += layer.mask.numel();
    all_removed += removed;
    const double share = layer.mask.numel() > 0 ? static_cast<double>(removed) /
                                                      static_cast<double>(layer.mask.numel())
                                                : 0;
    table.add({layer.node, with_thousands(layer.mask.numel()), with_thousands(removed),
               fmt::format("{:.4f}", share)});
    rows.push_back(Dict{{"node", layer.node},
                        {"weights", layer.mask.numel()},
                        {"removed", removed},
                        {"sparsity", share}});
  }
  const double share = all > 0 ? static_cast<double>(all_removed) / static_cast<double>(all) : 0;
  table.add(
      {"total", with_thousands(all), with_thousands(all_removed), fmt::format("{:.4f}", share)});
  print(context, table.str(TableStyle::orgtbl));
  return {Dict{{"layers", rows}, {"weights", all}, {"removed", all_removed}, {"sparsity", share}},
          all_removed > 0};
}

const Register<PassRecord> registered{{
    .name = "prune",
    .aliases = {"prune_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Sets the least important weights to zero and keeps them there",
    .help = "[passes.prune.weight] sparsity, scope (local, global), granularity (elementwise,\n"
            "channel), method (l1-norm, random); [passes.prune.activation] the same for input\n"
            "features, ranked by their mean absolute value on the samples.",
    .schema = {{
        table_field("weight", "how weights are pruned"),
        table_field("activation", "how input features are pruned"),
        by_field(),
        list_field("target_nodes", "the layers; all that multiply by a weight if not given"),
        integer_field("num_samples", "rows on which input features are ranked", 256).from(1),
    }},
    .check = check,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::prune_pass
