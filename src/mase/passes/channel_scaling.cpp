// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/channel_scaling.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/passes/format_error.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"
#include "mase/passes/select.h"
#include "mase/passes/weight_method.h"

namespace mase {
namespace {

constexpr double most_change = 1e-4;  // of outputs without formats: sums in another order only

// Where the channels of a value are, and how many places of that axis each has.
struct Channels {
  size_t axis = 1;
  int64_t repeat = 1;
};

void scale_axis(Array& values, const Channels& at, const std::vector<double>& scales) {
  int64_t inner = 1;
  for (size_t i = at.axis + 1; i < values.shape.size(); ++i) inner *= values.shape[i];
  const int64_t length = values.shape[at.axis];
  for (size_t i = 0; i < values.data.size(); ++i)
    values.data[i] *=
        scales[static_cast<size_t>(static_cast<int64_t>(i) / inner % length / at.repeat)];
}

// One node alone on these inputs; nothing if it cannot stand alone.
std::optional<Array> alone(const Graph& graph, const Node& node, const std::vector<Array>& inputs) {
  Graph one;
  std::vector<Argument> args = node.args;
  size_t used = 0;
  for (Argument& argument : args) {
    if (std::holds_alternative<std::vector<Argument>>(argument.data)) return {};
    if (!argument.is_node()) continue;
    if (used == inputs.size() || is_size(graph.node(argument.id()))) return {};
    Shape sample(inputs[used].shape.begin() + 1, inputs[used].shape.end());
    argument = Argument::node(one.add_placeholder(fmt::format("x{}", used++), sample));
  }
  for (const auto& [name, argument] : node.kwargs)
    if (!std::holds_alternative<Value>(argument.data)) return {};
  if (used != inputs.size()) return {};
  try {
    NodeId result = -1;
    if (const Module* module = graph.module_of(node)) {
      one.modules()[node.target] = *module;
      result = one.call_module(node.target, args);
    } else if (node.kind == NodeKind::call_function) {
      result = one.call_function(node.target, args, node.kwargs);
    } else {
      result = one.call_method(node.target, args, node.kwargs);
    }
    one.add_output({result});
    return evaluate(one, inputs, {.quantized = false}).front();
  } catch (const Error&) {
    return {};  // no layer that stands alone: nothing is carried through it
  }
}

bool scaled_alike(const Array& plain, const Array& scaled, const Channels& at,
                  const std::vector<double>& scales) {
  Array wanted = plain;
  scale_axis(wanted, at, scales);
  for (size_t i = 0; i < wanted.data.size(); ++i)
    if (!(std::fabs(wanted.data[i] - scaled.data[i]) <= 1e-9 * (std::fabs(wanted.data[i]) + 1e-3)))
      return false;
  return true;
}

std::vector<double> drawn_scales(int64_t channels, Random& random) {
  std::vector<double> scales(static_cast<size_t>(channels));
  for (double& scale : scales) scale = 0.5 + 1.5 * random.uniform();
  return scales;
}

std::vector<Array> drawn_inputs(const Graph& graph, NodeId id, const std::vector<Shape>& shapes,
                                Random& random) {
  std::vector<Array> inputs;
  for (const NodeId input : graph.inputs_of(id)) {
    Array x(shapes[static_cast<size_t>(input)]);
    for (double& value : x.data) value = random.normal();
    inputs.push_back(std::move(x));
  }
  return inputs;
}

// Where a scale on the channels of input `which` comes out of this node; nothing if it does not.
std::optional<Channels> carried(const Graph& graph, NodeId id, NodeId from, const Channels& in,
                                int64_t channels, const std::vector<Shape>& shapes) {
  const std::vector<NodeId> inputs = graph.inputs_of(id);
  if (std::count(inputs.begin(), inputs.end(), from) != 1) return {};
  for (const NodeId input : inputs)
    if (shapes[static_cast<size_t>(input)].empty() || shapes[static_cast<size_t>(input)][0] != 1)
      return {};
  const auto which =
      static_cast<size_t>(std::find(inputs.begin(), inputs.end(), from) - inputs.begin());
  Random random(1, "carried");
  std::vector<Array> x = drawn_inputs(graph, id, shapes, random);
  const std::vector<double> scales = drawn_scales(channels, random);
  const std::optional<Array> plain = alone(graph, graph.node(id), x);
  if (!plain) return {};
  scale_axis(x[which], in, scales);
  const std::optional<Array> scaled = alone(graph, graph.node(id), x);
  Channels out = in;
  if (plain->shape.size() != x[which].shape.size()) out.axis = 1;  // flattened behind the batch
  if (out.axis >= plain->shape.size() || plain->shape[out.axis] % channels != 0) return {};
  out.repeat = plain->shape[out.axis] / channels;
  if (out.repeat == 0 || !scaled || !scaled_alike(*plain, *scaled, out, scales)) return {};
  return out;
}

void scale_rows(Module& module, const std::vector<double>& scales) {
  for (auto& [name, tensor] : module.parameters) {
    if (tensor.dtype() != DType::f32 || tensor.shape().empty() ||
        tensor.dim(0) != static_cast<int64_t>(scales.size()))
      continue;
    const int64_t row = tensor.numel() / tensor.dim(0);
    float* values = tensor.mutable_data<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i)
      values[i] = static_cast<float>(values[i] / scales[static_cast<size_t>(i / row)]);
  }
}

int64_t calls(const Graph& graph, const std::string& path) {
  return std::count_if(graph.order().begin(), graph.order().end(), [&](NodeId id) {
    return graph.node(id).kind == NodeKind::call_module && graph.node(id).target == path;
  });
}

// The channels of a layer's result, if its parameters' rows are they; else nothing.
std::optional<Channels> produced(const Graph& graph, NodeId id, const std::vector<Shape>& shapes,
                                 int64_t& channels) {
  const Node& node = graph.node(id);
  const Module* module = graph.module_of(node);
  const Tensor* weight = module ? module->find("weight") : nullptr;
  const Shape& out = shapes[static_cast<size_t>(id)];
  if (!weight || weight->shape().empty() || out.size() < 2 || calls(graph, node.target) != 1)
    return {};
  const OpRecord& op = *op_of(graph, node);
  channels = weight->dim(0);
  const auto axis_of = [&](int64_t axis) {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(out.size()) : axis);
  };
  if (op.product) {
    if (op.product->out_axis != 0 || op.product->weight != "weight") return {};
    return Channels{axis_of(op.product->channel_axis), 1};
  }
  if (op.multiplies_weights() || !learned_operands(*module).empty()) return {};
  if (op.channel_norm) return Channels{axis_of(op.channel_norm->channel_axis), 1};
  // Anything else is tried: a norm's gains and shifts scaled scale its result.
  if (out.back() != channels || graph.inputs_of(id).size() != 1) return {};
  Random random(2, "produced");
  const std::vector<Array> x = drawn_inputs(graph, id, shapes, random);
  const std::vector<double> scales = drawn_scales(channels, random);
  Graph changed = graph;
  std::vector<double> inverse = scales;
  for (double& scale : inverse) scale = 1 / scale;
  scale_rows(*changed.module_of(changed.node(id)), inverse);
  const std::optional<Array> plain = alone(graph, node, x),
                             scaled = alone(changed, changed.node(id), x);
  const Channels at{out.size() - 1, 1};
  // Parameters are float32.
  if (!plain || !scaled) return {};
  Array wanted = *plain;
  scale_axis(wanted, at, scales);
  for (size_t i = 0; i < wanted.data.size(); ++i)
    if (!(std::fabs(wanted.data[i] - scaled->data[i]) <= 1e-5 * (std::fabs(wanted.data[i]) + 1e-3)))
      return {};
  return at;
}

// Rows of a weight, columns of a group, taps: which channel stands at a place.
struct ConsumerForm {
  int64_t rows = 0, each = 0, taps = 1, groups = 1;
  int64_t channel(int64_t at, int64_t repeat) const {
    const int64_t row = at / (each * taps), column = at / taps % each;
    return (row * groups / rows * each + column) / repeat;
  }
};

ConsumerForm form_of(const Graph& graph, NodeId consumer) {
  const Node& node = graph.node(consumer);
  const Module& module = *graph.module_of(node);
  const ProductInfo& product = *op_of(graph, node)->product;
  const Shape& shape = module.find(product.weight)->shape();
  ConsumerForm form;
  form.rows = shape[0];
  form.each = shape[1];
  for (size_t i = 2; i < shape.size(); ++i) form.taps *= shape[i];
  if (!product.groups_attribute.empty())
    form.groups = module.attributes[product.groups_attribute].as_int();
  return form;
}

// Why these products cannot take the scale; empty if they can.
std::string consumer_obstacle(const Graph& graph, const ScalingSite& site, const Channels& at,
                              const std::vector<Shape>& shapes) {
  const std::vector<NodeId> outputs = graph.outputs();
  if (std::count(outputs.begin(), outputs.end(), site.source)) return "its result is an output";
  const auto rank = static_cast<int64_t>(shapes[static_cast<size_t>(site.source)].size());
  for (const NodeId id : site.consumers) {
    const Node& node = graph.node(id);
    if (const std::string why = no_product_reason(graph, node); !why.empty())
      return fmt::format("{} takes its result too: {}", node.name, why);
    const int64_t axis = op_of(graph, node)->product->channel_axis;
    if (static_cast<size_t>(axis < 0 ? axis + rank : axis) != at.axis)
      return fmt::format("{} sums over another axis", node.name);
    const ConsumerForm form = form_of(graph, id);
    if (form.each * form.groups != site.channels * site.repeat)
      return fmt::format("{} takes {} channels", node.name, form.each * form.groups);
    if (!graph.module_of(node)->quantization.config["weight_step"].is_null())
      return fmt::format("the scales of {} are given already", node.name);
  }
  return "";
}

std::string number(double value) { return fmt::format("{:.3e}", value); }

// Nothing but the weight of this layer is rounded, if anything is.
bool rounds_weight_alone(const Graph& graph, NodeId id) {
  const Module& module = *graph.module_of(graph.node(id));
  if (!module.quantization.active()) return true;
  const std::string& weight = op_of(graph, graph.node(id))->product->weight;
  for (const auto& [operand, quantizer] : module.quantization.operands)
    if (quantizer && (operand != weight || quantizer->learned)) return false;
  return true;
}

// A layer by itself on these inputs.
Tensor result_alone(const Graph& graph, NodeId id, const Tensor& x, int threads) {
  const Node& node = graph.node(id);
  Graph one;
  const NodeId from = one.add_placeholder("x", Shape(x.shape().begin() + 1, x.shape().end()));
  one.modules()[node.target] = *graph.module_of(node);
  one.add_output({one.call_module(node.target, {Argument::node(from)})});
  return run(one, {x}, threads).front();
}

// What a site's scales do to the results of its consumers: squares of differences from what the
// network without formats gives, over their power; inputs are that network's, so errors of other
// layers do not count. Layers that round their weights alone are judged by second moments.
class SiteJudge {
 public:
  SiteJudge(const Graph& reference, const std::vector<Tensor>& rows, int threads)
      : reference_(reference), rows_(rows, threads), threads_(threads) {}

  // Goes on to this site; sites come in the order of their sources.
  void take(const Graph& graph, const ScalingSite& site, bool with_inputs) {
    moments_.clear();
    whole_ = nullptr;
    bool alone = true;
    for (const NodeId id : site.consumers) alone = alone && rounds_weight_alone(graph, id);
    if (alone || with_inputs) moments_ = product_inputs(reference_, site.consumers, rows_);
    if (!alone) whole_ = rows_.result(reference_, site.source);
    alone_ = alone;
  }
  const InputsOfNodes& moments() const { return moments_; }

  // `scales`: of the site's channels, where `graph` has them already; empty: it has not.
  double error(const Graph& graph, const ScalingSite& site, const std::vector<double>& scales) {
    if (!alone_ && !whole_)
      return format_error(reference_, graph, site.consumers, rows_.all_rows(), threads_);
    double error = 0, power = 0;
    for (const NodeId id : site.consumers) {
      const Module& module = *graph.module_of(graph.node(id));
      const std::string& name = op_of(graph, graph.node(id))->product->weight;
      if (alone_) {
        const Quantizer* quantizer = module.quantization.find(name);
        if (!quantizer) continue;
        const Tensor& plain = *reference_.module_of(reference_.node(id))->find(name);
        Tensor used = quantize(*quantizer, *module.find(name));
        if (!scales.empty()) {
          Graph scaled = graph;
          *scaled.module_of(scaled.node(id))->find(name) = std::move(used);
          used = scaled_columns(site, scaled, id, scales, true);
        }
        error += output_error(plain, used, *moments_.at(id), threads_);
        power += output_error(plain, Tensor(plain.shape()), *moments_.at(id), threads_);
        continue;
      }
      constexpr int64_t piece = 64;
      for (int64_t first = 0; first < whole_->dim(0); first += piece) {
        const Tensor x = rows_of(*whole_, first, std::min(piece, whole_->dim(0) - first));
        const Tensor wanted = result_alone(reference_, id, x, threads_);
        const Tensor found = result_alone(graph, id, divided(x, site, scales), threads_);
        for (int64_t i = 0; i < wanted.numel(); ++i) {
          const double value = wanted.data<float>()[i], other = found.data<float>()[i];
          error += (other - value) * (other - value);
          power += value * value;
        }
      }
    }
    return power > 0 ? error / power : error;
  }

 private:
  // Channels of a source, as its consumers take them, divided by their scales.
  Tensor divided(const Tensor& x, const ScalingSite& site,
                 const std::vector<double>& scales) const {
    if (scales.empty()) return x;
    const auto rank = static_cast<int64_t>(x.shape().size());
    const int64_t axis =
        op_of(reference_, reference_.node(site.consumers.front()))->product->channel_axis;
    int64_t inner = 1;
    for (int64_t i = (axis < 0 ? axis + rank : axis) + 1; i < rank; ++i) inner *= x.dim(i);
    const int64_t length = site.channels * site.repeat;
    Tensor result = x;
    float* values = result.mutable_data<float>();
    for (int64_t i = 0; i < x.numel(); ++i)
      values[i] = static_cast<float>(values[i] /
                                     scales[static_cast<size_t>(i / inner % length / site.repeat)]);
    return result;
  }

  const Graph& reference_;
  LayerStream rows_;
  int threads_;
  InputsOfNodes moments_;
  const Tensor* whole_ = nullptr;
  bool alone_ = false;
};

}  // namespace

std::vector<ScalingSite> scaling_sites(const Graph& graph, Dict& left) {
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  std::vector<ScalingSite> sites;
  for (const NodeId id : graph.order()) {
    ScalingSite site;
    std::optional<Channels> at = produced(graph, id, shapes, site.channels);
    if (!at) continue;
    site.producer = site.source = id;
    site.from_norm = !op_of(graph, graph.node(id))->product;
    const std::string& name = graph.node(id).name;
    if (!graph.module_of(graph.node(id))->quantization.config["weight_step"].is_null()) {
      left.set(name, "its scales are given already");
      continue;
    }
    std::string why;
    while (why.empty()) {
      site.consumers = graph.users(site.source);
      if (site.consumers.empty()) break;
      const NodeId next = site.consumers.front();
      const OpRecord* op = op_of(graph, graph.node(next));
      if (site.consumers.size() > 1 || (op && op->multiplies_weights())) break;
      const std::vector<NodeId> outputs = graph.outputs();
      if (!op || std::count(outputs.begin(), outputs.end(), site.source)) {
        why = "its result is an output";
        break;
      }
      const std::optional<Channels> through =
          carried(graph, next, site.source, *at, site.channels, shapes);
      if (!through) {
        why = fmt::format("{} lets no scale through", graph.node(next).name);
        break;
      }
      at = through;
      site.repeat = through->repeat;
      site.source = next;
    }
    if (why.empty() && site.consumers.empty()) why = "nothing takes its result";
    if (why.empty()) why = consumer_obstacle(graph, site, *at, shapes);
    if (why.empty())
      sites.push_back(std::move(site));
    else
      left.set(name, why);
  }
  return sites;
}

std::vector<double> channel_statistic(const ScalingSite& site, const Graph& graph, NodeId consumer,
                                      const std::vector<double>& columns, bool largest) {
  const ConsumerForm form = form_of(graph, consumer);
  std::vector<double> result(static_cast<size_t>(site.channels), 0.0), counts(result.size(), 0.0);
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / form.taps / site.repeat);
    result[channel] =
        largest ? std::max(result[channel], columns[i]) : result[channel] + columns[i];
    counts[channel] += 1;
  }
  if (!largest)
    for (size_t i = 0; i < result.size(); ++i) result[i] /= std::max(1.0, counts[i]);
  return result;
}

std::vector<double> consumer_ranges(const ScalingSite& site, const Graph& graph) {
  std::vector<double> ranges(static_cast<size_t>(site.channels), 0.0);
  for (const NodeId id : site.consumers) {
    const ConsumerForm form = form_of(graph, id);
    const Node& node = graph.node(id);
    const Tensor& weight = *graph.module_of(node)->find(op_of(graph, node)->product->weight);
    for (int64_t i = 0; i < weight.numel(); ++i) {
      double& range = ranges[static_cast<size_t>(form.channel(i, site.repeat))];
      range = std::max(range, std::fabs(static_cast<double>(weight.data<float>()[i])));
    }
  }
  return ranges;
}

std::vector<double> producer_ranges(const ScalingSite& site, const Graph& graph) {
  const Tensor& weight = *graph.module_of(graph.node(site.producer))->find("weight");
  const int64_t row = weight.numel() / std::max<int64_t>(1, site.channels);
  std::vector<double> ranges(static_cast<size_t>(site.channels), 0.0);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    double& range = ranges[static_cast<size_t>(i / row)];
    range = std::max(range, std::fabs(static_cast<double>(weight.data<float>()[i])));
  }
  return ranges;
}

Tensor scaled_columns(const ScalingSite& site, const Graph& graph, NodeId consumer,
                      const std::vector<double>& scales, bool inverse) {
  const ConsumerForm form = form_of(graph, consumer);
  const Node& node = graph.node(consumer);
  Tensor weight = *graph.module_of(node)->find(op_of(graph, node)->product->weight);
  float* values = weight.mutable_data<float>();
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const double scale = scales[static_cast<size_t>(form.channel(i, site.repeat))];
    values[i] = static_cast<float>(inverse ? values[i] / scale : values[i] * scale);
  }
  return weight;
}

void refit(Module& module) {
  for (const LearnedOperand& learned : learned_operands(module))
    if (!is_activation(learned.operand))
      std::erase_if(module.parameters,
                    [&](const auto& entry) { return entry.first == learned.parameter; });
  fit_learned_parameters(module);
}

void apply_scales(Graph& graph, const ScalingSite& site, const std::vector<double>& scales) {
  for (const NodeId id : site.consumers) {
    Tensor weight = scaled_columns(site, graph, id, scales);
    Module& module = *graph.module_of(graph.node(id));
    *module.find(op_of(graph, graph.node(id))->product->weight) = std::move(weight);
    refit(module);
  }
  Module& producer = *graph.module_of(graph.node(site.producer));
  scale_rows(producer, scales);
  refit(producer);
}

Schema scaling_method_schema(std::vector<Field> own) {
  Schema schema{
      {by_field(), list_field("target_nodes",
                              "layers whose results are scaled; all that can be if not given")}};
  for (Field& field : calibration_fields()) schema.fields.push_back(std::move(field));
  for (Field& field : own) schema.fields.push_back(std::move(field));
  return schema;
}

PassResult scale_channels(Graph& graph, const Value& args, PassContext& context,
                          const ScalingMethod& method) {
  Dict left;
  std::vector<ScalingSite> sites = scaling_sites(graph, left);
  std::erase_if(sites, [&](const ScalingSite& site) { return !method.wants(site); });
  if (!args["target_nodes"].is_null()) {
    Problems problems;
    const std::vector<NodeId> nodes =
        select_nodes(graph, select_by(args["by"]), args["target_nodes"], "target_nodes", problems);
    problems.throw_if_any();
    std::erase_if(sites, [&](const ScalingSite& site) {
      return !std::count(nodes.begin(), nodes.end(), site.producer);
    });
  }
  Dict data{{"layers", Dict{}}, {"left_alone", Value(left)}};
  if (sites.empty()) {
    print(context, fmt::format("{}: no layer whose result's scales could move\n", method.name));
    return {std::move(data), false};
  }
  const CalibrationRows rows = calibration_rows(graph, args, context);
  const Graph reference = without_formats(graph);
  const bool judged = has_formats(graph);
  Graph changed = graph;
  Table table({"From", "To", "Before", "After", "Before (held out)", "After (held out)", ""});
  Dict layers;
  bool any = false;
  const std::vector<NodeId>& order = graph.order();
  std::stable_sort(sites.begin(), sites.end(), [&](const ScalingSite& a, const ScalingSite& b) {
    return std::find(order.begin(), order.end(), a.source) <
           std::find(order.begin(), order.end(), b.source);
  });
  SiteJudge seen(reference, rows.seen, context.threads),
      heldout(reference, rows.heldout, context.threads);
  for (size_t at = 0; at < sites.size(); ++at) {
    const ScalingSite& site = sites[at];
    if (judged || method.needs_inputs) seen.take(changed, site, method.needs_inputs);
    if (judged) heldout.take(changed, site, false);
    SiteInputs inputs{{}, context.threads};
    if (method.needs_inputs)
      for (const NodeId id : site.consumers) inputs.of.push_back(seen.moments().at(id));
    std::string note;
    const std::vector<double> scales = method.scales(changed, site, inputs, note);
    for (const double scale : scales)
      MASE_CHECK(std::isfinite(scale) && scale > 0, "a scale of {}", scale);
    Graph tried = changed;
    apply_scales(tried, site, scales);
    double before = 0, held = 0, after = 0, held_after = 0;
    if (judged) {
      before = seen.error(changed, site, {});
      held = heldout.error(changed, site, {});
      after = seen.error(tried, site, scales);
      held_after = heldout.error(tried, site, scales);
    }
    const bool kept = held_after <= held;
    std::string what = note;
    if (kept) {
      changed = std::move(tried);
      any = true;
    } else {
      what = fmt::format("left alone: {} on held-out rows", number(held_after));
      after = before;
      held_after = held;
    }
    std::string names;
    for (const NodeId id : site.consumers)
      names += (names.empty() ? "" : ", ") + graph.node(id).name;
    const std::string& from = graph.node(site.producer).name;
    table.add({from, names, number(before), number(after), number(held), number(held_after), what});
    layers.set(from, Dict{{"to", names},
                          {"before", before},
                          {"after", after},
                          {"heldout_before", held},
                          {"heldout_after", held_after},
                          {"kept", kept},
                          {"note", what}});
    if (context.progress)
      context.progress(static_cast<double>(at + 1) / static_cast<double>(sites.size()));
  }
  // Without formats nothing may have changed.
  const std::vector<Tensor> some = few_rows(rows.heldout);
  const double change = largest_change(reference, without_formats(changed), some, context.threads);
  if (!(change <= most_change))
    throw Error(
        method.name,
        fmt::format("outputs without number formats changed by {} of the largest", number(change)),
        "leave out layers by target_nodes; nothing was changed");
  graph = std::move(changed);
  print(context, fmt::format("{}: {}, on {} rows seen and {} held out\n{}\nOutputs without number "
                             "formats changed by at most {} of the largest.\n",
                             method.name,
                             judged ? "errors of layers' results relative to their power"
                                    : "no number formats, so nothing is judged",
                             rows.seen.at(0).dim(0), rows.heldout.at(0).dim(0), table.str(),
                             number(change)));
  data.set("calibration", rows.record());
  data.set("layers", std::move(layers));
  data.set("judged", judged);
  data.set("change_without_formats", change);
  return {std::move(data), any};
}

}  // namespace mase
