// SPDX-License-Identifier: Apache-2.0
#include "mase/report/page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/report/plain_page.h"
#include "support/support.h"

namespace mase {
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

TEST(Page, HostileTextCannotLeaveTheDataBlock) {
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--<script>";
  RunData run = read_run(run_folder("r", "{}"));
  run.name = hostile;
  run.run = Dict{{"kind", "train"}, {hostile, hostile}, {"model", Dict{{"name", "\xFF</script>"}}}};
  const Value data = page_data({run}, {});
  const std::string page = page_html(page_json(data), data["title"].as_string(), false);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<!--<"), std::string::npos);
  size_t scripts = 0;
  for (size_t at = page.find("</script>"); at != std::string::npos;
       at = page.find("</script>", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 2u);
  const std::string plain = page_html("{}", hostile, false, plain_runs({run, run}));
  EXPECT_EQ(plain.find("<img"), std::string::npos);
  EXPECT_NE(plain.find("&lt;img src=x"), std::string::npos);
  EXPECT_NE(page.find("connect-src 'none'"), std::string::npos);
}

TEST(Page, SaysTheFiguresWithoutAScriptToo) {
  RunData run = metrics("0,1,0.5,2.0,,,0.1,0.5\n0,2,,,0.6,1.5,,1\n1,3,,,0.7,1.25,,2\n");
  run.name = "a run";
  run.run = parse_json(
      R"({"best":{"val_acc_epoch":0.7,"val_loss_epoch":1.25},
          "evaluation":{"split":"validation","accuracy":0.7},"status":"finished"})",
      "run.json");
  const std::string one = plain_runs({run});
  EXPECT_NE(
      one.find("<td>validation accuracy at the best epoch</td><td class=\"num\">70.00 %</td>"),
      std::string::npos)
      << one;
  EXPECT_NE(one.find("accuracy (validation)"), std::string::npos);
  EXPECT_EQ(one.find("test accuracy"), std::string::npos);
  EXPECT_NE(one.find("<svg"), std::string::npos);
  // The validation figure does not stand in the column of the test's.
  const std::string two = plain_runs({run, run});
  EXPECT_NE(two.find("<td class=\"num\">70.00 %</td><td class=\"num\">1.25</td>"
                     "<td class=\"num\">–</td>"),
            std::string::npos)
      << two;
  EXPECT_NE(plain_list({{"deep/a run", run}}).find("<a href=\"run?run=deep%2Fa%20run\">a run</a>"),
            std::string::npos);
}

TEST(Page, NumbersAreThoseOfTheFile) {
  const RunData run = metrics("0,1,0.123456789,2.5,,,0.001,0.5\n0,2,,,0.6,inf,,1\n");
  const Value data = parse_json(page_json(page_data({run}, {})), "page");
  const Value& curves = data["runs"].as_list().at(0)["curves"];
  for (const Value& curve : curves.as_list()) {
    const double first = curve["y"].as_list().at(0).as_double();
    const std::string& key = curve["key"].as_string();
    EXPECT_TRUE(key != "train_acc_step" || first == 0.123456789);
    EXPECT_TRUE(key != "val_loss_epoch" || first == INFINITY);
  }
  EXPECT_EQ(curves.as_list().size(), 7u);  // five columns with values, two means
}

TEST(Page, AComparisonCarriesOnlyWhatItShows) {
  RunData run = metrics("0,1,0.5,2.0,,,0.1,0.5\n");
  run.run = parse_json(
      R"({"options":[{"name":"batch_size","effective":4}],"transform":{"nodes":[],"accuracy":{"after":0.25}},
          "evaluation":{"accuracy":0.5,"confusion":[[1]]}})",
      "run.json");
  const Value data = page_data({run, run}, {});
  const Value& first = data["runs"].as_list().at(0);
  EXPECT_TRUE(first["run"]["options"].is_list());
  EXPECT_TRUE(first["run"]["transform"]["nodes"].is_null());
  EXPECT_EQ(first["run"]["transform"]["accuracy"]["after"].as_double(), 0.25);
  EXPECT_TRUE(first["run"]["evaluation"]["confusion"].is_null());
  for (const Value& curve : first["curves"].as_list())
    EXPECT_FALSE(curve["key"].as_string().ends_with("_step"));
}

TEST(Page, ALongRunStaysSmall) {
  std::string rows;
  for (int i = 0; i < 200000; ++i)
    rows += fmt::format("{},{},0.{:06},{}.123456,,,0.001,{}\n", i / 1000, i, i, i % 7, i * 0.01);
  const RunData run = metrics(rows);
  const Value data = page_data({run}, {});
  EXPECT_TRUE(data["runs"].as_list().at(0)["thinned"].as_bool());
  EXPECT_LT(page_html(page_json(data), "t", false).size(), 1'500'000u);
}

TEST(Page, TheDigestFollowsTheContent) {
  const std::string one = page_json(Dict{{"a", 1}}), two = page_json(Dict{{"a", 2}});
  EXPECT_NE(parse_json(one, "")["digest"], parse_json(two, "")["digest"]);
  EXPECT_EQ(one, page_json(Dict{{"a", 1}}));
}

// The bundle that is checked in was made from the sources that are checked in.
TEST(Bundle, IsCurrent) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::source_path("web/src")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names)
    all += name + std::string(1, '\0') + test::read(test::source_path("web/src/" + name));
  const std::string joined = test::temporary_folder() + "/sources";
  test::write(joined, all);
  const std::string hex = test::run({"sha256sum", joined}).out.substr(0, 64);
  for (std::string_view bundle : {page_script(), page_style()})
    EXPECT_NE(bundle.substr(0, 200).find(hex), std::string_view::npos)
        << "web/dist is older than web/src: see web/README.md";
  EXPECT_NE(test::read(test::source_path("web/dist/LICENSES.txt")).find("MIT License"),
            std::string::npos);
  EXPECT_EQ(page_script().find("</script"), std::string_view::npos);
}

TEST(Bundle, NeverBuildsMarkupFromText) {
  for (const auto& entry : fs::directory_iterator(test::source_path("web/src")))
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("})
      EXPECT_EQ(test::read(entry.path().string()).find(word), std::string::npos)
          << entry.path() << ": " << word;
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
  EXPECT_NE(test::read(root + "/two.html").find("\"name\":\"first/same\""), std::string::npos);

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
}  // namespace mase
