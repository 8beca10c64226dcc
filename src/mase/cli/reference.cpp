// SPDX-License-Identifier: Apache-2.0
// ch reference: everything the registries hold, as Markdown. docs/reference.md is its output, and a
// check holds it current, so it must not depend on the machine.
#include <cstdio>

#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/data/dataset.h"
#include "mase/formats/format.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/passes/statistics/statistic.h"
#include "mase/train/loss.h"
#include "mase/train/metric.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"
#include "mase/train/task.h"

namespace mase::reference_command {
namespace {

std::string escaped(const std::string& text) {
  return replace_all(replace_all(text, "|", "\\|"), "\n", " ");
}

std::string default_text(const Field& field) {
  // Defaults taken from the machine differ from one to the next.
  if (field.name == "num_workers" || field.name == "threads") return "by machine";
  if (field.required) return "required";
  if (field.default_value.is_null()) return "";
  return "`" + escaped(python_repr(field.default_value)) + "`";
}

std::string fields_table(const Schema& schema, bool flags) {
  if (schema.fields.empty()) return "";
  Table table({flags ? "Option" : "Key", "Type", "Default", "Meaning"});
  for (const Field& field : schema.fields) {
    std::string name = flags ? "--" + replace_all(field.name, "_", "-") : field.name;
    std::string type = type_name(field.type);
    std::string help = field.help;
    if (!field.choices.empty()) help += fmt::format(" [{}]", join(field.choices, ", "));
    table.add({"`" + name + "`", type, default_text(field), escaped(help)});
  }
  return "\n" + table.str(TableStyle::pipe) + "\n";
}

std::string aliases_text(const std::vector<std::string>& aliases) {
  return aliases.empty() ? "" : fmt::format(" Also called `{}`.", fmt::join(aliases, "`, `"));
}

void add(std::string& text, const std::string& block) {
  text += block;
  while (ends_with(text, "\n\n")) text.pop_back();
  if (!ends_with(text, "\n")) text += '\n';
}

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.empty() || text.back() == '.' ? text : text + ".";
}

std::string commands() {
  std::string text = "\n## Commands\n";
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all()) {
    std::string usage = "ch " + command->name;
    for (const Positional& positional : command->positionals)
      usage += positional.required ? " " + positional.name : " [" + positional.name + "]";
    add(text, fmt::format("\n### `{}`\n\n{}\n", usage, sentence(command->summary)));
    if (!command->help.empty()) add(text, "\n" + command->help + "\n");
    for (const Positional& positional : command->positionals)
      add(text, fmt::format("{}- `{}`: {}\n", &positional == &command->positionals[0] ? "\n" : "",
                            positional.name, positional.help));
    add(text, fields_table(command->options, true));
    if (!command->examples.empty()) {
      text += '\n';
      for (const std::string& example : command->examples) text += "    " + example + "\n";
    }
  }
  return text;
}

// A section of records that have a summary, some help and a schema.
template <class Record, class SchemaOf, class Note>
std::string section(const std::string& heading, const SchemaOf& schema_of, const Note& note) {
  std::string text = fmt::format("\n## {}\n", heading);
  for (const Record* record : Registry<Record>::instance().all()) {
    add(text, fmt::format("\n### `{}`\n\n{}{}{}\n", record->name, sentence(record->summary),
                          note(*record), aliases_text(record->aliases)));
    add(text, fields_table(schema_of(*record), false));
  }
  return text;
}

std::string op_note(const OpRecord& op) {
  std::string text;
  if (!op.class_name.empty()) text += fmt::format(" Module `{}`.", op.class_name);
  if (!op.function.empty()) text += fmt::format(" Function `{}`.", op.function);
  if (!op.operands.empty())
    text += fmt::format(" Operands that can be quantised: {}.", fmt::join(op.operands, ", "));
  return text;
}

std::string help_note(const std::string& help) {
  return help.empty() ? "" : "\n\n" + help + "\n\n";
}

std::string reference() {
  const Schema none;
  std::string text =
      "# Reference\n\nPrinted by `ch reference` from the program's registries; do not edit "
      "(`make reference` rewrites it).\n";
  text += commands();
  text += section<ModelRecord>(
      "Models", [&](const ModelRecord&) { return none; },
      [](const ModelRecord& model) {
        return fmt::format(" {} trainable parameters.",
                           with_thousands(model.build({}).parameter_count()));
      });
  text += section<DatasetRecord>(
      "Data sets", [&](const DatasetRecord&) { return none; },
      [](const DatasetRecord& dataset) { return help_note(dataset.help); });
  text += section<OpRecord>(
      "Operations", [](const OpRecord& op) { return op.attributes; }, op_note);
  text += section<FormatRecord>(
      "Number formats", [](const FormatRecord& format) { return format.schema; },
      [](const FormatRecord& format) { return help_note(format.help); });
  text += section<PassRecord>(
      "Passes", [](const PassRecord& pass) { return pass.schema; },
      [](const PassRecord& pass) {
        return (pass.pass_kind == PassKind::analysis ? " Analysis." : " Transform.") +
               help_note(pass.help);
      });
  text += section<StatisticRecord>(
      "Statistics", [](const StatisticRecord& statistic) { return statistic.schema; },
      [](const StatisticRecord& statistic) { return help_note(statistic.help); });
  text += section<OptimizerRecord>(
      "Optimisers", [](const OptimizerRecord& optimizer) { return optimizer.arguments; },
      [](const OptimizerRecord&) { return ""; });
  text += section<ScheduleRecord>(
      "Learning-rate schedules", [](const ScheduleRecord& schedule) { return schedule.arguments; },
      [](const ScheduleRecord&) { return ""; });
  text += section<LossRecord>(
      "Losses", [](const LossRecord& loss) { return loss.options; },
      [](const LossRecord&) { return ""; });
  text += section<MetricRecord>(
      "Metrics", [](const MetricRecord& metric) { return metric.options; },
      [](const MetricRecord& metric) {
        return fmt::format(" For {}.", !metric.for_numbers   ? "classes"
                                       : !metric.for_classes ? "numbers"
                                                             : "classes and numbers");
      });
  text += section<TaskRecord>(
      "Tasks", [&](const TaskRecord&) { return none; },
      [](const TaskRecord& task) {
        return fmt::format(" Loss {}; measures {}; the best epoch by {}.", task.loss,
                           join(task.metrics, ", "), task.monitor);
      });
  return text;
}

const Register<CommandRecord> registered{{
    .name = "reference",
    .summary = "print the reference (docs/reference.md) from the registries",
    .run =
        [](const Arguments&) {
          std::fputs(reference().c_str(), stdout);
          return 0;
        },
}};

}  // namespace
}  // namespace mase::reference_command
