// SPDX-License-Identifier: Apache-2.0
// The binary files image data sets are published in. All input is hostile: sizes are checked
// against the bytes that are there before anything is allocated for them.
#include "mase/data/images.h"

namespace mase {
namespace {

constexpr size_t most_image_bytes = size_t{1} << 31;

uint32_t big_endian(const std::vector<uint8_t>& bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) << 24 | static_cast<uint32_t>(bytes[at + 1]) << 16 |
         static_cast<uint32_t>(bytes[at + 2]) << 8 | static_cast<uint32_t>(bytes[at + 3]);
}

struct Idx {
  Shape shape;
  std::vector<uint8_t> values;
};

// Magic 0 0 8 rank, one big-endian size for each dimension, bytes.
Idx read_idx(const std::string& path, size_t rank) {
  const std::vector<uint8_t> bytes = read_packed(path).bytes;
  const size_t header = 4 + 4 * rank;
  if (bytes.size() < header || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != rank)
    throw Error(path, fmt::format("is no idx file of bytes with {} dimensions", rank));
  Idx idx;
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t size = big_endian(bytes, 4 + 4 * i);
    idx.shape.push_back(size);
    count *= size;
    if (count > most_image_bytes) count = most_image_bytes + 1;
  }
  if (count != bytes.size() - header)
    throw Error(
        path,
        fmt::format("says {} and holds {} bytes", shape_text(idx.shape), bytes.size() - header),
        "fetch it again");
  idx.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return idx;
}

}  // namespace

ByteImages read_idx_images(const std::string& images, const std::string& labels) {
  Idx pixels = read_idx(images, 3);
  const Idx classes = read_idx(labels, 1);
  if (pixels.shape[0] != classes.shape[0])
    throw Error(labels, fmt::format("{} labels for {} images", classes.shape[0], pixels.shape[0]));
  ByteImages result;
  result.sample = {1, pixels.shape[1], pixels.shape[2]};
  result.pixels = std::move(pixels.values);
  result.labels.assign(classes.values.begin(), classes.values.end());
  return result;
}

ByteImages read_cifar_images(const std::vector<FileBytes>& files, int label_bytes) {
  ByteImages result;
  result.sample = {3, 32, 32};
  constexpr size_t image = 3072;
  const size_t record = image + static_cast<size_t>(label_bytes);
  for (const auto& [place, bytes] : files) {
    if (bytes.empty() || bytes.size() % record != 0)
      throw Error(
          place, fmt::format("{} bytes are no whole number of images of {}", bytes.size(), record));
    for (size_t at = 0; at < bytes.size(); at += record) {
      result.labels.push_back(bytes[at + static_cast<size_t>(label_bytes) - 1]);
      const auto* first = bytes.data() + at + label_bytes;
      result.pixels.insert(result.pixels.end(), first, first + image);
    }
  }
  return result;
}

}  // namespace mase
