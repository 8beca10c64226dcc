// SPDX-License-Identifier: Apache-2.0
// lane_matmul: products of each sample's own matrices, its positions along the lanes. With queries
// and keys of an attention the scores have keys as rows: a number of K times a run of Q.
//   a[.., m, k]  rows (lead, k), lanes (sample, m)
//   b[.., k, n]  rows (lead, k), lanes (sample, n)   or rows (lead, n), lanes (sample, k)
//   result       rows (lead, n), lanes (sample, m)
#include <algorithm>
#include <numeric>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/parallel.h"
#include "mase/engine/kernels/shifted.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/primitives/matmul.h"
#include "mase/engine/trial.h"

namespace mase::engine::lane_matmul_primitive {
namespace {

struct Geometry {
  int64_t m, k, n;
  int64_t a_stride, b_stride, out_stride;
  std::vector<int64_t> a_matrix, b_matrix;  // first float of the matrix for each leading index
  bool rows_are_k;
  int64_t a_floats, b_floats;
  int threads;

  // Weight (o, i) of b as a matrix [n, k].
  int64_t n_step() const { return rows_are_k ? 1 : b_stride; }
  int64_t k_step() const { return rows_are_k ? b_stride : 1; }
  int64_t b_lanes() const { return rows_are_k ? n : k; }
  int64_t result(size_t q, int64_t sample) const {  // first float of a matrix of the result
    return static_cast<int64_t>(q) * n * out_stride + sample * m;
  }
};

std::vector<int64_t> matrices(const Shape& lead, const TensorInfo& operand, int64_t floats) {
  const Shape own(operand.shape.begin() + 1, operand.shape.end() - 2);
  const std::vector<int32_t> index = broadcast_rows(lead, own);
  std::vector<int64_t> result(static_cast<size_t>(element_count(lead)));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = (index.empty() ? static_cast<int64_t>(i) : index[i]) * floats;
  return result;
}

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const TensorInfo &a = plan.at(p.in[0]), &b = plan.at(p.in[1]), &out = plan.at(p.out);
  const size_t rank = out.shape.size();
  Geometry g{};
  g.m = out.shape[rank - 2];
  g.n = out.shape[rank - 1];
  g.k = a.shape[rank - 1];
  g.rows_are_k = p.as<LaneMatmulPayload>().right_rows_are_k;
  g.a_stride = plan.row_stride(p.in[0]);
  g.b_stride = plan.row_stride(p.in[1]);
  g.out_stride = plan.row_stride(p.out);
  const Shape lead(out.shape.begin() + 1, out.shape.end() - 2);
  g.a_matrix = matrices(lead, a, g.k * g.a_stride);
  g.b_matrix = matrices(lead, b, (g.rows_are_k ? g.k : g.n) * g.b_stride);
  g.a_floats = a.rows() * g.a_stride;
  g.b_floats = b.rows() * g.b_stride;
  g.threads = plan.options.threads;
  return g;
}

std::vector<int64_t> offsets(int64_t count, int64_t stride) {
  std::vector<int64_t> table(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) table[static_cast<size_t>(i)] = i * stride;
  return table;
}

// out[n][m] from a[k][m], whose rows begin at `rows`; or back.
kernels::ShiftedShape product_of(const Geometry& g, const std::vector<int64_t>& rows, bool back) {
  kernels::ShiftedShape shape{};
  shape.out = back ? g.k : g.n;
  shape.in = back ? g.n : g.k;
  shape.out_step = back ? g.k_step() : g.n_step();
  shape.in_step = back ? g.n_step() : g.k_step();
  shape.offsets = rows.data();
  shape.y_stride = back ? g.a_stride : g.out_stride;
  shape.n = g.m;
  return shape;
}

// Calls body(sample, matrix) for all of them; those of one sample are one thread's, so that
// gradients which several of them share are added up in one order.
template <class Body>
void each_matrix(const Geometry& g, int64_t samples, const Body& body) {
  const auto count = static_cast<int64_t>(g.a_matrix.size());
  kernels::for_each_piece(samples, g.threads, [&](int64_t b) {
    for (int64_t q = 0; q < count; ++q) body(b, static_cast<size_t>(q));
  });
}

Step forward(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p);
  return make_step(
      "lane_matmul", fmt::format("{} x [{} x {} x {}]", g.a_matrix.size(), g.m, g.k, g.n),
      {p.in[0], p.in[1]}, {p.out},
      [g, rows = offsets(g.k, g.a_stride)](const Run& run, const float* a, const float* b,
                                           float* to) {
        each_matrix(g, run.n, [&](int64_t sample, size_t q) {
          kernels::shifted_linear(
              product_of(g, rows, false), b + g.b_matrix[q] + sample * g.b_lanes(), nullptr,
              a + g.a_matrix[q] + sample * g.m, to + g.result(q, sample), {}, false);
        });
      });
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  const Geometry g = geometry_of(backward.plan(), p);
  if (const Target t = backward.target(p.in[0]); t.tensor >= 0)
    // da[k][m] += sum over n of b(n, k) g[n][m]
    backward.push(make_step("lane_matmul_gradient", "left", {p.in[1], gradient}, {t.tensor},
                            [g, t, rows = offsets(g.n, g.out_stride)](
                                const Run& run, const float* b, const float* up, float* to) {
                              if (!t.accumulate) std::fill_n(to, g.a_floats, 0.0f);
                              each_matrix(g, run.n, [&](int64_t sample, size_t q) {
                                kernels::shifted_linear(product_of(g, rows, true),
                                                        b + g.b_matrix[q] + sample * g.b_lanes(),
                                                        nullptr, up + g.result(q, sample),
                                                        to + g.a_matrix[q] + sample * g.m, {},
                                                        true);
                              });
                            }));
  if (const Target t = backward.target(p.in[1]); t.tensor >= 0)
    // db(n, k) += sum over m of g[n][m] a[k][m]
    backward.push(make_step("lane_matmul_gradient", "right", {p.in[0], gradient}, {t.tensor},
                            [g, t, rows = offsets(g.k, g.a_stride)](const Run& run, const float* a,
                                                                    const float* up, float* to) {
                              if (!t.accumulate) std::fill_n(to, g.b_floats, 0.0f);
                              each_matrix(g, run.n, [&](int64_t sample, size_t q) {
                                kernels::shifted_gradient(
                                    product_of(g, rows, false), up + g.result(q, sample),
                                    a + g.a_matrix[q] + sample * g.m,
                                    to + g.b_matrix[q] + sample * g.b_lanes(), true);
                              });
                            }));
}

Slot generate(Trial& trial) {
  trial.batch(8);
  const int64_t m = trial.size(8, 40, 128), k = trial.size(1, 20, 32), n = trial.size(1, 20, 128);
  const int64_t heads = trial.size(1, 3, 12);
  const Slot a = trial.activation({heads, m, k});
  return trial.to().matmul(a, trial.activation({trial.coin() ? 1 : heads, k, n}));
}

const Register<PrimitiveRecord> registered{{
    .name = "lane_matmul",
    .summary = "products of each sample's own matrices, its positions along the lanes",
    .payload = typeid(LaneMatmulPayload),
    .variants = {{"vectors", forward}},
    .reference = matmul_reference,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .multiply_adds = matmul_multiply_adds,
}};

}  // namespace
}  // namespace mase::engine::lane_matmul_primitive
