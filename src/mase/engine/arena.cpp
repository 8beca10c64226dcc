// SPDX-License-Identifier: Apache-2.0
// Every tensor gets its place in one arena. A tensor lives from the first step that touches it to
// the last; two that never live together may share memory. Larger tensors are placed first, each at
// the lowest offset free during its life.
#include <algorithm>

#include "mase/engine/plan.h"

namespace mase::engine {
namespace {

struct Life {
  int tensor;
  size_t floats;
  int first, last;
  size_t offset = 0;
};

}  // namespace

void place_tensors(Plan& plan) {
  for (TensorInfo& info : plan.tensors) info.sample_lanes = info.positions();
  const int end =
      static_cast<int>(plan.forward.size() + plan.losses.size() + plan.backward.size()) + 1;
  std::vector<Life> lives(plan.tensors.size(), Life{-1, 0, end, -1});
  int time = 0;
  const auto touch = [&](int tensor, int at) {
    Life& life = lives[static_cast<size_t>(plan.root(tensor))];
    life.first = std::min(life.first, at);
    life.last = std::max(life.last, at);
  };
  for (const Step& step : plan.prepare) {  // what is prepared stays
    for (const int tensor : step.writes) {
      touch(tensor, 0);
      touch(tensor, end);
    }
    for (const int tensor : step.reads) touch(tensor, 0);
  }
  for (const auto* steps : {&plan.forward, &plan.losses, &plan.backward})
    for (const Step& step : *steps) {
      ++time;
      for (const int tensor : step.reads) touch(tensor, time);
      for (const int tensor : step.writes) touch(tensor, time);
    }
  std::vector<Life> wanted;
  for (size_t i = 0; i < lives.size(); ++i) {
    const auto tensor = static_cast<int>(i);
    const TensorInfo& info = plan.at(tensor);
    if (info.place != Place::arena || info.view_of >= 0 || lives[i].last < 0) continue;
    Life life = lives[i];
    life.tensor = tensor;
    life.floats = (plan.floats(tensor) + 15) / 16 * 16;
    if (info.pinned) life.last = end;
    wanted.push_back(life);
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Life& a, const Life& b) { return a.floats > b.floats; });
  std::vector<Life>
      placed;  // by offset: thousands of results that are all kept are not sorted anew
  placed.reserve(wanted.size());
  for (Life& life : wanted) {
    size_t offset = 0;
    for (const Life& other : placed) {
      if (other.first > life.last || life.first > other.last) continue;
      if (offset + life.floats <= other.offset) break;
      offset = std::max(offset, other.offset + other.floats);
    }
    life.offset = offset;
    plan.at(life.tensor).offset = offset;
    plan.arena_floats = std::max(plan.arena_floats, offset + life.floats);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), life,
                         [](const Life& a, const Life& b) { return a.offset < b.offset; }),
        life);
  }
}

}  // namespace mase::engine
