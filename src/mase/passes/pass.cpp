// SPDX-License-Identifier: Apache-2.0
// The pass manager: reads lists of passes, checks all their arguments before the first one runs,
// runs them, verifies the graph after each and times it.
#include "mase/passes/pass.h"

#include <chrono>
#include <utility>

namespace mase {
namespace {

const Registry<PassRecord>& registry() { return Registry<PassRecord>::instance(); }

// One entry of [[passes.run]]: its name, and everything else as arguments.
PassCall listed_call(const Value& entry, const std::string& path) {
  if (!entry.is_dict())
    throw Error(entry.position(), path, fmt::format("expected a table, got {}", entry.type_name()));
  const Value* name = entry.as_dict().find("name");
  if (!name)
    throw Error(entry.position(), path, "'name' is missing", "give the pass to run here")
        .as(Mistake::missing_key);
  Dict args = entry.as_dict();
  args.erase("name");
  PassCall call{name->as_string(path + ".name"), Value(std::move(args)), path};
  call.args.set_position(entry.position());
  return call;
}

// The record's schema, then its own rules, which may look at the graph.
PreparedCall prepare(const PassRecord& record, const PassCall& call, const Graph& graph,
                     Problems& problems) {
  const size_t before = problems.errors().size();
  PreparedCall prepared{call, validate(call.args, record.schema, call.path, problems), {}};
  if (problems.errors().size() != before) return prepared;
  if (record.check) record.check(graph, prepared.args, call.path, problems);
  if (record.plan) prepared.plan = record.plan(graph, prepared.args, call.path, problems);
  return prepared;
}

PassOutcome run_call(Graph& graph, PreparedCall prepared, PassContext& context) {
  const PassRecord& record = registry().get(prepared.call.name, prepared.call.path);
  const auto start = std::chrono::steady_clock::now();
  PassOutcome outcome{record.name, {}, 0};
  std::any outer = std::exchange(context.plan, std::move(prepared.plan));  // passes may run passes
  outcome.result = record.run(graph, prepared.args, context);
  context.plan = std::move(outer);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  try {
    verify(graph);
  } catch (const Error& error) {  // a pass that leaves a bad graph behind is our mistake
    MASE_CHECK(false, "pass '{}' broke the graph: {}", record.name, error.what());
  }
  return outcome;
}

PreparedCall prepare_one(const Graph& graph, const PassCall& call) {
  Problems problems;
  PreparedCall prepared = prepare(registry().get(call.name, call.path), call, graph, problems);
  problems.throw_if_any();
  return prepared;
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

std::vector<PreparedCall> prepare_passes(const Graph& graph, const std::vector<PassCall>& calls) {
  std::vector<PreparedCall> prepared;
  Problems problems;
  for (const PassCall& call : calls) {
    const PassRecord* record = registry().find(call.name);
    if (!record) {
      problems.add(Error(call.args.position(), call.path,
                         fmt::format("unknown pass '{}'", printable(call.name)),
                         suggestion(call.name, registry().names()))
                       .as(Mistake::unknown_name));
      continue;
    }
    try {
      prepared.push_back(prepare(*record, call, graph, problems));
    } catch (const Error& error) {
      problems.add(error);
    }
  }
  problems.throw_if_any();
  return prepared;
}

std::vector<PassOutcome> run_passes(Graph& graph, std::vector<PreparedCall> calls,
                                    PassContext& context) {
  // Comparisons need the graph as it was; a caller who kept none gets this one's.
  const Graph before = graph;
  PassContext inner = context;
  if (!inner.original) inner.original = &before;
  std::vector<PassOutcome> outcomes;
  bool changed = false;
  for (PreparedCall& prepared : calls) {
    if (changed) prepared = prepare_one(graph, prepared.call);
    outcomes.push_back(run_call(graph, std::move(prepared), inner));
    changed = changed || outcomes.back().result.changed;
  }
  return outcomes;
}

std::vector<PassOutcome> run_passes(Graph& graph, const std::vector<PassCall>& calls,
                                    PassContext& context) {
  return run_passes(graph, prepare_passes(graph, calls), context);
}

PassResult run_pass(Graph& graph, const std::string& name, const Value& args,
                    PassContext& context) {
  return run_call(graph, prepare_one(graph, {name, args, name}), context).result;
}

}  // namespace mase
