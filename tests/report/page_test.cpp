// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/report/pages/list_part.h"
#include "mase/report/pages/run_page.h"
#include "support/support.h"

namespace mase::page_test {
namespace {

namespace fs = std::filesystem;

const char* const header =
    "epoch,step,train_acc_step,train_loss_step,val_acc_epoch,val_loss_epoch,learning_rate,"
    "seconds\n";

RunData metrics(const std::string& rows) {
  RunData run;
  read_metrics(header + rows, "metrics.csv", run);
  return run;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string run_folder(const std::string& name, const std::string& json,
                       const std::string& rows = "") {
  const std::string folder = test::temporary_folder() + "/" + name;
  make_directories(folder + "/software");
  if (!json.empty()) test::write(folder + "/run.json", json);
  if (!rows.empty()) test::write(folder + "/software/metrics.csv", header + rows);
  return folder;
}

TEST(Metrics, SeparatesStepsAndEpochsAndAveragesEpochs) {
  const RunData run = metrics(
      "0,1,0.5,2.0,,,0.1,0.5\n0,2,0.7,1.0,,,0.1,1\n0,2,,,0.6,1.5,,1.25\n"
      "1,3,0.9,0.5,,,0.05,2\n1,3,,,0.8,nan,,2.5\n");
  EXPECT_EQ(run.rows, 5u);
  EXPECT_EQ(run.curve("train_loss_step")->x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(run.curve("train_loss_step")->y, (std::vector<double>{2, 1, 0.5}));
  EXPECT_EQ(run.curve("train_loss_logged")->y, (std::vector<double>{1.5, 0.5}));
  EXPECT_EQ(run.curve("train_loss_logged")->x, (std::vector<double>{2, 3}));
  EXPECT_EQ(run.curve("train_loss_epoch"), nullptr);  // that is the mean over all batches
  EXPECT_EQ(run.curve("val_acc_epoch")->y, (std::vector<double>{0.6, 0.8}));
  EXPECT_TRUE(std::isnan(run.curve("val_loss_epoch")->y.back()));
  EXPECT_EQ(run.epoch_seconds, (std::vector<double>{1.25, 2.5}));
}

TEST(Metrics, AMeanOfTheFileIsNotReplacedByOneOfLoggedSteps) {
  RunData run;
  read_metrics("epoch,step,train_loss_step,train_loss_epoch\n0,1,2.0,\n0,2,,1.25\n", "m.csv", run);
  EXPECT_EQ(run.curve("train_loss_epoch")->y, (std::vector<double>{1.25}));
  EXPECT_EQ(run.curve("train_loss_logged"), nullptr);
}

TEST(Metrics, ARepeatedStepReplacesAndAHalfWrittenLineWaits) {
  const RunData run = metrics("0,1,,1,,,,\n0,2,,2,,,,\n0,3,,3,,,,\n0,2,,9,,,,\n0,4,,0.1");
  EXPECT_EQ(run.curve("train_loss_step")->x, (std::vector<double>{1, 2}));
  EXPECT_EQ(run.curve("train_loss_step")->y, (std::vector<double>{1, 9}));
}

TEST(Metrics, MalformedFilesAreOneClearLine) {
  EXPECT_EQ(error_of([] { metrics("0,1,,x\033,,,,\n"); }),
            "metrics.csv:2: column 'train_loss_step': 'x\\x1b' is not a number; give a metrics.csv "
            "as ch train writes it");
  EXPECT_EQ(
      error_of([] { metrics("0,1,2\n"); }),
      "metrics.csv:2: 3 cells, but the header names 8 columns; give a metrics.csv as ch train "
      "writes it");
  EXPECT_NE(error_of([] {
              RunData run;
              read_metrics(std::string(5000, ',') + "\n", "m.csv", run);
            }).find("too many"),
            std::string::npos);
  RunData empty;
  read_metrics("", "m.csv", empty);
  EXPECT_EQ(empty.rows, 0u);
}

TEST(RunFolder, AnythingMayBeAbsent) {
  EXPECT_EQ(read_run(run_folder("a", "{}")).name, "a");
  EXPECT_EQ(read_run(run_folder("b", "", "0,1,,1,,,,\n")).rows, 1u);
  EXPECT_NE(error_of([] { read_run(test::temporary_folder()); }).find("is not a run folder"),
            std::string::npos);
}

TEST(RunFolder, LenientReadingNotesWhatItCouldNotRead) {
  const std::string folder = run_folder("bad", "[1", "0,1,,1,,,,\n");
  EXPECT_THROW(read_run(folder), Error);
  const RunData run = read_run_leniently(folder);
  EXPECT_EQ(run.rows, 1u);
  EXPECT_NE(run.problem.find("run.json"), std::string::npos);
}

TEST(RunFolder, FindsRunsBelowAndFollowsNoLinks) {
  const std::string root = test::temporary_folder();
  for (const char* name : {"/b", "/deep/a"}) {
    make_directories(root + name);
    test::write(root + name + "/run.json", "{}");
  }
  fs::create_directory_symlink(root, root + "/loop");
  EXPECT_EQ(find_run_folders(root), (std::vector<std::string>{root + "/b", root + "/deep/a"}));
}

std::string page_of(const std::vector<RunData>& runs) {
  const PageContent content = runs_content(runs);
  return page_html(content.frame, content.parts);
}

size_t occurrences(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Page, HostileTextStaysText) {
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--<script>\"'";
  RunData run = metrics("0,1,0.5,2.0,,,0.1,0.5\n0,2,,,0.6,1.5,,1\n1,3,,,0.7,1.25,,2\n");
  run.name = hostile;
  run.run = Dict{{"kind", hostile},
                 {"status", hostile},
                 {"problem", hostile},
                 {"dataset", Dict{{"name", hostile}, {"identity", hostile}}},
                 {"options", List{Dict{{"name", hostile}, {"effective", hostile}}}},
                 {"model", Dict{{"name", "\xFF</script>"}}}};
  run.problem = hostile;
  RunData other = run;
  other.run["options"] = List{Dict{{"name", hostile}, {"effective", "b"}}};
  for (const std::string& page : {page_of({run}), page_of({run, other})}) {
    EXPECT_EQ(page.find("<img"), std::string::npos);
    EXPECT_EQ(page.find("<!--<"), std::string::npos);
    EXPECT_EQ(occurrences(page, "</script>"), 1u);
    EXPECT_NE(page.find("&lt;img src=x"), std::string::npos);
    EXPECT_NE(page.find("connect-src 'none'"), std::string::npos);
  }
}

TEST(Page, FiguresSayWhatTheyWereMeasuredOn) {
  RunData run = metrics("0,1,0.5,2.0,,,0.1,0.5\n0,2,,,0.6,1.5,,1\n1,3,,,0.7,1.25,,2\n");
  run.name = "a run";
  run.run = parse_json(
      R"({"best":{"val_acc_epoch":0.7,"val_loss_epoch":1.25},"dataset":{"name":"jsc","test_rows":5000},
          "evaluation":{"split":"validation","accuracy":0.7},"status":"finished"})",
      "run.json");
  const std::string one = page_of({run});
  EXPECT_NE(one.find("Measured on jsc (rows: test 5,000)."), std::string::npos) << one;
  EXPECT_NE(one.find("Best validation accuracy</div><div class=\"tile-value\">70.00 %"),
            std::string::npos);
  EXPECT_EQ(one.find("test accuracy"), std::string::npos);
  EXPECT_NE(one.find("<svg"), std::string::npos);
  // The validation figure stands in no column of the test's.
  EXPECT_EQ(page_of({run, run}).find("test accuracy"), std::string::npos);
  EXPECT_NE(list_part({{"deep/a run", run}}, "f")
                .html.find("<a href=\"run?run=deep%2Fa%20run\">a run</a>"),
            std::string::npos);
}

TEST(Page, NumbersAreThoseOfTheFile) {
  const std::string page = page_of({metrics("0,1,0.123456,2.5,,,0.001,0.5\n0,2,,,0.6,inf,,1\n")});
  EXPECT_NE(page.find("data-x=\"1\" data-y=\"0.123456\""), std::string::npos);
  EXPECT_NE(page.find("data-x=\"2\" data-y=\"0.6\""), std::string::npos);
  EXPECT_EQ(page.find("data-y=\"inf\""), std::string::npos);  // no point, and no wrong one
}

TEST(Page, LearnedWidthsAreTheResultOfTheirRun) {
  RunData run = metrics("0,1,,,0.7,1.25,,2\n");
  run.name = "bits";
  run.run = parse_json(
      R"({"front":[{"path":"a/front_1.mz","epoch":3,"ebops":377,"weights":20,"val_accuracy":0.68,
          "test_accuracy":0.67,"test_rows":4000,"test_rows_with_overflow":1}]})",
      "run.json");
  const std::string page = page_of({run});
  for (const char* words : {"Front of learned widths", "front_1.mz", ">377<", "68.00 %", "67.00 %"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(page.find("Best validation accuracy</div>"), std::string::npos);  // of none of them
}

TEST(Page, ALongRunStaysSmall) {
  std::string rows;
  for (int i = 0; i < 200000; ++i)
    rows += fmt::format("{},{},0.{:06},{}.123456,,,0.001,{}\n", i / 1000, i, i, i % 7, i * 0.01);
  EXPECT_LT(page_of({metrics(rows)}).size(), 600'000u);
}

TEST(Page, FiveHundredRunsStaySmall) {
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows += fmt::format(
        "{0},{1},0.5{0:02},1.{0:02},,,0.001,{0}\n{0},{1},,,0.6{0:02},1.1{0:02},,{0}\n", i, i + 1);
  std::vector<RunData> runs(500, metrics(rows));
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = fmt::format("learning_rate={},seed={}", i / 5, i % 5);
    runs[i].run = Dict{{"seed", static_cast<int64_t>(i % 5)},
                       {"options", List{Dict{{"name", "learning_rate"},
                                             {"effective", 0.001 * static_cast<double>(i / 5)}}}}};
  }
  const std::string page = page_of(runs);
  EXPECT_LT(page.size(), 2'000'000u);
  EXPECT_EQ(occurrences(page, "<tr data-run="), 500u);
}

TEST(Page, TheScriptNeverBuildsMarkupFromText) {
  for (const char* word : {"innerHTML", "insertAdjacent", "document.write", "eval(", "</script"})
    EXPECT_EQ(page_script().find(word), std::string_view::npos) << word;
  EXPECT_LT(page_script().size(), 24'000u);  // small enough to be read
}

TEST(ReportCommand, WritesAPageAndSaysWhatIsWrong) {
  const std::string folder = run_folder("one", "{\"kind\":\"train\"}", "0,1,,1,,,,\n");
  test::RunResult result = test::ch({"report", folder});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder + "/report.html"));
  const std::string other = run_folder("two", "{\"kind\":\"train\"}", "0,1,,1,,,,\n");
  result = test::ch({"report", folder, other, "--output", folder + "/both.html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(test::read(folder + "/both.html").find("Comparison of runs"), std::string::npos);

  // Namesakes are told apart by the ends of their paths, not by whole paths.
  const std::string root = test::temporary_folder();
  for (const char* name : {"/first/same", "/second/same"}) {
    make_directories(root + name);
    test::write(root + name + "/run.json", "{}");
  }
  result = test::ch({"report", root, "--output", root + "/two.html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(test::read(root + "/two.html").find(" first/same<"), std::string::npos);

  result = test::ch({"report", folder + "/absent"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("does not exist"), std::string::npos) << result.err;
  result = test::ch({"report", test::temporary_folder()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("holds no run"), std::string::npos) << result.err;
  test::write(folder + "/run.json", "{\"kind\": oops}");
  result = test::ch({"report", folder});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

}  // namespace
}  // namespace mase::page_test
