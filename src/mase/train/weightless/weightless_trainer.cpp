// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mase/base/random.h"
#include "mase/engine/kernels/add_scaled.h"
#include "mase/train/kernels/table_lanes.h"
#include "mase/train/weightless/weightless_network.h"

namespace mase {
namespace {

constexpr double nearly_always = 0.003;  // a bit that is rarer, or misses as rarely, says nothing
constexpr int64_t columns_at_once = 256;

int64_t to_eights(int64_t n) { return (n + 7) / 8 * 8; }

}  // namespace

WeightlessTrainer::WeightlessTrainer(WeightlessNetwork& network, std::vector<uint8_t> bits,
                                     std::vector<int> labels, Shape sample,
                                     const WeightlessTraining& training, uint64_t seed)
    : network_(network),
      bits_(std::move(bits)),
      labels_(std::move(labels)),
      sample_(std::move(sample)),
      training_(training),
      seed_(seed) {
  WeightlessLayer& first = network.layers().front();
  std::vector<int64_t> ones(static_cast<size_t>(first.in), 0);
  for (size_t k = 0; k < bits_.size(); ++k) ones[k % ones.size()] += bits_[k];
  bool any = false;
  for (size_t i = 0; i < ones.size(); ++i) {
    const double share = static_cast<double>(ones[i]) / static_cast<double>(labels_.size());
    first.usable[i] = share > nearly_always && share < 1 - nearly_always;
    any = any || first.usable[i];
  }
  if (!any) throw Error("", "no feature reaches its threshold in some rows only", "scale the data");
  const double group =
      static_cast<double>(network.layers().back().out) / static_cast<double>(network.classes());
  scale_ = static_cast<float>(training.scale > 0 ? training.scale : 4.1 / std::sqrt(group));
  for (WeightlessLayer& layer : network.layers()) {
    layer.choose();
    const auto rows = static_cast<size_t>(training.batch), out = static_cast<size_t>(layer.out);
    const auto wires = out * static_cast<size_t>(layer.inputs);
    LayerState state;
    layer.choice.resize(static_cast<size_t>(to_eights(layer.in * layer.out * layer.inputs)));
    layer.entries.resize(static_cast<size_t>(to_eights(layer.out * layer.size())));
    state.choice.first.assign(layer.choice.size(), 0.0f);
    state.choice.second.assign(layer.choice.size(), 0.0f);
    state.entries.first.assign(layer.entries.size(), 0.0f);
    state.entries.second.assign(layer.entries.size(), 0.0f);
    state.differences.resize(wires * static_cast<size_t>(layer.size()));
    state.entry_gradient.resize(layer.entries.size());
    state.choice_gradient.resize(layer.choice.size());
    state.bits.resize(rows * out);
    state.addresses.resize(rows * out);
    state.gradient.resize(rows * out);
    state.by_input.resize(rows * wires);
    states_.push_back(std::move(state));
  }
}

void WeightlessTrainer::forward(const uint8_t* bits, int64_t rows) {
  for (size_t l = 0; l < states_.size(); ++l) {
    const WeightlessLayer& layer = network_.layers()[l];
    LayerState& state = states_[l];
    for (int64_t row = 0; row < rows; ++row) {
      const uint8_t* const own = bits + row * layer.in;
      for (int64_t o = 0; o < layer.out; ++o) {
        const int* const wires = layer.wiring.data() + o * layer.inputs;
        int address = 0;
        for (int64_t j = 0; j < layer.inputs; ++j) address |= own[wires[j]] << j;
        const auto at = static_cast<size_t>(row * layer.out + o);
        state.addresses[at] = address;
        state.bits[at] = layer.entries[static_cast<size_t>(o * layer.size() + address)] > 0;
      }
    }
    bits = state.bits.data();
  }
}

double WeightlessTrainer::step(const uint8_t* bits, const int* labels, int64_t rows, bool wire,
                               float rate) {
  forward(bits, rows);
  const int64_t classes = network_.classes();
  LayerState& top = states_.back();
  const int64_t out = network_.layers().back().out, group = out / classes;
  std::vector<float> shares(static_cast<size_t>(classes));
  const auto smooth = static_cast<float>(training_.smoothing / static_cast<double>(classes));
  const float sure = 1 - static_cast<float>(training_.smoothing);
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row) {
    float most = 0, all = 0;
    for (int64_t c = 0; c < classes; ++c) {
      int count = 0;
      for (int64_t k = 0; k < group; ++k)
        count += top.bits[static_cast<size_t>(row * out + c * group + k)];
      shares[static_cast<size_t>(c)] = scale_ * static_cast<float>(count);
      most = std::max(most, shares[static_cast<size_t>(c)]);
    }
    for (float& share : shares) all += share = std::exp(share - most);
    for (int64_t c = 0; c < classes; ++c) {
      const float share = shares[static_cast<size_t>(c)] / all;
      const float wanted = smooth + (labels[row] == c ? sure : 0.0f);
      if (labels[row] == c) loss -= std::log(std::max(1e-12, static_cast<double>(share)));
      const float g = (share - wanted) * scale_ / static_cast<float>(rows);
      std::fill_n(top.gradient.data() + row * out + c * group, group, g);
    }
  }
  ++steps_;
  if (wire) ++choices_;
  const auto corrected = [&](int64_t count) {
    const auto n = static_cast<float>(std::min<int64_t>(count, 10000));
    return rate * std::sqrt(1 - std::pow(0.99f, n)) / (1 - std::pow(0.9f, n));
  };
  for (size_t l = states_.size(); l-- > 0;) {
    WeightlessLayer& layer = network_.layers()[l];
    LayerState& state = states_[l];
    const int64_t size = layer.size(), k = layer.inputs, wires = layer.out * k;
    std::fill(state.entry_gradient.begin(), state.entry_gradient.end(), 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t o = 0; o < layer.out; ++o) {
        const auto at = static_cast<size_t>(row * layer.out + o);
        state.entry_gradient[static_cast<size_t>(o * size + state.addresses[at])] +=
            state.gradient[at];
      }
    if (wire || l > 0) {
      for (int64_t o = 0; o < layer.out; ++o)
        extended_differences(layer.entries.data() + o * size, static_cast<int>(k),
                             state.differences.data() + o * size * k);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t o = 0; o < layer.out; ++o) {
          const auto at = static_cast<size_t>(row * layer.out + o);
          const float* const d = state.differences.data() + (o * size + state.addresses[at]) * k;
          float* const to = state.by_input.data() + row * wires + o * k;
          for (int64_t j = 0; j < k; ++j) to[j] = state.gradient[at] * d[j];
        }
    }
    const uint8_t* const below = l > 0 ? states_[l - 1].bits.data() : bits;
    if (l > 0) {
      std::vector<float>& back = states_[l - 1].gradient;
      std::fill(back.begin(), back.end(), 0.0f);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t c = 0; c < wires; ++c)
          back[static_cast<size_t>(row * layer.in + layer.wiring[static_cast<size_t>(c)])] +=
              state.by_input[static_cast<size_t>(row * wires + c)];
    }
    if (wire) {
      // +1 and -1 as twice 1 and 0, less the sum of all.
      std::vector<float> all(static_cast<size_t>(wires), 0.0f);
      for (int64_t row = 0; row < rows; ++row)
        kernels::add_scaled(all.data(), state.by_input.data() + row * wires, -1, wires);
      for (int64_t i = 0; i < layer.in; ++i)
        if (layer.usable[static_cast<size_t>(i)])
          std::copy(all.begin(), all.end(), state.choice_gradient.data() + i * wires);
      for (int64_t first = 0; first < wires; first += columns_at_once) {
        const int64_t count = std::min(columns_at_once, wires - first);
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t i = 0; i < layer.in; ++i)
            if (below[row * layer.in + i] != 0 && layer.usable[static_cast<size_t>(i)])
              kernels::add_scaled(state.choice_gradient.data() + i * wires + first,
                                  state.by_input.data() + row * wires + first, 2, count);
      }
      table_lanes::adam(layer.choice.data(), state.choice_gradient.data(),
                        state.choice.first.data(), state.choice.second.data(),
                        static_cast<int64_t>(layer.choice.size()), corrected(choices_), 1e-8f);
      layer.choose();
    }
    table_lanes::adam(layer.entries.data(), state.entry_gradient.data(), state.entries.first.data(),
                      state.entries.second.data(), static_cast<int64_t>(layer.entries.size()),
                      corrected(steps_), 1e-8f);
    for (float& entry : layer.entries) entry = std::clamp(entry, -1.0f, 1.0f);
  }
  return loss;
}

double WeightlessTrainer::run_epoch(const std::function<bool()>& stop) {
  const auto rows = static_cast<int64_t>(labels_.size());
  const int64_t width = network_.bits(), batch = std::min(training_.batch, rows),
                batches = rows / batch;
  Random random(seed_, "weightless.order", static_cast<uint64_t>(epoch_));
  const std::vector<uint32_t> order = random.permutation(static_cast<uint32_t>(rows));
  Random moves(seed_, "weightless.shift", static_cast<uint64_t>(epoch_));
  std::vector<uint8_t> bits(static_cast<size_t>(batch * width));
  std::vector<int> labels(static_cast<size_t>(batch));
  const size_t rank = sample_.size();
  const int64_t high = rank >= 2 ? sample_[rank - 2] : 1, wide = rank >= 2 ? sample_[rank - 1] : 1;
  const int64_t levels = network_.levels();
  double loss = 0;
  for (int64_t k = 0; k < batches; ++k) {
    if (stop && stop()) return loss;
    for (int64_t row = 0; row < batch; ++row) {
      const uint32_t from = order[static_cast<size_t>(k * batch + row)];
      labels[static_cast<size_t>(row)] = labels_[from];
      const uint8_t* const own = bits_.data() + static_cast<int64_t>(from) * width;
      uint8_t* const to = bits.data() + row * width;
      if (training_.shift == 0 || rank < 2) {
        std::copy_n(own, width, to);
        continue;
      }
      const auto span = static_cast<uint64_t>(2 * training_.shift + 1);
      const auto down = static_cast<int64_t>(moves.below(span)) - training_.shift,
                 right = static_cast<int64_t>(moves.below(span)) - training_.shift;
      for (int64_t at = 0; at < width / levels; ++at) {
        const int64_t y = at / wide % high - down, x = at % wide - right;
        const bool inside = y >= 0 && y < high && x >= 0 && x < wide;
        const int64_t source = inside ? at - down * wide - right : 0;
        for (int64_t level = 0; level < levels; ++level)
          to[at * levels + level] = inside ? own[source * levels + level] : 0;
      }
    }
    const double share =
        (static_cast<double>(epoch_) + static_cast<double>(k) / static_cast<double>(batches)) /
        static_cast<double>(training_.epochs);
    const double rate =
        training_.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share)));
    loss +=
        step(bits.data(), labels.data(), batch,
             share < training_.wired && k % training_.wiring_every == 0, static_cast<float>(rate));
  }
  ++epoch_;
  return loss / static_cast<double>(batches * batch);
}

double WeightlessTrainer::accuracy(std::span<const uint8_t> bits, std::span<const int> labels) {
  const int64_t classes = network_.classes(), out = network_.layers().back().out,
                group = out / classes, width = network_.bits();
  int64_t right = 0;
  const auto all = static_cast<int64_t>(labels.size());
  for (int64_t first = 0; first < all; first += training_.batch) {
    const int64_t rows = std::min(training_.batch, all - first);
    forward(bits.data() + first * width, rows);
    for (int64_t row = 0; row < rows; ++row) {
      int best = 0, most = -1;
      for (int64_t c = 0; c < classes; ++c) {
        int count = 0;
        for (int64_t k = 0; k < group; ++k)
          count += states_.back().bits[static_cast<size_t>(row * out + c * group + k)];
        if (count > most) {
          most = count;
          best = static_cast<int>(c);
        }
      }
      right += best == labels[static_cast<size_t>(first + row)];
    }
  }
  return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 0;
}

std::vector<std::pair<std::string, std::vector<float>*>> WeightlessTrainer::state() {
  std::vector<std::pair<std::string, std::vector<float>*>> all;
  for (size_t l = 0; l < states_.size(); ++l) {
    WeightlessLayer& layer = network_.layers()[l];
    const std::string& path = layer.path;
    all.emplace_back(path + ".choice", &layer.choice);
    all.emplace_back(path + ".entries", &layer.entries);
    all.emplace_back(path + ".choice.first", &states_[l].choice.first);
    all.emplace_back(path + ".choice.second", &states_[l].choice.second);
    all.emplace_back(path + ".entries.first", &states_[l].entries.first);
    all.emplace_back(path + ".entries.second", &states_[l].entries.second);
  }
  return all;
}

void WeightlessTrainer::resume_at(int64_t epoch) {
  epoch_ = epoch;
  const auto rows = static_cast<int64_t>(labels_.size());
  const int64_t batches = rows / std::min(training_.batch, rows);
  steps_ = epoch * batches;
  choices_ = 0;
  for (int64_t e = 0; e < epoch; ++e)
    for (int64_t k = 0; k < batches; k += training_.wiring_every)
      choices_ += (static_cast<double>(e) + static_cast<double>(k) / static_cast<double>(batches)) /
                      static_cast<double>(training_.epochs) <
                  training_.wired;
  for (WeightlessLayer& layer : network_.layers()) layer.choose();
}

}  // namespace mase
