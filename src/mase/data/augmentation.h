// SPDX-License-Identifier: Apache-2.0
// Images changed a little each time training sees them: flipped, and cropped with padding (moved),
// as torchvision's RandomHorizontalFlip and RandomCrop(size, padding). What happens to a sample
// depends on the seed, the epoch and the row alone, so that a resumed run, or one of several
// processes, sees the same.
#pragma once

#include "mase/data/dataset.h"

namespace mase {

// Options of the data sets that are images: flip, crop.
Schema augmentation_options();

// One sample [channels, height, width] of a row in an epoch.
void augment_sample(const Augmentation& augmentation, const Shape& sample, uint64_t seed,
                    uint64_t epoch, uint64_t row, const uint8_t* in, uint8_t* out);

}  // namespace mase
