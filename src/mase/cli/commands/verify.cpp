// SPDX-License-Identifier: Apache-2.0
// ch verify: proves the modules of an emitted design from its folder alone.
#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/hardware/prove/certificate.h"

namespace mase::verify_command {
namespace {

std::string result_text(const ReadBack& proof) {
  if (!proof.fault.empty()) return "REFUSED";
  return proof.proved() ? "proved for all inputs"
                        : fmt::format("{} too wide to prove", proof.skipped.size());
}

int run(const Arguments& arguments) {
  const std::string folder = arguments["folder"].as_string();
  const std::vector<CheckedModule> modules = check_folder(folder);
  Table table({"Module", "Nodes", "Sums (affine forms)", "Functions (all values)", "Wires (bits)",
               "Result"});
  const CheckedModule* wrong = nullptr;
  for (const CheckedModule& module : modules) {
    table.add({module.module, std::to_string(module.nodes), std::to_string(module.proof.sums),
               std::to_string(module.proof.functions), std::to_string(module.proof.wires),
               result_text(module.proof)});
    if (!module.proof.fault.empty() && !wrong) wrong = &module;
  }
  fmt::print("{}\n", table.str());
  if (wrong)
    throw Error(fmt::format("{}/rtl/{}.sv", folder, wrong->module),
                "is not the graph of its certificate: " + wrong->proof.fault);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "verify",
    .group = CommandGroup::hardware,
    .summary = "Prove what an emitted design's modules compute, from its folder alone",
    .help =
        "Yosys reads each module that certificate.json names, and it is proved to be the graph "
        "that stands there, for all inputs: sums by their affine forms, other operations for all "
        "values of their operands or as functions of their bits, wires, registers, ports and clock "
        "cycles bit by bit. What the operations mean is said by the library's own records; the "
        "optimiser and what wrote the text take no part. That this graph is the network was "
        "checked when it was emitted, and is not checked again here. Of stream designs these are "
        "the sums and functions; how they wait for one another, buffers, and what multiplies by "
        "weights from a memory is compared by ch simulate.",
    .positionals = {{"folder", "the folder that ch emit wrote"}},
    .examples = {"ch verify mase_output/hardware"},
    .run = run,
}};

}  // namespace
}  // namespace mase::verify_command
