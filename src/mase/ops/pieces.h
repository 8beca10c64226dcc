// SPDX-License-Identifier: Apache-2.0
// What the ops share that take neighbouring indices of a dimension: all but the piece itself.
#pragma once

#include "mase/ops/along.h"

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

// visit(place in x, place in the piece) for each element of the piece.
template <class Visit>
void each_of_piece(const Piece& piece, const Shape& x, const Visit& visit) {
  const Along along(x, static_cast<int64_t>(piece.dim));
  const auto run = static_cast<size_t>(piece.length) * along.inner;
  for (size_t o = 0; o < along.outer; ++o)
    for (size_t i = 0; i < run; ++i)
      visit(along.place(o, static_cast<size_t>(piece.start), i), o * run + i);
}

template <PieceOf piece_of>
Array eval_piece(const OpCall& call) {
  const Array& x = *call.inputs[0];
  Array y(infer_piece<piece_of>(call.attributes, {x.shape}));
  each_of_piece(piece_of(call.attributes, x.shape), x.shape,
                [&](size_t from, size_t to) { y.data[to] = x.data[from]; });
  return y;
}

template <PieceOf piece_of>
OpGradients grad_piece(const OpCall& call, const Array&, const Array& g) {
  const Shape& x = call.inputs[0]->shape;
  OpGradients result;
  result.inputs.emplace_back(x);
  each_of_piece(piece_of(call.attributes, x), x,
                [&](size_t to, size_t from) { result.inputs[0].data[to] = g.data[from]; });
  return result;
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
  record.eval = eval_piece<piece_of>;
  record.grad = grad_piece<piece_of>;
  record.cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; };
  record.lower = lower_piece<piece_of>;
  return record;
}

}  // namespace mase
