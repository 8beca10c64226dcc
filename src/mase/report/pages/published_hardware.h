// SPDX-License-Identifier: Apache-2.0
// Figures that others published for jet tagging with 16 features and 5 classes, to stand beside
// one's own on pages. They are as their papers or comparisons quote them, nothing was run here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mase {

struct PublishedHardware {
  std::string system;
  double accuracy = 0;
  double luts = 0;
  std::optional<double> delay_ns = {};
  std::string data;     // the variant of the data: their accuracies differ by about a point
  std::string encoder;  // whether what turns features into codes is counted
  std::string further = {};
};

const std::vector<PublishedHardware>& published_hardware();

}  // namespace mase
