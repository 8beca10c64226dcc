// SPDX-License-Identifier: Apache-2.0
// Runs a compiled network over a whole split: the quick score of validation, all logits for test
// and predict, and the evaluation record made of every registered metric.
#pragma once

#include "mase/data/dataset.h"
#include "mase/engine/program.h"
#include "mase/train/loss.h"
#include "mase/train/metric.h"

namespace mase {

struct Score {
  double loss_sum = 0;     // of batches, each with its weight
  double loss_weight = 0;  // rows, or the sum of their classes' weights
  int64_t correct = 0, rows = 0;
  void add(const StepResult& batch, int64_t size) {
    // Rows of classes without weight have no mean; the engine gives the sum of their losses (label
    // smoothing leaves them some).
    loss_sum += batch.weight != 0 ? batch.loss * batch.weight : batch.loss;
    loss_weight += batch.weight;
    correct += batch.correct;
    rows += size;
  }
  double loss() const { return loss_weight != 0 ? loss_sum / loss_weight : 0; }
  double accuracy() const {
    return rows ? static_cast<double>(correct) / static_cast<double>(rows) : 0;
  }
};

// The loss of that name (empty: of the data set's task) for this data set, with its class weights.
LossFunction loss_for(const Dataset& dataset, const std::string& name = {},
                      const Value& options = Dict{});

// An error if the labels do not fit the network's outputs: labels index memory later.
void check_split(const Split& split, const Dataset& dataset, const Graph& graph);

// Batches [first, last) of the split into the stream, which was started for all of them; `outputs`
// is room for a batch's outputs, where a figure needs them.
void stream_batches(Program& program, const Split& split, int64_t first, int64_t last,
                    MetricStream& stream, std::vector<float>& outputs);

// Rows [first, last) of the split; the program has a loss.
Score score_rows(Program& program, const Split& split, int64_t first, int64_t last);

using ProgressFunction = std::function<void(int64_t batch, int64_t batches)>;
// Logits of every row of x, [rows, outputs...], and the score if the split has labels or targets.
Tensor predict_rows(Program& program, const Split& split, Score* score = nullptr,
                    const ProgressFunction& progress = {});

// {"split", "rows", "classes", "accuracy", "loss", "confusion", ...}, and "rows_without_scores"
// where outputs are NaN or infinite. What cannot be said then is null.
Value evaluation_record(const std::string& split_name, const Split& split, const Tensor& logits,
                        const Score& score, const Dataset& dataset);

}  // namespace mase
