// SPDX-License-Identifier: Apache-2.0
// What there is: operations, passes, formats, networks, data sets, with their options and help.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "mase/base/table.h"
#include "mase/data/dataset.h"
#include "mase/formats/format.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/run/options.h"
#include "module.h"

namespace mase::python {
namespace {

Value schema_value(const Schema& schema) {
  List fields;
  for (const Field& field : schema.fields)
    fields.push_back(Dict{{"name", field.name},
                          {"type", type_name(field.type)},
                          {"default", field.default_value},
                          {"choices", Value::of(field.choices)},
                          {"help", field.help}});
  return fields;
}

Value op_value(const OpRecord& op) {
  List parameters;
  return Dict{{"name", op.name},
              {"class_name", op.class_name},
              {"function", op.function},
              {"mase_type", op.mase_type},
              {"operands", Value::of(operand_rules(op).prefixes())},
              {"inner_operands", Value::of(op.inner_operands)},
              {"unsigned_operands", Value::of(op.unsigned_operands)},
              {"product", op.product.has_value()},
              {"attributes", schema_value(op.attributes)}};
}

// Names of parameters and buffers of a layer with these attributes, in PyTorch's order.
nb::list parameter_names(const std::string& op_name, nb::handle attributes) {
  const OpRecord& op = find_op(op_name);
  nb::list names;
  if (!op.params) return names;
  for (const ParamSpec& spec : op.params(validate(to_value(attributes), op.attributes, op_name)))
    names.append(nb::make_tuple(spec.name, spec.trainable, dtype_name(spec.dtype)));
  return names;
}

template <class Record>
nb::dict summaries() {
  nb::dict names;
  for (const Record* record : Registry<Record>::instance().all())
    names[record->name.c_str()] = record->summary.c_str();
  return names;
}

std::string table_text(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::string& style) {
  Table table(header);
  for (const auto& row : rows) {
    if (row.size() != header.size())
      throw Error("table", "a row has another number of cells than the header");
    table.add(row);
  }
  if (style == "csv") return table.csv();
  return table.str(style == "grid"     ? TableStyle::grid
                   : style == "orgtbl" ? TableStyle::orgtbl
                   : style == "pipe"   ? TableStyle::pipe
                                       : TableStyle::simple);
}

}  // namespace

void bind_registries(nb::module_& module) {
  // Every option that train, test, transform and search take by name.
  module.def("experiment_options", [] {
    return from_value(
        schema_value({general_options() + data_options() + trainer_options() + machine_options()}));
  });
  module.def("ops", [] {
    nb::dict ops;
    for (const OpRecord* op : Registry<OpRecord>::instance().all())
      ops[op->name.c_str()] = from_value(op_value(*op));
    return ops;
  });
  module.def("parameter_names", &parameter_names, nb::arg("op"), nb::arg("attributes"));
  module.def("passes", [] {
    nb::dict passes;
    for (const PassRecord* pass : Registry<PassRecord>::instance().all())
      passes[pass->name.c_str()] = from_value(
          Dict{{"summary", pass->summary},
               {"help", pass->help},
               {"kind", pass->pass_kind == PassKind::transform ? "transform" : "analysis"},
               {"aliases", Value::of(pass->aliases)},
               {"options", schema_value(pass->schema)}});
    return passes;
  });
  module.def("formats", [] {
    nb::dict formats;
    for (const FormatRecord* format : Registry<FormatRecord>::instance().all())
      formats[format->name.c_str()] = from_value(Dict{{"summary", format->summary},
                                                      {"help", format->help},
                                                      {"aliases", Value::of(format->aliases)},
                                                      {"class_suffix", format->class_suffix},
                                                      {"options", schema_value(format->schema)}});
    return formats;
  });
  module.def("models", &summaries<ModelRecord>);
  module.def("datasets", &summaries<DatasetRecord>);
  module.def("table", &table_text, nb::arg("header"), nb::arg("rows"), nb::arg("style") = "simple");
  module.def("read_toml", [](const std::string& path) { return from_value(read_toml(path)); });
  module.def("to_toml", [](nb::handle value) { return to_toml(to_value(value)); });
}

}  // namespace mase::python
