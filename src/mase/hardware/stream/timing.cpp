// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>

#include "mase/hardware/stream/plan.h"

namespace mase {
namespace {

// A buffer: what was put in can be taken from the next clock cycle on.
struct Buffer {
  int64_t depth = 2, count = 0, most = 0;
  bool ready() const { return count < depth; }
  bool valid() const { return count > 0; }
  void clock(bool put, bool taken) {
    count += put - taken;
    most = std::max(most, count);
  }
};

// What a stage takes and gives in a clock cycle.
struct Transfer {
  bool taken = false, given = false;
};
// A finished sum and the output register behind it.
struct Finish {
  bool done = false, valid = false;
  bool moves(bool ready) const { return done && (!valid || ready); }
  void clock(bool ready, bool finished) {
    const bool move = moves(ready);
    if (move)
      valid = true;
    else if (ready)
      valid = false;
    done = finished || (done && !move);
  }
};

class StageModel {
 public:
  virtual ~StageModel() = default;
  virtual Transfer clock(bool offered, bool ready) = 0;
};

class WindowModel final : public StageModel {
 public:
  WindowModel(const StreamStage& stage, const StagePlan& plan)
      : windows_(*stage.windows),
        scan_(windows_),
        digits_(plan.products ? plan.products->digits : 1) {}

  Transfer clock(bool offered, bool ready) override {
    const bool inside =
        row_ >= windows_.before[0] && row_ < windows_.before[0] + windows_.size[0] &&
        column_ >= windows_.before[1] && column_ < windows_.before[1] + windows_.size[1];
    const bool have = offered || !inside;
    const bool hit =
        ends_window(row_, scan_.first_row, scan_.last_row, windows_.stride[0]) &&
        ends_window(column_, scan_.first_column, scan_.last_column, windows_.stride[1]);
    const bool step = have && hit && (!finish_.done || finish_.moves(ready));
    const bool last = digit_ == digits_ - 1;
    const bool advance = have && (!hit || (step && last));
    const Transfer result{inside && advance, finish_.valid && ready};
    finish_.clock(ready, step && last);
    if (step) digit_ = last ? 0 : digit_ + 1;
    if (advance && ++column_ == scan_.columns) {
      column_ = 0;
      if (++row_ == scan_.rows) row_ = 0;
    }
    return result;
  }

 private:
  static bool ends_window(int64_t at, int64_t first, int64_t last, int64_t stride) {
    return at >= first && at <= last && (at - first) % stride == 0;
  }
  const IntegerGraph::Sliding& windows_;
  WindowScan scan_;
  int digits_, digit_ = 0;
  int64_t row_ = 0, column_ = 0;
  Finish finish_;
};

class VectorModel final : public StageModel {
 public:
  VectorModel(const StreamStage& stage, const StagePlan& plan)
      : in_depth_(stage.inputs() / plan.before), out_depth_(stage.outputs() / plan.after) {}

  Transfer clock(bool offered, bool ready) override {
    const bool free = !finish_.done || finish_.moves(ready);
    const bool step = free && (out_depth_ > 1 ? full_[computing_] : offered);
    const bool last = beat_ == in_depth_ - 1;
    const Transfer result{offered && (out_depth_ > 1 ? !full_[arriving_] : free),
                          finish_.valid && ready};
    finish_.clock(ready, step && last);
    if (step) {
      beat_ = last ? 0 : beat_ + 1;
      if (last && out_depth_ > 1 && ++group_ == out_depth_) {
        group_ = 0;
        full_[computing_] = false;
        computing_ = 1 - computing_;
      }
    }
    if (out_depth_ > 1 && result.taken && ++arrived_ == in_depth_) {
      arrived_ = 0;
      full_[arriving_] = true;
      arriving_ = 1 - arriving_;
    }
    return result;
  }

 private:
  int64_t in_depth_, out_depth_, beat_ = 0, group_ = 0, arrived_ = 0;
  bool full_[2] = {false, false};
  size_t arriving_ = 0, computing_ = 0;
  Finish finish_;
};

// What stands between a source and a stage: positions, and elements of them where the stage takes
// fewer at once.
struct Edge {
  Buffer buffer, elements;
  int64_t choices = 1, choice = 0;
  bool valid() const { return choices > 1 ? elements.valid() : buffer.valid(); }
  void clock(bool put, bool given) {
    bool taken = given;
    if (choices > 1) {
      const bool chosen = buffer.valid() && elements.ready();
      elements.clock(chosen, given);
      taken = chosen && ++choice == choices;
      if (taken) choice = 0;
    }
    buffer.clock(put, taken);
  }
};

}  // namespace

WindowScan::WindowScan(const IntegerGraph::Sliding& s) {
  int64_t* const all[2][3] = {{&rows, &first_row, &last_row},
                              {&columns, &first_column, &last_column}};
  for (size_t i = 0; i < 2; ++i) {
    *all[i][1] = (s.kernel[i] - 1) * s.dilation[i];
    *all[i][2] = *all[i][1] + (s.result[i] - 1) * s.stride[i];
    *all[i][0] = std::max(s.before[i] + s.size[i], *all[i][2] + 1);
  }
}

StreamTiming run_timing(const StreamNetwork& network, const std::vector<StagePlan>& plans,
                        int64_t interval, bool unlimited) {
  constexpr int64_t rows = 6;
  const std::vector<StreamStage>& stages = network.stages;
  std::vector<std::unique_ptr<StageModel>> models;
  std::vector<std::vector<Edge>> edges(stages.size());
  std::vector<std::vector<Edge*>> behind(stages.size() + 1);  // the inputs, then every stage
  int64_t patience = 1000;                                    // cycles in which nothing moves
  for (size_t k = 0; k < stages.size(); ++k) {
    for (size_t i = 0; i < stages[k].sources.size(); ++i) {
      Edge edge;
      edge.buffer.depth = unlimited ? int64_t{1} << 40 : plans[k].buffers[i];
      edge.choices = stages[k].sources.size() == 1 ? plans[k].given[i] / plans[k].before : 1;
      edges[k].push_back(edge);
    }
    for (size_t i = 0; i < edges[k].size(); ++i)
      behind[static_cast<size_t>(stages[k].sources[i].stage + 1)].push_back(&edges[k][i]);
    if (stages[k].windows)
      models.push_back(std::make_unique<WindowModel>(stages[k], plans[k]));
    else
      models.push_back(std::make_unique<VectorModel>(stages[k], plans[k]));
    patience += 4 * plans[k].cycles;
  }
  const int64_t beats_in =
                    static_cast<int64_t>(network.input_order.size()) / plans.front().given.front(),
                beats_out = stages.back().row_outputs() / plans.back().after;
  int64_t sent = 0, received = 0, idle = 0;
  std::vector<int64_t> ends;
  StreamTiming timing;
  const auto ready = [&](size_t source) {
    return std::all_of(behind[source].begin(), behind[source].end(),
                       [](const Edge* edge) { return edge->buffer.ready(); });
  };
  for (int64_t cycle = 0; received < rows * beats_out; ++cycle) {
    if (idle > patience + interval) {
      timing.stuck = true;
      timing.interval = std::numeric_limits<int64_t>::max();
      return timing;
    }
    // Whether each buffer has place is known before anything moves.
    const bool offered = sent < rows * beats_in && sent / beats_in * interval <= cycle;
    std::vector<char> given(stages.size() + 1), taken(stages.size());
    given[0] = offered && ready(0);
    for (size_t k = 0; k < stages.size(); ++k) {
      const bool all = std::all_of(edges[k].begin(), edges[k].end(),
                                   [](const Edge& edge) { return edge.valid(); });
      const Transfer moved = models[k]->clock(all, ready(k + 1));
      taken[k] = moved.taken;
      given[k + 1] = moved.given;
    }
    bool any = false;
    for (size_t k = 0; k < stages.size(); ++k)
      for (size_t i = 0; i < edges[k].size(); ++i)
        edges[k][i].clock(given[static_cast<size_t>(stages[k].sources[i].stage + 1)], taken[k]);
    for (const char one : given) any = any || one;
    sent += given[0];
    received += given.back();
    idle = any ? 0 : idle + 1;
    if (given.back() && received % beats_out == 0) ends.push_back(cycle + 1);
  }
  timing.latency = ends.front();
  timing.interval = (ends.back() - ends[1]) / (rows - 2);
  for (const std::vector<Edge>& own : edges) {
    timing.most.emplace_back();
    for (const Edge& edge : own) timing.most.back().push_back(edge.buffer.most);
  }
  return timing;
}

}  // namespace mase
