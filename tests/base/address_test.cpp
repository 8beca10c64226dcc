// SPDX-License-Identifier: Apache-2.0
// No password of an address is shown, however the address is written.
#include "mase/base/address.h"

#include "mase/base/value.h"
#include "support/support.h"

namespace mase::address_test {
namespace {

TEST(Address, NoPasswordIsLeft) {
  for (const char* address :
       {"postgresql://ev:PW@host/db", "postgresql+psycopg2://ev:PW@host:5432/db?sslmode=require",
        "postgresql://host/db?sslpassword=a&password=PW", "postgresql://h/d?pass%77ord=PW&x=1",
        "postgresql://h/d?user=ev&PASSWORD=PW", "mysql://ev:PW@host/db", "POSTGRESQL://ev:PW@h/d",
        "host=h user=ev password=PW", "host=h password = 'PW x' user=ev", "ev:PW@host/db",
        "postgresql://ev:PW@[::1/st", "postgresql://ev:PW%@h/d", "postgresql://ev:a/PW@h/d",
        "postgresql://ev:a@b/PW@h/d", "postgresql://ev:a?PW@h/d", "sqlite://ev:PW@/x.db",
        "postgresql://ev:P W PW@h/d"}) {
    const std::string shown = masked_address(address);
    EXPECT_EQ(shown.find("PW"), std::string::npos) << address << " -> " << shown;
    const std::string word = without_passwords(std::string("storage=\"") + address + "\"");
    if (std::string(address).find("://") != std::string::npos) {
      EXPECT_EQ(word.find("PW"), std::string::npos) << word;
    }
  }
}

TEST(Address, WhatIsNoSecretStays) {
  for (const char* address :
       {"sqlite:///study.db", "sqlite:////home/me@here/a:b.db", "postgresql://ev@host:5432/db",
        "postgresql://host/db?application_name=a@b", "journal:study.log", "study.db"})
    EXPECT_EQ(masked_address(address), address);
  EXPECT_EQ(masked_address("postgresql://ev:PW@host/db?a=b"), "postgresql://ev@host/db?a=b");
  EXPECT_EQ(masked_address("postgresql://h/d?sslpassword=a&x=1"),
            "postgresql://h/d?sslpassword=***&x=1");
  const std::string text = "write postgresql://USER@HOST/DATABASE, or tokenizer=words max_tokens=3";
  EXPECT_EQ(without_passwords(text), text);
}

TEST(Address, EveryTextOfARecord) {
  const Value record = Dict{{"command", List{Value("--set"), Value("storage='p://a:PW@h/d'")}},
                            {"options", Dict{{"x", "password=PW"}, {"n", 3}}}};
  EXPECT_EQ(to_json(without_passwords(record)).find("PW"), std::string::npos);
}

}  // namespace
}  // namespace mase::address_test
