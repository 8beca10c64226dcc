// SPDX-License-Identifier: Apache-2.0
// Training on images that are flipped and cropped: the same seed gives the same run, and it is
// another one than without.
#include <filesystem>
#include <sstream>

#include "mase/base/random.h"
#include "support/support.h"

namespace mase::augmentation_test {
namespace {

std::string pictures() {
  const std::string root = test::temporary_folder();
  Random random(1, "pictures");
  for (const char* name : {"dark", "light"}) {
    std::filesystem::create_directories(root + "/" + name);
    for (int i = 0; i < 12; ++i) {
      std::string pixels;
      for (int k = 0; k < 28 * 28; ++k)
        pixels += static_cast<char>(random.below(100) + (name[0] == 'd' ? 0 : 100));
      test::write(root + "/" + name + "/" + std::to_string(i) + ".pgm", "P5 28 28 255\n" + pixels);
    }
  }
  return root;
}

// The rows of metrics.csv without their last column, the seconds.
std::string metrics(const std::string& folder, const std::vector<std::string>& more) {
  const std::string out = test::temporary_folder();
  std::vector<std::string> command = {"train", "lenet", "images", "--dataset-folder", folder};
  for (const char* word : {"--max-epochs", "2", "--batch-size", "8", "--learning-rate", "1e-3",
                           "--project-dir", "runs", "--project", "run", "--no-test"})
    command.emplace_back(word);
  command.insert(command.end(), more.begin(), more.end());
  const test::RunResult result = test::ch(command, out);
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  std::istringstream file(test::read(out + "/runs/run/software/metrics.csv"));
  std::string line, rows;
  while (std::getline(file, line)) rows += line.substr(0, line.rfind(',')) + "\n";
  return rows;
}

TEST(Augmentation, IsSeeded) {
  const std::string folder = pictures();
  const std::vector<std::string> changed = {"--dataset-flip", "--dataset-crop", "3"};
  const std::string once = metrics(folder, changed);
  EXPECT_GT(once.size(), 100u);
  EXPECT_EQ(metrics(folder, changed), once);
  EXPECT_NE(metrics(folder, {}), once);
  std::vector<std::string> seeded = changed;
  seeded.insert(seeded.end(), {"--seed", "7"});
  EXPECT_NE(metrics(folder, seeded), once);
}

}  // namespace
}  // namespace mase::augmentation_test
