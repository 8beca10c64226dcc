// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/prove/certificate.h"

#include <bit>
#include <filesystem>
#include <set>

#include "mase/base/file.h"
#include "mase/hardware/emit/design_folder.h"
#include "mase/hardware/tools/tool.h"
#include "mase/hardware/verify/token_flow.h"

namespace mase {

Value certificate_of(const std::vector<GraphModule>& modules) {
  List list;
  for (const GraphModule& module : modules) {
    Dict one{{"module", module.name},          {"latency_cycles", module.latency},
             {"valid", module.valid},          {"target", module.target},
             {"graph", to_text(module.graph)}, {"signals", Value::of(module.signals)}};
    if (module.network) one.set("network", to_text(*module.network));
    list.push_back(std::move(one));
  }
  return Dict{{"modules", std::move(list)}};
}

std::vector<CheckedModule> check_modules(const std::vector<ModuleClaim>& claims,
                                         const std::string& folder) {
  require_tool("yosys");
  std::vector<CheckedModule> results;
  for (const ModuleClaim& claim : claims) {
    CheckedModule result{claim.name, claim.graph.nodes.size(), {}};
    try {
      result.proof = check_module(claim, module_netlist(folder, claim.name, claim.target));
    } catch (const Error& error) {
      if (error.cause() == "was interrupted") throw;
      result.proof.fault = error.what();
    }
    results.push_back(std::move(result));
  }
  return results;
}

namespace {

std::string certificate_path(const std::string& folder) {
  const std::string place = (std::filesystem::path(folder) / "certificate.json").string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(place, ignored))
    throw Error(folder.empty() ? "." : folder, "has no certificate.json",
                "emit the design again (ch emit); those of earlier versions have none");
  return place;
}

}  // namespace

std::vector<ModuleClaim> folder_claims(const std::string& folder) {
  const std::string place = certificate_path(folder);
  return module_claims(read_json(place), place);
}

std::optional<CheckedFlow> check_flow(const Value& claimed, const std::string& folder) {
  if (claimed.is_null()) return {};
  require_tool("yosys");
  const std::string place = folder + "/manifest.json";
  const FlowClaim flow = flow_claim(claimed, place);
  for (const FlowStage& stage : flow.stages)
    if (!is_module_name(stage.module)) throw Error(place, "a stage's name is none of a module");
  if (!is_module_name(flow.top)) throw Error(place, "the top's name is none of a module");
  CheckedFlow result;
  const auto note = [&](const std::string& module, const ControlProof& proof) {
    result.states += proof.states;
    if (!proof.fault.empty() && result.fault.empty()) {
      result.module = module;
      result.fault = proof.fault;
    }
    if (!proof.unknown.empty()) result.open.push_back(module + ": " + proof.unknown);
  };
  const auto checked = [&](const std::string& module, const auto& check) {
    try {
      note(module, check());
    } catch (const Error& error) {
      if (error.cause() == "was interrupted") throw;
      note(module, {0, error.what(), ""});
    }
  };
  std::set<int64_t> depths, parts;
  for (const FlowStage& stage : flow.stages) {
    checked(stage.module, [&] {
      return check_stage_control(control_netlist(folder, stage.module, {}), stage.schedule);
    });
    ++result.stages;
    for (const FlowEdge& edge : stage.sources) {
      depths.insert(edge.depth);
      result.queues += edge.parts > 1 ? 2 : 1;
      if (edge.parts == 1) continue;
      depths.insert(2);
      parts.insert(edge.parts);
    }
  }
  for (const int64_t depth : depths)
    checked(depth == 2 ? "skid_buffer" : "fifo", [&] {
      if (depth == 2)
        return check_queue(control_netlist(folder, "skid_buffer", {{"DATA_WIDTH", "2"}}), 2);
      const int bits = std::bit_width(static_cast<uint64_t>(depth - 1));
      return check_queue(control_netlist(folder, "fifo",
                                         {{"DATA_WIDTH", "1"},
                                          {"DEPTH", std::to_string(depth)},
                                          {"INDEX_WIDTH", std::to_string(bits)},
                                          {"LAST", fmt::format("{}'d{}", bits, depth - 1)}}),
                         depth);
    });
  for (const int64_t count : parts)
    checked("elements", [&] {
      const int bits = std::bit_width(static_cast<uint64_t>(count - 1));
      return check_parts(control_netlist(folder, "elements",
                                         {{"DATA_WIDTH", "1"},
                                          {"COUNT", std::to_string(count)},
                                          {"INDEX_WIDTH", std::to_string(bits)},
                                          {"LAST", fmt::format("{}'d{}", bits, count - 1)}}),
                         count);
    });
  checked(flow.top, [&] {
    return ControlProof{0, wiring_fault(flow, control_netlist(folder, flow.top, {})), ""};
  });
  note(flow.top, {0, flow_fault(flow), ""});
  return result;
}

Value folder_flow(const std::string& folder) {
  const Value manifest = read_json((std::filesystem::path(folder) / "manifest.json").string());
  return manifest.is_dict() ? manifest["flow"] : Value{};
}

}  // namespace mase
