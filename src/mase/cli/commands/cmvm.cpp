// SPDX-License-Identifier: Apache-2.0
// ch cmvm: a constant matrix-vector product as shared additions.
#include <chrono>

#include "mase/base/file.h"
#include "mase/cli/command.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase::cmvm_command {
namespace {

int run(const Arguments& arguments) {
  for (const std::string& path : arguments["files"].as_string_list()) {
    const CmvmProblem problem = cmvm_from_text(read_text_file(path), path);
    const auto started = std::chrono::steady_clock::now();
    const AdderGraph graph =
        solve_cmvm(problem, {.effort = static_cast<int>(arguments["effort"].as_int()),
                             .seed = static_cast<uint64_t>(arguments["seed"].as_int()),
                             .delay_weight = arguments["delay_weight"].as_double()});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (const std::string fault = check_cmvm(problem, graph); !fault.empty())
      MASE_CHECK(false, "{}: {}", path, fault);
    fmt::print("{}: {} adders, {} bits, {:.0f} levels, linear forms = W, {:.3f} s\n", path,
               graph.adders.size(), graph.bits, graph.arrival, seconds);
  }
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "cmvm",
    .group = CommandGroup::hardware,
    .summary = "Build constant matrix-vector products from shared additions",
    .help = "A file has the numbers of inputs and outputs, the lowest and highest value of each "
            "input, then the matrix by inputs. Bits are those of all carry chains, from the higher "
            "lowest bit of the operands to the top of the result.",
    .positionals = {{"files", "matrices", true, true}},
    .options = {{{.name = "effort",
                  .type = FieldType::integer,
                  .default_value = 1,
                  .help = "of the search: each step doubles it; 0: one try",
                  .minimum = 0,
                  .maximum = 10},
                 {.name = "seed",
                  .type = FieldType::integer,
                  .default_value = 0,
                  .help = "of the restarts",
                  .minimum = 0},
                 {.name = "delay_weight",
                  .type = FieldType::number,
                  .default_value = 0,
                  .help = "how much a late result counts against one of more bits; 0: bits alone "
                          "(ch emit tries 8 and 12)",
                  .minimum = 0,
                  .maximum = 1000}}},
    .examples = {"ch cmvm tests/golden/hardware/w4_toy.1.txt",
                 "ch cmvm tests/golden/hardware/w4_toy.1.txt --effort 0",
                 "ch cmvm tests/golden/hardware/w4_toy.1.txt --effort 2"},
    .run = run,
}};

}  // namespace
}  // namespace mase::cmvm_command
