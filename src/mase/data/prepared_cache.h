// SPDX-License-Identifier: Apache-2.0
// Prepared data sets on disk: split, scaled, ready to be mapped. One file in the cache folder:
//   "MASEDATA" | version | header length | header checksum | body length | header (JSON) | body
// The body holds features, then labels or targets, of train, validation and test in that order,
// 64-byte aligned, each with a checksum in the header. Written atomically; anything that does not
// check is rebuilt, never believed.
#pragma once

#include <optional>
#include <string>

#include "mase/data/dataset.h"

namespace mase {

// What a prepared file was made from and how: equal keys, equal content.
struct PreparedKey {
  std::string path;  // of the prepared file; empty: there is no cache folder
  Value made_from;   // a hash of the source's content, options, versions
};

// The key for a source file (or none, for generated data) and what shapes the result. The source is
// read and hashed: a file of the same size and time may hold something else.
PreparedKey prepared_key(const std::string& stem, const std::string& source_file,
                         const DatasetOptions& options, const Value& further);

// XDG_CACHE_HOME or ~/.cache, for this program; empty where there is neither.
std::string user_cache_folder();

// The data set, or nothing if the file is absent, stale or damaged; `reason` then says which of
// the last two.
std::optional<Dataset> load_prepared(const PreparedKey& key, std::string& reason);
void save_prepared(const PreparedKey& key, const Dataset& dataset);

// The usual flow: the prepared file if it is good, else `make` and save. Failure to save is no
// error: the folder may be read-only. With options.apply, a prepared set scaled differently is not
// used.
Dataset load_or_prepare(const PreparedKey& key, const DatasetOptions& options,
                        const std::function<Dataset()>& make);

}  // namespace mase
