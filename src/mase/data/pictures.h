// SPDX-License-Identifier: Apache-2.0
// PNG, PPM and PGM files: one of them, or all that lie in a folder.
#pragma once

#include <string>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

struct Picture {
  int64_t channels = 0, height = 0, width = 0;  // 1 channel: grey, 3: red, green and blue
  std::vector<uint8_t> pixels;                  // height, width, channels
  bool transparent = false;                     // the file has an alpha channel; black is behind it
};

bool is_picture(const std::string& path);  // by its ending
Picture read_picture(const std::string& path);
// The pictures that lie in a folder, by name.
std::vector<std::string> picture_files(const std::string& folder);

// The file itself, or the pictures of a folder, which has to hold some.
std::vector<std::string> pictures_of(const std::string& path);

// The pixels of one file, or of all of a folder by name, 0 to 255: float32 [pictures, channels,
// height, width]. A grey picture has `channels` equal ones; otherwise all must be of this sample.
Tensor read_pictures(const std::string& path, const Shape& sample);
bool holds_pictures(const std::string& path);  // by its ending, or a folder
// Its shape, by the first picture; 0 channels: any, since it is grey.
Shape pictures_shape(const std::string& path);

}  // namespace mase
