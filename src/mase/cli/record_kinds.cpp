// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/record_kinds.h"

#include "mase/base/registry.h"
#include "mase/base/text.h"
#include "mase/data/dataset.h"
#include "mase/formats/format.h"
#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/emit/target.h"
#include "mase/io/networks/importer.h"
#include "mase/io/tables/table_source.h"
#include "mase/ir/op.h"
#include "mase/models/layer_block.h"
#include "mase/models/model.h"
#include "mase/passes/criterion.h"
#include "mase/passes/pass.h"
#include "mase/passes/statistics/statistic.h"
#include "mase/search/crossovers/crossover.h"
#include "mase/search/importances/importance.h"
#include "mase/search/measure/figure.h"
#include "mase/search/pruners/pruner.h"
#include "mase/search/samplers/sampler.h"
#include "mase/search/spaces/candidate.h"
#include "mase/search/storages/storage.h"
#include "mase/text/part.h"
#include "mase/train/loss.h"
#include "mase/train/metric.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"
#include "mase/train/task.h"

namespace mase {
namespace {

std::string no_note() { return ""; }

std::string own_note(const ModelRecord& model) {
  return fmt::format(" {} trainable parameters.",
                     with_thousands(model.build({.values = false}).parameter_count()));
}

std::string own_note(const OpRecord& op) {
  std::string text;
  if (!op.class_name.empty()) text += fmt::format(" Module `{}`.", op.class_name);
  if (!op.function.empty()) text += fmt::format(" Function `{}`.", op.function);
  if (!op.operands.empty())
    text += fmt::format(" Operands that can be quantised: {}.", fmt::join(op.operands, ", "));
  return text;
}

std::string own_note(const PassRecord& pass) {
  return pass.pass_kind == PassKind::analysis ? " Analysis." : " Transform.";
}

std::string own_note(const CriterionRecord& criterion) {
  if (criterion.needs_gradients) return " Wants rows with classes.";
  return criterion.needs_inputs ? " Wants calibration rows." : "";
}

std::string own_note(const MetricRecord& metric) {
  return fmt::format(" For {}.", !metric.for_numbers   ? "classes"
                                 : !metric.for_classes ? "numbers"
                                                       : "classes and numbers");
}

std::string own_note(const TaskRecord& task) {
  return fmt::format(" Loss {}; measures {}; the best epoch by {}.", task.loss,
                     join(task.metrics, ", "), task.monitor);
}

std::string own_note(const search::FigureRecord& figure) {
  return fmt::format(" {} is better{}.", figure.higher_is_better ? "Higher" : "Lower",
                     figure.unit.empty() ? "" : ", in " + figure.unit);
}

std::string own_note(const search::SpaceRecord& space) {
  if (!space.keys) return "";
  const std::vector<std::string> keys = space.keys();
  return keys.empty() ? ""
                      : fmt::format(" Keys of a layer's config: `{}`.", fmt::join(keys, "`, `"));
}

std::string own_note(const ImporterRecord& importer) {
  return importer.suffixes.empty()
             ? ""
             : fmt::format(" Files `{}`.", fmt::join(importer.suffixes, "`, `"));
}

std::string own_note(const TableReaderRecord& reader) {
  return reader.extensions.empty()
             ? ""
             : fmt::format(" Files `{}`.", fmt::join(reader.extensions, "`, `"));
}

// What a record has of these, under whatever name its kind gives it.
template <class Record>
std::vector<RecordEntry> entries_of() {
  std::vector<RecordEntry> entries;
  for (const Record* record : Registry<Record>::instance().all()) {
    RecordEntry entry{record->name, "", no_note(), {}, {}};
    if constexpr (requires { record->summary; }) entry.summary = record->summary;
    if constexpr (requires { own_note(*record); }) entry.note = own_note(*record);
    if constexpr (requires { record->help; })
      if (!record->help.empty()) entry.note += "\n\n" + record->help + "\n\n";
    if constexpr (requires { record->aliases; }) entry.aliases = record->aliases;
    if constexpr (requires { record->schema; }) entry.options = record->schema;
    if constexpr (requires { record->arguments; }) entry.options = record->arguments;
    if constexpr (requires { Schema(record->options); }) entry.options = record->options;
    if constexpr (requires { Schema(record->attributes); }) entry.options = record->attributes;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

const std::vector<RecordKind>& record_kinds() {
  static const std::vector<RecordKind> kinds = {
      {"model", "Models", entries_of<ModelRecord>},
      {"dataset", "Data sets", entries_of<DatasetRecord>},
      {"op", "Operations", entries_of<OpRecord>},
      {"block", "Classes of several layers", entries_of<LayerBlockRecord>},
      {"format", "Number formats", entries_of<FormatRecord>},
      {"pass", "Passes", entries_of<PassRecord>},
      {"criterion", "Criteria of pruning", entries_of<CriterionRecord>},
      {"statistic", "Statistics", entries_of<StatisticRecord>},
      {"optimizer", "Optimisers", entries_of<OptimizerRecord>},
      {"schedule", "Learning-rate schedules", entries_of<ScheduleRecord>},
      {"loss", "Losses", entries_of<LossRecord>},
      {"metric", "Metrics", entries_of<MetricRecord>},
      {"task", "Tasks", entries_of<TaskRecord>},
      {"sampler", "Samplers", entries_of<search::SamplerRecord>},
      {"pruner", "Pruners", entries_of<search::PrunerRecord>},
      {"figure", "Figures of a search", entries_of<search::FigureRecord>},
      {"space", "Search spaces", entries_of<search::SpaceRecord>},
      {"storage", "Storages of studies", entries_of<search::StorageRecord>},
      {"crossover", "Crossovers", entries_of<search::CrossoverRecord>},
      {"importance", "Importances", entries_of<search::ImportanceRecord>},
      {"style", "Styles of hardware", entries_of<EmitterRecord>},
      {"target", "Targets of hardware", entries_of<TargetRecord>},
      {"importer", "Network files", entries_of<ImporterRecord>},
      {"table", "Table files", entries_of<TableReaderRecord>},
      {"normalizer", "Normalisers of tokenizers", entries_of<NormalizerRecord>},
      {"splitter", "Splitters of tokenizers", entries_of<SplitterRecord>},
      {"tokens", "Models of tokenizers", entries_of<TokenModelRecord>},
      {"processor", "Processors of tokenizers", entries_of<ProcessorRecord>},
      {"decoder", "Decoders of tokenizers", entries_of<DecoderRecord>},
  };
  return kinds;
}

std::string reference_default(const Field& field) {
  // Defaults taken from the machine differ from one to the next.
  if (field.name == "num_workers" || field.name == "threads") return "by machine";
  if (field.required) return "required";
  return field.default_value.is_null() ? "" : python_repr(field.default_value);
}

}  // namespace mase
