// SPDX-License-Identifier: Apache-2.0
// ch verify: proves the modules of an emitted design from its folder alone.
#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/hardware/prove/certificate.h"

namespace mase::verify_command {
namespace {

std::string result_text(const ModuleProof& proof) {
  if (!proof.fault.empty()) return "REFUSED";
  return proof.proved() ? "proved for all inputs"
                        : fmt::format("{} too wide to prove", proof.skipped.size());
}

std::string network_text(const SameGraph& network) {
  switch (network.answer) {
    case SameGraph::Answer::same:
      return "proved for all inputs";
    case SameGraph::Answer::different:
      return "REFUSED";
    case SameGraph::Answer::unknown:
      return "not proved";
    case SameGraph::Answer::not_asked:
      break;
  }
  return "";
}

int run(const Arguments& arguments) {
  const std::string folder = arguments["folder"].as_string();
  const std::vector<CheckedModule> modules = check_modules(folder_claims(folder), folder);
  Table table({"Module", "Nodes", "Affine forms", "All values", "Functions of bits", "Wires",
               "Is its graph", "Graph is the network"});
  const CheckedModule* wrong = nullptr;
  std::string open;
  for (const CheckedModule& module : modules) {
    const ModuleProof& proof = module.proof;
    table.add({module.module, std::to_string(module.nodes), std::to_string(proof.sums),
               std::to_string(proof.functions), std::to_string(proof.diagrams),
               std::to_string(proof.wires), result_text(proof), network_text(proof.network)});
    if (!proof.fault.empty() && !wrong) wrong = &module;
    if (!proof.skipped.empty())
      open += fmt::format("{}: too wide to prove: {}\n", module.module, join(proof.skipped, ", "));
    if (proof.network.answer == SameGraph::Answer::unknown)
      open += fmt::format("{}: {}\n", module.module, proof.network.reason);
  }
  fmt::print("{}\n{}", table.str(), open);
  if (const std::optional<CheckedFlow> flow = check_flow(folder_flow(folder), folder)) {
    for (const std::string& one : flow->open) fmt::print("not proved of handshakes: {}\n", one);
    if (!flow->fault.empty() && !wrong)
      throw Error(fmt::format("{}/rtl/{}.sv", folder, flow->module),
                  "does not wait for others as the manifest claims: " + flow->fault);
    if (flow->proved())
      fmt::print(
          "handshakes: {} stages and {} queues in all {} states of their control, and what "
          "connects them: no queue overflows and no row ever stops, whoever stalls: proved\n",
          flow->stages, flow->queues, flow->states);
  }
  if (wrong)
    throw Error(fmt::format("{}/rtl/{}.sv", folder, wrong->module),
                "is not what its certificate claims: " + wrong->proof.fault);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "verify",
    .group = CommandGroup::hardware,
    .summary = "Prove what an emitted design's modules compute, from its folder alone",
    .help =
        "A checker of its own, which shares nothing with what optimised and wrote the design but "
        "the formats of its files: what the operations and the cells of a target mean is said once "
        "more there. Yosys reads each module that certificate.json names, and it is proved to be "
        "the graph that stands there, for all inputs: sums by their affine forms, other operations "
        "for all values of their operands or as functions of their bits (decision diagrams), "
        "wires, "
        "registers, ports and clock cycles bit by bit. The graph, as it was optimised, is proved "
        "to "
        "be the network's own as it was lowered where both come to the same sums of the same "
        "functions; otherwise inputs are shown for which they differ or, where none is found, it "
        "is "
        "said to be not proved: then it was compared on rows when it was emitted, as was that the "
        "lowered graph is the network. Of stream designs the modules are the sums and "
        "functions; how stages wait for one another is proved in every state that their control "
        "can reach, whatever comes when, with the queues and the wires between them: no queue "
        "overflows and no row ever stops. What multiplies by weights from a memory, and what lines "
        "of a plane keep, is compared by ch simulate.",
    .positionals = {{"folder", "the folder that ch emit wrote"}},
    .examples = {"ch verify mase_output/hardware"},
    .run = run,
}};

}  // namespace
}  // namespace mase::verify_command
