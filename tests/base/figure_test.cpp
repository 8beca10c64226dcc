// SPDX-License-Identifier: Apache-2.0
// One figure, one rounding.
#include "mase/base/figure.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mase::figure_test {
namespace {

TEST(Figure, SharesOfRowsAreRoundedAlikeAsFloatsAndDoubles) {
  for (const int rows : {400, 4000, 20000, 166000})
    for (int hits = 0; hits <= rows; hits += rows / 400) {
      const double share = static_cast<double>(hits) / rows;
      const int64_t whole = (int64_t{hits} * 20000 + rows) / (int64_t{2} * rows);  // halves up
      const std::string wanted =
          whole == 10000 ? "1.0000" : "0." + std::to_string(10000 + whole).substr(1);
      EXPECT_EQ(figure_text(share), wanted);
      EXPECT_EQ(figure_text(static_cast<double>(static_cast<float>(share))), wanted);
    }
  EXPECT_EQ(figure_text(0.73875), "0.7388");
  EXPECT_EQ(figure_text(static_cast<double>(0.73875f)), "0.7388");
  EXPECT_EQ(figure_text(-0.00775), "-0.0078");
  EXPECT_EQ(figure_text(73.875, 2), "73.88");
}

TEST(Figure, LargeNumbersKeepTheirDigits) {
  EXPECT_EQ(figure_text(1234.56789), "1234.5679");
  EXPECT_EQ(figure_text(165.75941), "165.7594");
  EXPECT_EQ(figure_text(std::nan("")), "nan");
}

}  // namespace
}  // namespace mase::figure_test
