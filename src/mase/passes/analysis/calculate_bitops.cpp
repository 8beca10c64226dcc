// SPDX-License-Identifier: Apache-2.0
// calculate_bitops: what a network costs in bits, before and after quantising.
//   BitOPs        MACs x weight bits x activation bits
//   EBOPs         HGQ2's: for each multiplication of a sample the product of the operands' bits,
//                 plus for each output the bits of its bias (Sun et al., "Gradient-based automatic
//                 mixed precision quantization for neural networks on-chip", 2024); the bits are
//                 those of a value's code, less the sign where fixed point wraps
//   EBOPs, exact  the same, each weight counted by the bits between its first and last one
//   operand bits  bits of the inputs and weights of all products (what a lab called BitOPs)
// Average bits count the width alone: the fraction bits are part of it.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/passes/compare.h"
#include "mase/passes/costs.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::calculate_bitops_pass {
namespace {

std::string whole(double number) { return with_thousands(std::llround(number)); }
std::string bits(double number) { return fmt::format("{:.4g}", number); }

Table layer_table(const NetworkCost& cost) {
  Table table({"Layer", "Type", "MACs", "Weight bits", "Activation bits", "BitOPs",
               "EBOPs per sample", "EBOPs per sample, exact", "Operand bits"});
  const auto row = [&](const LayerCost& layer) {
    table.add({layer.name, layer.type, with_thousands(layer.macs), bits(layer.weight_bits),
               bits(layer.activation_bits), whole(layer.bitops), whole(layer.ebops),
               whole(layer.ebops_exact), whole(layer.operand_bits)});
  };
  for (const LayerCost& layer : cost.layers)
    if (layer.is_product()) row(layer);
  row(cost.total());
  return table;
}

Table summary_table(const NetworkCost& before, const NetworkCost& after) {
  Table table({"Cost", "Before", "After", "Ratio"});
  const auto row = [&](const char* name, double a, double b, bool fraction = false) {
    table.add({name, fraction ? bits(a) : whole(a), fraction ? bits(b) : whole(b),
               a > 0 ? fmt::format("{:.3f}", b / a) : "-"});
  };
  const LayerCost a = before.total(), b = after.total();
  for (const CostQuantity& quantity : cost_quantities())
    row(quantity.label, quantity.of(a), quantity.of(b));
  row("Average bits of products' weights", a.weight_bits, b.weight_bits, true);
  row("Average bits of products' inputs", a.activation_bits, b.activation_bits, true);
  row("Memory density of both (fp32 = 1)", before.memory_density(), after.memory_density(), true);
  return table;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const int64_t batch = batch_or_report(args["batch_size"], context);
  const NetworkCost after = network_cost(graph, batch);
  const NetworkCost before = context.original ? network_cost(*context.original, batch) : after;
  print(context, layer_table(after).str(TableStyle::orgtbl));
  print(context, "\n" + summary_table(before, after).str(TableStyle::orgtbl));
  const LayerCost sum = after.total();
  print(context, fmt::format("Total BitOPs: {:.0f}, operand bits: {:.0f}, at batch size {}\n",
                             sum.bitops, sum.operand_bits, batch));
  Dict result{{"total_bitops", sum.bitops},
              {"total_operand_bits", sum.operand_bits},
              {"after", after.to_value()}};
  if (context.original) result.set("before", before.to_value());
  if (!args["file_name"].is_null())
    result.set("file", save_text(context, args["file_name"].as_string(), to_json(result, 1)));
  return {std::move(result), false};
}

const Register<PassRecord> registered{{
    .name = "calculate_bitops",
    .aliases = {"calculate_bitops_analysis_pass", "calculate_avg_bits",
                "calculate_avg_bits_analysis_pass"},
    .summary = "Bit operations, operand bits, memory and average bits",
    .help = "EBOPs are per sample; everything else is for one batch.",
    .schema = {{
        batch_size_field(),
        text_field("file_name", "write the result as JSON too"),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::calculate_bitops_pass
