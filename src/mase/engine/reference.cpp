// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mase/formats/format.h"

namespace mase::engine {
namespace {

size_t place_of(const Shape& shape, const Shape& index) {
  const size_t skipped = index.size() - shape.size();
  int64_t at = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    at = at * shape[i] + (shape[i] == 1 ? 0 : index[i + skipped]);
  return static_cast<size_t>(at);
}

}  // namespace

double& value_at(Array& array, const Shape& index) {
  return array.data[place_of(array.shape, index)];
}

double value_at(const Array& array, const Shape& index) {
  return array.data[place_of(array.shape, index)];
}

size_t dimension_of(const TensorInfo& info, int place) {
  const auto at = static_cast<size_t>(place);
  return info.layout == Layout::batch ? static_cast<size_t>(info.axes.rows[at]) : at;
}

Array read_tensor(const Plan& plan, int tensor, const Memory& memory, const Run& run) {
  const TensorView view = view_of(plan, tensor);
  Array array(view.shape_for(run.n));
  std::vector<float> values(array.data.size());
  if (const PackedTypePtr& type = plan.at(tensor).packed) {
    type->widen(*type, reinterpret_cast<const std::byte*>(memory.packed(tensor)),
                static_cast<int64_t>(values.size()) / type->values, values.data());
    array.data.assign(values.begin(), values.end());
    return array;
  }
  if (plan.at(tensor).element == DType::i32) {
    std::vector<int32_t> labels(values.size());
    std::memcpy(labels.data(), memory[tensor], labels.size() * sizeof(int32_t));
    array.data.assign(labels.begin(), labels.end());
    return array;
  }
  to_row_major(view, memory[tensor], run.n, values.data());
  array.data.assign(values.begin(), values.end());
  return array;
}

Reference read_operands(const Plan& plan, const Primitive& p, const Memory& memory,
                        const Run& run) {
  Reference call{plan, p, run};
  call.read = [&plan, &memory, &run](int tensor) { return read_tensor(plan, tensor, memory, run); };
  for (const int tensor : p.in) call.in.push_back(call.read(tensor));
  if (p.weight >= 0) call.weight = call.read(p.weight);
  if (p.bias >= 0) call.bias = call.read(p.bias);
  call.out = Array(view_of(plan, p.out).shape_for(run.n));
  return call;
}

void run_reference(Reference& call) {
  call.primitive.record->reference(call);
  for (const FusedStage& stage : call.primitive.epilogue.stages) {
    if (const auto* norm = std::get_if<ScaleShiftStage>(&stage)) {
      const Array mean = call.read(norm->mean), variance = call.read(norm->variance);
      const Array weight = norm->weight >= 0 ? call.read(norm->weight) : Array();
      const Array bias = norm->bias >= 0 ? call.read(norm->bias) : Array();
      each_index(call.out.shape, [&](const Shape& at) {
        const auto c = static_cast<size_t>(at[1]);
        double& value = value_at(call.out, at);
        value = (value - mean.data[c]) / std::sqrt(variance.data[c] + norm->eps) *
                    (norm->weight >= 0 ? weight.data[c] : 1) +
                (norm->bias >= 0 ? bias.data[c] : 0);
      });
    } else if (const auto* sum = std::get_if<AddStage>(&stage)) {
      const Array other = call.read(sum->tensor);
      for (size_t i = 0; i < other.data.size(); ++i) call.out.data[i] += other.data[i];
    } else if (const auto* limits = std::get_if<ClampStage>(&stage)) {
      for (double& value : call.out.data)
        value = std::clamp<double>(value, limits->low, limits->high);
    } else {
      std::vector<float> values(call.out.data.begin(), call.out.data.end());
      const std::vector<float> from = values;
      std::get<RoundStage>(stage).quantizer->reference(from.data(), values.data(), call.out.shape);
      call.out.data.assign(values.begin(), values.end());
    }
  }
}

void run_parts(Reference& call, std::span<const Primitive> parts) {
  std::vector<Array> in;
  if (!parts.front().in.empty()) in.push_back(std::move(call.in[0]));
  for (const Primitive& part : parts) {
    Reference own{call.plan, part, call.run};
    own.read = call.read;
    own.in = std::move(in);
    if (part.weight >= 0) own.weight = call.read(part.weight);
    if (part.bias >= 0) own.bias = call.read(part.bias);
    own.out = Array(view_of(call.plan, part.out).shape_for(call.run.n));
    run_reference(own);
    in = {std::move(own.out)};
  }
  call.out = std::move(in[0]);
}

void run_op(Reference& call, const std::string& op, const Value& attributes) {
  OpCall own{attributes};
  for (const Array& input : call.in) own.inputs.push_back(&input);
  if (call.primitive.weight >= 0) own.params["weight"] = &call.weight;
  if (call.primitive.bias >= 0) own.params["bias"] = &call.bias;
  call.out.data = find_op(op).eval(own).data;
}

void run_op_gradient(Reference& call, const std::string& op, const Value& attributes,
                     std::vector<const Array*> inputs, const Array& result, const Array& gradient) {
  const OpCall own{attributes, std::move(inputs)};
  call.out.data = find_op(op).grad(own, result, gradient).inputs[0].data;
}

Step reference_step(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  Step step{p.record->name + ", reference", "", p.reads(), {p.out}};
  step.bind = [p, &plan](const Memory& memory) -> Kernel {
    return [p, &plan, memory](const Run& run) {
      Reference call = read_operands(plan, p, memory, run);
      run_reference(call);
      const std::vector<float> values(call.out.data.begin(), call.out.data.end());
      from_row_major(view_of(plan, p.out), values.data(), run.n, memory[p.out], p.accumulate);
    };
  };
  return step;
}

std::vector<Variant> variants_of(const PrimitiveRecord& record) {
  std::vector<Variant> variants = record.variants;
  // One that keeps something for its gradient brings its own.
  const bool own = !variants.empty() && variants.back().name == "reference";
  if (record.reference && !own) variants.push_back({"reference", reference_step, true});
  return variants;
}

}  // namespace mase::engine
