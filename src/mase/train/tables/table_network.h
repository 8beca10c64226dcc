// SPDX-License-Identifier: Apache-2.0
// A network of table_linear layers in the form in which its sparsity is found: every edge is a sum
// of B-splines, coarse ones and fine ones that are held small, over the codes of its input. What
// the edge gives is the mean over the cell of codes that share the bits it reads, rounded to its
// own bits after the point. The tables are those that hardware has; gradients pass through the
// rounding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mase/ir/graph.h"
#include "mase/train/kernels/table_lanes.h"

namespace mase {

struct TableLayer {
  std::string path;  // of its module
  int64_t in = 0, out = 0, pad = 0, codes = 0;
  int width = 7, frac = 6;  // of the inputs' codes
  bool wraps = false;
  std::vector<float> coarse, fine;  // [in][splines][pad]
  std::vector<float> bias;          // [pad]
  std::vector<int> bits, fracs;     // [in][out]; 0 bits: there is no edge
  std::vector<float> counts;        // [in][codes]: how often a code came, and a little more

  size_t edge(int64_t i, int64_t o) const { return static_cast<size_t>(i * out + o); }

  // What follows from these.
  std::vector<float> tables, slopes;  // [in][codes][pad]
  std::vector<float> start;           // the bias, rounded
  std::vector<int> live;              // inputs that an edge reads
  table_lanes::TableExtent shape() const { return {in, codes, pad, live}; }
  float entry(int64_t i, int64_t code, int64_t o) const {
    return tables[static_cast<size_t>((i * codes + code) * pad + o)];
  }
};

class TableNetwork {
 public:
  static constexpr int coarse_splines = 8, fine_splines = 32;

  // Of a graph of table_linear layers one after another; throws an Error where it is none. Edges
  // begin as drawn coarse splines.
  TableNetwork(const Graph& graph, uint64_t seed);

  std::vector<TableLayer>& layers() { return layers_; }
  const std::vector<TableLayer>& layers() const { return layers_; }
  int64_t outputs() const { return layers_.back().out; }

  // Tables, slopes and what is live, from splines and widths. An input that nothing reads takes the
  // edges that end in it away.
  void derive();
  // Codes of a row of features.
  void first_codes(const float* x, int64_t rows, uint8_t* codes) const;
  // The graph with these tables: a knot for every code, its value the table's.
  Graph graph() const;

  // The spline functions of a layer's codes.
  struct Splines {
    std::vector<int> index;
    std::vector<float> weight;
    Splines(int64_t codes, int count);
    table_lanes::Basis basis() const { return {index, weight}; }
  };
  const Splines& coarse(size_t layer) const { return coarse_[layer]; }
  const Splines& fine(size_t layer) const { return fine_[layer]; }

 private:
  Graph like_;
  std::vector<TableLayer> layers_;
  std::vector<Splines> coarse_, fine_;
};

// Rows through a network: what each layer read and gave.
class TableRun {
 public:
  TableRun(const TableNetwork& network, int64_t rows);

  // Outputs of `rows` rows of first codes, [rows][pad].
  const float* forward(const TableNetwork& network, const uint8_t* codes, int64_t rows);
  const uint8_t* codes_of(size_t layer) const { return codes_[layer]; }
  const float* sums_of(size_t layer) const { return sums_[layer].data(); }

 private:
  std::vector<std::vector<float>> sums_;
  std::vector<std::vector<uint8_t>> own_codes_;
  std::vector<const uint8_t*> codes_;
};

}  // namespace mase
