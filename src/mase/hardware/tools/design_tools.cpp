// SPDX-License-Identifier: Apache-2.0
// What Yosys, Verilator and Icarus Verilog say about an emitted folder. Their files go into a
// folder of their own inside it.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "mase/base/file.h"
#include "mase/base/temporary_folder.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/emit/design_folder.h"
#include "mase/hardware/emit/target.h"
#include "mase/hardware/prove/certificate.h"
#include "mase/hardware/tools/tool.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

// Rows times bytes of the sources from which Verilator's compile time pays: Icarus takes the longer
// for a row the larger the design is, and 2,000 rows of one of 600 kB are minutes.
constexpr double verilator_from = 1e9;

// Counted as one cell, a table with two outputs is two on paths: what its lower output does not
// depend on (a compressor's carry) leads nowhere.
constexpr const char* table_pairs =
    "(* techmap_celltype = \"LUT6_2\" *)\n"
    "module table_pair (output O6, output O5, input I0, I1, I2, I3, I4, I5);\n"
    "  parameter [63:0] INIT = 0;\n"
    "  localparam WITHOUT_I3 = INIT[7:0] == INIT[15:8] && INIT[23:16] == INIT[31:24];\n"
    "  LUT6 #(.INIT(INIT)) upper (.O(O6), .I0(I0), .I1(I1), .I2(I2), .I3(I3), .I4(I4), .I5(I5));\n"
    "  LUT5 #(.INIT(INIT[31:0])) lower (.O(O5), .I0(I0), .I1(I1), .I2(I2),\n"
    "                                   .I3(WITHOUT_I3 ? 1'b0 : I3), .I4(I4));\n"
    "endmodule\n";

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

void move_file(const std::string& from, const std::string& to) {
  std::error_code code;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, code);
  if (code) throw Error(to, code.message());
  fs::remove(from, code);
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

// Models of a target's cells, if there are any: " cells.sv" beside the sources.
static std::string written_models(const std::string& target, const std::string& work) {
  if (target.empty()) return "";
  const TargetRecord& record = Registry<TargetRecord>::instance().get(target, "target");
  if (!record.models) return "";
  write_file_atomically(work + "/cells.sv", record.models());
  return " cells.sv";
}

Netlist module_netlist(const std::string& folder, const std::string& module,
                       const std::string& target) {
  const WorkFolder apart(folder, "proof");
  const std::string& work = apart.path();
  // A module without cells has no instances: the others need not be read.
  std::vector<std::string> sources = copy_sources(folder, work);
  if (target.empty()) sources = {fmt::format("rtl/{}.sv", module)};
  std::string cells;
  if (!target.empty())
    cells = fmt::format("read_verilog -lib {}; ",
                        Registry<TargetRecord>::instance().get(target, "target").library);
  must_work(run_tool({"yosys", "-q", "-p",
                      fmt::format("{2}read_verilog -sv {1}; hierarchy -top {0}; proc; flatten; "
                                  "write_json netlist.json",
                                  module, join(sources, " "), cells)},
                     work),
            "yosys");
  const std::string path = work + "/netlist.json";
  return netlist_from(read_json(path), module, path);
}

Netlist control_netlist(const std::string& folder, const std::string& module,
                        const std::vector<std::pair<std::string, std::string>>& parameters) {
  const WorkFolder apart(folder, "control");
  const std::string& work = apart.path();
  copy_sources(folder, work);
  std::string set;
  for (const auto& [name, value] : parameters) set += fmt::format("-set {} {} ", name, value);
  if (!set.empty()) set = fmt::format("chparam {}{}; ", set, module);
  must_work(run_tool({"yosys", "-q", "-p",
                      fmt::format("read_verilog -sv rtl/{0}.sv; {1}hierarchy -top {0}; proc; "
                                  "opt_expr -mux_undef; opt_clean; write_json netlist.json",
                                  module, set)},
                     work),
            "yosys");
  const std::string path = work + "/netlist.json";
  return netlist_from(read_json(path), module, path);
}

ModuleProof prove_folder(const Design& design, const std::string& folder) {
  const std::vector<ModuleClaim> claims =
      module_claims(certificate_of(graph_modules(design)), folder);
  return check_modules({claims.back()}, folder)[0].proof;
}

bool same_by_sat(const std::string& folder, const std::string& other, const std::string& module,
                 const std::string& target, int latency) {
  const WorkFolder apart(folder, "sat");
  const std::string& work = apart.path();
  const std::string models = written_models(target, work);
  const auto read = [&](const char* name, const std::string& from) {
    std::vector<std::string> sources = copy_sources(from, fmt::format("{}/{}", work, name));
    for (std::string& source : sources) source = fmt::format("{}/{}", name, source);
    return fmt::format(
        "design -reset; read_verilog -sv {2}{3}; hierarchy -top {1}; proc; flatten; opt_clean; "
        "rename {1} {0}; design -stash {0}; ",
        name, module, join(sources, " "), models);
  };
  const ToolResult result =
      run_tool({"yosys", "-q", "-p",
                read("gold", folder) + read("gate", other) +
                    "design -copy-from gold gold; design -copy-from gate gate; "
                    "miter -equiv -flatten gold gate both; hierarchy -top both; "
                    "sat -timeout 60 -verify -prove trigger 0" +
                    (latency > 0 ? fmt::format(" -seq {} -prove-skip {} both", latency + 1, latency)
                                 : std::string(" both"))},
               work);
  return result.exit_code == 0;
}

std::string quicker_simulator(int64_t rows, int64_t bytes) {
  return static_cast<double>(rows) * static_cast<double>(bytes) < verilator_from ? "iverilog"
                                                                                 : "verilator";
}

Simulation simulate_folder(const std::string& folder, const std::string& simulator,
                           const std::string& dump, int64_t most) {
  const DesignFolder design = read_design_folder(folder);
  std::string text = read_text_file((fs::path(folder) / "sim" / "vectors.hex").string());
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
    result.simulator = quicker_simulator(rows * design.design.interval, source_bytes(folder));
    if (!tool_exists("verilator")) result.simulator = "iverilog";
    if (result.simulator == "iverilog" && !tool_exists("iverilog") && tool_exists("verilator"))
      result.simulator = "verilator";
  }
  WorkFolder apart(folder, result.simulator);
  // Verilator calls make, which splits paths at spaces: it works where no name is a user's.
  std::optional<TemporaryFolder> plain;
  if (result.simulator == "verilator")
    plain.emplace((fs::temp_directory_path() / "mase-verilator-").string());
  const std::string& work = plain ? plain->path() : apart.path();
  write_file_atomically(work + "/vectors.hex", text);
  write_file_atomically(work + "/bench.sv", testbench_of(design));
  std::vector<std::string> sources = copy_plain_sources(design, work);
  sources.insert(sources.begin(), "bench.sv");
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
    std::vector<std::string> build = {
        "verilator",        "--binary", "-O3",    "-Wno-fatal", "--top-module",
        design.top + "_tb", "--prefix", "Vbench", "-Mdir",      "obj"};
    build.insert(build.end(), sources.begin(), sources.end());
    if (!dump.empty()) build.push_back("--trace");
    const ToolResult built = run_tool(build, work);
    must_work(built, "verilator");
    result.build_seconds = built.seconds;
    command = {work + "/obj/Vbench"};
  } else if (result.simulator == "cpp") {
    require_tool("g++");
    if (!dump.empty())
      throw Error("--wave", "a C++ program has no waveform", "use iverilog or verilator");
    const ToolResult built =
        run_tool({"g++", "-std=c++11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "check",
                  fs::absolute(fs::path(folder) / "cpp" / "check.cpp").string()},
                 work);
    must_work(built, "g++");
    result.build_seconds = built.seconds;
    command = {work + "/check", "vectors.hex"};
  } else {
    throw Error("--simulator", fmt::format("unknown simulator '{}'", printable(simulator)),
                "use auto, iverilog, verilator or cpp");
  }
  if (!dump.empty()) command.push_back("+dump=wave.vcd");
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
  if (!dump.empty()) move_file(work + "/wave.vcd", dump);
  // The C++ header is no simulation of the SystemVerilog: its record stands beside theirs.
  note_result(folder, result.simulator == "cpp" ? "cpp_check.json" : "simulation.json",
              to_value(result));
  if (!plain) apart.keep();
  return result;
}

Synthesis synthesize_folder(const std::string& folder) {
  require_tool("yosys");
  const DesignFolder design = read_design_folder(folder);
  WorkFolder apart(folder, "synth");
  const std::string& work = apart.path();
  Synthesis result;
  // Paths end at registers: without them the longest path lies between two.
  result.flow = "synth_xilinx -family xcup -flatten";
  write_file_atomically(work + "/pairs.v", table_pairs);
  const ToolResult run =
      run_tool({"yosys", "-q", "-p",
                fmt::format("read_verilog -sv {2}; {1} -top {0}; tee -o stat.txt stat; "
                            "delete t:FD*; techmap -map pairs.v t:LUT6_2; tee -o ltp.txt ltp",
                            design.top, result.flow, join(copy_sources(folder, work), " "))},
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
    if (starts_with(cell, "RAMB36")) result.blocks += static_cast<double>(count);
    if (starts_with(cell, "RAMB18")) result.blocks += 0.5 * static_cast<double>(count);
    if (starts_with(cell, "RAM") && !starts_with(cell, "RAMB")) result.memories += count;
    if (starts_with(cell, "SRL")) result.shifts += count;
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
              {"blocks", synthesis.blocks},   {"shifts", synthesis.shifts},
              {"levels", synthesis.levels}};
}

}  // namespace mase
