// SPDX-License-Identifier: Apache-2.0
// The split's rows equal scikit-learn's for five sizes (golden lists; digests for the large ones).
#include "mase/data/legacy_random.h"

#include "mase/base/value.h"
#include "mase/data/digest.h"
#include "support/support.h"

namespace mase::legacy_random_test {
namespace {

std::string digest_of(const std::vector<uint32_t>& rows) {
  return sha256_hex(std::as_bytes(std::span(rows)));
}

void expect_starts_with(const std::vector<uint32_t>& rows, const Value& list) {
  const List& expected = list.as_list();
  ASSERT_LE(expected.size(), rows.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(rows[i], expected[i].as_int()) << i;
}

TEST(TrainTestSplit, EqualsScikitLearns) {
  const Value golden = read_json(test::golden_path("data/splits.json"));
  const List& cases = golden["cases"].as_list();
  ASSERT_EQ(cases.size(), 5u);
  for (const Value& one : cases) {
    const auto n = static_cast<uint32_t>(one["n"].as_int());
    const SplitRows split = train_test_split(n, 0.2, 42);
    SCOPED_TRACE(n);
    EXPECT_EQ(static_cast<int64_t>(split.first.size()), one["train_rows"].as_int());
    EXPECT_EQ(static_cast<int64_t>(split.second.size()), one["test_rows"].as_int());
    EXPECT_EQ(digest_of(split.first), one["train_sha256"].as_string());
    EXPECT_EQ(digest_of(split.second), one["test_sha256"].as_string());
    expect_starts_with(split.first, one[one["train"].is_null() ? "train_first" : "train"]);
    expect_starts_with(split.second, one[one["test"].is_null() ? "test_first" : "test"]);
  }
}

TEST(NumpyPermutation, HandlesTheSmallestSizes) {
  EXPECT_TRUE(numpy_permutation(42, 0).empty());
  EXPECT_EQ(numpy_permutation(42, 1), std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace mase::legacy_random_test
