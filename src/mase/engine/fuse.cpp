// SPDX-License-Identifier: Apache-2.0
// Rewrites of the primitive list that save sweeps over memory. Each rule is one function with its
// before => after. First every result takes what stands behind it, from the first primitive to the
// last, then neighbours are joined; within either the order of the rules means nothing.
#include <algorithm>
#include <optional>

#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/convolution_bands.h"
#include "mase/engine/primitives/gather_linear.h"

namespace mase::engine {
namespace {

// The primitives, who reads what and who makes it.
class Rewriting {
 public:
  explicit Rewriting(Plan& of)
      : plan(of), users_(of.tensors.size()), makers_(of.tensors.size(), -1) {
    for (size_t i = 0; i < plan.primitives.size(); ++i) {
      for (const int tensor : plan.primitives[i].reads()) users(tensor).push_back(i);
      maker(plan.primitives[i].out) = static_cast<int>(i);
    }
  }

  bool training() const { return plan.options.training; }
  // The only reader of a result nobody else may look at.
  Primitive* only_user(const Primitive& p) {
    if (plan.root(p.out) != p.out || plan.at(p.out).pinned) return nullptr;
    return users(p.out).size() == 1 ? &plan.primitives[users(p.out)[0]] : nullptr;
  }
  template <class Payload>
  Primitive* only_user_of(const Primitive& p) {
    Primitive* user = only_user(p);
    return user && user->is<Payload>() && user->in.size() == 1 && user->in[0] == p.out ? user
                                                                                       : nullptr;
  }
  // The one whose result `user` alone reads, as its only operand.
  template <class Payload>
  Primitive* only_maker_of(const Primitive& user) {
    if (user.in.size() != 1 || plan.root(user.in[0]) != user.in[0]) return nullptr;
    const int index = maker(user.in[0]);
    if (index < 0) return nullptr;
    Primitive& p = plan.primitives[static_cast<size_t>(index)];
    return only_user(p) == &user && p.is<Payload>() ? &p : nullptr;
  }
  // Whether every one of these is known before `p` is computed.
  bool known_before(const std::vector<int>& tensors, const Primitive& p) {
    for (const int tensor : tensors)
      if (maker(tensor) >= static_cast<int>(index_of(p))) return false;
    return true;
  }
  // `p` gives the result of `user`, which is gone, and reads what that read.
  void take(Primitive& p, Primitive& user) {
    const size_t own = index_of(p), gone = index_of(user);
    for (const int tensor : user.reads())
      for (size_t& reader : users(tensor))
        if (reader == gone) reader = own;
    users(p.out).clear();
    p.out = user.out;
    maker(p.out) = static_cast<int>(own);
    user.removed = true;
  }

  Plan& plan;

 private:
  size_t index_of(const Primitive& p) const {
    return static_cast<size_t>(&p - plan.primitives.data());
  }
  std::vector<size_t>& users(int tensor) { return users_[static_cast<size_t>(plan.root(tensor))]; }
  int& maker(int tensor) { return makers_[static_cast<size_t>(plan.root(tensor))]; }

  std::vector<std::vector<size_t>> users_;
  std::vector<int> makers_;
};

bool lie_alike(const TensorInfo& a, const TensorInfo& b) {
  return a.layout == b.layout && a.shape == b.shape && a.axes.rows == b.axes.rows &&
         a.axes.lanes == b.axes.lanes;
}

// Whether a stage may follow those that the primitive has.
bool takes(const Plan& plan, const Primitive& p, const FusedStage& stage) {
  const std::vector<StageKind>& order = p.record->stages;
  const auto place = [&](const FusedStage& of) {
    return std::find(order.begin(), order.end(), kind_of(of));
  };
  if (place(stage) == order.end()) return false;
  if (!p.epilogue.empty() && place(p.epilogue.stages.back()) >= place(stage)) return false;
  return !p.record->takes || p.record->takes(plan, p, stage);
}

// p, what is a stage of its result => p with that stage
bool absorb(Rewriting& program, Primitive& p, std::string& name) {
  Plan& plan = program.plan;
  Primitive* user = p.record->stages.empty() ? nullptr : program.only_user(p);
  if (!user || !user->record->as_stage || !user->epilogue.empty()) return false;
  if (std::find(user->in.begin(), user->in.end(), p.out) == user->in.end()) return false;
  const std::optional<FusedStage> stage = user->record->as_stage(plan, *user, p.out);
  if (!stage || !takes(plan, p, *stage)) return false;
  // What is repeated or moved as well stays; so does what is added later.
  const std::vector<int> reads = reads_of(*stage);
  if (!lie_alike(plan.at(p.out), plan.at(user->out)) || !program.known_before(reads, p))
    return false;
  if (const auto* sum = std::get_if<AddStage>(&*stage);
      sum && !lie_alike(plan.at(p.out), plan.at(sum->tensor)))
    return false;
  p.epilogue.stages.push_back(*stage);
  program.take(p, *user);
  name = fmt::format("{} into {}", stage_name(kind_of(*stage)), p.record->name);
  return true;
}

// Training.  linear or convolution, batch_norm => the same, the bias without a gradient
// A bias that only shifts what a batch norm centres again has derivative 0; summing it up would
// give rounding noise, which Adam turns into steps as large as the learning rate.
bool drop_bias_gradient(Rewriting& program, Primitive& p) {
  bool* cancels = p.is<LinearPayload>()        ? &p.as<LinearPayload>().bias_cancels
                  : p.is<ConvolutionPayload>() ? &p.as<ConvolutionPayload>().bias_cancels
                                               : nullptr;
  if (!cancels || *cancels || !program.training()) return false;
  const Primitive* norm = program.only_user_of<BatchNormPayload>(p);
  // The channels of a batch norm behind a linear layer are its outputs if there is nothing else.
  *cancels = norm && norm->as<BatchNormPayload>().batch_statistics &&
             (p.is<ConvolutionPayload>() || program.plan.at(p.out).shape.size() == 2);
  return *cancels;
}

// Few samples.  gather, relayout => gather in that layout
// Most of each row would be padding otherwise.
bool relayout_into_gather(Rewriting& program, Primitive& p) {
  constexpr int64_t few = 8;
  if (!p.is<GatherPayload>() || program.plan.options.batch_size >= few) return false;
  Primitive* user = program.only_user_of<RelayoutPayload>(p);
  if (!user || !p.epilogue.empty()) return false;
  if (program.plan.at(user->out).shape != program.plan.at(p.out).shape) return false;
  program.take(p, *user);
  return true;
}

// Inference.  convolution, depthwise convolution, 1x1 convolution => convolution_bands, or without
// the first, where what lies between them does not fit into L2
bool convolutions_into_bands(Rewriting& program, Primitive& p) {
  constexpr size_t least = size_t{1} << 20;  // floats
  if (!p.is<ConvolutionPayload>() || program.training()) return false;
  Primitive* depthwise = program.only_maker_of<ConvolutionPayload>(p);
  if (!depthwise) return false;
  Primitive* first = program.only_maker_of<ConvolutionPayload>(*depthwise);
  return (first && join_into_bands(program.plan, {first, depthwise, &p}, least)) ||
         join_into_bands(program.plan, {depthwise, &p}, least);
}

// Inference.  gather, linear => gather_linear, where the layer is small
bool gather_into_linear(Rewriting& program, Primitive& p) {
  if (!p.is<LinearPayload>() || program.training()) return false;
  Primitive* gather = program.only_maker_of<GatherPayload>(p);
  return gather && join_gather_linear(program.plan, *gather, p);
}

// Inference.  gather_linear, linear => gather_linear, where all of them stay in registers
bool linear_behind_gathered(Rewriting& program, Primitive& p) {
  if (!p.is<LinearPayload>()) return false;
  Primitive* before = program.only_maker_of<GatherLinearPayload>(p);
  return before && join_gather_linear(program.plan, *before, p);
}

struct Rule {
  const char* name;
  bool (*apply)(Rewriting& program, Primitive& p);  // whether it did
};
constexpr Rule taking[] = {
    {"drop_bias_gradient", drop_bias_gradient},
    {"relayout_into_gather", relayout_into_gather},
};
constexpr Rule joining[] = {
    {"convolutions_into_bands", convolutions_into_bands},
    {"gather_into_linear", gather_into_linear},
    {"linear_behind_gathered", linear_behind_gathered},
};

// What no output, kept node or gradient needs.
void remove_unused(Plan& plan) {
  std::vector<bool> needed(plan.tensors.size(), false);
  const auto need = [&](int tensor) { needed[static_cast<size_t>(plan.root(tensor))] = true; };
  for (size_t t = 0; t < plan.tensors.size(); ++t)
    if (plan.tensors[t].pinned) need(static_cast<int>(t));
  for (size_t i = plan.primitives.size(); i-- > 0;) {
    Primitive& p = plan.primitives[i];
    if (!needed[static_cast<size_t>(plan.root(p.out))]) p.removed = true;
    if (p.removed) continue;
    for (const int tensor : p.reads()) need(tensor);
  }
  std::erase_if(plan.primitives, [](const Primitive& p) { return p.removed; });
}

}  // namespace

void fuse(Plan& plan) {
  remove_unused(plan);
  Rewriting program(plan);
  for (Primitive& p : plan.primitives) {
    std::string name;
    while (!p.removed && absorb(program, p, name)) plan.fused.push_back(name);
    for (const Rule& rule : taking)
      if (!p.removed && rule.apply(program, p)) plan.fused.emplace_back(rule.name);
  }
  for (Primitive& p : plan.primitives)
    for (const Rule& rule : joining)
      if (!p.removed && rule.apply(program, p)) plan.fused.emplace_back(rule.name);
  std::erase_if(plan.primitives, [](const Primitive& p) { return p.removed; });
}

std::vector<std::string> fusion_rules() {
  std::vector<std::string> names;
  for (const Rule& rule : taking) names.emplace_back(rule.name);
  for (const Rule& rule : joining) names.emplace_back(rule.name);
  const auto& records = Registry<PrimitiveRecord>::instance();
  for (const std::string& record : records.names())
    for (const StageKind kind : find_primitive(record).stages)
      names.push_back(fmt::format("{} into {}", stage_name(kind), record));
  return names;
}

}  // namespace mase::engine
