// SPDX-License-Identifier: Apache-2.0
#include "mase/data/jets.h"

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "mase/data/digest.h"
#include "mase/data/jsc_sim.h"
#include "mase/data/prepared_cache.h"
#include "mase/data/substructure.h"
#include "mase/data/table.h"

namespace mase {
namespace fs = std::filesystem;
namespace {

TablePlan jet_plan() {
  TablePlan plan;
  for (const std::string& name : jet_feature_names()) plan.features.push_back({name});
  plan.target = TargetRole::one_hot;
  plan.target_columns = plan.classes = jet_class_names();
  return plan;
}

// The number of rows tells the two published files apart; anything else goes by its format.
std::string variant_of(const TableSource& source) {
  if (source.rows() == 986806) return "cernbox";
  if (source.rows() == 830000) return "openml";
  const std::string name = lower_case(source.path());
  if (name.find(".arff") != std::string::npos) return "openml-like";
  if (ends_with(name, ".z") || ends_with(name, ".h5") || ends_with(name, ".hdf5"))
    return "cernbox-like";
  const std::string extension = fs::path(name).extension().string();
  return extension.empty() ? "table" : extension.substr(1);
}

Dataset prepare_jets(const std::string& path, const DatasetOptions& options) {
  const std::unique_ptr<TableSource> source = open_table(path);
  TablePlan plan = jet_plan();
  // Names what is missing, feature or class column.
  for (const std::string& name : jet_feature_names())
    if (!find_column(*source, name)) source->column(name);
  if (!fit_target(*source, plan)) source->column("class");

  Dataset dataset;
  dataset.name = "jsc";
  dataset.variant = variant_of(*source);
  dataset.class_names = jet_class_names();
  std::string digest, failure;
  std::thread hashing([&] {
    try {
      digest = sha256_of_file(path);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  TableResult read;
  try {
    read = read_table(*source, plan,
                      {.drop_duplicates = true, .drop_bad_rows = options.drop_bad_rows});
  } catch (...) {
    hashing.join();
    throw;
  }
  hashing.join();
  if (!failure.empty()) throw Error(path, failure);
  dataset.identity = "sha256:" + digest;
  tell_what_was_dropped(read, path, options);
  prepare(std::move(read.table), options, path, dataset);
  dataset.preprocessing.description = read.plan.to_value();
  return dataset;
}

}  // namespace

const std::vector<DatasetFile>& jet_files() {
  static const std::vector<DatasetFile> files = {
      {.variant = "openml",
       .file = "hls4ml_lhc_jets_hlf.arff",
       .address = "https://api.openml.org/data/v1/download/22102990/hls4ml_lhc_jets_hlf.arff"},
      {.variant = "cernbox",
       .file = "processed-pythia82-lhc13-all-pt1-50k-r1_h022_e0175_t220_nonu_truth.z",
       .address = "https://cernbox.cern.ch/index.php/s/jvFd5MoWhGs1l5v/download"},
  };
  return files;
}

std::string data_folder(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* folder = std::getenv("MASE_DATA"); folder && *folder) return folder;
  const std::string cache = user_cache_folder();
  return cache.empty() ? ".cache/mase" : cache;  // a user without a home: the current folder
}

std::string data_folder(const DatasetOptions& options) { return data_folder(options.data_dir); }

std::string find_jet_file(const std::string& folder) {
  std::error_code ignored;
  for (const std::string& place : {folder, folder + "/jsc"}) {
    for (auto known = jet_files().rbegin(); known != jet_files().rend(); ++known)
      if (fs::exists(place + "/" + known->file, ignored)) return place + "/" + known->file;
    for (const char* extension : {".z", ".h5", ".hdf5", ".arff", ".npz", ".csv", ".csv.gz"})
      if (fs::exists(place + "/jsc" + extension, ignored)) return place + "/jsc" + extension;
  }
  return "";
}

bool is_jet_table(const TableSource& source) {
  for (const std::string& name : jet_feature_names())
    if (!find_column(source, name)) return false;
  TablePlan plan = jet_plan();
  return fit_target(source, plan);
}

bool has_jet_columns_only(const TableSource& source) {
  TablePlan plan = jet_plan();
  return fit_target(source, plan) &&
         source.columns().size() == plan.features.size() + plan.target_columns.size();
}

Dataset load_jet_file(const std::string& path, const DatasetOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw Error(path, "is a folder, not a file");
  const fs::path file(path);
  const PreparedKey key =
      prepared_key(file.filename().string(), path, options, Dict{{"kind", "jets"}});
  return load_or_prepare(key, options, [&] { return prepare_jets(path, options); });
}

}  // namespace mase
