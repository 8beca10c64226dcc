// SPDX-License-Identifier: Apache-2.0
// A program as text: its steps with kernels and buffer offsets, and what memory it takes; before
// that, its primitives, and its steps without memory.
#include "mase/base/table.h"
#include "mase/engine/primitive.h"

namespace mase::engine {
namespace {

std::string where(const Plan& plan, int tensor) {
  const TensorInfo& info = plan.at(plan.root(tensor));
  const char* places[] = {"", "param ", "grad ", "state ", "packed "};
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
                        step.node >= 0 ? plan.graph().node(step.node).name : "");
    text += fmt::format("       reads  {}\n       writes {}\n", fmt::join(reads, ", "),
                        fmt::join(writes, ", "));
  }
}

// What is stored under a name has it; what is computed has a number.
std::string name_of(const Plan& plan, int tensor) {
  const TensorInfo& info = plan.at(tensor);
  if (info.view_of >= 0)
    return fmt::format("{} as {}", name_of(plan, plan.root(tensor)), shape_text(info.shape));
  const bool stored =
      info.place == Place::parameter || info.place == Place::state || info.place == Place::packed;
  return stored ? info.name : fmt::format("%{}", tensor);
}

std::string type_of(const Plan& plan, int tensor) {
  const TensorInfo& info = plan.at(tensor);
  std::string text = shape_text(info.shape);
  if (info.layout == Layout::batch)
    text += fmt::format(" rows ({}) lanes ({})", fmt::join(info.axes.rows, ", "),
                        fmt::join(info.axes.lanes, ", "));
  if (info.element != DType::f32) text += fmt::format(" {}", dtype_name(info.element));
  if (info.packed) text += " " + info.packed->name;
  if (info.rounding) text += fmt::format(" {}", info.rounding->format);
  return text;
}

}  // namespace

std::string primitives_text(const Plan& plan) {
  std::string text;
  for (const Primitive& p : plan.primitives) {
    if (p.removed) continue;
    std::vector<std::string> operands;
    for (const int tensor : p.in) operands.push_back(name_of(plan, tensor));
    for (const int tensor : {p.weight, p.bias})
      if (tensor >= 0) operands.push_back(name_of(plan, tensor));
    for (const auto& [name, tensor] : p.params)
      operands.push_back(name.empty() ? name_of(plan, tensor)
                                      : fmt::format("{} {}", name, name_of(plan, tensor)));
    for (const FusedStage& stage : p.epilogue.stages)
      for (const int tensor : reads_of(stage))
        operands.push_back(fmt::format("{} {}", stage_name(kind_of(stage)), name_of(plan, tensor)));
    text += fmt::format("{} = {}{}{}({}): {}\n", name_of(plan, p.out), p.record->name,
                        p.record->text ? p.record->text(plan, p) : "", p.epilogue.text(),
                        fmt::join(operands, ", "), type_of(plan, p.out));
  }
  std::vector<std::string> outputs;
  for (const int tensor : plan.outputs) outputs.push_back(name_of(plan, tensor));
  return text + fmt::format("output {}\n", fmt::join(outputs, ", "));
}

std::string steps_text(const Plan& plan) {
  std::string text;
  const auto names = [&](const std::vector<int>& tensors) {
    std::vector<std::string> result;
    for (const int tensor : tensors) result.push_back(name_of(plan, tensor));
    return fmt::format("{}", fmt::join(result, ", "));
  };
  for (const auto& [title, steps] : {std::pair("prepare", &plan.prepare),
                                     {"forward", &plan.forward},
                                     {"loss", &plan.losses},
                                     {"backward", &plan.backward}}) {
    if (!steps->empty()) text += fmt::format("{}:\n", title);
    for (const Step& step : *steps)
      text += fmt::format("{} = {}({})\n", names(step.writes), step.kernel, names(step.reads));
  }
  return text;
}

std::string dump(const Plan& plan) {
  std::string text =
      fmt::format("program {}: {}, batch {}, rows of {} floats, {} thread{}\n", plan.graph().name,
                  plan.options.training ? "training" : "inference", plan.options.batch_size,
                  padded_lanes(plan.options.batch_size), plan.options.threads,
                  plan.options.threads == 1 ? "" : "s");
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
