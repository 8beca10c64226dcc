// SPDX-License-Identifier: Apache-2.0
// One function four times: the engine, the interpreter, the emitted C++ compiled, and the emitted
// SystemVerilog simulated give the same outputs on every row, for the jet networks in every kind of
// format and for drawn networks; and a fault planted anywhere is seen by the check that should.
// Compilers and simulators are no part of what sanitizers look at: under them one format of each
// kind goes that far. MASE_LONG_TESTS=1 takes all networks through all four, and every row of the
// fixtures in the folder MASE_HARDWARE_FIXTURES.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "hardware/fixtures.h"
#include "hardware/variants.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/tools/tool.h"
#include "mase/models/sequential.h"
#include "mase/run/hardware/hardware.h"

namespace mase::test::equality_test {
namespace {

bool long_tests() { return std::getenv("MASE_LONG_TESTS") != nullptr; }

// A batch norm that has seen data: statistics and scales of its own.
void disturb(Graph& graph, uint64_t seed) {
  Random random(seed, "network");
  for (auto& [path, module] : graph.modules()) {
    for (TensorTable* table : {&module.parameters, &module.buffers})
      for (auto& [name, tensor] : *table) {
        if (tensor.dtype() != DType::f32) continue;
        float* const values = tensor.mutable_data<float>();
        for (int64_t i = 0; i < tensor.numel(); ++i) {
          if (name == "running_var") values[i] = static_cast<float>(random.uniform(0.5, 2));
          if (name == "running_mean") values[i] = static_cast<float>(random.normal() * 0.3);
          if (module.op == "linear") values[i] *= 2;
        }
      }
  }
}

HardwareNetwork hardware_of(Graph graph) {
  HardwareNetwork result;
  result.lowered = lower(graph);
  result.network = std::move(graph);
  result.origin = "test";
  return result;
}

// Emits with these rows and says how many rows of the simulation differ.
void expect_same_everywhere(const HardwareNetwork& network, const Compared& compared,
                            const DesignOptions& options,
                            const std::vector<std::string>& simulators) {
  const Design design = make_design(network.lowered.graph, options);
  const DesignRows rows = rows_of(design.graph, compared.inputs, compared.origin);
  ASSERT_EQ(rows.outputs, IntegerProgram(network.lowered.graph).run(compared.inputs));
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, rows, {}));
  for (const std::string& simulator : simulators) {
    if (simulator != "cpp" && !tool_exists(simulator)) continue;
    const Simulation result = simulate_folder(folder, simulator, "");
    EXPECT_EQ(result.mismatches, 0) << simulator << "\n" << result.output;
    EXPECT_EQ(result.rows,
              static_cast<int64_t>(compared.inputs.size() / network.lowered.graph.inputs.size()));
  }
}

std::vector<std::string> simulators_for(const std::string& model, const std::string& variant) {
  if (long_tests())
    return {"cpp", model == "jsc-10x" || model == "jsc-s" ? "iverilog" : "verilator"};
  if (model == "jsc-tiny" || (sanitized && variant != "6/3" && variant != "minifloat")) return {};
  return {"cpp", "iverilog"};
}

class Variants : public testing::TestWithParam<std::string> {};

TEST_P(Variants, engine_integers_cpp_and_verilog_agree) {
  std::vector<std::string> models = {"jsc-tiny", "jsc-toy"};
  if (long_tests()) models.insert(models.end(), {"jsc-10x", "jsc-s"});
  for (const std::string& model : models) {
    Graph original = make_model(model);
    disturb(original, 11);
    const HardwareNetwork network = hardware_of(in_variant(original, GetParam()));
    const HardwareSpec spec{.rows = long_tests() ? 20000 : sanitized ? 100 : 300, .seed = 5};
    const Compared compared = compare_with_engine(network, spec);
    ASSERT_TRUE(compared.engine);
    const bool large = model == "jsc-10x" || model == "jsc-s";
    expect_same_everywhere(network, compared, {.effort = large || sanitized ? 0 : 1},
                           simulators_for(model, GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(hardware, Variants, testing::ValuesIn(variant_names()));

// Networks nobody thought of: sizes, formats, weights at the ends of their formats and on ties.
RC_GTEST_PROP(drawn_networks, engine_and_integers_agree, ()) {
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000000);
  const int64_t inputs = *rc::gen::inRange<int64_t>(1, 10);
  const int layers = *rc::gen::inRange(1, 4);
  const std::string variant = *rc::gen::elementOf(variant_names());
  Sequential builder("drawn", {.sample_shape = {inputs}, .outputs = 3, .seed = seed}, {inputs}, 3);
  for (int layer = 0; layer < layers; ++layer) {
    builder.linear(*rc::gen::inRange<int64_t>(1, 9));
    if (*rc::gen::arbitrary<bool>()) builder.relu();
  }
  Graph graph = builder.finish();
  Random random(seed, "weights");
  for (auto& [path, module] : graph.modules())
    for (auto& [name, tensor] : module.parameters)
      for (int64_t i = 0; i < tensor.numel(); ++i) {
        const uint64_t kind = random.below(8);
        float& value = tensor.mutable_data<float>()[i];
        if (kind == 0) value = 100;
        if (kind == 1) value = -100;
        if (kind == 2) value = 0;
        if (kind == 3)
          value = static_cast<float>(random.below(33)) / 16 - 1;  // ties of many formats
        if (kind > 5) value = static_cast<float>(random.normal());
      }
  const HardwareNetwork network = hardware_of(in_variant(graph, variant, seed));
  const Compared compared =
      compare_with_engine(network, {.rows = sanitized ? 20 : 200, .seed = seed});
  RC_ASSERT(compared.engine);
  const std::vector<int64_t> wanted = IntegerProgram(network.lowered.graph).run(compared.inputs);
  for (const double levels : {0.0, 16.0}) {
    if (sanitized && levels != (seed % 2 == 0 ? 0.0 : 16.0)) continue;
    const Design design = make_design(network.lowered.graph, {.effort = 0, .levels = levels});
    RC_ASSERT(IntegerProgram(design.graph).run(compared.inputs) == wanted);
    RC_ASSERT(interpret_reference(design.graph, compared.inputs) == wanted);
  }
}

// ---- planted faults: each is seen, and by whom.

HardwareNetwork toy_network() {
  Graph original = make_model("jsc-toy");
  disturb(original, 3);
  return hardware_of(in_variant(original, "6/3"));
}

std::string fault_of(const HardwareNetwork& network) {
  try {
    compare_with_engine(network, {.rows = 400, .seed = 2});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

size_t first_node(const IntegerGraph& graph, const std::string& op, const std::string& layer) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op->name == op && graph.nodes[i].layer >= 0 &&
        graph.layers[static_cast<size_t>(graph.nodes[i].layer)] == layer)
      return i;
  ADD_FAILURE() << "no " << op << " in " << layer;
  return 0;
}

TEST(planted_faults, the_comparison_names_the_layer) {
  EXPECT_EQ(fault_of(toy_network()), "");
  {
    HardwareNetwork wrong = toy_network();  // a wrong rounding
    IntegerGraph& graph = wrong.lowered.graph;
    graph.nodes[first_node(graph, "round_even", "seq_blocks_5")].op = &integer_op("floor");
    EXPECT_THAT(fault_of(wrong), testing::HasSubstr("seq_blocks_5"));
  }
  {
    HardwareNetwork wrong = toy_network();  // a flipped sign
    IntegerGraph& graph = wrong.lowered.graph;
    int64_t& factor = graph.nodes[first_node(graph, "linear_sum", "seq_blocks_8")].numbers.back();
    factor = -factor;
    EXPECT_THAT(fault_of(wrong), testing::HasSubstr("seq_blocks_8"));
  }
  {
    HardwareNetwork wrong = toy_network();  // a dropped bit
    IntegerGraph& graph = wrong.lowered.graph;
    graph.nodes[first_node(graph, "clamp", "seq_blocks_5")].numbers[1] /= 2;
    EXPECT_THAT(fault_of(wrong), testing::HasSubstr("seq_blocks_5"));
  }
}

// The other networks of the fixtures, and all their rows.
TEST(fixtures, every_row_in_cpp_and_verilog) {
  const char* const folder = std::getenv("MASE_HARDWARE_FIXTURES");
  if (!long_tests() || !folder) GTEST_SKIP() << "MASE_LONG_TESTS and MASE_HARDWARE_FIXTURES say so";
  for (const char* name : {"w4_toy", "hgq_64_32_32_small", "hgq_small_hil", "w8_64_32_32"}) {
    const Fixture fixture = read_fixture(folder, name);
    const HardwareNetwork network = hardware_of(fixture.network);
    const IntegerGraph& plain = network.lowered.graph;
    std::vector<int64_t> wanted = fixture.outputs;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const size_t o = i % plain.outputs.size();
      const int frac = fixture.fracs.size() == 1 ? fixture.fracs[0] : fixture.fracs[o];
      wanted[i] >>= frac - plain.at(plain.outputs[o]).frac;
    }
    EXPECT_EQ(IntegerProgram(plain).run(fixture.inputs), wanted) << name;
    expect_same_everywhere(network, {fixture.inputs, "vectors", true}, {}, {"cpp", "verilator"});
  }
}

}  // namespace
}  // namespace mase::test::equality_test
