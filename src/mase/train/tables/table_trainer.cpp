// SPDX-License-Identifier: Apache-2.0
#include "mase/train/tables/table_trainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mase/base/random.h"

namespace mase {
namespace {

constexpr int64_t block_rows = 512;
constexpr float keeping = 0.05f;  // how hard sums are held inside

}  // namespace

void shares_of(const float* outputs, int64_t classes, float* shares) {
  float most = outputs[0];
  for (int64_t o = 1; o < classes; ++o) most = std::max(most, outputs[o]);
  float all = 0;
  for (int64_t o = 0; o < classes; ++o) all += shares[o] = std::exp(outputs[o] - most);
  for (int64_t o = 0; o < classes; ++o) shares[o] /= all;
}

TableRows TableRows::part(std::span<const uint32_t> chosen) const {
  TableRows result{static_cast<int64_t>(chosen.size()), features, classes, {}, {}, {}};
  for (const uint32_t row : chosen) {
    const auto from = static_cast<std::ptrdiff_t>(row);
    result.codes.insert(result.codes.end(), codes.begin() + from * features,
                        codes.begin() + (from + 1) * features);
    result.labels.push_back(labels[row]);
    result.targets.insert(result.targets.end(), targets.begin() + from * classes,
                          targets.begin() + (from + 1) * classes);
  }
  return result;
}

TableTrainer::TableTrainer(TableNetwork& network, const TableRows& rows)
    : network_(network), rows_(rows), run_(network, block_rows) {
  for (const TableLayer& layer : network.layers()) {
    states_.push_back(
        {Moments(layer.coarse.size()), Moments(layer.fine.size()), Moments(layer.bias.size()),
         std::vector<float>(static_cast<size_t>(layer.in * layer.codes * layer.pad))});
    gradients_.emplace_back(static_cast<size_t>(block_rows * layer.pad));
  }
  codes_.resize(static_cast<size_t>(block_rows * rows.features));
}

void TableTrainer::step(std::span<const uint32_t> chosen, const TableTraining& training, float rate,
                        int64_t count) {
  const auto rows = static_cast<int64_t>(chosen.size());
  std::vector<TableLayer>& layers = network_.layers();
  for (size_t k = 0; k < chosen.size(); ++k)
    std::copy_n(rows_.codes.data() + static_cast<int64_t>(chosen[k]) * rows_.features,
                rows_.features, codes_.data() + static_cast<int64_t>(k) * rows_.features);
  network_.derive();
  const float* const outputs = run_.forward(network_, codes_.data(), rows);
  const int64_t classes = rows_.classes, pad = layers.back().pad;
  std::vector<float> shares(static_cast<size_t>(classes));
  const float each = 1.0f / static_cast<float>(rows);
  float* const last = gradients_.back().data();
  for (int64_t row = 0; row < rows; ++row) {
    shares_of(outputs + row * pad, classes, shares.data());
    const float* const target =
        rows_.targets.data() + static_cast<int64_t>(chosen[static_cast<size_t>(row)]) * classes;
    float* const g = last + row * pad;
    for (int64_t o = 0; o < classes; ++o)
      g[o] = (shares[static_cast<size_t>(o)] - target[o]) * each;
    std::fill(g + classes, g + pad, 0.0f);
  }
  const float correction1 = 1 - std::pow(0.9f, static_cast<float>(count)),
              correction2 = std::sqrt(1 - std::pow(0.99f, static_cast<float>(count)));
  for (size_t l = layers.size(); l-- > 0;) {
    TableLayer& layer = layers[l];
    LayerState& state = states_[l];
    const float* const g = gradients_[l].data();
    if (l > 0) {
      TableLayer& before = layers[l - 1];
      float* const back = gradients_[l - 1].data();
      std::fill_n(back, rows * before.pad, 0.0f);
      table_lanes::pull_back(layer.shape(), layer.slopes.data(), g, run_.codes_of(l), rows,
                             before.pad, back);
      // Beyond the codes there is no slope, only the way back.
      const float high = std::ldexp(static_cast<float>(layer.codes) / 2, -layer.frac),
                  inner = high - static_cast<float>(training.edge);
      const float* const sums = run_.sums_of(l - 1);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < layer.in; ++i) {
          const float sum = sums[row * before.pad + i], over = std::abs(sum) - inner;
          if (over <= 0) continue;
          float& to = back[row * before.pad + i];
          if (std::abs(sum) >= high) to = 0;
          to += (sum > 0 ? keeping : -keeping) * std::min(over, 1.0f) * each;
        }
    }
    std::fill(state.sums.begin(), state.sums.end(), 0.0f);
    table_lanes::add_by_code(layer.shape(), g, run_.codes_of(l), rows, state.sums.data());
    const auto width = static_cast<size_t>(layer.pad);
    std::vector<float> values(static_cast<size_t>(layer.codes) * width), mask(width);
    const auto hold = static_cast<float>(training.smoothness),
               fine_hold = static_cast<float>(training.smoothness * training.fine_factor);
    for (size_t k = 0; k < layer.coarse.size(); ++k)
      state.coarse.gradient[k] = hold * layer.coarse[k];
    for (size_t k = 0; k < layer.fine.size(); ++k)
      state.fine.gradient[k] = fine_hold * layer.fine[k];
    for (const int i : layer.live) {
      std::fill(values.begin(), values.end(), 0.0f);
      for (int b = 1; b <= layer.width; ++b) {
        bool present = false;
        for (int64_t o = 0; o < layer.pad; ++o) {
          const bool here = o < layer.out && layer.bits[layer.edge(i, o)] == b;
          mask[static_cast<size_t>(o)] = here;
          present = present || here;
        }
        if (!present) continue;
        table_lanes::add_cells_back(
            {layer.codes, layer.pad, layer.codes >> b, layer.counts.data() + i * layer.codes,
             mask.data(), nullptr, nullptr},
            state.sums.data() + i * layer.codes * layer.pad, values.data());
      }
      table_lanes::spline_back(
          network_.coarse(l).basis(), layer.codes, layer.pad, values.data(),
          state.coarse.gradient.data() + i * TableNetwork::coarse_splines * layer.pad);
      table_lanes::spline_back(
          network_.fine(l).basis(), layer.codes, layer.pad, values.data(),
          state.fine.gradient.data() + i * TableNetwork::fine_splines * layer.pad);
    }
    std::fill(state.bias.gradient.begin(), state.bias.gradient.end(), 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t o = 0; o < layer.out; ++o)
        state.bias.gradient[static_cast<size_t>(o)] += g[row * layer.pad + o];
    const auto move = [&](std::vector<float>& value, Moments& moments) {
      table_lanes::adam(value.data(), moments.gradient.data(), moments.first.data(),
                        moments.second.data(), static_cast<int64_t>(value.size()),
                        rate * correction2 / correction1, 1e-8f);
    };
    move(layer.coarse, state.coarse);
    move(layer.fine, state.fine);
    move(layer.bias, state.bias);
  }
}

void TableTrainer::train(const TableTraining& training, uint64_t seed, const std::string& name,
                         const std::function<bool()>& stop) {
  for (LayerState& state : states_)
    for (Moments* moments : {&state.coarse, &state.fine, &state.bias}) {
      std::fill(moments->first.begin(), moments->first.end(), 0.0f);
      std::fill(moments->second.begin(), moments->second.end(), 0.0f);
    }
  const int64_t batch = std::min(training.batch, block_rows);
  const int64_t batches = std::max<int64_t>(1, rows_.rows / batch);
  const int64_t steps = batches * training.epochs;
  int64_t count = 0;
  for (int64_t epoch = 0; epoch < training.epochs; ++epoch) {
    if (stop && stop()) return;
    Random random(seed, "tables.order." + name, static_cast<uint64_t>(epoch));
    const std::vector<uint32_t> order = random.permutation(static_cast<uint32_t>(rows_.rows));
    for (int64_t k = 0; k < batches; ++k) {
      const double share = static_cast<double>(count) / static_cast<double>(steps);
      const double rate = training.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * share));
      const int64_t first = k * batch, last = std::min(first + batch, rows_.rows);
      ++count;
      step(std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)),
           training, static_cast<float>(rate), count);
    }
  }
  network_.derive();
}

TableScore TableTrainer::score(const TableRows& rows) {
  TableScore score;
  const int64_t classes = rows.classes, pad = network_.layers().back().pad;
  std::vector<float> shares(static_cast<size_t>(classes));
  int64_t right = 0;
  for (int64_t first = 0; first < rows.rows; first += block_rows) {
    const int64_t count = std::min(block_rows, rows.rows - first);
    const float* const outputs =
        run_.forward(network_, rows.codes.data() + first * rows.features, count);
    for (int64_t row = 0; row < count; ++row) {
      const float* const own = outputs + row * pad;
      shares_of(own, classes, shares.data());
      const int label = rows.labels[static_cast<size_t>(first + row)];
      right += std::max_element(own, own + classes) - own == label;
      score.entropy -=
          std::log(std::max(1e-12, static_cast<double>(shares[static_cast<size_t>(label)])));
      const float* const target = rows.targets.data() + (first + row) * classes;
      for (int64_t o = 0; o < classes; ++o)
        score.loss -=
            static_cast<double>(target[o]) *
            std::log(std::max(1e-12, static_cast<double>(shares[static_cast<size_t>(o)])));
    }
  }
  const auto all = static_cast<double>(std::max<int64_t>(1, rows.rows));
  return {score.loss / all, score.entropy / all, static_cast<double>(right) / all};
}

void TableTrainer::add_shares(const TableRows& rows, std::span<float> shares) {
  const int64_t classes = rows.classes, pad = network_.layers().back().pad;
  std::vector<float> own(static_cast<size_t>(classes));
  for (int64_t first = 0; first < rows.rows; first += block_rows) {
    const int64_t count = std::min(block_rows, rows.rows - first);
    const float* const outputs =
        run_.forward(network_, rows.codes.data() + first * rows.features, count);
    for (int64_t row = 0; row < count; ++row) {
      shares_of(outputs + row * pad, classes, own.data());
      for (int64_t o = 0; o < classes; ++o)
        shares[static_cast<size_t>((first + row) * classes + o)] += own[static_cast<size_t>(o)];
    }
  }
}

void TableTrainer::count_codes() {
  std::vector<TableLayer>& layers = network_.layers();
  for (TableLayer& layer : layers) std::fill(layer.counts.begin(), layer.counts.end(), 0.5f);
  for (int64_t first = 0; first < rows_.rows; first += block_rows) {
    const int64_t count = std::min(block_rows, rows_.rows - first);
    run_.forward(network_, rows_.codes.data() + first * rows_.features, count);
    for (size_t l = 0; l < layers.size(); ++l) {
      const uint8_t* const codes = run_.codes_of(l);
      for (int64_t row = 0; row < count; ++row)
        for (int64_t i = 0; i < layers[l].in; ++i)
          ++layers[l]
                .counts[static_cast<size_t>(i * layers[l].codes + codes[row * layers[l].in + i])];
    }
  }
  network_.derive();
}

std::vector<std::vector<float>> TableTrainer::curvature() {
  const std::vector<TableLayer>& layers = network_.layers();
  std::vector<std::vector<float>> result;
  for (const TableLayer& layer : layers)
    result.emplace_back(static_cast<size_t>(layer.in * layer.codes * layer.pad), 0.0f);
  const int64_t classes = rows_.classes;
  std::vector<float> shares(static_cast<size_t>(classes));
  for (int64_t first = 0; first < rows_.rows; first += block_rows) {
    const int64_t count = std::min(block_rows, rows_.rows - first);
    const float* const outputs =
        run_.forward(network_, rows_.codes.data() + first * rows_.features, count);
    for (size_t l = layers.size(); l-- > 0;) {
      const TableLayer& layer = layers[l];
      float* const own = gradients_[l].data();
      std::fill_n(own, count * layer.pad, 0.0f);
      for (int64_t row = 0; row < count; ++row) {
        float* const h = own + row * layer.pad;
        if (l + 1 == layers.size()) {
          shares_of(outputs + row * layer.pad, classes, shares.data());
          for (int64_t o = 0; o < classes; ++o)
            h[o] = 0.5f * shares[static_cast<size_t>(o)] * (1 - shares[static_cast<size_t>(o)]);
          continue;
        }
        const TableLayer& next = layers[l + 1];
        const uint8_t* const codes = run_.codes_of(l + 1) + row * next.in;
        if (l + 2 == layers.size()) shares_of(outputs + row * next.pad, classes, shares.data());
        const float* const above = gradients_[l + 1].data() + row * next.pad;
        for (const int i : next.live) {
          const float* const slope = next.slopes.data() + (i * next.codes + codes[i]) * next.pad;
          float square = 0, mean = 0;
          for (int64_t o = 0; o < next.out; ++o)
            if (l + 2 == layers.size()) {
              square += shares[static_cast<size_t>(o)] * slope[o] * slope[o];
              mean += shares[static_cast<size_t>(o)] * slope[o];
            } else {
              square += 2 * above[o] * slope[o] * slope[o];
            }
          h[i] = 0.5f * (square - mean * mean);
        }
      }
      table_lanes::add_by_code(layer.shape(), own, run_.codes_of(l), count, result[l].data());
    }
  }
  return result;
}

}  // namespace mase
