// SPDX-License-Identifier: Apache-2.0
// Batched products of two activations: every sample has its own matrices, so the batch lanes
// multiply side by side and nothing is transposed. An operand without a batch is one value a lane.
#include "mase/engine/primitives/matmul.h"

#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/lane_products.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine {

void matmul_reference(Reference& call) {
  const Array &a = call.in[0], &b = call.in[1];
  const size_t rank = call.out.shape.size();
  each_index(call.out.shape, [&](const Shape& index) {
    Shape left = index, right = index;
    double sum = 0;
    for (int64_t k = 0; k < a.shape.back(); ++k) {
      left[rank - 1] = right[rank - 2] = k;
      sum += value_at(a, left) * value_at(b, right);
    }
    value_at(call.out, index) = sum;
  });
}

double matmul_multiply_adds(const Plan& plan, const Primitive& p) {
  return static_cast<double>(element_count(plan.at(p.out).shape) * plan.at(p.in[0]).shape.back());
}

}  // namespace mase::engine

namespace mase::engine::matmul_primitive {
namespace {

struct Side {
  const float* data;
  int64_t stride;
  bool scalar;                  // no batch: one value for all lanes
  std::vector<int32_t> matrix;  // first row of the matrix for each leading index
};

struct Geometry {
  int64_t matrices, m, k, n;
};

std::vector<int32_t> matrices(const Shape& lead, const Shape& operand, int64_t size) {
  const Shape own(operand.begin(), operand.end() - 2);
  std::vector<int32_t> index = broadcast_rows(lead, own);
  if (index.empty())
    for (int64_t i = 0; i < element_count(lead); ++i) index.push_back(static_cast<int32_t>(i));
  for (int32_t& i : index) i = static_cast<int32_t>(i * size);
  return index;
}

Geometry geometry(const Plan& plan, const Primitive& p) {
  const Shape a = plan.at(p.in[0]).row_shape(), out = plan.at(p.out).row_shape();
  const Shape lead(out.begin(), out.end() - 2);
  return {element_count(lead), out[out.size() - 2], a.back(), out.back()};
}

Side side(const Plan& plan, const Primitive& p, int index, const Memory& memory) {
  const int tensor = p.in[static_cast<size_t>(index)];
  const Shape out = plan.at(p.out).row_shape(), own = plan.at(tensor).row_shape();
  const Shape lead(out.begin(), out.end() - 2);
  const bool scalar =
      plan.at(p.out).layout == Layout::batch && plan.at(tensor).layout == Layout::fixed;
  return {memory[tensor], scalar ? 1 : plan.row_stride(tensor), scalar,
          matrices(lead, own, own[own.size() - 2] * own.back())};
}

// The matrix of a side, element (row, column) of `columns` in a row.
kernels::LaneMatrix matrix_of(const Side& side, int64_t columns, bool transposed = false) {
  kernels::LaneMatrix matrix{columns * side.stride, side.stride, side.scalar};
  if (transposed) std::swap(matrix.row, matrix.column);
  return matrix;
}

Step forward(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  Step step{"matmul", "", p.in, {p.out}};
  const Geometry g = geometry(plan, p);
  step.detail = fmt::format("{} x [{} x {} x {}]", g.matrices, g.m, g.k, g.n);
  const int64_t stride = plan.row_stride(p.out);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, a = side(plan, p, 0, memory), b = side(plan, p, 1, memory),
            to = memory[p.out]](const Run& run) {
      const int64_t lanes = plan.lanes(p.out, run);
      for (int64_t q = 0; q < g.matrices; ++q) {
        const float* left = a.data + a.matrix[static_cast<size_t>(q)] * a.stride;
        const float* right = b.data + b.matrix[static_cast<size_t>(q)] * b.stride;
        const kernels::LaneProduct product{
            g.m,   g.n,       g.k, matrix_of(a, g.k), matrix_of(b, g.n), {g.n * stride, stride},
            lanes, stride > 1};
        kernels::lane_product(product, left, right, to + q * g.m * g.n * stride, false);
      }
    };
  };
  return step;
}

Step side_gradient(Plan& plan, const Primitive& p, int of, int gradient, int target,
                   bool accumulate) {
  Step step{"matmul_gradient",
            of == 0 ? "left" : "right",
            {p.in[static_cast<size_t>(1 - of)], gradient},
            {target}};
  const Geometry g = geometry(plan, p);
  const int64_t stride = plan.row_stride(p.out);
  const size_t floats = plan.floats(target);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const Side own = side(plan, p, of, memory), other = side(plan, p, 1 - of, memory);
    return [=, &plan, from = memory[gradient], to = memory[target]](const Run& run) {
      const int64_t lanes = plan.lanes(p.out, run);
      if (!accumulate) std::fill_n(to, floats, 0.0f);
      for (int64_t q = 0; q < g.matrices; ++q) {
        float* own_rows = to + own.matrix[static_cast<size_t>(q)] * own.stride;
        const float* other_rows = other.data + other.matrix[static_cast<size_t>(q)] * other.stride;
        const float* ups = from + q * g.m * g.n * stride;
        if (!own.scalar) {
          const kernels::LaneMatrix up{g.n * stride, stride};
          const kernels::LaneMatrix up_turned{stride, g.n * stride};
          if (of == 0)  // g b^T
            kernels::lane_product({g.m, g.k, g.n, up, matrix_of(other, g.n, true),
                                   matrix_of(own, g.k), lanes, stride > 1},
                                  ups, other_rows, own_rows, true);
          else  // a^T g, as its transpose: g^T a
            kernels::lane_product({g.n, g.k, g.m, up_turned, matrix_of(other, g.k),
                                   matrix_of(own, g.n, true), lanes, stride > 1},
                                  ups, other_rows, own_rows, true);
          continue;
        }
        for (int64_t i = 0; i < g.m; ++i)
          for (int64_t j = 0; j < g.n; ++j)
            for (int64_t k = 0; k < g.k; ++k) {
              const float* up = ups + (i * g.n + j) * stride;
              float* row = own_rows + (of == 0 ? i * g.k + k : k * g.n + j) * own.stride;
              const float* factor =
                  other_rows + (of == 0 ? k * g.n + j : i * g.k + k) * other.stride;
              if (other.scalar)
                *row += static_cast<float>(kernels::sum(up, lanes)) * *factor;
              else
                *row += static_cast<float>(kernels::dot(up, factor, lanes));
            }
      }
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  for (int side = 0; side < 2; ++side)
    if (const Target t = backward.target(p.in[static_cast<size_t>(side)]); t.tensor >= 0)
      backward.push(side_gradient(backward.plan(), p, side, gradient, t.tensor, t.accumulate));
}

Slot generate(Trial& trial) {
  const int64_t batch = trial.batch(64);
  const int64_t m = trial.size(1, 7, 4), k = trial.size(1, 9, 16), n = trial.size(1, 9, 16);
  const int64_t heads = trial.size(1, 3, 4);
  const bool without_batch = trial.coin();  // one of them
  const Slot a = trial.activation({heads, m, k});
  // Leading dimensions that are repeated; a side without a batch.
  Slot b = without_batch ? trial.parameter({1, trial.coin() ? 1 : heads, k, n})
                         : trial.activation({trial.coin() ? 1 : heads, k, n});
  if (batch == 1 && without_batch) return -1;
  return trial.to().matmul(a, b);
}

const Register<PrimitiveRecord> registered{{
    .name = "matmul",
    .summary = "products of each sample's own matrices, the samples side by side",
    .payload = typeid(MatmulPayload),
    .variants = {{"lanes", forward}},
    .reference = matmul_reference,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .multiply_adds = matmul_multiply_adds,
}};

}  // namespace
}  // namespace mase::engine::matmul_primitive
