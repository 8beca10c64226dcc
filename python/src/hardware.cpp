// SPDX-License-Identifier: Apache-2.0
// From a quantised graph to integers, an estimate and SystemVerilog.
#include "mase/run/hardware.h"

#include <nanobind/stl/string.h>

#include "convert.h"
#include "mase/base/schema.h"
#include "module.h"

namespace mase::python {
namespace {

// Those of every design, rows to compare on and the data they come from; what else is given must be
// options of the style.
Value read_options(nb::handle given, const std::string& path) {
  Schema schema{{{.name = "style", .type = FieldType::text, .default_value = "unrolled"},
                 {.name = "top", .type = FieldType::text, .default_value = "top"},
                 {.name = "levels", .type = FieldType::number, .default_value = 0, .minimum = 0},
                 {.name = "delay_weight", .type = FieldType::number, .minimum = 0},
                 {.name = "argmax", .type = FieldType::boolean, .default_value = false},
                 {.name = "effort",
                  .type = FieldType::integer,
                  .default_value = 1,
                  .minimum = 0,
                  .maximum = 10},
                 {.name = "seed", .type = FieldType::integer, .default_value = 0, .minimum = 0},
                 {.name = "dataset", .type = FieldType::text},
                 {.name = "rows",
                  .type = FieldType::integer,
                  .default_value = 2000,
                  .minimum = 2,
                  .maximum = 10000000}},
                true};
  Value options = validate(to_value(given, "options"), schema, path);
  const EmitterRecord& style =
      Registry<EmitterRecord>::instance().get(options["style"].as_string(), "style");
  Dict own;
  for (const auto& [key, value] : options.as_dict())
    if (!schema.find(key)) own.set(key, value);
  options["style_options"] = validate(own, style.schema, path + " (style " + style.name + ")");
  return options;
}

DesignOptions design_options(const Value& options) {
  DesignOptions result;
  result.style = options["style"].as_string();
  result.top = options["top"].as_string();
  result.levels = options["levels"].as_double();
  if (!options["delay_weight"].is_null()) result.delay_weight = options["delay_weight"].as_double();
  result.argmax = options["argmax"].as_bool();
  result.effort = static_cast<int>(options["effort"].as_int());
  result.seed = static_cast<uint64_t>(options["seed"].as_int());
  result.style_options = options["style_options"];
  return result;
}

nb::dict estimate_graph(const Graph& graph, nb::handle given) {
  const Value options = read_options(given, "estimate");
  Value result;
  {
    nb::gil_scoped_release unlocked;
    result = to_value(estimate(make_design(lower(graph).graph, design_options(options))));
  }
  return nb::cast<nb::dict>(from_value(result));
}

// `load` holds the network; `name` is what the design's manifest calls its source.
nb::dict emit_file(const std::string& load, const std::string& name, nb::handle given,
                   const std::string& folder, bool prove) {
  const Value options = read_options(given, "emit");
  HardwareSpec spec;
  spec.network.load = load;
  if (!options["dataset"].is_null()) spec.data.name = options["dataset"].as_string();
  spec.rows = options["rows"].as_int();
  spec.seed = static_cast<uint64_t>(options["seed"].as_int());
  Dict facts;
  {
    nb::gil_scoped_release unlocked;
    HardwareNetwork network = load_hardware_network(spec);
    if (!name.empty()) network.origin = name;
    const Compared compared = compare_with_engine(network, spec);
    const EmitResult result =
        emit_hardware(network, compared, design_options(options), folder, prove);
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
                 {"estimate", to_value(estimate(result.design))}};
  }
  return nb::cast<nb::dict>(from_value(facts));
}

}  // namespace

void bind_hardware(nb::module_& module) {
  module.def("estimate", &estimate_graph, nb::arg("graph"), nb::arg("options"));
  module.def("emit", &emit_file, nb::arg("load"), nb::arg("name"), nb::arg("options"),
             nb::arg("folder"), nb::arg("prove"));
}

}  // namespace mase::python
