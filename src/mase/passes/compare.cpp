// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "mase/engine/program.h"
#include "mase/formats/measure.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

bool same_parameters(const Module* a, const Module* b) {
  if (!a || !b) return a == b;
  const TensorTable one = numeric_tensors(*a), two = numeric_tensors(*b);
  if (one.size() != two.size()) return false;
  for (size_t i = 0; i < one.size(); ++i)
    if (one[i].first != two[i].first || !one[i].second.same_bits(two[i].second)) return false;
  return true;
}

void count_saturated(const Quantizer* quantizer, const Tensor& tensor, LayerError& error) {
  if (!quantizer) return;
  const auto beyond = count_beyond(*quantizer, tensor.values<float>(), tensor.shape());
  if (!beyond) return;
  error.operand_values += tensor.numel();
  error.saturated += *beyond;
}

}  // namespace

void ErrorSums::add(const float* before, const float* after, int64_t n) {
  count += n;
  for (int64_t i = 0; i < n; ++i) {
    const double a = before[i], b = after[i], difference = std::abs(a - b);
    largest = std::max(largest, difference);
    absolute += difference;
    squares += difference * difference;
    signal += a * a;
    other += b * b;
    product += a * b;
  }
}

std::optional<double> ErrorSums::sqnr_db() const {
  if (!(squares > 0) || !(signal > 0)) return {};
  return 10 * std::log10(signal / squares);
}

std::optional<double> ErrorSums::cosine() const {
  if (!(signal > 0) || !(other > 0)) return {};
  return product / std::sqrt(signal) / std::sqrt(other);
}

std::optional<double> LayerError::saturation() const {
  if (operand_values == 0) return {};
  return static_cast<double>(saturated) / static_cast<double>(operand_values);
}

const Graph& original_graph(const PassContext& context, const std::string& pass) {
  if (!context.original)
    throw Error(pass, "there is no original graph to compare with",
                "run it after a transform, in the same list of passes");
  return *context.original;
}

std::vector<NodePair> pair_nodes(const Graph& original, const Graph& transformed) {
  const std::set<NodeId> alive(transformed.order().begin(), transformed.order().end());
  std::vector<NodePair> pairs;
  for (const NodeId id : original.order()) {
    NodePair pair;
    pair.before = &original.node(id);
    pair.old_class = class_text(original, *pair.before);
    if (alive.count(id)) {
      pair.after = &transformed.node(id);
      pair.new_class = class_text(transformed, *pair.after);
      pair.changed =
          pair.old_class != pair.new_class ||
          !(original.quantization_of(*pair.before).config ==
            transformed.quantization_of(*pair.after).config) ||
          layer_text(original, *pair.before) != layer_text(transformed, *pair.after) ||
          !same_parameters(original.module_of(*pair.before), transformed.module_of(*pair.after));
    } else {
      pair.new_class = "removed";
      pair.changed = true;
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Tensor used_parameter(const Module& module, const std::string& name) {
  const Tensor* tensor = module.find(name);
  MASE_CHECK(tensor, "no parameter '{}'", name);
  const QuantizerPtr quantizer = current_quantizer(module.quantization, &module, name);
  return quantizer ? quantize(*quantizer, *tensor) : *tensor;
}

std::vector<LayerError> compare_layers(const Graph& original, const Graph& transformed,
                                       const std::vector<Tensor>& inputs) {
  std::vector<LayerError> errors;
  std::map<NodeId, size_t> place;
  std::vector<NodeId> outputs, watched;
  for (const NodePair& pair : pair_nodes(original, transformed)) {
    if (!pair.changed || !pair.after || !op_of(transformed, *pair.after)) continue;
    const NodeId id = pair.after->id;
    LayerError error;
    error.node = id;
    const Module* old_module = original.module_of(*pair.before);
    const Module* new_module = transformed.module_of(*pair.after);
    if (old_module && new_module) {
      const OperandRules rules = operand_rules(*op_of(transformed, *pair.after));
      for (const std::string& name : rules.parts_of("weight")) {
        if (!old_module->find(name) || !new_module->find(name)) continue;
        const Tensor before = used_parameter(*old_module, name);
        const Tensor after = used_parameter(*new_module, name);
        if (before.numel() != after.numel()) continue;
        if (!error.weight) error.weight.emplace();
        error.weight->add(before.data<float>(), after.data<float>(), before.numel());
      }
      for (const char* joint : {"weight", "bias"})
        for (const std::string& name : rules.parts_of(joint))
          if (const Tensor* tensor = new_module->find(name))
            count_saturated(new_module->quantization.find(name), *tensor, error);
    }
    place[id] = errors.size();
    errors.push_back(error);
    outputs.push_back(id);
    watched.push_back(id);
    for (const NodeId input : transformed.inputs_of(id)) watched.push_back(input);
  }
  if (errors.empty()) return errors;

  // Who reads a result, and in which format.
  std::map<NodeId, std::vector<std::pair<size_t, const Quantizer*>>> readers;
  for (const auto& [node_id, index] : place) {
    const Node& node = transformed.node(node_id);
    const std::vector<NodeId> sources = transformed.inputs_of(node_id);
    for (size_t i = 0; i < sources.size(); ++i)
      readers[sources[i]].emplace_back(
          index, transformed.quantization_of(node).find(operand_of_input(transformed, node, i)));
  }
  const auto saturations = [&](NodeId id, const Tensor& result) {
    const auto found = readers.find(id);
    if (found == readers.end()) return;
    for (const auto& [index, quantizer] : found->second)
      count_saturated(quantizer, result, errors[index]);
  };
  // Part by part, since all results of the original are kept until the other has them.
  MASE_CHECK(!inputs.empty(), "no inputs");
  const int64_t rows = inputs[0].shape()[0];
  const int64_t part =
      rows_at_once(transformed, rows_at_once(original, std::clamp<int64_t>(rows, 1, 256)));
  for (int64_t first = 0; first < rows; first += part) {
    std::vector<Tensor> own;
    for (const Tensor& input : inputs)
      own.push_back(rows_of(input, first, std::min(part, rows - first)));
    std::map<NodeId, Tensor> results;  // of the original
    observe_nodes(
        original, own, outputs,
        [&](NodeId id, const Tensor& result) { results.emplace(id, result); }, part);
    observe_nodes(
        transformed, own, watched,
        [&](NodeId id, const Tensor& result) {
          saturations(id, result);
          const auto found = place.find(id);
          if (found == place.end()) return;
          const auto before = results.find(id);
          if (before != results.end() && before->second.numel() == result.numel())
            errors[found->second].output.add(before->second.data<float>(), result.data<float>(),
                                             result.numel());
        },
        part);
  }
  return errors;
}

}  // namespace mase
