// SPDX-License-Identifier: Apache-2.0
// Data sets that are NumPy arrays whose samples are no plain rows of features: images, sequences,
// token ids.
#pragma once

#include <optional>
#include <string>

#include "mase/data/dataset.h"

namespace mase {

// Inputs [rows, ...] and what belongs to each row.
struct ArrayRows {
  Tensor inputs, targets;
  int64_t rows() const { return inputs.dim(0); }
};

struct ArrayData {
  std::string name, place;
  ArrayRows train;
  std::optional<ArrayRows> test;          // nothing: a fifth of the rows
  std::vector<std::string> classes = {};  // of targets that are whole numbers; empty: "0", "1", ...
  std::string notice = {};
};

// Targets that are classes as numbers from 0 on, with names; others are left as they are. Whole
// numbers of few kinds are classes (as in tables), unless `task` says so or otherwise. What a
// network already knows goes first: `known` names, or else places in them, and its own task.
ArrayData with_classes(ArrayData data, const std::string& task,
                       const std::vector<std::string>& known, const std::string& known_task);

// Bytes of rank 2 and 3 are images. Other whole numbers are taken as they are (token ids), floats
// are scaled value by value (--scaling). Whole numbers as targets are classes, others regression.
Dataset array_dataset(ArrayData data, const DatasetOptions& options);

// Which of an archive's arrays holds the inputs, by their names or as the only one; "": nobody can
// tell.
std::string input_array(const std::vector<std::string>& names);

// A .npz that has inputs and targets as arrays of their own (x and y; x_train, y_train, x_test,
// y_test; ...), or a .npy of inputs with another one named as its --target. Such a .npz with a
// --target is a table.
bool is_array_file(const std::string& path, const DatasetOptions& options);
Dataset load_array_file(const std::string& path, const DatasetOptions& options);

}  // namespace mase
