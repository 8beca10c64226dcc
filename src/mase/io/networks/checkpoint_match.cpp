// SPDX-License-Identifier: Apache-2.0
// Puts a checkpoint's tensors into a graph. What does not fit is listed side by side, nearest names
// together, because the usual reason is a checkpoint of another network.
#include <algorithm>
#include <map>

#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/formats/ggml_blocks.h"
#include "mase/io/networks/checkpoint.h"

namespace mase {
namespace {

constexpr size_t most_rows = 40;

struct Wanted {
  std::string name;
  Tensor* tensor;
};

std::vector<Wanted> wanted_tensors(Graph& graph) {
  std::vector<Wanted> all;
  for (const auto& [name, ignored] : state_dict(graph)) all.push_back({name, graph.tensor(name)});
  return all;
}

// Networks that are themselves called "model" keep the prefix that a wrapper would have added: the
// end of what was removed with which most names are wanted.
std::string best_prefix(const std::vector<Wanted>& wanted, const Checkpoint& checkpoint) {
  std::map<std::string_view, bool> names;
  for (const auto& [name, tensor] : checkpoint.tensors) names[name] = true;
  std::string best;
  size_t most = 0, at = checkpoint.prefix.size();
  for (;;) {
    const std::string end = checkpoint.prefix.substr(at);
    size_t count = 0;
    for (const Wanted& item : wanted)
      if (starts_with(item.name, end))
        count += names.count(std::string_view(item.name).substr(end.size()));
    if (count > most) {
      most = count;
      best = end;
    }
    if (at < 2) return best;
    const size_t dot = checkpoint.prefix.rfind('.', at - 2);
    at = dot == std::string::npos ? 0 : dot + 1;
  }
}

// PyTorch counts batches since 1.0 only, and loads older files without the count.
bool may_be_missing(const std::string& name) { return ends_with(name, ".num_batches_tracked"); }

std::string described(const std::string& name, const Tensor& tensor) {
  return fmt::format("'{}' {}", printable(name), shape_text(tensor.shape()));
}

}  // namespace

LoadReport load_into(Graph& graph, const Checkpoint& checkpoint, const std::string& path,
                     bool partial, const ModelGuess& guess) {
  Graph result = graph;  // a checkpoint that does not fit leaves the graph as it was
  const std::vector<Wanted> wanted = wanted_tensors(result);
  const std::string restored = best_prefix(wanted, checkpoint);
  std::map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : checkpoint.tensors) given[restored + name] = &tensor;
  const std::string shown_prefix = restored.empty() ? checkpoint.prefix : "";

  LoadReport report;
  std::vector<Wanted> missing;
  std::vector<std::string> wrong;
  for (const Wanted& item : wanted) {
    const auto found = given.find(item.name);
    if (found == given.end()) {
      if (may_be_missing(item.name)) continue;
      missing.push_back(item);
      report.missing.push_back(item.name);
    } else {
      if (found->second->shape() != item.tensor->shape()) {
        report.mismatched.push_back(item.name);
        wrong.push_back(fmt::format("checkpoint has {}; the network {} wants {}",
                                    described(shown_prefix + item.name, *found->second),
                                    printable(graph.name), shape_text(item.tensor->shape())));
      } else {
        const bool floats = item.tensor->dtype() == DType::f32;
        const Tensor given_one = floats ? with_packed_floats(*found->second) : *found->second;
        *item.tensor =
            floats && given_one.packed() ? given_one : given_one.to(item.tensor->dtype());
        report.taken.push_back(item.name);
      }
      given.erase(found);
    }
  }
  std::vector<std::string> left_names;
  for (const auto& [name, tensor] : given) {
    left_names.push_back(name);
    report.unexpected.push_back(shown_prefix + name);
  }
  const bool fits = missing.empty() && wrong.empty() && given.empty();
  if (fits || (partial && !report.taken.empty())) {
    graph = std::move(result);
    return report;
  }

  std::string cause = partial
                          ? "nothing in the checkpoint fits the network " + printable(graph.name)
                          : "the checkpoint does not fit the network " + printable(graph.name);
  const std::string model = guess ? guess(checkpoint.tensors) : "";
  if (!model.empty() && model != graph.name)
    cause += fmt::format(": is this a {} checkpoint?", model);
  size_t rows = 0;
  for (const std::string& line : wrong)
    if (rows++ < most_rows) cause += "\n  " + line;
  if (!missing.empty() || !given.empty()) {
    Table table({"only in the network", "only in the checkpoint"});
    for (const Wanted& item : missing) {
      std::string beside;
      const std::vector<std::string> near = nearest_names(item.name, left_names, 1);
      if (!near.empty()) {
        beside = described(shown_prefix + near[0], *given.at(near[0]));
        given.erase(near[0]);
        left_names.erase(std::find(left_names.begin(), left_names.end(), near[0]));
      }
      if (rows++ < most_rows) table.add({described(item.name, *item.tensor), beside});
    }
    for (const auto& [name, tensor] : given)
      if (rows++ < most_rows) table.add({"", described(shown_prefix + name, *tensor)});
    if (table.rows() > 0) cause += "\n  " + replace_all(strip(table.str()), "\n", "\n  ");
  }
  if (rows > most_rows) cause += fmt::format("\n  ... and {} more", rows - most_rows);
  throw Error(path, cause,
              partial ? "" : "--load-partial takes the tensors that fit and says which");
}

}  // namespace mase
