// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/hardware_page.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "mase/report/pages/run_page.h"
#include "support/support.h"

namespace mase::test::hardware_page_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string hostile = "</pre></title><script>alert(1)</script>\"'><img src=x>";

List ports(size_t count) {
  List list;
  for (size_t i = 0; i < count; ++i) list.push_back(Dict{{"name", "x"}});
  return list;
}

DesignData sample(const std::string& name, size_t inputs = 16, size_t outputs = 5) {
  DesignData design;
  design.name = name;
  design.manifest = Dict{
      {"network", name},
      {"style", "unrolled"},
      {"source", "best.mz"},
      {"proved", "for all inputs: 12 sums"},
      {"inputs", ports(inputs)},
      {"outputs", ports(outputs)},
      {"accuracy", Dict{{"rows", "400 test rows of jets"}, {"value", 0.7375}}},
      {"compared", Dict{{"rows", "400 test rows of jets"},
                        {"engine", "engine = integers on every row, 0 mismatches"}}},
      {"overflow", Dict{{"text", "nothing wraps, for all inputs"}}},
      {"estimate",
       Dict{{"luts", 872.0},
            {"levels", 47.0},
            {"layers",
             Value(List{Value(Dict{
                 {"name", name + "_2"}, {"luts", 400.0}, {"levels", 20.0}, {"adders", 12}})})}}}};
  design.bill = Value(List{Value(Dict{{"signal", name + "_in3"},
                                      {"layer", name + "_2"},
                                      {"bits", 6},
                                      {"luts", 31.5},
                                      {"own_luts", 20.0},
                                      {"line", 2}})});
  design.simulation = Dict{{"simulator", "iverilog"}, {"rows", 400}, {"mismatches", 0}};
  design.source = "module top;\n  wire [5:0] " + name + "_in3 = 6'd0;\nendmodule\n";
  return design;
}

std::string design_page(const std::vector<DesignData>& designs, const std::string& title,
                        const std::string& generator) {
  PageFrame frame = design_frame(designs);
  if (!title.empty()) frame.title = title;
  frame.generator = generator;
  return page_html(frame, design_parts(designs));
}

TEST(HardwarePage, ABillLeadsToItsLine) {
  const std::string page = design_page({sample("net")}, "", "ch");
  EXPECT_THAT(page, HasSubstr("<a href=\"#L2\">net_in3</a>"));
  EXPECT_THAT(page, HasSubstr("<span id=\"L2\">"));
  EXPECT_THAT(page, HasSubstr("iverilog: 400 rows, 0 mismatches"));
  EXPECT_THAT(page, HasSubstr("nothing wraps, for all inputs"));
  EXPECT_THAT(page, HasSubstr("for all inputs: 12 sums"));
  EXPECT_THAT(page, HasSubstr("estimate, not synthesised"));
}

TEST(HardwarePage, PublishedFiguresStandBesideJetsOnlyAndAreMarked) {
  const std::string jets = design_page({sample("net")}, "", "ch");
  EXPECT_THAT(jets, HasSubstr("published, JSC OpenML"));
  EXPECT_THAT(jets, HasSubstr("were not measured here"));
  EXPECT_THAT(design_page({sample("net", 784, 10)}, "", "ch"), Not(HasSubstr("JSC OpenML")));
}

TEST(HardwarePage, SynthesisStandsUnderItsOwnName) {
  DesignData design = sample("net");
  design.synthesis = Dict{{"flow", "synth_xilinx"}, {"luts", 910}, {"levels", 44}};
  const std::string page = design_page({design, sample("other")}, "", "ch");
  EXPECT_THAT(page, HasSubstr("Yosys synth_xilinx"));
  EXPECT_THAT(page, HasSubstr("2 emitted designs"));
}

TEST(HardwarePage, TheCppHeaderIsNoSimulation) {
  DesignData design = sample("net");
  design.cpp_check = Dict{{"simulator", "cpp"}, {"rows", 400}, {"mismatches", 0}};
  const std::string both = design_page({design}, "", "ch");
  EXPECT_THAT(both, HasSubstr("iverilog: 400 rows, 0 mismatches"));
  EXPECT_THAT(both, HasSubstr("C++ header, not the SystemVerilog"));
  design.simulation = {};
  EXPECT_THAT(design_page({design}, "", "ch"), HasSubstr("not run (ch simulate)"));
}

TEST(HardwarePage, DesignsThatDifferAreMarked) {
  DesignData classes = sample("classes", 16, 1);
  classes.manifest["options"] = Dict{{"argmax", true}};
  classes.manifest["accuracy"] = Dict{{"rows", "400 test rows of others"}, {"value", 0.7375}};
  const std::string page = design_page({sample("net"), classes}, "", "ch");
  EXPECT_THAT(page, HasSubstr("the class of 16 inputs"));
  EXPECT_THAT(page, HasSubstr("5 outputs of 16 inputs"));
  EXPECT_THAT(page, HasSubstr("do not give the same"));
  EXPECT_THAT(page, HasSubstr("Accuracy of net on 400 test rows of jets"));
  EXPECT_THAT(page, HasSubstr("Accuracy of classes on 400 test rows of others"));
  const std::string alike = design_page({sample("net"), sample("other")}, "", "ch");
  EXPECT_THAT(alike, Not(HasSubstr("do not give the same")));
  EXPECT_THAT(alike, HasSubstr("Accuracy on 400 test rows of jets"));
}

TEST(HardwarePage, NamesStayText) {
  DesignData design = sample(hostile);
  design.source += hostile;
  for (const std::string& page :
       {design_page({design}, hostile, "ch"), design_page({design, design}, "", "ch")}) {
    EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
    EXPECT_THAT(page, Not(HasSubstr("<img")));
  }
}

TEST(HardwarePage, WhateverTheFilesHold) {
  for (const Value& odd : {Value(), Value(3), Value("x"), Value(List{Value(1)}), Value(Dict{})}) {
    DesignData design = sample("net");
    design.bill = odd;
    design.simulation = odd;
    design.synthesis = odd;
    design_page({design}, "", "ch");
    design.manifest = odd;
    design_page({design}, "", "ch");
  }
}

TEST(HardwarePage, FoldersAreFoundAndRead) {
  const std::string folder = temporary_folder();
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder + "/" + name + "/rtl");
    write(folder + "/" + name + "/rtl/top.sv", "module top;\nendmodule\n");
    write(folder + "/" + name + "/manifest.json", "{\"top\": \"top\", \"style\": \"unrolled\"}");
  }
  write(folder + "/notes.txt", "text");
  EXPECT_EQ(find_design_folders(folder).size(), 2u);
  EXPECT_THAT(read_design(folder + "/a").source, HasSubstr("endmodule"));
  const RunPage page = run_page({folder}, "", "ch");
  EXPECT_EQ(page.what, "design");
  EXPECT_THAT(page.html, HasSubstr("2 emitted designs"));
  // A name that would leave the folder is no name of a module.
  write(folder + "/a/manifest.json", "{\"top\": \"../../b/rtl/top\"}");
  EXPECT_EQ(read_design(folder + "/a").source, "");
}

}  // namespace
}  // namespace mase::test::hardware_page_test
