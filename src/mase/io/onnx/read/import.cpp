// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/import.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <set>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/networks/checkpoint_file.h"
#include "mase/io/networks/notes_property.h"
#include "mase/io/onnx/file/inline_functions.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/read/convert_graph.h"
#include "mase/io/onnx/read/describe.h"
#include "mase/io/onnx/write/own_graph.h"

namespace mase::onnx {
namespace {

bool is_fixed(const Dimension& dimension) { return dimension.size && *dimension.size > 0; }

// Whether every size is a number: such a model can be one sample as a whole.
bool has_fixed_inputs(const GraphData& graph) {
  return std::all_of(graph.inputs.begin(), graph.inputs.end(), [](const ValueInfo& input) {
    return input.shape && std::all_of(input.shape->begin(), input.shape->end(), is_fixed);
  });
}

// Sizes that the model's inputs leave open, taken from these shapes; that of the batch if asked
// for.
void close_sizes(Model& model, const std::vector<Shape>& shapes, bool batch,
                 const std::string& place) {
  std::set<std::string> constants;
  for (const TensorData& tensor : model.graph.initializers) constants.insert(tensor.name);
  size_t next = 0;
  for (ValueInfo& input : model.graph.inputs) {
    if (constants.count(input.name)) continue;
    if (next == shapes.size()) return;
    const Shape& given = shapes[next++];
    if (!input.shape) input.shape.emplace(given.size());
    std::vector<Dimension>& dimensions = *input.shape;
    const std::string where = fmt::format("{}: input '{}'", place, printable(input.name));
    // Rows may come flat where the file says how large everything is.
    if (dimensions.size() != given.size() &&
        (dimensions.empty() || std::all_of(dimensions.begin() + 1, dimensions.end(), is_fixed)))
      continue;
    if (dimensions.size() != given.size())
      throw Error(where, fmt::format("has {} dimensions; what is given has {}: {}",
                                     dimensions.size(), given.size(), shape_text(given)));
    for (size_t i = batch ? 0 : 1; i < given.size(); ++i) {
      Dimension& dimension = dimensions[i];
      if (i > 0 && given[i] == 0) continue;  // nothing is said of it
      if (i > 0 && is_fixed(dimension) && *dimension.size != given[i])
        throw Error(where, fmt::format("dimension {} has the size {}; what is given has {}", i,
                                       *dimension.size, given[i]));
      if (!is_fixed(dimension) && given[i] > 0) dimension.size = given[i];
    }
  }
}

[[noreturn]] void no_memory(const std::string& path) {
  throw Error(path, "reading it needs more memory than there is",
              "read it on a machine with more memory");
}

// As far as the batch may be free; then as one sample, if that is how large it is.
Converted converted(const Model& model, ExternalFiles& files, const std::string& place,
                    MemoryBudget& budget, bool partial) {
  const Model flat = inlined(model, place, budget);
  const MemoryBudget before = budget;
  const auto again = [&] {
    budget = before;
    files.close();
  };
  Converted result;
  try {
    result = convert_graph(flat, files, place, budget, false, false);
  } catch (const Error&) {
    if (!partial) throw;
    again();
    return convert_graph(flat, files, place, budget, false, true);
  }
  if (result.imported) return result;
  if (has_fixed_inputs(flat.graph)) {
    again();
    const Error reason = *result.needs_batch;
    try {
      result = convert_graph(flat, files, place, budget, true, false);
      result.imported->graph.meta.set("whole_batch", true);
      result.imported->notes.push_back(fmt::format(
          "the model does not treat all entries of its batch alike ({}): its inputs as "
          "a whole are one sample here",
          starts_with(reason.place(), place + ": ")
              ? fmt::format("{}: {}", reason.place().substr(place.size() + 2), reason.cause())
              : reason.cause()));
      return result;
    } catch (const Error&) {
      if (!partial) throw;
    }
  }
  if (!partial) return result;
  again();
  return convert_graph(flat, files, place, budget, false, true);
}

Converted converted_model(const Model& model, ExternalFiles& files, const std::string& place,
                          MemoryBudget& budget, bool partial) {
  std::string why;
  if (auto own = own_graph(model, files, place, budget, why))
    return {.imported = Imported{.graph = std::move(*own)}};
  Converted result = converted(model, files, place, budget, partial);
  if (!why.empty() && result.imported)
    result.imported->notes.push_back(
        fmt::format("the file says which network it was written from, but its nodes have changed "
                    "since ({}): they are what is read",
                    why));
  return result;
}

Imported known(Converted result) {
  if (!result.imported) throw Error(*result.needs_batch);
  return std::move(*result.imported);
}

}  // namespace

Imported import_model(const Model& model, ExternalFiles& files, const std::string& place,
                      MemoryBudget& budget, bool partial) {
  return known(converted_model(model, files, place, budget, partial));
}

Imported import_nodes(const Model& model, ExternalFiles& files, const std::string& place,
                      MemoryBudget& budget, bool partial) {
  return known(converted(model, files, place, budget, partial));
}

ExternalFiles files_beside(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return ExternalFiles(folder.empty() ? "." : folder.string());
}

Model read_file(const std::string& path, MemoryBudget& budget) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  budget.give_back(file->bytes().size());
  return read_model(file->bytes(), file, path, budget);
}

namespace {

Imported import_read(Model& model, ExternalFiles& files, const std::string& path,
                     MemoryBudget& budget, bool partial, const std::vector<Shape>& input_shapes) {
  // A scale that is found for the values that are there is one for the whole batch.
  const bool joins =
      std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(),
                  [](const NodeData& node) { return starts_with(node.op, "DynamicQuantize"); });
  close_sizes(model, input_shapes, joins, path);
  const MemoryBudget before = budget;
  const bool open = !input_shapes.empty() && !has_fixed_inputs(model.graph);
  if (open && partial) close_sizes(model, input_shapes, true, path);  // to be looked at
  Converted result = converted_model(model, files, path, budget, partial);
  if (!result.imported && open) {  // as one sample, if that is how large it is
    close_sizes(model, input_shapes, true, path);
    budget = before;
    files.close();
    result = converted_model(model, files, path, budget, partial);
  }
  Imported imported = known(std::move(result));
  for (const auto& [name, text] : model.metadata)
    if (name == notes_property)
      imported.about = text;
    else if (starts_with(name, "mase.") && name != graph_property)
      imported.properties.emplace_back(name, text);
  imported.graph.meta.set("onnx", Dict{{"producer", model.producer}});
  imported.graph.name = model.producer == own_producer && !model.graph.name.empty()
                            ? model.graph.name
                            : std::filesystem::path(path).stem().string();
  return imported;
}

}  // namespace

Imported import_file(const std::string& path, const ReadLimits& limits, bool partial,
                     const std::vector<Shape>& input_shapes) try {
  MemoryBudget budget(limits, 0);
  Model model = read_file(path, budget);
  ExternalFiles files = files_beside(path);
  return import_read(model, files, path, budget, partial, input_shapes);
} catch (const std::bad_alloc&) {  // weights beside the model may be larger than the memory
  no_memory(path);
}

}  // namespace mase::onnx

namespace mase {

Checkpoint read_onnx(const std::string& path, const ReadLimits& limits, bool network_needed,
                     const std::vector<Shape>& input_shapes) try {
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::onnx;
  if (network_needed) {
    onnx::Imported imported = onnx::import_file(path, limits, false, input_shapes);
    checkpoint.tensors = state_dict(imported.graph);
    checkpoint.graph = std::move(imported.graph);
    Dict contents;
    if (!imported.notes.empty()) contents.set("notes", Value::of(imported.notes));
    if (!imported.about.empty()) contents.set("mase", imported.about);
    if (!contents.empty()) checkpoint.contents = std::move(contents);
    return checkpoint;
  }
  MemoryBudget budget(limits, 0);
  onnx::Model model = onnx::read_file(path, budget);
  onnx::ExternalFiles files = onnx::files_beside(path);
  const auto imported = [&, before = budget](bool partial) {
    MemoryBudget own = before;
    files.close();
    return onnx::import_read(model, files, path, own, partial, {});
  };
  Dict facts = onnx::describe(model).as_dict();
  for (const onnx::TensorData& data : model.graph.initializers)
    checkpoint.tensors.emplace_back(data.name,
                                    onnx::read_constant(data, files, budget, path).tensor);
  try {
    onnx::Imported network = imported(false);
    checkpoint.graph = std::move(network.graph);
    if (!network.notes.empty()) facts.set("notes", Value::of(network.notes));
  } catch (const Error& error) {
    facts.set("cannot be run", Value::of(split(error.what(), '\n')));
    try {
      checkpoint.graph = imported(true).graph;
    } catch (const Error&) {  // there is nothing to look at
    }
  }
  checkpoint.contents = facts;
  return checkpoint;
} catch (const std::bad_alloc&) {
  onnx::no_memory(path);
}

}  // namespace mase
