// SPDX-License-Identifier: Apache-2.0
// What a network is to predict, from files: tables, arrays, pictures, sentences. Several files are
// rows one after another.
#pragma once

#include <string>
#include <vector>

#include "mase/run/network.h"

namespace mase {

struct InputOptions {
  std::string tensor = {};      // which array of a .safetensors or .npz file
  std::string vocabulary = {};  // of a .txt; empty: the one the network was trained with, or ids
  bool preprocess = true;       // scale raw rows as the network's file says
  DatasetOptions data = {};     // drop_bad_rows, and whom to tell
};

struct InputRows {
  Tensor x;
  std::vector<int64_t> left_out = {};   // places of rows with missing or infinite values
  std::vector<std::string> files = {};  // of each place, where there are several files or pictures
};

InputRows input_rows(const std::vector<std::string>& paths, const Network& network,
                     const InputOptions& options);

// As they are, for networks that are not run row by row: a file for each input, or all files for
// the only one. `whole_batch`: a network whose sample is another tool's whole batch takes that
// batch as the other tool does, without one of ours in front. `files` as above.
std::vector<Tensor> input_tensors(const std::vector<std::string>& paths, const Network& network,
                                  bool whole_batch, const InputOptions& options,
                                  std::vector<std::string>& files);

// The shape of what a file without names holds, rows in front (0: not known): what a network of any
// size is built for.
Shape input_shape(const std::string& path, const InputOptions& options = {});

}  // namespace mase
