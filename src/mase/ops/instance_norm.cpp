// SPDX-License-Identifier: Apache-2.0
// InstanceNorm: each channel of each sample normalised over its positions (Ulyanov et al., 2016).
// With `track_running_stats`, evaluation takes the means over the batches of training instead.
#include <utility>

#include "mase/base/fields.h"
#include "mase/ops/call.h"
#include "mase/ops/group_norm.h"

namespace mase::instance_norm_ops {
namespace {

bool takes_running(const OpCall& call) { return !call.training && param_of(call, "running_mean"); }

struct Planes {
  size_t samples, channels, positions;
  explicit Planes(const Shape& x)
      : samples(static_cast<size_t>(x[0])), channels(static_cast<size_t>(x[1])), positions(1) {
    for (size_t i = 2; i < x.size(); ++i) positions *= static_cast<size_t>(x[i]);
  }
};

// With running statistics it is a batch norm in evaluation.
OpCall evaluated(const OpCall& call) { return {call.attributes, call.inputs, call.params}; }

// Means over the samples of each one's mean and unbiased variance. PyTorch counts no batches here,
// and without a momentum nothing moves.
void update_running(const OpCall& call) {
  const Array *old_mean = param_of(call, "running_mean"), *old_var = param_of(call, "running_var");
  const Value& momentum = call.attributes["momentum"];
  if (!old_mean || !old_var || !momentum.is_number()) return;
  const Array& x = *call.inputs[0];
  const Planes planes(x.shape);
  if (planes.positions < 2)
    throw Error("", "a channel of one position has no variance to keep",
                "give it more positions, or leave out track_running_stats");
  Array mean = *old_mean, variance = *old_var;
  const auto count = static_cast<double>(planes.positions);
  for (size_t c = 0; c < planes.channels; ++c) {
    double means = 0, variances = 0;
    for (size_t n = 0; n < planes.samples; ++n) {
      const double* values = x.data.data() + (n * planes.channels + c) * planes.positions;
      double sum = 0, squares = 0;
      for (size_t i = 0; i < planes.positions; ++i) sum += values[i];
      for (size_t i = 0; i < planes.positions; ++i)
        squares += (values[i] - sum / count) * (values[i] - sum / count);
      means += sum / count;
      variances += squares / (count - 1);
    }
    const auto samples = static_cast<double>(planes.samples);
    mean.data[c] += momentum.as_double() * (means / samples - mean.data[c]);
    variance.data[c] += momentum.as_double() * (variances / samples - variance.data[c]);
  }
  (*call.updates)["running_mean"] = std::move(mean);
  (*call.updates)["running_var"] = std::move(variance);
}

std::vector<Field> fields() {
  return {integer_field("num_features", "channels, the size of dim 1").needed().from(1),
          number_field("eps", "added to the variance", 1e-5).from(0),
          number_field("momentum", "share of the batch in the running statistics; none: they stay",
                       0.1),
          boolean_field("affine", "learn a scale and a shift", false),
          boolean_field("track_running_stats",
                        "keep running statistics, which evaluation then takes", false)};
}

std::string printed(const Value& attributes) {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}",
                     attributes["num_features"].as_int(), python_repr(attributes["eps"]),
                     python_repr(attributes["momentum"]), python_repr(attributes["affine"]),
                     python_repr(attributes["track_running_stats"]));
}

// PyTorch has one class per number of position axes; what they mean is the same. `batch_norm`: the
// op that running statistics make of it.
OpRecord instance_norm_record(std::string name, std::string class_name,
                              const std::string& batch_norm) {
  OpRecord record = group_norm_record(
      {.name = std::move(name),
       .class_name = std::move(class_name),
       .summary = "normalises each channel of each sample",
       .attributes = {fields()},
       .repr = printed},
      [](const Value&, int64_t channels) { return channels; }, "num_features");
  record.params = [plain = record.params](const Value& attributes) {
    std::vector<ParamSpec> specs = plain(attributes);
    if (!attributes["track_running_stats"].as_bool()) return specs;
    const Shape shape = {attributes["num_features"].as_int()};
    specs.push_back({"running_mean", shape, false, 0});
    specs.push_back({"running_var", shape, false, 1});
    specs.push_back({"num_batches_tracked", {}, false, 0, 0, DType::i64});
    return specs;
  };
  record.eval = [plain = record.eval, batch_norm](const OpCall& call) {
    if (takes_running(call)) return find_op(batch_norm).eval(evaluated(call));
    if (call.training && call.updates) update_running(call);
    return plain(call);
  };
  record.grad = [plain = record.grad, batch_norm](const OpCall& call, const Array& y,
                                                  const Array& up) {
    return takes_running(call) ? find_op(batch_norm).grad(evaluated(call), y, up)
                               : plain(call, y, up);
  };
  record.lower = [plain = record.lower](Lowering& lowering, const Value& attributes,
                                        const std::vector<Slot>& inputs) -> Slot {
    if (!attributes["track_running_stats"].as_bool()) return plain(lowering, attributes, inputs);
    if (lowering.training()) return -1;
    return lowering.batch_norm(inputs[0], {.weight = lowering.parameter("weight"),
                                           .bias = lowering.parameter("bias"),
                                           .running_mean = lowering.parameter("running_mean"),
                                           .running_var = lowering.parameter("running_var"),
                                           .eps = attributes["eps"].as_double()});
  };
  return record;
}

const Register<OpRecord> one{
    instance_norm_record("instance_norm1d", "InstanceNorm1d", "batch_norm1d")};
const Register<OpRecord> two{
    instance_norm_record("instance_norm2d", "InstanceNorm2d", "batch_norm2d")};

}  // namespace
}  // namespace mase::instance_norm_ops
