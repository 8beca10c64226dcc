// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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

// A stage with the buffers before it: positions, and elements of them where it takes fewer.
struct Place {
  Buffer buffer, elements;
  int64_t choices = 1, choice = 0;
  std::unique_ptr<StageModel> stage;
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

StreamTiming run_timing(const std::vector<StreamStage>& stages, const std::vector<StagePlan>& plans,
                        int64_t interval, bool unlimited) {
  constexpr int64_t rows = 6;
  std::vector<Place> places(stages.size());
  for (size_t k = 0; k < stages.size(); ++k) {
    Place& place = places[k];
    place.buffer.depth = unlimited ? int64_t{1} << 40 : plans[k].buffer;
    const int given = k == 0 ? plans[0].before : plans[k - 1].after;
    place.choices = given / plans[k].before;
    if (stages[k].windows)
      place.stage = std::make_unique<WindowModel>(stages[k], plans[k]);
    else
      place.stage = std::make_unique<VectorModel>(stages[k], plans[k]);
  }
  const int64_t beats_in = stages.front().row_inputs() / plans.front().before,
                beats_out = stages.back().row_outputs() / plans.back().after;
  int64_t sent = 0, received = 0;
  std::vector<int64_t> ends;
  StreamTiming timing;
  for (int64_t cycle = 0; received < rows * beats_out; ++cycle) {
    MASE_CHECK(cycle < int64_t{1} << 32, "a stream that comes to no end");
    // Whether each buffer has place is known before anything moves.
    std::vector<char> ready(places.size() + 1, 1), valid(places.size());
    for (size_t k = 0; k < places.size(); ++k) {
      ready[k] = places[k].buffer.ready();
      valid[k] = places[k].choices > 1 ? places[k].elements.valid() : places[k].buffer.valid();
    }
    bool put = sent < rows * beats_in && sent / beats_in * interval <= cycle && ready[0];
    sent += put;
    for (size_t k = 0; k < places.size(); ++k) {
      Place& place = places[k];
      const Transfer moved = place.stage->clock(valid[k], ready[k + 1]);
      bool taken = moved.taken;
      if (place.choices > 1) {
        const bool chosen = place.buffer.valid() && place.elements.ready();
        place.elements.clock(chosen, moved.taken);
        taken = chosen && ++place.choice == place.choices;
        if (taken) place.choice = 0;
      }
      place.buffer.clock(put, taken);
      put = moved.given;
    }
    received += put;
    if (put && received % beats_out == 0) ends.push_back(cycle + 1);
  }
  timing.latency = ends.front();
  timing.interval = (ends.back() - ends[1]) / (rows - 2);
  for (const Place& place : places) timing.most.push_back(place.buffer.most);
  return timing;
}

}  // namespace mase
