// SPDX-License-Identifier: Apache-2.0
// Figures of merit from outputs and targets. A metric is one file in metrics/ that registers one
// record; training, test, the run record and the pages take what the registry holds.
//
// A figure that curves show is streamed: each batch leaves a few numbers behind, and the figure is
// made of those of all batches, in their order. Processes that share the batches exchange them, so
// that the figure has the same bits whoever computed which batch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/base/tensor.h"

namespace mase {

struct MetricInput {
  const float* logits = nullptr;    // row-major [rows][outputs]
  const int32_t* labels = nullptr;  // [rows], where targets are classes
  int64_t rows = 0, outputs = 0;
  double loss = 0;                 // mean of the rows, from the engine
  const float* targets = nullptr;  // [rows][outputs], where they are numbers
  int64_t correct = 0;             // arg-max hits, from the engine
  double loss_weight = 1;          // what that mean divides by, from the engine
};

struct MetricRecord {
  static constexpr const char* kind = "metric";
  std::string name;  // the key in the evaluation record
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema options = {};
  bool for_classes = true, for_numbers = false;
  bool higher_is_better = true;
  // Of a whole split at once; null for figures that are streamed.
  std::function<Value(const MetricInput& input)> compute = {};
  // Streamed: how many numbers a batch leaves behind, what they are, and the figure of all batches
  // (`table` has a row for each).
  std::string curve = {};     // in val_CURVE_epoch; empty: the name
  bool needs_outputs = true;  // or only what the engine counts anyway
  std::function<int64_t(int64_t outputs)> columns = {};
  std::function<void(const MetricInput& batch, const Value& options, std::span<double> row)> add =
      {};
  std::function<double(std::span<const double> table, int64_t columns, const Value& options)>
      value = {};
  // The curve's name where options change what is measured.
  std::function<std::string(const Value& options)> curve_of = {};
};

// The streamed metric that a name, an alias or a curve ("acc", "val_acc_epoch") stands for; an
// Error at `place` if there is none.
const MetricRecord& streamed_metric(const std::string& name, const std::string& place);
// "val_acc_epoch" is the curve "acc"; other names stay.
std::string curve_name(const std::string& name);

// Streamed figures with their options, for one pass over a split.
class MetricStream {
 public:
  // Names of streamed metrics, with or without options; those that do not fit the kind of targets
  // are an error.
  void choose(const std::string& name, bool classes, const Value& options = Dict{});
  bool needs_outputs() const;

  void start(int64_t batches, int64_t outputs);
  void add(int64_t batch, const MetricInput& input);
  std::span<double> partials() { return partials_; }  // zero where no batch was added

  size_t size() const { return chosen_.size(); }
  const MetricRecord& record(size_t index) const { return *chosen_[index].record; }
  std::string curve(size_t index) const;       // "acc", "loss", "mae"
  size_t find(const std::string& name) const;  // by name, alias or curve; size() if it is not here
  double value(size_t index) const;

 private:
  struct Chosen {
    const MetricRecord* record;
    Value options;
    int64_t columns = 0;
    size_t begin = 0;  // of its table in partials_
  };
  std::vector<Chosen> chosen_;
  std::vector<double> partials_;
  int64_t batches_ = 0;
};

// The figure of that name of one whole split.
Value compute_metric(const std::string& name, const MetricInput& input);

// The column sums of a table, each from the first row to the last.
std::vector<double> column_sums(std::span<const double> table, int64_t columns);

// Whether outputs choose a class: none is NaN and the largest is finite, so that they have a
// softmax. A row without scores has no class, counts as wrong, and has no place in a ranking.
bool has_scores(const float* values, int64_t count);
// The index of the largest of `count` values, the first of equals; -1 without scores.
int64_t arg_max(const float* values, int64_t count);
// Whether the label is among the k largest; equal ones count against it.
bool among_largest(const float* values, int64_t count, int64_t label, int64_t k);

// Receiver operating characteristic of one score against the rest: points at every distinct score,
// thinned to at most `points`, and the exact area (ties count half).
struct RocCurve {
  double auc = 0;  // not a number if one side is empty or a score is not a number
  std::vector<double> fpr, tpr;
};
RocCurve roc_curve(const std::vector<float>& scores, const std::vector<bool>& positive,
                   size_t points = 200);

}  // namespace mase
