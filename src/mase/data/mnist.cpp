// SPDX-License-Identifier: Apache-2.0
// MNIST and Fashion-MNIST: 28 x 28 grey images of ten kinds in idx files.
#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "mase/data/jets.h"

namespace mase::mnist_dataset {
namespace {

// Images and labels for training, images and labels for the test.
const std::vector<std::string> names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

struct Source {
  std::string name;
  std::vector<std::string> system_folders;  // where a package puts it
  std::string address;                      // of the folder of its files
  std::vector<std::string> sha256;          // of the packed files
};

const Source digit_source{"mnist",
                          {},
                          "https://storage.googleapis.com/cvdf-datasets/mnist/",
                          {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                           "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                           "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                           "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}};

const Source fashion_source{
    "fashion-mnist",
    {"/usr/share/dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist"},
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}};

std::vector<DatasetFile> files_of(const Source& source) {
  std::vector<DatasetFile> files;
  for (size_t i = 0; i < names.size(); ++i)
    files.push_back({.variant = "original",
                     .file = source.name + "/" + names[i] + ".gz",
                     .address = source.address + names[i] + ".gz",
                     .sha256 = source.sha256[i]});
  return files;
}

std::vector<std::string> folders_of(const Source& source, const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  std::vector<std::string> folders = {folder + "/" + source.name, folder};
  folders.insert(folders.end(), source.system_folders.begin(), source.system_folders.end());
  return folders;
}

Dataset load(const Source& source, std::vector<std::string> classes,
             const DatasetOptions& options) {
  const std::string& name = source.name;
  const std::vector<std::string> paths = find_files(name, folders_of(source, options), names);
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
     .files = files_of(digit_source),
     .where =
         [](const DatasetOptions& options) {
           return folder_of_files(folders_of(digit_source, options), names);
         },
     .load =
         [](const DatasetOptions& options) {
           return load(digit_source, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, options);
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
     .files = files_of(fashion_source),
     .where =
         [](const DatasetOptions& options) {
           return folder_of_files(folders_of(fashion_source, options), names);
         },
     .load =
         [](const DatasetOptions& options) {
           return load(fashion_source,
                       {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                        "Sneaker", "Bag", "Ankle boot"},
                       options);
         }}};

}  // namespace
}  // namespace mase::mnist_dataset
