// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/epilogue.h"

namespace mase::engine {

const char* stage_name(StageKind kind) {
  constexpr const char* names[] = {"batch_norm", "add", "clamp", "quantize"};
  return names[static_cast<size_t>(kind)];
}

std::vector<int> reads_of(const FusedStage& stage) {
  std::vector<int> tensors;
  const auto read = [&](int tensor) {
    if (tensor >= 0) tensors.push_back(tensor);
  };
  if (const auto* norm = std::get_if<ScaleShiftStage>(&stage))
    for (const int tensor : {norm->weight, norm->bias, norm->mean, norm->variance}) read(tensor);
  if (const auto* sum = std::get_if<AddStage>(&stage)) read(sum->tensor);
  return tensors;
}

ClampStage Epilogue::limits() const {
  const ClampStage* found = find<ClampStage>();
  return found ? *found : ClampStage{};
}

int Epilogue::added() const {
  const AddStage* found = find<AddStage>();
  return found ? found->tensor : -1;
}

std::vector<int> Epilogue::reads() const {
  std::vector<int> tensors;
  for (const FusedStage& stage : stages)
    for (const int tensor : reads_of(stage)) tensors.push_back(tensor);
  return tensors;
}

std::string Epilogue::text() const {
  std::string text;
  for (const FusedStage& stage : stages) {
    const auto* limits = std::get_if<ClampStage>(&stage);
    text += std::string("+") + (limits && limits->is_relu() ? "relu" : stage_name(kind_of(stage)));
  }
  return text;
}

}  // namespace mase::engine
