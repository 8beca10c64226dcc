// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/import.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/checkpoint_file.h"
#include "mase/io/onnx/convert_graph.h"
#include "mase/io/onnx/describe.h"
#include "mase/io/onnx/inline_functions.h"
#include "mase/io/onnx/read_model.h"

namespace mase::onnx {
namespace {

constexpr const char* own_producer = "mase";

// Whether every size is a number: such a model can be one sample as a whole.
bool has_fixed_inputs(const GraphData& graph) {
  return std::all_of(graph.inputs.begin(), graph.inputs.end(), [](const ValueInfo& input) {
    return input.shape &&
           std::all_of(input.shape->begin(), input.shape->end(), [](const Dimension& dimension) {
             return dimension.size && *dimension.size > 0;
           });
  });
}

}  // namespace

Imported import_model(const Model& model, ExternalFiles& files, const std::string& place,
                      MemoryBudget& budget, bool partial) {
  const Model flat = inlined(model, place, budget);
  const MemoryBudget before = budget;
  try {
    return convert_graph(flat, files, place, budget, false, false);
  } catch (const Error&) {
    const std::exception_ptr with_free_batch = std::current_exception();
    if (!has_fixed_inputs(flat.graph)) {
      if (!partial) throw;
      budget = before;
      return convert_graph(flat, files, place, budget, false, true);
    }
    budget = before;
    try {
      Imported imported = convert_graph(flat, files, place, budget, true, false);
      imported.graph.meta.set("whole_batch", true);
      imported.notes.push_back(
          "the model does not treat all entries of its batch alike: its inputs as a whole are one "
          "sample here");
      return imported;
    } catch (const Error&) {
      if (!partial) std::rethrow_exception(with_free_batch);
      budget = before;
      return convert_graph(flat, files, place, budget, false, true);
    }
  }
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

Imported import_file(const std::string& path, const ReadLimits& limits, bool partial) {
  MemoryBudget budget(limits, 0);
  const Model model = read_file(path, budget);
  const std::filesystem::path file(path);
  ExternalFiles files = files_beside(path);
  Imported imported = import_model(model, files, path, budget, partial);
  imported.graph.meta.set("onnx", Dict{{"producer", model.producer}});
  imported.graph.name = model.producer == own_producer && !model.graph.name.empty()
                            ? model.graph.name
                            : file.stem().string();
  return imported;
}

}  // namespace mase::onnx

namespace mase {

Checkpoint read_onnx(const std::string& path, const ReadLimits& limits, bool network_needed) {
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::onnx;
  if (network_needed) {
    onnx::Imported imported = onnx::import_file(path, limits);
    checkpoint.tensors = state_dict(imported.graph);
    checkpoint.graph = std::move(imported.graph);
    if (!imported.notes.empty()) checkpoint.contents = Dict{{"notes", Value::of(imported.notes)}};
    return checkpoint;
  }
  MemoryBudget budget(limits, 0);
  const onnx::Model model = onnx::read_file(path, budget);
  onnx::ExternalFiles files = onnx::files_beside(path);
  Dict facts = onnx::describe(model).as_dict();
  for (const onnx::TensorData& data : model.graph.initializers)
    checkpoint.tensors.emplace_back(data.name,
                                    onnx::read_constant(data, files, budget, path).tensor);
  try {
    onnx::Imported imported = onnx::import_file(path, limits);
    checkpoint.graph = std::move(imported.graph);
    if (!imported.notes.empty()) facts.set("notes", Value::of(imported.notes));
  } catch (const Error& error) {
    facts.set("cannot be run", Value::of(split(error.what(), '\n')));
    try {
      checkpoint.graph = onnx::import_file(path, limits, true).graph;
    } catch (const Error&) {  // there is nothing to look at
    }
  }
  checkpoint.contents = facts;
  return checkpoint;
}

}  // namespace mase
