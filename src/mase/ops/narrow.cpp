// SPDX-License-Identifier: Apache-2.0
// narrow: some neighbouring indices of a dimension.
#include "mase/base/fields.h"
#include "mase/ops/pieces.h"

namespace mase::narrow_op {
namespace {

Piece piece_of(const Value& attributes, const Shape& x) {
  if (x.empty()) throw Error("", "narrow wants a tensor of rank 1 or more");
  Piece piece{static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size())),
              attributes["start"].as_int(), attributes["length"].as_int()};
  const int64_t size = x[piece.dim];
  if (piece.start < 0) piece.start += size;
  if (piece.start < 0 || piece.length < 0 || piece.start > size - piece.length)
    throw Error("", fmt::format("{} indices from {} on of {}", piece.length, piece.start, size),
                "take fewer");
  return piece;
}

const Register<OpRecord> registered{taking_piece<piece_of>({
    .name = "narrow",
    .function = "torch.narrow",
    .summary = "some neighbouring indices of a dimension",
    .attributes = {{integer_field("dim", "the dimension", 0),
                    integer_field("start", "the first index; negative: from the end", 0),
                    integer_field("length", "how many", 1)}},
})};

}  // namespace
}  // namespace mase::narrow_op
