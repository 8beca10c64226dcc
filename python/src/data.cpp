// SPDX-License-Identifier: Apache-2.0
// Data sets in memory: splits as arrays that share it.
#include <nanobind/stl/string.h>

#include "callbacks.h"
#include "convert.h"
#include "mase/data/dataset.h"
#include "mase/run/network.h"
#include "mase/run/spec.h"
#include "module.h"

namespace mase::python {
namespace {

nb::dict split_arrays(const Split& split, bool classification) {
  nb::dict arrays;
  arrays["x"] = shared_array(split.samples());
  arrays["y"] = shared_array(classification ? split.labels : split.targets);
  return arrays;
}

}  // namespace

nb::dict dataset_arrays(const Dataset& dataset) {
  nb::dict result;
  result["name"] = dataset.name;
  result["variant"] = dataset.variant;
  result["identity"] = dataset.identity;
  result["notice"] = dataset.notice;
  result["classification"] = dataset.classification;
  nb::list classes, features;
  for (const std::string& name : dataset.class_names) classes.append(name);
  const FeatureNames& names = dataset.preprocessing.feature_names;
  for (size_t i = 0; i < names.size(); ++i) features.append(names[i]);
  result["class_names"] = classes;
  result["feature_names"] = features;
  result["outputs"] = dataset.outputs();
  nb::list shape;
  for (const int64_t size : dataset.sample_shape()) shape.append(size);
  result["sample_shape"] = shape;
  result["train"] = split_arrays(dataset.train, dataset.classification);
  result["validation"] = split_arrays(dataset.validation, dataset.classification);
  result["test"] = split_arrays(dataset.test, dataset.classification);
  return result;
}

void bind_data(nb::module_& module) {
  // What a network's file says about scaling its inputs: names, and (raw - offset) / scale.
  module.def("scaling", [](nb::handle contents) -> nb::object {
    Checkpoint file;
    file.contents = to_value(contents);
    const std::optional<Preprocessing> noted = notes_of(file).preprocessing;
    if (!noted || noted->offset.empty()) return nb::none();
    nb::list names;
    for (size_t i = 0; i < noted->feature_names.size(); ++i) names.append(noted->feature_names[i]);
    const Shape shape{static_cast<int64_t>(noted->offset.size())};
    return nb::make_tuple(names, shared_array(Tensor::of(shape, noted->offset)),
                          shared_array(Tensor::of(shape, noted->scale)));
  });
  // The data options of an experiment by name: dataset, data_dir, val_split, seed, ...
  module.def("load_dataset", [](nb::handle given, nb::object observer) {
    const DataSpec spec = data_spec(experiment_settings(to_value(given)));
    Callbacks callbacks(observer);
    DatasetOptions options = spec.options;
    const Observer told = callbacks.observer();
    options.notify = [&told](const std::string& line) { told.info(line); };
    Dataset dataset;
    {
      nb::gil_scoped_release unlocked;
      dataset = load_dataset(spec.name, options);
    }
    callbacks.rethrow();
    return dataset_arrays(dataset);
  });
}

}  // namespace mase::python
