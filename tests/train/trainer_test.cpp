// SPDX-License-Identifier: Apache-2.0
// The training loop on small data in memory: it learns, it is reproducible to the bit, it survives
// interruption, and every option does what it says.
#include "mase/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "mase/base/random.h"
#include "mase/models/model.h"
#include "mase/run/run_folder.h"
#include "mase/train/evaluation.h"
#include "support/counted_memory.h"
#include "support/graph_bits.h"
#include "support/support.h"

namespace mase::trainer_test {
namespace {

using test::expect_same_bits;

// Three noisy clouds in four dimensions.
Split clouds(int64_t rows, uint64_t index) {
  Random random(5, "clouds", index);
  Split split;
  split.x = Tensor({rows, 4});
  split.labels = Tensor({rows}, DType::i32);
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t label = static_cast<int32_t>(random.below(3));
    split.labels.mutable_data<int32_t>()[row] = label;
    for (int64_t f = 0; f < 4; ++f)
      split.x.mutable_data<float>()[row * 4 + f] =
          static_cast<float>(random.normal() * 0.5 + (f == label ? 2 : 0));
  }
  return split;
}

Dataset cloud_data(int64_t rows = 500) {
  Dataset data;
  data.name = data.variant = "clouds";
  data.identity = "clouds-1";
  data.class_names = {"a", "b", "c"};
  data.train = clouds(rows, 0);
  data.validation = clouds(200, 1);
  data.test = clouds(200, 2);
  return data;
}

Graph network(const std::string& name = "jsc-toy", uint64_t seed = 1) {
  return make_model(name, {.sample_shape = {4}, .outputs = 3, .seed = seed});
}

TrainOptions quick() {
  TrainOptions options;
  options.learning_rate = 1e-2;
  options.max_epochs = 4;
  options.batch_size = 32;
  options.log_every_n_steps = 4;
  options.seed = 3;
  return options;
}

struct Trained {
  Graph graph;
  TrainOutcome outcome;
};

Trained train_clouds(const TrainOptions& options, const Dataset& data, RunFolder* run = nullptr,
                     bool resume = false, const TrainObserver& observer = {},
                     Graph graph = network()) {
  TrainSession session;
  if (run) session.folder = run->software();
  session.resume = resume;
  session.observer = observer;
  TrainOutcome outcome = train(graph, data, options, session);
  return {std::move(graph), std::move(outcome)};
}

bool same_bits(const Graph& a, const Graph& b) {
  const TensorTable first = state_dict(a), second = state_dict(b);
  for (size_t i = 0; i < first.size(); ++i)
    if (!first[i].second.same_bits(second[i].second)) return false;
  return true;
}

RunFolder new_run() { return RunFolder::create(test::temporary_folder(), "run", Dict{}); }

TEST(Trainer, LearnsWithEveryOptimiserAndSchedule) {
  const Dataset data = cloud_data();
  for (const char* optimizer : {"adam", "adamw", "sgd"}) {
    TrainOptions options = quick();
    options.optimizer = optimizer;
    options.max_epochs = 12;
    const Trained trained = train_clouds(options, data);
    EXPECT_GT(trained.outcome.state.best_accuracy.value(), 0.8) << optimizer;
  }
  for (const char* schedule : {"constant", "step", "linear-warmup", "one-cycle"}) {
    TrainOptions options = quick();
    options.schedule = schedule;
    options.max_epochs = 12;
    EXPECT_GT(train_clouds(options, data).outcome.state.best_accuracy.value(), 0.8) << schedule;
  }
}

TEST(Trainer, SameSeedSameBitsWhateverTheThreads) {
  const Dataset data = cloud_data();
  TrainOptions options = quick();
  const Trained first = train_clouds(options, data);
  expect_same_bits(first.graph, train_clouds(options, data).graph);
  options.threads = 2;
  expect_same_bits(first.graph, train_clouds(options, data).graph);
  options.threads = 1;
  options.seed = 4;
  EXPECT_FALSE(same_bits(first.graph, train_clouds(options, data).graph));
}

TEST(Trainer, AnInterruptedRunEndsInTheSameBits) {
  const Dataset data = cloud_data();
  for (const int64_t accumulate : {1, 3}) {
    TrainOptions options = quick();
    options.accumulate = accumulate;
    options.freeze_bn_epochs = 1;
    RunFolder calm = new_run(), rough = new_run();
    const Trained whole = train_clouds(options, data, &calm);
    int64_t batches = 0;
    int interruptions = 0;
    Trained trained = train_clouds(options, data, &rough, false,
                                   {.stop_requested = [&] { return ++batches % 7 == 0; }});
    while (trained.outcome.status == TrainStatus::interrupted) {
      ++interruptions;
      // From the initial network each time: everything must come from the checkpoint.
      trained = train_clouds(options, data, &rough, true,
                             {.stop_requested = [&] { return ++batches % 7 == 0; }});
      ASSERT_LT(interruptions, 100);
    }
    EXPECT_GE(interruptions, 2);
    expect_same_bits(whole.graph, trained.graph);
    EXPECT_EQ(whole.outcome.state.best_loss, trained.outcome.state.best_loss);
    const auto rows = [](const RunFolder& run) {
      std::string text;
      for (const std::string& line : split(test::read(run.software() + "/metrics.csv"), '\n'))
        text += line.substr(0, line.rfind(',')) + "\n";
      return text;
    };
    EXPECT_EQ(rows(calm), rows(rough));
  }
}

TEST(Trainer, ResumingWithOtherDataIsRefused) {
  Dataset data = cloud_data();
  RunFolder run = new_run();
  train_clouds(quick(), data, &run, false, {.stop_requested = [] { return true; }});
  data.identity = "clouds-2";
  EXPECT_THROW(train_clouds(quick(), data, &run, true), Error);
}

TEST(Trainer, AccumulationEqualsTheLargerBatch) {
  // Without batch norm the gradients of four batches of 8 are those of one of 32.
  const Dataset data = cloud_data(512);
  TrainOptions options = quick();
  options.optimizer = "sgd";
  options.schedule = "constant";
  const Graph plain = network("toy");
  const Trained large = train_clouds(options, data, nullptr, false, {}, plain);
  options.batch_size = 8;
  options.accumulate = 4;
  const Trained small = train_clouds(options, data, nullptr, false, {}, plain);
  EXPECT_EQ(large.outcome.state.step, small.outcome.state.step);
  const TensorTable a = state_dict(large.graph), b = state_dict(small.graph);
  for (size_t i = 0; i < a.size(); ++i)
    for (int64_t j = 0; j < a[i].second.numel(); ++j)
      EXPECT_NEAR(a[i].second.item(j), b[i].second.item(j), 1e-4) << a[i].first;
}

TEST(Trainer, ClippingBoundsTheStep) {
  const Dataset data = cloud_data();
  TrainOptions options = quick();
  options.optimizer = "sgd";
  options.optimizer_arguments = Dict{{"momentum", 0.0}};  // a step is the gradient
  options.schedule = "constant";
  options.learning_rate = 1;
  options.max_steps = 1;
  const auto moved = [&] {
    const TensorTable before = state_dict(network()),
                      after = state_dict(train_clouds(options, data).graph);
    double squares = 0, largest = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].first.find("running") != std::string::npos ||
          before[i].first.find("tracked") != std::string::npos)
        continue;
      for (int64_t j = 0; j < before[i].second.numel(); ++j) {
        const double d = after[i].second.item(j) - before[i].second.item(j);
        squares += d * d;
        largest = std::max(largest, std::fabs(d));
      }
    }
    return std::pair(std::sqrt(squares), largest);
  };
  EXPECT_GT(moved().first, 0.011);
  options.clip = 0.01;
  EXPECT_NEAR(moved().first, 0.01, 1e-4);
  options.clip_values = true;
  EXPECT_NEAR(moved().second, 0.01, 1e-6);
}

TEST(Trainer, StopsEarlyAndAtMaxSteps) {
  const Dataset data = cloud_data();
  TrainOptions options = quick();
  options.learning_rate = 0;  // nothing can get better
  options.schedule = "constant";
  options.max_epochs = 50;
  options.early_stopping = 3;
  const Trained early = train_clouds(options, data, nullptr, false, {}, network("toy"));
  EXPECT_TRUE(early.outcome.stopped_early);
  EXPECT_EQ(early.outcome.state.epoch, 4);
  options = quick();
  options.max_steps = 21;  // in the second epoch
  RunFolder run = new_run();
  const Trained limited = train_clouds(options, data, &run);
  EXPECT_EQ(limited.outcome.state.step, 21);
  EXPECT_EQ(limited.outcome.status, TrainStatus::finished);
  EXPECT_TRUE(std::filesystem::exists(run.checkpoint("best")));
}

TEST(Trainer, PrunedWeightsStayZeroAndFrozenModulesStay) {
  const Dataset data = cloud_data();
  Graph graph = network();
  Module& pruned = graph.modules().at("seq_blocks.2");
  Tensor mask(pruned.find("weight")->shape());
  for (int64_t i = 0; i < mask.numel(); ++i) mask.mutable_data<float>()[i] = i % 2 ? 1.0f : 0.0f;
  pruned.masks.emplace_back("weight", mask);
  graph.modules().at("seq_blocks.5").frozen = true;
  TrainOptions options = quick();
  options.optimizer_arguments = Dict{{"weight_decay", 0.1}};
  const Graph trained = train_clouds(options, data, nullptr, false, {}, graph).graph;
  const Tensor& weight = *trained.modules().at("seq_blocks.2").find("weight");
  int64_t zeros = 0;
  for (int64_t i = 0; i < weight.numel(); ++i) {
    if (i % 2 == 0) {
      EXPECT_EQ(weight.item(i), 0) << i;
    }
    zeros += weight.item(i) == 0;
  }
  EXPECT_EQ(zeros, weight.numel() / 2);
  const Module &before = graph.modules().at("seq_blocks.5"),
               &after = trained.modules().at("seq_blocks.5");
  EXPECT_TRUE(before.find("weight")->same_bits(*after.find("weight")));
  EXPECT_TRUE(before.find("bias")->same_bits(*after.find("bias")));
}

TEST(Trainer, BatchNormsCanBeFrozenForTheLastEpochs) {
  const Dataset data = cloud_data();
  TrainOptions options = quick();
  options.freeze_bn_epochs = 2;
  std::vector<Tensor> means;
  train_clouds(options, data, nullptr, false,
               {.on_epoch = [&](const EpochEvent&, const Program& program) {
                 for (const auto& [name, tensor] : program.state())
                   if (name == "seq_blocks.0.running_mean")
                     means.push_back(Tensor::of<float>(tensor.shape(), tensor.values<float>()));
               }});
  ASSERT_EQ(means.size(), 4u);
  EXPECT_FALSE(means[0].same_bits(means[1]));
  EXPECT_TRUE(means[1].same_bits(means[2]));
  EXPECT_TRUE(means[1].same_bits(means[3]));
}

TEST(Trainer, ADivergedRunLeavesTheBestCheckpoint) {
  Dataset data = cloud_data();
  TrainOptions options = quick();
  RunFolder run = new_run();
  int64_t epochs = 0;
  // The data go bad after the second epoch: those it validates on, as the loop has its own copy of
  // the training rows.
  const Trained trained =
      train_clouds(options, data, &run, false, {.on_epoch = [&](const EpochEvent&, const Program&) {
                     if (++epochs == 2) data.validation.x.mutable_data<float>()[7] = std::nanf("");
                   }});
  EXPECT_EQ(trained.outcome.status, TrainStatus::diverged);
  EXPECT_NE(trained.outcome.message.find("NaN"), std::string::npos) << trained.outcome.message;
  Graph best = network();
  load_into(best, load_checkpoint(run.checkpoint("best")), "best");
  for (const auto& [name, tensor] : state_dict(best))
    for (int64_t i = 0; i < tensor.numel(); ++i) EXPECT_TRUE(std::isfinite(tensor.item(i))) << name;
}

// Epochs that are shorter than their files wait in memory; an error behind them does not lose them.
TEST(Trainer, AnErrorLosesNoEpochThatWasDone) {
  const Dataset data = cloud_data();
  TrainSession session;
  session.folder = new_run().software();
  session.observer.on_epoch = [&](const EpochEvent& event, const Program&) {
    EXPECT_FALSE(std::filesystem::exists(checkpoint_path(session.folder, "last")));
    if (event.epoch == 2) throw Error("disk", "full");
  };
  Graph graph = network();
  EXPECT_THROW(train(graph, data, quick(), session), Error);
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(session.folder, "best")));
  session.observer = {};
  session.resume = true;
  const TrainOutcome rest = train(graph, data, quick(), session);
  Graph calm = network();
  const TrainOutcome whole = train(calm, data, quick());
  EXPECT_EQ(rest.run_steps, whole.run_steps / 2);
  expect_same_bits(graph, calm);
}

TEST(Trainer, ASplitWithoutValidationRowsIsFine) {
  Dataset data = cloud_data();
  data.validation = {};
  RunFolder run = new_run();
  const Trained trained = train_clouds(quick(), data, &run);
  EXPECT_EQ(trained.outcome.status, TrainStatus::finished);
  EXPECT_TRUE(trained.outcome.state.best_loss);
  EXPECT_FALSE(trained.outcome.state.best_accuracy);
}

TEST(Trainer, LearnsNumbersToo) {
  Dataset data = cloud_data();
  data.classification = false;
  data.class_names.clear();
  for (Split* split : {&data.train, &data.validation}) {
    split->targets = Tensor({split->rows(), 1});
    for (int64_t row = 0; row < split->rows(); ++row)
      split->targets.mutable_data<float>()[row] = 0.5f * split->x.data<float>()[row * 4] + 1;
    split->labels = Tensor(Shape{0}, DType::i32);
  }
  TrainOptions options = quick();
  options.loss = "mse";
  options.max_epochs = 30;
  const Graph graph = make_model("toy", {.sample_shape = {4}, .outputs = 1, .seed = 1});
  const Trained trained = train_clouds(options, data, nullptr, false, {}, graph);
  EXPECT_LT(trained.outcome.state.best_loss.value(), 0.05);
}

TEST(Trainer, LossesForNumbersLearnClasses) {
  const Dataset data = cloud_data();
  for (const char* loss : {"mse", "bce_with_logits", "huber"}) {
    TrainOptions options = quick();
    options.loss = loss;
    options.max_epochs = 12;
    const Trained trained = train_clouds(options, data, nullptr, false, {}, network("toy"));
    EXPECT_GT(trained.outcome.state.best_accuracy.value(), 0.8) << loss;
    EXPECT_GT(trained.outcome.state.best_loss.value(), 0) << loss;
  }
  TrainOptions options = quick();
  options.loss_options = Dict{{"label_smoothing", 0.1}};
  options.max_epochs = 12;
  EXPECT_GT(train_clouds(options, data).outcome.state.best_accuracy.value(), 0.8);
}

// At rate 0 the network stays, so that the mean over the batches is that over the rows.
TEST(Trainer, TrainingFiguresAreMeansOverTheEpoch) {
  Dataset data = cloud_data(100);
  data.validation = data.train;
  TrainOptions options = quick();
  options.learning_rate = 0;
  options.schedule = "constant";
  options.max_epochs = 1;
  options.batch_size = 32;  // the last one has 4 rows
  options.accumulate = 2;
  RunFolder run = new_run();
  EpochEvent event;
  train_clouds(options, data, &run, false,
               {.on_epoch = [&](const EpochEvent& e, const Program&) { event = e; }},
               network("toy"));
  EXPECT_NEAR(event.train_loss.value(), event.val_loss.value(), 1e-6);
  EXPECT_DOUBLE_EQ(event.train_accuracy.value(), event.val_accuracy.value());
  const std::vector<std::string> lines =
      split(strip(test::read(run.software() + "/metrics.csv")), '\n');
  EXPECT_EQ(lines[0],
            "epoch,step,train_acc_step,train_loss_step,train_acc_epoch,train_loss_epoch,"
            "val_acc_epoch,val_loss_epoch,learning_rate,seconds");
  const std::vector<std::string> cells = split(lines.back(), ',');
  EXPECT_EQ(cells.at(4), fmt::format("{}", *event.train_accuracy));
  EXPECT_EQ(cells.at(5), fmt::format("{}", *event.train_loss));
}

TEST(Trainer, TheMonitoredFigureChoosesTheBestEpoch) {
  const Dataset data = cloud_data();
  for (const char* monitor : {"accuracy", "val_acc_epoch", "balanced_accuracy", ""}) {
    TrainOptions options = quick();
    options.monitor = monitor;
    std::vector<double> values;
    const std::string name = *monitor == '\0'                      ? "val_loss_epoch"
                             : std::string(monitor).front() == 'b' ? "val_balanced_acc_epoch"
                                                                   : "val_acc_epoch";
    const Trained trained = train_clouds(options, data, nullptr, false,
                                         {.on_epoch = [&](const EpochEvent& event, const Program&) {
                                           for (const auto& [figure, value] : event.figures)
                                             if (figure == name) values.push_back(value);
                                         }});
    ASSERT_EQ(values.size(), 4u) << monitor;
    const auto best = *monitor ? std::max_element(values.begin(), values.end())
                               : std::min_element(values.begin(), values.end());
    EXPECT_EQ(trained.outcome.state.best_epoch, best - values.begin()) << monitor;
    EXPECT_EQ(trained.outcome.state.best_monitored, *best) << monitor;
    EXPECT_EQ(trained.outcome.monitor, name);
  }
  TrainOptions options = quick();
  options.monitor = "rmse";
  EXPECT_THROW(train_clouds(options, data), Error);
  options.monitor = "val_los_epoch";
  EXPECT_THROW(train_clouds(options, data), Error);
  Dataset blind = cloud_data();
  blind.validation = {};
  options.monitor = "accuracy";
  EXPECT_THROW(train_clouds(options, blind), Error);
}

TEST(Trainer, ALargerBatchThanTheDataIsClampedAloud) {
  const Dataset data = cloud_data(50);
  TrainOptions options = quick();
  options.batch_size = int64_t{1} << 40;
  std::string notice;
  const Trained trained =
      train_clouds(options, data, nullptr, false,
                   {.on_notice = [&](const std::string& line) { notice = line; }});
  EXPECT_NE(notice.find("50"), std::string::npos) << notice;
  options.batch_size = 50;
  notice.clear();
  expect_same_bits(trained.graph,
                   train_clouds(options, data, nullptr, false,
                                {.on_notice = [&](const std::string& line) { notice = line; }})
                       .graph);
  EXPECT_EQ(notice, "");
}

TEST(Trainer, OneRowHasNoVariance) {
  const Dataset data = cloud_data(65);
  TrainOptions options = quick();
  try {
    train_clouds(options, data);  // 32, 32, 1
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--batch-size"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(train_clouds(options, data, nullptr, false, {}, network("toy")));
  options.freeze_bn_epochs = options.max_epochs;
  EXPECT_NO_THROW(train_clouds(options, data));
}

TEST(Trainer, AFeatureNearTheLimitIsBlamed) {
  Dataset data = cloud_data();
  data.preprocessing.feature_names = {"a", "b", "huge", "d"};
  for (int64_t row = 0; row < data.train.rows(); ++row)
    data.train.x.mutable_data<float>()[row * 4 + 2] = row % 2 ? 3e38f : -3e38f;
  const Trained trained = train_clouds(quick(), data, nullptr, false, {}, network("toy"));
  EXPECT_EQ(trained.outcome.status, TrainStatus::diverged);
  EXPECT_NE(trained.outcome.message.find("'huge'"), std::string::npos) << trained.outcome.message;
  EXPECT_EQ(trained.outcome.remedy.find("--learning-rate"), std::string::npos);
}

TEST(Trainer, MoreStepsThanCanBeCountedAreAnError) {
  TrainOptions options = quick();
  options.max_epochs = INT64_MAX;
  EXPECT_THROW(train_clouds(options, cloud_data()), Error);
}

TEST(Trainer, AResumedRunSaysWhatMayChangeItsBits) {
  const Dataset data = cloud_data();
  RunFolder run = new_run();
  Graph graph = network();
  TrainSession session;
  session.folder = run.software();
  session.notes.version = "1";
  session.observer.stop_requested = [] { return true; };
  train(graph, data, quick(), session);
  std::string notice;
  session.resume = true;
  session.observer = {.on_notice = [&](const std::string& line) { notice = line; }};
  for (const char* version : {"1", "2"}) {
    session.notes.version = version;
    session.observer.stop_requested = [] { return true; };
    graph = network();
    train(graph, data, quick(), session);
    EXPECT_EQ(notice.find("version 2, was 1") != std::string::npos, *version == '2') << notice;
  }
}

// The program that validated is handed on: no other one is compiled for the final test.
TEST(Trainer, TheValidatingProgramIsHandedOn) {
  const Dataset data = cloud_data();
  const Trained trained = train_clouds(quick(), data);
  ASSERT_TRUE(trained.outcome.evaluation);
  CompileOptions options;
  options.loss = loss_for(data);
  options.batch_size = 32;
  Program fresh = Program::compile(trained.graph, options);
  const Score wanted = score_rows(fresh, data.test, 0, data.test.rows());
  const Score got = score_rows(*trained.outcome.evaluation, data.test, 0, data.test.rows());
  EXPECT_EQ(got.loss(), wanted.loss());
  EXPECT_EQ(got.correct, wanted.correct);
}

TEST(Trainer, LabelsOutsideTheNetworkAreAnErrorNotACrash) {
  Dataset data = cloud_data();
  data.train.labels.mutable_data<int32_t>()[5] = 3;
  EXPECT_THROW(train_clouds(quick(), data), Error);
  data.train.labels.mutable_data<int32_t>()[5] = -1;
  EXPECT_THROW(train_clouds(quick(), data), Error);
  data = cloud_data();
  data.train = {};
  EXPECT_THROW(train_clouds(quick(), data), Error);
}

TEST(Trainer, AStepAllocatesNothing) {
  const Dataset data = cloud_data(4000);
  TrainOptions options = quick();
  options.max_epochs = 1;
  options.log_every_n_steps = 1 << 20;
  int64_t before = 0, after = 0;
  train_clouds(options, data, nullptr, false, {.on_step = [&](const StepEvent& event) {
                 if (event.step == 10) before = test::allocations;
                 if (event.step == 110) after = test::allocations;
               }});
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace mase::trainer_test
