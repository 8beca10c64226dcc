// SPDX-License-Identifier: Apache-2.0
// Data sets of images: bytes as they are published, to splits a network takes.
#pragma once

#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/data/packed_files.h"

namespace mase {

struct ByteImages {
  Shape sample;  // [channels, height, width]
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

// The idx files of MNIST and its relatives, packed with gzip or not.
ByteImages read_idx_images(const std::string& images, const std::string& labels);

// CIFAR's binary files: `label_bytes` bytes of which the last is the label, then 3 planes of 32 x
// 32 pixels. The files are one behind the other.
ByteImages read_cifar_images(const std::vector<FileBytes>& files, int label_bytes);

// CIFAR's files for Python: pickles of a dict with "data" [images, 3072] and "labels" (or
// "fine_labels"), read without running anything.
ByteImages read_cifar_pickles(const std::vector<FileBytes>& files, const std::string& labels);

// A folder of PNG, PPM and PGM files, one folder for each class: FOLDER/train/CLASS/*.png and
// FOLDER/test/CLASS/*.png, or FOLDER/CLASS/*.png, of which a fifth becomes the test images.
Dataset load_image_folder(const std::string& folder, const DatasetOptions& options);
bool is_image_folder(const std::string& path);

// The first of these folders that has all the files; a name may have ".gz" behind it. Empty: none.
std::string folder_of_files(const std::vector<std::string>& folders,
                            const std::vector<std::string>& names);
// Their paths; an Error that names the folders if none has them.
std::vector<std::string> find_files(const std::string& dataset,
                                    const std::vector<std::string>& folders,
                                    const std::vector<std::string>& names);

// A fifth of the images, which leave `train`; the same ones for everybody.
ByteImages take_test_images(ByteImages& train, const std::string& name);

// Validation rows are a share of the training rows chosen by the split's seed. Pixels are scaled
// channel by channel: to mean 0 and deviation 1 of the training rows (scaling = "standardise"), to
// [0, 1] ("min-max"), or not at all ("none").
Dataset image_dataset(const std::string& name, ByteImages train, ByteImages test,
                      std::vector<std::string> class_names, const DatasetOptions& options);

}  // namespace mase
