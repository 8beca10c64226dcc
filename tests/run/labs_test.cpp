// SPDX-License-Identifier: Apache-2.0
// Labs 1 and 2 through the library alone, without a terminal: two experiments at once in one
// process, each as the commands do it, to the bit.
#include <filesystem>
#include <thread>

#include "mase/base/text.h"
#include "mase/run/experiment.h"
#include "support/graph_bits.h"
#include "support/support.h"

namespace mase::labs_test {
namespace {

using test::expect_same_bits;

const Dict lab1{{"model", "jsc-tiny"}, {"dataset", "jsc-sim"},  {"sim_rows", 3000},
                {"max_epochs", 3},     {"learning_rate", 1e-2}, {"batch_size", 64}};

struct Finished {
  TrainResult trained;
  Graph graph;
  std::vector<std::string> lines, tables;
  int64_t steps = 0;
};

// Everything an observer is told is kept; nothing else is shared.
Observer recorder(Finished& into) {
  Observer observer;
  observer.log = [&into](LogLevel, const std::string& line) { into.lines.push_back(line); };
  observer.print = [&into](const std::string& text) { into.tables.push_back(text); };
  observer.training.on_step = [&into](const StepEvent&) { ++into.steps; };
  return observer;
}

Finished train_lab1(const std::string& folder, int64_t seed) {
  Finished finished;
  Dict given = lab1;
  given.set("seed", seed);
  given.set("project_dir", folder);
  given.set("project", fmt::format("seed{}", seed));
  const Settings settings = experiment_settings(given);
  Experiment experiment(experiment_spec(settings), recorder(finished));
  experiment.prepare();
  RunFolder run = experiment.create_folder(output_spec(settings), "train");
  finished.trained = experiment.train(train_spec(settings), &run);
  finished.graph = experiment.graph();
  return finished;
}

// The same by the command.
std::string command_lab1(const std::string& folder, int64_t seed) {
  const std::string project = fmt::format("command{}", seed);
  const test::RunResult result =
      test::ch({"train", "jsc-tiny", "jsc-sim", "--sim-rows", "3000", "--max-epochs", "3",
                "--learning-rate", "1e-2", "--batch-size", "64", "--seed", std::to_string(seed),
                "--project-dir", folder, "--project", project},
               folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return folder + "/" + project;
}

TEST(Labs, TwoTrainingsAtOnceGiveTheCommandsBits) {
  const std::string folder = test::temporary_folder();
  Finished first, second;
  std::thread one([&] { first = train_lab1(folder, 1); });
  std::thread two([&] { second = train_lab1(folder, 2); });
  one.join();
  two.join();
  for (const auto& [finished, seed] : {std::pair(&first, 1), std::pair(&second, 2)}) {
    EXPECT_EQ(finished->trained.outcome.status, TrainStatus::finished);
    EXPECT_GT(finished->steps, 3 * 30);
    EXPECT_FALSE(finished->lines.empty());
    const std::string command = command_lab1(folder, seed);
    const Checkpoint best = load_checkpoint(command + "/software/training_ckpts/best.mz");
    ASSERT_TRUE(best.graph);
    expect_same_bits(*best.graph, finished->graph);
    const Value ours = read_json(finished->trained.folder + "/run.json"),
                theirs = read_json(command + "/run.json");
    for (const char* key : {"status", "kind", "model", "dataset", "summary", "best", "evaluation"})
      EXPECT_EQ(ours[key], theirs[key]) << key;
    EXPECT_EQ(ours["best"]["val_loss_epoch"].as_double(),
              *finished->trained.outcome.state.best_loss);
  }
  EXPECT_NE(first.trained.outcome.state.best_loss, second.trained.outcome.state.best_loss);
}

TEST(Labs, NothingIsWrittenWithoutAFolder) {
  const std::string folder = test::temporary_folder();
  const Settings settings = experiment_settings(lab1);
  Experiment experiment(experiment_spec(settings));
  experiment.prepare();
  const TrainResult result = experiment.train(train_spec(settings));
  EXPECT_EQ(result.outcome.status, TrainStatus::finished);
  EXPECT_EQ(result.folder, "");
  const Evaluation tested = experiment.evaluate("test");
  EXPECT_EQ(tested.split, "test");
  EXPECT_EQ(tested.score.rows, experiment.dataset()->test.rows());
  EXPECT_EQ(tested.record["accuracy"].as_double(), tested.score.accuracy());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Labs, ATrainingIsCancelledByItsObserver) {
  const Settings settings = experiment_settings(lab1);
  int64_t steps = 0;
  Observer observer;
  observer.training.on_step = [&](const StepEvent&) { ++steps; };
  observer.cancelled = [&] { return steps >= 10; };
  Experiment experiment(experiment_spec(settings), observer);
  experiment.prepare();
  EXPECT_EQ(experiment.train(train_spec(settings)).outcome.status, TrainStatus::interrupted);
  EXPECT_LT(steps, 20);
}

struct Transformed {
  Graph graph;
  std::string text, folder;
};

Transformed transform_lab2(const std::string& folder, const std::string& model) {
  Transformed done;
  Observer observer;
  observer.print = [&](const std::string& text) { done.text += text; };
  const Settings settings =
      experiment_settings(Dict{{"model", model},
                               {"load", test::golden_path("torch/" + model + ".ckpt")},
                               {"project_dir", folder},
                               {"project", model}},
                          test::source_path("examples/lab2.toml"));
  Experiment experiment(experiment_spec(settings), observer);
  experiment.prepare();
  RunFolder run = experiment.create_folder(output_spec(settings), "transform");
  experiment.transform(&run);
  done.graph = experiment.graph();
  done.folder = run.path();
  return done;
}

// As text: a figure may be no number, which equals nothing.
std::string without_times(const std::string& path) {
  Value results = read_json(path);
  for (Value& result : results.list()) result.dict().erase("seconds");
  return to_json(results, 1);
}

TEST(Labs, TwoTransformsAtOnceDoWhatTheCommandDoes) {
  const std::string folder = test::temporary_folder();
  Transformed tiny, large;
  std::thread one([&] { tiny = transform_lab2(folder, "jsc-tiny"); });
  std::thread two([&] { large = transform_lab2(folder, "jsc-10x"); });
  one.join();
  two.join();
  for (const auto& [done, model] : {std::pair(&tiny, "jsc-tiny"), std::pair(&large, "jsc-10x")}) {
    EXPECT_NE(done->text.find(
                  test::read(test::golden_path(fmt::format("passes/report_graph_{}.txt", model)))),
              std::string::npos);
    const test::RunResult command =
        test::ch({"transform", model, "--config", test::source_path("examples/lab2.toml"), "--load",
                  test::golden_path(fmt::format("torch/{}.ckpt", model)), "--project",
                  fmt::format("command-{}", model), "--project-dir", folder},
                 folder);
    ASSERT_EQ(command.exit_code, 0) << command.err;
    EXPECT_NE(command.out.find(done->text), std::string::npos) << command.out << done->text;
    const std::string theirs = fmt::format("{}/command-{}/software/transform", folder, model);
    expect_same_bits(*load_checkpoint(theirs + "/transformed.mz").graph, done->graph);
    // They name the files that passes wrote, each in its own folder.
    EXPECT_EQ(replace_all(without_times(theirs + "/results.json"), "/command-", "/"),
              without_times(done->folder + "/software/transform/results.json"));
  }
}

TEST(Labs, MistakesAreErrorsBeforeDataAreRead) {
  const auto problem = [](const Dict& given) {
    try {
      const Settings settings = experiment_settings(given);
      Experiment experiment(experiment_spec(settings));
      experiment.prepare();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(problem({{"model", "jsc-tiny"}, {"batch_sise", 3}}).find("did you mean 'batch_size'?"),
            std::string::npos);
  EXPECT_NE(problem({{"model", "jsc-tinny"}, {"dataset", "jsc-sim"}}).find("'jsc-tiny'"),
            std::string::npos);
  EXPECT_NE(problem({{"model", "jsc-tiny"}, {"dataset", "jsc-sin"}}).find("'jsc-sim'"),
            std::string::npos);
  EXPECT_NE(problem({{"model", "jsc-tiny"}, {"batch_size", "many"}}).find("expected an integer"),
            std::string::npos);
}

}  // namespace
}  // namespace mase::labs_test
