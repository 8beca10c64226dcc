// SPDX-License-Identifier: Apache-2.0
// From a quantised graph to integers, an estimate and SystemVerilog.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>

#include "convert.h"
#include "mase/engine/program.h"
#include "mase/hardware/design.h"
#include "mase/hardware/interpreter.h"
#include "mase/hardware/lower_graph.h"
#include "mase/hardware/tool.h"
#include "module.h"

namespace mase::python {
namespace {

DesignOptions design_options(const Value& given) {
  const Value options =
      validate(given,
               {{{.name = "style", .type = FieldType::text, .default_value = "unrolled"},
                 {.name = "top", .type = FieldType::text, .default_value = "top"},
                 {.name = "levels", .type = FieldType::number, .default_value = 0, .minimum = 0},
                 {.name = "valid", .type = FieldType::boolean, .default_value = false},
                 {.name = "argmax", .type = FieldType::boolean, .default_value = false},
                 {.name = "effort",
                  .type = FieldType::integer,
                  .default_value = 1,
                  .minimum = 0,
                  .maximum = 10},
                 {.name = "seed", .type = FieldType::integer, .default_value = 0, .minimum = 0}}},
               "emit");
  DesignOptions result;
  result.style = options["style"].as_string();
  result.top = options["top"].as_string();
  result.levels = options["levels"].as_double();
  result.valid = options["valid"].as_bool();
  result.argmax = options["argmax"].as_bool();
  result.effort = static_cast<int>(options["effort"].as_int());
  result.seed = static_cast<uint64_t>(options["seed"].as_int());
  return result;
}

Value estimate_of(const Graph& graph, const Value& options) {
  return to_value(estimate(make_design(lower(graph).graph, design_options(options)).graph));
}

}  // namespace

void bind_hardware(nb::module_& module) {
  module.def("estimate", [](const Graph& graph, nb::handle options) {
    const Value given = to_value(options, "options");
    Value result;
    {
      nb::gil_scoped_release unlocked;
      result = estimate_of(graph, given);
    }
    return from_value(result);
  });
}

}  // namespace mase::python
