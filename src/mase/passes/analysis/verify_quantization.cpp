// SPDX-License-Identifier: Apache-2.0
// verify_quantization: proves that what quantised layers compute with lies on the grid of its
// format, and shows it: weights, a random input and the outputs before and after.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/base/tensor_text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/passes/compare.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"

namespace mase::verify_quantization_pass {
namespace {

// True if the numbers of the type are the same for all data.
bool is_static(const NumberType& type) {
  const Scaled* scaled = type.as<Scaled>();
  return is_elementwise(type) || type.as<Fixed>() ||
         (scaled && scaled->source == Scaled::Source::given);
}

// Values a format represents survive its own code, or rounding once more. Returns how many do not.
// Scales that come from the data come from the values before rounding.
int64_t off_grid(const Quantizer& quantizer, const Tensor& values, const Tensor& rounded) {
  Tensor again = rounded;
  const Tensor& coded = quantizer.type && is_static(*quantizer.type) ? rounded : values;
  if (quantizer.code_bits > 0)
    quantizer.decode(quantizer.encode(coded.data<float>(), coded.shape()),
                     again.mutable_data<float>(), rounded.shape());
  else
    again = quantize(quantizer, rounded);
  int64_t off = 0;
  for (int64_t i = 0; i < rounded.numel(); ++i) {
    const float a = rounded.data<float>()[i], b = again.data<float>()[i];
    off += !(a == b || (std::isnan(a) && std::isnan(b)));
  }
  return off;
}

struct Tally {
  int64_t values = 0, off = 0;
};

void check_operand(const Quantizer& quantizer, const Tensor& values, Tally& tally) {
  tally.values += values.numel();
  tally.off += off_grid(quantizer, values, quantize(quantizer, values));
}

Tensor random_sample(const Shape& shape, uint64_t seed, const std::string& name) {
  Tensor tensor(shape);
  Random random(seed, "verify:" + name);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data<float>()[i] = static_cast<float>(random.normal());
  return tensor;
}

// The layer alone, on this input.
Tensor layer_output(const Module& module, const Tensor& input) {
  Graph graph;
  const Shape& sample = input.shape();
  const NodeId x = graph.add_placeholder("x", sample);
  graph.add_output({graph.add_module("layer", module, {x})});
  Shape batched = sample;
  batched.insert(batched.begin(), 1);
  const std::vector<Array> out = evaluate(graph, {Array::from(input.reshaped(batched))});
  Shape shape = out.front().shape;
  shape.erase(shape.begin());
  return out.front().to_tensor().reshaped(shape);
}

std::string sample_text(const Module& original, const Module& after, const Node& node,
                        const Shape& input_shape, uint64_t seed) {
  Module before = original;
  before.quantization = {};  // a graph that was quantised when it was loaded has no other original
  std::string text = fmt::format("Original graph target: {}\n\nQuantised graph target: {}\n\n",
                                 module_text(before), module_text(after));
  if (const Tensor* weight = before.find("weight")) {
    text += fmt::format("Weights of original graph: {}\n\n", parameter_text(*weight));
    text += fmt::format("Weights of the quantised graph: {}\n\n",
                        parameter_text(*after.find("weight")));
    if (after.quantization.find("weight"))
      text += fmt::format("Weights as the quantised layer uses them ({}):\n {}\n\n",
                          operand_text(after.quantization.find("weight")),
                          tensor_text(used_parameter(after, "weight")));
  }
  const Tensor input = random_sample(input_shape, seed, node.name);
  text += fmt::format("Random input for the graph:\n {}\n\n", tensor_text(input));
  text += fmt::format("Output of the original graph:\n {}\n\n",
                      tensor_text(layer_output(before, input)));
  text +=
      fmt::format("Output of the quantised graph:\n {}\n", tensor_text(layer_output(after, input)));
  return text;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  std::vector<NodeId> quantized, sources;
  for (const NodeId id : graph.order()) {
    if (!graph.quantization_of(graph.node(id)).active()) continue;
    quantized.push_back(id);
    sources.push_back(id);
    for (const NodeId input : graph.inputs_of(id)) sources.push_back(input);
  }
  std::map<NodeId, std::map<std::string, Tally>> tallies;
  for (const NodeId id : quantized)
    if (const Module* module = graph.module_of(graph.node(id)))
      for (const auto& [name, tensor] : numeric_tensors(*module))
        if (const QuantizerPtr quantizer = current_quantizer(module->quantization, module, name))
          check_operand(*quantizer, tensor, tallies[id][name]);
  if (!quantized.empty())
    observe_nodes(graph, sample_inputs(graph, context, args["num_samples"].as_int()), sources,
                  [&](NodeId source, const Tensor& result) {
                    for (const NodeId id : quantized) {
                      const Node& node = graph.node(id);
                      const Quantization& formats = graph.quantization_of(node);
                      const std::vector<NodeId> inputs = graph.inputs_of(id);
                      for (size_t i = 0; i < inputs.size(); ++i) {
                        const QuantizerPtr quantizer = current_quantizer(
                            formats, graph.module_of(node), operand_of_input(graph, node, i));
                        if (inputs[i] == source && quantizer)
                          check_operand(*quantizer, result, tallies[id][input_name(i)]);
                      }
                      const QuantizerPtr out =
                          current_quantizer(formats, graph.module_of(node), "data_out");
                      if (id == source && out)
                        check_operand(*out, result, tallies[id]["data_out_0"]);
                    }
                  });

  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  Dict report;
  std::string text;
  int64_t off = 0, checked = 0, shown = 0;
  const int64_t most = args["show"].as_int();
  for (const NodeId id : quantized) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (module && module->find("weight") && shown < most) {
      Shape shape = shapes[static_cast<size_t>(graph.inputs_of(id).front())];
      shape.erase(shape.begin());
      const Module* before = nullptr;
      if (context.original && context.original->find(node.name))
        before = context.original->module_of(*context.original->find(node.name));
      text += (shown++ ? "\n" : "") +
              sample_text(before ? *before : *module, *module, node, shape, context.seed);
    }
    Dict operands;
    for (const auto& [name, tally] : tallies[id]) {
      operands.set(name, Dict{{"values", tally.values}, {"off_grid", tally.off}});
      off += tally.off;
      checked += tally.values;
    }
    report.set(node.name, operands);
  }
  text += (text.empty() ? "" : "\n") +
          fmt::format("{} quantised nodes, {} operand values checked, {} off their format's grid\n",
                      quantized.size(), with_thousands(checked), off);
  print(context, text);
  if (off > 0)
    throw Error(
        "verify_quantization",
        fmt::format("{} of {} operand values are not on their format's grid", off, checked));
  return {Dict{{"nodes", report}, {"values", checked}, {"off_grid", off}}, false};
}

const Register<PassRecord> registered{{
    .name = "verify_quantization",
    .aliases = {"verify_quantization_analysis_pass"},
    .summary = "Proof that quantised operands lie on their format's grid",
    .schema = {{
        integer_field("num_samples", "how many rows the activations are checked on", 256)
            .between(1, 1000000),
        integer_field("show", "for how many layers weights, input and outputs are printed", 1)
            .from(0),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::verify_quantization_pass
