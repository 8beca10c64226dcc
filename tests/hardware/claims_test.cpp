// SPDX-License-Identifier: Apache-2.0
// What a design is said to be is refused where it is not: faults planted in the optimiser, in the
// stages of a stream, in ports, in registers and in the valid bit, each through a style of the
// test's own, and no manifest claims more than was done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <regex>

#include "hardware/fixtures.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/tools/tool.h"
#include "mase/run/hardware/hardware.h"

namespace mase::test::claims_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::function<void(IntegerGraph&)> spoil_graph;
std::function<void(std::string&)> spoil_text;
std::function<void(std::vector<int64_t>&)> spoil_run;

const Register<EmitterRecord> faulty_optimizer{{
    .name = "faulty_optimizer",
    .summary = "for tests",
    .schema = {{valid_field()}},
    .optimize =
        [](const IntegerGraph& graph, const EmitOptions&) {
          Optimized result = optimize(graph, {.effort = 0});
          if (spoil_graph) spoil_graph(result.graph);
          return result;
        },
    .emit = emit_unrolled,
}};

const Register<EmitterRecord> faulty_text{{
    .name = "faulty_text",
    .summary = "for tests",
    .schema = {{valid_field()}},
    .emit =
        [](const IntegerGraph& graph, const EmitOptions& options) {
          EmittedDesign design = emit_unrolled(graph, options);
          if (spoil_text) spoil_text(design.files.at("rtl/top.sv"));
          return design;
        },
}};

const Register<EmitterRecord> faulty_stream{{
    .name = "faulty_stream",
    .summary = "for tests",
    .schema = {{{.name = "cycles", .type = FieldType::integer, .default_value = 8}}},
    .as_lowered = true,
    .emit =
        [](const IntegerGraph& graph, const EmitOptions& options) {
          EmittedDesign design =
              Registry<EmitterRecord>::instance().get("stream").emit(graph, options);
          design.run = [run = design.run](const std::vector<int64_t>& rows) {
            std::vector<int64_t> results = run(rows);
            if (spoil_run) spoil_run(results);
            return results;
          };
          return design;
        },
}};

HardwareNetwork toy() {
  HardwareNetwork network;
  network.network = read_fixture(golden_path("hardware"), "w4_toy").network;
  network.lowered = lower(network.network);
  network.origin = "test";
  return network;
}

const std::string folder_name = "/design";

// What emitting says; "" where it writes the folder.
std::string refusal(const DesignOptions& options, bool prove) {
  const HardwareNetwork network = toy();
  const std::string folder = temporary_folder() + folder_name;
  std::string said;
  try {
    emit_hardware(network, compare_with_engine(network, {.rows = 60, .seed = 1}), options, folder,
                  prove);
  } catch (const Error& error) {
    said = error.what();
  } catch (const InternalError& error) {
    said = error.what();
  }
  EXPECT_EQ(std::filesystem::exists(folder), said.empty());
  return said;
}

TEST(claims, a_fault_of_the_optimiser_is_refused) {
  spoil_graph = {};
  EXPECT_EQ(refusal({.style = "faulty_optimizer"}, false), "");
  const auto first = [](IntegerGraph& graph, const std::string& op) -> IntegerNode& {
    for (size_t i = graph.nodes.size(); i-- > 0;)
      if (graph.nodes[i].op->name == op) return graph.nodes[i];
    throw std::runtime_error("no " + op);
  };
  // A carry forgotten, operands in the other order, a clamp that is too tight, outputs exchanged.
  const std::vector<std::function<void(IntegerGraph&)>> faults = {
      [&](IntegerGraph& g) { first(g, "add").numbers[2] ^= 1; },
      [&](IntegerGraph& g) {
        std::swap(first(g, "subtract").inputs[0], first(g, "subtract").inputs[1]);
      },
      [&](IntegerGraph& g) { std::swap(g.outputs[0], g.outputs[1]); },
      [&](IntegerGraph& g) { std::swap(g.inputs[0], g.inputs[1]); }};
  for (size_t k = 0; k < faults.size(); ++k)
    for (const double levels : {0.0, 10.0}) {
      spoil_graph = faults[k];
      const std::string said =
          refusal({.style = "faulty_optimizer", .effort = 0, .levels = levels}, false);
      // What has intervals that cannot be is seen when registers are placed.
      EXPECT_THAT(said, testing::AnyOf(HasSubstr("the lowered graph has"),
                                       HasSubstr(levels > 0 ? "its values lie in" : "lowered")))
          << k;
    }
  spoil_graph = {};
}

TEST(claims, a_fault_of_a_streams_stages_is_refused) {
  const DesignOptions options{.style = "faulty_stream", .style_options = Dict{{"cycles", 8}}};
  spoil_run = {};
  EXPECT_EQ(refusal(options, false), "");
  spoil_run = [](std::vector<int64_t>& results) { ++results[7]; };
  EXPECT_THAT(refusal(options, false), HasSubstr("the emitted design has"));
  spoil_run = {};
}

void replace_first(std::string& text, const std::string& pattern, const std::string& with) {
  const std::string before = text;
  text =
      std::regex_replace(text, std::regex(pattern), with, std::regex_constants::format_first_only);
  EXPECT_NE(text, before) << pattern;
}

// A sum that reads what a register will have in the next cycle.
void skip_a_register(std::string& text) {
  const std::string whole = text;
  const std::regex assignment("    (\\w+) <= (\\w+);");
  for (auto at = std::sregex_iterator(whole.begin(), whole.end(), assignment);
       at != std::sregex_iterator(); ++at) {
    const std::regex name("\\b" + (*at)[1].str() + "\\b");
    size_t from = 0;
    while (from < whole.size()) {
      const size_t end = std::min(whole.find('\n', from), whole.size());
      const std::string line = whole.substr(from, end - from);
      const bool sum = starts_with(line, "  wire") && line.find(" + ") != std::string::npos;
      if (sum && std::regex_search(line, name)) {
        text.replace(from, line.size(), std::regex_replace(line, name, (*at)[2].str()));
        return;
      }
      from = end + 1;
    }
  }
  ADD_FAILURE() << "no register is read by a sum";
}

TEST(claims, faults_of_ports_registers_and_the_valid_bit_are_refused) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  struct Fault {
    std::string what, wanted;
    double levels;
    std::function<void(std::string&)> spoil;
  };
  const auto exchange = [](const std::string& pattern, const std::string& with) {
    return [=](std::string& text) { replace_first(text, pattern, with); };
  };
  const std::vector<Fault> faults = {
      {"nothing", "", 0, [](std::string&) {}},
      {"nothing", "", 10, [](std::string&) {}},
      {"the slice of an input", "in_data[", 0,
       exchange("(= in_data\\[)(\\d+):(\\d+)(\\];[^\\n]*\\n[^\\n]*= in_data\\[)(\\d+):(\\d+)(\\])",
                "$1$5:$6$4$2:$3$7")},
      {"the order of outputs", "out_data[", 0,
       exchange("(assign out_data = \\{)(\\w+), (\\w+)", "$1$3, $2")},
      {"an output twice", "out_data[", 0,
       exchange("(assign out_data = \\{)(\\w+), (\\w+)", "$1$3, $3")},
      {"a bit of an output", "out_data[", 0,
       exchange("assign out_data = \\{([^}]*)\\};", "assign out_data = ~{$1};")},
      {"another port", "there is a port more", 0,
       exchange("    output logic (\\[\\d+:0\\]) out_data",
                "    input  logic more,\n    output logic $1 out_data")},
      {"a register too few", "clock cycles", 10, skip_a_register},
      {"a register too many", "", 10,
       [&](std::string& text) {
         replace_first(text, "    (\\w+) <= (\\w+);\n", "    $1 <= late;\n    late <= $2;\n");
         replace_first(text, "\n  always_ff @", "\n  logic [63:0] late;\n  always_ff @");
       }},
      {"the other edge", "rising edge", 10,
       exchange("always_ff @\\(posedge clk\\) begin", "always_ff @(negedge clk) begin")},
      {"a valid bit that is early", "out_valid", 10,
       exchange("out_valid = valid\\[\\d+\\]", "out_valid = valid[0]")},
      {"a valid bit that is always there", "out_valid", 10,
       exchange("out_valid = valid\\[\\d+\\]", "out_valid = 1'b1")},
      {"a valid bit without reset", "rst", 10, exchange("if \\(rst\\) valid", "if (1'b0) valid")},
      {"a valid bit of another input", "out_valid", 10,
       exchange("\\], in_valid\\}", "], in_data[0]}")}};
  for (const Fault& fault : faults) {
    spoil_text = fault.spoil;
    Dict options{{"valid", fault.levels > 0}};
    const std::string said = refusal(
        {.style = "faulty_text", .effort = 0, .levels = fault.levels, .style_options = options},
        true);
    if (fault.what == "nothing")
      EXPECT_EQ(said, "");
    else
      EXPECT_THAT(said, testing::AllOf(HasSubstr("the SystemVerilog is not the graph"),
                                       HasSubstr(fault.wanted)))
          << fault.what;
  }
  spoil_text = {};
}

TEST(claims, a_manifest_says_what_was_done) {
  const HardwareNetwork network = toy();
  const Compared compared = compare_with_engine(network, {.rows = 50, .seed = 1});
  const auto manifest = [&](const DesignOptions& options, bool prove) {
    const std::string folder = temporary_folder() + folder_name;
    emit_hardware(network, compared, options, folder, prove);
    return read_json(folder + "/manifest.json");
  };
  const Value stream = manifest({.style = "stream", .style_options = Dict{{"cycles", 16}}}, true);
  // The modules that are graphs and how stages wait for one another, and no more than these.
  EXPECT_THAT(stream["proved"].as_string(), HasSubstr("of 3 modules of sums and functions"));
  EXPECT_THAT(stream["proved"].as_string(),
              HasSubstr("no queue overflows and no row ever stops, whoever stalls: 3 stages and 3 "
                        "queues in all "));
  EXPECT_THAT(stream["proved"].as_string(),
              testing::EndsWith("what multiplies by weights from a memory and what lines keep is "
                                "compared by simulation (ch simulate)"));
  EXPECT_THAT(stream["compared"]["integers"].as_string(), HasSubstr("lowered = emitted"));
  const Value unrolled = manifest({}, false);
  EXPECT_THAT(unrolled["compared"]["integers"].as_string(), HasSubstr("1050 in all"));
  EXPECT_THAT(unrolled["proved"].as_string(), HasSubstr("not read back: --no-prove"));
  EXPECT_EQ(unrolled["trusted"].as_list().size(), 3u);
}

}  // namespace
}  // namespace mase::test::claims_test
