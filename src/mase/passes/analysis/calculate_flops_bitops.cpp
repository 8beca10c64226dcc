// SPDX-License-Identifier: Apache-2.0
// calculate_flops_bitops: the figure a lab wrote a pass of this name for, and the one it is not.
// The lab adds, for the inputs and weights of all products, the sum of their `precision` (of fixed
// point width and fraction) and calls it BitOPs; without the fraction that is memory traffic.
// BitOPs are MACs times the bits of both operands. Both are printed by name.
#include "mase/passes/costs.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::calculate_flops_bitops_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const int64_t batch = batch_or_report(args["batch_size"], context);
  const LayerCost sum = network_cost(graph, batch).total();
  print(context,
        fmt::format(
            "Total BitOPs as the lab counts them (precision sums): {:.0f}, Total FLOPs: {}\n"
            "Total BitOPs (MACs x weight bits x activation bits): {:.0f}, at batch size "
            "{}\n",
            sum.precision_sums, human_count(static_cast<double>(sum.flops)), sum.bitops, batch));
  return {Dict{{"total_flops", sum.flops},
               {"total_bitops", sum.bitops},
               {"total_operand_bits", sum.operand_bits},
               {"total_precision_sums", sum.precision_sums},
               {"batch_size", batch}},
          false};
}

const Register<PassRecord> registered{{
    .name = "calculate_flops_bitops",
    .aliases = {"calculate_flops_bitops_analysis_pass", "calculate_flops_bitops_pass"},
    .summary = "FLOPs, and bit operations beside the operand bits a lab called so",
    .help = "calculate_bitops has these per layer, with EBOPs, memory and averages.",
    .schema = {{batch_size_field()}},
    .run = run,
}};

}  // namespace
}  // namespace mase::calculate_flops_bitops_pass
