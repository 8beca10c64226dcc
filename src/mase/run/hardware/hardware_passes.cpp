// SPDX-License-Identifier: Apache-2.0
// MASE's passes of the hardware flow: add_hardware_metadata, report_node_hardware_type and
// emit_verilog_top. They stand here because they need the integers of the whole network, which the
// passes' folder does not know. A network that has none is no mistake of a pass: the reason is
// said.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/stream/plan.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"
#include "mase/run/hardware/hardware.h"

namespace mase::hardware_passes {
namespace {

// What the stream style would build of a network, or why it cannot.
struct Streamed {
  std::vector<StreamStage> stages;
  StreamPlan plan;
  std::string reason;  // empty: there is one
};

Streamed streamed(const Graph& graph, const Value& cycles) {
  Streamed result;
  try {
    StreamNetwork network = stream_network(lower(graph).graph);
    result.plan = plan_stream(network, cycles.is_null() ? 0 : cycles.as_int());
    result.stages = std::move(network.stages);
  } catch (const Error& error) {
    result.reason = error.what();
  }
  return result;
}

Field cycles_field() {
  return {.name = "cycles",
          .type = FieldType::integer,
          .help =
              "clock cycles between rows, at most: it decides every layer's parallelism "
              "(default: 64; of images as many as they have positions)",
          .minimum = 1,
          .maximum = 1000000000};
}

void set_argument(Dict& parameters, const std::string& argument, const ElementType& type, int frac,
                  int size, int parallelism) {
  parameters.set(argument + "_PRECISION_0", type.width);
  parameters.set(argument + "_PRECISION_1", frac);
  parameters.set(argument + "_TENSOR_SIZE_DIM_0", size);
  parameters.set(argument + "_PARALLELISM_DIM_0", parallelism);
}

PassResult add_metadata(Graph& graph, const Value& args, PassContext&) {
  const Streamed found = streamed(graph, args["cycles"]);
  std::map<std::string, size_t> stage_of;
  for (size_t k = 0; k < found.stages.size(); ++k) stage_of.try_emplace(found.stages[k].name, k);
  // The layer whose module computes a node: linear layers have one each, what follows them is in
  // it.
  std::string current;
  List sources;
  for (const NodeId id : graph.order()) {
    Node& node = graph.node(id);
    const bool implicit = !op_of(graph, node);
    Dict hardware{{"is_implicit", implicit}, {"device_id", -1}};
    if (!implicit) {
      const auto stage = stage_of.find(node.name);
      if (stage != stage_of.end()) current = node.name;
      const bool inside = found.reason.empty() && !current.empty();
      hardware.set("toolchain", inside ? Value("INTERNAL_RTL") : Value());
      hardware.set("module", inside ? Value(verilog_name(current)) : Value());
      if (!found.reason.empty()) hardware.set("reason", found.reason);
      if (stage != stage_of.end()) {
        const StreamStage& one = found.stages[stage->second];
        const StagePlan& own = found.plan.stages[stage->second];
        const int before = own.before, after = own.after;
        Dict parameters;
        set_argument(parameters, "DATA_IN_0", one.in, one.frac_in, one.channels(), before);
        set_argument(parameters, "DATA_OUT_0", one.out, one.frac_out, one.outputs(), after);
        hardware.set("parallelism", List{Value(before), Value(after)});
        hardware.set("cycles", own.cycles);
        hardware.set("verilog_param", std::move(parameters));
        hardware.set("interface", Dict{{"weight", Dict{{"storage", "case"}, {"transpose", false}}},
                                       {"bias", Dict{{"storage", "case"}, {"transpose", false}}}});
        hardware.set("dependence_files", Value::of(std::vector<std::string>{
                                             verilog_name(node.name) + ".sv", "skid_buffer.sv"}));
        sources.push_back(verilog_name(node.name) + ".sv");
      }
    }
    node.meta.set("hardware", std::move(hardware));
  }
  graph.meta.set("hardware", Dict{{"verilog_sources", sources}});
  Dict info{{"layers", static_cast<int64_t>(found.stages.size())}};
  if (!found.reason.empty()) info.set("reason", found.reason);
  return {info, false};
}

const Register<PassRecord> add_hardware_metadata{{
    .name = "add_hardware_metadata",
    .aliases = {"add_hardware_metadata_analysis_pass"},
    .summary = "Module, toolchain, parallelism and Verilog parameters of every node",
    .help = "For the stream style (ch emit --style stream). A network without exact integers gets "
            "the reason instead.",
    .schema = {{cycles_field()}},
    .run = add_metadata,
}};

PassResult report(Graph& graph, const Value&, PassContext& context) {
  Table table({"Node name", "Fx Node op", "Type", "Tool chain", "Device ID"});
  List rows;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Value* hardware = node.meta.find("hardware");
    if (!op_of(graph, node)) continue;
    const bool known = hardware && hardware->is_dict() && !hardware->as_dict().empty();
    const Value toolchain = known ? (*hardware)["toolchain"] : Value();
    const Value device = known ? (*hardware)["device_id"] : Value();
    const Quantizer* out = graph.quantization_of(node).find("data_out");
    const Quantizer* in = graph.quantization_of(node).find("data_in");
    const std::vector<std::string> row = {node.name, node_kind_name(node.kind),
                                          operand_text(out ? out : in),
                                          toolchain.is_string() ? toolchain.as_string() : "NA",
                                          device.is_int() ? std::to_string(device.as_int()) : "NA"};
    table.add(row);
    rows.push_back(Value::of(row));
  }
  print_info(context, "Inspecting graph [report_node_hardware_type_analysis_pass]");
  print_info(context, "\n" + table.str());
  return {Dict{{"nodes", rows}}, false};
}

const Register<PassRecord> report_node_hardware_type{{
    .name = "report_node_hardware_type",
    .aliases = {"report_node_hardware_type_analysis_pass"},
    .summary = "Number type, tool chain and device of every node",
    .help = "After add_hardware_metadata; NA where nothing is known.",
    .run = report,
}};

PassResult emit_top(Graph& graph, const Value& args, PassContext& context) {
  HardwareNetwork network;
  network.origin = graph.name;
  network.network = graph;
  DesignOptions options;
  options.style = args["style"].as_string();
  options.top = args["top_name"].as_string();
  const EmitterRecord& style = Registry<EmitterRecord>::instance().get(options.style, "style");
  if (style.schema.find("cycles")) options.style_options = Dict{{"cycles", args["cycles"]}};
  std::optional<EmitResult> result;
  Compared compared;
  const std::string folder = output_path(context, args["project_dir"].as_string()) + "/hardware";
  try {
    network.lowered = lower(graph);
    compared = compare_with_engine(network, {.rows = 500, .seed = context.seed});
    result = emit_hardware(network, compared, options, folder, args["prove"].as_bool());
  } catch (const Error& error) {
    print_info(context, fmt::format("Nothing emitted: {}", error.what()));
    return {Dict{{"emitted", false}, {"reason", error.what()}}, false};
  }
  print_info(context, fmt::format("engine = integers on {}: 0 mismatches", compared.origin));
  print_info(context, result->proof_text);
  if (const std::string wraps = overflow_text(result->overflow); !wraps.empty())
    print_info(context, wraps);
  print_info(context,
             fmt::format("Verilog written to {}; simulate it: ch simulate {}", folder, folder));
  return {Dict{{"emitted", true}, {"folder", folder}}, false};
}

const Register<PassRecord> emit_verilog_top{{
    .name = "emit_verilog_top",
    .aliases = {"emit_verilog_top_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "The network as SystemVerilog, compared with the engine first",
    .help = "Writes PROJECT_DIR/hardware: rtl with every layer, its weights and skid buffers, sim "
            "with the testbench. A network without exact integers is left alone and the reason "
            "said.",
    .schema = {{{.name = "project_dir",
                 .type = FieldType::text,
                 .default_value = "top",
                 .help = "the folder above hardware/"},
                {.name = "top_name",
                 .type = FieldType::text,
                 .default_value = "top",
                 .help = "name of the module"},
                {.name = "style",
                 .type = FieldType::text,
                 .default_value = "stream",
                 .help = "how it is built: stream or unrolled"},
                cycles_field(),
                {.name = "prove",
                 .type = FieldType::boolean,
                 .default_value = true,
                 .help = "read the SystemVerilog back with Yosys, where the style has a proof"}}},
    .run = emit_top,
}};

// MASE writes a design in several passes. Here emit_verilog_top writes all of it at once, so that
// no part is forgotten; the others say what there is of their part, or that there is nothing.
PassResult list_part(const Value& args, PassContext& context, const std::string& folder,
                     const std::string& word, const std::string& what) {
  namespace fs = std::filesystem;
  const fs::path design =
      fs::path(output_path(context, args["project_dir"].as_string())) / "hardware";
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(design / folder, ignored))
    if (word.empty() || read_text_file(entry.path().string()).find(word) != std::string::npos)
      files.push_back(folder + "/" + entry.path().filename().string());
  std::sort(files.begin(), files.end());
  print_info(context,
             files.empty()
                 ? fmt::format("No {} in {}: run emit_verilog_top first", what, design.string())
                 : fmt::format("{} in {}: {}", what, design.string(), join(files, ", ")));
  return {Dict{{"files", Value::of(files)}}, false};
}

PassRecord part_record(const std::string& name, const std::string& folder, const std::string& word,
                       const std::string& what) {
  return {
      .name = name,
      .aliases = {name + "_transform_pass"},
      .pass_kind = PassKind::transform,
      .summary = fmt::format("What emit_verilog_top wrote: {}", what),
      .help = "A design is written whole by emit_verilog_top; this says which files are that part.",
      .schema = {{{.name = "project_dir",
                   .type = FieldType::text,
                   .default_value = "top",
                   .help = "the folder above hardware/"}}},
      .run = [=](Graph&, const Value& args,
                 PassContext& context) { return list_part(args, context, folder, word, what); },
  };
}

const Register<PassRecord> emit_internal_rtl{
    part_record("emit_internal_rtl", "rtl", "", "modules")};
const Register<PassRecord> emit_bram{
    part_record("emit_bram", "rtl", "case (", "modules with weights")};
const Register<PassRecord> emit_cocotb{part_record("emit_cocotb", "sim", "", "testbench and rows")};

}  // namespace
}  // namespace mase::hardware_passes
