// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/drawing.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/ir/layer_text.h"

extern char** environ;

namespace mase {
namespace {

std::string escaped(const std::string& text) {
  std::string out = replace_all(printable(text), "&", "&amp;");
  out = replace_all(out, "<", "&lt;");
  return replace_all(replace_all(out, ">", "&gt;"), "\"", "&quot;");
}

const char* colour(const Graph& graph, const Node& node) {
  if (!graph.quantization_of(node).config.is_null()) return "#ffe0b2";
  switch (node.kind) {
    case NodeKind::placeholder:
    case NodeKind::output:
      return "#e0e0e0";
    case NodeKind::call_module:
      return "#d6e8fb";
    default:
      return "#e3f3df";
  }
}

// The lines of a node's box.
std::vector<std::string> box_lines(const Graph& graph, const Node& node) {
  std::vector<std::string> lines = {node.name, layer_text(graph, node)};
  const std::string formats = format_text(graph.quantization_of(node));
  if (!formats.empty()) lines.push_back(formats);
  if (lines[1] == lines[0]) lines.erase(lines.begin() + 1);
  return lines;
}

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mase-dot-XXXXXX").string();
    if (mkdtemp(pattern.data())) path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::string graph_dot(const Graph& graph) {
  std::string out =
      "digraph mase {\n  rankdir=TB;\n  node [shape=box, style=\"filled,rounded\", "
      "fontname=\"Helvetica\", fontsize=10];\n";
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::string label;
    for (const std::string& line : box_lines(graph, node))
      label += (label.empty() ? "" : "\\n") +
               replace_all(replace_all(printable(line), "\\", "\\\\"), "\"", "\\\"");
    out += fmt::format("  n{} [label=\"{}\", fillcolor=\"{}\"];\n", id, label, colour(graph, node));
    for (const NodeId input : graph.inputs_of(id)) out += fmt::format("  n{} -> n{};\n", input, id);
  }
  return out + "}\n";
}

std::optional<std::string> dot_to_svg(const std::string& dot) {
  const TemporaryFolder folder;
  if (folder.path.empty()) return {};
  const std::string source = folder.path + "/graph.dot", target = folder.path + "/graph.svg";
  write_file_atomically(source, dot);
  const std::vector<std::string> words = {"dot", "-Tsvg", "-o", target, source};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, "dot", nullptr, nullptr, arguments.data(), environ) != 0) return {};
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return {};
  if (!std::filesystem::exists(target)) return {};
  return read_text_file(target);
}

std::string graph_svg(const Graph& graph) {
  constexpr int line_height = 14, gap_x = 24, gap_y = 30, margin = 12, letter = 6;
  struct Box {
    std::vector<std::string> lines;
    int x = 0, y = 0, width = 0, height = 0, level = 0;
  };
  std::map<NodeId, Box> boxes;
  std::map<int, std::vector<NodeId>> levels;
  for (const NodeId id : graph.order()) {
    Box box;
    box.lines = box_lines(graph, graph.node(id));
    for (const std::string& line : box.lines)
      box.width = std::max(box.width, display_width(line) * letter + 16);
    box.height = static_cast<int>(box.lines.size()) * line_height + 10;
    for (const NodeId input : graph.inputs_of(id))
      box.level = std::max(box.level, boxes[input].level + 1);
    levels[box.level].push_back(id);
    boxes[id] = box;
  }
  int total_width = 0;
  std::map<int, int> widths;
  for (const auto& [level, ids] : levels) {
    // Order by the mean place of the inputs: one barycentre sweep keeps most edges apart.
    int width = 0;
    for (const NodeId id : ids) width += boxes[id].width + gap_x;
    widths[level] = width - gap_x;
    total_width = std::max(total_width, widths[level]);
  }
  int y = margin;
  std::map<NodeId, double> centre;
  for (auto& [level, ids] : levels) {
    std::map<NodeId, double> wish;
    for (const NodeId id : ids) {
      const std::vector<NodeId> inputs = graph.inputs_of(id);
      for (const NodeId input : inputs)
        wish[id] += centre[input] / static_cast<double>(inputs.size());
    }
    std::stable_sort(ids.begin(), ids.end(), [&](NodeId a, NodeId b) { return wish[a] < wish[b]; });
    int x = margin + (total_width - widths[level]) / 2, height = 0;
    for (const NodeId id : ids) {
      Box& box = boxes[id];
      box.x = x;
      box.y = y;
      centre[id] = x + box.width / 2.0;
      x += box.width + gap_x;
      height = std::max(height, box.height);
    }
    y += height + gap_y;
  }
  std::string edges, nodes;
  for (const NodeId id : graph.order()) {
    const Box& box = boxes[id];
    for (const NodeId input : graph.inputs_of(id)) {
      const Box& from = boxes[input];
      edges += fmt::format(
          "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#555\" "
          "marker-end=\"url(#tip)\"/>\n",
          from.x + from.width / 2, from.y + from.height, box.x + box.width / 2, box.y - 2);
    }
    nodes += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{}\" "
        "stroke=\"#555\"/>\n",
        box.x, box.y, box.width, box.height, colour(graph, graph.node(id)));
    for (size_t i = 0; i < box.lines.size(); ++i)
      nodes += fmt::format(
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", box.x + box.width / 2,
          box.y + line_height * (static_cast<int>(i) + 1) + 1, escaped(box.lines[i]));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, sans-serif\" "
      "font-size=\"10\">\n<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"6\" "
      "refY=\"3\" orient=\"auto\"><path d=\"M0,0 L6,3 L0,6 z\" fill=\"#555\"/></marker></defs>\n"
      "{2}{3}</svg>\n",
      total_width + 2 * margin, y, edges, nodes);
}

}  // namespace mase
