// SPDX-License-Identifier: Apache-2.0
// Trains the tables of a network whose widths stay, and says what the loss would be with other
// widths, to the second order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mase/train/tables/table_network.h"

namespace mase {

// Rows as they enter the first layer, and what the outputs should be.
struct TableRows {
  int64_t rows = 0, features = 0, classes = 0;
  std::vector<uint8_t> codes;  // [rows][features]
  std::vector<int> labels;
  std::vector<float> targets;  // [rows][classes]: shares of the classes

  TableRows part(std::span<const uint32_t> chosen) const;
};

struct TableScore {
  double loss = 0;     // against the targets
  double entropy = 0;  // cross-entropy with the labels
  double accuracy = 0;
};

struct TableTraining {
  int64_t epochs = 20, batch = 512;
  double learning_rate = 5e-3;  // falls to nothing as a cosine
  double smoothness = 1e-4;     // of coarse splines; fine ones are held by `fine_factor` times that
  double fine_factor = 13;
  double edge = 0.3;  // sums inside the network stay so far from where they wrap
};

class TableTrainer {
 public:
  TableTrainer(TableNetwork& network, const TableRows& rows);

  // One run of `training`; whatever was drawn is told by seed and name. `stop`: asked each epoch.
  void train(const TableTraining& training, uint64_t seed, const std::string& name,
             const std::function<bool()>& stop = {});
  TableScore score(const TableRows& rows);
  // The outputs' shares of the classes, [rows][classes], added to `shares`.
  void add_shares(const TableRows& rows, std::span<float> shares);
  // How often every code came, for the means of cells; a few codes that never came count a little.
  void count_codes();
  // Half the second derivative of the loss of all rows by every entry, in tables' order.
  std::vector<std::vector<float>> curvature();

 private:
  struct Moments {
    std::vector<float> gradient, first, second;
    explicit Moments(size_t n) : gradient(n), first(n, 0.0f), second(n, 0.0f) {}
  };
  struct LayerState {
    Moments coarse, fine, bias;
    std::vector<float> sums;  // of gradients by code
  };
  void step(std::span<const uint32_t> chosen, const TableTraining& training, float rate,
            int64_t count);

  TableNetwork& network_;
  const TableRows& rows_;
  TableRun run_;
  std::vector<LayerState> states_;
  std::vector<uint8_t> codes_;
  std::vector<std::vector<float>> gradients_;
};

// exp(outputs) as shares of their sum.
void shares_of(const float* outputs, int64_t classes, float* shares);

}  // namespace mase
