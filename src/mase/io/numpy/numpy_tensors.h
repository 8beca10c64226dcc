// SPDX-License-Identifier: Apache-2.0
// The arrays of a .npy or .npz file as tensors, for looking into. (Data sets read them as tables,
// block by block: see table_source.h.)
#pragma once

#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase {

bool looks_like_npy(const std::string& path);
bool looks_like_npz(const std::string& path);  // a zip with .npy members

// The names of an archive's arrays; nothing of them is read.
std::vector<std::string> npz_names(const std::string& path);

// Arrays that are not numbers are named in `skipped`, if given, with the reason.
TensorTable read_numpy_tensors(const std::string& path, Dict* skipped = nullptr,
                               const ReadLimits& limits = {});

}  // namespace mase
