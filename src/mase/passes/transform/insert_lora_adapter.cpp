// SPDX-License-Identifier: Apache-2.0
// insert_lora_adapter: Linear  =>  Linear + alpha / rank * B(A(dropout(x))), the base frozen (LoRA,
// Hu et al., 2021). B begins as zero, so outputs stay what they were; weights and biases of the
// layer stay, and so does its number format: a rounded base with adapters in float is QLoRA.
#include <algorithm>

#include "mase/base/fields.h"
#include "mase/base/text.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/lora.h"
#include "mase/passes/pass.h"
#include "mase/passes/select.h"

namespace mase::insert_lora_adapter_pass {
namespace {

bool adaptable(const Graph& graph, const Node& node) {
  const Module* module = graph.module_of(node);
  return module && module->op == "linear" && !is_lora_part(node.target);
}

// Nodes that one name means: as everywhere, and the ends of paths, as PEFT has it ("query").
std::vector<NodeId> named(const Graph& graph, const std::string& name, const Position& position,
                          const std::string& path, Problems& problems) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (adaptable(graph, node) && ends_with(node.target, "." + name)) found.push_back(id);
  }
  return found.empty() ? select_nodes(graph, SelectBy::name, name, position, path, problems)
                       : found;
}

std::vector<NodeId> chosen(const Graph& graph, const Value& args, const std::string& path,
                           Problems& problems) {
  std::vector<NodeId> found;
  const auto take = [&](const std::vector<NodeId>& nodes) {
    for (const NodeId id : nodes)
      if (!std::count(found.begin(), found.end(), id)) found.push_back(id);
  };
  const Value& targets = args["targets"];
  if (targets.is_null()) {
    for (const NodeId id : graph.order())
      if (adaptable(graph, graph.node(id))) take({id});
    return found;
  }
  const SelectBy by = select_by(args["by"]);
  const List list = targets.is_list() ? targets.as_list() : List{targets};
  for (const Value& one : list) {
    if (!one.is_string()) {
      problems.add(Error(one.position(), path + ".targets", "wants texts"));
      continue;
    }
    const std::vector<NodeId> nodes =
        by == SelectBy::name
            ? named(graph, one.as_string(), one.position(), path + ".targets", problems)
            : select_nodes(graph, by, one.as_string(), one.position(), path + ".targets", problems);
    std::vector<NodeId> linear;
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(linear),
                 [&](NodeId id) { return adaptable(graph, graph.node(id)); });
    if (linear.empty() && !nodes.empty())
      problems.add(Error(one.position(), path + ".targets",
                         fmt::format("'{}' is no linear layer", printable(one.as_string())),
                         "adapters stand beside linear layers"));
    take(linear);
  }
  for (const NodeId id : found)
    if (graph.modules().count(lora_a_path(graph.node(id).target)))
      problems.add(Error(targets.position(), path + ".targets",
                         fmt::format("{} has an adapter already", graph.node(id).target),
                         "run fuse_lora_weights first"));
  return found;
}

// A number under one of two names: ours, or PEFT's.
const Value& either(const Value& args, const char* first, const char* second) {
  return args[first].is_null() ? args[second] : args[first];
}

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  for (const auto& [one, other] : {std::pair{"alpha", "lora_alpha"}, {"dropout", "lora_dropout"}})
    if (!args[one].is_null() && !args[other].is_null())
      problems.add(Error(args[other].position(), path + "." + other,
                         fmt::format("{} says the same", one), "give one of them"));
  chosen(graph, args, path, problems);
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Problems problems;
  LoraOptions options;
  options.rank = args["rank"].as_int();
  const Value& alpha = either(args, "alpha", "lora_alpha");
  options.scale = alpha.is_null() ? 1.0 : alpha.as_double() / static_cast<double>(options.rank);
  const Value& dropout = either(args, "dropout", "lora_dropout");
  options.dropout = dropout.is_null() ? 0.0 : dropout.as_double();
  options.seed = context.seed;
  List replaced;
  std::vector<std::string> done;
  for (const NodeId id : chosen(graph, args, "", problems)) {
    const std::string path = graph.node(id).target;
    if (std::count(done.begin(), done.end(), path)) continue;  // a shared layer has one
    if (graph.modules().count(lora_a_path(path))) continue;    // only where all are meant
    insert_lora(graph, path, options);
    done.push_back(path);
    replaced.push_back(path);
  }
  const bool changed = !done.empty();
  if (changed) {
    if (args["base"].as_string() == "frozen") {
      train_adapters_only(graph);
    } else {
      for (const std::string& path : done) graph.modules().at(path).frozen = true;
    }
  }
  return {Dict{{"replaced", std::move(replaced)},
               {"trainable", graph.parameter_count(true)},
               {"total", graph.parameter_count(false)}},
          changed};
}

const Register<PassRecord> registered{{
    .name = "insert_lora_adapter",
    .aliases = {"insert_lora_adapter_transform_pass", "insert_lora"},
    .pass_kind = PassKind::transform,
    .summary = "Low-rank adapters beside linear layers (LoRA), the base frozen",
    .help =
        "y = W x + b becomes y = W x + b + alpha / rank B A dropout(x). B begins as zero, so the\n"
        "network computes what it did. Only A and B are trained. Layers may be quantised: the "
        "base\n"
        "is rounded as before, the adapters are float.\n"
        "  [passes.insert_lora_adapter]\n"
        "  rank = 6\n"
        "  alpha = 12\n"
        "  by = \"name\"\n"
        "  targets = [\"query\", \"value\"]\n"
        "Parameters are named as PEFT does: LAYER.lora_A.weight, LAYER.lora_B.weight.",
    .schema = {{
        integer_field("rank", "rows of A and columns of B", 8).between(1, 65536),
        number_field("alpha", "the adapter counts alpha / rank times; rank if not given"),
        number_field("lora_alpha", "PEFT's name of alpha"),
        number_field("dropout", "share of the adapter's inputs that training leaves out")
            .between(0, 0.999),
        number_field("lora_dropout", "PEFT's name of dropout").between(0, 0.999),
        by_field(),
        any_field("targets",
                  "a text or a list of them; all linear layers if not given. By name the end of a "
                  "path will do: \"query\""),
        text_field("base",
                   "what happens to everything else: frozen, or kept (only the adapted layers are "
                   "frozen)",
                   "frozen", {"frozen", "kept"}),
    }},
    .check = check,
    .run = run,
}};

}  // namespace
}  // namespace mase::insert_lora_adapter_pass
