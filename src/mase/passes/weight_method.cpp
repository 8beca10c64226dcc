// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/weight_method.h"

#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/engine/kernels/double_products.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/passes/lora.h"
#include "mase/passes/output.h"
#include "mase/passes/select.h"

namespace mase {
namespace {

struct LayerErrors {
  double seen = 0, heldout = 0;
};

// Errors of outputs relative to their power, on both sets of rows.
class LayerJudge {
 public:
  LayerJudge(const Tensor& weight, const ProductInputs& seen, const ProductInputs& heldout,
             int threads)
      : weight_(weight), seen_(seen), heldout_(heldout), threads_(threads) {
    const Tensor zero(weight.shape());
    power_ = {output_error(weight, zero, seen, threads),
              output_error(weight, zero, heldout, threads)};
  }
  LayerErrors of(const Tensor& other) const {
    const auto share = [&](const ProductInputs& inputs, double power) {
      const double error = output_error(weight_, other, inputs, threads_);
      return power > 0 ? error / power : error;
    };
    return {share(seen_, power_.seen), share(heldout_, power_.heldout)};
  }

 private:
  const Tensor& weight_;
  const ProductInputs &seen_, &heldout_;
  int threads_;
  LayerErrors power_;
};

// The layer whose format has the scales of this tensor written down; nothing if it cannot say them.
std::optional<Module> with_scales(const Module& layer, const OpRecord& op, const Tensor& source) {
  const std::string& name = op.product->weight;
  const Value frozen = frozen_config(*layer.quantization.find(name), source);
  if (frozen.is_null()) return {};
  Value config = layer.quantization.config;
  for (const auto& [key, value] : frozen.as_dict())
    if (!value.is_null()) config.dict().set(name + "_" + key, value);
  Module changed = layer;
  Problems problems;
  changed.quantization = parse_quantization(config, operand_rules(op), layer.op, problems);
  if (!problems.empty() || !changed.quantization.find(name)) return {};
  return changed;
}

// The layer with the weights chosen, such that its own format keeps them; nothing if it does not.
std::optional<Module> with_choice(const Module& layer, const OpRecord& op,
                                  const WeightChoice& choice) {
  const std::string& name = op.product->weight;
  const auto gives = [&](const Module& module) {
    return quantize(*module.quantization.find(name), *module.find(name)).same_bits(choice.weight);
  };
  if (choice.stays) {
    if (gives(layer)) return layer;
    if (std::optional<Module> scaled = with_scales(layer, op, choice.scales_from);
        scaled && gives(*scaled))
      return scaled;
    Module cut = layer;
    *cut.find(name) = choice.scales_from;
    return cut;
  }
  Module changed = layer;
  *changed.find(name) = choice.weight;
  if (gives(changed)) return changed;
  std::optional<Module> scaled = with_scales(changed, op, choice.scales_from);
  return scaled && gives(*scaled) ? scaled : std::nullopt;
}

void put_beside(Graph& graph, const std::string& path, const ThinProducts& beside, uint64_t seed) {
  LoraOptions options;
  options.rank = beside.a.dim(0);
  options.seed = seed;
  insert_lora(graph, path, options);
  for (const auto& [part, tensor] :
       {std::pair{lora_a_path(path), &beside.a}, {lora_b_path(path), &beside.b}}) {
    Module& own = graph.modules().at(part);
    *own.find("weight") = *tensor;
    own.quantization = beside.format;
  }
}

// Bits of a layer's weight and of what stands beside it, per value of the weight.
double bits_per_weight(const Quantizer& quantizer, const Tensor& weight,
                       const std::optional<ThinProducts>& beside) {
  double bits = quantizer.bits_per_value(weight.shape());
  if (!beside) return bits;
  const Quantizer* thin = beside->format.find("weight");
  for (const Tensor* part : {&beside->a, &beside->b})
    bits += (thin ? thin->bits_per_value(part->shape()) : 32.0) *
            static_cast<double>(part->numel()) / static_cast<double>(weight.numel());
  return bits;
}

std::vector<NodeId> targets(const Graph& graph, const Value& args) {
  if (args["target_nodes"].is_null()) return graph.order();
  Problems problems;
  std::vector<NodeId> nodes =
      select_nodes(graph, select_by(args["by"]), args["target_nodes"], "target_nodes", problems);
  problems.throw_if_any();
  return nodes;
}

// Why this layer is none of the method's; empty if it is.
std::string obstacle(const Graph& graph, const Node& node) {
  if (const std::string why = no_product_reason(graph, node); !why.empty()) return why;
  const Module& module = *graph.module_of(node);
  const std::string& name = op_of(graph, node)->product->weight;
  const Quantizer* quantizer = module.quantization.find(name);
  if (!quantizer) return "its weight has no number format";
  for (const auto& [masked, mask] : module.masks)
    if (masked == name) return "it is pruned: prune behind the method";
  return "";
}

std::string error_text(double error) { return fmt::format("{:.3e}", error); }

}  // namespace

Tensor with_thin_products(const Tensor& weight, const ThinProducts& beside, double share,
                          int threads) {
  const auto as_used = [&](const Tensor& tensor) {
    const Quantizer* quantizer = beside.format.find("weight");
    return quantizer ? quantize(*quantizer, tensor) : tensor;
  };
  const Tensor a = as_used(beside.a), b = as_used(beside.b);
  const int64_t rank = a.dim(0), columns = a.dim(1);
  std::vector<double> sum(static_cast<size_t>(weight.numel()));
  for (int64_t i = 0; i < weight.numel(); ++i)
    sum[static_cast<size_t>(i)] = weight.data<float>()[i];
  kernels::multiply_doubles({.rows = b.dim(0),
                             .columns = columns,
                             .inner = rank,
                             .a = {.floats = b.data<float>(), .row = rank},
                             .b = {.floats = a.data<float>(), .row = columns},
                             .out = sum.data(),
                             .out_row = columns,
                             .factor = share,
                             .accumulate = true},
                            threads);
  Tensor result = weight;
  std::copy(sum.begin(), sum.end(), result.mutable_data<float>());
  return result;
}

std::vector<double> row_errors(const Tensor& weight, const Tensor& other,
                               const ProductInputs& inputs, int threads) {
  const int64_t n = inputs.columns, rows = weight.numel() / std::max<int64_t>(1, n),
                each = rows / inputs.groups;
  std::vector<double> errors;
  for (int64_t g = 0; g < inputs.groups; ++g) {
    std::vector<double> differences(static_cast<size_t>(each * n));
    const float *from = weight.data<float>() + g * each * n,
                *to = other.data<float>() + g * each * n;
    for (size_t i = 0; i < differences.size(); ++i)
      differences[i] = static_cast<double>(to[i]) - static_cast<double>(from[i]);
    const std::vector<double> own =
        quadratic_forms(differences, inputs.hessians[static_cast<size_t>(g)], n, threads);
    errors.insert(errors.end(), own.begin(), own.end());
  }
  return errors;
}

double output_error(const Tensor& weight, const Tensor& other, const ProductInputs& inputs,
                    int threads) {
  double sum = 0;
  for (const double error : row_errors(weight, other, inputs, threads)) sum += error;
  return sum / 2;  // H has a factor of two
}

Schema weight_method_schema(std::vector<Field> own) {
  Schema schema{{by_field(),
                 list_field("target_nodes", "which layers; all quantised products if not given")}};
  for (Field& field : calibration_fields()) schema.fields.push_back(std::move(field));
  for (Field& field : own) schema.fields.push_back(std::move(field));
  return schema;
}

PassResult improve_weights(Graph& graph, const Value& args, PassContext& context,
                           const WeightMethod& method) {
  const std::vector<NodeId> nodes = targets(graph, args);
  std::vector<NodeId> work;
  Dict left;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (!graph.module_of(node) || !op_of(graph, node)->multiplies_weights() ||
        is_lora_part(node.target))
      continue;
    std::string why = obstacle(graph, node);
    if (why.empty() && method.obstacle) why = method.obstacle(graph, node);
    if (why.empty())
      work.push_back(id);
    else
      left.set(node.name, why);
  }
  Dict data{{"layers", Dict{}}, {"left_alone", Value(left)}};
  if (work.empty()) {
    print(context, fmt::format("{}: no quantised product to work on\n", method.name));
    return {std::move(data), false};
  }
  const CalibrationRows rows = calibration_rows(graph, args, context);
  // What a method refuses is refused before anything is changed.
  for (const NodeId id : work) {
    const Module& module = *graph.module_of(graph.node(id));
    const std::string& name = op_of(graph, graph.node(id))->product->weight;
    try {
      const FrozenGrid grid(*module.quantization.find(name), *module.find(name));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: layer {}", method.name, graph.node(id).name), error.what());
    }
  }
  Graph changed = graph;
  Table table({"Node", "Inputs", "Bits per weight", "Before", "After", "Before (held out)",
               "After (held out)", ""});
  Dict layers;
  bool any = false;
  // Layers with one input follow each other and share what is known of it.
  InputsOfNodes seen, heldout;
  LayerStream seen_rows(rows.seen, context.threads), heldout_rows(rows.heldout, context.threads);
  NodeId collected = -1;
  for (size_t at = 0; at < work.size(); ++at) {
    const NodeId id = work[at];
    const NodeId source = changed.inputs_of(id).front();
    if (source != collected) {
      std::vector<NodeId> same;
      for (size_t other = at; other < work.size(); ++other)
        if (changed.inputs_of(work[other]).front() == source) same.push_back(work[other]);
      seen = {};
      heldout = {};
      seen = product_inputs(changed, same, seen_rows);
      heldout = product_inputs(changed, same, heldout_rows);
      collected = source;
    }
    const std::string node = changed.node(id).name, path = changed.node(id).target;
    Module& module = *changed.module_of(changed.node(id));
    const OpRecord& op = *op_of(changed, changed.node(id));
    const Tensor weight = *module.find(op.product->weight);
    const Quantizer& quantizer = *module.quantization.find(op.product->weight);
    const ProductInputs& inputs = *seen.at(id);
    const WeightProblem problem{quantizer, weight,       weight.dim(0),   inputs.columns,
                                inputs,    context.seed, context.threads, method.clips};
    const LayerJudge judge(weight, inputs, *heldout.at(id), context.threads);
    const LayerErrors before = judge.of(quantize(quantizer, weight));
    double bits = bits_per_weight(quantizer, weight, {});
    WeightChoice choice = method.choose(problem);
    LayerErrors after = before;  // of the layer as it stands when the pass is through
    std::string what = choice.why;
    if (what.empty()) {
      const LayerErrors tried = judge.of(
          choice.beside ? with_thin_products(choice.weight, *choice.beside) : choice.weight);
      if (!(tried.heldout <= before.heldout)) {
        what = fmt::format("left alone: {} on held-out rows", error_text(tried.heldout));
      } else if (std::optional<Module> better = with_choice(module, op, choice)) {
        any = any || choice.beside || !better->find(op.product->weight)->same_bits(weight) ||
              !(better->quantization.config == module.quantization.config);
        bits =
            bits_per_weight(*better->quantization.find(op.product->weight), weight, choice.beside);
        module = std::move(*better);
        if (choice.beside) put_beside(changed, path, *choice.beside, context.seed);
        after = tried;
      } else {
        what = "left alone: the format would round the result again";
      }
    }
    table.add({node, std::to_string(inputs.vectors), fmt::format("{:.2f}", bits),
               error_text(before.seen), error_text(after.seen), error_text(before.heldout),
               error_text(after.heldout), what});
    layers.set(node, Dict{{"before", before.seen},
                          {"after", after.seen},
                          {"heldout_before", before.heldout},
                          {"heldout_after", after.heldout},
                          {"vectors", inputs.vectors},
                          {"bits_per_weight", bits},
                          {"kept", what.empty()},
                          {"note", what}});
    if (context.progress)
      context.progress(static_cast<double>(at + 1) / static_cast<double>(work.size()));
  }
  graph = std::move(changed);
  print(context,
        fmt::format("{}: errors of outputs relative to their power, on {} rows seen and {} "
                    "held out\n{}\n",
                    method.name, rows.seen.at(0).dim(0), rows.heldout.at(0).dim(0), table.str()));
  data.set("calibration", rows.record());
  data.set("layers", std::move(layers));
  return {std::move(data), any};
}

}  // namespace mase
