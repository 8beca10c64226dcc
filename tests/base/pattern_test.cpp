// SPDX-License-Identifier: Apache-2.0
// Regular expressions: what they match, what they refuse, and that no expression takes long.
#include "mase/base/pattern.h"

#include "mase/base/error.h"
#include "support/support.h"

namespace mase::pattern_test {
namespace {

TEST(Pattern, MatchesTheWhole) {
  EXPECT_TRUE(Pattern("seq_blocks_[58]").matches("seq_blocks_5"));
  EXPECT_FALSE(Pattern("seq_blocks_[58]").matches("seq_blocks_58"));
  EXPECT_TRUE(Pattern("blocks").occurs_in("seq_blocks_5"));
  EXPECT_TRUE(Pattern("(fc|conv)\\d+(?:_q)?").matches("conv12_q"));
  EXPECT_FALSE(Pattern("").matches("x"));
}

TEST(Pattern, SaysWhatIsWrong) {
  for (const char* expression : {"seq_(", "[", "*", "(?=x)", "(a)\\1", "((a{1000}){1000}){1000}"})
    try {
      Pattern pattern{expression};
      ADD_FAILURE() << expression;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("is not a regular expression"), std::string::npos);
    }
  EXPECT_THROW(Pattern(std::string(100000, 'x')), Error);
  EXPECT_THROW(Pattern(std::string(4000, '(')), Error);
}

TEST(Pattern, NeverTakesLong) {
  const std::string name(100000, 'x');  // the length at which std::regex overflows the stack
  EXPECT_FALSE(Pattern("(x+x+)+y").matches(name));
  EXPECT_TRUE(Pattern("(x*)*x").matches(name));
  EXPECT_FALSE(Pattern("(.*.*.*.*)*y").occurs_in(name));
}

}  // namespace
}  // namespace mase::pattern_test
