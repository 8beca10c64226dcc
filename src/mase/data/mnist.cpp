// SPDX-License-Identifier: Apache-2.0
// MNIST and Fashion-MNIST: 28 x 28 grey images of ten kinds in idx files.
#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "mase/data/jets.h"

namespace mase::mnist_dataset {
namespace {

Dataset load(const std::string& name, std::vector<std::string> folders,
             std::vector<std::string> classes, const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  folders.insert(folders.begin(), {folder + "/" + name, folder});
  const std::vector<std::string> paths =
      find_files(name, folders,
                 {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                  "t10k-labels-idx1-ubyte"});
  return image_dataset(name, read_idx_images(paths[0], paths[1]),
                       read_idx_images(paths[2], paths[3]), std::move(classes), options);
}

const Register<DatasetRecord> digits{
    {.name = "mnist",
     .summary = "Handwritten digits: 28 x 28 grey images, ten classes",
     .help = "Reads the original idx files, packed or not, from --data-dir, MASE_DATA or "
             "~/.cache/mase (or 'mnist' in it). Pixels are standardised by the training images "
             "(--scaling).",
     .options = augmentation_options(),
     .load = [](const DatasetOptions& options) {
       return load("mnist", {}, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, options);
     }}};

const Register<DatasetRecord> fashion{
    {.name = "fashion-mnist",
     .aliases = {"fashion_mnist"},
     .summary = "Articles of clothing: 28 x 28 grey images, ten classes",
     .help = "Reads the original idx files, packed or not, from --data-dir, MASE_DATA or "
             "~/.cache/mase (or 'fashion-mnist' in it); where Debian's package "
             "dataset-fashion-mnist is installed, from there. Pixels are standardised by the "
             "training images (--scaling).",
     .options = augmentation_options(),
     .load = [](const DatasetOptions& options) {
       return load("fashion-mnist",
                   {"/usr/share/dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist"},
                   {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                    "Sneaker", "Bag", "Ankle boot"},
                   options);
     }}};

}  // namespace
}  // namespace mase::mnist_dataset
