// SPDX-License-Identifier: Apache-2.0
// How data, network and passes come together; what is then done with them has files of its own.
#include "mase/run/experiment.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/data/arrays.h"
#include "mase/data/token_rows.h"
#include "mase/io/tables/table_source.h"
#include "mase/models/hf.h"
#include "mase/passes/metadata.h"
#include "mase/run/describe.h"
#include "mase/run/sentences.h"
#include "mase/text/tokenizer.h"
#include "mase/train/task.h"

namespace mase {
namespace {

template <class Step>
bool attempt(Problems& problems, const Step& step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    problems.add(error);
    return false;
  }
}

void check_data_name(const DataSpec& spec) {
  const auto& known = Registry<DatasetRecord>::instance();
  std::error_code failure;
  if (spec.arrays || spec.name.empty() || known.find(spec.name) ||
      std::filesystem::exists(spec.name, failure))
    return;
  if (failure) return;  // a name that cannot be, no permission: opening it says which
  if (has_table_extension(spec.name) || ends_with(lower_case(spec.name), ".toml"))
    return static_cast<void>(InputFile(spec.name));  // says why it cannot be opened
  throw Error(spec.position, spec.position ? "dataset" : "",
              fmt::format("unknown data set '{}'", printable(spec.name)),
              suggestion(spec.name, known.names()) +
                  " (or the path of a table: .csv, .arff, .npy, .npz, .h5, or a .toml)")
      .as(Mistake::unknown_name);
}

void need_data(const DataSpec& spec) {
  if (spec.name.empty())
    throw Error("DATASET", "no data set is named",
                "write MODEL DATASET; see ch data list, or name the path of a table");
}

Tensor rows_below(const std::vector<const Split*>& splits, Tensor Split::*part) {
  const Tensor& first = splits[0]->*part;
  Shape shape = first.shape();
  if (shape.empty() || first.numel() == 0) return first;
  shape[0] = 0;
  for (const Split* split : splits) shape[0] += (split->*part).dim(0);
  Tensor all(shape, first.dtype());
  std::byte* to = all.mutable_raw();
  for (const Split* split : splits)
    to = std::copy_n((split->*part).raw(), (split->*part).bytes(), to);
  return all;
}

// Every row of all three splits, training rows first.
Split all_rows(const Dataset& dataset) {
  std::vector<const Split*> splits{&dataset.train};
  if (dataset.validation.rows() > 0 && dataset.validation.x.raw() != dataset.train.x.raw())
    splits.push_back(&dataset.validation);  // else it is the training rows themselves
  if (dataset.test.rows() > 0) splits.push_back(&dataset.test);
  return {rows_below(splits, &Split::x), rows_below(splits, &Split::labels),
          rows_below(splits, &Split::targets), dataset.train.bytes};
}

// How the data of a network's file are read: as the file says, but for what the user asks for.
DatasetOptions as_noted(const DataSpec& noted, const DataSpec& asked) {
  DatasetOptions options = noted.options;
  options.data_dir = asked.options.data_dir;
  options.use_cache = asked.options.use_cache;
  options.seed = asked.options.seed;
  const auto take = [&](const char* name, auto member) {
    if (std::count(asked.given.begin(), asked.given.end(), name) > 0)
      options.*member = asked.options.*member;
  };
  take("task", &DatasetOptions::task);
  take("val_split", &DatasetOptions::validation_split);
  take("drop_bad_rows", &DatasetOptions::drop_bad_rows);
  take("fill_missing", &DatasetOptions::fill_missing);
  take("missing_values", &DatasetOptions::missing_values);
  take("ignore", &DatasetOptions::ignore);
  take("target", &DatasetOptions::target);
  take("categorical", &DatasetOptions::categorical);
  take("scaling", &DatasetOptions::scaling);
  take("class_weights", &DatasetOptions::class_weighting);
  if (asked.given_arguments.empty()) return options;
  const DatasetRecord* record = find_dataset(noted.name);
  for (const auto& [name, value] : asked.given_arguments) {
    if (!record || !record->options.find(name))
      throw Error(value.position(), name,
                  fmt::format("{} has no such option", printable(noted.name)), "leave it out");
    options.arguments[name] = value;
  }
  options.arguments = validate(options.arguments, record->options, "dataset");
  return options;
}

// Texts are cut into tokens as the network's own folder does, unless a tokenizer is named, and into
// rows as long as those it was trained on.
void take_tokenizer(ExperimentSpec& spec, const NetworkNotes& notes, DatasetOptions& options) {
  const DatasetRecord* record = find_dataset(spec.data.name);
  if (spec.data.arrays || !record || !record->options.find("tokenizer")) return;
  const Value& named = std::as_const(options.arguments)["tokenizer"];
  if (!named.is_string() || named.as_string().empty()) {
    Value own;
    if (Tokenizer::is_in(spec.network.load))
      own = spec.network.load;
    else if (notes.data && notes.data->options.arguments.is_dict())
      own = std::as_const(notes.data->options.arguments)["tokenizer"];
    options.arguments["tokenizer"] = own;
    spec.data.options.arguments["tokenizer"] = own;  // for the file that is written
  }
  if (notes.sample_shape.size() == 1 && !notes.task.empty())
    options.arguments["length"] = notes.sample_shape[0];
}

}  // namespace

Experiment::Experiment(ExperimentSpec spec, Observer observer,
                       std::shared_ptr<Communicator> processes)
    : spec_(std::move(spec)),
      observer_(std::move(observer)),
      processes_(processes ? std::move(processes) : std::make_shared<Communicator>()) {}

void Experiment::check(Problems& problems) {
  std::optional<Graph> outline;
  attempt(problems, [&] {
    if (!opened_) checkpoint_ = open_checkpoint(spec_.network);
    opened_ = true;
    take_data_from_file();
    outline = outline_network(spec_.network, checkpoint_, !spec_.passes.calls.empty());
  });
  attempt(problems, [&] { check_data_name(spec_.data); });
  if (spec_.data.needed && problems.empty()) attempt(problems, [&] { need_data(spec_.data); });
  if (outline)
    attempt(problems, [&] { prepare_passes(*outline, spec_.passes.calls); });
  else
    check_pass_arguments(spec_.passes.calls, problems);
}

// A file of ours names the data its network was trained on.
void Experiment::take_data_from_file() {
  DataSpec& data = spec_.data;
  if (!data.name.empty() || !(data.needed || data.noted) || !checkpoint_) return;
  const std::optional<DataSpec> noted = notes_of(*checkpoint_).data;
  if (!noted || noted->name.empty()) return;
  std::error_code ignored;
  if (!Registry<DatasetRecord>::instance().find(noted->name) &&
      !std::filesystem::exists(noted->name, ignored)) {
    const std::string gone =
        fmt::format("was trained on {}, which is not here", printable(noted->name));
    if (data.needed) throw Error(spec_.network.load, gone, "name the data set");
    observer_.warning(fmt::format("{} {}", spec_.network.load, gone));
    return;
  }
  data.name = noted->name;
  spare_data_ = !data.needed;
  data.options = as_noted(*noted, data);
  observer_.info(fmt::format("Data set: {}, as {} says", printable(data.name), spec_.network.load));
}

// Classes go by name, and whoever reads figures is told if the data are not those of the training.
void Experiment::match_data(const NetworkNotes& notes) {
  if (spec_.network.load_partial) return;  // a network trained anew may have other classes
  const std::vector<std::string> before = dataset_->class_names;
  order_classes(*dataset_, notes.class_names, "the network of " + spec_.network.load);
  if (before != dataset_->class_names)
    observer_.info(fmt::format("Classes are numbered as in {}: {}", spec_.network.load,
                               printable(join(dataset_->class_names, ", "))));
  if (!spec_.data.arrays && !notes.identity.empty() && notes.dataset == dataset_->name &&
      notes.identity != dataset_->identity)
    observer_.warning(fmt::format("{} holds other rows now than those that {} was trained on",
                                  printable(dataset_->name), spec_.network.load));
}

void Experiment::prepare() {
  Problems problems;
  check(problems);
  problems.throw_if_any();
  if (!spec_.data.name.empty()) {
    DatasetOptions options = spec_.data.options;
    options.notify = [this](const std::string& line) { observer_.info(line); };
    const NetworkNotes notes = checkpoint_ ? notes_of(*checkpoint_) : NetworkNotes{};
    take_tokenizer(spec_, notes, options);
    if (notes.preprocessing && spec_.data.keep_scaling) {
      options.apply = &*notes.preprocessing;
      if (notes.data && notes.data->options.scaling != options.scaling &&
          std::count(spec_.data.given.begin(), spec_.data.given.end(), "scaling") > 0)
        observer_.warning(fmt::format("scaling = {}: not used; features are scaled as {} says",
                                      printable(options.scaling), spec_.network.load));
    }
    // A file that says nothing of its inputs takes arrays as they are.
    if (spec_.data.arrays && checkpoint_ && !notes.preprocessing && spec_.data.keep_scaling &&
        std::count(spec_.data.given.begin(), spec_.data.given.end(), "scaling") == 0)
      options.scaling = "none";
    try {
      dataset_ = spec_.data.arrays ? array_dataset(with_classes(*spec_.data.arrays, options.task,
                                                                notes.class_names, notes.task),
                                                   options)
                                   : load_dataset(spec_.data.name, options);
    } catch (const Error& error) {
      if (!spare_data_) throw;
      observer_.warning(fmt::format("the data of {} cannot be had: {}", spec_.network.load,
                                    printable(error.what())));
      spec_.data.name.clear();
    }
    if (dataset_) {
      observer_.info(dataset_text(*dataset_));
      match_data(notes);
      if (checkpoint_ && has_packed_tokens(*dataset_))
        match_hf_classes(*dataset_, *checkpoint_, spec_.network.load);
      if (!dataset_->notice.empty()) observer_.warning(printable(dataset_->notice));
    }
  }
  network_ =
      make_network(spec_.network, checkpoint_, dataset(), !spec_.passes.calls.empty(), observer_);
  checkpoint_.reset();
  if (dataset_ && has_packed_tokens(*dataset_) &&
      !(is_hf_graph(network_.graph) && network_.graph.meta.at("hf")["packed"].is_int()))
    throw Error(
        dataset_->name,
        fmt::format("the network {} does not know what rows of sentences are filled up with",
                    network_.name),
        "give a Hugging Face folder, a .gguf, or what was trained from one on sentences");
  if (!spec_.task.empty())
    task_ = spec_.task;
  else if (dataset_)
    task_ = default_task(*dataset_).name;
  prepared_passes_ = prepare_passes(network_.graph, spec_.passes.calls);
  original_ = network_.graph;
}

Value Experiment::file_contents() const {
  Value contents = network_.extra.is_dict() ? network_.extra : Value(Dict{});
  NetworkNotes notes = network_.notes;
  if (dataset_) {
    notes = notes_about(network_.name, task_, spec_.data, *dataset_);
    notes.loss = network_.notes.loss;
    notes.loss_options = network_.notes.loss_options;
  }
  contents["mase"] = notes_value(notes);
  return contents;
}

const Dataset& Experiment::data() const {
  if (!dataset_) need_data({});
  return *dataset_;
}

const Split& split_called(const Dataset& dataset, const std::string& name) {
  if (name == "train") return dataset.train;
  if (name == "validation") return dataset.validation;
  if (name == "test") return dataset.test;
  throw Error("split", fmt::format("unknown split '{}'", printable(name)),
              suggestion(name, {"train", "validation", "test", "all"}))
      .as(Mistake::unknown_name);
}

Split Experiment::split(const std::string& name) const {
  const Split split = name == "all" ? all_rows(data()) : split_called(data(), name);
  if (split.rows() == 0) throw Error(data().name, fmt::format("has no {} rows", name));
  return split;
}

PassContext Experiment::pass_context(const std::string& save_dir) const {
  PassContext context;
  context.original = &original_;
  if (dataset_) {
    context.samples = dataset_->train.samples();
    context.labels = dataset_->train.labels;
    if (dataset_->classification && !has_token_labels(*dataset_)) {
      context.test_x = dataset_->test.samples();
      context.test_labels = dataset_->test.labels;
    }
  }
  context.save_dir = save_dir;
  context.base_dir = spec_.passes.base_dir;
  context.batch_size = spec_.batch_size;
  context.seed = spec_.seed;
  context.threads = spec_.threads;
  context.print = [this](const std::string& text) { observer_.text(text); };
  return context;
}

std::vector<PassOutcome> Experiment::apply_passes(const std::string& save_dir, bool describe) {
  std::vector<PassOutcome> outcomes;
  if (passes_ran_) return outcomes;
  passes_ran_ = true;
  if (!spec_.passes.calls.empty()) {
    PassContext context = pass_context(save_dir);
    if (describe) ensure_metadata(network_.graph, context);
    outcomes = run_passes(network_.graph, std::move(prepared_passes_), context);
  }
  take_quantizer_state(network_, observer_);
  return outcomes;
}

void Experiment::apply_passes_aloud(const std::string& save_dir) {
  for (const PassOutcome& outcome : apply_passes(save_dir))
    observer_.info(fmt::format("Pass {}: {} ({:.2f} s)", outcome.name,
                               outcome.result.changed ? "changed the graph" : "graph unchanged",
                               outcome.seconds));
}

RunFolder Experiment::create_folder(const OutputSpec& output, const std::string& kind) const {
  Value record = output.record;
  record["kind"] = kind;
  record["model"] = Dict{{"name", network_.name}, {"parameters", network_.graph.parameter_count()}};
  if (dataset_) record["dataset"] = dataset_record(*dataset_);
  const std::string name =
      !output.project.empty()
          ? output.project
          : default_project(network_.name, task_, dataset_ ? spec_.data.name : "none") +
                (kind == "test" ? "_test" : "");
  RunFolder folder = RunFolder::create(output.project_dir, name, std::move(record));
  if (!output.config.empty()) folder.write("software/config.toml", output.config);
  return folder;
}

}  // namespace mase
