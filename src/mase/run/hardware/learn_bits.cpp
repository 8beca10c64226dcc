// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/learn_bits.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "mase/base/file.h"
#include "mase/formats/learned_bits.h"
#include "mase/hardware/cost/ebops.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/passes/pass.h"
#include "mase/run/hardware/feature_ranges.h"

namespace mase {
namespace {

constexpr int64_t watched_rows = 4096;  // whose ranges say how many whole bits features have
constexpr int64_t scoring_batch = 1024;

// The widths of a layer's three operands, as they would be if training ended now.
struct LayerBits {
  std::vector<int> input, weight, bias;
};

std::vector<int> input_bits(const std::vector<FeatureRange>& ranges, std::span<const float> numbers,
                            bool saturates) {
  std::vector<int> bits;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int frac = whole_fraction_bits(numbers[i]);
    const double low = fraction_code(ranges[i].low, frac),
                 high = fraction_code(ranges[i].high, frac);
    bits.push_back(width_of_codes(low, high) - (low < 0 && !saturates ? 1 : 0));
  }
  return bits;
}

std::vector<int> parameter_bits(std::span<const float> values, std::span<const float> numbers) {
  std::vector<int> bits;
  for (size_t i = 0; i < values.size(); ++i)
    bits.push_back(magnitude_bits(fraction_code(values[i], whole_fraction_bits(numbers[i]))));
  return bits;
}

// The gradient of beta times the bit operations, by the fraction bits of everything: a bit more of
// a weight costs the bits of its input, a bit more of an input those of its weights. What has no
// bits left costs nothing, and the loss alone may bring it back.
class BitsPenalty {
 public:
  BitsPenalty(std::vector<RangedLayer> layers, const LearnBitsSpec& spec)
      : layers_(std::move(layers)), spec_(spec) {}

  void watch(LayerRanges ranges) { ranges_ = std::move(ranges); }

  void add_to(Program& program, int64_t step, int64_t steps) {
    if (views_.empty())
      for (ParameterView& view : program.parameters()) views_[view.name] = &view;
    const double share = steps > 1 ? static_cast<double>(step) / static_cast<double>(steps - 1) : 0;
    const double beta = spec_.first_beta * std::pow(spec_.last_beta / spec_.first_beta, share);
    const auto price = static_cast<float>(beta * learned_bits_slope);
    for (const RangedLayer& layer : layers_) {
      ParameterView &weight = view(layer, "weight"), &weight_bits = view(layer, "weight_bits"),
                    &input = view(layer, "data_in_bits");
      const std::vector<int> in = input_bits(ranges_.at(layer.path), input.value, layer.first),
                             own = parameter_bits(weight.value, weight_bits.value);
      for (size_t k = 0; k < own.size(); ++k) {
        const size_t i = k % in.size();
        if (own[k] > 0) weight_bits.gradient[k] += price * static_cast<float>(in[i]);
        if (in[i] > 0) input.gradient[i] += price * static_cast<float>(own[k]);
      }
      if (const auto bias = views_.find(layer.path + ".bias"); bias != views_.end()) {
        ParameterView& numbers = view(layer, "bias_bits");
        const std::vector<int> bits = parameter_bits(bias->second->value, numbers.value);
        for (size_t o = 0; o < bits.size(); ++o)
          if (bits[o] > 0) numbers.gradient[o] += price;
      }
    }
  }

 private:
  ParameterView& view(const RangedLayer& layer, const char* name) {
    return *views_.at(layer.path + "." + name);
  }

  std::vector<RangedLayer> layers_;
  LearnBitsSpec spec_;
  LayerRanges ranges_;
  std::map<std::string, ParameterView*> views_;
};

std::span<const float> floats(const Module& module, const char* name) {
  const Tensor* const tensor = module.find(name);
  return {tensor->data<float>(), static_cast<size_t>(tensor->numel())};
}

double ebops_now(const Graph& graph, const std::vector<RangedLayer>& layers,
                 const LayerRanges& ranges) {
  double total = 0;
  for (const RangedLayer& layer : layers) {
    const Module& module = graph.modules().at(layer.path);
    const std::vector<int> in =
        input_bits(ranges.at(layer.path), floats(module, "data_in_bits"), layer.first);
    const std::vector<int> weight =
        parameter_bits(floats(module, "weight"), floats(module, "weight_bits"));
    std::vector<int> bias;
    if (module.find("bias"))
      bias = parameter_bits(floats(module, "bias"), floats(module, "bias_bits"));
    total += dense_ebops(in, weight, bias);
  }
  return total;
}

// Lists of one operand's widths, points and signs.
struct FormatLists {
  List widths, fracs, signs;

  void add(double low, double high, int frac, bool always_signed) {
    const bool sign = low < 0 || (always_signed && high > 0), zero = low == 0 && high == 0;
    widths.push_back(width_of_codes(low, high) + (sign && low >= 0 ? 1 : 0));
    fracs.push_back(zero ? 0 : frac);
    signs.push_back(sign || zero);
  }
  void write(Dict& config, const std::string& operand, const char* granularity,
             const std::string& overflow) const {
    config.set(operand + "_width", widths);
    config.set(operand + "_frac_width", fracs);
    config.set(operand + "_is_signed", signs);
    config.set(operand + "_granularity", granularity);
    config.set(operand + "_rounding", "half_up");
    config.set(operand + "_overflow", overflow);
  }
};

// The network in formats of single widths: the narrowest that hold every weight, and every value
// that inputs of layers had on the rows of `ranges`.
Graph with_whole_widths(const Graph& trained, const std::vector<RangedLayer>& layers,
                        const LayerRanges& ranges, const std::string& overflow) {
  Graph graph = trained;
  for (const RangedLayer& layer : layers) {
    Module& module = graph.modules().at(layer.path);
    Dict config{{"name", "integer"}};
    FormatLists inputs;
    const std::span<const float> numbers = floats(module, "data_in_bits");
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int frac = whole_fraction_bits(numbers[i]);
      const FeatureRange& range = ranges.at(layer.path)[i];
      inputs.add(fraction_code(range.low, frac), fraction_code(range.high, frac), frac, false);
    }
    inputs.write(config, "data_in", "row", layer.first ? "saturate" : overflow);
    for (const char* name : {"weight", "bias"}) {
      Tensor* const tensor = module.find(name);
      if (!tensor) continue;
      const std::span<const float> bits =
          floats(module, name == std::string("weight") ? "weight_bits" : "bias_bits");
      FormatLists lists;
      float* const values = tensor->mutable_data<float>();
      for (size_t k = 0; k < bits.size(); ++k) {
        const int frac = whole_fraction_bits(bits[k]);
        const double code = fraction_code(values[k], frac);
        values[k] = static_cast<float>(std::ldexp(code, -frac));
        lists.add(std::min(code, 0.0), std::max(code, 0.0), frac, true);
      }
      lists.write(config, name, "element", "wrap");
    }
    Problems problems;
    module.quantization =
        parse_quantization(config, {.names = find_op(module.op).operands}, layer.path, problems);
    problems.throw_if_any();
    fit_learned_parameters(module);
  }
  return graph;
}

void learn_widths_of(Graph& graph, const std::vector<RangedLayer>& layers, double start) {
  for (const RangedLayer& layer : layers) {
    Module& module = graph.modules().at(layer.path);
    const int64_t features = module.find("weight")->shape()[1];
    module.quantization = {};
    module.quantization.operands["data_in"] = learned_bits_quantizer(features, start);
    module.quantization.operands["weight"] = learned_bits_quantizer(0, start);
    if (module.find("bias"))
      module.quantization.operands["bias"] = learned_bits_quantizer(0, start);
    fit_learned_parameters(module);
    // There is no data to wait for: activations start as everything else does.
    Tensor* const number = module.find("data_in_bits");
    std::fill_n(number->mutable_data<float>(), number->numel(), fraction_number(start));
  }
}

Score score_of(const Graph& graph, const Dataset& dataset, const Split& rows) {
  Program program =
      Program::compile(graph, {.batch_size = scoring_batch, .loss = loss_for(dataset)});
  return score_rows(program, rows, 0, rows.rows());
}

// Rows whose outputs differ between two networks.
int64_t differing_rows(const Graph& a, const Graph& b, const Tensor& rows) {
  const Tensor x = run(a, {rows})[0], y = run(b, {rows})[0];
  const int64_t width = x.numel() / x.shape()[0];
  int64_t count = 0;
  for (int64_t row = 0; row < x.shape()[0]; ++row)
    count += !std::equal(x.data<float>() + row * width, x.data<float>() + (row + 1) * width,
                         y.data<float>() + row * width);
  return count;
}

// A network on its way, with what it was then.
struct Snapshot {
  Graph graph;
  int64_t epoch, step;  // steps that were done
  double ebops, loss;   // on the validation rows
};

// Snapshots of a run that may be stopped, one file for each epoch. Each is written before the
// checkpoint from which a resumed run goes on, so that all it needs are there.
class SnapshotFolder {
 public:
  SnapshotFolder(std::string path, bool resume) : path_(std::move(path)) {
    if (!resume) std::filesystem::remove_all(path_);
    make_directories(path_);
  }

  void write(const Snapshot& one) const {
    TensorTable tensors;
    for (const auto& [path, module] : one.graph.modules())
      for (const auto* const list : {&module.parameters, &module.buffers})
        for (const auto& [name, tensor] : *list) tensors.emplace_back(path + "." + name, tensor);
    save_safetensors(fmt::format("{}/{:06}.safetensors", path_, one.epoch), tensors,
                     Dict{{"epoch", std::to_string(one.epoch)},
                          {"step", std::to_string(one.step)},
                          {"ebops", fmt::format("{:.17g}", one.ebops)},
                          {"val_loss", fmt::format("{:.17g}", one.loss)}});
  }

  std::map<int64_t, Snapshot> read(const Graph& like) const {
    std::map<int64_t, Snapshot> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string file = entry.path().string();
      if (entry.path().extension() != ".safetensors") continue;
      Dict notes;
      const TensorTable tensors = load_safetensors(file, &notes);
      const auto number = [&](const char* key) {
        const Value* const text = notes.find(key);
        const std::optional<double> value =
            text && text->is_string() ? parse_number(text->as_string()) : std::nullopt;
        if (!value) throw Error(file, fmt::format("'{}' is missing", key), "start the run anew");
        return *value;
      };
      Snapshot one{like, static_cast<int64_t>(number("epoch")),
                   static_cast<int64_t>(number("step")), number("ebops"), number("val_loss")};
      for (const auto& [name, tensor] : tensors) {
        const size_t dot = name.rfind('.');
        const auto module = one.graph.modules().find(name.substr(0, std::min(dot, name.size())));
        Tensor* const own = dot == std::string::npos || module == one.graph.modules().end()
                                ? nullptr
                                : module->second.find(name.substr(dot + 1));
        if (!own || own->shape() != tensor.shape() || own->dtype() != tensor.dtype())
          throw Error(file, fmt::format("'{}' is not this network's", printable(name)),
                      "start the run anew");
        *own = tensor;
      }
      all.insert_or_assign(one.epoch, std::move(one));
    }
    return all;
  }

  void remove() const { std::filesystem::remove_all(path_); }

 private:
  std::string path_;
};

// The best of each size: so many sizes, evenly spaced by their logarithms.
std::vector<Snapshot> best_by_size(std::map<int64_t, Snapshot> by_epoch, int64_t sizes) {
  std::vector<Snapshot> all;
  for (auto& [epoch, one] : by_epoch)
    if (one.ebops > 0) all.push_back(std::move(one));
  if (all.empty()) return all;
  const auto smaller = [](const Snapshot& a, const Snapshot& b) { return a.ebops < b.ebops; };
  const auto [least, most] = std::minmax_element(all.begin(), all.end(), smaller);
  const double low = std::log(least->ebops), span = std::log(most->ebops) - low;
  std::map<int64_t, Snapshot*> best;
  for (Snapshot& one : all) {
    const double place = span > 0 ? (std::log(one.ebops) - low) / span : 0;
    Snapshot*& held =
        best[std::min(sizes - 1, static_cast<int64_t>(place * static_cast<double>(sizes)))];
    if (!held || one.loss < held->loss) held = &one;
  }
  std::vector<Snapshot> chosen;
  for (const auto& [size, one] : best) chosen.push_back(std::move(*one));
  return chosen;
}

// Widths stay, and what they prune stays away; weights find the best that is left to them, at a
// rate that falls to nothing. Wide networks learn the training rows by heart: of all epochs the one
// with the smallest loss on the validation rows is taken, or the mean of the weights over the run
// (Izmailov et al., 2018) if that is better still.
Graph retrained(Graph graph, const std::vector<RangedLayer>& layers, const Dataset& dataset,
                TrainOptions options, int64_t epochs, const Observer& observer) {
  if (epochs == 0) return graph;
  options.max_epochs = epochs;
  options.max_steps = -1;
  options.early_stopping = 0;
  options.schedule = "cosine";
  options.schedule_arguments = Dict{};
  options.warmup_steps = 0;
  TrainSession session;
  session.observer.stop_requested = observer.cancelled;
  std::map<std::string, std::vector<double>> sums;
  int64_t summed = 0;
  session.penalty = [&](Program& program, int64_t step, int64_t steps) {
    std::map<std::string, ParameterView*> views;
    for (ParameterView& view : program.parameters()) views[view.name] = &view;
    if (4 * step >= steps) {
      ++summed;
      for (const ParameterView& view : program.parameters()) {
        std::vector<double>& sum = sums[view.name];
        sum.resize(view.value.size());
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += static_cast<double>(view.value[k]);
      }
    }
    for (const RangedLayer& layer : layers)
      for (const char* name : {"data_in", "weight", "bias"}) {
        const std::string path = layer.path + "." + name;
        const auto bits = views.find(path + "_bits");
        if (bits == views.end()) continue;
        std::fill(bits->second->gradient.begin(), bits->second->gradient.end(), 0.0f);
        const auto values = views.find(path);
        if (values == views.end()) continue;
        ParameterView& view = *values->second;
        for (size_t k = 0; k < view.value.size(); ++k)
          if (fraction_code(view.value[k], whole_fraction_bits(bits->second->value[k])) == 0)
            view.gradient[k] = 0;
      }
  };
  Graph best = graph;
  double least = INFINITY;
  session.observer.on_epoch = [&](const EpochEvent& event, const Program& program) {
    if (!event.val_loss || *event.val_loss >= least) return;
    least = *event.val_loss;
    program.write_to(best);
  };
  train(graph, dataset, options, session);
  if (summed == 0) return best;
  Graph mean = best;
  for (const auto& [name, sum] : sums) {
    const size_t dot = name.rfind('.');
    float* const values =
        mean.modules().at(name.substr(0, dot)).find(name.substr(dot + 1))->mutable_data<float>();
    for (size_t k = 0; k < sum.size(); ++k)
      values[k] = static_cast<float>(sum[k] / static_cast<double>(summed));
  }
  return score_of(mean, dataset, dataset.validation).loss() < least ? mean : best;
}

// Fewest bit operations first, each with a higher accuracy on the validation rows than those
// before; of equal ones the smaller loss.
void keep_front(std::vector<LearnedPoint>& points) {
  std::sort(points.begin(), points.end(), [](const LearnedPoint& a, const LearnedPoint& b) {
    return std::tuple(a.ebops, -a.validation, a.loss) < std::tuple(b.ebops, -b.validation, b.loss);
  });
  double best = -1;
  std::erase_if(points, [&](const LearnedPoint& point) {
    const bool worse = point.validation <= best;
    best = std::max(best, point.validation);
    return worse;
  });
}

}  // namespace

LearnBitsResult learn_bits(Experiment& experiment, const LearnBitsSpec& spec,
                           const TrainSpec& training, const Observer& observer, RunFolder* folder,
                           bool resume) {
  const Dataset* const dataset = experiment.dataset();
  if (!dataset || !dataset->classification)
    throw Error("--learn-bits", "the front is chosen by accuracy", "name a data set with classes");
  if (dataset->validation.rows() == 0)
    throw Error("--learn-bits", "the front is chosen by validation rows", "give a --val-split");
  const Value decay = training.options.optimizer_arguments["weight_decay"];
  if (decay.is_number() ? decay.as_double() != 0 : training.options.optimizer == "adamw")
    throw Error("--weight-decay", "would pull widths towards nothing too",
                "leave it out, and choose adam instead of adamw");
  experiment.apply_passes();
  if (folder && !(resume && std::filesystem::exists(folder->initial_graph())))
    save_mz(folder->initial_graph(), experiment.graph(), experiment.file_contents());
  Graph graph = experiment.graph();
  PassContext context;
  run_pass(graph, "fuse_batch_norm", Dict{}, context);
  const std::vector<RangedLayer> layers = ranged_layers(graph);
  learn_widths_of(graph, layers, spec.start_bits);
  const auto ranges_of = [&](const Graph& now, int64_t rows) {
    return feature_ranges(now, layers, dataset->train.samples(), rows);
  };
  // What has no integers is refused before any work.
  lower(with_whole_widths(graph, layers, ranges_of(graph, watched_rows), spec.overflow));

  BitsPenalty penalty(layers, spec);
  penalty.watch(ranges_of(graph, watched_rows));
  std::map<int64_t, Snapshot> snapshots;  // by epoch
  std::optional<SnapshotFolder> kept;
  if (folder) {
    // It is made before the first checkpoint.
    if (resume && !std::filesystem::exists(folder->path() + "/software/widths") &&
        std::filesystem::exists(folder->checkpoint("last")))
      throw Error(folder->path(),
                  "was started with --learn-bits, and its checkpoint is of another run",
                  "start it anew");
    kept.emplace(folder->software("widths"), resume);
    if (resume) snapshots = kept->read(graph);
  }
  TrainOptions options = training.options;
  options.batch_size = experiment.spec().batch_size;
  options.threads = experiment.spec().threads;
  options.seed = experiment.spec().seed;
  TrainSession session;
  if (folder) session.folder = folder->software();
  session.resume = resume;
  session.observer = observer.training;
  if (!session.observer.stop_requested) session.observer.stop_requested = observer.cancelled;
  bool watching = snapshots.empty();
  session.penalty = [&](Program& program, int64_t step, int64_t steps) {
    if (!watching) {
      // Ranges are those of the last epoch that was done where the run goes on.
      const Snapshot* last = nullptr;
      for (const auto& [epoch, one] : snapshots)
        if (one.step <= step) last = &one;
      if (last) penalty.watch(ranges_of(last->graph, watched_rows));
      watching = true;
    }
    penalty.add_to(program, step, steps);
  };
  session.observer.on_epoch = [&](const EpochEvent& event, const Program& program) {
    Graph now = graph;
    program.write_to(now);
    LayerRanges ranges = ranges_of(now, watched_rows);
    const double size = ebops_now(now, layers, ranges);
    penalty.watch(std::move(ranges));
    watching = true;
    if (event.val_loss) {
      Snapshot one{now, event.epoch, event.step, size, *event.val_loss};
      if (kept) kept->write(one);
      snapshots.insert_or_assign(event.epoch, std::move(one));
    }
    if (observer.training.on_epoch) observer.training.on_epoch(event, program);
  };
  LearnBitsResult result;
  result.test_rows = dataset->test.rows();
  Graph trained = graph;
  result.outcome = train(trained, *dataset, options, session);
  // The epoch of the smallest loss, in widths that only training knows: none of the front.
  if (folder) std::filesystem::remove(checkpoint_path(folder->software(), "best"));

  const std::vector<Snapshot> front = best_by_size(std::move(snapshots), spec.points);
  int64_t done = 0;
  for (const Snapshot& one : front) {
    if (observer.progress)
      observer.progress({"Retraining the front", done++, static_cast<int64_t>(front.size()), 0});
    const Graph last =
        retrained(one.graph, layers, *dataset, options, spec.retrain_epochs, observer);
    const LayerRanges ranges = ranges_of(last, dataset->train.rows());
    LearnedPoint point;
    point.graph = with_whole_widths(last, layers, ranges, spec.overflow);
    point.epoch = one.epoch;
    point.ebops = ebops(point.graph);
    for (const RangedLayer& layer : layers)
      for (const float value : floats(point.graph.modules().at(layer.path), "weight"))
        point.weights += value != 0;
    const Score validation = score_of(point.graph, *dataset, dataset->validation);
    point.loss = validation.loss();
    point.validation = validation.accuracy();
    if (result.test_rows > 0) {
      point.test = score_of(point.graph, *dataset, dataset->test).accuracy();
      point.wrapped = differing_rows(point.graph, last, dataset->test.samples());
    }
    result.front.push_back(std::move(point));
  }
  keep_front(result.front);
  if (!folder) return result;
  make_directories(folder->software("front"));
  for (LearnedPoint& point : result.front) {
    point.path = folder->software("front") + fmt::format("/ebops_{:.0f}.mz", point.ebops);
    save_mz(point.path, point.graph, experiment.file_contents());
  }
  if (result.outcome.status != TrainStatus::finished) return result;
  if (!result.front.empty())
    save_mz(folder->software("training_ckpts") + "/best.mz", result.front.back().graph,
            experiment.file_contents());
  std::filesystem::remove(checkpoint_path(folder->software(), "last"));
  kept->remove();
  return result;
}

}  // namespace mase
