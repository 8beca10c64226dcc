// SPDX-License-Identifier: Apache-2.0
// Experiments: prepare, train, evaluate, predict, transform, as the commands do.
#include "mase/run/experiment.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "callbacks.h"
#include "convert.h"
#include "experiment.h"
#include "mase/passes/pass.h"
#include "mase/run/compress/compress.h"
#include "mase/run/resume.h"
#include "mase/run/search/search_spec.h"
#include "module.h"

namespace mase::python {
namespace {

Value evaluation_value(const Evaluation& evaluation, bool classification) {
  Dict figures;
  for (const auto& [name, number] : named_figures(evaluation, classification))
    figures.set(name, number);
  return Dict{{"split", evaluation.split},       {"rows", evaluation.score.rows},
              {"loss", evaluation.score.loss()}, {"figures", figures},
              {"record", evaluation.record},     {"seconds", evaluation.seconds}};
}

nb::dict evaluation_dict(Evaluation evaluation, bool classification) {
  nb::dict result = nb::cast<nb::dict>(from_value(evaluation_value(evaluation, classification)));
  result["outputs"] = owned_array(std::move(evaluation.outputs));
  return result;
}

nb::list outcome_list(const std::vector<PassOutcome>& outcomes) {
  List list;
  for (const PassOutcome& outcome : outcomes)
    list.push_back(Dict{{"pass", outcome.name},
                        {"seconds", outcome.seconds},
                        {"changed", outcome.result.changed},
                        {"data", outcome.result.data}});
  return nb::cast<nb::list>(from_value(list));
}

nb::dict train_dict(TrainResult result, bool classification) {
  const TrainOutcome& outcome = result.outcome;
  nb::dict dict = nb::cast<nb::dict>(from_value(Dict{{"status", status_name(outcome.status)},
                                                     {"message", outcome.message},
                                                     {"remedy", outcome.remedy},
                                                     {"monitor", outcome.monitor},
                                                     {"folder", result.folder},
                                                     {"epochs", outcome.state.epoch},
                                                     {"steps", outcome.state.step},
                                                     {"best_epoch", outcome.state.best_epoch},
                                                     {"best", outcome.state.best_figures},
                                                     {"seconds", outcome.run_seconds},
                                                     {"samples", outcome.run_samples},
                                                     {"stopped_early", outcome.stopped_early}}));
  dict["validation"] = result.validation
                           ? nb::object(evaluation_dict(*result.validation, classification))
                           : nb::none();
  dict["test"] =
      result.test ? nb::object(evaluation_dict(*result.test, classification)) : nb::none();
  return dict;
}

}  // namespace

Session::Session(nb::handle given, const std::string& config, nb::handle passes,
                 nb::object observer, nb::handle tables, const std::optional<std::string>& resume,
                 const std::string& command)
    : callbacks_(std::move(observer)) {
  observer_ = callbacks_.observer();
  if (resume) {
    resumed_ = RunFolder::open(*resume);
    // Read as options once, so that what is no such thing is an error.
    const Settings anew = experiment_settings(to_value(given));
    settings_ = resumed_settings(*resumed_, anew.values, to_value(given).as_dict());
    return;
  }
  settings_ = experiment_settings(to_value(given), config,
                                  command == "search"     ? search_options()
                                  : command == "compress" ? compress_options()
                                                          : std::vector<Field>{});
  if (!passes.is_none()) settings_.config["passes"] = to_value(passes, "passes");
  if (!tables.is_none()) {
    const Value further = to_value(tables);
    for (const auto& [key, value] : further.as_dict()) settings_.config[key] = value;
  }
}

Experiment& Session::experiment() {
  if (!experiment_) throw Error("experiment", "was not prepared", "call prepare()");
  return *experiment_;
}

void Session::set_arrays(nb::handle x, nb::handle y, std::vector<std::string> labels,
                         bool as_test) {
  ArrayData rows;
  rows.name = rows.place = "arrays";
  rows.train = {to_tensor(x, "x"), to_tensor(y, "y")};
  rows.classes = std::move(labels);
  if (as_test) rows.test = rows.train;
  memory_.rows = std::make_shared<const ArrayData>(std::move(rows));
}

void Session::set_graph(const Graph& graph, nb::handle contents) {
  Checkpoint network;
  network.type = CheckpointType::mz;
  network.graph = graph;
  network.tensors = state_dict(graph);
  network.contents = to_value(contents);
  memory_.network = std::make_shared<const Checkpoint>(std::move(network));
}

void Session::prepare(bool needs_data, bool keep_scaling, bool with_passes) {
  ExperimentSpec spec = experiment_spec(settings_);
  spec.data.needed = needs_data;
  spec.data.keep_scaling = keep_scaling;
  take_from_memory(spec, memory_);
  if (!with_passes) spec.passes = {};
  if (resumed_) take_up(spec, *resumed_);
  run([&] {
    for (const std::string& warning : settings_.warnings) observer_.warning(warning);
    auto experiment = std::make_unique<Experiment>(std::move(spec), observer_);
    experiment->prepare();
    experiment_ = std::move(experiment);
  });
}

RunFolder Session::create_folder(const std::string& kind, const Experiment& experiment) const {
  OutputSpec output = output_spec(settings_);
  output.record["version"] = MASE_VERSION;
  output.record["command"] = Value::of(std::vector<std::string>{"python", kind});
  return experiment.create_folder(output, kind);
}

nb::dict Session::train(bool save) {
  const TrainSpec training = train_spec(settings_);
  TrainResult result;
  run([&] {
    if (!training.notice.empty()) observer_.warning(training.notice);
    std::optional<RunFolder> folder = resumed_;
    if (resumed_)
      folder->record()["options"] = settings_.rows_value();
    else if (save)
      folder = create_folder("train");
    result = experiment().train(training, folder ? &*folder : nullptr, resumed_.has_value());
  });
  return train_dict(std::move(result), classification());
}

nb::dict Session::evaluate(const std::string& split) {
  Evaluation evaluation;
  run([&] { evaluation = experiment().evaluate(split); });
  return evaluation_dict(std::move(evaluation), classification());
}

nb::list Session::predict(const std::vector<std::string>& inputs, const std::string& tensor,
                          bool preprocess, bool keep_places) {
  std::vector<Tensor> outputs;
  run([&] { outputs = experiment().predict({inputs, tensor, preprocess, keep_places}).outputs; });
  nb::list arrays;
  for (Tensor& output : outputs) arrays.append(owned_array(std::move(output)));
  return arrays;
}

nb::dict Session::transform(bool save) {
  TransformResult result;
  std::string path;
  run([&] {
    std::optional<RunFolder> folder;
    if (save) {
      folder = create_folder("transform");
      path = folder->path();
    }
    result = experiment().transform(folder ? &*folder : nullptr);
  });
  nb::dict dict;
  dict["passes"] = outcome_list(result.outcomes);
  dict["record"] = from_value(result.record);
  dict["folder"] = path;
  return dict;
}

nb::list Session::apply_passes(const std::string& save_dir) {
  std::vector<PassOutcome> outcomes;
  run([&] { outcomes = experiment().apply_passes(save_dir, true); });
  return outcome_list(outcomes);
}

bool Session::classification() {
  return !experiment().dataset() || experiment().dataset()->classification;
}

void bind_experiment(nb::module_& module) {
  nb::class_<Session>(module, "Experiment", "A network and its data, prepared once.")
      .def(nb::init<nb::handle, const std::string&, nb::handle, nb::object, nb::handle,
                    const std::optional<std::string>&, const std::string&>(),
           nb::arg("given"), nb::arg("config"), nb::arg("passes").none(),
           nb::arg("observer").none(), nb::arg("tables").none() = nb::none(),
           nb::arg("resume") = nb::none(), nb::arg("command") = "")
      .def("prepare", &Session::prepare, nb::arg("needs_data") = false,
           nb::arg("keep_scaling") = true, nb::arg("with_passes") = true)
      .def("set_graph", &Session::set_graph)
      .def("set_arrays", &Session::set_arrays)
      .def("train", &Session::train, nb::arg("save"))
      .def("evaluate", &Session::evaluate)
      .def("predict", &Session::predict)
      .def("transform", &Session::transform, nb::arg("save"))
      .def("apply_passes", &Session::apply_passes, nb::arg("save_dir") = "")
      .def("interrupted", &Session::interrupted)
      .def("rethrow", &Session::rethrow)
      .def("graph", [](Session& session) { return Graph(session.experiment().graph()); })
      .def("file_contents",
           [](Session& session) { return from_value(session.experiment().file_contents()); })
      .def("loaded", [](Session& session) { return session.experiment().network().loaded; })
      .def("name", [](Session& session) { return session.experiment().network().name; })
      .def("options", [](Session& session) { return from_value(session.settings().rows_value()); })
      .def("option_table",
           [](Session& session) { return settings_table(session.settings(), false); })
      .def("dataset", [](Session& session) -> nb::object {
        const Dataset* dataset = session.experiment().dataset();
        if (!dataset) return nb::none();
        return dataset_arrays(*dataset);
      });
}

}  // namespace mase::python
