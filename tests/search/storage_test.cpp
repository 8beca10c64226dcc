// SPDX-License-Identifier: Apache-2.0
// Studies survive in each storage, and those that Optuna wrote are read as they are.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>

#include "mase/search/storages/storage.h"
#include "mase/search/study/study.h"
#include "support/support.h"

namespace mase::search::storage_test {
namespace {

Space space() {
  Space made;
  made.add({"lr", Distribution::real(1e-5, 1e-1, true)});
  made.add({"width", Distribution::integer(2, 16)});
  made.add(
      {"name", Distribution::categorical({Value("integer"), Value(), Value(true), Value(0.5)})});
  return made;
}

Trial finished(int64_t number, TrialState state) {
  Trial trial;
  trial.number = number;
  trial.state = state;
  trial.point = {0.001 * static_cast<double>(number + 1), 4, static_cast<double>(number % 4)};
  trial.started = 1763280000123456 + number;
  trial.ended = trial.started + 1000000;
  trial.user_attributes.set("software_metrics",
                            Dict{{"accuracy", 0.1}, {"note", "\"quoted\" NaN"}});
  trial.system_attributes.set("NSGAIISampler:generation", 2);
  if (state == TrialState::complete)
    trial.values = {number == 1 ? std::numeric_limits<double>::infinity() : 1.0 / 3, 7};
  trial.constraints = {-1, 0.5};
  return trial;
}

// postgresql_test.sh has a server, and an empty database on it for each of these tests.
std::vector<std::string> databases() {
  if (const char* server = std::getenv("MASE_STUDIES")) return {server};
  return {"sqlite:///" + test::temporary_folder() + "/deep/study.db"};
}
std::vector<std::string> addresses() {
  std::vector<std::string> all = databases();
  all.push_back("journal:" + test::temporary_folder() + "/deep/study.log");
  return all;
}

TEST(SearchStorage, TrialsComeBackAsTheyWere) {
  const Space ours = space();
  for (const std::string& address : addresses()) {
    {
      const std::unique_ptr<Storage> storage = open_storage(address);
      storage->open_study({"a study", {false, true}, {"loss", "accuracy"}});
      for (int64_t i = 0; i < 5; ++i) {
        const Trial trial = finished(i, i == 3 ? TrialState::fail : TrialState::complete);
        Trial begun = trial;
        begun.state = TrialState::running;
        begun.ended = 0;
        begun.values.clear();
        begun.constraints.clear();
        storage->begin(ours, begun);
        if (i == 2) storage->flush();  // seen by others while it runs
        Trial ended = trial;
        ended.stored = begun.stored;
        EXPECT_EQ(begun.stored, i);
        storage->finish(ours, ended);
      }
      storage->flush();
    }
    const std::unique_ptr<Storage> storage = open_storage(address);
    storage->open_study({"a study", {false, true}, {}});
    const std::vector<Trial> trials = storage->news(ours);
    ASSERT_EQ(trials.size(), 5u) << address;
    for (int64_t i = 0; i < 5; ++i) {
      const Trial& trial = trials[static_cast<size_t>(i)];
      const Trial wanted = finished(i, i == 3 ? TrialState::fail : TrialState::complete);
      EXPECT_EQ(trial.stored, i);
      EXPECT_EQ(trial.state, wanted.state);
      EXPECT_TRUE(trial.in_space);
      EXPECT_EQ(trial.point, wanted.point);
      EXPECT_EQ(trial.values, wanted.values);
      EXPECT_EQ(trial.constraints, wanted.constraints);
      EXPECT_EQ(trial.started, wanted.started);
      EXPECT_EQ(trial.ended, wanted.ended);
      EXPECT_TRUE(Value(trial.user_attributes) == Value(wanted.user_attributes)) << address;
    }
    EXPECT_THROW(storage->open_study({"a study", {false}, {}}), Error);
  }
}

TEST(SearchStorage, WhatAStudyIsMeasuredWithIsSaidOnce) {
  for (const std::string& address : addresses()) {
    const Dict first{{"mase:network", "a"}, {"mase:measured", Dict{{"scale", 0.5}}}};
    {
      const std::unique_ptr<Storage> storage = open_storage(address);
      storage->open_study({"said", {false}});
      EXPECT_EQ(to_json(storage->said_first(first).at("mase:measured")), "{\"scale\":0.5}");
    }
    const std::unique_ptr<Storage> storage = open_storage(address);
    storage->open_study({"said", {false}});
    const Dict said = storage->said_first({{"mase:network", "b"}, {"mase:rows", "c"}});
    EXPECT_EQ(said.at("mase:network").as_string(), "a") << address;
    EXPECT_EQ(said.at("mase:rows").as_string(), "c") << address;
  }
}

TEST(SearchStorage, ReadsWhatOptunaWrote) {
  // The parameters of Optuna's study "single", as its files have them.
  const std::string folder = test::temporary_folder();
  for (const std::string name : {"reference.db", "reference_journal.log"}) {
    std::filesystem::copy_file(test::golden_path("search/" + name), folder + "/" + name);
    const std::unique_ptr<Storage> storage = open_storage(folder + "/" + name);
    storage->open_study({"single", {false}, {}});
    const std::vector<Trial> trials = storage->news(Space());
    ASSERT_GT(trials.size(), 5u) << name;
    bool complete = false, pruned = false, failed = false;
    for (size_t i = 0; i < trials.size(); ++i) {
      EXPECT_EQ(trials[i].stored, static_cast<int64_t>(i));
      complete = complete || trials[i].state == TrialState::complete;
      pruned = pruned || trials[i].state == TrialState::pruned;
      failed = failed || trials[i].state == TrialState::fail;
    }
    EXPECT_TRUE(complete && pruned && failed) << name;
    EXPECT_THROW(storage->open_study({"single", {true}, {}}), Error);
    storage->open_study({"multi", {false, true}, {}});
    EXPECT_FALSE(storage->news(Space()).empty());
  }
}

TEST(SearchStorage, BadFilesAreOneError) {
  const std::string folder = test::temporary_folder();
  test::write(folder + "/no.db", std::string(4096, 'x'));
  EXPECT_THROW(open_storage(folder + "/no.db"), Error);
  test::write(folder + "/no.log", "{\"op_code\": 0, \"study_name\"\n");
  EXPECT_THROW(open_storage(folder + "/no.log")->open_study({"a", {false}, {}}), Error);
  test::write(folder + "/state.log",
              "{\"op_code\":0,\"study_name\":\"a\",\"directions\":[1]}\n"
              "{\"op_code\":4,\"study_id\":0,\"state\":9}\n");
  EXPECT_THROW(open_storage(folder + "/state.log")->open_study({"a", {false}, {}}), Error);
  EXPECT_THROW(open_storage("mongodb://x"), Error);
}

// Two processes, as it were. One is taken for dead while it runs a trial: the trial fails and waits
// again, with Optuna's attributes. Its result comes late: while the copy waits it is the copy's,
// and otherwise it is kept beside the failure.
TEST(SearchStorage, WhatWasLostIsTriedAgainAndALateResultIsKept) {
  const Space ours = space();
  const std::string address = databases()[0];
  const std::unique_ptr<Storage> slow = open_storage(address), other = open_storage(address);
  for (Storage* one : {slow.get(), other.get()}) one->open_study({"s", {false, false}, {}});
  constexpr double any_time = -5;  // silent for less than nothing: everybody
  const auto begin = [&](Storage& storage, int64_t number) {
    Trial trial = finished(number, TrialState::running);
    trial.values.clear();
    trial.constraints.clear();
    trial.system_attributes = {};
    EXPECT_TRUE(storage.begin(ours, trial));
    return trial;
  };
  const auto end = [&](Storage& storage, Trial trial, double value) {
    trial.state = TrialState::complete;
    trial.values = {value, value};
    storage.finish(ours, trial);
    storage.flush();
  };
  const auto lose = [&] {
    std::vector<Trial> copies;
    other->exclusively([&] {
      other->news(ours);
      EXPECT_TRUE(other->retry_lost(any_time));
      for (Trial& trial : other->news(ours))
        if (trial.state == TrialState::waiting) copies.push_back(std::move(trial));
      return true;
    });
    EXPECT_EQ(copies.size(), 1u);
    return copies.at(0);
  };
  const Trial first = begin(*slow, 0);
  EXPECT_EQ(lose().stored, 1);
  end(*slow, first, 0.25);
  const Trial second = begin(*slow, 1);
  EXPECT_EQ(second.stored, 2);
  Trial copy = lose();
  EXPECT_EQ(copy.stored, 3);
  EXPECT_EQ(copy.point, second.point);
  copy.state = TrialState::running;
  EXPECT_TRUE(other->begin(ours, copy));
  end(*slow, second, 0.5);
  end(*other, copy, 0.75);

  const std::unique_ptr<Storage> reader = open_storage(address);
  reader->open_study({"s", {false, false}, {}});
  const std::vector<Trial> trials = reader->news(ours);
  ASSERT_EQ(trials.size(), 4u);
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(trials[i].state, TrialState::fail);
    EXPECT_EQ(trials[i + 1].state, TrialState::complete);
    EXPECT_EQ(trials[i + 1].stored, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(trials[i + 1].point, trials[i].point);
    EXPECT_EQ(trials[i + 1].system_attributes.at("failed_trial"), Value(static_cast<int64_t>(i)));
    EXPECT_EQ(trials[i + 1].system_attributes.at("retry_history"),
              Value(List{Value(static_cast<int64_t>(i))}));
  }
  EXPECT_EQ(trials[1].values, (std::vector<double>{0.25, 0.25}));
  EXPECT_EQ(trials[3].values, (std::vector<double>{0.75, 0.75}));
  EXPECT_FALSE(trials[0].user_attributes.contains("late_result"));
  EXPECT_TRUE(trials[2].user_attributes.contains("late_result"));
}

TEST(SearchStorage, AStudyGoesOnWhereItWas) {
  for (const std::string& address : addresses()) {
    const Space ours = space();
    for (const int64_t until : {6, 14}) {
      const std::unique_ptr<Storage> storage = open_storage(address);
      storage->open_study({"s", {false}, {}});
      Trials trials(ours, {false}, "s");
      const SamplerRecord& tpe = find_sampler("tpe", "");
      StudyOptions options;
      options.trials = until;
      Study study(trials, tpe.make(validate(Value(Dict{}), tpe.schema, ""), {&ours, 1, -1}),
                  nullptr, storage.get(), options);
      study.run({Objective(
          [](const Point& point, const Report&) { return Measurement{.values = {point[1]}}; })});
      EXPECT_EQ(study.trials().size(), static_cast<size_t>(until));
    }
    const std::unique_ptr<Storage> storage = open_storage(address);
    storage->open_study({"s", {false}, {}});
    const std::vector<Trial> all = storage->news(ours);
    ASSERT_EQ(all.size(), 14u);
    for (const Trial& trial : all) EXPECT_EQ(trial.state, TrialState::complete);
  }
}

// Trials that take no time: whoever has the window has all of it, and the others wait for the end.
TEST(SearchStorage, SeveralProcessesWithBriefTrialsMakeTheTrialsOfOne) {
  const Space ours = space();
  constexpr int64_t count = 150;
  const auto search = [&](Storage* storage) {
    StudyOptions options;
    options.seed = 5;
    options.trials = count;
    options.window = 16;
    const SamplerRecord& tpe = find_sampler("tpe", "");
    Study study(Trials(ours, {false}, "brief"),
                tpe.make(validate(Value(Dict{}), tpe.schema, ""), {&ours, 1, count}), nullptr,
                storage, options);
    study.run({Objective([](const Point& point, const Report&) {
      return Measurement{.values = {point[1] - std::log(point[0])}};
    })});
    return study.take_trials();
  };
  const Trials alone = search(nullptr);
  for (const std::string& address : databases()) {
    const auto open = [&] {
      std::unique_ptr<Storage> storage = open_storage(address);
      storage->open_study({"brief", {false}, {}});
      return storage;
    };
    int ready[2], go[2];
    ASSERT_EQ(::pipe(ready) + ::pipe(go), 0);
    std::vector<pid_t> processes;
    for (int i = 0; i < 4; ++i) {
      processes.push_back(::fork());
      if (processes.back() == 0) {
        try {
          const std::unique_ptr<Storage> storage = open();
          char word = 0;
          if (::write(ready[1], &word, 1) != 1 || ::read(go[0], &word, 1) != 1) std::_Exit(2);
          std::_Exit(search(storage.get()).size() == count ? 0 : 1);
        } catch (const std::exception& error) {
          std::cerr << error.what() << "\n";
          std::_Exit(3);
        }
      }
    }
    char words[4] = {};
    for (char& word : words) ASSERT_EQ(::read(ready[0], &word, 1), 1);
    ASSERT_EQ(::write(go[1], words, sizeof words), static_cast<ssize_t>(sizeof words));
    for (const int end : {ready[0], ready[1], go[0], go[1]}) ::close(end);
    for (const pid_t process : processes) {
      int status = -1;
      ::waitpid(process, &status, 0);
      EXPECT_EQ(status, 0);
    }
    const std::vector<Trial> trials = open()->news(ours);
    ASSERT_EQ(trials.size(), static_cast<size_t>(count));
    for (size_t i = 0; i < trials.size(); ++i) {
      EXPECT_EQ(trials[i].stored, static_cast<int64_t>(i));
      EXPECT_EQ(trials[i].state, TrialState::complete);
      EXPECT_EQ(trials[i].point, alone[i].point) << i;
      EXPECT_EQ(trials[i].values, alone[i].values);
    }
  }
}

}  // namespace
}  // namespace mase::search::storage_test
