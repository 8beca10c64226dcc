// SPDX-License-Identifier: Apache-2.0
// ch format: what number formats there are, the values of one, and what a network costs in each.
#include <cmath>
#include <set>

#include "mase/base/table.h"
#include "mase/cli/format_rules.h"
#include "mase/cli/format_speed.h"
#include "mase/cli/format_sweep.h"
#include "mase/cli/options.h"
#include "mase/cli/plot_option.h"
#include "mase/formats/measure.h"
#include "mase/run/set_option.h"

namespace mase::format_command {
namespace {

int list() {
  Table table({"Format", "Also", "Keys", "What it is"});
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all())
    table.add({record->name, join(record->aliases, ", "), join(record->schema.names(), ", "),
               record->summary});
  fmt::print("{}", table.str());
  return 0;
}

std::string value_text(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.9g}", value);
}

void print_codes(const Quantizer& quantizer) {
  const std::vector<float> values = code_values(quantizer);
  if (values.empty()) {
    const Fixed* fixed = quantizer.type ? quantizer.type->as<Fixed>() : nullptr;
    fmt::print("\nNo table: {}.\n",
               fixed && group_count(*fixed) > 1
                   ? "every group of values has numbers of its own"
                   : "the format has no codes of at most 16 bits with these keys");
    return;
  }
  // Small formats in full; of larger ones the first and last rows.
  constexpr size_t columns = 8, most_rows = 32, edge_rows = 4;
  std::vector<std::string> header = {"Code"};
  for (size_t c = 0; c < columns; ++c) header.push_back(fmt::format("+{}", c));
  Table table(header);
  const size_t rows = (values.size() + columns - 1) / columns;
  const int digits = (quantizer.code_bits + 3) / 4;
  for (size_t row = 0; row < rows; ++row) {
    if (rows > most_rows && row == edge_rows) {
      table.add({"..."});
      row = rows - edge_rows;
    }
    std::vector<std::string> cells = {fmt::format("0x{:0{}x}", row * columns, digits)};
    for (size_t c = 0; c < columns; ++c) {
      const size_t code = row * columns + c;
      cells.push_back(code < values.size() ? value_text(values[code]) : "");
    }
    table.add(cells);
  }
  fmt::print("\n{}{}", quantizer.elementwise ? "" : "Elements, before the shared scale:\n",
             table.str());
}

void draw_spacing(const Quantizer& quantizer, const PlotStyle& style) {
  const std::vector<float> values = representable_values(quantizer);
  Curve curve{"log2 of the spacing", {}, {}};
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    if (values[i] <= 0) continue;
    curve.x.push_back(std::log2(static_cast<double>(values[i])));
    curve.y.push_back(std::log2(static_cast<double>(values[i + 1]) - values[i]));
  }
  if (curve.x.size() < 2) return;
  CurvePlot plot;
  plot.title = "Spacing of neighbours over magnitude (both log2)";
  plot.x_label = "log2 of the value";
  plot.curves = {thin(curve, 2000)};
  fmt::print("\n{}", plot_curves(plot, style));
}

int show(const Arguments& arguments) {
  if (arguments["name"].is_null())
    throw Error("ch format show", "no format is named", "see ch format list");
  const std::string& name = arguments["name"].as_string();
  const FormatRecord& record = Registry<FormatRecord>::instance().get(name, "NAME");
  const QuantizerPtr quantizer = make_quantizer(name, set_table(arguments["set"]), "--set");
  fmt::print("{}: {}\n", record.name, record.summary);
  const std::string config = config_text(record, quantizer->config);
  if (!config.empty()) fmt::print("{}\n", config);
  fmt::print("Number type: {}\n",
             quantizer->type ? type_text(*quantizer->type) : "none: " + quantizer->untyped);
  Table table({"Property", "Value"});
  table.add({"bits per value (tensor of 1024 x 1024)",
             fmt::format("{:.6g}", quantizer->bits_per_value({1024, 1024}))});
  table.add({"rounds every value on its own", quantizer->elementwise ? "yes" : "no"});
  if (quantizer->lowest) table.add({"lowest", fmt::format("{:.9g}", *quantizer->lowest)});
  if (quantizer->largest) table.add({"largest", fmt::format("{:.9g}", *quantizer->largest)});
  if (quantizer->smallest_positive)
    table.add({"smallest positive", fmt::format("{:.9g}", *quantizer->smallest_positive)});
  if (quantizer->code_bits) {
    table.add({"bits of a code", std::to_string(quantizer->code_bits)});
    if (const size_t values = representable_values(*quantizer).size(); values > 0)
      table.add({"distinct finite values", std::to_string(values)});
  }
  fmt::print("{}", table.str());
  print_codes(*quantizer);
  draw_spacing(*quantizer, plot_style(arguments.values));
  return 0;
}

// Of the network and the data that are swept.
std::vector<Field> network_options() {
  return without(general_options(), {"task", "batch_size", "threads", "project", "project_dir"}) +
         data_options();
}

int run(const Arguments& arguments) {
  const std::string& action = arguments["action"].as_string();
  const auto takes = [&](const std::set<std::string>& useful) {
    check_typed(arguments, "format", action, useful);
  };
  if (action == "list") return takes({}), list();
  if (action == "rules") return takes({}), format_rules();
  if (action == "show") return takes({"name", "set", "ascii"}), show(arguments);
  if (action == "speed") return takes({"only", "json"}), format_speed(arguments);
  if (action != "sweep")
    throw Error("ch format", fmt::format("unknown action '{}'", printable(action)),
                suggestion(action, {"list", "show", "sweep", "speed", "rules"}));
  std::set<std::string> useful = {"name",         "dataset", "rows", "only",
                                  "weights_only", "json",    "ascii"};
  for (const Field& field : network_options()) useful.insert(field.name);
  takes(useful);
  return format_sweep(arguments);
}

std::vector<Field> own_options() {
  return {{.name = "set",
           .type = FieldType::list,
           .help = "show: a key of the format, key=value; may be repeated"},
          {.name = "rows",
           .type = FieldType::integer,
           .default_value = 20000,
           .help = "sweep: how many test rows are evaluated",
           .minimum = 1},
          {.name = "only",
           .type = FieldType::list,
           .help = "sweep, speed: this format only; may be repeated"},
          {.name = "weights_only",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "sweep: leave activations in single precision"},
          {.name = "json", .type = FieldType::text, .help = "sweep, speed: write the table"}};
}

const Register<CommandRecord> registered{{
    .name = "format",
    .group = CommandGroup::quantise,
    .summary = "Number formats: list them, show one, sweep a network over all",
    .help = "ch format list\n"
            "ch format show NAME [--set key=value]: limits, table of codes, spacing\n"
            "ch format sweep NETWORK [DATASET]: accuracy against bits in every format\n"
            "ch format rules: where the default rule and MASE's differ, and by how much\n"
            "ch format speed: values per second on one core, against a plain copy",
    .positionals = {{.name = "action", .help = "list, show, sweep, rules or speed"},
                    {.name = "name",
                     .help = "the format, or the network to sweep",
                     .required = false},
                    dataset_word("the data set to sweep on")},
    .options = {own_options() + network_options() + only(plot_fields(), {"ascii"})},
    .examples = {"ch format show e4m3", "ch format show integer --set width=6 --set frac_width=2",
                 "ch format sweep best.mz", "ch format sweep jsc-10x jsc --load best.ckpt"},
    .run = run,
}};

}  // namespace
}  // namespace mase::format_command
