// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/learn_tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "mase/base/file.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/train/tables/table_moves.h"

namespace mase {
namespace {

constexpr int64_t table_scoring_batch = 1024;
constexpr int64_t most_steps = 10000;
constexpr int folds = 4;                    // every row is judged by networks that have not seen it
constexpr int first_input_bits[] = {6, 5};  // of edges of the first layer and of others, at most
constexpr double many_outside = 0.02;

TableRows table_rows_of(const Split& split, const TableNetwork& network) {
  TableRows rows{split.rows(), network.layers().front().in, network.outputs(), {}, {}, {}};
  rows.codes.resize(static_cast<size_t>(rows.rows * rows.features));
  const Tensor x = split.samples();
  network.first_codes(x.data<float>(), rows.rows, rows.codes.data());
  rows.targets.assign(static_cast<size_t>(rows.rows * rows.classes), 0.0f);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const int label = split.labels.data<int32_t>()[row];
    rows.labels.push_back(label);
    rows.targets[static_cast<size_t>(row * rows.classes + label)] = 1;
  }
  return rows;
}

// The share of features that are beyond the first layer's codes.
double outside_of(const Split& split, const TableLayer& layer) {
  const Tensor x = split.samples();
  const float most = std::ldexp(static_cast<float>(layer.codes) / 2, -layer.frac);
  int64_t count = 0;
  for (int64_t k = 0; k < x.numel(); ++k) count += std::abs(x.data<float>()[k]) > most;
  return x.numel() > 0 ? static_cast<double>(count) / static_cast<double>(x.numel()) : 0;
}

// What a run stands at: files of one step each, every one of them enough to go on from.
class StepFolder {
 public:
  StepFolder(std::string path, bool resume) : path_(std::move(path)) {
    if (!resume) std::filesystem::remove_all(path_);
    make_directories(path_);
  }

  static TensorTable tensors_of(const TableNetwork& network) {
    TensorTable tensors;
    const auto add = [&](const std::string& name, const auto& values) {
      Tensor tensor({static_cast<int64_t>(values.size())});
      std::copy(values.begin(), values.end(), tensor.mutable_data<float>());
      tensors.emplace_back(name, std::move(tensor));
    };
    for (const TableLayer& layer : network.layers()) {
      add(layer.path + ".coarse", layer.coarse);
      add(layer.path + ".fine", layer.fine);
      add(layer.path + ".bias", layer.bias);
      add(layer.path + ".counts", layer.counts);
      add(layer.path + ".bits", std::vector<float>(layer.bits.begin(), layer.bits.end()));
      add(layer.path + ".fracs", std::vector<float>(layer.fracs.begin(), layer.fracs.end()));
    }
    return tensors;
  }
  static void take(TableNetwork& network, const TensorTable& tensors, const std::string& file) {
    const auto get = [&](const std::string& name, auto& values) {
      for (const auto& one : tensors) {
        const Tensor& tensor = one.second;
        if (one.first != name) continue;
        if (tensor.dtype() != DType::f32 || tensor.numel() != static_cast<int64_t>(values.size()))
          break;
        const float* const from = tensor.data<float>();
        const auto beyond = [](float value) { return !(std::abs(value) < 1e9f); };
        if (std::any_of(from, from + tensor.numel(), beyond)) break;
        for (size_t k = 0; k < values.size(); ++k)
          values[k] = static_cast<std::decay_t<decltype(values[0])>>(from[k]);
        return;
      }
      throw Error(file, fmt::format("'{}' is not this network's", printable(name)),
                  "start the run anew");
    };
    for (TableLayer& layer : network.layers()) {
      get(layer.path + ".coarse", layer.coarse);
      get(layer.path + ".fine", layer.fine);
      get(layer.path + ".bias", layer.bias);
      get(layer.path + ".counts", layer.counts);
      get(layer.path + ".bits", layer.bits);
      get(layer.path + ".fracs", layer.fracs);
      for (const int bits : layer.bits)
        if (bits < 0 || bits > layer.width)
          throw Error(file, fmt::format("an edge has {} bits", bits), "start the run anew");
      for (const int frac : layer.fracs)
        if (frac < -16 || frac > 16)
          throw Error(file, fmt::format("an edge has {} fraction bits", frac),
                      "start the run anew");
      for (float& count : layer.counts)
        if (!(count > 0)) throw Error(file, "a count is not positive", "start the run anew");
    }
    network.derive();
  }

  std::string file(int64_t step) const { return fmt::format("{}/{:06}.safetensors", path_, step); }
  std::string targets() const { return path_ + "/targets.safetensors"; }
  int64_t last() const {
    int64_t step = -1;
    while (std::filesystem::exists(file(step + 1))) ++step;
    return step;
  }
  void remove() const { std::filesystem::remove_all(path_); }

 private:
  std::string path_;
};

// The rows' targets: labels, and the shares that an ensemble gives to rows it was not trained on.
void teach(TableRows& train, TableRows& validation, const Graph& graph, const LearnTablesSpec& spec,
           uint64_t seed, const Observer& observer) {
  const int64_t classes = train.classes;
  std::vector<float> own(train.targets.size(), 0.0f), others(validation.targets.size(), 0.0f);
  const int64_t each = std::max<int64_t>(1, (spec.teachers + folds - 1) / folds);
  int64_t done = 0;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<uint32_t> inside, outside;
    for (int64_t row = 0; row < train.rows; ++row)
      (row % folds == fold ? outside : inside).push_back(static_cast<uint32_t>(row));
    const TableRows learned = train.part(inside), judged = train.part(outside);
    std::vector<float> shares(judged.targets.size(), 0.0f);
    for (int64_t k = 0; k < each; ++k) {
      if (observer.cancelled && observer.cancelled()) return;
      if (observer.progress) observer.progress({"Training the ensemble", done++, each * folds, 0});
      const auto number = static_cast<uint64_t>(fold * each + k);
      TableNetwork network(graph, seed * 1000 + 1 + number);
      for (TableLayer& layer : network.layers())
        std::fill(layer.fracs.begin(), layer.fracs.end(), 5);
      TableTrainer trainer(network, learned);
      trainer.train({.epochs = spec.teacher_epochs, .smoothness = 3 * spec.smoothness}, seed,
                    fmt::format("teacher{}", number), observer.cancelled);
      trainer.add_shares(judged, shares);
      trainer.add_shares(validation, others);
    }
    for (size_t row = 0; row < outside.size(); ++row)
      for (int64_t o = 0; o < classes; ++o)
        own[outside[row] * static_cast<size_t>(classes) + static_cast<size_t>(o)] =
            shares[row * static_cast<size_t>(classes) + static_cast<size_t>(o)] /
            static_cast<float>(each);
  }
  const auto mix = [&](std::vector<float>& targets, const std::vector<float>& shares, float scale) {
    const auto share = static_cast<float>(spec.teacher_share);
    for (size_t k = 0; k < targets.size(); ++k)
      targets[k] = share * scale * shares[k] + (1 - share) * targets[k];
  };
  mix(train.targets, own, 1);
  mix(validation.targets, others, 1 / static_cast<float>(each * folds));
}

TensorTable targets_of(const TableRows& train, const TableRows& validation) {
  TensorTable tensors;
  for (const auto& [name, rows] : {std::pair{"train", &train}, {"validation", &validation}}) {
    Tensor tensor({static_cast<int64_t>(rows->targets.size())});
    std::copy(rows->targets.begin(), rows->targets.end(), tensor.mutable_data<float>());
    tensors.emplace_back(name, std::move(tensor));
  }
  return tensors;
}

void take_targets(const std::string& file, TableRows& train, TableRows& validation) {
  const TensorTable tensors = load_safetensors(file);
  for (const auto& [name, rows] : {std::pair{"train", &train}, {"validation", &validation}}) {
    bool found = false;
    for (const auto& [own, tensor] : tensors) {
      if (own != name || tensor.dtype() != DType::f32 ||
          tensor.numel() != static_cast<int64_t>(rows->targets.size()))
        continue;
      std::copy_n(tensor.data<float>(), rows->targets.size(), rows->targets.begin());
      found = true;
    }
    if (!found) throw Error(file, "is not of these rows", "start the run anew");
  }
}

struct TableCandidate {
  int64_t step;
  double cost, loss;
};

// The least loss of each size: so many sizes, evenly spaced by their logarithms.
std::vector<TableCandidate> best_tables_by_size(const std::vector<TableCandidate>& all,
                                                int64_t sizes) {
  if (all.empty()) return {};
  const auto smaller = [](const TableCandidate& a, const TableCandidate& b) {
    return a.cost < b.cost;
  };
  const auto [least, most] = std::minmax_element(all.begin(), all.end(), smaller);
  const double low = std::log(least->cost), span = std::log(most->cost) - low;
  std::map<int64_t, TableCandidate> best;
  for (const TableCandidate& one : all) {
    const double place = span > 0 ? (std::log(one.cost) - low) / span : 0;
    const int64_t size =
        std::min(sizes - 1, static_cast<int64_t>(place * static_cast<double>(sizes)));
    const auto [held, fresh] = best.try_emplace(size, one);
    if (!fresh && one.loss < held->second.loss) held->second = one;
  }
  std::vector<TableCandidate> chosen;
  for (const auto& [size, one] : best) chosen.push_back(one);
  return chosen;
}

double table_accuracy(const Graph& graph, const Dataset& dataset, const Split& rows) {
  Program program =
      Program::compile(graph, {.batch_size = table_scoring_batch, .loss = loss_for(dataset)});
  return score_rows(program, rows, 0, rows.rows()).accuracy();
}

void keep_table_front(std::vector<LearnedTables>& points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const LearnedTables& a, const LearnedTables& b) {
                     return a.luts != b.luts ? a.luts < b.luts : a.loss < b.loss;
                   });
  double best = INFINITY;
  std::erase_if(points, [&](const LearnedTables& point) {
    const bool worse = point.loss >= best;
    best = std::min(best, point.loss);
    return worse;
  });
}

}  // namespace

bool is_table_network(const Graph& graph) {
  bool found = false;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::placeholder || node.kind == NodeKind::output) continue;
    const auto module = graph.modules().find(node.target);
    if (node.kind != NodeKind::call_module || module == graph.modules().end() ||
        module->second.op != "table_linear")
      return false;
    found = true;
  }
  return found;
}

LearnTablesResult learn_tables(Experiment& experiment, const LearnTablesSpec& spec,
                               const Observer& observer, RunFolder* folder, bool resume) {
  const Dataset* const dataset = experiment.dataset();
  if (!dataset || !dataset->classification)
    throw Error("--learn-bits", "the front is chosen by classes", "name a data set with classes");
  if (dataset->validation.rows() == 0)
    throw Error("--learn-bits", "the front is chosen by validation rows", "give a --val-split");
  experiment.apply_passes();
  const Graph& graph = experiment.graph();
  const uint64_t seed = experiment.spec().seed;
  if (folder && !(resume && std::filesystem::exists(folder->initial_graph())))
    save_mz(folder->initial_graph(), graph, experiment.file_contents());
  TableNetwork network(graph, seed);
  check_split(dataset->train, *dataset, graph);
  check_split(dataset->validation, *dataset, graph);
  if (const double outside = outside_of(dataset->train, network.layers().front());
      outside > many_outside)
    observer.warning(fmt::format(
        "{:.0f} % of the features are beyond the codes of the first tables; --scaling quantile "
        "puts them within",
        100 * outside));
  TableRows train = table_rows_of(dataset->train, network),
            validation = table_rows_of(dataset->validation, network);
  std::optional<StepFolder> kept;
  if (folder) kept.emplace(folder->software("tables"), resume);
  const auto stopped = [&] { return observer.cancelled && observer.cancelled(); };
  LearnTablesResult result;
  result.test_rows = dataset->test.rows();
  if (spec.teachers > 0 && spec.teacher_share > 0) {
    if (kept && std::filesystem::exists(kept->targets())) {
      take_targets(kept->targets(), train, validation);
    } else {
      teach(train, validation, graph, spec, seed, observer);
      if (stopped()) {
        result.interrupted = true;
        return result;
      }
      if (kept) save_safetensors(kept->targets(), targets_of(train, validation));
    }
  }
  for (TableLayer& layer : network.layers())
    for (int& bits : layer.bits)
      bits = std::min(bits, first_input_bits[&layer != network.layers().data()]);
  TableTrainer trainer(network, train);
  std::vector<TableCandidate> candidates;
  std::vector<TensorTable> states;  // without a folder
  const auto note = [&](int64_t step) {
    if (kept)
      save_safetensors(kept->file(step), StepFolder::tensors_of(network));
    else
      states.push_back(StepFolder::tensors_of(network));
    candidates.push_back({step, table_cost(network), trainer.score(validation).loss});
  };
  int64_t step = kept ? kept->last() : -1;
  for (int64_t k = 0; k <= step; ++k) {
    StepFolder::take(network, load_safetensors(kept->file(k)), kept->file(k));
    candidates.push_back({k, table_cost(network), trainer.score(validation).loss});
  }
  const TableTraining training{.learning_rate = spec.learning_rate, .smoothness = spec.smoothness};
  if (step < 0) {
    trainer.count_codes();
    TableTraining first = training;
    first.epochs = spec.start_epochs;
    first.learning_rate *= 2;
    trainer.train(first, seed, "start", stopped);
    if (!stopped()) note(step = 0);
  }
  const double first_cost = candidates.empty() ? 1 : candidates[0].cost;
  while (!stopped() && candidates.back().cost > spec.luts && step < most_steps) {
    if (observer.progress)
      observer.progress({"Taking tables away",
                         static_cast<int64_t>(1000 * std::log(first_cost / candidates.back().cost)),
                         static_cast<int64_t>(1000 * std::log(first_cost / spec.luts)), 0});
    trainer.count_codes();
    if (apply_moves(network, table_moves(network, trainer.curvature()),
                    spec.step * candidates.back().cost) <= 0)
      break;
    trainer.count_codes();
    TableTraining next = training;
    next.epochs = spec.step_epochs;
    trainer.train(next, seed, fmt::format("step{}", step + 1), stopped);
    if (!stopped()) note(++step);
  }
  result.steps = step;
  result.interrupted = stopped();
  if (result.interrupted) return result;

  const std::vector<TableCandidate> chosen = best_tables_by_size(candidates, spec.points);
  for (size_t k = 0; k < chosen.size(); ++k) {
    if (observer.progress)
      observer.progress({"Training the front on", static_cast<int64_t>(k),
                         static_cast<int64_t>(chosen.size()), 0});
    const int64_t at = chosen[k].step;
    const std::string file = kept ? kept->file(at) : "";
    StepFolder::take(network, kept ? load_safetensors(file) : states[static_cast<size_t>(at)],
                     file);
    const TensorTable before = StepFolder::tensors_of(network);
    TableTraining last = training;
    last.epochs = spec.point_epochs;
    if (spec.point_epochs > 0) trainer.train(last, seed, fmt::format("point{}", at), stopped);
    if ((result.interrupted = stopped())) return result;
    // As it was, where training on did not help.
    if (trainer.score(validation).loss > chosen[k].loss) StepFolder::take(network, before, file);
    LearnedTables point;
    point.graph = network.graph();
    point.step = at;
    point.loss = trainer.score(validation).loss;
    for (const TableLayer& layer : network.layers())
      for (const int bits : layer.bits) point.tables += bits > 0;
    point.inputs = static_cast<int64_t>(network.layers().front().live.size());
    const Estimate cost =
        estimate(optimize(lower(point.graph).graph, {.effort = 0, .carry_chains = true}).graph);
    point.luts = cost.luts;
    point.levels = cost.levels;
    point.validation = table_accuracy(point.graph, *dataset, dataset->validation);
    if (result.test_rows > 0) point.test = table_accuracy(point.graph, *dataset, dataset->test);
    result.front.push_back(std::move(point));
  }
  keep_table_front(result.front);
  if (!folder) return result;
  make_directories(folder->software("front"));
  for (LearnedTables& point : result.front) {
    point.path = folder->software("front") + fmt::format("/luts_{:.0f}.mz", point.luts);
    save_mz(point.path, point.graph, experiment.file_contents());
  }
  if (!result.front.empty())
    save_mz(folder->software("training_ckpts") + "/best.mz", result.front.back().graph,
            experiment.file_contents());
  kept->remove();
  return result;
}

}  // namespace mase
