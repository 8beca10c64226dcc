// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/learn_weightless.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/io/networks/checkpoint.h"

namespace mase {
namespace {

std::vector<int> labels_of(const Split& split) {
  const int32_t* const labels = split.labels.data<int32_t>();
  return {labels, labels + split.rows()};
}

void save_state(const std::string& file, WeightlessTrainer& trainer, double loss) {
  TensorTable tensors;
  for (const auto& [name, values] : trainer.state()) {
    Tensor tensor({static_cast<int64_t>(values->size())});
    std::copy(values->begin(), values->end(), tensor.mutable_data<float>());
    tensors.emplace_back(name, std::move(tensor));
  }
  save_safetensors(
      file, tensors,
      Dict{{"epoch", std::to_string(trainer.epoch())}, {"loss", fmt::format("{:.17g}", loss)}});
}

double take_state(const std::string& file, WeightlessTrainer& trainer, int64_t epochs) {
  Dict notes;
  const TensorTable tensors = load_safetensors(file, &notes);
  const auto number = [&](const char* key) {
    const Value* const text = notes.find(key);
    const std::optional<double> value =
        text && text->is_string() ? parse_number(text->as_string()) : std::nullopt;
    if (!value) throw Error(file, fmt::format("'{}' is missing", key), "start the run anew");
    return *value;
  };
  const double epoch = number("epoch");
  if (!(epoch >= 0 && epoch <= static_cast<double>(epochs)))
    throw Error(file, fmt::format("is at epoch {}", epoch), "start the run anew");
  for (const auto& [name, values] : trainer.state()) {
    bool found = false;
    for (const auto& one : tensors) {
      const Tensor& tensor = one.second;
      if (one.first != name || tensor.dtype() != DType::f32 ||
          tensor.numel() != static_cast<int64_t>(values->size()))
        continue;
      const float* const from = tensor.data<float>();
      found = std::all_of(from, from + tensor.numel(),
                          [](float value) { return std::isfinite(value); });
      std::copy_n(from, values->size(), values->begin());
    }
    if (!found)
      throw Error(file, fmt::format("'{}' is not this network's", printable(name)),
                  "start the run anew");
  }
  trainer.resume_at(static_cast<int64_t>(epoch));
  return number("loss");
}

double weightless_accuracy(const Graph& graph, const Dataset& dataset, const Split& rows) {
  Program program = Program::compile(graph, {.batch_size = 1024, .loss = loss_for(dataset)});
  return score_rows(program, rows, 0, rows.rows()).accuracy();
}

}  // namespace

bool is_weightless_network(const Graph& graph) {
  return std::any_of(graph.modules().begin(), graph.modules().end(),
                     [](const auto& entry) { return entry.second.op == "group_sum"; });
}

LearnedWeightless learn_weightless(Experiment& experiment, const WeightlessTraining& spec,
                                   const Observer& observer, RunFolder* folder, bool resume) {
  const Dataset* const dataset = experiment.dataset();
  if (!dataset || !dataset->classification)
    throw Error("--learn-bits", "counts are of classes", "name a data set with classes");
  experiment.apply_passes();
  const Graph& graph = experiment.graph();
  const uint64_t seed = experiment.spec().seed;
  if (folder && !(resume && std::filesystem::exists(folder->initial_graph())))
    save_mz(folder->initial_graph(), graph, experiment.file_contents());
  WeightlessNetwork network(graph, seed);
  check_split(dataset->train, *dataset, graph);
  if (element_count(dataset->sample_shape()) != network.features())
    throw Error("--learn-bits",
                fmt::format("the network takes {} features, the data set gives {}",
                            network.features(), element_count(dataset->sample_shape())),
                "describe the network for these data");
  network.fit_thresholds(dataset->train);
  WeightlessTraining training = spec;
  training.shift = dataset->augmentation.crop;
  WeightlessTrainer trainer(network, network.bits_of(dataset->train), labels_of(dataset->train),
                            dataset->sample_shape(), training, seed);
  LearnedWeightless result;
  const std::string kept = folder ? folder->software("weightless") + "/state.safetensors" : "";
  if (folder && resume && std::filesystem::exists(kept))
    result.loss = take_state(kept, trainer, training.epochs);
  const std::vector<uint8_t> bits = network.bits_of(dataset->validation);
  const std::vector<int> labels = labels_of(dataset->validation);
  const auto stopped = [&] { return observer.cancelled && observer.cancelled(); };
  while (trainer.epoch() < training.epochs && !stopped()) {
    const double loss = trainer.run_epoch(stopped);
    if (stopped()) break;
    result.loss = loss;
    if (folder) save_state(kept, trainer, loss);
    if (observer.progress)
      observer.progress({"Training tables of bits", trainer.epoch(), training.epochs, 0});
    if (trainer.epoch() % 10 == 0)
      observer.info(fmt::format("epoch {}: loss {:.4f}, accuracy on validation rows {:.4f}",
                                trainer.epoch(), loss, trainer.accuracy(bits, labels)));
  }
  result.epochs = trainer.epoch();
  result.interrupted = result.epochs < training.epochs;
  if (result.interrupted) return result;
  result.graph = network.graph();
  result.train = weightless_accuracy(result.graph, *dataset, dataset->train);
  if (dataset->validation.rows() > 0)
    result.validation = weightless_accuracy(result.graph, *dataset, dataset->validation);
  result.test_rows = dataset->test.rows();
  if (result.test_rows > 0)
    result.test = weightless_accuracy(result.graph, *dataset, dataset->test);
  const Estimate cost =
      estimate(optimize(lower(result.graph).graph, {.effort = 0, .carry_chains = true}).graph);
  result.luts = cost.luts;
  result.levels = cost.levels;
  if (!folder) return result;
  result.path = folder->software("training_ckpts") + "/best.mz";
  save_mz(result.path, result.graph, experiment.file_contents());
  std::filesystem::remove_all(folder->software("weightless"));
  return result;
}

}  // namespace mase
