// SPDX-License-Identifier: Apache-2.0
// report_trainable_parameters: how many numbers training may change, layer by layer, each counted
// once however often its layer is called.
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/passes/output.h"

namespace mase::report_trainable_parameters_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext& context) {
  Table table({"Layer", "Trainable", "Total"});
  Dict layers;
  for (const std::string& path : graph.module_order()) {
    const Module& module = graph.modules().at(path);
    int64_t count = 0;
    for (const auto& [name, tensor] : module.parameters) count += tensor.numel();
    if (count == 0) continue;
    const int64_t trained = module.frozen ? 0 : count;
    layers.set(path, trained);
    table.add({path.empty() ? "(the network's own)" : path, with_thousands(trained),
               with_thousands(count)});
  }
  const int64_t trained = graph.parameter_count(true), all = graph.parameter_count(false);
  print(context, table.str() + fmt::format("Trainable parameters: {} of {}\n",
                                           with_thousands(trained), with_thousands(all)));
  return {Dict{{"trainable", trained}, {"total", all}, {"layers", std::move(layers)}}, false};
}

const Register<PassRecord> registered{{
    .name = "report_trainable_parameters",
    .aliases = {"report_trainable_parameters_analysis_pass"},
    .pass_kind = PassKind::analysis,
    .summary = "How many parameters are trained, layer by layer, each counted once",
    .run = run,
}};

}  // namespace
}  // namespace mase::report_trainable_parameters_pass
