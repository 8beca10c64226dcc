// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/prove/certificate.h"

#include <algorithm>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/hardware/emit/design_folder.h"
#include "mase/hardware/tools/tool.h"

namespace mase {
namespace {

constexpr int64_t most_latency = 1 << 16;

EmittedDesign ports_of(const GraphModule& module) {
  EmittedDesign design;
  design.latency = module.latency;
  design.clocked = module.latency > 0;
  design.valid = module.valid;
  for (const IntegerId id : module.graph.inputs)
    design.input_bits += std::max(1, module.graph.at(id).range.width());
  for (const IntegerId id : module.graph.outputs)
    design.output_bits += std::max(1, module.graph.at(id).range.width());
  design.signals = module.signals;
  return design;
}

}  // namespace

Value certificate_of(const std::vector<GraphModule>& modules) {
  List list;
  for (const GraphModule& module : modules)
    list.push_back(Dict{{"module", module.name},
                        {"latency_cycles", module.latency},
                        {"valid", module.valid},
                        {"target", module.target},
                        {"graph", to_text(module.graph)},
                        {"signals", Value::of(module.signals)}});
  return Dict{{"modules", std::move(list)}};
}

std::vector<GraphModule> certificate_from(const Value& certificate, const std::string& place) {
  std::vector<GraphModule> modules;
  const auto refuse = [&](const std::string& cause) {
    throw Error(place, cause, "emit the design again (ch emit)");
  };
  for (const Value& one : certificate["modules"].as_list("modules")) {
    GraphModule module;
    module.name = one["module"].as_string("module");
    if (!is_module_name(module.name))
      refuse(fmt::format("'{}' is no name of a module", printable(module.name)));
    const int64_t latency = one["latency_cycles"].as_int("latency_cycles");
    if (latency < 0 || latency > most_latency)
      refuse(fmt::format("latency_cycles of {} is {}", module.name, latency));
    module.latency = static_cast<int>(latency);
    module.valid = one["valid"].as_bool("valid");
    module.target = one["target"].as_string("target");
    module.graph = integer_graph_from_text(one["graph"].as_string("graph"), place);
    verify(module.graph);
    for (const Value& name : one["signals"].as_list("signals"))
      module.signals.push_back(name.as_string("signals"));
    if (module.signals.size() != module.graph.nodes.size())
      refuse(fmt::format("{} has {} signals for {} nodes", module.name, module.signals.size(),
                         module.graph.nodes.size()));
    modules.push_back(std::move(module));
  }
  if (modules.empty()) refuse("names no module");
  return modules;
}

std::vector<CheckedModule> check_modules(const std::vector<GraphModule>& modules,
                                         const std::string& folder) {
  require_tool("yosys");
  std::vector<CheckedModule> results;
  for (const GraphModule& module : modules) {
    CheckedModule result{module.name, module.graph.nodes.size(), {}};
    try {
      result.proof = read_back(module.graph, ports_of(module),
                               module_netlist(folder, module.name, module.target));
    } catch (const Error& error) {
      if (error.cause() == "was interrupted") throw;
      result.proof.fault = error.what();
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<CheckedModule> check_folder(const std::string& folder) {
  const std::string place = (std::filesystem::path(folder) / "certificate.json").string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(place, ignored))
    throw Error(folder.empty() ? "." : folder, "has no certificate.json",
                "emit the design again (ch emit); those of earlier versions have none");
  return check_modules(certificate_from(read_json(place), place), folder);
}

}  // namespace mase
