// SPDX-License-Identifier: Apache-2.0
// From a quantised graph to integers, an estimate and SystemVerilog.
#include "mase/run/hardware/hardware.h"

#include <nanobind/stl/string.h>

#include "convert.h"
#include "mase/base/fields.h"
#include "mase/hardware/cost/quick_estimate.h"
#include "mase/hardware/emit/design.h"
#include "module.h"

namespace mase::python {
namespace {

// What was given, and the design it asks for.
struct Asked {
  Value values;
  DesignOptions design;
};
Asked read_options(nb::handle given, const std::string& path) {
  Schema schema{design_fields()};
  schema.fields.push_back(text_field(
      "dataset",
      "compare with the engine on all test rows of this data set (default: the one that the "
      "network's file names)"));
  schema.fields.push_back(
      integer_field("rows",
                    "compare on so many drawn rows instead; without a data set that is the default",
                    2000)
          .between(2, 10000000));
  const Value typed = to_value(given, "options");
  std::vector<std::string> names;
  for (const auto& [name, value] : typed.as_dict()) names.push_back(name);
  Asked asked;
  asked.values = validate(typed, schema, path);
  asked.design = design_options(asked.values, names);
  return asked;
}

// What the library has to say of a network before its figures.
struct Notes {
  List lines;
  Observer observer() {
    Observer seen;
    seen.log = [this](LogLevel level, const std::string& line) {
      if (level == LogLevel::warning) lines.push_back(line);
    };
    return seen;
  }
};

nb::dict estimate_graph(const Graph& graph, nb::handle given) {
  const Asked asked = read_options(given, "estimate");
  const bool asks_for_design = nb::len(given) > 0;
  Value result;
  Notes notes;
  {
    nb::gil_scoped_release unlocked;
    HardwareNetwork hardware;
    hardware.network = graph;
    make_integers(hardware, notes.observer());
    const IntegerGraph& lowered = hardware.lowered.graph;
    result = to_value(!asks_for_design && is_too_large(lowered)
                          ? quick_estimate(lowered)
                          : estimate(make_design(lowered, asked.design)));
  }
  result.dict().set("notes", notes.lines);
  return nb::cast<nb::dict>(from_value(result));
}

// `load` holds the network; `name` is what the design's manifest calls its source.
nb::dict emit_file(const std::string& load, const std::string& name, nb::handle given,
                   const std::string& folder, bool prove) {
  const Asked asked = read_options(given, "emit");
  const Value& options = asked.values;
  HardwareSpec spec;
  spec.network.load = load;
  if (!options["dataset"].is_null()) spec.data.name = options["dataset"].as_string();
  spec.rows = options["rows"].as_int();
  spec.seed = static_cast<uint64_t>(options["seed"].as_int());
  Dict facts;
  Notes notes;
  {
    nb::gil_scoped_release unlocked;
    HardwareNetwork network = load_hardware_network(spec, notes.observer());
    if (!name.empty()) network.origin = name;
    const Compared compared = compare_with_engine(network, spec);
    const EmitResult result = emit_hardware(network, compared, asked.design, folder, prove);
    List trace;
    for (const OptimizeStep& step : result.design.trace)
      trace.push_back(Dict{{"pass", step.pass},
                           {"luts_before", step.before.luts},
                           {"luts", step.after.luts},
                           {"levels", step.after.levels},
                           {"adders", step.after.adders}});
    facts = Dict{{"folder", folder},
                 {"compared", compared.origin},
                 {"equal", compared.engine},
                 {"reason", compared.reason},
                 {"software", Value::of(network.lowered.software)},
                 {"proof", result.proof_text},
                 {"proved", result.proof.has_value() && result.proof->fault.empty()},
                 {"latency", result.design.emitted.latency},
                 {"trace", trace},
                 {"estimate", to_value(estimate(result.design))},
                 {"notes", notes.lines}};
  }
  return nb::cast<nb::dict>(from_value(facts));
}

nb::dict simulate(const std::string& folder, const std::string& simulator, const std::string& wave,
                  int64_t rows) {
  Dict facts;
  {
    nb::gil_scoped_release unlocked;
    const Simulation result = simulate_folder(folder, simulator, wave, rows);
    facts = Dict{{"simulator", result.simulator},     {"rows", result.rows},
                 {"mismatches", result.mismatches},   {"build_seconds", result.build_seconds},
                 {"run_seconds", result.run_seconds}, {"output", result.output}};
  }
  return nb::cast<nb::dict>(from_value(facts));
}

}  // namespace

void bind_hardware(nb::module_& module) {
  module.def("estimate", &estimate_graph, nb::arg("graph"), nb::arg("options"));
  module.def("emit", &emit_file, nb::arg("load"), nb::arg("name"), nb::arg("options"),
             nb::arg("folder"), nb::arg("prove"));
  module.def("simulate", &simulate, nb::arg("folder"), nb::arg("simulator"), nb::arg("wave"),
             nb::arg("rows"));
}

}  // namespace mase::python
