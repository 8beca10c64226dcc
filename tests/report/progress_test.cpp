// SPDX-License-Identifier: Apache-2.0
#include "mase/report/text/progress.h"

#include "mase/base/text.h"
#include "support/support.h"

namespace mase::progress_test {
namespace {

ProgressLine lab_line() {
  return {"Epoch 9",
          3084,
          3084,
          16.847,
          {{"v_num", "0"},
           {"train_acc_step", "0.730"},
           {"val_acc_epoch", "0.700"},
           {"val_loss_epoch", "0.933"}}};
}

TEST(Progress, LooksLikeTheLabs) {
  const std::string tail =
      "| 3084/3084 [00:16<00:00, 183.06it/s, v_num=0, train_acc_step=0.730, val_acc_epoch=0.700, "
      "val_loss_epoch=0.933]";
  const std::string text = progress_text(lab_line(), 236);
  EXPECT_EQ(text.substr(0, 14), "Epoch 9: 100%|");
  EXPECT_EQ(text.substr(text.size() - tail.size()), tail);
  EXPECT_EQ(display_width(text), 236);
}

TEST(Progress, NeverWiderThanTheTerminal) {
  for (int columns = 1; columns < 200; ++columns)
    EXPECT_LE(display_width(progress_text(lab_line(), columns)), columns);
}

TEST(Progress, EightyColumnsKeepTheValidationFigures) {
  const std::string text = progress_text(lab_line(), 80);
  EXPECT_NE(text.find("Epoch 9: 100% 3084/3084"), std::string::npos) << text;
  EXPECT_NE(text.find("val_acc_epoch=0.700, val_loss_epoch=0.933"), std::string::npos) << text;
  EXPECT_EQ(text.find("v_num"), std::string::npos) << text;
  EXPECT_EQ(text.find("it/s"), std::string::npos) << text;
}

TEST(Progress, PartialBarAndNoTerminal) {
  ProgressLine line{"Epoch 0", 1, 4, 2, {}};
  EXPECT_EQ(progress_text(line, 0), "Epoch 0:  25%|██▌       | 1/4 [00:02<00:06,  0.50it/s]");
  EXPECT_EQ(progress_text(line, 0, true), "Epoch 0:  25%|##5       | 1/4 [00:02<00:06,  0.50it/s]");
  line.done = 0;
  line.seconds = 0;
  EXPECT_EQ(progress_text(line, 0), "Epoch 0:   0%|          | 0/4 [00:00<?, ?it/s]");
}

TEST(Progress, TheBoxOfTheLabs) {
  std::string rule;
  for (int i = 0; i < 137; ++i) rule += "─";
  EXPECT_EQ(
      metric_box("Test metric",
                 {{"test_acc_epoch", 0.6988021731376648}, {"test_loss_epoch", 0.9353060722351074}},
                 137),
      rule + "\n       Test metric             DataLoader 0\n" + rule +
          "\n     test_acc_epoch         0.6988021731376648\n"
          "     test_loss_epoch        0.9353060722351074\n" +
          rule + "\n");
}

}  // namespace
}  // namespace mase::progress_test
