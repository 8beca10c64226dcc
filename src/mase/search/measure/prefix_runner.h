// SPDX-License-Identifier: Apache-2.0
// Runs many configurations of one network over the same rows and computes only what changed. The
// network is cut before each quantised layer that everything flows through; a piece is compiled
// once for each of its configurations, and its results are kept while the pieces before it stay as
// they are. In the order of an exhaustive search most configurations differ in the last piece only.
// Formats that round a layer's weights to the same numbers (wider ones often do, where no weight
// needs the range) make one and the same network, which is run once.
//   x -> [bn relu] -> [linear bn relu] -> [linear bn relu] -> [linear relu] -> loss
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/engine/program.h"
#include "mase/search/measure/last_layer.h"
#include "mase/search/spaces/quantize_space.h"
#include "mase/train/evaluation.h"

namespace mase::search {

// The graph's nodes from one place of its order to another, fed by the result of `input`, as a
// graph of its own; `input` -1: from the beginning. Its result is that of `output`; -1: the graph's
// own.
Graph piece_of(const Graph& graph, size_t from, size_t to, NodeId input, NodeId output);

class PrefixRunner {
 public:
  // For one thread. The split is cut to its first `rows` rows. Without `losses` those of scores may
  // be left at 0, where hits alone are faster.
  PrefixRunner(const Graph& graph, const QuantizeSpace& space, const Dataset& dataset,
               const Split& split, int64_t rows, int64_t batch_size, bool losses = true);

  // What programs of the whole network give on these rows. Points that follow each other and differ
  // in the last piece alone are computed together.
  std::vector<Score> run(std::span<const Point> points);
  Score run(const Point& point) { return run(std::span(&point, 1))[0]; }

  // How many points in the order of an exhaustive search differ in the last piece alone.
  int64_t at_once() const;
  size_t pieces() const { return pieces_.size(); }
  size_t computed() const { return computed_; }  // pieces that were run, of all runs

 private:
  struct Piece {
    size_t from = 0, to = 0;  // places in the graph's order
    NodeId input = -1, output = -1;
    std::vector<size_t> parameters = {};  // of the space, that belong to its layers
    std::map<std::vector<double>, Program> programs = {};
    // Configurations by what they make of the piece: those with equal numbers compute the same.
    std::map<std::vector<double>, int> identities = {};
    std::map<std::pair<std::vector<double>, std::vector<uint32_t>>, int> contents = {};
    std::vector<double> last = {};  // the configuration that `result` is of
    bool known = false;
    Tensor result = {};
    // Earlier results, by the configurations of this piece and all before it.
    std::map<std::vector<double>, Tensor> results = {};
  };
  using Key = std::vector<double>;
  void join_pieces();
  static Key key_of(const std::vector<size_t>& parameters, const Point& point);
  int64_t batch_of_rows() const;
  Graph configured(const Point& point) const;
  Program& program(Piece& piece, const Key& key, const Point& point, bool is_last);
  int identity(Piece& piece, const Point& point);
  Tensor results_before(size_t piece, const Point& point);
  static void keep(Piece& piece, const Key& so_far);
  void run_last(std::span<const Point> points, Score* scores);
  void run_last_layer(const Point& prefix, std::span<const LastLayer::Group> groups);

  const Graph& graph_;
  const QuantizeSpace& space_;
  const Dataset& dataset_;
  Split rows_;
  int64_t batch_size_;
  bool losses_;
  std::vector<Piece> pieces_;
  std::optional<LastLayer> last_layer_;
  std::vector<size_t> data_parameters_;  // of the last layer's own: those that its data depend on
  std::map<std::vector<int>, std::map<int, Score>> scores_;  // by identities of pieces, the last's
  std::map<Key, std::optional<LastLayer::Variant>> variants_;
  size_t computed_ = 0;
  size_t program_bytes_ = 0;
};

}  // namespace mase::search
