// SPDX-License-Identifier: Apache-2.0
// What is read from flags and files, and what is shown of it.
#include "mase/run/settings.h"

#include "support/support.h"

namespace mase::settings_test {
namespace {

TEST(Settings, PasswordsOfAddressesAreNeverShown) {
  const std::string path = test::temporary_folder() + "/a.toml";
  test::write(path, "server = \"postgresql://me:hidden@host/db\"\n");
  SettingsRequest request;
  request.options = {{{.name = "server", .type = FieldType::text, .secret = true},
                      {.name = "storage", .type = FieldType::text}}};
  request.given = Dict{{"storage", "postgresql://me:concealed@host/db"}};
  request.config_path = path;
  const Settings settings = read_settings(request);
  EXPECT_EQ(settings["server"].as_string(), "postgresql://me:hidden@host/db");
  for (const std::string& shown :
       {settings_table(settings, true), to_json(settings.rows_value()), settings.toml()}) {
    EXPECT_EQ(shown.find("hidden"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("concealed"), std::string::npos) << shown;
    EXPECT_NE(shown.find("postgresql://me@host/db"), std::string::npos) << shown;
  }
}

}  // namespace
}  // namespace mase::settings_test
