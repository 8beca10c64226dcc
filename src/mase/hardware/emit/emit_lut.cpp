// SPDX-License-Identifier: Apache-2.0
// The lut style: every neuron is a truth table of the bits it reads, as in LogicNets (Umuroglu et
// al. 2020), for networks whose neurons read few bits. A neuron that reads more is refused.
#include <algorithm>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/optimize/neuron_tables.h"

namespace mase::emit_lut_style {
namespace {

Optimized tables_only(const IntegerGraph& graph, const EmitOptions& options) {
  const int limit = static_cast<int>(options.values["table_bits"].as_int());
  const std::vector<NeuronCone> cones = neuron_cones(graph);
  const NeuronCone* widest = nullptr;
  int64_t wider = 0;
  for (const NeuronCone& cone : cones) {
    if (cone.bits > limit) ++wider;
    if (!widest || cone.bits > widest->bits) widest = &cone;
  }
  if (wider > 0) {
    const std::string& name = graph.at(widest->result).name;
    throw Error(
        name.empty() ? graph.name : name,
        fmt::format("reads {} bits of {} values, a table has at most {}; so do {} of {} neurons",
                    widest->bits, widest->operands.size(), limit, wider, cones.size()),
        "prune inputs, give them fewer bits (ch train --learn-bits), or use --style unrolled");
  }
  Optimized result{with_neuron_tables(graph, cones), {}};
  verify(result.graph);
  result.trace.push_back({"neuron_tables", cost_of(graph), cost_of(result.graph)});
  return result;
}

const Register<EmitterRecord> registered{{
    .name = "lut",
    .summary = "every neuron a truth table, one result each clock cycle",
    .help = "For sparse networks of few bits. What never occurs at a table's inputs is chosen to "
            "make it small.",
    .schema = {{{.name = "table_bits",
                 .type = FieldType::integer,
                 .default_value = 12,
                 .help = "the most bits a neuron may read",
                 .minimum = 1,
                 .maximum = 16},
                valid_field()}},
    .optimize = tables_only,
    .emit = emit_unrolled,
}};

}  // namespace
}  // namespace mase::emit_lut_style
