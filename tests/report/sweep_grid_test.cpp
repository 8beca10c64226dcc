// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/sweep_grid.h"

#include <set>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "support/support.h"

namespace mase::sweep_grid_test {
namespace {

const std::vector<std::string> base = {"train", "jsc-toy", "jsc", "--max-epochs=2"};

std::vector<SweepRun> nine_times_two() {
  return sweep_grid(
      base,
      {parse_variation("batch-size=64,256,1024"), parse_variation("learning_rate=1e-2,1e-3,1e-5")},
      2, 5, "out/runs");
}

RunData finished(double accuracy, double loss) {
  RunData data;
  data.run = Dict{{"best", Dict{{"val_acc_epoch", accuracy}, {"val_loss_epoch", loss}}},
                  {"speed", Dict{{"seconds", 2.0}}}};
  return data;
}

TEST(SweepGrid, SpansEveryCombination) {
  const std::vector<SweepRun> runs = nine_times_two();
  ASSERT_EQ(runs.size(), 18u);
  EXPECT_EQ(runs[0].name, "batch_size=64,learning_rate=1e-2,seed=5");
  EXPECT_EQ(runs[1].name, "batch_size=64,learning_rate=1e-2,seed=6");
  EXPECT_EQ(runs[17].name, "batch_size=1024,learning_rate=1e-5,seed=6");
  EXPECT_EQ(runs[0].words, (std::vector<std::string>{
                               "train", "jsc-toy", "jsc", "--max-epochs=2", "--batch-size=64",
                               "--learning-rate=1e-2", "--seed=5", "--project-dir=out/runs",
                               "--project=batch_size=64,learning_rate=1e-2,seed=5"}));
  std::set<std::string> names;
  for (const SweepRun& run : runs) names.insert(run.name);
  EXPECT_EQ(names.size(), 18u);
}

TEST(SweepGrid, OddValuesMakeSafeAndDistinctFolders) {
  const std::vector<SweepRun> runs = sweep_grid(
      base, {parse_variation("load=../a,..-a,b c," + std::string(500, 'x'))}, {}, 0, "r");
  std::set<std::string> names;
  for (const SweepRun& run : runs) {
    names.insert(run.name);
    EXPECT_EQ(run.name.find('/'), std::string::npos);
    EXPECT_LT(run.name.size(), 200u);
  }
  EXPECT_EQ(names.size(), 4u);
}

TEST(SweepGrid, MistakesAreNamed) {
  for (const char* text : {"", "=1", "a", "a=", "a=1,,2", "a=1,"})
    EXPECT_THROW(parse_variation(text), Error) << text;
  EXPECT_EQ(parse_variation("a=1,1,2").values, (std::vector<std::string>{"1", "2"}));
  EXPECT_THROW(sweep_grid(base, {}, 10001, 0, "r"), Error);
}

TEST(SweepState, OnlyFinishedRunsOfTheSameWordsAreTakenOver) {
  const std::string folder = test::temporary_folder();
  std::vector<SweepRun> runs = nine_times_two();
  runs[0].status = runs[1].status = runs[2].status = "finished";
  runs[3].status = "failed";
  const Value state = parse_json(to_json(sweep_state(runs, base)), "sweep.json");
  for (size_t i : {0, 1, 3}) {  // the folder of the third was deleted
    make_directories(folder + "/" + runs[i].name);
    test::write(folder + "/" + runs[i].name + "/run.json", "{}");
  }
  std::vector<SweepRun> again = nine_times_two();
  again[1].words.push_back("--weight-decay=1");
  take_over_state(again, state, folder);
  EXPECT_EQ(again[0].status, "finished");
  EXPECT_EQ(again[1].status, "waiting");  // other words
  EXPECT_EQ(again[2].status, "waiting");
  EXPECT_EQ(again[3].status, "waiting");
  take_over_state(again, parse_json("{\"runs\": [1, {\"name\": 2}]}", "x"), folder);
  take_over_state(again, Dict(), folder);
}

TEST(SweepTable, MeansAndDeviationsOverSeeds) {
  const std::vector<SweepRun> runs =
      sweep_grid(base, {parse_variation("batch_size=64,256")}, 3, 0, "r");
  std::vector<SweepResult> results;
  for (size_t i = 0; i < runs.size(); ++i) {
    SweepResult result{&runs[i], {}};
    if (i != 5) result.data = finished(0.6 + 0.1 * static_cast<double>(i % 3), 1.0);
    results.push_back(result);
  }
  EXPECT_EQ(sweep_table(results),
            "batch_size  runs          val_acc          val_loss         seconds\n"
            "----------  ------------  ---------------  ---------------  ---------  ----\n"
            "        64  3             0.7000 ± 0.1000  1.0000 ± 0.0000  2.0 ± 0.0  best\n"
            "       256  3 (1 failed)  0.6500 ± 0.0707  1.0000 ± 0.0000  2.0 ± 0.0\n");
  const std::string csv = sweep_csv(results);
  EXPECT_EQ(split(csv, '\n').at(0),
            "run,batch_size,seed,status,best_epoch,val_acc_epoch,val_loss_epoch,test_accuracy,"
            "seconds,samples_per_second");
  EXPECT_EQ(split(csv, '\n').at(1), "\"batch_size=64,seed=0\",64,0,waiting,,0.6,1,,2,");
}

TEST(SweepTable, TestFiguresAreThoseOfTheTestRows) {
  const std::vector<SweepRun> runs =
      sweep_grid(base, {parse_variation("batch_size=64,256")}, 1, 0, "r");
  std::vector<SweepResult> results{{&runs[0], finished(0.6, 1.0)}, {&runs[1], finished(0.7, 1.0)}};
  const auto test_column = [&](size_t row) {
    return split(split(sweep_csv(results), '\n').at(row + 1).substr(1), ',').at(8);
  };
  // Measured on the validation rows, or on rows nobody recorded: not a test.
  results[0].data->run.dict().set("evaluation", Dict{{"split", "validation"}, {"accuracy", 0.6}});
  results[1].data->run.dict().set("evaluation", Dict{{"accuracy", 0.7}});
  EXPECT_EQ(test_column(0), "");
  EXPECT_EQ(test_column(1), "");
  EXPECT_EQ(sweep_table(results).find("test_acc"), std::string::npos);
  results[0].data->run.dict().set("evaluation", Dict{{"split", "test"}, {"accuracy", 0.5}});
  results[1].data->run.dict().set("evaluations", Dict{{"validation", Dict{{"accuracy", 0.7}}},
                                                      {"test", Dict{{"accuracy", 0.4}}}});
  EXPECT_EQ(test_column(0), "0.5");
  EXPECT_EQ(test_column(1), "0.4");
  EXPECT_NE(sweep_table(results).find("test_acc"), std::string::npos);
}

}  // namespace
}  // namespace mase::sweep_grid_test
