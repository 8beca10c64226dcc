// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/emit/design_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/hardware/emit/target.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

int64_t number_of(const Value& value, const std::string& what, int64_t least, int64_t most,
                  const std::string& place) {
  const int64_t number = value.as_int(what);
  if (number < least || number > most)
    throw Error(place, fmt::format("{} is {}, not within {} to {}", what, number, least, most),
                "emit the design again (ch emit)");
  return number;
}

constexpr int64_t most_bits = 1 << 24, most_element_bits = 64;

// Bits of all codes side by side, and of each where they are alike.
struct PortBits {
  int all = 0, element = 0, codes = 0;
};
PortBits bits_of(const Value& ports, const std::string& what, const std::string& place) {
  PortBits result;
  int64_t at = 0;
  for (const Value& port : ports.as_list(what)) {
    const int64_t width = number_of(port["width"], what + ".width", 1, most_element_bits, place);
    result.element = result.codes == 0 || result.element == width ? static_cast<int>(width) : 0;
    ++result.codes;
    at += width;
  }
  result.all = static_cast<int>(number_of(Value(at), what + " bits", 1, most_bits, place));
  return result;
}

// SystemVerilog that ch emit writes has no texts, no escaped names, no macros and no system tasks:
// with these a simulator runs programs and writes files.
void refuse_more_than_logic(const std::string& text, const std::string& place) {
  int line = 1;
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("{}:{}", place, line),
                fmt::format("has {}, which no emitted design has", what),
                "run your own tools on it (make sim, make synth), or emit it again");
  };
  const auto word_at = [&](size_t at) {
    size_t end = at + 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    return text.substr(at, end - at);
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find_first_of("\r\n", at), text.size()) - 1;
    } else if (text.compare(at, 2, "/*") == 0) {
      const size_t end = text.find("*/", at + 2);
      if (end == std::string::npos) refuse("a comment without end");
      line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                          text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      at = end + 1;
    } else if (c == '"') {
      refuse("a text");
    } else if (c == '\\') {
      refuse("an escaped name");
    } else if (c == '`') {
      if (const std::string word = word_at(at); word != "`default_nettype" && word != "`timescale")
        refuse(printable(word));
    } else if (c == '$') {
      if (const std::string word = word_at(at);
          word != "$signed" && word != "$unsigned" && word != "$clog2" && word != "$bits")
        refuse(printable(word));
    }
  }
}

StreamShape stream_shape(const Value& manifest, int inputs, int outputs, const std::string& place) {
  const List& layers = manifest["layers"].as_list("layers");
  if (layers.empty()) throw Error(place, "has no layers", "emit the design again (ch emit)");
  StreamShape shape;
  shape.inputs = inputs;
  shape.outputs = outputs;
  shape.in = static_cast<int>(
      number_of(layers.front()["parallelism_in"], "parallelism_in", 1, inputs, place));
  shape.out = static_cast<int>(
      number_of(layers.back()["parallelism_out"], "parallelism_out", 1, outputs, place));
  return shape;
}

}  // namespace

bool is_module_name(const std::string& name) { return !name.empty() && verilog_name(name) == name; }

DesignFolder read_design_folder(const std::string& path) {
  const std::string place = (fs::path(path) / "manifest.json").string();
  std::error_code ignored;
  if (!fs::is_regular_file(place, ignored))
    throw Error(path.empty() ? "." : path, "is no emitted design: it has no manifest.json",
                "write one: ch emit --load NETWORK --output FOLDER");
  const Value manifest = read_json(place);
  if (!manifest.is_dict()) throw Error(place, "is no table", "emit the design again (ch emit)");
  DesignFolder folder;
  folder.path = path;
  folder.top = manifest["top"].as_string("top");
  if (!is_module_name(folder.top))
    throw Error(place, fmt::format("top: '{}' is no name of a module", printable(folder.top)),
                "emit the design again (ch emit)");
  folder.style =
      Registry<EmitterRecord>::instance().get(manifest["style"].as_string("style"), place).name;
  // What stands in for its modules is ours, whatever stands beside the design. Folders of old have
  // no target.
  if (const Value& name = manifest["target"]; !name.is_null()) {
    const TargetRecord& target =
        Registry<TargetRecord>::instance().get(name.as_string("target"), place);
    if (target.plain_modules) folder.plain_modules = target.plain_modules();
  }
  const PortBits in = bits_of(manifest["inputs"], "inputs", place),
                 out = bits_of(manifest["outputs"], "outputs", place);
  EmittedDesign& design = folder.design;
  design.input_bits = in.all;
  design.output_bits = out.all;
  const bool stream = !manifest["layers"].is_null();
  design.latency = static_cast<int>(number_of(manifest["latency_cycles"], "latency_cycles", 0,
                                              stream ? 1 << 30 : 1 << 16, place));
  if (!manifest["initiation_interval"].is_null())
    design.interval =
        number_of(manifest["initiation_interval"], "initiation_interval", 1, 1 << 30, place);
  design.clocked = design.latency > 0;
  design.valid = manifest["valid"].as_bool("valid");
  if (stream) {
    if (in.element == 0 || out.element == 0)
      throw Error(place, "elements of a stream have one width", "emit the design again (ch emit)");
    folder.stream = stream_shape(manifest, in.codes, out.codes, place);
    design.input_element = in.element;
    design.output_element = out.element;
  }
  if (const Value& luts = manifest["estimate"]["luts"]; luts.is_number())
    folder.luts = luts.as_double();
  return folder;
}

int64_t source_bytes(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "rtl", ignored))
    if (entry.path().extension() == ".sv" && entry.is_regular_file(ignored))
      bytes += static_cast<int64_t>(entry.file_size(ignored));
  return bytes;
}

std::vector<std::string> copy_sources(const std::string& folder, const std::string& work) {
  const fs::path rtl = fs::path(folder) / "rtl";
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(rtl, code))
    if (entry.path().extension() == ".sv") names.push_back(entry.path().filename().string());
  if (code) throw Error(rtl.string(), code.message(), "emit the design again (ch emit)");
  std::sort(names.begin(), names.end());
  make_directories((fs::path(work) / "rtl").string());
  for (const std::string& name : names) {
    const std::string place = (rtl / name).string();
    if (!is_module_name(name.substr(0, name.size() - 3)))
      throw Error(place, "is not named after a module", "take it away, or emit the design again");
    const std::string text = read_text_file(place);
    refuse_more_than_logic(text, place);
    write_file_atomically((fs::path(work) / "rtl" / name).string(), text);
  }
  for (std::string& name : names) name = "rtl/" + name;
  if (names.empty())
    throw Error(rtl.string(), "has no .sv files", "emit the design again (ch emit)");
  return names;
}

std::vector<std::string> copy_plain_sources(const DesignFolder& folder, const std::string& work) {
  const std::vector<std::string> names = copy_sources(folder.path, work);
  for (const auto& [name, text] : folder.plain_modules)
    if (const std::string file = fmt::format("rtl/{}.sv", name);
        std::find(names.begin(), names.end(), file) != names.end())
      write_file_atomically((fs::path(work) / file).string(), text);
  return names;
}

std::string testbench_of(const DesignFolder& folder) {
  return folder.stream ? stream_testbench_text(folder.design, folder.top, *folder.stream)
                       : testbench_text(folder.design, folder.top);
}

}  // namespace mase
