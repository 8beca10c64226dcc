// SPDX-License-Identifier: Apache-2.0
// What is searched over, for networks. A part gives parameters of its own and says what a network
// becomes with them: number formats, channels, pruning, options of training. The parts named by a
// file are put together into one space. Kinds of parts are records, one file each in spaces/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/ir/graph.h"
#include "mase/search/study/space.h"

namespace mase::search {

// A network of the search, and what else its configuration says.
struct Candidate {
  Graph graph;
  Dict training = {};  // options of training that it has instead of the search's own
};

// What a candidate will go through: parts may prepare it.
struct CandidateUse {
  bool trained = false;    // it is trained before it is measured
  bool warm_start = true;  // from the network's weights; false: from new ones
  uint64_t seed = 0;
};

class QuantizeSpace;

class SpacePart {
 public:
  virtual ~SpacePart() = default;
  const Space& space() const { return space_; }
  // Itself, if it is about number formats alone: those share work (evaluator.h).
  virtual const QuantizeSpace* formats() const { return nullptr; }

  // Points here are of this part's own space.
  virtual void apply(const Point& point, const CandidateUse& use, Candidate& candidate) const = 0;
  // {node: {config: {key: value}}}, as MASE keeps it.
  virtual Dict sampled_config(const Point& point) const = 0;
  // [[passes.run]] of a file for ch transform: what makes the network from the original one.
  virtual List passes(const Point&) const { return {}; }
  // What is to be told of seeds of the file that have no effect.
  const std::vector<std::string>& unused() const { return unused_; }

 protected:
  Space space_;
  std::vector<std::string> unused_;
};

struct SpaceSetup {
  const Graph& graph;
  const Value& seed;  // [search.search_space.seed]
  std::string by;     // name, type, regex_name
  std::string path;   // of the seed, for messages
};

struct SpaceRecord {
  static constexpr const char* kind = "search space";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  // A key of a layer's config that only this kind has: files that call their space by a name of
  // their own are recognised by it. Empty: none.
  std::string telling_key = {};
  // Keys that the config of a layer may have, whatever the network.
  std::function<std::vector<std::string>()> keys;
  std::function<std::unique_ptr<SpacePart>(const SpaceSetup& setup, Problems& problems)> make;
};

// Tables and keys of a seed that no space reads, for any network. Seeds that are not used may be
// those of another space.
void check_seed_keys(const Value& seed, const std::string& path, Problems& problems);

// The parts' parameters one after the other.
class CandidateSpace {
 public:
  explicit CandidateSpace(std::vector<std::unique_ptr<SpacePart>> parts);

  const Space& space() const { return space_; }
  const std::vector<std::unique_ptr<SpacePart>>& parts() const { return parts_; }

  Candidate candidate(const Graph& graph, const Point& point, const CandidateUse& use) const;
  Value sampled_config(const Point& point) const;
  List passes(const Point& point) const;
  std::vector<std::string> unused() const;

 private:
  Point own(size_t part, const Point& point) const;

  std::vector<std::unique_ptr<SpacePart>> parts_;
  std::vector<size_t> first_;  // parameter of each part
  Space space_;
};

// One layer that a seed names, and its table.
struct SeededNode {
  NodeId node = -1;
  Value config;
  std::string path;      // of the table
  bool by_name = false;  // the file names this very layer
};

// The layers of the graph that the seed means, by name, by type or by expression; those that no
// table names take `default`. `takes` says which layers such a space is about: one that is named
// and is not is a problem, told with `about`.
std::vector<SeededNode> seeded_nodes(const SpaceSetup& setup,
                                     const std::function<bool(const Node& node)>& takes,
                                     const std::string& about, std::vector<std::string>& unused,
                                     Problems& problems);

// A list of values; a single value stands for a list of one. Repetitions are left out.
List choices_of(const Value& value);

}  // namespace mase::search
