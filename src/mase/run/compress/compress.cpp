// SPDX-License-Identifier: Apache-2.0
#include "mase/run/compress/compress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/passes/pass.h"
#include "mase/run/compress/compress_measure.h"
#include "mase/run/compress/compress_plan.h"
#include "mase/run/search/search_identity.h"
#include "mase/train/paired.h"

namespace mase {
namespace {

struct Stopped {};  // the user asked for it

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A name for a file: the texts of format and method with signs that files take.
std::string file_name(const CompressRow& row) {
  std::string name = row.format + "__" + row.method;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '-';
  return name.substr(0, 120) + ".mz";
}

// The network after more training, with the options of ch train.
Graph trained_network(const Graph& graph, const Experiment& experiment, const Value& options) {
  if (!experiment.dataset())
    throw Error("train", "needs rows with labels", "name a data set; texts are not trained on");
  const Settings settings = experiment_settings(options);
  TrainSpec training = train_spec(settings);
  training.test = false;
  Checkpoint held;
  held.type = CheckpointType::mz;
  held.graph = graph;
  held.tensors = state_dict(graph);
  held.contents = experiment.file_contents();
  ExperimentSpec spec = experiment.spec();
  spec.passes = {};
  spec.batch_size = settings["batch_size"].as_int();
  training.options.seed = spec.seed;
  training.options.threads = spec.threads;
  spec.network = {.seed = spec.network.seed};
  take_from_memory(spec, {.network = std::make_shared<const Checkpoint>(std::move(held))});
  Experiment own(std::move(spec));
  own.prepare();
  const TrainResult result = own.train(training);
  if (result.outcome.status == TrainStatus::diverged)
    throw Error("train", result.outcome.message, result.outcome.remedy);
  return own.graph();
}

CompressRow row_of(const Value& value) {
  CompressRow row;
  row.format = value["format"].as_string("format");
  row.method = value["method"].as_string("method");
  row.trouble = value["trouble"].is_string() ? value["trouble"].as_string() : "";
  row.network = value["network"].is_string() ? value["network"].as_string() : "";
  row.passes = value["passes"].as_list("passes");
  for (const auto& [key, member] : {std::pair{"bits", &CompressRow::bits},
                                    {"bytes", &CompressRow::bytes},
                                    {"value", &CompressRow::value},
                                    {"difference", &CompressRow::difference},
                                    {"low", &CompressRow::low},
                                    {"high", &CompressRow::high},
                                    {"loss", &CompressRow::loss},
                                    {"seconds", &CompressRow::seconds}})
    row.*member = value[key].as_double(key);
  return row;
}

// Rows of a run that is resumed.
std::vector<CompressRow> earlier_rows(const RunFolder& folder, const std::string& identity) {
  const std::string path = folder.path() + "/software/compress/compress.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Value record = read_json(path);
  if (!(record["identity"] == Value(identity)))
    throw Error("--resume",
                fmt::format("{} was measured with another network, other rows or other options",
                            printable(folder.path())),
                "leave out --resume to start anew");
  std::vector<CompressRow> rows;
  for (const Value& row : record["rows"].as_list("rows")) rows.push_back(row_of(row));
  return rows;
}

class Compressor {
 public:
  Compressor(Experiment& experiment, const CompressSpec& spec, const Observer& observer)
      : experiment_(experiment), spec_(spec), observer_(observer) {
    const auto check = [this] { check_stop(); };
    task_ = spec.text.empty() ? dataset_task(experiment, spec) : text_task(experiment, spec, check);
    task_.context.progress = [check](double) { check(); };
    task_.context.original = &task_.graph;
    read_plan();
  }

  // Of everything that decides a row's figures but its format and method.
  std::string identity() const {
    std::vector<std::string> parts = {
        network_digest(task_.graph, true), task_.identity, std::to_string(spec_.calibration_rows),
        std::to_string(spec_.length), std::to_string(experiment_.spec().seed)};
    parts.insert(parts.end(), spec_.leave.begin(), spec_.leave.end());
    return join(parts, " ");
  }

  // The rows of a run that is resumed.
  void take_up(const RunFolder& folder) { earlier_ = earlier_rows(folder, identity()); }
  CompressResult run(RunFolder* folder, const CompressCalls& calls);

 private:
  void check_stop() const {
    if (observer_.cancelled && observer_.cancelled()) throw Stopped{};
  }
  void read_plan();
  bool is_asked(const CompressRow& row) const {
    return std::count(spec_.formats.begin(), spec_.formats.end(), row.format) &&
           std::count(spec_.methods.begin(), spec_.methods.end(), row.method);
  }
  Graph compressed(const CompressFormat& format, const CompressMethod& method, CompressRow& row);
  void measure(const Graph& graph, CompressRow& row);
  void mark_front(CompressResult& result) const;
  void keep(CompressResult& result, const Graph& network) const;
  void save(CompressResult& result, RunFolder& folder, const Graph* network) const;

  Experiment& experiment_;
  const CompressSpec& spec_;
  const Observer& observer_;
  CompressTask task_;
  std::vector<NodeId> layers_;   // that get formats
  std::set<std::string> paths_;  // of those layers
  std::vector<CompressFormat> formats_;
  std::vector<CompressMethod> methods_;
  CompressFigures before_;
  std::vector<CompressRow> earlier_;
};

// All mistakes at once, before anything runs.
void Compressor::read_plan() {
  Problems problems;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const Error& error) {
      problems.add(error);
    }
  };
  layers_ = compress_layers(task_.graph, spec_.leave);
  for (const NodeId id : layers_) paths_.insert(task_.graph.node(id).target);
  for (const std::string& text : spec_.formats)
    attempt([&] {
      CompressFormat format = compress_format(text);
      if (const auto call = compress_quantize_call(task_.graph, layers_, format))
        prepare_passes(task_.graph, {*call});
      formats_.push_back(std::move(format));
    });
  for (const std::string& text : spec_.methods)
    attempt([&] {
      CompressMethod method = compress_method(text, spec_.calibration_rows);
      for (const auto* steps : {&method.before, &method.after})
        for (const CompressStep& step : *steps)
          if (step.trains)
            train_spec(experiment_settings(step.call.args));
          else
            prepare_passes(task_.graph, {step.call});
      methods_.push_back(std::move(method));
    });
  problems.throw_if_any();
}

Graph Compressor::compressed(const CompressFormat& format, const CompressMethod& method,
                             CompressRow& row) {
  Graph graph = task_.graph;
  const auto start = std::chrono::steady_clock::now();
  const auto take = [&](const std::vector<CompressStep>& steps) {
    for (const CompressStep& step : steps) {
      check_stop();
      if (step.trains) {
        graph = trained_network(graph, experiment_, step.call.args);
        continue;
      }
      for (const PassOutcome& outcome : run_passes(graph, {step.call}, task_.context))
        row.passes.push_back(Dict{
            {"pass", outcome.name}, {"seconds", outcome.seconds}, {"result", outcome.result.data}});
    }
  };
  take(method.before);
  PassContext quiet = task_.context;
  if (const auto call = compress_quantize_call(task_.graph, layers_, format))
    run_passes(graph, {*call}, quiet);
  take(method.after);
  row.seconds = seconds_since(start);
  return graph;
}

void Compressor::measure(const Graph& graph, CompressRow& row) {
  const WeightSizes sizes = weight_sizes(graph, task_.graph, paths_);
  row.bits =
      sizes.weights > 0 ? sizes.weight_bits / static_cast<double>(sizes.weights) : double{32};
  row.bytes = sizes.all_bits / 8;
  const CompressFigures figures = task_.measure(graph);
  row.value = figures.value;
  row.loss = figures.loss;
  row.difference = row.value - before_.value;
  if (figures.correct.empty()) return;
  const PairedDifference change = paired_difference(before_.correct, figures.correct);
  row.low = change.low;
  row.high = change.high;
}

// Exactly those that no other is at least as good as in both and better in one.
void Compressor::mark_front(CompressResult& result) const {
  const auto at_least = [&](const CompressRow& a, const CompressRow& b) {
    return a.bits <= b.bits && (result.higher_is_better ? a.value >= b.value : a.value <= b.value);
  };
  const auto counts = [](const CompressRow& row) {
    return row.trouble.empty() && std::isfinite(row.value);
  };
  for (CompressRow& row : result.rows) {
    row.front = counts(row);
    for (const CompressRow& other : result.rows)
      if (counts(other) && at_least(other, row) && !at_least(row, other)) row.front = false;
  }
}

bool is_kept(const CompressSpec& spec, const CompressRow& row) {
  return row.trouble.empty() && (spec.keep == "all" || (spec.keep == "front" && row.front));
}

// In memory.
void Compressor::keep(CompressResult& result, const Graph& network) const {
  result.networks.emplace(result.rows.size() - 1, network);
  std::erase_if(result.networks,
                [&](const auto& one) { return !is_kept(spec_, result.rows[one.first]); });
}

void Compressor::save(CompressResult& result, RunFolder& folder, const Graph* network) const {
  const std::string base = folder.software("compress") + "/";
  if (network && !result.rows.empty()) {
    CompressRow& row = result.rows.back();
    if (is_kept(spec_, row)) {
      row.network = file_name(row);
      save_mz(base + row.network, *network, experiment_.file_contents());
    }
  }
  std::error_code ignored;
  for (CompressRow& row : result.rows)
    if (spec_.keep == "front" && !row.front && !row.network.empty()) {
      std::filesystem::remove(base + row.network, ignored);
      row.network.clear();
    }
  Value record = result.record();
  record["identity"] = identity();
  write_file_atomically(base + "compress.json", to_json(record, 1) + "\n");
  write_file_atomically(base + "compress.csv", compress_csv(result));
}

CompressResult Compressor::run(RunFolder* folder, const CompressCalls& calls) {
  CompressResult result;
  result.figure = task_.figure;
  result.higher_is_better = task_.higher_is_better;
  result.measured_on = task_.measured_on;
  result.calibrated_on = task_.calibrated_on;
  const size_t all = formats_.size() * methods_.size();
  try {
    before_ = task_.measure(task_.graph);
    result.has_intervals = !before_.correct.empty();
    result.original = {.format = "float32", .method = "-"};
    measure(task_.graph, result.original);
    result.weights = weight_sizes(task_.graph, task_.graph, paths_).weights;
    result.layers = static_cast<int64_t>(layers_.size());
    if (calls.finished) calls.finished(result.original, 0, all);
    // What an earlier run had beside these stays in the table.
    for (const CompressRow& row : earlier_)
      if (!is_asked(row)) result.rows.push_back(row);
    const size_t others = result.rows.size();
    for (const CompressFormat& format : formats_)
      for (const CompressMethod& method : methods_) {
        const auto known =
            std::find_if(earlier_.begin(), earlier_.end(), [&](const CompressRow& row) {
              return row.format == format.text && row.method == method.text;
            });
        CompressRow row{.format = format.text, .method = method.text};
        std::optional<Graph> graph;
        if (known != earlier_.end()) {
          row = *known;
        } else {
          check_stop();
          try {
            graph = compressed(format, method, row);
            measure(*graph, row);
          } catch (const Error& error) {
            row = {.format = format.text, .method = method.text, .bits = 0};
            row.trouble = error.what();
          }
        }
        result.rows.push_back(std::move(row));
        mark_front(result);
        if (folder)
          save(result, *folder, graph ? &*graph : nullptr);
        else if (graph)
          keep(result, *graph);
        if (calls.finished) calls.finished(result.rows.back(), result.rows.size() - others, all);
      }
  } catch (const Stopped&) {
    result.stopped = true;
  }
  return result;
}

}  // namespace

CompressResult compress(Experiment& experiment, const CompressSpec& spec, const Observer& observer,
                        const std::function<RunFolder()>& folder, const CompressCalls& calls) {
  Compressor compressor(experiment, spec, observer);
  if (!folder) return compressor.run(nullptr, calls);
  RunFolder run = folder();
  compressor.take_up(run);
  CompressResult result = run.guard([&] { return compressor.run(&run, calls); });
  result.folder = run.path();
  run.finish(result.stopped ? "interrupted" : "finished");
  return result;
}

RunFolder resumed_compress_folder(const CompressSpec& spec) {
  RunFolder folder = RunFolder::open(spec.resume);
  if (!(folder.record()["kind"] == Value("compress")))
    throw Error("--resume", fmt::format("{} is no run of ch compress", printable(folder.path())),
                "give a folder that it wrote");
  folder.lock();
  return folder;
}

}  // namespace mase
