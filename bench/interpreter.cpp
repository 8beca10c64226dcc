// SPDX-License-Identifier: Apache-2.0
// Rows a second of the interpreter of integer graphs, on one core: the graph as it is lowered, and
// as optimisers left it. A network that quantises itself needs no configuration.
//
//   bench_interpreter NETWORK.mz [CONFIG.toml] [ROWS]
#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "mase/base/value.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/run/hardware/hardware.h"

namespace mase {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(const char* what, const IntegerGraph& graph, const std::vector<int64_t>& codes,
             size_t rows) {
  const IntegerProgram program(graph);
  double wide = 1e9, narrow = 1e9;
  for (int i = 0; i < 15; ++i) {
    const double start = processor_seconds();
    const std::vector<int64_t> results = program.run(codes);
    wide = std::min(wide, processor_seconds() - start);
  }
  fmt::print("{:<10} {:>6} nodes: {:6.1f} million rows/s", what, graph.nodes.size(),
             static_cast<double>(rows) / wide / 1e6);
  if (program.narrow()) {
    const std::vector<int32_t> in(codes.begin(), codes.end());
    std::vector<int32_t> out(rows * program.outputs());
    for (int i = 0; i < 15; ++i) {
      const double start = processor_seconds();
      program.run(in.data(), rows, out.data());
      narrow = std::min(narrow, processor_seconds() - start);
    }
    fmt::print(", {:6.1f} where codes are 32 bits wide before and behind",
               static_cast<double>(rows) / narrow / 1e6);
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace mase

int main(int count, char** words) {
  using namespace mase;
  if (count < 2) {
    fmt::print(stderr, "bench_interpreter NETWORK.mz [CONFIG.toml] [ROWS]\n");
    return 2;
  }
  try {
    HardwareSpec spec;
    spec.network.load = words[1];
    spec.drawn = true;
    if (count > 2) spec.passes = {pass_calls(read_toml(words[2])["passes"], "passes"), words[2]};
    const size_t rows = count > 3 ? std::strtoull(words[3], nullptr, 10) : 166000;
    const HardwareNetwork network = load_hardware_network(spec);
    const DesignRows drawn = random_rows(network.lowered.graph, rows, 1);
    measure("lowered", network.lowered.graph, drawn.inputs, rows);
    measure("optimised", optimize(network.lowered.graph, {}).graph, drawn.inputs, rows);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_interpreter: {}\n", error.what());
    return 2;
  }
}
