// SPDX-License-Identifier: Apache-2.0
// .npy and .npz files as inputs and targets: which array is which goes by their names.
#include <algorithm>
#include <filesystem>

#include "mase/base/text.h"
#include "mase/data/arrays.h"
#include "mase/io/numpy/numpy_tensors.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

enum class Role { inputs, targets, other };

// "x_train", "TrainImages", "labels": what is left without the part's name.
Role role_of(const std::string& name, std::string& part) {
  std::string rest = lower_case(name);
  part.clear();
  for (const char* word : {"train", "test"})
    if (const size_t at = rest.find(word); at != std::string::npos) {
      part = word;
      rest.erase(at, std::string(word).size());
    }
  std::erase_if(rest, [](char c) { return c == '_' || c == '-' || c == '.'; });
  const auto is_one_of = [&](std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), rest) != words.end();
  };
  if (is_one_of({"x", "xs", "data", "images", "inputs", "input", "features", "samples", "tokens",
                 "ids", "arr0"}))
    return Role::inputs;
  if (is_one_of({"y", "ys", "labels", "label", "targets", "target", "classes", "arr1"}))
    return Role::targets;
  return Role::other;
}

struct Names {
  std::string x = {}, y = {}, test_x = {}, test_y = {};
  std::vector<std::string> unread = {};
  bool whole() const { return !x.empty() && !y.empty() && test_x.empty() == test_y.empty(); }
};

Names find_names(const std::vector<std::string>& names) {
  Names found;
  for (const std::string& name : names) {
    std::string part;
    const Role role = role_of(name, part);
    std::string* place = nullptr;
    if (role == Role::inputs) place = part == "test" ? &found.test_x : &found.x;
    if (role == Role::targets) place = part == "test" ? &found.test_y : &found.y;
    if (!place || !place->empty())
      found.unread.push_back(name);
    else
      *place = name;
  }
  return found;
}

std::string extension_of(const std::string& path) {
  return lower_case(fs::path(path).extension().string());
}

}  // namespace

std::string input_array(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  const Names found = find_names(names);
  // x_train beside x_test: nobody knows which is meant.
  return found.x.empty() == found.test_x.empty() ? "" : found.x.empty() ? found.test_x : found.x;
}

bool is_array_file(const std::string& path, const DatasetOptions& options) {
  const std::string extension = extension_of(path);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  if (extension == ".npy") return extension_of(options.target) == ".npy";
  return extension == ".npz" && options.target.empty() && looks_like_npz(path) &&
         find_names(npz_names(path)).whole();
}

Dataset load_array_file(const std::string& path, const DatasetOptions& options) {
  ArrayData data;
  data.place = path;
  data.name = fs::path(path).stem().string();
  Dict skipped;
  const TensorTable tensors = read_numpy_tensors(path, &skipped);
  const auto array = [&](const TensorTable& table, const std::string& name) {
    for (const auto& [key, tensor] : table)
      if (key == name || name.empty()) return tensor;
    throw Error(path, fmt::format("'{}' cannot be read: {}", printable(name),
                                  skipped[name].is_string() ? skipped[name].as_string()
                                                            : "it holds no numbers"));
  };
  if (extension_of(path) == ".npy") {
    data.train = {array(tensors, ""), array(read_numpy_tensors(options.target, &skipped), "")};
    return array_dataset(std::move(data), options);
  }
  const Names names = find_names(npz_names(path));
  data.train = {array(tensors, names.x), array(tensors, names.y)};
  if (!names.test_x.empty())
    data.test = ArrayRows{array(tensors, names.test_x), array(tensors, names.test_y)};
  if (!names.unread.empty()) data.notice = "arrays not read: " + join(names.unread, ", ");
  return array_dataset(std::move(data), options);
}

}  // namespace mase
