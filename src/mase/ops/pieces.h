// SPDX-License-Identifier: Apache-2.0
// What the ops share that take neighbouring indices of a dimension: all but the piece itself.
#pragma once

#include "mase/ops/along.h"
#include "mase/ops/moving.h"

namespace mase {

struct Piece {
  size_t dim = 0;
  int64_t start = 0, length = 0;
};
using PieceOf = Piece(const Value& attributes, const Shape& x);

template <PieceOf piece_of>
Shape infer_piece(const Value& attributes, const std::vector<Shape>& inputs) {
  const Piece piece = piece_of(attributes, inputs[0]);
  Shape shape = inputs[0];
  shape[piece.dim] = piece.length;
  return shape;
}

template <PieceOf piece_of>
std::vector<size_t> piece_places(const OpCall& call) {
  const Shape& x = call.inputs[0]->shape;
  const Piece piece = piece_of(call.attributes, x);
  const Along along(x, static_cast<int64_t>(piece.dim));
  const auto start = static_cast<size_t>(piece.start), length = static_cast<size_t>(piece.length);
  std::vector<size_t> places;
  for (size_t o = 0; o < along.outer; ++o)
    for (size_t i = 0; i < length * along.inner; ++i) places.push_back(along.place(o, start, i));
  return places;
}

template <PieceOf piece_of>
Slot lower_piece(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Piece piece = piece_of(attributes, lowering.shape(inputs[0]));
  return lowering.slice(inputs[0], static_cast<int64_t>(piece.dim), piece.start, 1, piece.length);
}

template <PieceOf piece_of>
OpRecord taking_piece(OpRecord record) {
  record.mase_type = "implicit_func";
  record.infer = infer_piece<piece_of>;
  record.lower = lower_piece<piece_of>;
  return moving(std::move(record), piece_places<piece_of>);
}

}  // namespace mase
