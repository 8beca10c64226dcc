// SPDX-License-Identifier: Apache-2.0
// compare_graphs: the original and the transformed graph node by node with a comment, then for each
// changed layer what became of its weights and outputs on real data, and the accuracy of both.
#include <optional>

#include "mase/base/fields.h"
#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/compare.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"

namespace mase::compare_graphs_pass {
namespace {

std::string comment(const Graph& original, const Graph& graph, const NodePair& pair) {
  const std::string before = layer_text(original, *pair.before);
  if (!pair.after) return "The Actual target is REMOVED   :" + before;
  const std::string after = layer_text(graph, *pair.after);
  if (before == after) return "The Actual target is SAME      :" + after;
  return "The Actual target is DIFFERENT :" + after + "/" + before;
}

std::string figure(std::optional<double> number, const char* none = "-") {
  return number ? fmt::format("{:.6g}", *number) : none;
}

Value optional_value(std::optional<double> number) { return number ? Value(*number) : Value(); }

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const Graph& original = original_graph(context, "compare_graphs");
  Table nodes({"Ori name", "New name", "MASE_TYPE", "Mase_OP", "Original type", "Quantized type",
               "Changed", "Comment"});
  int64_t changed = 0;
  for (const NodePair& pair : pair_nodes(original, graph)) {
    const bool different = pair.old_class != pair.new_class;
    nodes.add({pair.before->name, pair.after ? pair.after->name : "-",
               mase_type(original, *pair.before), mase_op(original, *pair.before), pair.old_class,
               pair.new_class, different ? "True" : "False", comment(original, graph, pair)});
    changed += different;
  }
  print(context, nodes.str(TableStyle::orgtbl));

  const std::vector<Tensor> inputs = sample_inputs(graph, context, args["num_samples"].as_int());
  Table layers({"Layer", "Weight error max", "Weight error mean", "Output error max",
                "Output error mean", "SQNR (dB)", "Cosine", "Saturated"});
  List rows;
  for (const LayerError& error : compare_layers(original, graph, inputs)) {
    const std::string& name = graph.node(error.node).name;
    layers.add({name, error.weight ? figure(error.weight->largest) : "-",
                error.weight ? figure(error.weight->mean()) : "-", figure(error.output.largest),
                figure(error.output.mean()), figure(error.output.sqnr_db(), "no error"),
                figure(error.output.cosine()),
                error.saturation() ? fmt::format("{:.2f} %", *error.saturation() * 100) : "-"});
    rows.push_back(
        Dict{{"node", name},
             {"weight_error",
              optional_value(error.weight ? std::optional(error.weight->largest) : std::nullopt)},
             {"weight_error_mean",
              optional_value(error.weight ? std::optional(error.weight->mean()) : std::nullopt)},
             {"output_error", error.output.largest},
             {"output_error_mean", error.output.mean()},
             {"sqnr_db", optional_value(error.output.sqnr_db())},
             {"cosine", optional_value(error.output.cosine())},
             {"saturation", optional_value(error.saturation())}});
  }
  const int64_t samples = inputs.empty() ? 0 : inputs.front().shape()[0];
  if (layers.rows() > 0)
    print(context, fmt::format("\nChanged layers, on {}:\n{}",
                               has_samples(graph, context)
                                   ? fmt::format("the first {} training rows", samples)
                                   : fmt::format("{} random rows", samples),
                               layers.str(TableStyle::orgtbl)));
  Dict result{{"changed", changed}, {"samples", samples}, {"layers", rows}};
  if (context.test_x.numel() > 0 && context.test_labels.numel() > 0) {
    const double before = accuracy(original, context.test_x, context.test_labels);
    const double after = accuracy(graph, context.test_x, context.test_labels);
    print(context, fmt::format("\nAccuracy on {} rows: {} before, {} after, {}\n",
                               context.test_labels.numel(), figure_text(before), figure_text(after),
                               signed_figure_text(after - before)));
    result.set("accuracy", Dict{{"before", before}, {"after", after}});
  }
  if (!context.save_dir.empty())
    result.set("file", save_text(context, "compare_graphs.csv", nodes.csv()));
  return {std::move(result), false};
}

const Register<PassRecord> registered{{
    .name = "compare_graphs",
    .aliases = {"compare_graphs_analysis_pass"},
    .summary = "Original and transformed graph, node by node and layer by layer",
    .help =
        "SQNR is the power of the original output over the power of the difference. Saturated is\n"
        "the share of operand values beyond the limits of their format.",
    .schema = {{
        integer_field("num_samples", "how many rows the outputs are compared on", 1024)
            .between(1, 1000000),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::compare_graphs_pass
