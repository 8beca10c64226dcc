// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/pass_setup.h"

#include <cstdio>
#include <filesystem>

#include "mase/cli/load_options.h"
#include "mase/models/model.h"

namespace mase {
namespace {

bool is_model(const std::string& name) {
  return Registry<ModelRecord>::instance().find(name) || ends_with(name, ".toml");
}

}  // namespace

std::string path_beside(const std::string& path, const std::string& config_path) {
  namespace fs = std::filesystem;
  if (config_path.empty() || fs::path(path).is_absolute() || fs::exists(path)) return path;
  const fs::path beside = fs::path(config_path).parent_path() / path;
  return fs::exists(beside) ? beside.string() : path;
}

PassNetwork pass_network(const Value& model, Value values, const std::string& config_path,
                         const Dataset* dataset) {
  PassNetwork network;
  const bool loads = values["load"].is_string();
  if (loads) {
    const Value& given = values["load"];
    const std::string path = path_beside(given.as_string(), config_path);
    if (!std::filesystem::exists(path))
      throw Error(given.position(), given.position() ? "load_name" : "--load",
                  fmt::format("no such file: {}", printable(given.as_string())));
    values.dict().set("load", path);
  }
  if (model.is_null() && !loads)
    throw Error("MODEL", "no network is named", "give a model, or --load graph.mz");
  ModelInputs inputs;
  if (dataset) {
    inputs.sample_shape = dataset->sample_shape();
    inputs.outputs = dataset->outputs();
  }
  if (values["seed"].is_int()) inputs.seed = static_cast<uint64_t>(values["seed"].as_int());
  std::string name = model.is_null() ? "" : path_beside(model.as_string("model"), config_path);
  if (loads && (name.empty() || !is_model(name))) {
    const Checkpoint checkpoint = load_checkpoint(values["load"].as_string());
    if (!checkpoint.graph) {
      const std::string guess = guess_model(checkpoint.tensors);
      if (!guess.empty()) {
        network.notes.push_back(fmt::format(
            "the checkpoint's tensors are those of {}: it is used{}", guess,
            name.empty() ? "" : fmt::format(", there is no network '{}'", printable(name))));
        name = guess;
      }
    } else {
      name.clear();  // the file holds its own graph
    }
  }
  if (!name.empty()) {
    if (model.position() && !is_model(name))
      throw Error(model.position(), "model", fmt::format("unknown model '{}'", printable(name)),
                  suggestion(name, Registry<ModelRecord>::instance().names()));
    network.graph = make_model(name, inputs);
  }
  const Loaded loaded = load_network(network.graph, values);
  if (loads && network.graph.order().empty())
    throw Error(
        "MODEL",
        fmt::format("{} holds weights but no network", printable(values["load"].as_string())),
        "name the model too");
  network.notes.insert(network.notes.end(), loaded.notes.begin(), loaded.notes.end());
  if (loaded.checkpoint && loaded.checkpoint->graph)
    network.checkpoint_extra = loaded.checkpoint->contents;
  return network;
}

PassContext pass_context(const Dataset* dataset, const Settings& settings) {
  PassContext context;
  if (dataset) {
    context.samples = dataset->train.x;
    context.labels = dataset->train.labels;
    if (dataset->classification) {
      context.test_x = dataset->test.x;
      context.test_labels = dataset->test.labels;
    }
  }
  context.batch_size = settings["batch_size"].as_int();
  context.seed = static_cast<uint64_t>(settings["seed"].as_int());
  context.print = [](const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  return context;
}

}  // namespace mase
