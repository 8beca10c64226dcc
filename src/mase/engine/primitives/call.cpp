// SPDX-License-Identifier: Apache-2.0
// call: an op's own eval and grad, in double precision and row-major: slow, and right for whatever
// no other primitive does.
#include <map>
#include <memory>

#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"

namespace mase::engine::call_primitive {
namespace {

Array read_array(const float* data, const TensorView& view, const Run& run) {
  Array array(view.shape_for(run.n));
  std::vector<float> values(array.data.size());
  to_row_major(view, data, run.n, values.data());
  for (size_t i = 0; i < values.size(); ++i) array.data[i] = values[i];
  return array;
}

void write_array(const Array& array, float* data, const TensorView& view, const Run& run,
                 bool accumulate) {
  std::vector<float> values(array.data.begin(), array.data.end());
  from_row_major(view, values.data(), run.n, data, accumulate);
}

// The arguments of an op's eval or grad, copied to row-major double precision and back.
class CallArguments {
 public:
  CallArguments(const Plan& plan, const Primitive& p, const Memory& memory)
      : bound_(*p.as<CallPayload>().call),
        formats_(plan.graph().quantization_of(plan.graph().node(bound_.caller))),
        training_(plan.options.training),
        seed_(plan.options.seed),
        node_(p.node) {
    const auto source = [&](const std::string& name, int tensor) {
      const int counter = plan.counter_of(tensor);
      return Source{name, memory[tensor], view_of(plan, tensor),
                    counter < 0 ? nullptr : &(*memory.counters)[static_cast<size_t>(counter)],
                    Array()};
    };
    for (const int tensor : p.in) inputs_.push_back(source("", tensor));
    for (const auto& [name, tensor] : p.params) params_.push_back(source(name, tensor));
  }

  void load(const Run& run, std::map<std::string, Array>* updates) {
    call.reset(new OpCall{bound_.attributes, {}, {}, training_, 0, nullptr});
    call->seed = seed_ + static_cast<uint64_t>(node_) + run.batch->step * 0x9E3779B97F4A7C15ull;
    if (training_) call->updates = updates;
    call->round = [this](Array value, const std::string& operand) {
      const Quantizer* quantizer = formats_.find(operand);
      return quantizer ? Array::from(quantize(*quantizer, value.to_tensor())) : value;
    };
    for (Source& source : inputs_) {
      source.array = read_array(source.data, source.view, run);
      call->inputs.push_back(&source.array);
    }
    for (Source& source : params_) {
      source.array = read_array(source.data, source.view, run);
      if (source.counter) source.array.data[0] = static_cast<double>(*source.counter);
      call->params[source.name] = &source.array;
    }
  }

  void store(const std::map<std::string, Array>& updates, const Run& run) {
    for (Source& source : params_) {
      const auto update = updates.find(source.name);
      if (update == updates.end()) continue;
      write_array(update->second, source.data, source.view, run, false);
      if (source.counter) *source.counter = static_cast<int64_t>(update->second.data[0]);
    }
  }

  std::unique_ptr<OpCall> call;

 private:
  struct Source {
    std::string name;
    float* data;
    TensorView view;
    int64_t* counter;
    Array array;
  };
  const BoundCall& bound_;
  const Quantization& formats_;
  bool training_;
  uint64_t seed_;
  NodeId node_;
  std::vector<Source> inputs_, params_;
};

Step forward(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  const auto bound = p.as<CallPayload>().call;
  Step step{"call", bound->op->name, p.in, {p.out}};
  for (const auto& [name, tensor] : p.params) step.read({tensor});
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const auto arguments = std::make_shared<CallArguments>(plan, p, memory);
    const TensorView out = view_of(plan, p.out);
    return [=, to = memory[p.out]](const Run& run) {
      std::map<std::string, Array> updates;
      arguments->load(run, &updates);
      write_array(bound->op->eval(*arguments->call), to, out, run, false);
      arguments->store(updates, run);
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const auto bound = p.as<CallPayload>().call;
  std::vector<Target> inputs;
  std::vector<std::pair<std::string, Target>> params;
  Step step{"call_gradient", bound->op->name, p.in, {}};
  step.read({p.out, gradient});
  for (const auto& [name, tensor] : p.params) step.read({tensor});
  for (const int tensor : p.in) {
    inputs.push_back(backward.target(tensor));
    step.write({inputs.back().tensor});
  }
  for (const auto& [name, tensor] : p.params) {
    params.emplace_back(name, backward.target(tensor));
    step.write({params.back().second.tensor});
  }
  if (!bound->op->grad)
    throw Error(plan.graph().node(p.node).name,
                fmt::format("'{}' has no gradient", bound->op->name),
                "freeze the modules before it, or take another operation");
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const auto arguments = std::make_shared<CallArguments>(plan, p, memory);
    const TensorView out = view_of(plan, p.out);
    return [=, &plan, y = memory[p.out], g = memory[gradient]](const Run& run) {
      arguments->load(run, nullptr);
      const OpGradients gradients =
          bound->op->grad(*arguments->call, read_array(y, out, run), read_array(g, out, run));
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].tensor >= 0)
          write_array(gradients.inputs.at(i), memory[inputs[i].tensor], view_of(plan, p.in[i]), run,
                      inputs[i].accumulate);
      for (size_t i = 0; i < params.size(); ++i)
        if (params[i].second.tensor >= 0)
          write_array(gradients.params.at(params[i].first), memory[params[i].second.tensor],
                      view_of(plan, p.params[i].second), run, params[i].second.accumulate);
    };
  };
  backward.push(std::move(step));
}

const Register<PrimitiveRecord> registered{{
    .name = "call",
    .summary = "an op's own reference code",
    .payload = typeid(CallPayload),
    .variants = {{"reference", forward}},
    .gradient = gradient,
    .not_generated = "runs an op's own code, which the sweep over all ops compares with PyTorch's",
}};

}  // namespace
}  // namespace mase::engine::call_primitive
