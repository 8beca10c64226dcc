// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/shrinker.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/few_digits.h"
#include "mase/formats/learned_bits.h"
#include "mase/hardware/lower/lower_linear.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/run/hardware/feature_ranges.h"

namespace mase {
namespace {

constexpr int64_t shrink_batch = 1024;

// Widths may differ from value to value, scales may not depend on them.
bool rounds_values_alone(const Quantizer& format) {
  return format.elementwise || (format.type && format.type->as<Fixed>());
}

const Fixed* fixed_type(const Quantizer* quantizer) {
  return quantizer && quantizer->type && !quantizer->learned ? quantizer->type->as<Fixed>()
                                                             : nullptr;
}

// The formats of so many features, one each.
std::vector<Fixed> feature_formats(const Quantizer& quantizer, int64_t features) {
  const Fixed& type = *quantizer.type->as<Fixed>();
  std::vector<Fixed> formats(static_cast<size_t>(features), fixed_at(type, 0));
  if (group_count(type) == 1) return formats;
  const Grouping groups = grouping({1, features}, quantizer.type->granularity);
  for (int64_t g = 0; g < groups.groups; ++g)
    groups.for_each(g, [&](int64_t i) { formats[static_cast<size_t>(i)] = fixed_at(type, g); });
  return formats;
}

void set_feature_formats(Module& module, const std::vector<Fixed>& formats) {
  Dict config = module.quantization.config.as_dict();
  List widths, fracs, signs;
  for (const Fixed& format : formats) {
    widths.push_back(format.width);
    fracs.push_back(format.frac);
    signs.push_back(format.is_signed);
  }
  config.set("data_in_width", std::move(widths));
  config.set("data_in_frac_width", std::move(fracs));
  config.set("data_in_is_signed", std::move(signs));
  config.set("data_in_granularity", "row");
  Problems problems;
  OperandRules rules = operand_rules(find_op(module.op));
  rules.required.clear();
  module.quantization = parse_quantization(config, rules, module.op, problems);
  problems.throw_if_any();
}

// What every value of a parameter may become: its own format, and at most so many digits.
QuantizerPtr within_digits(const Quantizer& format, const Tensor& tensor, bool limit_digits) {
  const Fixed& type = *format.type->as<Fixed>();
  const Grouping groups = grouping(tensor.shape(), format.type->granularity);
  std::vector<FewDigits> values(static_cast<size_t>(tensor.numel()));
  const auto set = [&](int64_t group, int64_t i) {
    const Fixed one = fixed_at(type, group);
    FewDigits& value = values[static_cast<size_t>(i)];
    value.frac = one.frac;
    value.low = static_cast<int64_t>(lowest_code(one));
    value.high = static_cast<int64_t>(largest_code(one));
    if (one.width <= 0) value.low = value.high = 0;
    const double code = std::ldexp(tensor.item(i), one.frac);
    value.digits = limit_digits ? signed_digit_count(static_cast<int64_t>(code)) : 64;
  };
  if (group_count(type) == 1) {
    for (int64_t i = 0; i < tensor.numel(); ++i) set(0, i);
  } else {
    for (int64_t g = 0; g < groups.groups; ++g) groups.for_each(g, [&](int64_t i) { set(g, i); });
  }
  return few_digits_quantizer(std::move(values));
}

}  // namespace

Shrinker::Shrinker(Graph graph, const Dataset& dataset)
    : graph_(std::move(graph)), dataset_(dataset) {
  compile();
  for (size_t p = 0; p < program_->parameters().size(); ++p) {
    const std::string& name = program_->parameters()[p].name;
    const size_t dot = name.rfind('.');
    const Module& module = graph_.modules().at(name.substr(0, dot));
    if (module.op != "linear" || name.substr(dot + 1) != "weight") continue;
    layers_.push_back(
        {name.substr(0, dot), p, current_quantizer(module.quantization, &module, "weight"), {}});
    const Layer& layer = layers_.back();
    if (!layer.format || !rounds_values_alone(*layer.format))
      throw Error(name, "is not in a format that rounds every value on its own",
                  "quantise weights to integer, minifloat or power_of_two");
    // From here on weights are the numbers they are rounded to.
    ParameterView& view = weight(layer);
    const Tensor rounded =
        quantize(*layer.format, Tensor::of<float>(view.shape, std::span<const float>(view.value)));
    std::copy_n(rounded.data<float>(), view.value.size(), view.value.begin());
    layers_.back().frozen.assign(view.value.size(), false);
  }
  if (layers_.empty()) throw Error(graph_.name, "has no linear layers to shrink");
  program_->parameters_changed();
}

void Shrinker::compile() {
  const LossFunction loss = loss_for(dataset_);
  scoring_.reset();
  program_.emplace(Program::compile(
      graph_,
      {.training = true, .batch_size = shrink_batch, .loss = loss, .freeze_batch_norm = true}));
  scoring_.emplace(program_->sharing({.batch_size = shrink_batch, .loss = loss}));
}

double Shrinker::loss() {
  return score_rows(*scoring_, dataset_.train, 0, dataset_.train.rows()).loss();
}

double Shrinker::accuracy(const Split& rows) {
  return rows.rows() > 0 ? score_rows(*scoring_, rows, 0, rows.rows()).accuracy() : 0;
}

double Shrinker::loss_of(const Graph& graph) const {
  Program program =
      Program::compile(graph, {.batch_size = shrink_batch, .loss = loss_for(dataset_)});
  return score_rows(program, dataset_.train, 0, dataset_.train.rows()).loss();
}

Graph Shrinker::graph() const {
  Graph result = graph_;
  program_->write_to(result);
  return result;
}

ShrinkStep Shrinker::measure(const std::string& what, double loss) {
  const Graph now = graph();
  const Estimate cost = estimate(optimize(lower(now).graph, {.effort = 0}).graph);
  ShrinkStep step;
  step.what = what;
  step.luts = cost.luts;
  step.levels = cost.levels;
  step.delay_ns = cost.delay_ns;
  step.train_loss = loss;
  step.validation = accuracy(dataset_.validation);
  for (const Layer& layer : layers_) {
    for (const float value : weight(layer).value)
      step.digits += signed_digit_count(dyadic(value, graph_.name).mantissa);
    const Module& module = now.modules().at(layer.path);
    const Quantizer* const format = module.quantization.find("data_in");
    if (fixed_type(format))
      for (const Fixed& one : feature_formats(*format, weight(layer).shape[1]))
        step.bits += one.width;
  }
  return step;
}

int64_t Shrinker::take_bits(double limit) {
  struct Candidate {
    size_t layer, feature;
    bool whole;
    double loss;
  };
  const auto formats_of = [&](const Graph& graph, const Layer& layer) -> std::vector<Fixed> {
    const Quantizer* const format = graph.modules().at(layer.path).quantization.find("data_in");
    if (!fixed_type(format)) return {};
    return feature_formats(*format, graph.modules().at(layer.path).find("weight")->shape()[1]);
  };
  const auto without = [&](const Graph& graph, const Candidate& one) {
    const Layer& layer = layers_[one.layer];
    std::vector<Fixed> formats = formats_of(graph, layer);
    Fixed& format = formats[one.feature];
    const int least = format.is_signed ? 2 : 1;
    if (one.whole || format.width <= least) {
      format.width = format.frac = 0;
    } else {
      --format.width;
      --format.frac;
    }
    Graph changed = graph;
    set_feature_formats(changed.modules().at(layer.path), formats);
    return changed;
  };
  Graph now = graph();
  std::vector<Candidate> candidates;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const std::vector<Fixed> formats = formats_of(now, layers_[l]);
    for (size_t i = 0; i < formats.size(); ++i)
      for (const bool whole : {false, true}) {
        if (formats[i].width <= (whole ? 1 : 0)) continue;
        Candidate one{l, i, whole, 0};
        one.loss = loss_of(without(now, one));
        if (one.loss <= limit) candidates.push_back(one);
      }
  }
  // A neuron less is worth several bits: it comes first where it costs the loss little.
  const double start = loss();
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    const auto rise = [&](const Candidate& one) {
      return (one.loss - start) / (one.whole ? 3 : 1);
    };
    return rise(a) != rise(b) ? rise(a) < rise(b)
                              : std::pair(a.layer, a.feature) < std::pair(b.layer, b.feature);
  });
  int64_t taken = 0;
  for (const Candidate& one : candidates) {
    if (formats_of(now, layers_[one.layer])[one.feature].width == 0) continue;
    Graph next = without(now, one);
    if (loss_of(next) > limit) continue;
    now = std::move(next);
    ++taken;
  }
  if (taken == 0) return 0;
  graph_ = std::move(now);
  compile();
  return taken;
}

void Shrinker::gradients() {
  const Split& rows = dataset_.train;
  Batch batch;
  batch.inputs = {RowTensor(rows.x, rows.bytes.get())};
  batch.target = dataset_.classification ? RowTensor(rows.labels) : RowTensor(rows.targets);
  for (batch.first_row = 0; batch.first_row < rows.rows(); batch.first_row += shrink_batch) {
    batch.size = std::min(shrink_batch, rows.rows() - batch.first_row);
    program_->forward_backward(batch, batch.first_row > 0);
  }
}

// Weights that can lose a digit, those whose loss should rise least first.
std::vector<Shrinker::DigitCandidate> Shrinker::digit_candidates() {
  gradients();
  std::vector<DigitCandidate> list;
  double slope = 0, change = 0;
  for (const Layer& layer : layers_) {
    const ParameterView& view = weight(layer);
    std::vector<float> shorter(view.value.size());
    for (size_t i = 0; i < shorter.size(); ++i) {
      const Dyadic number = dyadic(view.value[i], graph_.name);
      shorter[i] = static_cast<float>(
          std::ldexp(static_cast<double>(without_lowest_digit(number.mantissa)), -number.frac));
    }
    const Tensor rounded = quantize(*layer.format, Tensor::of(view.shape, shorter));
    for (size_t i = 0; i < shorter.size(); ++i) {
      const float from = view.value[i], to = shorter[i];
      // A number that the format does not have would become another one.
      if (from == 0 || layer.frozen[i] || rounded.data<float>()[i] != to) continue;
      list.push_back({layer.parameter, i, to, static_cast<double>(to) - from});
      slope += std::abs(static_cast<double>(view.gradient[i]));
      change += std::abs(static_cast<double>(to) - from);
    }
  }
  // First order by the gradient; a second-order term of the same size keeps large changes back.
  const double curvature = change > 0 ? 10 * slope / change : 0;
  for (DigitCandidate& one : list) {
    const double moved = one.score;
    const double gradient = program_->parameters()[one.parameter].gradient[one.index];
    one.score = gradient * moved + curvature * moved * moved;
  }
  std::sort(list.begin(), list.end(), [](const DigitCandidate& a, const DigitCandidate& b) {
    if (a.score != b.score) return a.score < b.score;
    return std::pair(a.parameter, a.index) < std::pair(b.parameter, b.index);
  });
  return list;
}

// Writes the new values and gives the old ones back.
std::vector<float> Shrinker::apply(std::span<const DigitCandidate> chosen) {
  std::vector<float> old;
  for (const DigitCandidate& one : chosen) {
    float& value = program_->parameters()[one.parameter].value[one.index];
    old.push_back(value);
    value = one.to;
  }
  program_->parameters_changed();
  return old;
}

void Shrinker::undo(std::span<const DigitCandidate> chosen, const std::vector<float>& old) {
  for (size_t k = 0; k < chosen.size(); ++k)
    program_->parameters()[chosen[k].parameter].value[chosen[k].index] = old[k];
  program_->parameters_changed();
}

int64_t Shrinker::take_digits(double limit) {
  const std::vector<DigitCandidate> list = digit_candidates();
  // The gradient holds for a part of the list only: half of it, then it is found anew.
  const size_t end = std::max<size_t>(1, list.size() / 2);
  size_t at = 0, portion = std::clamp<size_t>(64, 1, std::max<size_t>(1, list.size() / 8));
  int64_t taken = 0;
  while (at < end && at < list.size()) {
    const std::span<const DigitCandidate> chosen(list.data() + at,
                                                 std::min(portion, list.size() - at));
    const std::vector<float> old = apply(chosen);
    if (loss() <= limit) {
      taken += static_cast<int64_t>(chosen.size());
      at += chosen.size();
      portion *= 2;
      continue;
    }
    undo(chosen, old);
    if (chosen.size() == 1) {
      for (Layer& layer : layers_)
        if (layer.parameter == chosen[0].parameter) layer.frozen[chosen[0].index] = true;
      ++at;
    }
    portion = std::max<size_t>(1, portion / 4);
  }
  return taken;
}

bool Shrinker::retrain(int64_t epochs, double learning_rate, uint64_t seed) {
  const double before = loss();
  Graph limited = graph();
  // What wraps must have room to move: it is only rounded while weights change, and gets the bits
  // it needs afterwards.
  std::vector<std::string> wrapping;
  for (const Layer& layer : layers_) {
    Module& module = limited.modules().at(layer.path);
    for (const char* name : {"weight", "bias"}) {
      const Tensor* const tensor = module.find(name);
      const QuantizerPtr format =
          tensor ? current_quantizer(module.quantization, &module, name) : nullptr;
      if (!tensor || !fixed_type(format.get())) continue;
      module.quantization.operands[name] =
          within_digits(*format, *tensor, std::string(name) == "weight");
    }
    const Quantizer* const input = module.quantization.find("data_in");
    if (!fixed_type(input) || fixed_type(input)->overflow != Overflow::wrap ||
        fixed_type(input)->rounding != Rounding::half_up)
      continue;
    wrapping.push_back(layer.path);
    const int64_t features = module.find("weight")->shape()[1];
    const std::vector<Fixed> formats = feature_formats(*input, features);
    module.quantization.operands["data_in"] = learned_bits_quantizer(features, 0);
    fit_learned_parameters(module);
    float* const numbers = module.find("data_in_bits")->mutable_data<float>();
    for (size_t i = 0; i < formats.size(); ++i)
      numbers[i] =
          fraction_number(formats[i].width > 0 ? formats[i].frac : least_learned_bits);  // all is 0
  }
  TrainOptions options;
  options.learning_rate = learning_rate;
  options.max_epochs = options.freeze_bn_epochs = epochs;
  options.batch_size = 512;
  options.seed = seed;
  TrainSession session;
  session.penalty = [](Program& program, int64_t, int64_t) {
    for (ParameterView& view : program.parameters())
      if (ends_with(view.name, ".data_in_bits"))
        std::fill(view.gradient.begin(), view.gradient.end(), 0.0f);
  };
  train(limited, dataset_, options, session);
  Graph next = graph();
  const LayerRanges ranges = feature_ranges(limited, ranged_layers(limited),
                                            dataset_.train.samples(), dataset_.train.rows());
  for (const Layer& layer : layers_) {
    Module& module = next.modules().at(layer.path);
    const Module& trained = limited.modules().at(layer.path);
    for (const char* name : {"weight", "bias"}) {
      Tensor* const tensor = module.find(name);
      const Quantizer* const limit = tensor ? trained.quantization.find(name) : nullptr;
      if (!limit || limit->format != "few_digits") continue;
      *tensor = quantize(*limit, *trained.find(name));
    }
    if (std::find(wrapping.begin(), wrapping.end(), layer.path) == wrapping.end()) continue;
    std::vector<Fixed> formats =
        feature_formats(*module.quantization.find("data_in"), module.find("weight")->shape()[1]);
    for (size_t i = 0; i < formats.size(); ++i) {
      if (formats[i].width == 0) continue;
      const FeatureRange& range = ranges.at(layer.path)[i];
      const double low = fraction_code(range.low, formats[i].frac),
                   high = fraction_code(range.high, formats[i].frac);
      formats[i].width = width_of_codes(low, high);
      formats[i].is_signed = low < 0;
    }
    set_feature_formats(module, formats);
  }
  if (loss_of(next) >= before) return false;
  graph_ = std::move(next);
  compile();
  for (Layer& layer : layers_) std::fill(layer.frozen.begin(), layer.frozen.end(), false);
  return true;
}

}  // namespace mase
