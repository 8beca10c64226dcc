// SPDX-License-Identifier: Apache-2.0
// bmm: products of two batches of matrices of the same size, without broadcasting.
#include "mase/ops/matmul.h"

namespace mase::bmm_op {
namespace {

OpRecord bmm_record() {
  OpRecord record = matrix_product({.name = "bmm",
                                    .function = "torch.bmm",
                                    .mase_type = "builtin_func",
                                    .summary = "product of two batches of matrices"});
  record.infer = [](const Value&, const std::vector<Shape>& inputs) {
    const Shape &a = inputs[0], &b = inputs[1];
    if (a.size() != 3 || b.size() != 3 || a[0] != b[0] || a[2] != b[1])
      throw Error("",
                  fmt::format("bmm wants [B, n, m] and [B, m, p], got {} and {}", shape_text(a),
                              shape_text(b)),
                  "use 'matmul' for other ranks");
    return Shape{a[0], a[1], b[2]};
  };
  return record;
}

const Register<OpRecord> registered{bmm_record()};

}  // namespace
}  // namespace mase::bmm_op
