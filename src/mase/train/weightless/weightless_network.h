// SPDX-License-Identifier: Apache-2.0
// A weightless network while it is trained: thermometer, layers of tables of bits, counts of bits
// by class. A table's entries are numbers whose sign is the bit; what a table reads is, for each of
// its inputs, the bit with the largest number of a matrix.
//
// Gradients (Bacellar et al., 2024): a table's output depends on its entry at the address alone; by
// its input j it changes as the extended finite difference says,
//   d_j(a) = half (3/4)^(k-1) sum over addresses b of sign_j(b) third^(bits other than j in which a
//            and b differ) entry(b)
// which is a product of one 2 x 2 matrix for each bit, computed by butterflies once a step for all
// addresses. The gradient of "input j reads bit i" is that of the input times +1 or -1, as the bit
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/ir/graph.h"

namespace mase {

struct WeightlessLayer {
  std::string path;  // of its module
  int64_t in = 0, out = 0, inputs = 6;
  std::vector<float> choice;   // [in][out * inputs]
  std::vector<float> entries;  // [out][2^inputs]
  std::vector<int> wiring;     // [out * inputs]
  std::vector<char> usable;    // [in]: bits that are not nearly always the same

  int64_t size() const { return int64_t{1} << inputs; }
  void choose();  // the wiring, from the matrix
};

// d_j(a) for all addresses and inputs of one table: differences[a * inputs + j].
void extended_differences(const float* entries, int inputs, float* differences);

class WeightlessNetwork {
 public:
  // Of a graph thermometer, lut_layer..., group_sum (behind a flatten, if there is one); an Error
  // where it is none. Entries and choices begin drawn.
  WeightlessNetwork(const Graph& graph, uint64_t seed);

  int64_t features() const { return features_; }
  int64_t bits() const { return features_ * levels_; }
  int64_t classes() const { return classes_; }
  int64_t levels() const { return levels_; }
  std::vector<WeightlessLayer>& layers() { return layers_; }
  const std::vector<WeightlessLayer>& layers() const { return layers_; }
  // Thresholds at even shares of what the rows' features are, where there are several.
  void fit_thresholds(const Split& rows);
  // [rows][bits] of 0 and 1.
  std::vector<uint8_t> bits_of(const Split& rows) const;
  Graph graph() const;

 private:
  Graph like_;
  std::string thermometer_, counts_;
  int64_t features_ = 0, levels_ = 1, classes_ = 0;
  std::vector<double> thresholds_;
  std::vector<WeightlessLayer> layers_;
};

struct WeightlessTraining {
  int64_t epochs = 30, batch = 128;
  double learning_rate = 1e-2;  // falls to nothing as a cosine
  double wired = 0.6;           // from this share of the epochs on the wiring stays
  int64_t wiring_every = 4;     // steps
  double scale = 0;             // of the counts; 0: by the size of a group
  double smoothing = 0.05;      // of the labels
  int64_t shift = 0;            // pixels that samples [.., height, width] are moved by, at most
};

class WeightlessTrainer {
 public:
  // `sample`: the shape of a sample, for shifts.
  WeightlessTrainer(WeightlessNetwork& network, std::vector<uint8_t> bits, std::vector<int> labels,
                    Shape sample, const WeightlessTraining& training, uint64_t seed);

  int64_t epoch() const { return epoch_; }
  // One epoch; the mean loss.
  double run_epoch(const std::function<bool()>& stop = {});
  double accuracy(std::span<const uint8_t> bits, std::span<const int> labels);

  // Everything that the next epoch depends on, by name.
  std::vector<std::pair<std::string, std::vector<float>*>> state();
  void resume_at(int64_t epoch);

 private:
  struct Moments {
    std::vector<float> first, second;
  };
  struct LayerState {
    Moments choice, entries;
    std::vector<float> differences;  // [out][2^inputs][inputs]
    std::vector<float> entry_gradient, choice_gradient;
    std::vector<uint8_t> bits;    // [batch][out]
    std::vector<int> addresses;   // the same
    std::vector<float> gradient;  // the same
    std::vector<float> by_input;  // [batch][out * inputs]
  };
  void forward(const uint8_t* bits, int64_t rows);
  double step(const uint8_t* bits, const int* labels, int64_t rows, bool wire, float rate);

  WeightlessNetwork& network_;
  std::vector<uint8_t> bits_;
  std::vector<int> labels_;
  Shape sample_;
  WeightlessTraining training_;
  uint64_t seed_;
  int64_t epoch_ = 0, steps_ = 0, choices_ = 0;
  float scale_ = 1;
  std::vector<LayerState> states_;
};

}  // namespace mase
