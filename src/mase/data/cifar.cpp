// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100: 32 x 32 colour images, in the published binary files.
#include <filesystem>

#include "mase/data/images.h"
#include "mase/data/jets.h"

namespace mase::cifar_dataset {
namespace {

// The training files that are there: a folder may hold the first of five only.
std::vector<std::string> training_files(const std::string& test_path) {
  const std::filesystem::path folder = std::filesystem::path(test_path).parent_path();
  std::vector<std::string> paths;
  std::error_code ignored;
  for (int i = 1; i <= 5; ++i) {
    const std::filesystem::path path = folder / fmt::format("data_batch_{}.bin", i);
    if (std::filesystem::is_regular_file(path, ignored)) paths.push_back(path.string());
  }
  return paths;
}

Dataset load_ten(const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  const std::string test =
      find_files("cifar10", {folder + "/cifar10", folder + "/cifar-10-batches-bin", folder},
                 {"test_batch.bin"})[0];
  const std::vector<std::string> train = training_files(test);
  if (train.empty())
    throw Error("cifar10", "data_batch_1.bin to data_batch_5.bin are missing beside " + test);
  Dataset dataset = image_dataset(
      "cifar10", read_cifar_images(train, 1), read_cifar_images({test}, 1),
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
      options);
  if (train.size() < 5)
    dataset.notice =
        fmt::format("{} of 5 training files; figures are not comparable with others", train.size());
  return dataset;
}

Dataset load_hundred(const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  const std::vector<std::string> paths =
      find_files("cifar100", {folder + "/cifar100", folder + "/cifar-100-binary", folder},
                 {"train.bin", "test.bin"});
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(fmt::format("class_{}", i));
  return image_dataset("cifar100", read_cifar_images({paths[0]}, 2),
                       read_cifar_images({paths[1]}, 2), std::move(names), options);
}

const Register<DatasetRecord> ten{
    {.name = "cifar10",
     .aliases = {"cifar-10"},
     .summary = "Small photographs: 32 x 32 colour images, ten classes",
     .help = "Reads the binary version (data_batch_1.bin ... test_batch.bin) from --data-dir, "
             "MASE_DATA or ~/.cache/mase (or 'cifar10' or 'cifar-10-batches-bin' in it).",
     .load = load_ten}};
const Register<DatasetRecord> hundred{
    {.name = "cifar100",
     .aliases = {"cifar-100"},
     .summary = "Small photographs: 32 x 32 colour images, a hundred classes",
     .help = "Reads the binary version (train.bin, test.bin) from --data-dir, MASE_DATA or "
             "~/.cache/mase (or 'cifar100' or 'cifar-100-binary' in it).",
     .load = load_hundred}};

}  // namespace
}  // namespace mase::cifar_dataset
