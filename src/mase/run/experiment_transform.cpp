// SPDX-License-Identifier: Apache-2.0
// Transforming: the passes of a configuration, and what they leave in the run folder.
#include <algorithm>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/transform_record.h"
#include "mase/run/experiment.h"

namespace mase {
namespace {

bool is_pass(const PassCall& call, const char* name) {
  const PassRecord* record = Registry<PassRecord>::instance().find(call.name);
  return record && record->name == name;
}

bool has_pass(const std::vector<PassCall>& calls, const char* name) {
  return std::any_of(calls.begin(), calls.end(),
                     [name](const PassCall& call) { return is_pass(call, name); });
}

// MASE prints the histogram after quantising; so do we, unless the file asks for it itself.
std::vector<PassCall> with_summary(std::vector<PassCall> calls) {
  if (has_pass(calls, "summarize_quantization")) return calls;
  const auto last = std::find_if(calls.rbegin(), calls.rend(),
                                 [](const PassCall& call) { return is_pass(call, "quantize"); });
  if (last != calls.rend())
    calls.insert(last.base(), {"summarize_quantization", Value(), "summarize_quantization"});
  return calls;
}

Value results_value(const std::vector<PassOutcome>& outcomes) {
  List list;
  for (const PassOutcome& outcome : outcomes)
    list.push_back(Dict{{"pass", outcome.name},
                        {"seconds", outcome.seconds},
                        {"changed", outcome.result.changed},
                        {"result", outcome.result.data}});
  return list;
}

Value metadata_value(const Graph& graph) {
  Dict nodes;
  for (const NodeId id : graph.order()) nodes.set(graph.node(id).name, graph.node(id).meta);
  return nodes;
}

// What MASE leaves behind, and the graph in one file.
void save_results(const RunFolder& folder, const Graph& graph, const Value& contents,
                  const std::vector<PassOutcome>& outcomes) {
  const std::string base = folder.software("transform");
  write_file_atomically(base + "/results.json", to_json(results_value(outcomes), 1) + "\n");
  save_mz(base + "/transformed.mz", graph, contents);
  const std::string checkpoint = folder.software("transform/transformed_ckpt");
  save_mz(checkpoint + "/graph_module.mz", graph, contents);
  save_state_dict(checkpoint + "/state_dict.pt", state_dict(graph));
  write_file_atomically(checkpoint + "/node_meta_param.toml", to_toml(metadata_value(graph)));
}

}  // namespace

TransformResult Experiment::transform(RunFolder* folder) {
  if (!network_.loaded) observer_.warning("no --load: the network has its initial random weights");
  TransformResult result;
  const auto transform = [&] {
    const std::vector<PassCall> calls = with_summary(spec_.passes.calls);
    PassContext context = pass_context(folder ? folder->software("transform") : "");
    observer_.info(fmt::format("Transforming {} with {} passes", network_.name, calls.size()));
    ensure_metadata(network_.graph, context);
    result.outcomes = run_passes(network_.graph, calls, context);
    passes_ran_ = true;
    take_quantizer_state(network_, observer_);
    for (const PassOutcome& outcome : result.outcomes)
      if (Registry<PassRecord>::instance().get(outcome.name).pass_kind == PassKind::transform &&
          !outcome.result.changed)
        observer_.info(fmt::format("{}: unchanged", outcome.name));
    if (folder && has_pass(calls, "report_graph")) {
      PassContext quiet = context;
      quiet.print = {};
      run_pass(network_.graph, "report_graph", Dict{{"file_name", "report_graph.txt"}}, quiet);
    }
    if (folder) save_results(*folder, network_.graph, file_contents(), result.outcomes);
    result.record = transform_record(original_, network_.graph, context);
    if (folder) {
      folder->record()["transform"] = result.record;
      folder->finish("finished");
    }
  };
  if (folder)
    folder->guard(transform);
  else
    transform();
  return result;
}

}  // namespace mase
