// SPDX-License-Identifier: Apache-2.0
// The progress line as tqdm and Lightning draw it:
//   Epoch 9: 100%|███| 3084/3084 [00:16<00:00, 183.06it/s, v_num=0, train_acc_step=0.730]
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mase {

struct ProgressLine {
  std::string title;  // "Epoch 9"
  int64_t done = 0, total = 0;
  double seconds = 0;  // spent on what is done
  std::vector<std::pair<std::string, std::string>> postfix = {};
};

// `columns` is the terminal's width, which the bar fills; 0: not a terminal, a short bar.
std::string progress_text(const ProgressLine& line, int columns, bool ascii = false);

// The table Lightning prints after a test: names and values centred under rules as wide as the
// terminal.
std::string metric_box(const std::string& title,
                       const std::vector<std::pair<std::string, double>>& metrics, int columns);

}  // namespace mase
