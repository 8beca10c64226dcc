// SPDX-License-Identifier: Apache-2.0
// A network that is shrunk: the moves that take something away, and what they do to the loss.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mase/engine/program.h"
#include "mase/run/hardware/shrink.h"
#include "mase/train/evaluation.h"

namespace mase {

class Shrinker {
 public:
  Shrinker(Graph graph, const Dataset& dataset);

  double loss();
  double accuracy(const Split& rows);
  Graph graph() const;
  ShrinkStep measure(const std::string& what, double loss);

  // Features lose their lowest bit, or all of them, while the loss stays below the limit. How many
  // did.
  int64_t take_bits(double limit);
  // Weights lose digits likewise, until no weight can.
  int64_t take_digits(double limit);
  // Weights are trained with at most the digits they have; false if the loss did not fall.
  bool retrain(int64_t epochs, double learning_rate, uint64_t seed);

 private:
  struct Layer {
    std::string path;
    size_t parameter;  // its weight among the program's parameters
    QuantizerPtr format;
    std::vector<bool> frozen;  // the next digit is dear
  };
  struct DigitCandidate {
    size_t parameter, index;
    float to;
    double score;
  };

  void compile();
  ParameterView& weight(const Layer& layer) { return program_->parameters()[layer.parameter]; }
  void gradients();
  std::vector<DigitCandidate> digit_candidates();
  std::vector<float> apply(std::span<const DigitCandidate> chosen);
  void undo(std::span<const DigitCandidate> chosen, const std::vector<float>& old);
  double loss_of(const Graph& graph) const;

  Graph graph_;
  const Dataset& dataset_;
  std::optional<Program> program_, scoring_;
  std::vector<Layer> layers_;
};

}  // namespace mase
