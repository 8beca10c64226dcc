// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100: 32 x 32 colour images, in the published binary files.
#include <filesystem>

#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "mase/data/jets.h"

namespace mase::cifar_dataset {
namespace {

// The training files that are there beside the test file: a folder may hold the first of five only.
std::vector<std::string> training_files(const std::string& test_path, const char* ending) {
  const std::filesystem::path folder = std::filesystem::path(test_path).parent_path();
  std::vector<std::string> paths;
  std::error_code ignored;
  for (int i = 1; i <= 5; ++i) {
    const std::filesystem::path path = folder / fmt::format("data_batch_{}{}", i, ending);
    if (std::filesystem::is_regular_file(path, ignored)) paths.push_back(path.string());
  }
  return paths;
}

// A file of one of these folders; empty if none has it.
std::string found(const std::vector<std::string>& folders, const std::string& name) {
  std::error_code ignored;
  for (const std::string& folder : folders)
    if (std::filesystem::is_regular_file(folder + "/" + name, ignored)) return folder + "/" + name;
  return "";
}

Dataset load_ten(const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  const std::vector<std::string> folders = {folder + "/cifar10", folder + "/cifar-10-batches-bin",
                                            folder + "/cifar-10-batches-py", folder};
  const std::string pickled = found(folders, "test_batch");
  const bool python = !pickled.empty() && found(folders, "test_batch.bin").empty();
  const std::string test = python ? pickled : find_files("cifar10", folders, {"test_batch.bin"})[0];
  const char* ending = python ? "" : ".bin";
  const std::vector<std::string> train = training_files(test, ending);
  if (train.empty())
    throw Error("cifar10", fmt::format("data_batch_1{0} to data_batch_5{0} are missing beside {1}",
                                       ending, test));
  Dataset dataset = image_dataset(
      "cifar10", python ? read_cifar_pickles(train, "labels") : read_cifar_images(train, 1),
      python ? read_cifar_pickles({test}, "labels") : read_cifar_images({test}, 1),
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
      options);
  if (train.size() < 5)
    dataset.notice =
        fmt::format("{} of 5 training files; figures are not comparable with others", train.size());
  return dataset;
}

Dataset load_hundred(const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  const std::vector<std::string> folders = {folder + "/cifar100", folder + "/cifar-100-binary",
                                            folder + "/cifar-100-python", folder};
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(fmt::format("class_{}", i));
  const std::string train = found(folders, "train"), test = found(folders, "test");
  if (!train.empty() && !test.empty() && found(folders, "train.bin").empty())
    return image_dataset("cifar100", read_cifar_pickles({train}, "fine_labels"),
                         read_cifar_pickles({test}, "fine_labels"), std::move(names), options);
  const std::vector<std::string> paths = find_files("cifar100", folders, {"train.bin", "test.bin"});
  return image_dataset("cifar100", read_cifar_images({paths[0]}, 2),
                       read_cifar_images({paths[1]}, 2), std::move(names), options);
}

const Register<DatasetRecord> ten{
    {.name = "cifar10",
     .aliases = {"cifar-10"},
     .summary = "Small photographs: 32 x 32 colour images, ten classes",
     .help = "Reads the binary version (data_batch_1.bin ... test_batch.bin) or Python's "
             "(data_batch_1 ... test_batch) from --data-dir, MASE_DATA or ~/.cache/mase (or "
             "'cifar10', 'cifar-10-batches-bin' or 'cifar-10-batches-py' in it).",
     .options = augmentation_options(),
     .load = load_ten}};
const Register<DatasetRecord> hundred{
    {.name = "cifar100",
     .aliases = {"cifar-100"},
     .summary = "Small photographs: 32 x 32 colour images, a hundred classes",
     .help = "Reads the binary version (train.bin, test.bin) or Python's (train, test) from "
             "--data-dir, MASE_DATA or ~/.cache/mase (or 'cifar100', 'cifar-100-binary' or "
             "'cifar-100-python' in it).",
     .options = augmentation_options(),
     .load = load_hundred}};

}  // namespace
}  // namespace mase::cifar_dataset
