// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/emit.h"

#include <algorithm>
#include <cmath>

#include "mase/base/random.h"

namespace mase::engine {
namespace {

int64_t product(const Shape& shape, size_t from, size_t to) {
  int64_t count = 1;
  for (size_t i = from; i < to; ++i) count *= shape[i];
  return count;
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Calls visit(row, position) for every multi-index of the shape, in row-major order.
template <class Visit>
void for_each_index(const Shape& shape, Visit visit) {
  std::vector<int64_t> position(shape.size(), 0);
  const int64_t rows = element_count(shape);
  for (int64_t row = 0; row < rows; ++row) {
    visit(row, position);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++position[i] < shape[i]) break;
      position[i] = 0;
    }
  }
}

}  // namespace

Kernel map_kernel(const Plan& plan, std::shared_ptr<const TileProgram> program,
                  const std::vector<int>& operands, int out, const Memory& memory) {
  struct State {
    MapOperands operands;
    std::vector<const float*> base, pointer;
    std::unique_ptr<bool[]> scalar;
    std::shared_ptr<std::byte> workspace;
  };
  auto state = std::make_shared<State>();
  state->operands = map_operands(plan, operands, out);
  for (const int operand : operands) state->base.push_back(memory[operand]);
  state->pointer = state->base;
  state->scalar = std::make_unique<bool[]>(operands.size() + 1);
  for (size_t i = 0; i < operands.size(); ++i) state->scalar[i] = state->operands.scalar[i];
  const int64_t rows = plan.at(out).rows(), stride = plan.row_stride(out);
  const bool flat = state->operands.flat;
  const int64_t capacity = flat ? rows * stride : stride;
  state->workspace =
      aligned_bytes(static_cast<size_t>(program->workspace(capacity)) * sizeof(float));
  program->prepare(reinterpret_cast<float*>(state->workspace.get()), capacity);
  return [=, &plan, to = memory[out]](const Run& run) {
    auto* workspace = reinterpret_cast<float*>(state->workspace.get());
    if (flat) {
      program->run(state->base.data(), state->scalar.get(), to, rows * stride, workspace, capacity);
      return;
    }
    const int64_t n = plan.lanes(out, run);
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < state->base.size(); ++i) {
        const auto& index = state->operands.index[i];
        const int64_t row = index.empty() ? r : index[static_cast<size_t>(r)];
        state->pointer[i] = state->base[i] + row * state->operands.stride[i];
      }
      program->run(state->pointer.data(), state->scalar.get(), to + r * stride, n, workspace,
                   capacity);
    }
  };
}

LinearGeometry linear_geometry(const Plan& plan, const Primitive& p) {
  const Shape& w = plan.at(p.weight).shape;
  LinearGeometry g{};
  const int64_t columns = w[1];
  g.shape.out = p.transposed ? w[1] : w[0];
  g.shape.in = p.transposed ? w[0] : w[1];
  g.shape.out_step = p.transposed ? 1 : columns;
  g.shape.in_step = p.transposed ? columns : 1;
  g.shape.stride = plan.row_stride(p.in[0]);
  g.shape.threads = plan.options.threads;
  const Shape features = plan.at(p.in[0]).features();
  g.positions = product(features, 0, features.size() - 1);
  return g;
}

ConcatGeometry concat_geometry(const Plan& plan, const Primitive& p) {
  ConcatGeometry g;
  const auto axis = static_cast<size_t>(p.axis);
  g.outer = product(plan.at(p.out).features(), 0, axis);
  for (const int part : p.in) {
    const Shape features = plan.at(part).features();
    g.rows.push_back(product(features, axis, features.size()));
  }
  return g;
}

AxisGeometry axis_geometry(const Plan& plan, const Primitive& p) {
  const Shape features = plan.at(p.out).features();
  const auto axis = static_cast<size_t>(p.axis);
  return {product(features, 0, axis), features[axis], product(features, axis + 1, features.size())};
}

LayerGeometry layer_geometry(const Plan& plan, const Primitive& p) {
  const Shape features = plan.at(p.out).features();
  const size_t split = features.size() - static_cast<size_t>(p.axis);
  return {product(features, 0, split), product(features, split, features.size())};
}

std::vector<int32_t> permuted_rows(const Plan& plan, const Primitive& p) {
  const std::vector<int64_t> strides = row_major_strides(plan.at(p.in[0]).features());
  std::vector<int32_t> index;
  for_each_index(plan.at(p.out).features(), [&](int64_t, const std::vector<int64_t>& position) {
    int64_t row = 0;
    for (size_t i = 0; i < position.size(); ++i)
      row += position[i] * strides[static_cast<size_t>(p.dims[i])];
    index.push_back(static_cast<int32_t>(row));
  });
  return index;
}

std::vector<int32_t> reduced_rows(const Plan& plan, const Primitive& p) {
  const Shape features = plan.at(p.in[0]).features();
  Shape kept = features;
  for (const int64_t dim : p.dims) kept[static_cast<size_t>(dim)] = 1;
  std::vector<int64_t> strides = row_major_strides(kept);
  for (const int64_t dim : p.dims) strides[static_cast<size_t>(dim)] = 0;
  std::vector<int32_t> index;
  for_each_index(features, [&](int64_t, const std::vector<int64_t>& position) {
    int64_t row = 0;
    for (size_t i = 0; i < position.size(); ++i) row += position[i] * strides[i];
    index.push_back(static_cast<int32_t>(row));
  });
  return index;
}

// The draw of an element is a function of seed, node, step, row and sample of the whole batch, so
// forward and backward agree and neither threads nor processes matter.
Kernel dropout_kernel(const Plan& plan, const Primitive& p, const float* in, float* out, int tensor,
                      bool accumulate) {
  const int64_t rows = plan.at(tensor).rows(), stride = plan.row_stride(tensor);
  const auto scale = static_cast<float>(p.number < 1 ? 1 / (1 - p.number) : 0);
  const auto threshold = static_cast<uint64_t>(p.number * 4294967296.0);
  const auto seed = plan.options.seed;
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32) ^ 0x9E3779B9u};
  const auto node = static_cast<uint32_t>(p.node);
  return [=, &plan](const Run& run) {
    const int64_t n = plan.lanes(tensor, run);
    const int64_t first = plan.at(tensor).layout == Layout::batch ? run.batch->first_sample : 0;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t b = 0; b < n;) {
        const uint64_t draw = run.batch->step;
        const auto words =
            philox({static_cast<uint32_t>((first + b) / 4), static_cast<uint32_t>(r),
                    static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32) ^ (node << 8)},
                   key);
        for (int64_t k = (first + b) % 4; k < 4 && b < n; ++k, ++b) {
          const int64_t at = r * stride + b;
          const float value = words[static_cast<size_t>(k)] >= threshold ? in[at] * scale : 0.0f;
          out[at] = accumulate ? out[at] + value : value;
        }
      }
  };
}

CallArguments::CallArguments(const Plan& plan, const Primitive& p, const Memory& memory)
    : bound_(*p.call), training_(plan.options.training), seed_(plan.options.seed), node_(p.node) {
  const auto source = [&](const std::string& name, int tensor) {
    const int counter = plan.at(tensor).counter;
    return Source{name, memory[tensor], view_of(plan, tensor),
                  counter < 0 ? nullptr : &(*memory.counters)[static_cast<size_t>(counter)],
                  Array()};
  };
  for (const int tensor : p.in) inputs_.push_back(source("", tensor));
  for (const auto& [name, tensor] : p.params) params_.push_back(source(name, tensor));
}

void CallArguments::load(const Run& run, std::map<std::string, Array>* updates) {
  call.reset(new OpCall{bound_.attributes, {}, {}, training_, 0, nullptr});
  call->seed = seed_ + static_cast<uint64_t>(node_) + run.batch->step * 0x9E3779B97F4A7C15ull;
  if (training_) call->updates = updates;
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

void CallArguments::store(const std::map<std::string, Array>& updates, const Run& run) {
  for (Source& source : params_) {
    const auto update = updates.find(source.name);
    if (update == updates.end()) continue;
    write_array(update->second, source.data, source.view, run, false);
    if (source.counter) *source.counter = static_cast<int64_t>(update->second.data[0]);
  }
}

int gradient_of(Plan& plan, int tensor) {
  plan.gradient.resize(std::max(plan.gradient.size(), plan.tensors.size()), -1);
  int known = plan.gradient[static_cast<size_t>(tensor)];
  if (known >= 0) return known;
  TensorInfo info = plan.at(tensor);
  info.name = "d " + info.name;
  info.pinned = false;
  info.constant = false;
  info.counter = -1;
  if (info.view_of >= 0)
    info.view_of = gradient_of(plan, info.view_of);
  else
    info.place = info.place == Place::parameter ? Place::gradient : Place::arena;
  known = plan.add(std::move(info));
  plan.gradient.resize(plan.tensors.size(), -1);
  return plan.gradient[static_cast<size_t>(tensor)] = known;
}

}  // namespace mase::engine
