// SPDX-License-Identifier: Apache-2.0
// What proposes the next configuration. A sampler is one file in samplers/ that registers one
// record. A suggestion is a function of the seed, the trial's number and the history it may see,
// and of nothing else: not of the clock, the threads or what the sampler was asked before, so a
// search can be repeated and resumed. What a sampler keeps between calls is a cache.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/base/random.h"
#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/search/study/trial.h"

namespace mase::search {

struct Request {
  uint64_t seed = 0;
  int64_t number = 0;    // of the trial to be
  size_t visible = 0;    // trials before this one are seen with their results; of later ones only
                         // which configurations they try
  bool repeats = false;  // a configuration may be proposed again
};

struct Suggestion {
  Point point;
  Dict system_attributes = {};  // what the sampler wants to find again in the trial
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Suggestion suggest(const Trials& trials, const Request& request) = 0;
};

struct SamplerSetup {
  const Space* space = nullptr;
  size_t objectives = 1;
  int64_t trials = -1;  // planned in all; -1: as many as there are configurations
  // So many that follow each other in the order of the space are measured in one go: an exhaustive
  // search keeps them together.
  int64_t together = 1;
};

struct SamplerRecord {
  static constexpr const char* kind = "sampler";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  Schema schema = {};
  bool independent = false;  // what it suggests does not depend on results
  bool exhaustive = false;   // it goes through the whole space
  // Why it cannot search this space with so many objectives; nothing if it can.
  std::function<std::optional<std::string>(const SamplerSetup& setup)> refuses = {};
  std::function<std::unique_ptr<Sampler>(const Value& options, const SamplerSetup& setup)> make;
};

// Names are compared without case: "TPE" is "tpe".
const SamplerRecord& find_sampler(const std::string& name, const std::string& place);

// Evenly over the space: every value of a parameter that exists is as likely as its share of the
// line.
Point random_point(const Space& space, Random& random);
// Trial `number` of a start with so many: in each parameter they fall into as many equal parts of
// the line, one each, so that few trials see all of it (Latin hypercube: McKay et al., 1979).
Point stratified_point(const Space& space, uint64_t seed, int64_t number, int64_t count);
// The point, or if it was tried before, one near it that was not: first with one parameter changed,
// then any. The space must have one.
Point untried(const Trials& trials, const Request& request, Point wish, Random& random);
// Draws until a point is new, and takes the last one elsewhere if none is.
Point first_untried(const Trials& trials, const Request& request, Random& random,
                    const std::function<Point()>& draw, int attempts = 16);

// Children of parameters that changed must exist or not accordingly: fills in at random, removes.
void complete_point(const Space& space, Point& point, Random& random);

}  // namespace mase::search
