// SPDX-License-Identifier: Apache-2.0
// The ONNX project's own tests of single operators (Debian's libonnx-testdata, or the folder named
// by MASE_ONNX_NODE_TESTS, such as that of the onnx wheel): every case of an operator that is read
// gives the expected result, but for those below that say why not. As many of a case's inputs as
// possible are inputs of the network; those that must be known beforehand (shapes, axes) become
// constants. docs/onnx_operators.md is made here.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "mase/engine/program.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/read/import.h"
#include "mase/io/onnx/read/operator.h"
#include "support/support.h"

namespace mase::onnx::onnx_node_test {
namespace {

namespace fs = std::filesystem;

struct NodeCase {
  Model model;
  std::vector<TensorData> inputs, outputs;
  bool rough = false;  // its outputs are written to four digits
};

TensorData tensor_of(const fs::path& path) {
  const auto bytes = std::make_shared<std::string>(test::read(path.string()));
  MemoryBudget budget({}, bytes->size());
  return read_tensor_message(std::as_bytes(std::span(*bytes)), bytes, path.string(), budget);
}

NodeCase case_of(const fs::path& folder) {
  NodeCase result;
  const auto bytes = std::make_shared<std::string>(test::read((folder / "model.onnx").string()));
  MemoryBudget budget({}, bytes->size());
  result.model = read_model(std::as_bytes(std::span(*bytes)), bytes, folder.string(), budget);
  // Windows of onnx 1.12 take 3.1415 for pi.
  static const std::regex rough(
      "test_averagepool_2d_ceil_last_window_starts_on_pad|test_(blackman|hamming|hann)window.*");
  result.rough = std::regex_match(folder.filename().string(), rough);
  const fs::path data = folder / "test_data_set_0";
  for (int i = 0; fs::exists(data / fmt::format("input_{}.pb", i)); ++i)
    result.inputs.push_back(tensor_of(data / fmt::format("input_{}.pb", i)));
  for (int i = 0; fs::exists(data / fmt::format("output_{}.pb", i)); ++i)
    result.outputs.push_back(tensor_of(data / fmt::format("output_{}.pb", i)));
  return result;
}

bool same(const Tensor& got, const Tensor& wanted, bool rough) {
  if (got.shape() != wanted.shape()) return false;
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    const double a = got.item(i), b = wanted.item(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a != b && !(std::fabs(a - b) <= 1e-5 + (rough ? 1e-3 : 1e-4) * std::fabs(b))) return false;
  }
  return true;
}

// Operators' cases that are not claimed, and why.
const std::pair<std::regex, const char*> not_claimed[] = {
    {std::regex(".*(STRING|string).*"), "text is no number"},
    {std::regex(".*BFLOAT16.*"),
     "the bfloat16 numbers of these files were cut by another rule than their outputs"},
    {std::regex("test_(averagepool|maxpool|convtranspose)_3d.*"), "three spatial dimensions"},
    {std::regex("test_maxpool_with_argmax.*"), "the places of maxima"},
    {std::regex("test_training_dropout(_default)?(_mask)?"), "values are dropped at random"},
    {std::regex("test_cast_e8m0_FLOAT.*to_FLOAT8E8M0"), "powers of two alone"},
    {std::regex("test_(if|loop).*_(seq|opt|seq_none)"), "sequences and options are no tensors"},
    {std::regex("test_identity_(sequence|opt)"), "sequences and options are no tensors"},
    {std::regex("test_scan_sum"), "a batch of sequences, before operator set 9"},
};

std::string reason_not_claimed(const std::string& name) {
  for (const auto& [pattern, reason] : not_claimed)
    if (std::regex_match(name, pattern)) return reason;
  return "";
}

bool is_read(const NodeData& node) {
  return Registry<OnnxOperator>::instance().find(operator_name(node.domain, node.op)) != nullptr;
}

enum class Outcome { passed, refused, wrong };

// With these inputs as the network's; it has one of its own if none is left.
Outcome attempt(const NodeCase& given, const std::vector<bool>& free, std::string& why) {
  MemoryBudget budget({}, size_t{1} << 28);
  ExternalFiles nowhere("");
  Model model = given.model;
  std::vector<ValueInfo> kept;
  std::vector<Tensor> inputs;
  try {
    for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
      TensorData constant = given.inputs.at(i);
      if (free[i]) {
        kept.push_back(model.graph.inputs[i]);
        kept.back().shape.emplace();  // some files leave sizes open
        for (const int64_t size : constant.dims) kept.back().shape->push_back({.size = size});
        inputs.push_back(read_constant(constant, nowhere, budget, "input").tensor);
        continue;
      }
      constant.name = model.graph.inputs[i].name;
      model.graph.initializers.push_back(std::move(constant));
    }
    if (kept.empty()) {
      kept.push_back({.name = "unused", .element = Element::f32, .shape = {{{.size = 1}}}});
      inputs.emplace_back(Shape{1});
    }
    model.graph.inputs = kept;
    const Imported imported = import_model(model, nowhere, "case", budget);
    const Graph& graph = imported.graph;
    for (size_t i = 0; i < imported.elements.size(); ++i) {
      const Element wanted = given.model.graph.outputs.at(i).element;
      if (imported.elements[i] == wanted) continue;
      why = fmt::format("output {} has elements of {}, wanted are {}", i,
                        element_name(imported.elements[i]), element_name(wanted));
      return Outcome::wrong;
    }
    const bool whole = graph.meta.contains("whole_batch");
    for (size_t i = 0; i < inputs.size(); ++i) {
      Shape shape = inputs[i].shape();
      if (whole) shape.insert(shape.begin(), 1);
      const DType element = graph.node(graph.placeholders().at(i)).element;
      inputs[i] = inputs[i].to(element).reshaped(shape);
    }
    std::vector<Tensor> results = run(graph, inputs);
    for (size_t i = 0; i < results.size() && i < given.outputs.size(); ++i) {
      const Tensor wanted = read_constant(given.outputs[i], nowhere, budget, "output").tensor;
      Shape shape = results[i].shape();
      if (whole && !shape.empty()) shape.erase(shape.begin());
      const Element element = given.outputs[i].element;
      const bool rough = element == Element::f16 || element == Element::bf16 || given.rough;
      if (!same(results[i].reshaped(shape), wanted, rough)) {
        why = fmt::format("output {} is {}, wanted {}", i, shape_text(shape),
                          shape_text(wanted.shape()));
        for (int64_t k = 0; k < std::min<int64_t>(8, std::min(wanted.numel(), results[i].numel()));
             ++k)
          why += fmt::format("{} {} ({})", k ? "," : ":", results[i].item(k), wanted.item(k));
        return Outcome::wrong;
      }
    }
    return Outcome::passed;
  } catch (const Error& error) {
    if (why.empty()) why = error.what();
    return Outcome::refused;
  }
}

// All inputs free, then fewer of them.
std::vector<std::vector<bool>> choices(size_t count) {
  std::vector<std::vector<bool>> result;
  constexpr size_t most = 6;
  for (size_t bits = size_t{1} << std::min(count, most); bits-- > 0;) {
    std::vector<bool> free(count, false);
    for (size_t i = 0; i < std::min(count, most); ++i) free[i] = bits >> i & 1;
    result.push_back(free);
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return std::count(a.begin(), a.end(), true) > std::count(b.begin(), b.end(), true);
  });
  return result;
}

TEST(OnnxNodes, EveryCaseOfAnOperatorThatIsReadIsRight) {
  const char* given = std::getenv("MASE_ONNX_NODE_TESTS");
  const fs::path root = given ? given : "/usr/share/libonnx-testdata/data/node";
  if (!fs::exists(root)) GTEST_SKIP() << "no libonnx-testdata";
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) folders.insert(entry.path());
  std::map<std::string, int> passed;
  std::map<std::string, int> left_out;  // by reason
  int total = 0;
  for (const fs::path& folder : folders) {
    NodeCase one;
    try {
      one = case_of(folder);
    } catch (const Error&) {
      continue;  // sequences and the like
    }
    const std::vector<NodeData>& nodes = one.model.graph.nodes;
    if (nodes.empty() || one.inputs.size() != one.model.graph.inputs.size()) continue;
    if (!std::all_of(nodes.begin(), nodes.end(), is_read)) continue;
    // Operators written in their parts are cases too.
    const std::string op = nodes.size() == 1 ? nodes[0].op : "(in parts)";
    if (one.model.operator_set("").value_or(7) < 7) continue;
    if (const std::string reason = reason_not_claimed(folder.filename().string());
        !reason.empty()) {
      ++left_out[reason];
      continue;
    }
    Outcome best = Outcome::refused;
    std::string why;
    for (const std::vector<bool>& free : choices(one.inputs.size())) {
      best = attempt(one, free, why);
      if (best != Outcome::refused) break;
    }
    ++total;
    if (best == Outcome::passed)
      ++passed[op];
    else
      ADD_FAILURE() << folder.filename() << ": " << why;
  }
  int all = 0;
  for (const auto& [op, count] : passed) {
    std::printf("%-24s %3d\n", op.c_str(), count);
    all += count;
  }
  for (const auto& [reason, count] : left_out)
    std::printf("not claimed: %3d: %s\n", count, reason.c_str());
  std::printf("%zu operators, %d of %d cases pass\n", passed.size(), all, total);
  if (!given) {
    EXPECT_GE(all, 685);
  }
}

// The list of what is read, in the documentation.
TEST(OnnxNodes, TheDocumentListsEveryOperator) {
  std::map<std::string, std::string> rows;
  for (const OnnxOperator* record : Registry<OnnxOperator>::instance().all()) {
    std::vector<std::string> names = {record->name};
    names.insert(names.end(), record->aliases.begin(), record->aliases.end());
    for (const std::string& name : names) rows[name] = record->summary;
  }
  std::string text = fmt::format(
      "# ONNX operators that are read\n\n{} operators, made by `tests/io/onnx_node_test.cpp` from "
      "the registry.\n\n| operator | becomes |\n|:--|:--|\n",
      rows.size());
  for (const auto& [name, summary] : rows) text += fmt::format("| `{}` | {} |\n", name, summary);
  const std::string path = test::source_path("docs/onnx_operators.md");
  if (std::getenv("MASE_REWRITE_GOLDEN")) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }
  EXPECT_EQ(test::read(path), text) << "MASE_REWRITE_GOLDEN=1 rewrites it";
}

}  // namespace
}  // namespace mase::onnx::onnx_node_test
