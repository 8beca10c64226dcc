// SPDX-License-Identifier: Apache-2.0
// Rotations that change nothing in real arithmetic (Ashkboos et al., "QuaRot", 2024). What a stream
// of sums carries through a transformer is multiplied by an orthogonal Q: what writes into it gives
// x Q, what reads it behind a norm multiplies by W Q, and the norm's own gains go into those
// readers first, since only a norm without them commutes with Q:
//   embedding E            => E Q            o = x W' + b          => W Q, b Q
//   y = (n(x) g + c) W'    => W diag(g) Q, and the norm keeps c / g Q for its shift
// A norm that takes the mean off commutes with a Q that leaves (1, .., 1) where it is.
// In heads of attention the values are rotated by what makes them and back by what takes the
// result. Which nodes these are is found by walking the graph, whatever the architecture.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/graph.h"
#include "mase/passes/dense.h"

namespace mase {

struct RotationKind {
  bool hadamard = true;     // Sylvester's matrix with drawn signs; else an orthogonal one, drawn
  bool keeps_mean = false;  // (1, .., 1) stays where it is
};
// Orthogonal, size x size. Of a size that is no power of two the odd part is drawn.
Matrix drawn_rotation(int64_t size, const RotationKind& kind, uint64_t seed,
                      const std::string& purpose, uint64_t index = 0);

// What is summed up along a network, with everything that writes into it and reads it.
struct RotationStream {
  int64_t width = 0;
  bool takes_mean = false;      // some norm takes the mean off
  std::vector<NodeId> layers;   // linear layers that write
  std::vector<NodeId> tables;   // embeddings and tables of positions
  std::vector<NodeId> norms;    // that read, gains and shifts included
  std::vector<NodeId> readers;  // linear layers behind those norms, or without one
  std::vector<NodeId> heads;    // products with a table: y = linear(n(x), table)
  std::string name;             // of the first node that writes
};
// In the order of the graph; `left` gets what cannot be rotated, with reasons.
std::vector<RotationStream> rotation_streams(const Graph& graph, Dict& left);
// A head on a table that is also written into the stream gets a weight of its own.
void rotate_stream(Graph& graph, const RotationStream& stream, const Matrix& rotation);

// The values of one attention: made by `maker`, taken behind it by `taker`, in heads of `width`.
struct RotationHeads {
  NodeId attention = -1, maker = -1, taker = -1;
  int64_t width = 0;
};
std::vector<RotationHeads> rotation_heads(const Graph& graph, Dict& left);
void rotate_heads(Graph& graph, const RotationHeads& heads, const Matrix& rotation);

}  // namespace mase
