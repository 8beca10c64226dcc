// SPDX-License-Identifier: Apache-2.0
// Batch normalisation: each channel (dim 1) normalised by the statistics of the batch in training,
// by running statistics in evaluation (Ioffe and Szegedy, 2015). The normalisation uses the biased
// variance, the running statistics the unbiased one, as PyTorch's.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ir/op.h"
#include "mase/ops/call.h"

namespace mase::batch_norm_ops {
namespace {

// PyTorch's batch norms differ in the ranks they take.
struct BatchNormKind {
  std::string name, class_name, forms;  // "[N, C] or [N, C, L]"
  std::vector<size_t> ranks;
};

Shape infer(const Value& attributes, const Shape& shape, const BatchNormKind& kind) {
  const int64_t channels = attributes["num_features"].as_int();
  if (std::find(kind.ranks.begin(), kind.ranks.end(), shape.size()) == kind.ranks.end())
    throw Error("",
                fmt::format("{} wants {}, got {}", kind.class_name, kind.forms, shape_text(shape)),
                "reshape or flatten before it");
  if (shape[1] != channels)
    throw Error("",
                fmt::format("{} wants {} channels, got {}", kind.class_name, channels, shape[1]),
                fmt::format("set num_features to {}", shape[1]));
  return shape;
}

std::vector<ParamSpec> params(const Value& attributes) {
  const Shape shape = {attributes["num_features"].as_int()};
  std::vector<ParamSpec> specs;
  if (attributes["affine"].as_bool()) {
    specs.push_back({"weight", shape, true, 1});
    specs.push_back({"bias", shape, true, 0});
  }
  if (attributes["track_running_stats"].as_bool()) {
    specs.push_back({"running_mean", shape, false, 0});
    specs.push_back({"running_var", shape, false, 1});
    specs.push_back({"num_batches_tracked", {}, false, 0, 0, DType::i64});
  }
  return specs;
}

// [N, C, positions...] walked channel by channel.
struct Layout {
  size_t n, c, l;
  explicit Layout(const Shape& shape)
      : n(static_cast<size_t>(shape[0])), c(static_cast<size_t>(shape[1])), l(1) {
    for (size_t i = 2; i < shape.size(); ++i) l *= static_cast<size_t>(shape[i]);
  }
  size_t count() const { return n * l; }
  template <class Visit>
  void each(size_t channel, const Visit& visit) const {
    for (size_t i = 0; i < n; ++i)
      for (size_t k = 0; k < l; ++k) visit((i * c + channel) * l + k);
  }
};

struct Statistics {
  std::vector<double> mean, variance;
  bool of_batch = true;  // the gradient then flows through them
};

Statistics statistics(const OpCall& call, const Layout& layout) {
  const Array* running_mean = param_of(call, "running_mean");
  const Array* running_var = param_of(call, "running_var");
  if (!call.training && running_mean && running_var)
    return {running_mean->data, running_var->data, false};
  Statistics result{std::vector<double>(layout.c), std::vector<double>(layout.c)};
  const double count = static_cast<double>(layout.count());
  for (size_t c = 0; c < layout.c; ++c) {
    double sum = 0, squares = 0;
    layout.each(c, [&](size_t i) { sum += call.inputs[0]->data[i]; });
    const double mean = sum / count;
    layout.each(c, [&](size_t i) {
      const double d = call.inputs[0]->data[i] - mean;
      squares += d * d;
    });
    result.mean[c] = mean;
    result.variance[c] = squares / count;
  }
  return result;
}

void update_running(const OpCall& call, const Layout& layout, const Statistics& batch) {
  const Array* old_mean = param_of(call, "running_mean");
  const Array* old_var = param_of(call, "running_var");
  const Array* tracked = param_of(call, "num_batches_tracked");
  if (!old_mean || !old_var || !tracked) return;
  Array mean = *old_mean, variance = *old_var, batches = *tracked;
  batches.data[0] += 1;
  const Value& given = call.attributes["momentum"];
  const double momentum = given.is_number() ? given.as_double() : 1.0 / batches.data[0];
  const double count = static_cast<double>(layout.count());
  for (size_t c = 0; c < layout.c; ++c) {
    const double unbiased = batch.variance[c] * count / (count - 1);
    mean.data[c] += momentum * (batch.mean[c] - mean.data[c]);
    variance.data[c] += momentum * (unbiased - variance.data[c]);
  }
  (*call.updates)["running_mean"] = std::move(mean);
  (*call.updates)["running_var"] = std::move(variance);
  (*call.updates)["num_batches_tracked"] = std::move(batches);
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Layout layout(x.shape);
  if (call.training && layout.count() == 1)
    throw Error("", "a batch norm in training wants more than one value per channel",
                "use a batch size above 1, or drop the last batch");
  const Array* weight = param_of(call, "weight");
  const Array* bias = param_of(call, "bias");
  const double eps = call.attributes["eps"].as_double();
  const Statistics stats = statistics(call, layout);
  Array y(x.shape);
  for (size_t c = 0; c < layout.c; ++c) {
    const double scale = (weight ? weight->data[c] : 1.0) / std::sqrt(stats.variance[c] + eps);
    const double shift = bias ? bias->data[c] : 0.0;
    layout.each(c, [&](size_t i) { y.data[i] = (x.data[i] - stats.mean[c]) * scale + shift; });
  }
  if (call.training && call.updates && layout.count() > 1) update_running(call, layout, stats);
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  const Layout layout(x.shape);
  const Array* weight = param_of(call, "weight");
  const double eps = call.attributes["eps"].as_double();
  const Statistics stats = statistics(call, layout);
  const double count = static_cast<double>(layout.count());
  Array gx(x.shape), gw({x.shape[1]}), gb({x.shape[1]});
  for (size_t c = 0; c < layout.c; ++c) {
    const double inverse = 1.0 / std::sqrt(stats.variance[c] + eps);
    const double scale = weight ? weight->data[c] : 1.0;
    double sum_g = 0, sum_gx = 0;  // sums of g and of g times the normalised x
    layout.each(c, [&](size_t i) {
      sum_g += g.data[i];
      sum_gx += g.data[i] * (x.data[i] - stats.mean[c]) * inverse;
    });
    gb.data[c] = sum_g;
    gw.data[c] = sum_gx;
    layout.each(c, [&](size_t i) {
      const double normal = (x.data[i] - stats.mean[c]) * inverse;
      const double through = stats.of_batch ? (sum_g + normal * sum_gx) / count : 0.0;
      gx.data[i] = scale * inverse * (g.data[i] - through);
    });
  }
  return layer_gradients(call, std::move(gx), std::move(gw), std::move(gb));
}

OpCost cost(const Value&, const std::vector<Shape>& inputs, const Shape&) {
  return {0, 2 * element_count(inputs[0])};  // one scale and one shift, statistics folded
}

std::string repr(const Value& attributes) {
  return fmt::format(
      "{}, eps={}, momentum={}, affine={}, track_running_stats={}",
      attributes["num_features"].as_int(), python_repr(attributes["eps"]),
      attributes["momentum"].is_number() ? python_repr(attributes["momentum"]) : "None",
      python_repr(attributes["affine"]), python_repr(attributes["track_running_stats"]));
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  Lowering::BatchNorm options;
  options.weight = lowering.parameter("weight");
  options.bias = lowering.parameter("bias");
  options.running_mean = lowering.parameter("running_mean");
  options.running_var = lowering.parameter("running_var");
  options.batches_tracked = lowering.parameter("num_batches_tracked");
  options.eps = attributes["eps"].as_double();
  options.momentum.reset();
  if (attributes["momentum"].is_number()) options.momentum = attributes["momentum"].as_double();
  return lowering.batch_norm(inputs[0], options);
}

// PyTorch's momentum=None is written "cumulative": in config files none means "the default".
std::optional<std::string> momentum_fault(const Value& value) {
  if (value.is_string() && value.as_string() == "cumulative") return {};
  if (value.is_number() && value.as_double() >= 0 && value.as_double() <= 1) return {};
  return "expected a number from 0 to 1, or \"cumulative\"";
}

OpRecord batch_norm_record(const BatchNormKind& kind) {
  OpRecord record;
  record.name = kind.name;
  record.class_name = kind.class_name;
  record.mase_type = "module";
  record.summary = "normalises each channel over the batch";
  record.attributes = {{
      integer_field("num_features", "channels, the size of dim 1").needed().from(0),
      number_field("eps", "added to the variance", 1e-5).from(0),
      {.name = "momentum",
       .default_value = 0.1,
       .help = "share of the new batch in the running statistics; \"cumulative\" averages all",
       .check = momentum_fault},
      boolean_field("affine", "learn a scale and a shift", true),
      boolean_field("track_running_stats", "keep running statistics for evaluation", true),
  }};
  record.operands = {"data_in", "weight", "bias", "data_out"};
  record.required_operands = {"data_in"};
  record.channel_norm = ChannelNormInfo{};
  record.params = params;
  record.infer = [kind](const Value& attributes, const std::vector<Shape>& inputs) {
    return infer(attributes, inputs[0], kind);
  };
  record.eval = eval;
  record.grad = grad;
  record.cost = cost;
  record.repr = repr;
  record.lower = lower;
  record.complete = [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
    if (!attributes.contains("num_features") && inputs[0].size() > 1)
      attributes.set("num_features", inputs[0][1]);
  };
  return record;
}

const Register<OpRecord> one{
    batch_norm_record({"batch_norm1d", "BatchNorm1d", "[N, C] or [N, C, L]", {2, 3}})};
const Register<OpRecord> two{
    batch_norm_record({"batch_norm2d", "BatchNorm2d", "[N, C, H, W]", {4}})};

}  // namespace
}  // namespace mase::batch_norm_ops
