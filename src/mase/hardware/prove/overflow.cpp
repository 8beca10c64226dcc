// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/prove/overflow.h"

#include <algorithm>

#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"

namespace mase {
namespace {

constexpr size_t drawn_rows_tried = 4096;
constexpr int most_pushes = 24;  // inputs changed, one after another, for one place
// Values that pushing may compute in all: seconds. What is not decided by then is said to be so. A
// count, not a time: the same places are found on every machine.
constexpr int64_t most_pushed_values = int64_t{1} << 30;

// Values of all places, and the rows that reach their ends furthest.
class OverflowSearch {
 public:
  OverflowSearch(const IntegerGraph& graph, std::vector<OverflowPlace>& places,
                 const std::vector<IntegerId>& values)
      : graph_(probe(graph, values)), program_(graph_), places_(places), best_(places.size()) {}

  // How many rows wrap somewhere.
  int64_t look_at(const std::vector<int64_t>& rows, bool count) {
    const size_t width = graph_.inputs.size(), all = places_.size();
    if (width == 0 || rows.empty()) return 0;
    const std::vector<int64_t> values = program_.run(rows);
    int64_t wrapped = 0;
    for (size_t row = 0; row < rows.size() / width; ++row) {
      bool any = false;
      const auto codes = rows.begin() + static_cast<std::ptrdiff_t>(row * width);
      for (size_t p = 0; p < all; ++p) {
        const int64_t value = values[row * all + p];
        OverflowPlace& place = places_[p];
        const bool outside = value < place.format.low || value > place.format.high;
        any = any || outside;
        if (outside && count) ++place.rows;
        if (outside && place.inputs.empty()) {
          place.inputs.assign(codes, codes + static_cast<std::ptrdiff_t>(width));
          place.reached = value;
        }
        for (const bool up : {false, true}) {
          Extreme& extreme = best_[p].end[up];
          if (!extreme.row.empty() && (up ? value <= extreme.value : value >= extreme.value))
            continue;
          extreme.value = value;
          extreme.row.assign(codes, codes + static_cast<std::ptrdiff_t>(width));
        }
      }
      wrapped += any;
    }
    return wrapped;
  }

  void draw(uint64_t seed) { look_at(random_rows(graph_, drawn_rows_tried, seed).inputs, false); }

  // From the rows that came nearest: the one input that moves the value furthest goes to one of its
  // ends, then the next, while that helps.
  void push() {
    const size_t width = graph_.inputs.size();
    const auto cost = static_cast<int64_t>(2 * width * graph_.nodes.size());
    int64_t left = most_pushed_values;
    for (size_t p = 0; p < places_.size(); ++p)
      for (const bool up : {true, false}) {
        const OverflowPlace& place = places_[p];
        const bool possible =
            up ? place.value.high > place.format.high : place.value.low < place.format.low;
        for (int pushes = 0; pushes < most_pushes && possible && place.inputs.empty(); ++pushes) {
          if ((left -= cost) < 0) return;
          const Extreme before = best_[p].end[up];
          std::vector<int64_t> rows;
          for (size_t k = 0; k < width; ++k)
            for (const int64_t code :
                 {graph_.at(graph_.inputs[k]).range.low, graph_.at(graph_.inputs[k]).range.high}) {
              rows.insert(rows.end(), before.row.begin(), before.row.end());
              rows[rows.size() - width + k] = code;
            }
          look_at(rows, false);
          if (best_[p].end[up].value == before.value) break;
        }
      }
  }

 private:
  struct Extreme {
    std::vector<int64_t> row;
    int64_t value = 0;
  };
  struct Extremes {
    Extreme end[2];
  };

  static IntegerGraph probe(IntegerGraph graph, const std::vector<IntegerId>& values) {
    graph.outputs = values;
    return without_dead_nodes(graph);
  }

  IntegerGraph graph_;
  IntegerProgram program_;
  std::vector<OverflowPlace>& places_;
  std::vector<Extremes> best_;
};

}  // namespace

int64_t OverflowReport::found() const {
  return std::count_if(places.begin(), places.end(),
                       [](const OverflowPlace& place) { return !place.inputs.empty(); });
}

OverflowReport find_overflow(const LoweredNetwork& network, const std::vector<int64_t>& rows,
                             const std::string& rows_are, uint64_t seed) {
  OverflowReport result;
  result.features = static_cast<int64_t>(network.wrapping.size());
  result.rows_are = rows_are;
  result.rows = network.graph.inputs.empty()
                    ? 0
                    : static_cast<int64_t>(rows.size() / network.graph.inputs.size());
  std::vector<IntegerId> values;
  for (const LoweredNetwork::Wrapping& one : network.wrapping) {
    if (one.value < 0) continue;
    const IntegerRange& range = network.graph.at(one.value).range;
    if (one.format.contains(range)) continue;
    values.push_back(one.value);
    result.places.push_back({one.node, one.feature, range, one.format});
  }
  result.proved = result.features - static_cast<int64_t>(result.places.size());
  if (result.places.empty()) return result;
  OverflowSearch search(network.graph, result.places, values);
  result.rows_wrapped = search.look_at(rows, true);
  if (result.undecided() > 0) search.draw(seed);
  if (result.undecided() > 0) search.push();
  return result;
}

std::string overflow_text(const OverflowReport& overflow) {
  if (overflow.features == 0) return "";
  if (overflow.places.empty())
    return fmt::format(
        "nothing wraps, for all inputs: all {} features in formats that wrap fit "
        "them",
        overflow.features);
  std::string text =
      fmt::format("wraps: {} of {} features provably never, {} for an input that was found",
                  overflow.proved, overflow.features, overflow.found());
  if (overflow.undecided() > 0)
    text += fmt::format(", {} undecided (neither a proof nor such an input)", overflow.undecided());
  return text + fmt::format("; on {} of {}", overflow.rows_wrapped, overflow.rows_are);
}

Value to_value(const OverflowReport& overflow) {
  List places;
  for (const OverflowPlace& place : overflow.places) {
    Dict entry{{"node", place.node},
               {"feature", place.feature},
               {"value", Value(List{place.value.low, place.value.high})},
               {"format", Value(List{place.format.low, place.format.high})},
               {"rows", place.rows}};
    if (!place.inputs.empty()) {
      entry.set("reached", place.reached);
      entry.set("input_codes", Value::of(place.inputs));
    }
    places.push_back(std::move(entry));
  }
  const std::string text = overflow_text(overflow);
  return Dict{{"text", text.empty() ? "no result has a format that wraps" : text},
              {"features", overflow.features},
              {"proved_never", overflow.proved},
              {"found", overflow.found()},
              {"undecided", overflow.undecided()},
              {"rows", overflow.rows},
              {"rows_are", overflow.rows_are},
              {"rows_wrapped", overflow.rows_wrapped},
              {"places", std::move(places)}};
}

}  // namespace mase
