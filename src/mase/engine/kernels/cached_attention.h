// SPDX-License-Identifier: Apache-2.0
// Attention of one new position over a cache of keys and values. Keys lie with their positions
// innermost, [heads][width][positions], so that the scores of many positions are one vector and no
// sum runs across lanes; values as [heads][positions][result].
#pragma once

#include <cstdint>

namespace mase::kernels {

struct CachedAttention {
  int64_t heads, key_heads;  // of queries; of keys and values, each for several of these
  int64_t width, result;     // of a query and a key; of a value
  int64_t positions;         // there is room for
  float scale;
};

// scores[j - begin] = scale * q . key j of this query head's keys, for begin <= j < end.
void cached_scores(const CachedAttention& shape, int64_t head, const float* q, const float* keys,
                   int64_t begin, int64_t end, float* scores);
// Scores become shares, in their place.
void share_out(float* scores, int64_t count);
// out = sum of share j - begin times value j.
void cached_mix(const CachedAttention& shape, int64_t head, const float* shares,
                const float* values, int64_t begin, int64_t end, float* out);

}  // namespace mase::kernels
