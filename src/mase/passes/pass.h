// SPDX-License-Identifier: Apache-2.0
// What a pass is, and the manager that runs lists of them: validates all arguments before anything
// runs, verifies the graph after each pass, times it, and says "unchanged" where it was.
#pragma once

#include <any>
#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/ir/graph.h"

namespace mase {

enum class PassKind { analysis, transform };

// What passes may need from outside. The caller fills in what it has; a pass that needs more than
// it got says so in an Error.
struct PassContext {
  const Graph* original = nullptr;       // the graph before any transform
  Tensor samples = {};                   // calibration inputs, [rows, features...], training order
  Tensor labels = {};                    // of the samples, int32
  Tensor test_x = {}, test_labels = {};  // for accuracies before and after
  std::string save_dir = {};             // where reports go; empty: nothing is written
  std::string base_dir = {};             // relative paths in arguments start here
  int64_t batch_size = 0;                // the caller's; reports print shapes with it
  uint64_t seed = 0;
  int threads = 1;
  std::function<void(const std::string&)> print = {};  // text for the terminal
  std::function<void(double share)> progress = {};
  std::any plan = {};  // of the pass that runs: what its `plan` worked out
};

struct PassResult {
  Value data;            // the pass's info dict, JSON-able
  bool changed = false;  // the graph is not what it was
};

struct PassRecord {
  static constexpr const char* kind = "pass";
  std::string name;
  std::vector<std::string> aliases = {};  // MASE's long names: report_graph_analysis_pass
  PassKind pass_kind = PassKind::analysis;
  std::string summary;
  std::string help = {};
  Schema schema = {};
  // Rules beyond the schema that need the graph (node names, regular expressions). Optional.
  std::function<void(const Graph& graph, const Value& args, const std::string& path,
                     Problems& problems)>
      check = {};
  // Instead of `check`: works out what `run` will do, and finds every problem on the way. `run`
  // gets it in the context, made for the graph it is given. Optional.
  std::function<std::any(const Graph& graph, const Value& args, const std::string& path,
                         Problems& problems)>
      plan = {};
  // What a plan would do, as text: for a dry run. Optional.
  std::function<std::string(const Graph& graph, const std::any& plan)> describe = {};
  std::function<PassResult(Graph& graph, const Value& args, PassContext& context)> run;
  double tolerance = 0;  // largest change of outputs a transform may cause; < 0: any
};

struct PassCall {
  std::string name;
  Value args;
  std::string path;  // where it was written: "passes.quantize"
};

struct PassOutcome {
  std::string name;
  PassResult result;
  double seconds = 0;
};

// The [passes.*] tables of a file in order, or the entries of [[passes.run]].
std::vector<PassCall> pass_calls(const Value& passes, const std::string& path);

// A call whose arguments were found good for a graph.
struct PreparedCall {
  PassCall call;
  Value args;     // validated, defaults filled in
  std::any plan;  // see PassRecord
};
// Throws all problems of all calls.
std::vector<PreparedCall> prepare_passes(const Graph& graph, const std::vector<PassCall>& calls);
// `calls` were prepared for this graph. What an earlier pass changed is prepared again.
std::vector<PassOutcome> run_passes(Graph& graph, std::vector<PreparedCall> calls,
                                    PassContext& context);
std::vector<PassOutcome> run_passes(Graph& graph, const std::vector<PassCall>& calls,
                                    PassContext& context);
PassResult run_pass(Graph& graph, const std::string& name, const Value& args, PassContext& context);

}  // namespace mase
