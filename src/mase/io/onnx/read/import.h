// SPDX-License-Identifier: Apache-2.0
// ONNX, QONNX and quantised ONNX models as graphs of ours.
#pragma once

#include <string>
#include <vector>

#include "mase/io/onnx/file/model.h"
#include "mase/io/onnx/file/tensor.h"
#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase::onnx {

struct Imported {
  Graph graph;
  std::vector<std::string> notes = {};  // what became of the model that its reader should know
  Properties properties = {};           // what a file of ours says beside the graph
  std::vector<Element> elements = {};   // of the outputs, as the nodes give them
  std::string about = {};               // the notes_property of a file of ours
};

// Every node that cannot be converted is a line of the Error: operator, domain, version, place.
// Partial: they become `opaque` nodes that can be looked at, and notes.
Imported import_model(const Model& model, ExternalFiles& files, const std::string& place,
                      MemoryBudget& budget, bool partial = false);
// From its nodes alone, whatever the model says about the network that it was written from.
Imported import_nodes(const Model& model, ExternalFiles& files, const std::string& place,
                      MemoryBudget& budget, bool partial = false);

// The same for a file. Its network is named as the file, unless we wrote it. `input_shapes`: of
// what it is to take, with the batch in front (0: any), where the file leaves sizes open.
Imported import_file(const std::string& path, const ReadLimits& limits = {}, bool partial = false,
                     const std::vector<Shape>& input_shapes = {});
// Reading in parts, for looking into.
ExternalFiles files_beside(const std::string& path);
Model read_file(const std::string& path, MemoryBudget& budget);

}  // namespace mase::onnx
