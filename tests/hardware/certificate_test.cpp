// SPDX-License-Identifier: Apache-2.0
// ch verify and ch mutate: a folder alone is enough to prove its modules; faults are refused with
// the module's name, in every style; certificates that anybody may have written are held to their
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "hardware/plane_networks.h"
#include "mase/base/file.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/prove/certificate.h"
#include "mase/hardware/prove/mutants.h"
#include "mase/hardware/tools/tool.h"
#include "support/support.h"

namespace mase::test::certificate_test {
namespace {

using testing::HasSubstr;

IntegerGraph sums() {
  IntegerBuilder builder("sums");
  builder.add_layer("layer");
  std::vector<IntegerId> x;
  for (int i = 0; i < 3; ++i) x.push_back(builder.input({-8, 7}, 2, fmt::format("x_{}", i)));
  for (int o = 0; o < 2; ++o) {
    const IntegerId sum = builder.node("linear_sum", x, {4, 3 + o, 5, -3 + o, 6});
    builder.output(builder.clamp(builder.relu(sum), 0, 63));
  }
  return builder.finish();
}

std::vector<CheckedModule> check_folder(const std::string& folder) {
  return check_modules(folder_claims(folder), folder);
}

std::string written(const IntegerGraph& graph, const DesignOptions& options) {
  const Design design = make_design(graph, options);
  std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 5, 1), {}));
  return folder;
}

const std::vector<DesignOptions>& styles() {
  static const std::vector<DesignOptions> all = {
      {},
      {.levels = 6, .style_options = Dict{{"valid", true}}},
      {.style = "lut"},
  };
  return all;
}

TEST(certificate, a_folder_alone_is_proved_in_every_style) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  for (const DesignOptions& options : styles()) {
    const std::vector<CheckedModule> modules = check_folder(written(sums(), options));
    ASSERT_EQ(modules.size(), 1u) << options.style;
    EXPECT_TRUE(modules[0].proof.proved()) << options.style << modules[0].proof.fault;
    EXPECT_EQ(modules[0].proof.network.answer, SameGraph::Answer::same)
        << options.style << modules[0].proof.network.reason;
  }
  // A stream's sums and functions, whole windows and digit by digit.
  const IntegerGraph planes = lower(plane_networks()[0].second).graph;
  for (const int64_t cycles : {36, 300}) {
    const std::string folder =
        written(planes, {.style = "stream", .style_options = Dict{{"cycles", cycles}}});
    const std::vector<CheckedModule> modules = check_folder(folder);
    EXPECT_GE(modules.size(), 5u);  // two of sums, a function of each stage
    for (const CheckedModule& module : modules)
      EXPECT_TRUE(module.proof.proved()) << module.module << module.proof.fault;
  }
}

TEST(certificate, another_graph_or_text_is_refused) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const std::string folder = written(sums(), {});
  const std::string place = folder + "/certificate.json", right = read(place);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string wrong = right;
    const size_t at = wrong.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write(place, wrong.replace(at, from.size(), to));
    try {
      return check_folder(folder)[0].proof.fault;
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(with("modules", "modules"), "");
  EXPECT_THAT(with("\"top\"", "\"top; exec -- true\""), HasSubstr("is no name of a module"));
  EXPECT_THAT(with("\"x_0\",", ""), HasSubstr("signals for"));
  EXPECT_THAT(with("\"latency_cycles\": 0", "\"latency_cycles\": 99999999"), HasSubstr("latency"));
  EXPECT_NE(with("\"latency_cycles\": 0", "\"latency_cycles\": 1"), "");
  write(place, right);
  EXPECT_THROW(check_folder(folder + "/rtl"), Error);
}

TEST(certificate, planted_faults_are_refused_or_change_nothing) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  for (const DesignOptions& options : styles()) {
    const std::string folder = written(sums(), options);
    const MutationReport report = plant_faults(folder, sanitized ? 3 : 15, 7);
    EXPECT_GE(report.planted, sanitized ? 3 : 10);
    EXPECT_EQ(report.refused + report.equivalent, report.planted) << options.style;
    EXPECT_GT(report.refused, report.planted / 2);
    for (const Mutant& mutant : report.survivors)
      ADD_FAILURE() << mutant.before << "\n" << mutant.after;
    // What was planted is gone.
    EXPECT_TRUE(check_folder(folder)[0].proof.proved());
  }
}

TEST(certificate, faults_are_of_every_kind_and_the_same_for_a_seed) {
  const std::string text = read(written(sums(), {.levels = 6}) + "/rtl/top.sv");
  std::set<std::string> kinds;
  for (const Fault& fault : faults_of(text, 1000, 1)) kinds.insert(fault.kind);
  for (const char* kind : {"operator", "constant", "slice", "operand", "edge"})
    EXPECT_TRUE(kinds.count(kind)) << kind;
  const std::vector<Fault> first = faults_of(text, 5, 3), again = faults_of(text, 5, 3);
  ASSERT_EQ(first.size(), 5u);
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(first[k].at, again[k].at);
}

}  // namespace
}  // namespace mase::test::certificate_test
