// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of logits, PyTorch's CrossEntropyLoss: -sum_c weight_c t_c log softmax(x)_c, where
// t is 1 at the class, or with label smoothing e (Szegedy et al., 2016) 1 - e + e / K there and
// e / K elsewhere; the mean over the batch divides by the sum of the classes' weights.
#include "mase/base/fields.h"
#include "mase/train/loss.h"

namespace mase::cross_entropy_loss {
namespace {

std::vector<float> weights_of(const Value& options, int64_t classes) {
  std::vector<float> weights;
  for (const Value& weight : options["weight"].as_list("weight"))
    weights.push_back(static_cast<float>(weight.as_double("weight")));
  if (static_cast<int64_t>(weights.size()) != classes)
    throw Error("loss.weight",
                fmt::format("{} class weights for {} classes", weights.size(), classes));
  return weights;
}

Slot lower(Lowering& to, Slot output, Slot target, const Value& options) {
  const int64_t classes = to.shape(output).back();
  const double smoothing = options["label_smoothing"].as_double();
  std::optional<Slot> weights;
  if (!options["weight"].is_null()) weights = to.constant({classes}, weights_of(options, classes));
  if (smoothing == 0) return to.cross_entropy(output, target, weights);
  if (to.shape(output).size() != 2) return -1;  // classes of tokens are not smoothed
  const Expr x = Expr::operand(0), t = Expr::operand(1), w = Expr::operand(2);
  const Expr wanted = t * (1 - smoothing) + smoothing / static_cast<double>(classes);
  const Slot log_probability = to.softmax(output, 1, true), own = to.one_hot(target, classes);
  if (!weights) {
    const Slot each = to.map(-(x * wanted), {log_probability, own});
    return to.batch_mean(to.reduce(ReduceKind::sum, each, {1}, false));
  }
  const Slot each = to.map(-(x * wanted * w), {log_probability, own, *weights});
  return to.batch_mean(each, to.map(Expr::operand(0) * Expr::operand(1), {own, *weights}));
}

std::optional<std::string> all_positive(const Value& value) {
  double sum = 0;
  for (const Value& weight : value.as_list()) {
    if (!weight.is_number() || !(weight.as_double() >= 0) || weight.as_double() > 1e30)
      return "weights are numbers from 0";
    sum += weight.as_double();
  }
  if (!(sum > 0)) return "one weight at least is above 0";
  return {};
}

const Register<LossRecord> registered{{
    .name = "cross_entropy",
    .aliases = {"cross-entropy"},
    .summary = "of logits and classes",
    .options = {{number_field("label_smoothing",
                              "share of the target that is spread over all classes", 0.0)
                     .between(0, 1),
                 list_field("weight", "of each class (default: all one)").checked(all_positive)}},
    .targets = {TargetKind::classes},
    .lower = lower,
}};

}  // namespace
}  // namespace mase::cross_entropy_loss
