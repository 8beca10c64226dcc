// SPDX-License-Identifier: Apache-2.0
// prune: sets the least important weights of products to zero and keeps a mask, so that
// retraining leaves them there. What is least important says a criterion (criterion.h). Exactly the
// asked share is removed: round(sparsity * n) values (or channels, or blocks), ties broken by
// index; criteria that work in parts (rows, blocks of columns) keep the share in each of them.
// `activation` removes input features: a masked input is the same as a zeroed column of weights, so
// it becomes part of the same mask.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/engine/program.h"
#include "mase/formats/groups.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/criterion.h"
#include "mase/passes/format_error.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"
#include "mase/passes/rotation.h"
#include "mase/passes/select.h"
#include "mase/passes/weight_method.h"

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
  std::vector<int64_t> units;  // the item of every value
  Tensor mask;
  double heldout = -1;  // error of its results on held-out rows, where inputs were looked at
};

std::optional<std::string> known_criterion(const Value& name) {
  const auto& criteria = Registry<CriterionRecord>::instance();
  if (criteria.find(name.as_string())) return {};
  return "choose one of: " + join(criteria.names(), ", ");
}

const Schema settings = {{
    number_field("sparsity", "share that is set to zero", 0.0).between(0, 1),
    text_field("scope", "the share holds in each layer, or over all of them", "local",
               {"local", "global"}),
    text_field("granularity",
               "single values, whole output channels or rows of the weight as a matrix, blocks, "
               "heads of attention (of the layer that takes them), n of every m values of a row, "
               "or all but n inputs of every row (fan_in)",
               "elementwise", {"elementwise", "channel", "row", "block", "head", "n:m", "fan_in"}),
    text_field("method", "what is removed first: a criterion (ch --info criterion)", "l1-norm")
        .checked(known_criterion),
    integer_field("n", "values that are kept of every m (n:m), or of every row (fan_in)", 2)
        .between(0, 1 << 20),
    integer_field("m", "granularity n:m: values beside each other in a row", 4).between(1, 1024),
    integer_field("steps", "method movement: steps of training, by plain gradient descent", 20)
        .between(1, 1e6),
    number_field("learning_rate", "method movement: of these steps", 0.01).between(0, 10),
    list_field("block_size", "granularity block: rows and columns of the weight as a matrix",
               List{4, 4})
        .checked([](const Value& value) -> std::optional<std::string> {
          const List& sizes = value.as_list();
          const bool good =
              sizes.size() == 2 && std::all_of(sizes.begin(), sizes.end(), [](const Value& size) {
                return size.is_int() && size.as_int() > 0 && size.as_int() < 1 << 20;
              });
          return good ? std::optional<std::string>() : "expected two sizes above 0";
        }),
}};

const CriterionRecord& criterion_of(const Value& options) {
  return Registry<CriterionRecord>::instance().get(options["method"].as_string());
}

bool keeps_some_of_many(const Value& options) {
  const std::string& granularity = options["granularity"].as_string();
  return granularity == "n:m" || granularity == "fan_in";
}

// `row`: values of a row of the weight as a matrix.
Sparsity sparsity_of(const Value& options, int64_t row) {
  Sparsity sparsity{options["sparsity"].as_double()};
  if (keeps_some_of_many(options)) {
    sparsity.n = options["n"].as_int();
    sparsity.m = options["granularity"].as_string() == "n:m" ? options["m"].as_int() : row;
  }
  return sparsity;
}

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

// The width of a head by the layer that takes the results of all of them.
std::map<NodeId, int64_t> head_widths(const Graph& graph) {
  std::map<NodeId, int64_t> widths;
  Dict left;
  for (const RotationHeads& heads : rotation_heads(graph, left)) widths[heads.taker] = heads.width;
  return widths;
}

// What a criterion cannot do.
void check_weight_options(const Graph& graph, const std::vector<NodeId>& nodes,
                          const Value& options, const std::string& path, Problems& problems) {
  const CriterionRecord& criterion = criterion_of(options);
  const std::string& granularity = options["granularity"].as_string();
  const bool global = options["scope"].as_string() == "global";
  const auto refuse = [&](const std::string& cause, const std::string& remedy) {
    problems.add(Error(options.position(), path + ".weight", cause, remedy));
  };
  if (keeps_some_of_many(options)) {
    if (global) refuse(granularity + " is a share of every layer", "leave out scope");
    if (granularity == "n:m" && options["n"].as_int() > options["m"].as_int())
      refuse(fmt::format("{} of every {} cannot be kept", options["n"].as_int(),
                         options["m"].as_int()),
             "give an n up to m");
    if (options["sparsity"].as_double() > 0)
      refuse(granularity + " says the share already", "leave out sparsity");
  }
  if (criterion.solve && (global || (granularity != "elementwise" && !keeps_some_of_many(options))))
    refuse(fmt::format("{} removes single values of one layer after another", criterion.name),
           "take scope local, and granularity elementwise, n:m or fan_in");
  if (granularity == "head") {
    const std::map<NodeId, int64_t> heads = head_widths(graph);
    for (const NodeId id : nodes)
      if (!heads.count(id))
        refuse(fmt::format("'{}' takes no heads of attention", graph.node(id).name),
               heads.empty() ? "take another granularity"
                             : fmt::format("name such layers in target_nodes: {}",
                                           graph.node(heads.begin()->first).name));
  }
  if (criterion.needs_inputs)
    for (const NodeId id : nodes)
      if (const std::string why = no_product_reason(graph, graph.node(id)); !why.empty())
        refuse(fmt::format("{} cannot judge '{}': {}", criterion.name, graph.node(id).name, why),
               "leave it out of target_nodes, or take another method");
}

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  const size_t before = problems.errors().size();
  Value weight;
  for (const char* kind : {"weight", "activation"}) {
    if (args[kind].is_null()) continue;
    const Value options = validate(args[kind], settings, path + "." + kind, problems);
    if (std::string(kind) == "weight") weight = options;
  }
  if (args["weight"].is_null() && args["activation"].is_null())
    problems.add(Error(args.position(), path, "nothing says what to prune",
                       "add a table [" + path + ".weight] with a sparsity"));
  const std::vector<NodeId> nodes = targets(graph, args, path, problems);
  if (nodes.empty() && problems.errors().size() == before)
    problems.add(Error(args.position(), path, "there is no layer with a weight to prune"));
  const Value& of_inputs = args["activation"]["method"];
  if (of_inputs.is_string() && !(of_inputs == Value("l1-norm")) && !(of_inputs == Value("l1")) &&
      !(of_inputs == Value("random")))
    problems.add(Error(of_inputs.position(), path + ".activation.method",
                       "input features are ranked by magnitude or at random",
                       "give l1-norm or random"));
  if (!weight.is_null() && problems.errors().size() == before)
    check_weight_options(graph, nodes, weight, path, problems);
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

// The item that every value of the weight belongs to: itself, its channel, its block, its head.
std::vector<int64_t> units_of(const Tensor& weight, const Grouping& outputs, const Value& options,
                              int64_t head_width) {
  const std::string& granularity = options["granularity"].as_string();
  std::vector<int64_t> units(static_cast<size_t>(weight.numel()));
  if (granularity == "channel") {
    for (int64_t g = 0; g < outputs.groups; ++g)
      outputs.for_each(g, [&](int64_t at) { units[static_cast<size_t>(at)] = g; });
  } else if (granularity == "block") {
    const List& sizes = options["block_size"].as_list();
    const int64_t columns = weight.numel() / std::max<int64_t>(1, weight.dim(0)),
                  high = sizes[0].as_int(), wide = sizes[1].as_int(),
                  across = (columns + wide - 1) / wide;
    for (int64_t at = 0; at < weight.numel(); ++at)
      units[static_cast<size_t>(at)] = at / columns / high * across + at % columns / wide;
  } else if (granularity == "row" || granularity == "head") {
    const int64_t columns = weight.numel() / std::max<int64_t>(1, weight.dim(0));
    for (int64_t at = 0; at < weight.numel(); ++at)
      units[static_cast<size_t>(at)] =
          granularity == "row" ? at / columns : at % columns / head_width;
  } else {
    std::iota(units.begin(), units.end(), int64_t{0});
  }
  return units;
}

std::vector<Item> items_of(const Layer& layer, size_t index,
                           const std::vector<double>& importance) {
  std::vector<Item> items;
  for (size_t at = 0; at < importance.size(); ++at) {
    const int64_t unit = layer.units[at];
    while (static_cast<int64_t>(items.size()) <= unit)
      items.push_back({index, static_cast<int64_t>(items.size()), 0});
    items[static_cast<size_t>(unit)].importance += importance[at];
  }
  return items;
}

// Steps of plain gradient descent on the mean cross-entropy over the samples.
struct Descent {
  int64_t steps = 0;  // 0: the gradient alone, of all rows together
  double rate = 0;
};

// By parameter: the gradient over all samples, or over steps of training the sum of minus weight
// times gradient.
std::map<std::string, Tensor> loss_gradients(const Graph& graph, const PassContext& context,
                                             int64_t most_rows, const Descent& descent = {}) {
  if (context.samples.numel() == 0 || context.labels.numel() == 0)
    throw Error("prune", "the method needs rows with classes", "name a data set of classes");
  const int64_t rows = std::min({context.samples.dim(0), context.labels.numel(), most_rows});
  CompileOptions options;
  options.training = true;
  options.batch_size = rows_at_once(graph, std::min<int64_t>(rows, descent.steps > 0 ? 64 : 256));
  options.freeze_batch_norm = true;
  options.threads = context.threads;
  options.loss = {"cross_entropy", TargetKind::classes, [](Lowering& to, Slot output, Slot target) {
                    return to.cross_entropy(output, target, std::nullopt);
                  }};
  Program program = Program::compile(graph, options);
  const Tensor x = rows_of(context.samples, 0, rows).to(DType::f32),
               labels = rows_of(context.labels, 0, rows).to(DType::i32);
  Batch batch;
  batch.inputs = {x};
  batch.target = RowTensor(labels, "target");
  std::map<std::string, Tensor> gradients;
  if (descent.steps > 0) {
    for (const ParameterView& parameter : program.parameters())
      gradients.emplace(parameter.name, Tensor(parameter.shape));
    for (int64_t step = 0, first = 0; step < descent.steps; ++step) {
      batch.first_row = first;
      batch.size = std::min(options.batch_size, rows - first);
      first = first + options.batch_size < rows ? first + options.batch_size : 0;
      program.forward_backward(batch);
      for (ParameterView& parameter : program.parameters()) {
        float* moved = gradients.at(parameter.name).mutable_data<float>();
        for (size_t i = 0; i < parameter.value.size(); ++i) {
          moved[i] -= parameter.value[i] * parameter.gradient[i];
          parameter.value[i] -= static_cast<float>(descent.rate) * parameter.gradient[i];
        }
      }
      program.parameters_changed();
    }
    return gradients;
  }
  for (int64_t first = 0; first < rows; first += options.batch_size) {
    batch.first_row = first;
    batch.size = std::min(options.batch_size, rows - first);
    program.forward_backward(batch, first > 0);
  }
  for (const ParameterView& parameter : program.parameters()) {
    Tensor gradient(parameter.shape);
    std::copy(parameter.gradient.begin(), parameter.gradient.end(), gradient.mutable_data<float>());
    gradients.emplace(parameter.name, std::move(gradient));
  }
  return gradients;
}

// The values of the items that go.
void mask_items(Layer& layer, const std::vector<char>& gone) {
  float* mask = layer.mask.mutable_data<float>();
  for (size_t at = 0; at < layer.units.size(); ++at)
    if (gone[static_cast<size_t>(layer.units[at])]) mask[at] = 0;
}

void set_mask(Module& module, const std::string& weight, const Tensor& mask) {
  float* values = module.find(weight)->mutable_data<float>();
  int64_t removed = 0;
  for (int64_t i = 0; i < mask.numel(); ++i)
    if (mask.data<float>()[i] == 0) {
      values[i] = 0;
      ++removed;
    }
  std::erase_if(module.masks, [&](const auto& entry) { return entry.first == weight; });
  if (removed > 0) module.masks.emplace_back(weight, mask);
}

// Chooses the masks of weights, and applies them to a graph layer after layer, so that inputs are
// those that the layers before, already pruned, give.
void prune_weights(Graph& graph, std::vector<Layer>& layers, const Value& options,
                   const Value& args, PassContext& context, Random& random) {
  const CriterionRecord& criterion = criterion_of(options);
  const bool global = options["scope"].as_string() == "global";
  std::optional<CalibrationRows> rows;
  if (criterion.needs_inputs) rows = calibration_rows(graph, args, context);
  std::map<std::string, Tensor> gradients;
  if (criterion.needs_gradients || criterion.needs_movement)
    gradients = loss_gradients(
        graph, context, args["rows"].is_null() ? 512 : args["rows"].as_int(),
        criterion.needs_movement
            ? Descent{options["steps"].as_int(), options["learning_rate"].as_double()}
            : Descent{});
  const Graph before = graph;
  const std::map<NodeId, int64_t> heads = options["granularity"].as_string() == "head"
                                              ? head_widths(graph)
                                              : std::map<NodeId, int64_t>();
  std::optional<LayerStream> stream;
  if (rows) stream.emplace(rows->seen, context.threads);
  for (size_t l = 0; l < layers.size(); ++l) {
    Layer& layer = layers[l];
    const Tensor weight = *graph.modules().at(layer.path).find(layer.weight);
    const Sparsity sparsity =
        sparsity_of(options, weight.numel() / std::max<int64_t>(1, weight.dim(0)));
    InputsOfNodes seen;
    if (rows) seen = product_inputs(graph, {layer.id}, *stream);
    CriterionProblem problem{weight, random};
    if (rows) problem.inputs = seen.at(layer.id).get();
    if (criterion.needs_gradients || criterion.needs_movement) {
      const auto gradient = gradients.find(tensor_name(layer.path, layer.weight));
      if (gradient == gradients.end())
        throw Error("prune", fmt::format("'{}' is not trained: there is no gradient", layer.node),
                    "leave it out of target_nodes");
      (criterion.needs_movement ? problem.movement : problem.gradient) = &gradient->second;
    }
    if (criterion.solve) {
      PrunedWeight pruned = criterion.solve(problem, sparsity);
      if (!pruned.why.empty()) throw Error("prune", layer.node + ": " + pruned.why);
      layer.mask = std::move(pruned.mask);
      *graph.modules().at(layer.path).find(layer.weight) = std::move(pruned.weight);
    } else {
      const auto head = heads.find(layer.id);
      layer.units =
          units_of(weight, layer.outputs, options, head == heads.end() ? 1 : head->second);
      const std::vector<double> importance = criterion.importance(problem);
      float* mask = layer.mask.mutable_data<float>();
      const int64_t row = weight.numel() / std::max<int64_t>(1, weight.dim(0));
      if (sparsity.m > 0) {
        for (const int64_t at : least_important(importance, sparsity, row)) mask[at] = 0;
      } else if (criterion.by_rows && !global &&
                 options["granularity"].as_string() == "elementwise") {
        for (int64_t first = 0; first < weight.numel(); first += row)
          for (const int64_t at : least_important(
                   {importance.begin() + first, importance.begin() + first + row}, sparsity, row))
            mask[first + at] = 0;
      } else {
        layer.weight_items = items_of(layer, l, importance);
        std::vector<char> gone(layer.weight_items.size());
        if (!global)
          choose(layer.weight_items, sparsity.share,
                 [&](const Item& item) { gone[static_cast<size_t>(item.index)] = 1; });
        mask_items(layer, gone);
      }
    }
    if (!global) set_mask(graph.modules().at(layer.path), layer.weight, layer.mask);
    if (context.progress)
      context.progress(static_cast<double>(l + 1) / static_cast<double>(layers.size()));
  }
  if (global) {
    std::vector<std::vector<char>> gone;
    for (const Layer& layer : layers) gone.emplace_back(layer.weight_items.size());
    choose_all(layers, &Layer::weight_items, options,
               [&](const Item& item) { gone[item.layer][static_cast<size_t>(item.index)] = 1; });
    for (size_t l = 0; l < layers.size(); ++l) mask_items(layers[l], gone[l]);
  }
  if (!rows) return;
  // What it costs: inputs are those of the network as it was, results the layer's by itself.
  for (Layer& layer : layers) {
    const InputsOfNodes held =
        product_inputs(before, {layer.id}, rows->heldout, most_vectors_of_one, context.threads);
    const ProductInputs& inputs = *held.at(layer.id);
    const Tensor& whole = *before.modules().at(layer.path).find(layer.weight);
    set_mask(graph.modules().at(layer.path), layer.weight, layer.mask);
    const double power = output_error(whole, Tensor(whole.shape()), inputs);
    const double error =
        output_error(whole, *graph.modules().at(layer.path).find(layer.weight), inputs);
    layer.heldout = power > 0 ? error / power : error;
  }
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

PassResult report(const std::vector<Layer>& layers, const PassContext& context) {
  const bool judged = std::any_of(layers.begin(), layers.end(),
                                  [](const Layer& layer) { return layer.heldout >= 0; });
  std::vector<std::string> header = {"Layer", "Weights", "Removed", "Sparsity"};
  if (judged) header.emplace_back("Error (held out)");
  Table table(header);
  const auto add = [&](std::vector<std::string> row, double error) {
    if (judged) row.push_back(error >= 0 ? fmt::format("{:.3e}", error) : "");
    table.add(std::move(row));
  };
  List rows;
  int64_t all = 0, all_removed = 0;
  const auto share_of = [](int64_t removed, int64_t of) {
    return of > 0 ? static_cast<double>(removed) / static_cast<double>(of) : 0.0;
  };
  for (const Layer& layer : layers) {
    const float* mask = layer.mask.data<float>();
    const int64_t removed = std::count(mask, mask + layer.mask.numel(), 0.0f);
    all += layer.mask.numel();
    all_removed += removed;
    const double share = share_of(removed, layer.mask.numel());
    add({layer.node, with_thousands(layer.mask.numel()), with_thousands(removed),
         fmt::format("{:.4f}", share)},
        layer.heldout);
    Dict row{{"node", layer.node},
             {"weights", layer.mask.numel()},
             {"removed", removed},
             {"sparsity", share}};
    if (layer.heldout >= 0) row.set("heldout_error", layer.heldout);
    rows.push_back(std::move(row));
  }
  const double share = share_of(all_removed, all);
  add({"total", with_thousands(all), with_thousands(all_removed), fmt::format("{:.4f}", share)},
      -1);
  print(context, table.str(TableStyle::orgtbl));
  return {Dict{{"layers", rows}, {"weights", all}, {"removed", all_removed}, {"sparsity", share}},
          all_removed > 0};
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
                  {},
                  Tensor(weight.shape())};
      std::fill_n(layer.mask.mutable_data<float>(), layer.mask.numel(), 1.0f);
      layers.push_back(std::move(layer));
    }
  }
  std::map<NodeId, std::vector<double>> importance;  // of inputs, before anything is removed
  if (!input_options.is_null())
    importance = input_importance(graph, layers, context, args["num_samples"].as_int());
  Graph changed = graph;
  if (!weight_options.is_null())
    prune_weights(changed, layers, weight_options, args, context, random);
  if (!input_options.is_null()) {
    const bool chance = input_options["method"].as_string() == "random";
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
  for (const Layer& layer : layers)
    set_mask(changed.modules().at(layer.path), layer.weight, layer.mask);
  graph = std::move(changed);
  return report(layers, context);
}

Schema schema() {
  Schema result{{
      table_field("weight", "how weights are pruned"),
      table_field("activation", "how input features are pruned"),
      by_field(),
      list_field("target_nodes", "the layers; all that multiply by a weight if not given"),
      integer_field("num_samples", "rows on which input features are ranked", 256).from(1),
  }};
  for (Field& field : calibration_fields()) result.fields.push_back(std::move(field));
  return result;
}

const Register<PassRecord> registered{{
    .name = "prune",
    .aliases = {"prune_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Sets the least important weights to zero and keeps them there",
    .help = "[passes.prune.weight] sparsity, scope (local, global), granularity (elementwise,\n"
            "channel, row, block with block_size, head, n:m with n and m, fan_in with n), method\n"
            "(ch --info criterion; movement: steps, learning_rate);\n"
            "[passes.prune.activation] sparsity, scope and method (l1-norm, random) of input\n"
            "features, ranked by their mean absolute value on the samples.",
    .schema = schema(),
    .check = check,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::prune_pass
