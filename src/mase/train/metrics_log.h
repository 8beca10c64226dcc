// SPDX-License-Identifier: Apache-2.0
// metrics.csv and metrics.jsonl: the same rows twice, appended while training runs. Their lengths
// are part of a checkpoint; resuming cuts both back to it, so that no row is there twice.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mase {

struct MetricsRow {
  int64_t epoch = 0, step = 0;
  std::optional<double> train_accuracy, train_loss, learning_rate;
  std::vector<std::pair<std::string, double>> figures = {};  // of an epoch: val_loss_epoch, ...
  double seconds = 0;
};

class MetricsLog {
 public:
  // Opens both files in the folder; what stands behind the given lengths is cut off (0: start
  // afresh). Rows before that which are damaged, cut or gone are left out, and notice() says so:
  // the run itself is whole without them, and a new row never joins half an old one. `figures` are
  // the columns of epochs.
  MetricsLog(const std::string& folder, std::vector<std::string> figures, int64_t csv_bytes,
             int64_t jsonl_bytes);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void add(const MetricsRow& row);  // buffered
  void flush();                     // to the system; before every checkpoint
  int64_t csv_bytes() const { return csv_.bytes; }
  int64_t jsonl_bytes() const { return jsonl_.bytes; }
  const std::string& notice() const { return notice_; }  // empty: all was well

 private:
  struct File {
    std::string path, pending;
    int fd = -1;
    int64_t bytes = 0;
    // Whole rows among the first `keep` bytes stay; says what did not.
    std::string open(int64_t keep, const std::function<bool(const std::string& line)>& whole);
    void add(const std::string& text);
    void flush();
  };
  std::vector<std::string> figures_;
  File csv_, jsonl_;
  std::string notice_;
};

}  // namespace mase
