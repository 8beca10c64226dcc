// SPDX-License-Identifier: Apache-2.0
// A program as text: its steps with kernels and buffer offsets, and what memory it takes.
#include "mase/base/table.h"
#include "mase/engine/plan.h"

namespace mase::engine {
namespace {

std::string where(const Plan& plan, int tensor) {
  const TensorInfo& info = plan.at(plan.root(tensor));
  const char* places[] = {"", "param ", "grad ", "state "};
  return fmt::format("{}{} {}+{}", places[static_cast<size_t>(info.place)],
                     plan.at(tensor).name.empty() ? "-" : plan.at(tensor).name,
                     shape_text(plan.at(tensor).shape), info.offset * sizeof(float));
}

void list(const Plan& plan, const char* title, const std::vector<Step>& steps, std::string& text) {
  if (steps.empty()) return;
  text += fmt::format("{}:\n", title);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    std::vector<std::string> reads, writes;
    for (const int tensor : step.reads) reads.push_back(where(plan, tensor));
    for (const int tensor : step.writes) writes.push_back(where(plan, tensor));
    text += fmt::format("  {:3}  {:<28} {:<20} {}\n", i, step.kernel, step.detail,
                        step.node >= 0 ? plan.graph.node(step.node).name : "");
    text += fmt::format("       reads  {}\n       writes {}\n", fmt::join(reads, ", "),
                        fmt::join(writes, ", "));
  }
}

}  // namespace

std::string dump(const Plan& plan) {
  std::string text = fmt::format("program {}: {}, batch {}, rows of {} floats, {} thread{}\n",
                                 plan.graph.name, plan.options.training ? "training" : "inference",
                                 plan.options.batch_size, padded_lanes(plan.options.batch_size),
                                 plan.options.threads, plan.options.threads == 1 ? "" : "s");
  text += fmt::format("memory: arena {} bytes, parameters {} bytes, buffers {} bytes\n",
                      plan.arena_floats * sizeof(float), plan.parameter_floats * sizeof(float),
                      plan.state_floats * sizeof(float));
  list(plan, "prepare (when parameters change)", plan.prepare, text);
  list(plan, "forward", plan.forward, text);
  list(plan, "loss", plan.losses, text);
  list(plan, "backward", plan.backward, text);
  return text;
}

}  // namespace mase::engine
