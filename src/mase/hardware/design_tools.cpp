// SPDX-License-Identifier: Apache-2.0
// What Yosys, Verilator and Icarus Verilog say about an emitted folder. Their files go into a
// folder of their own inside it.
#include <algorithm>
#include <filesystem>
#include <map>

#include "mase/base/file.h"
#include "mase/hardware/design.h"
#include "mase/hardware/tool.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

// Rows times bytes of the sources from which Verilator's compile time pays: Icarus takes the longer
// for a row the larger the design is, and 2,000 rows of one of 600 kB are minutes.
constexpr double verilator_from = 1e9;

std::string top_of(const std::string& folder) {
  return read_json((fs::path(folder) / "manifest.json").string())["top"].as_string("top");
}

std::vector<std::string> design_sources(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(fs::absolute(folder) / "rtl"))
    if (entry.path().extension() == ".sv") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void must_work(const ToolResult& result, const std::string& what) {
  if (result.exit_code == 0) return;
  std::string last;
  for (const std::string& line : split(result.output, '\n'))
    if (!strip(line).empty()) last = strip(line);
  throw Error(what, result.exit_code >= 128
                        ? fmt::format("was ended by signal {}", result.exit_code - 128)
                        : printable(last));
}

void note_result(const std::string& folder, const char* name, const Value& value) {
  write_file_atomically((fs::path(folder) / name).string(), to_json(value, 2) + "\n");
}

int64_t number_after(const std::string& text, const std::string& word) {
  const size_t at = text.rfind(word);
  if (at == std::string::npos) return -1;
  const size_t first = text.find_first_of("0123456789", at + word.size());
  if (first == std::string::npos) return -1;
  return parse_integer(text.substr(first, text.find_first_not_of("0123456789", first) - first))
      .value_or(-1);
}

}  // namespace

ReadBack prove_folder(const Design& design, const std::string& folder) {
  require_tool("yosys");
  const WorkFolder apart(folder, "proof");
  const std::string& work = apart.path();
  const std::string& top = design.options.top;
  must_work(run_tool({"yosys", "-q", "-p",
                      fmt::format("read_verilog -sv ../../rtl/{0}.sv; hierarchy -top {0}; proc; "
                                  "flatten; write_json netlist.json",
                                  top)},
                     work),
            "yosys");
  const std::string path = work + "/netlist.json";
  return read_back(design.graph, design.emitted.signals, netlist_from(read_json(path), top, path));
}

std::string quicker_simulator(int64_t rows, int64_t bytes) {
  return static_cast<double>(rows) * static_cast<double>(bytes) < verilator_from ? "iverilog"
                                                                                 : "verilator";
}

Simulation simulate_folder(const std::string& folder, const std::string& simulator,
                           const std::string& dump, int64_t most) {
  const std::string top = top_of(folder);
  const fs::path root = fs::absolute(folder);
  const std::string vectors = (root / "sim" / "vectors.hex").string();
  std::string text = read_text_file(vectors);
  int64_t rows = 0;
  size_t end = 0;
  while ((most <= 0 || rows < most) && (end = text.find('\n', end)) != std::string::npos) {
    ++rows;
    ++end;
  }
  if (most > 0 && rows == most) text.resize(end);
  Simulation result;
  result.simulator = simulator;
  if (simulator == "auto") {
    int64_t bytes = 0;
    for (const std::string& path : design_sources(folder))
      bytes += static_cast<int64_t>(fs::file_size(path));
    result.simulator = quicker_simulator(rows, bytes);
    if (!tool_exists("verilator")) result.simulator = "iverilog";
    if (result.simulator == "iverilog" && !tool_exists("iverilog") && tool_exists("verilator"))
      result.simulator = "verilator";
  }
  const std::string bench = (root / "sim" / (top + "_tb.sv")).string();
  std::vector<std::string> sources = design_sources(folder);
  sources.insert(sources.begin(), bench);
  WorkFolder apart(folder, result.simulator);
  const std::string& work = apart.path();
  write_file_atomically(work + "/vectors.hex", text);
  std::vector<std::string> command;
  if (result.simulator == "iverilog") {
    require_tool("iverilog");
    std::vector<std::string> build = {"iverilog", "-g2012", "-o", "bench"};
    build.insert(build.end(), sources.begin(), sources.end());
    const ToolResult built = run_tool(build, work);
    must_work(built, "iverilog");
    result.build_seconds = built.seconds;
    command = {"vvp", "bench"};
  } else if (result.simulator == "verilator") {
    require_tool("verilator");
    std::vector<std::string> build = {"verilator",    "--binary",  "-O3",   "-Wno-fatal",
                                      "--top-module", top + "_tb", "-Mdir", "obj"};
    build.insert(build.end(), sources.begin(), sources.end());
    if (!dump.empty()) build.push_back("--trace");
    const ToolResult built = run_tool(build, work);
    must_work(built, "verilator");
    result.build_seconds = built.seconds;
    command = {(fs::path(work) / "obj" / ("V" + top + "_tb")).string()};
  } else if (result.simulator == "cpp") {
    require_tool("g++");
    if (!dump.empty())
      throw Error("--wave", "a C++ program has no waveform", "use iverilog or verilator");
    const ToolResult built = run_tool({"g++", "-std=c++11", "-O1", "-Wall", "-Wextra", "-Werror",
                                       "-o", "check", (root / "cpp" / "check.cpp").string()},
                                      work);
    must_work(built, "g++");
    result.build_seconds = built.seconds;
    command = {(fs::path(work) / "check").string(), "vectors.hex"};
  } else {
    throw Error("--simulator", fmt::format("unknown simulator '{}'", printable(simulator)),
                "use auto, iverilog, verilator or cpp");
  }
  if (!dump.empty()) command.push_back("+dump=" + fs::absolute(dump).string());
  const ToolResult run = run_tool(command, work);
  // The C++ program says by its exit code, too, that rows differ.
  if (result.simulator != "cpp" || run.exit_code != 1) must_work(run, result.simulator);
  result.run_seconds = run.seconds;
  result.output = run.output;
  result.rows =
      number_after(run.output, run.output.find("PASS:") != std::string::npos ? "PASS:" : "FAIL:");
  result.mismatches =
      run.output.find("PASS:") != std::string::npos ? 0 : number_after(run.output, " rows, ");
  if (result.rows != rows)
    throw Error(result.simulator, fmt::format("{} rows of {} were compared",
                                              std::max<int64_t>(0, result.rows), rows));
  note_result(folder, "simulation.json", to_value(result));
  apart.keep();
  return result;
}

Synthesis synthesize_folder(const std::string& folder) {
  require_tool("yosys");
  const std::string top = top_of(folder);
  WorkFolder apart(folder, "synth");
  const std::string& work = apart.path();
  Synthesis result;
  // Paths end at registers: without them the longest path lies between two.
  result.flow = "synth_xilinx -family xcup -flatten";
  const ToolResult run =
      run_tool({"yosys", "-q", "-p",
                fmt::format("read_verilog -sv {2}; {1} -top {0}; tee -o stat.txt stat; "
                            "delete t:FD*; tee -o ltp.txt ltp",
                            top, result.flow, join(design_sources(folder), " "))},
               work);
  must_work(run, "yosys");
  result.seconds = run.seconds;
  for (const std::string& line : split(read_text_file(work + "/stat.txt"), '\n')) {
    std::vector<std::string> words;
    for (const std::string& word : split(line, ' '))
      if (!word.empty()) words.push_back(word);
    if (words.size() != 2) continue;
    const int64_t count = parse_integer(words[1]).value_or(0);
    const std::string& cell = words[0];
    if (starts_with(cell, "LUT")) result.luts += count;
    if (cell == "CARRY4" || cell == "CARRY8") result.carries += count;
    if (cell == "INV") result.inverters += count;
    if (starts_with(cell, "MUXF")) result.muxes += count;
    if (starts_with(cell, "FD")) result.registers += count;
    if (starts_with(cell, "DSP")) result.dsps += count;
    if (starts_with(cell, "RAM")) result.memories += count;
  }
  result.levels = std::max<int64_t>(0, number_after(read_text_file(work + "/ltp.txt"), "length="));
  note_result(folder, "synthesis.json", to_value(result));
  apart.keep();
  return result;
}

Value to_value(const Simulation& simulation) {
  return Dict{{"simulator", simulation.simulator},
              {"rows", simulation.rows},
              {"mismatches", simulation.mismatches}};
}

Value to_value(const Synthesis& synthesis) {
  return Dict{{"flow", synthesis.flow},       {"luts", synthesis.luts},
              {"carries", synthesis.carries}, {"inverters", synthesis.inverters},
              {"muxes", synthesis.muxes},     {"registers", synthesis.registers},
              {"dsps", synthesis.dsps},       {"memories", synthesis.memories},
              {"levels", synthesis.levels}};
}

}  // namespace mase
