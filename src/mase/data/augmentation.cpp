// SPDX-License-Identifier: Apache-2.0
#include "mase/data/augmentation.h"

#include <algorithm>

#include "mase/base/fields.h"
#include "mase/base/random.h"

namespace mase {

Schema augmentation_options() {
  return {
      {boolean_field("flip", "training images left for right, every second time", false),
       integer_field("crop", "training images moved by up to so many pixels, black coming in", 0)
           .between(0, 64)}};
}

void augment_sample(const Augmentation& augmentation, const Shape& sample, uint64_t seed,
                    uint64_t epoch, uint64_t row, const uint8_t* in, uint8_t* out) {
  // 2^32 rows an epoch are more than row numbers can count.
  Random random(seed, "augment", epoch << 32 | row);
  const int64_t channels = sample[0], height = sample[1], width = sample[2];
  const int64_t reach = augmentation.crop;
  const auto move = [&] {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * reach + 1))) - reach;
  };
  const int64_t down = move(), across = move();
  const bool turned = augmentation.flip && random.below(2) == 1;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      uint8_t* line = out + (c * height + y) * width;
      const int64_t from_y = y + down;
      if (from_y < 0 || from_y >= height) {
        std::fill_n(line, width, uint8_t{0});
        continue;
      }
      const uint8_t* source = in + (c * height + from_y) * width;
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_x = (turned ? width - 1 - x : x) + across;
        line[x] = from_x < 0 || from_x >= width ? 0 : source[from_x];
      }
    }
  }
}

}  // namespace mase
