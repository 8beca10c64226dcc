// SPDX-License-Identifier: Apache-2.0
// calculate_flops: multiplications and floating-point operations per layer and in all. One
// multiply-accumulate is two operations; a batch-norm element two, a ReLU element one.
#include "mase/base/table.h"
#include "mase/passes/costs.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::calculate_flops_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const int64_t batch = batch_or_report(args["batch_size"], context);
  const NetworkCost cost = network_cost(graph, batch);
  const LayerCost sum = cost.total();
  Table table({"Layer", "Type", "MACs", "FLOPs"});
  List layers;
  for (const LayerCost& layer : cost.layers) {
    table.add({layer.name, layer.type, with_thousands(layer.macs), with_thousands(layer.flops)});
    layers.push_back(Dict{
        {"name", layer.name}, {"type", layer.type}, {"macs", layer.macs}, {"flops", layer.flops}});
  }
  table.add({"total", "", with_thousands(sum.macs), with_thousands(sum.flops)});
  print(context, table.str(TableStyle::orgtbl));
  print(context, fmt::format("Total FLOPs: {} at batch size {}\n",
                             human_count(static_cast<double>(sum.flops)), batch));
  return {Dict{{"batch_size", batch},
               {"macs", sum.macs},
               {"total_flops", sum.flops},
               {"parameters", graph.parameter_count(false)},
               {"layers", layers}},
          false};
}

const Register<PassRecord> registered{{
    .name = "calculate_flops",
    .aliases = {"calculate_flops_analysis_pass"},
    .summary = "Multiplications and floating-point operations",
    .schema = {{
        batch_size_field(),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::calculate_flops_pass
