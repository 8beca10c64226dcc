// SPDX-License-Identifier: Apache-2.0
// The pass manager: reads lists of passes, checks all their arguments before the first one runs,
// runs them, verifies the graph after each and times it.
#include "mase/passes/pass.h"

#include <chrono>

namespace mase {
namespace {

const Registry<PassRecord>& registry() { return Registry<PassRecord>::instance(); }

// One entry of [[passes.run]]: its name, and everything else as arguments.
PassCall listed_call(const Value& entry, const std::string& path) {
  if (!entry.is_dict())
    throw Error(entry.position(), path, fmt::format("expected a table, got {}", entry.type_name()));
  const Value* name = entry.as_dict().find("name");
  if (!name) throw Error(entry.position(), path, "'name' is missing", "give the pass to run here");
  Dict args = entry.as_dict();
  args.erase("name");
  PassCall call{name->as_string(path + ".name"), Value(std::move(args)), path};
  call.args.at(entry.position());
  return call;
}

// The record's schema, then its own rules, which may look at the graph.
Value checked(const PassRecord& record, const PassCall& call, const Graph& graph,
              Problems& problems) {
  const size_t before = problems.errors().size();
  Value args = validate(call.args, record.schema, call.path, problems);
  if (record.check && problems.errors().size() == before)
    record.check(graph, args, call.path, problems);
  return args;
}

PassOutcome run_call(Graph& graph, const PassCall& call, PassContext& context) {
  const PassRecord& record = registry().get(call.name, call.path);
  Problems problems;
  const Value args = checked(record, call, graph, problems);
  problems.throw_if_any();
  const auto start = std::chrono::steady_clock::now();
  PassOutcome outcome{record.name, {}, 0};
  outcome.result = record.run(graph, args, context);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  try {
    verify(graph);
  } catch (const Error& error) {  // a pass that leaves a bad graph behind is our mistake
    MASE_CHECK(false, "pass '{}' broke the graph: {}", record.name, error.what());
  }
  return outcome;
}

}  // namespace

std::vector<PassCall> pass_calls(const Value& passes, const std::string& path) {
  std::vector<PassCall> calls;
  if (passes.is_null()) return calls;
  if (!passes.is_dict())
    throw Error(passes.position(), path,
                fmt::format("expected a table of passes, got {}", passes.type_name()));
  Problems problems;
  for (const auto& [name, value] : passes.as_dict()) {
    const std::string inner = path.empty() ? name : path + "." + name;
    if (name == "run" && value.is_list()) {
      for (size_t i = 0; i < value.as_list().size(); ++i) {
        try {
          calls.push_back(listed_call(value.as_list()[i], fmt::format("{}[{}]", inner, i)));
        } catch (const Error& error) {
          problems.add(error);
        }
      }
      continue;
    }
    if (!value.is_dict() && !value.is_null()) {
      problems.add(Error(value.position(), inner,
                         fmt::format("expected a table of arguments, got {}", value.type_name()),
                         fmt::format("write [{}] above the pass's arguments", inner)));
      continue;
    }
    calls.push_back({name, value, inner});
  }
  problems.throw_if_any();
  return calls;
}

void check_passes(const Graph& graph, const std::vector<PassCall>& calls) {
  Problems problems;
  for (const PassCall& call : calls) {
    const PassRecord* record = registry().find(call.name);
    if (!record) {
      problems.add(Error(call.args.position(), call.path,
                         fmt::format("unknown pass '{}'", printable(call.name)),
                         suggestion(call.name, registry().names())));
      continue;
    }
    try {
      checked(*record, call, graph, problems);
    } catch (const Error& error) {
      problems.add(error);
    }
  }
  problems.throw_if_any();
}

std::vector<PassOutcome> run_passes(Graph& graph, const std::vector<PassCall>& calls,
                                    PassContext& context) {
  check_passes(graph, calls);
  // Comparisons need the graph as it was; a caller who kept none gets this one's.
  const Graph before = graph;
  PassContext inner = context;
  if (!inner.original) inner.original = &before;
  std::vector<PassOutcome> outcomes;
  for (const PassCall& call : calls) outcomes.push_back(run_call(graph, call, inner));
  return outcomes;
}

PassResult run_pass(Graph& graph, const std::string& name, const Value& args,
                    PassContext& context) {
  return run_call(graph, {name, args, name}, context).result;
}

}  // namespace mase
