// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mase/engine/payloads.h"
#include "mase/engine/reference.h"
#include "mase/formats/packed_groups.h"

namespace mase::engine {
namespace {

constexpr float was_there = 0.25f;  // what results hold that are added to

Plan plan_with(const Trial::Options& options) {
  Plan plan;
  plan.options.training = options.training;
  plan.options.threads = options.threads;
  plan.options.seed = options.seed;
  return plan;
}

}  // namespace

Trial::Trial(const PrimitiveRecord& record, const Options& options)
    : record_(record),
      options_(options),
      random_(options.seed, "trial of " + record.name),
      plan_(plan_with(options)),
      lowerer_(plan_) {
  plan_.options.batch_size = options.large ? 256 : size(1, 40, 0);
  if (record.any_stride && !options.training && !options.large && options.seed % 4 == 1) {
    plan_.options.batch_size = 1;
    plan_.options.one_position = true;
  }
  const Slot out = record.generate ? record.generate(*this) : -1;
  if (out < 0) return;
  draw_neighbours(out);
  for (size_t i = 0; i < plan_.primitives.size(); ++i)
    if (plan_.primitives[i].record == &record && !plan_.primitives[i].removed)
      index_ = static_cast<int>(i);
  if (!exists()) return;
  Primitive& tried = plan_.primitives[static_cast<size_t>(index_)];
  tried.accumulate = record.accumulates && options.training && !options.large && tried.bias < 0 &&
                     options.seed % 2 == 0;
  run_.n = options.large ? most_samples() : size(1, most_samples(), 0);
  run_.global = static_cast<double>(run_.n);
  batch_.size = run_.n;
  batch_.step = 3;
  run_.batch = &batch_;
  run_.inputs = &input_;
  run_.result = &step_result_;
  draw_operands();
}

int64_t Trial::size(int64_t least, int64_t most, int64_t large) {
  return options_.large
             ? large
             : least + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
}

bool Trial::coin(bool large) { return size(0, 1, large ? 1 : 0) == 1; }

int64_t Trial::below(int64_t count, int64_t large) { return size(0, count - 1, large); }

bool Trial::few_bits() { return !options_.training && coin(options_.few_bits); }

int64_t Trial::kind(int64_t count) {
  kinds_ = count;
  return below(count, options_.kind);
}

int64_t Trial::batch(int64_t large, int64_t most) {
  int64_t& samples = plan_.options.batch_size;
  samples = options_.large ? large : (samples - 1) % most + 1;
  return most_samples();
}

Slot Trial::activation(const Shape& sample, Values values) {
  TensorInfo info;
  info.name = fmt::format("x{}", plan_.tensors.size());
  info.shape = sample;
  info.shape.insert(info.shape.begin(), most_samples());
  info.differentiable = options_.training && !values.whole;
  // Rows in any order; the sample is the outermost lane or the innermost one.
  std::vector<int> lanes;
  if (!options_.large) {
    std::vector<uint32_t> order = random_.permutation(static_cast<uint32_t>(sample.size()));
    for (const uint32_t axis : order)
      (coin() ? lanes : info.axes.rows).push_back(static_cast<int>(axis) + 1);
    lanes.insert(coin() ? lanes.begin() : lanes.end(), 0);
    info.axes.lanes = lanes;
  } else {
    info.axes = Axes::flat(info.shape.size());
  }
  const Slot slot = plan_.add(std::move(info));
  values_[slot] = values;
  return slot;
}

Slot Trial::parameter(const Shape& shape, Values values) {
  TensorInfo info;
  info.name = fmt::format("w{}", plan_.tensors.size());
  info.shape = shape;
  info.layout = Layout::fixed;
  info.place = Place::parameter;
  info.constant = true;
  info.differentiable = options_.training && !values.whole;
  const Slot slot = plan_.add(std::move(info));
  values_[slot] = values;
  return slot;
}

PackedTypePtr Trial::packed_type() {
  const std::vector<PackedTypePtr> all = every_packed_type();
  if (!options_.large) return all[random_.below(all.size())];
  return *std::find_if(all.begin(), all.end(),
                       [](const PackedTypePtr& one) { return one->form == PackedForm::q4_1; });
}

// Any codes, with steps of both signs, some of them zero or below what is normal.
Slot Trial::packed(const Shape& shape, const PackedTypePtr& type) {
  TensorInfo info;
  info.name = fmt::format("p{}", plan_.tensors.size());
  info.shape = shape;
  info.layout = Layout::fixed;
  info.place = Place::packed;
  info.packed = type;
  info.constant = true;
  const Slot slot = plan_.add(std::move(info));
  std::vector<uint8_t>& blocks = packed_[slot];
  blocks.resize(static_cast<size_t>(element_count(shape) / type->values * type->bytes));
  draw_blocks(*type, random_, 0.1, blocks);
  return slot;
}

Slot Trial::labels(int64_t classes, const Shape& tokens) {
  const double least = tokens.empty() ? 0 : -1;
  const Slot slot = activation(tokens, {least, static_cast<double>(classes - 1), true});
  plan_.at(slot).axes = Axes::sequence(tokens.size() + 1, 0);
  plan_.at(slot).element = DType::i32;
  return slot;
}

Slot Trial::rounded(Slot slot, int width, int frac) {
  quantizers_.push_back(make_quantizer(
      "integer", Dict{{"width", int64_t{width}}, {"frac_width", int64_t{frac}}}, "trial"));
  const TensorInfo info = plan_.at(slot);
  return lowerer_.add("quantize",
                      {.in = {slot}, .payload = QuantizePayload{quantizers_.back().get()}},
                      info.shape, info.layout, info.axes);
}

void Trial::samples(const Shape& sample) {
  const int64_t width = element_count(sample), count = most_samples() + 3;
  samples_.resize(static_cast<size_t>(count * width));
  for (float& value : samples_) value = static_cast<float>(random_.uniform(-2, 2));
  if (coin(true))
    for (int64_t i = 0; i < most_samples(); ++i)
      rows_.push_back(static_cast<uint32_t>(random_.below(static_cast<uint64_t>(count))));
  input_ = {samples_.data(), rows_.empty() ? nullptr : rows_.data(), rows_.empty() ? 2 : 0};
}

Slot Trial::sample_rows(int64_t features) {
  samples({features});
  return lowerer_.add("gather", {.payload = GatherPayload{}}, {most_samples(), features},
                      Layout::batch, Axes::flat(2));
}

Slot Trial::beside(Slot slot) {
  TensorInfo other;
  other.name = "other";
  other.shape = plan_.at(slot).shape;
  other.layout = plan_.at(slot).layout;
  other.axes = plan_.at(slot).axes;
  const Slot made = plan_.add(std::move(other));
  values_[made] = {};
  return made;
}

Slot Trial::fixed_norm(Slot x) {
  const Shape channels = {plan_.at(x).shape[1]};
  Lowering::BatchNorm options;
  options.weight = parameter(channels);
  options.bias = parameter(channels);
  options.running_mean = parameter(channels);
  options.running_var = parameter(channels, {0.5, 2});
  options.eps = 1e-3;
  return lowerer_.batch_norm(x, options);
}

namespace {

// Keeps what the gradient of a primitive computes by this record.
class Sent : public Backward {
 public:
  Sent(Trial& trial, const PrimitiveRecord& record) : trial_(trial), record_(record) {}
  Slot slot = -1;

  Plan& plan() override { return trial_.plan(); }
  bool wanted(int tensor) const override { return tensor >= 0; }
  Target target(int) override { return {}; }
  void take_over(int, int) override {}
  void push(Step) override {}
  void send(const char* record, Primitive primitive, int tensor) override {
    if (slot < 0 && record == record_.name) compute(record, primitive, plan().at(tensor));
  }
  int compute(const char* record, Primitive primitive, TensorInfo result) override {
    const Slot made =
        trial_.to().add(record, std::move(primitive), result.shape, result.layout, result.axes);
    if (record == record_.name) slot = made;
    return made;
  }

 private:
  Trial& trial_;
  const PrimitiveRecord& record_;
};

}  // namespace

Slot Trial::sent_by(const std::string& name, bool whole) {
  const PrimitiveRecord& forward = find_primitive(name);
  if (forward.generate(*this) < 0) return -1;
  const auto layer = std::find_if(plan_.primitives.rbegin(), plan_.primitives.rend(),
                                  [&](const Primitive& p) { return p.record == &forward; });
  if (layer == plan_.primitives.rend()) return -1;
  for (auto& [slot, values] : values_)
    if (whole && !values.whole) values = {-1, 1, true};
  const Primitive p = *layer;
  Sent sent(*this, record_);
  forward.gradient(sent, p, beside(p.out));
  return sent.slot;
}

// What stands behind products and norms in networks: norms, sums, limits. What a rule takes is
// computed with the primitive, what none takes is left alone.
void Trial::draw_neighbours(Slot out) {
  // What its generator joined itself is whole.
  const bool joined = std::any_of(plan_.primitives.begin(), plan_.primitives.end(),
                                  [](const Primitive& p) { return p.removed; });
  if (options_.large || joined) return;
  Random random(options_.seed, "neighbours of " + record_.name);
  const auto may = [&] { return random.below(2) == 1; };
  const bool is_map = record_.payload == typeid(MapPayload);
  const TensorInfo info = plan_.at(out);
  Slot last = out;
  if (!is_map && info.layout == Layout::batch && info.element == DType::f32) {
    const Expr a = Expr::operand(0), b = Expr::operand(1);
    if (!options_.training && info.shape.size() > 1 && may()) last = fixed_norm(last);
    if (!options_.training && may()) {
      last = lowerer_.map(a + b, {last, beside(last)});
    }
    if (may()) last = lowerer_.map(may() ? max(a, 0.0) : min(max(a, -0.5), 0.75), {last});
  }
  plan_.at(plan_.root(last)).pinned = plan_.at(last).pinned = true;
  fuse(plan_);
}

bool Trial::has_gradient() const {
  return record_.gradient && plan_.at(primitive().out).differentiable && !straight_through_;
}

// The values of a tensor: as its operand was said to have, rounded as it was on the way.
std::vector<double> Trial::draw(int tensor, const Shape& shape) {
  std::vector<const Quantizer*> rounding;
  for (auto known = values_.find(tensor); known == values_.end(); known = values_.find(tensor)) {
    if (plan_.at(tensor).view_of >= 0) {
      tensor = plan_.at(tensor).view_of;
      continue;
    }
    const auto maker = std::find_if(plan_.primitives.begin(), plan_.primitives.end(),
                                    [&](const Primitive& p) { return p.out == tensor; });
    MASE_CHECK(maker != plan_.primitives.end(), "an operand from nowhere");
    if (maker->is<QuantizePayload>()) rounding.push_back(maker->as<QuantizePayload>().quantizer);
    tensor = maker->in[0];
  }
  const Values& values = values_.at(tensor);
  std::vector<float> drawn(static_cast<size_t>(element_count(shape)));
  for (float& value : drawn)
    value = static_cast<float>(
        values.whole ? values.low + static_cast<double>(random_.below(
                                        static_cast<uint64_t>(values.high - values.low + 1)))
                     : random_.uniform(values.low, values.high));
  for (const Quantizer* quantizer : rounding)
    quantizer->quantize(drawn.data(), drawn.data(), shape);
  return {drawn.begin(), drawn.end()};
}

void Trial::draw_operands() {
  const Primitive& p = primitive();
  std::vector<int> tensors = p.in;
  for (const int tensor : {p.weight, p.bias})
    if (tensor >= 0 && !plan_.at(tensor).packed) tensors.push_back(tensor);
  const size_t own = tensors.size();
  for (const int tensor : p.epilogue.reads())  // what a rule brought
    if (plan_.at(tensor).layout == Layout::batch && values_.count(tensor))
      tensors.push_back(tensor);
  const auto is_moved = [&](int slot) {  // another primitive's operand
    return std::any_of(plan_.primitives.begin(), plan_.primitives.end(),
                       [&](const Primitive& q) { return !q.in.empty() && q.in[0] == slot; });
  };
  for (const auto& [slot, values] : values_)  // those that only the payload names
    if (plan_.at(slot).layout == Layout::fixed && !is_moved(slot) &&
        std::find(tensors.begin(), tensors.end(), slot) == tensors.end())
      tensors.push_back(slot);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int tensor = tensors[i];
    TensorInfo& root = plan_.at(plan_.root(tensor));
    root.place = Place::parameter;
    root.offset = plan_.parameter_floats;
    plan_.parameter_floats += (plan_.floats(plan_.root(tensor)) + 15) / 16 * 16;
    const Shape shape = view_of(plan_, tensor).shape_for(run_.n);
    operands_.push_back({tensor, draw(tensor, shape), i < own && plan_.at(tensor).differentiable});
  }
  const int out = p.out;
  plan_.at(plan_.root(out)).pinned = plan_.at(out).pinned = true;
  const Shape shape = view_of(plan_, out).shape_for(run_.n);
  for (int64_t i = 0; i < element_count(shape); ++i) ups_.push_back(random_.uniform(-1, 1));
  for (double& up : ups_) up = static_cast<float>(up);
}

bool Trial::prepare(const Variant& variant) {
  Primitive& p = plan_.primitives[static_cast<size_t>(index_)];
  std::optional<Step> step = variant.forward(plan_, p);
  if (!step) return false;
  plan_.forward.push_back(std::move(*step));
  if (options_.training && record_.gradient && plan_.at(p.out).differentiable) {
    for (Primitive& other : plan_.primitives) other.removed = &other != &p;
    emit_backward_from(plan_, p.out);
    plan_.at(plan_.root(gradient_of(plan_, p.out))).pinned = true;
    for (const Operand& operand : operands_)
      if (operand.differentiable)
        plan_.at(plan_.root(gradient_of(plan_, operand.tensor))).pinned = true;
  }
  place_tensors(plan_);
  // Memory that nobody wrote holds NaN: who reads it is found out.
  for (const size_t floats : {plan_.arena_floats, plan_.parameter_floats, plan_.parameter_floats}) {
    blocks_.push_back(aligned_bytes(floats * sizeof(float)));
    std::memset(blocks_.back().get(), 0xff, floats * sizeof(float));
  }
  for (size_t i = 0; i < plan_.tensors.size(); ++i) {
    const TensorInfo& info = plan_.at(plan_.root(static_cast<int>(i)));
    const auto held = packed_.find(static_cast<int>(i));
    memory_.blocks.push_back(held == packed_.end() ? nullptr : held->second.data());
    memory_.tensors.push_back(
        info.packed ? nullptr
                    : reinterpret_cast<float*>(blocks_[static_cast<size_t>(info.place)].get()) +
                          info.offset);
  }
  counters_.assign(plan_.counters.begin(), plan_.counters.end());
  memory_.counters = &counters_;
  for (const Operand& operand : operands_) write(operand.tensor, operand.values);
  for (auto* steps : {&plan_.prepare, &plan_.forward, &plan_.backward})
    for (Step& each : *steps) each.run = each.bind(memory_);
  for (const Step& each : plan_.prepare) each.run(run_);
  return true;
}

void Trial::write(int tensor, const std::vector<double>& values) {
  if (plan_.at(tensor).element == DType::i32) {
    const std::vector<int32_t> labels(values.begin(), values.end());
    std::memcpy(memory_[tensor], labels.data(), labels.size() * sizeof(int32_t));
    return;
  }
  const std::vector<float> floats(values.begin(), values.end());
  from_row_major(view_of(plan_, tensor), floats.data(), run_.n, memory_[tensor]);
}

void Trial::run_forward() {
  if (primitive().accumulate) write(primitive().out, std::vector<double>(ups_.size(), was_there));
  for (const Step& step : plan_.forward) step.run(run_);
}

void Trial::seed_gradients() { write(gradient_of(plan_, primitive().out), ups_); }

void Trial::run_backward() {
  for (const Step& step : plan_.backward) step.run(run_);
}

std::vector<float> Trial::result() const {
  const TensorView view = view_of(plan_, primitive().out);
  std::vector<float> values(static_cast<size_t>(element_count(view.shape_for(run_.n))));
  to_row_major(view, memory_[primitive().out], run_.n, values.data());
  return values;
}

Array Trial::expected() {
  Reference call = read_operands(plan_, primitive(), memory_, run_);
  run_reference(call);
  if (primitive().accumulate)
    for (double& value : call.out.data) value = static_cast<float>(value) + was_there;
  return call.out;
}

Array Trial::expected_with(const std::vector<std::vector<double>>& moved) {
  const Primitive& p = primitive();
  Reference call = read_operands(plan_, p, memory_, run_);
  const auto given = [&](int tensor, Array& array) {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].tensor == tensor) array.data = moved[i];
  };
  for (size_t i = 0; i < p.in.size(); ++i) given(p.in[i], call.in[i]);
  if (p.weight >= 0) given(p.weight, call.weight);
  if (p.bias >= 0) given(p.bias, call.bias);
  run_reference(call);
  return call.out;
}

Trial::Slopes Trial::slopes() {
  Slopes slopes;
  constexpr double step = 1e-6;
  std::vector<std::vector<double>> ahead, behind;
  for (const Operand& operand : operands_) {
    ahead.push_back(operand.values);
    behind.push_back(operand.values);
    if (!operand.differentiable) continue;
    const Array gradient = read_tensor(plan_, gradient_of(plan_, operand.tensor), memory_, run_);
    for (size_t i = 0; i < operand.values.size(); ++i) {
      const double direction = random_.uniform(-1, 1);
      ahead.back()[i] += step * direction;
      behind.back()[i] -= step * direction;
      slopes.gradients += gradient.data[i] * direction;
      slopes.scale += gradient.data[i] * gradient.data[i];
    }
  }
  const Array after = expected_with(ahead), before = expected_with(behind);
  for (size_t i = 0; i < ups_.size(); ++i)
    slopes.quotient += ups_[i] * (after.data[i] - before.data[i]) / (2 * step);
  slopes.scale = std::sqrt(slopes.scale);
  return slopes;
}

double Trial::multiply_adds() const {
  return record_.multiply_adds ? record_.multiply_adds(plan_, primitive()) : 0;
}

double Trial::bytes() const {
  double floats = static_cast<double>(ups_.size());
  for (const Operand& operand : operands_) floats += static_cast<double>(operand.values.size());
  double bytes = floats * sizeof(float);
  for (const auto& [slot, blocks] : packed_) bytes += static_cast<double>(blocks.size());
  return bytes;
}

std::string Trial::shapes() const {
  std::vector<std::string> parts;
  for (const Operand& operand : operands_)
    parts.push_back(shape_text(plan_.at(operand.tensor).shape));
  for (const auto& [slot, blocks] : packed_)
    parts.push_back(shape_text(plan_.at(slot).shape) + " " + plan_.at(slot).packed->name);
  return fmt::format("{} => {}", fmt::join(parts, "; "),
                     shape_text(plan_.at(primitive().out).shape));
}

std::string Trial::description() const {
  std::vector<std::string> parts = {
      fmt::format("{}, {} samples: {}", record_.name, run_.n, shapes())};
  std::vector<int> tensors;
  for (const Operand& operand : operands_) tensors.push_back(operand.tensor);
  tensors.push_back(primitive().out);
  for (const int tensor : tensors)
    if (const TensorInfo& info = plan_.at(tensor); info.layout == Layout::batch)
      parts.push_back(fmt::format("rows ({}) lanes ({})", fmt::join(info.axes.rows, ", "),
                                  fmt::join(info.axes.lanes, ", ")));
  return join(parts, "; ");
}

}  // namespace mase::engine
