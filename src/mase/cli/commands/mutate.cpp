// SPDX-License-Identifier: Apache-2.0
// ch mutate: tests ch verify by planting faults.
#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/cli/terminal.h"
#include "mase/hardware/prove/mutants.h"

namespace mase::mutate_command {
namespace {

int run(const Arguments& arguments) {
  const std::string folder = arguments["folder"].as_string();
  const int64_t count = arguments["faults"].as_int();
  MutationReport report;
  {
    LiveLine live;
    int64_t done = 0;
    report = plant_faults(folder, count, static_cast<uint64_t>(arguments["seed"].as_int()),
                          [&](const Mutant&) {
                            ++done;
                            if (live.due())
                              live.draw(fmt::format("{} of {} faults planted", done, count));
                          });
  }
  Table table({"Fault", "Planted", "Refused"});
  for (const auto& [kind, counts] : report.kinds)
    table.add({kind, std::to_string(counts.second), std::to_string(counts.first)});
  fmt::print("{}\n{} of {} faults refused; {} change nothing, by the SAT solver of Yosys\n",
             table.str(), report.refused, report.planted, report.equivalent);
  for (const Mutant& mutant : report.survivors)
    fmt::print("{}.sv:{}: {}\n  accepted as: {}\n", mutant.module, mutant.line, mutant.before,
               mutant.after);
  if (!report.survivors.empty())
    throw Error(folder,
                fmt::format("{} faults were accepted and not shown to change nothing",
                            report.survivors.size()),
                "tell us of the lines above: the check has a hole, or the solver had too little "
                "time");
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "mutate",
    .group = CommandGroup::hardware,
    .summary = "Plant faults in an emitted design and count how many ch verify refuses",
    .help = "One fault at a time: another operator, a bit of a constant, a slice one bit beside, "
            "another wire of the same width, a lost inversion, the other clock edge. Faults that "
            "are accepted are held to the module by the SAT solver of Yosys: what it proves to "
            "change nothing counts apart, everything else is shown and is an error.",
    .positionals = {{"folder", "the folder that ch emit wrote"}},
    .options = {{{.name = "faults",
                  .type = FieldType::integer,
                  .default_value = 100,
                  .help = "how many",
                  .minimum = 1,
                  .maximum = 1000000},
                 {.name = "seed",
                  .type = FieldType::integer,
                  .default_value = 0,
                  .help = "of the choice among all that could be planted",
                  .minimum = 0}}},
    .examples = {"ch mutate mase_output/hardware", "ch mutate mase_output/hardware --faults 1000",
                 "ch mutate mase_output/hardware --seed 1"},
    .run = run,
}};

}  // namespace
}  // namespace mase::mutate_command
