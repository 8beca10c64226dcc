// SPDX-License-Identifier: Apache-2.0
// A data set ready for training: three splits in memory, what they are and how they were prepared.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/base/byte_scale.h"
#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/base/tensor.h"
#include "mase/data/feature_names.h"

namespace mase {

struct Split {
  Tensor x;        // [rows, features...], float32; may be a view of a mapped cache file
  Tensor labels;   // [rows], int32: class numbers (classification)
  Tensor targets;  // [rows, outputs], float32 (regression)
  std::shared_ptr<const ByteScale> bytes = {};  // x is uint8 and stands for these numbers
  int64_t rows() const { return x.shape().empty() ? 0 : x.shape()[0]; }
  // The samples of some rows (`count` -1: all) as float32; x itself where it is that.
  Tensor samples(int64_t first = 0, int64_t count = -1) const;
};

// How raw columns become features; fitted on training rows only, stored in checkpoints, applied
// again by test and predict.
struct Preprocessing {
  Value description;  // JSON-able: columns, categories, scaling kind, offsets and scales
  FeatureNames feature_names;
  std::vector<float> offset, scale;  // x = (raw - offset) / scale, per feature
  std::vector<float> fill = {};      // raw values for missing ones, per feature; empty: none
};

// For checkpoints: plain values, and back. Every float survives exactly.
Value preprocessing_to_value(const Preprocessing& preprocessing);
Preprocessing preprocessing_from_value(const Value& value);

// What training does to a sample each time it sees it, drawn anew: bytes of images [channels,
// height, width].
struct Augmentation {
  bool flip = false;  // left for right, every second time
  int64_t crop = 0;   // moved by up to this many pixels each way, black coming in

  bool active() const { return flip || crop > 0; }
};

struct Dataset {
  std::string name;      // "jsc"
  std::string variant;   // "cernbox", "openml", "simulated", "csv": named in every result
  std::string identity;  // content hash
  std::string notice;    // what a reader of figures must know; empty if nothing
  bool classification = true;
  std::vector<std::string> class_names;
  std::vector<float> class_weights;  // empty: all one
  Split train, validation, test;
  Preprocessing preprocessing;
  Augmentation augmentation = {};
  Shape sample_shape() const;
  int64_t outputs() const;  // classes or target columns
};

struct DatasetOptions {
  std::string data_dir;                  // --data-dir; empty: MASE_DATA, then ~/.cache/mase
  std::string validation_split = "0.1";  // share of the training rows, or "train" as MASE does
  Value arguments = Dict{};              // the record's own options; defaults fill the rest
  uint64_t seed = 0;
  bool drop_bad_rows = false;
  bool fill_missing = false;        // tables: medians of training rows, a category for words
  std::string missing_values = {};  // tables: further cells that are none: "-999,unknown"
  std::string ignore = {};          // tables: columns to leave out: "id,name"
  bool use_cache = true;
  std::string target = {};               // table files: the target column, or several: "a,b"
  std::string task = "auto";             // or "classification", "regression": tables only
  std::string categorical = "one-hot";   // or "ordinal"
  std::string scaling = "standardise";   // or "min-max", "none"
  std::string class_weighting = "none";  // or "balanced"
  Preprocessing const* apply = nullptr;  // use this fitted preprocessing instead of fitting one
  std::function<void(const std::string&)> notify = {};  // plain lines for the terminal
};

// A published file of a data set, for `ch data fetch`.
struct DatasetFile {
  std::string variant;  // those of one variant belong together
  std::string file;     // below the data folder
  std::string address;
  std::string sha256 = {};  // empty: none is published
};

struct DatasetRecord {
  static constexpr const char* kind = "dataset";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  Schema options = {};                  // of this data set alone, beside the options of all
  std::vector<DatasetFile> files = {};  // the first one's variant unless another is asked for
  // Where its files are, or an empty text; null: it needs none.
  std::function<std::string(const DatasetOptions& options)> where = {};
  std::function<Dataset(const DatasetOptions& options)> load;
  // A path that it reads may stand in the place of its name, as the value of this option.
  std::string path_option = {};
  std::function<bool(const std::string& path)> reads = {};
};

// The record of a name, or of a path that stands for one; null: a table, or nothing we know.
const DatasetRecord* find_dataset(const std::string& name_or_path);

// Gives the classes these numbers: labels are changed so that class i is names[i]. A class of the
// data that is not among the names is an error that `owner` ("the network") helps to explain; names
// that the data lack are kept.
void order_classes(Dataset& dataset, const std::vector<std::string>& names,
                   const std::string& owner);

// A registered name, the path of what a registered one reads (a folder of images), of a table
// (.csv, .arff, .npy, .npz, .h5) or of a data set described in TOML.
Dataset load_dataset(const std::string& name_or_path, const DatasetOptions& options);

}  // namespace mase
