// SPDX-License-Identifier: Apache-2.0
// add_pruning_metadata: how sparse weights and activations are, layer by layer, into the software
// metadata and a table.
#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"

namespace mase::add_pruning_metadata_pass {
namespace {

int64_t zeros(const Tensor& tensor) {
  int64_t count = 0;
  for (const float value : tensor.values<float>()) count += value == 0;
  return count;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  ensure_metadata(graph, context);
  struct Entry {
    NodeId node;
    int64_t zero_inputs = 0, inputs = 0;
  };
  std::vector<Entry> entries;
  std::vector<NodeId> sources;
  for (const NodeId id : graph.order()) {
    const Module* module = graph.module_of(graph.node(id));
    if (!module || !op_of(graph, graph.node(id))->multiplies_weights()) continue;
    entries.push_back({id});
    sources.push_back(graph.inputs_of(id).front());
  }
  if (!entries.empty())
    observe_nodes(graph, sample_inputs(graph, context, args["num_samples"].as_int()), sources,
                  [&](NodeId source, const Tensor& result) {
                    for (size_t i = 0; i < entries.size(); ++i) {
                      if (sources[i] != source) continue;
                      entries[i].zero_inputs += zeros(result);
                      entries[i].inputs += result.numel();
                    }
                  });
  Table table({"Layer", "Weight sparsity", "Activation sparsity"});
  Dict layers;
  for (const Entry& entry : entries) {
    Node& node = graph.node(entry.node);
    const Module& module = *graph.module_of(node);
    int64_t zero_weights = 0, weights = 0;
    for (const std::string& name : operand_rules(*op_of(graph, node)).parts_of("weight"))
      if (const Tensor* weight = module.find(name)) {
        zero_weights += zeros(*weight);
        weights += weight->numel();
        node.meta["software"]["args"][name]["sparsity"] = share(zeros(*weight), weight->numel());
      }
    const double of_weight = share(zero_weights, weights);
    const double of_input = share(entry.zero_inputs, entry.inputs);
    node.meta["software"]["args"]["data_in_0"]["sparsity"] = of_input;
    table.add({node.name, fmt::format("{:.4f}", of_weight), fmt::format("{:.4f}", of_input)});
    layers.set(node.name, Dict{{"weight_sparsity", of_weight}, {"activation_sparsity", of_input}});
  }
  print(context, table.str(TableStyle::orgtbl));
  return {Dict{{"layers", layers}}, false};
}

const Register<PassRecord> registered{{
    .name = "add_pruning_metadata",
    .aliases = {"add_pruning_metadata_analysis_pass", "add_natural_sparsity",
                "add_natural_sparsity_metadata_analysis_pass"},
    .summary = "How many weights and activations of linear layers are zero",
    .schema = {{
        integer_field("num_samples", "rows on which activations are counted", 256).from(1),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::add_pruning_metadata_pass
