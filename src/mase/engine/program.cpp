// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/program.h"

#include <algorithm>
#include <cstring>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/primitive.h"

namespace mase {

using TypedGraphPtr = std::shared_ptr<const TypedGraph>;

struct Program::Impl {
  CompileOptions options;  // as asked for; the plan's batch may be a slice of this one's
  engine::Plan plan;
  bool keeps_packed = false;  // packed weights are read as they are; else all become floats
  std::shared_ptr<std::byte> parameters, gradients, state, arena;
  std::shared_ptr<std::vector<int64_t>> counters;  // integer buffers
  std::shared_ptr<uint64_t> changes;               // of parameters and buffers; shared as they are
  uint64_t prepared = 0;                           // derived values are those after so many changes
  std::vector<float> previous_gradients;           // of accumulating steps
  std::vector<ParameterView> views;
  std::vector<std::vector<float>> masks;
  engine::Memory memory;
  std::vector<int64_t> sample_floats;        // of each placeholder
  std::vector<std::string> input_names;      // of each placeholder
  std::vector<engine::Samples> inputs;       // of the batch that runs
  std::vector<std::vector<float>> unpacked;  // its samples, where they come as bytes
  std::vector<engine::TensorView> readable;  // by tensor; only those that are pinned
  std::vector<std::vector<float>> results;   // by output: of a batch that is run in slices
  Batch part;                                // the slice that runs
  int64_t last_size = 0;

  float* base(engine::Place place) const {
    const std::shared_ptr<std::byte>* blocks[] = {&arena, &parameters, &gradients, &state};
    return reinterpret_cast<float*>(blocks[static_cast<size_t>(place)]->get());
  }
  void plan_for(const TypedGraphPtr& graph, const CompileOptions& given);
  void make_plan(TypedGraphPtr graph, const CompileOptions& given);
  bool sliced() const { return plan.options.batch_size < options.batch_size; }
  void bind(const Impl* shared);
  void check(const Batch& batch);
  engine::Samples unpack(const RowTensor& tensor, const Batch& batch, size_t input);
  StepResult run(const Batch& batch, bool backward);
  void run_slices(const Batch& batch);
  void fetch_ahead(const Batch& batch, size_t begin, size_t end) const;
  void read(int tensor, float* out) const;
  int64_t sample_width(int tensor) const {
    return element_count(plan.at(tensor).shape) / plan.options.batch_size;
  }
  void load(const engine::Parameter& parameter, const Tensor& tensor);
  void bind_packed();
  Tensor store(const engine::Parameter& parameter) const;
};

void Program::Impl::plan_for(const TypedGraphPtr& graph, const CompileOptions& given) {
  if (given.batch_size < 1)
    throw Error("", fmt::format("a batch of {} samples", given.batch_size),
                "the batch size is at least 1");
  options = given;
  make_plan(graph, given);
  CompileOptions part = given;
  part.batch_size = engine::best_slice(plan);
  if (part.batch_size == given.batch_size) return;
  plan = {};
  make_plan(graph, part);
}

void Program::Impl::make_plan(TypedGraphPtr graph, const CompileOptions& given) {
  plan.options = given;
  plan.typed = std::move(graph);
  plan.keeps_packed = keeps_packed;
  engine::lower(plan);
  engine::fuse(plan);
  plan.options.one_position =
      given.one_position && !given.training && given.batch_size == 1 &&
      std::all_of(plan.primitives.begin(), plan.primitives.end(), [&](const engine::Primitive& p) {
        if (p.removed || p.record->any_stride) return true;
        // Rows of what is no batch tensor lie as they do anyway: numbers known beforehand.
        const std::vector<int> reads = p.reads();
        const auto batch = [&](int t) { return plan.at(t).layout == engine::Layout::batch; };
        return !batch(p.out) && std::none_of(reads.begin(), reads.end(), batch);
      });
  engine::emit(plan);
  engine::place_tensors(plan);
}

// Makes memory, or takes that of another program of the same graph.
void Program::Impl::bind(const Impl* shared) {
  for (const NodeId id : plan.graph().placeholders()) {
    sample_floats.push_back(element_count(plan.graph().node(id).sample_shape));
    input_names.push_back(plan.graph().node(id).name);
  }
  inputs.resize(sample_floats.size());
  unpacked.resize(sample_floats.size());
  if (shared) {
    parameters = shared->parameters;
    state = shared->state;
    counters = shared->counters;
    changes = shared->changes;
  } else {
    parameters = aligned_bytes(plan.parameter_floats * sizeof(float));
    state = aligned_bytes(plan.state_floats * sizeof(float));
    counters = std::make_shared<std::vector<int64_t>>(plan.counters);
    changes = std::make_shared<uint64_t>(1);
  }
  arena = aligned_bytes(plan.arena_floats * sizeof(float));
  gradients = aligned_bytes(plan.options.training ? plan.parameter_floats * sizeof(float) : 0);
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const engine::TensorInfo& info = plan.at(plan.root(static_cast<int>(i)));
    memory.tensors.push_back(info.packed ? nullptr : base(info.place) + info.offset);
  }
  bind_packed();
  memory.counters = counters.get();
  for (auto* steps : {&plan.prepare, &plan.forward, &plan.losses, &plan.backward})
    for (engine::Step& step : *steps) step.run = step.bind(memory);
  readable.resize(plan.tensors.size());
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    if (plan.tensors[i].pinned) readable[i] = engine::view_of(plan, static_cast<int>(i));
  for (const int output : plan.outputs)
    if (sliced())
      results.emplace_back(static_cast<size_t>(options.batch_size * sample_width(output)));
  masks.reserve(plan.parameters.size());
  for (const engine::Parameter& parameter : plan.parameters) {
    if (!parameter.trainable) continue;
    ParameterView view;
    const engine::TensorInfo& info = plan.at(parameter.tensor);
    if (info.packed) continue;  // no floats to look at
    view.name = parameter.name;
    view.shape = info.shape;
    const auto count = static_cast<size_t>(element_count(info.shape));
    view.value = {base(engine::Place::parameter) + info.offset, count};
    if (plan.options.training) view.gradient = {base(engine::Place::gradient) + info.offset, count};
    if (parameter.mask.numel() > 0) {
      const auto values = parameter.mask.values<float>();
      masks.emplace_back(values.begin(), values.end());
      view.mask = masks.back();
    }
    views.push_back(std::move(view));
  }
}

// Where the blocks of packed parameters are: those of the plan's own graph, which keeps them.
void Program::Impl::bind_packed() {
  memory.blocks.assign(plan.tensors.size(), nullptr);
  for (const engine::Parameter& parameter : plan.parameters)
    if (plan.at(parameter.tensor).packed)
      memory.blocks[static_cast<size_t>(parameter.tensor)] =
          reinterpret_cast<const uint8_t*>(plan.graph().tensor(parameter.name)->blocks().data());
}

void Program::Impl::load(const engine::Parameter& parameter, const Tensor& tensor) {
  const engine::TensorInfo& info = plan.at(parameter.tensor);
  MASE_CHECK(tensor.shape() == info.shape, "'{}' is {}, was {}", parameter.name,
             shape_text(tensor.shape()), shape_text(info.shape));
  if (info.packed) {
    MASE_CHECK(plan.graph().tensor(parameter.name)->same_bits(tensor),
               "the packed '{}' is another one than the program was made with", parameter.name);
    return;
  }
  const Tensor values = tensor.to(DType::f32);
  std::copy_n(values.data<float>(), values.numel(), memory[parameter.tensor]);
  if (parameter.counter >= 0)
    (*counters)[static_cast<size_t>(parameter.counter)] = tensor.to(DType::i64).data<int64_t>()[0];
}

Tensor Program::Impl::store(const engine::Parameter& parameter) const {
  const engine::TensorInfo& info = plan.at(parameter.tensor);
  if (info.packed) return *plan.graph().tensor(parameter.name);
  Tensor tensor(info.shape);
  std::copy_n(memory[parameter.tensor], tensor.numel(), tensor.mutable_data<float>());
  if (parameter.counter < 0) return tensor.to(parameter.dtype);
  Tensor counter(info.shape, DType::i64);
  counter.mutable_data<int64_t>()[0] = (*counters)[static_cast<size_t>(parameter.counter)];
  return counter.to(parameter.dtype);
}

// Names, types, widths and row numbers, before a kernel takes any of them for granted.
void Program::Impl::check(const Batch& batch) {
  const std::string& place = plan.graph().name;
  if (batch.size < 1 || batch.size > options.batch_size)
    throw Error(place, fmt::format("a batch of {} samples, compiled for at most {}", batch.size,
                                   options.batch_size));
  if (!batch.rows.empty() && static_cast<int64_t>(batch.rows.size()) != batch.size)
    throw Error(place, fmt::format("a batch of {} samples with {} row numbers", batch.size,
                                   batch.rows.size()));
  int64_t last = batch.first_row + batch.size - 1;
  if (batch.rows.empty()) {
    if (batch.first_row < 0)
      throw Error(place, fmt::format("a batch that begins at row {}", batch.first_row));
  } else {
    last = kernels::largest_row(batch.rows.data(), batch.size);
  }
  const auto take = [&](const RowTensor& tensor, std::string_view what, int64_t width, DType dtype,
                        int64_t last_row) {
    if (tensor.dtype != dtype || tensor.width != width)
      throw Error(place,
                  fmt::format("{} wants rows of {} {} values, the batch has rows of {} {}", what,
                              width, dtype_name(dtype), tensor.width, dtype_name(tensor.dtype)));
    if (last_row >= tensor.rows)
      throw Error(place, fmt::format("the batch takes row {} of {}, which has {}", last_row, what,
                                     tensor.rows));
  };
  if (batch.inputs.size() != input_names.size())
    throw Error(place, fmt::format("the network takes {} inputs, the batch has {}",
                                   input_names.size(), batch.inputs.size()));
  for (size_t i = 0; i < input_names.size(); ++i) {
    const RowTensor* found = &batch.inputs[i];
    if (!found->name.empty() && found->name != input_names[i]) {
      found = nullptr;
      for (const RowTensor& input : batch.inputs)
        if (input.name == input_names[i]) found = &input;
      if (!found) throw Error(place, fmt::format("the batch has no input '{}'", input_names[i]));
    }
    const bool bytes = found->dtype == DType::u8 && found->scale;
    take(*found, input_names[i], sample_floats[i], bytes ? DType::u8 : DType::f32, last);
    inputs[i] = bytes
                    ? unpack(*found, batch, i)
                    : engine::Samples{found->floats(), engine::row_numbers(batch), batch.first_row};
  }
  if (plan.target < 0 || batch.target.empty()) return;
  const bool labels = plan.at(plan.target).element == DType::i32;
  take(batch.target, "target",
       labels ? plan.at(plan.target).positions() : plan.at(plan.target).rows(),
       labels ? DType::i32 : DType::f32, batch.target_in_order ? batch.size - 1 : last);
}

// The numbers that the bytes of this batch stand for, one sample behind the other.
engine::Samples Program::Impl::unpack(const RowTensor& tensor, const Batch& batch, size_t input) {
  const auto width = static_cast<size_t>(tensor.width);
  MASE_CHECK(tensor.scale->offset.size() == width && tensor.scale->scale.size() == width,
             "bytes have a scale for each value");
  std::vector<float>& floats = unpacked[input];
  floats.resize(static_cast<size_t>(options.batch_size) * width);
  for (int64_t i = 0; i < batch.size; ++i) {
    const int64_t row =
        batch.rows.empty() ? batch.first_row + i : batch.rows[static_cast<size_t>(i)];
    tensor.scale->apply(tensor.bytes() + static_cast<size_t>(row) * width,
                        floats.data() + static_cast<size_t>(i) * width);
  }
  return {floats.data(), nullptr, 0};
}

// Some of the upcoming samples. A burst of all of them would fill the queue of cache misses and
// hold up the steps' own loads.
void Program::Impl::fetch_ahead(const Batch& batch, size_t begin, size_t end) const {
  end = std::min(end, batch.upcoming.size());
  for (size_t s = 0; s < inputs.size(); ++s) {
    if (!unpacked[s].empty()) continue;
    const float* source = inputs[s].source;
    const int64_t floats = sample_floats[s], most = std::min<int64_t>(floats, 64);
    for (size_t i = begin; i < end; ++i) {
      const float* sample = source + static_cast<int64_t>(batch.upcoming[i]) * floats;
      for (int64_t f = 0; f < most; f += 16) __builtin_prefetch(sample + f, 0, 2);
    }
  }
  if (batch.target_in_order || batch.target.dtype != DType::i32 || batch.target.empty()) return;
  for (size_t i = begin; i < end; ++i)
    __builtin_prefetch(batch.target.classes() + batch.upcoming[i], 0, 2);
}

// Each slice from end to end; its results are put beside those of the others.
void Program::Impl::run_slices(const Batch& batch) {
  check(batch);  // all of it, before the first slice is run
  part = batch;
  part.upcoming = {};
  for (int64_t first = 0; first < batch.size; first += plan.options.batch_size) {
    part.size = std::min(plan.options.batch_size, batch.size - first);
    part.first_sample = batch.first_sample + first;
    if (batch.rows.empty())
      part.first_row = batch.first_row + first;
    else
      part.rows = batch.rows.subspan(static_cast<size_t>(first), static_cast<size_t>(part.size));
    run(part, false);
    for (size_t i = 0; i < results.size(); ++i)
      read(plan.outputs[i], results[i].data() + first * sample_width(plan.outputs[i]));
  }
  last_size = batch.size;
}

StepResult Program::Impl::run(const Batch& batch, bool backward) {
  check(batch);
  StepResult result;
  engine::Run run;
  run.n = last_size = batch.size;
  run.global = static_cast<double>(batch.size);
  run.batch = &batch;
  run.inputs = inputs.data();
  run.result = &result;
  if (plan.options.all_reduce) plan.options.all_reduce(std::span<double>(&run.global, 1));
  result.weight = run.global;
  if (prepared != *changes) {
    for (const engine::Step& step : plan.prepare) step.run(run);
    prepared = *changes;
  }
  const size_t steps =
      plan.forward.size() + plan.losses.size() + (backward ? plan.backward.size() : 0);
  const size_t share = batch.upcoming.size() / std::max<size_t>(1, steps) + 1;
  size_t fetched = 0;
  const auto execute = [&](const std::vector<engine::Step>& list) {
    for (const engine::Step& step : list) {
      fetch_ahead(batch, fetched, fetched + share);
      fetched += share;
      step.run(run);
    }
  };
  execute(plan.forward);
  if (!batch.target.empty()) execute(plan.losses);
  if (backward) execute(plan.backward);
  if (plan.options.training) ++*changes;  // running statistics
  return result;
}

void Program::Impl::read(int tensor, float* out) const {
  engine::to_row_major(readable.at(static_cast<size_t>(tensor)), memory[tensor], last_size, out);
}

Program::Program() : impl_(std::make_unique<Impl>()) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program Program::compile(const Graph& graph, const CompileOptions& options) {
  Program program;
  program.impl_->keeps_packed = !options.training;
  program.impl_->plan_for(engine::analyse(graph), options);
  program.impl_->bind(nullptr);
  program.load_from(graph);
  return program;
}

Program Program::sharing(const CompileOptions& options) const {
  MASE_CHECK(!impl_->keeps_packed || !options.training, "packed weights are not trained");
  Program program;
  program.impl_->keeps_packed = impl_->keeps_packed;
  program.impl_->plan_for(impl_->plan.typed, options);
  program.impl_->bind(impl_.get());
  return program;
}

StepResult Program::forward(const Batch& batch) {
  if (!impl_->sliced()) return impl_->run(batch, false);
  impl_->run_slices(batch);
  return {};
}

StepResult Program::forward_backward(const Batch& batch, bool accumulate) {
  MASE_CHECK(impl_->plan.options.training && impl_->plan.options.loss, "not a training program");
  if (batch.target.empty())
    throw Error(impl_->plan.graph().name, "a batch without targets cannot be trained on");
  const std::span<float> gradients = gradient_memory();
  std::vector<float>& previous = impl_->previous_gradients;
  if (accumulate) previous.assign(gradients.begin(), gradients.end());
  const StepResult result = impl_->run(batch, true);
  if (accumulate)
    kernels::add_to(gradients.data(), previous.data(), static_cast<int64_t>(gradients.size()));
  return result;
}

void Program::read_output(int index, float* out) const {
  const int tensor = impl_->plan.outputs.at(static_cast<size_t>(index));
  if (!impl_->sliced()) return impl_->read(tensor, out);
  std::copy_n(impl_->results[static_cast<size_t>(index)].data(),
              impl_->last_size * impl_->sample_width(tensor), out);
}

Shape Program::output_shape(int index) const {
  Shape shape = impl_->plan.at(impl_->plan.outputs.at(static_cast<size_t>(index))).shape;
  if (impl_->sliced()) shape[0] = impl_->options.batch_size;
  return shape;
}

void Program::read_node(NodeId node, float* out) const {
  const int tensor = impl_->plan.node_result.at(static_cast<size_t>(node));
  MASE_CHECK(tensor >= 0 && impl_->plan.at(tensor).pinned, "node {} was not kept", node);
  impl_->read(tensor, out);
}

std::vector<ParameterView>& Program::parameters() { return impl_->views; }

std::span<float> Program::parameter_memory() {
  return {impl_->base(engine::Place::parameter), impl_->plan.parameter_floats};
}

std::span<float> Program::gradient_memory() {
  return {impl_->base(engine::Place::gradient),
          impl_->plan.options.training ? impl_->plan.parameter_floats : 0};
}

std::span<float> Program::buffer_memory() {
  return {impl_->base(engine::Place::state), impl_->plan.state_floats};
}

std::span<float> Program::buffer(const std::string& name) {
  for (const engine::Parameter& parameter : impl_->plan.parameters)
    if (parameter.name == name && !parameter.trainable)
      return {impl_->memory[parameter.tensor],
              static_cast<size_t>(element_count(impl_->plan.at(parameter.tensor).shape))};
  MASE_CHECK(false, "no buffer '{}'", name);
  return {};
}

void Program::parameters_changed() { ++*impl_->changes; }

TensorTable Program::state() const {
  TensorTable table;
  for (const engine::Parameter& parameter : impl_->plan.parameters)
    table.emplace_back(parameter.name, impl_->store(parameter));
  return table;
}

void Program::write_to(Graph& graph) const {
  for (const engine::Parameter& parameter : impl_->plan.parameters) {
    Tensor* tensor = graph.tensor(parameter.name);
    MASE_CHECK(tensor, "the graph has no '{}'", parameter.name);
    *tensor = impl_->store(parameter);
  }
}

void Program::load_from(const Graph& graph) {
  for (const engine::Parameter& parameter : impl_->plan.parameters) {
    const Tensor* tensor = graph.tensor(parameter.name);
    MASE_CHECK(tensor, "the graph has no '{}'", parameter.name);
    impl_->load(parameter, *tensor);
  }
  parameters_changed();
}

std::string Program::dump() const { return engine::dump(impl_->plan); }

std::string stage_text(const Graph& graph, const CompileOptions& options, Stage stage) {
  engine::Plan plan;
  plan.options = options;
  plan.typed = engine::analyse(graph);
  plan.keeps_packed = !options.training;
  engine::lower(plan);
  if (stage == Stage::lower) return engine::primitives_text(plan);
  engine::fuse(plan);
  if (stage == Stage::fuse) {
    std::string text = engine::primitives_text(plan);
    for (const std::string& rule : plan.fused) text += fmt::format("by {}\n", rule);
    return text;
  }
  engine::emit(plan);
  return engine::steps_text(plan);
}

size_t Program::arena_bytes() const { return impl_->plan.arena_floats * sizeof(float); }

const CompileOptions& Program::options() const { return impl_->options; }

}  // namespace mase
