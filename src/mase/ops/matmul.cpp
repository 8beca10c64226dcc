// SPDX-License-Identifier: Apache-2.0
// matmul: PyTorch's matrix product. A first operand of rank 1 is a row, a second one a column, and
// leading dimensions are broadcast. bmm: two batches of matrices of the same size, nothing else.
#include "mase/base/broadcast.h"
#include "mase/ops/elementwise.h"

namespace mase::matmul_ops {
namespace {

// Both operands as batches of matrices.
struct Product {
  Shape a, b, a_outer, b_outer, batch, out;
  size_t rows, inner, columns;

  Product(const Shape& left, const Shape& right) : a(left), b(right) {
    if (left.empty() || right.empty())
      throw Error("", "matmul wants operands of rank 1 or more", "multiply by a scalar with 'mul'");
    if (left.size() == 1) a.insert(a.begin(), 1);
    if (right.size() == 1) b.push_back(1);
    if (a.back() != b[b.size() - 2])
      throw Error("", fmt::format("matrices {} and {} do not fit: {} columns against {} rows",
                                  shape_text(left), shape_text(right), a.back(), b[b.size() - 2]));
    a_outer.assign(a.begin(), a.end() - 2);
    b_outer.assign(b.begin(), b.end() - 2);
    batch = broadcast(a_outer, b_outer);
    rows = static_cast<size_t>(a[a.size() - 2]);
    inner = static_cast<size_t>(a.back());
    columns = static_cast<size_t>(b.back());
    out = batch;
    if (left.size() > 1) out.push_back(a[a.size() - 2]);
    if (right.size() > 1) out.push_back(b.back());
    element_count(out);
  }

  // visit(place in out, place in a, place in b) for each multiplication.
  template <class Visit>
  void each(const Visit& visit) const {
    // Where each of the result's matrices comes from.
    const std::vector<size_t> a_batch = broadcast_places(a_outer, batch);
    const std::vector<size_t> b_batch = broadcast_places(b_outer, batch);
    for (size_t m = 0; m < a_batch.size(); ++m)
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j)
          for (size_t k = 0; k < inner; ++k)
            visit((m * rows + i) * columns + j, (a_batch[m] * rows + i) * inner + k,
                  (b_batch[m] * inner + k) * columns + j);
  }
};

Array product_eval(const OpCall& call) {
  const Array &a = *call.inputs[0], &b = *call.inputs[1];
  const Product product(a.shape, b.shape);
  Array out(product.out);
  product.each([&](size_t o, size_t i, size_t j) { out.data[o] += a.data[i] * b.data[j]; });
  return out;
}

OpGradients product_grad(const OpCall& call, const Array&, const Array& g) {
  const Array &a = *call.inputs[0], &b = *call.inputs[1];
  const Product product(a.shape, b.shape);
  Array ga(a.shape), gb(b.shape);
  product.each([&](size_t o, size_t i, size_t j) {
    ga.data[i] += g.data[o] * b.data[j];
    gb.data[j] += g.data[o] * a.data[i];
  });
  OpGradients result;
  result.inputs = {std::move(ga), std::move(gb)};
  return result;
}

OpCost product_cost(const Value&, const std::vector<Shape>& inputs, const Shape& out) {
  const int64_t macs = element_count(out) * inputs[0].back();
  return {macs, 2 * macs};
}

OpRecord matrix_product(OpRecord record) {
  record.mase_type = "builtin_func";
  record.min_inputs = record.max_inputs = 2;
  record.operands = {"data_in", "weight", "data_out"};
  record.required_operands = {"data_in", "weight"};
  record.eval = product_eval;
  record.grad = product_grad;
  record.cost = product_cost;
  record.lower = [](Lowering& lowering, const Value&, const std::vector<Slot>& inputs) {
    for (const Slot input : inputs)  // kernels take matrices that have elements
      if (element_count(lowering.shape(input)) == 0) return Slot{-1};
    return lowering.matmul(inputs[0], inputs[1]);
  };
  return record;
}

Shape infer_matmul(const Value&, const std::vector<Shape>& inputs) {
  return Product(inputs[0], inputs[1]).out;
}

Shape infer_bmm(const Value&, const std::vector<Shape>& inputs) {
  const Shape &a = inputs[0], &b = inputs[1];
  if (a.size() != 3 || b.size() != 3 || a[0] != b[0] || a[2] != b[1])
    throw Error("",
                fmt::format("bmm wants [B, n, m] and [B, m, p], got {} and {}", shape_text(a),
                            shape_text(b)),
                "use 'matmul' for other ranks");
  return Shape{a[0], a[1], b[2]};
}

const Register<OpRecord> matmul{
    matrix_product({.name = "matmul",
                    .function = "torch.matmul",
                    .summary = "matrix product, leading dimensions broadcast",
                    .infer = infer_matmul})};
const Register<OpRecord> bmm{matrix_product({.name = "bmm",
                                             .function = "torch.bmm",
                                             .summary = "product of two batches of matrices",
                                             .infer = infer_bmm})};

}  // namespace
}  // namespace mase::matmul_ops
