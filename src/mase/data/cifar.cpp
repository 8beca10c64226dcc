// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100: 32 x 32 colour images, in the published binary files or in those for
// Python, from the archive or unpacked.
#include <filesystem>

#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "mase/data/jets.h"

namespace mase::cifar_dataset {
namespace {

// One of the forms in which a data set is published.
struct Form {
  std::string archive, folder;
  std::vector<std::string> train;  // the first must be there
  std::string test;
  bool python;
};

struct Source {
  std::string name;
  std::vector<Form> forms;
  std::string labels;  // in the files for Python
  int label_bytes;     // in the binary ones
};

const Source ten_source{
    "cifar10",
    {{"cifar-10-binary.tar.gz",
      "cifar-10-batches-bin",
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
       "data_batch_5.bin"},
      "test_batch.bin",
      false},
     {"cifar-10-python.tar.gz",
      "cifar-10-batches-py",
      {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
      "test_batch",
      true}},
    "labels",
    1};

const Source hundred_source{
    "cifar100",
    {{"cifar-100-binary.tar.gz", "cifar-100-binary", {"train.bin"}, "test.bin", false},
     {"cifar-100-python.tar.gz", "cifar-100-python", {"train"}, "test", true}},
    "fine_labels",
    2};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// A folder with the files of one form, or an archive of them.
struct Found {
  std::string path = {};
  const Form* form = nullptr;
  bool archive = false;
};

Found find(const Source& source, const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  for (const Form& form : source.forms)
    for (const std::string& place :
         {folder + "/" + source.name, folder + "/" + form.folder, folder})
      if (is_file(place + "/" + form.test) && is_file(place + "/" + form.train[0]))
        return {place, &form, false};
  for (const Form& form : source.forms)
    for (const std::string& place : {folder + "/" + source.name, folder})
      if (is_file(place + "/" + form.archive)) return {place + "/" + form.archive, &form, true};
  return {};
}

std::vector<FileBytes> read_files(const Found& found, const std::vector<std::string>& names) {
  if (found.archive) return read_archive(found.path, names);
  std::vector<FileBytes> files;
  for (const std::string& name : names)
    if (is_file(found.path + "/" + name)) files.push_back(read_packed(found.path + "/" + name));
  return files;
}

Dataset load(const Source& source, std::vector<std::string> classes,
             const DatasetOptions& options) {
  const Found found = find(source, options);
  if (!found.form)
    throw Error(source.name, fmt::format("no files of this data set in {}", data_folder(options)),
                fmt::format("ch data fetch {} downloads them; or put {} there, packed or not, or "
                            "name its folder with --data-dir",
                            source.name, source.forms[0].archive));
  const Form& form = *found.form;
  std::vector<std::string> names = form.train;
  names.push_back(form.test);
  std::vector<FileBytes> train = read_files(found, names);
  if (train.size() < 2 || !ends_with(train.back().place, form.test))
    throw Error(found.path, fmt::format("has no {} or no {}", form.train[0], form.test),
                "fetch it again");
  const std::vector<FileBytes> test = {std::move(train.back())};
  train.pop_back();
  const auto images = [&](const std::vector<FileBytes>& files) {
    return form.python ? read_cifar_pickles(files, source.labels)
                       : read_cifar_images(files, source.label_bytes);
  };
  Dataset dataset =
      image_dataset(source.name, images(train), images(test), std::move(classes), options);
  if (train.size() < form.train.size())
    dataset.notice = fmt::format("{} of {} training files; figures are not comparable with others",
                                 train.size(), form.train.size());
  return dataset;
}

DatasetFile published(const Source& source, const Form& form, const char* sha256) {
  return {.variant = form.python ? "python" : "binary",
          .file = source.name + "/" + form.archive,
          .address = "https://www.cs.toronto.edu/~kriz/" + form.archive,
          .sha256 = sha256};
}

const Register<DatasetRecord> ten{
    {.name = "cifar10",
     .aliases = {"cifar-10"},
     .summary = "Small photographs: 32 x 32 colour images, ten classes",
     .help = "Reads the binary version (cifar-10-binary.tar.gz) or Python's "
             "(cifar-10-python.tar.gz), as archives or unpacked, from --data-dir, MASE_DATA or "
             "~/.cache/mase (or 'cifar10', 'cifar-10-batches-bin' or 'cifar-10-batches-py' in it).",
     .options = augmentation_options(),
     .files = {published(ten_source, ten_source.forms[0],
                         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
               published(ten_source, ten_source.forms[1],
                         "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce")},
     .where = [](const DatasetOptions& options) { return find(ten_source, options).path; },
     .load =
         [](const DatasetOptions& options) {
           return load(ten_source,
                       {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                        "ship", "truck"},
                       options);
         }}};

const Register<DatasetRecord> hundred{
    {.name = "cifar100",
     .aliases = {"cifar-100"},
     .summary = "Small photographs: 32 x 32 colour images, a hundred classes",
     .help = "Reads the binary version (cifar-100-binary.tar.gz) or Python's "
             "(cifar-100-python.tar.gz), as archives or unpacked, from --data-dir, MASE_DATA or "
             "~/.cache/mase (or 'cifar100', 'cifar-100-binary' or 'cifar-100-python' in it).",
     .options = augmentation_options(),
     .files = {published(hundred_source, hundred_source.forms[0],
                         "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"),
               published(hundred_source, hundred_source.forms[1],
                         "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7")},
     .where = [](const DatasetOptions& options) { return find(hundred_source, options).path; },
     .load =
         [](const DatasetOptions& options) {
           std::vector<std::string> names;
           for (int i = 0; i < 100; ++i) names.push_back(fmt::format("class_{}", i));
           return load(hundred_source, std::move(names), options);
         }}};

}  // namespace
}  // namespace mase::cifar_dataset
