// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL database, for studies that several machines work on.
#include <libpq-fe.h>

#include <algorithm>
#include <map>
#include <memory>

#include "mase/base/late_library.h"
#include "mase/search/sql_storage.h"

namespace mase::postgresql_storage {
namespace {

using namespace search;

// As Optuna creates them, in one go: two that come first at the same time wait for each other.
constexpr const char* tables = R"sql(
CREATE TYPE studydirection AS ENUM ('NOT_SET', 'MINIMIZE', 'MAXIMIZE');
CREATE TYPE trialstate AS ENUM ('RUNNING', 'COMPLETE', 'PRUNED', 'FAIL', 'WAITING');
CREATE TYPE trialvaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG');
CREATE TYPE trialintermediatevaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG', 'NAN');
CREATE TABLE studies (study_id SERIAL PRIMARY KEY, study_name VARCHAR(512) NOT NULL);
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE TABLE version_info (version_info_id SERIAL PRIMARY KEY, schema_version INTEGER,
  library_version VARCHAR(256), CHECK (version_info_id = 1));
CREATE TABLE study_directions (study_direction_id SERIAL PRIMARY KEY,
  direction studydirection NOT NULL, study_id INTEGER NOT NULL REFERENCES studies (study_id),
  objective INTEGER NOT NULL, UNIQUE (study_id, objective));
CREATE TABLE study_user_attributes (study_user_attribute_id SERIAL PRIMARY KEY,
  study_id INTEGER REFERENCES studies (study_id), key VARCHAR(512), value_json TEXT,
  UNIQUE (study_id, key));
CREATE TABLE study_system_attributes (study_system_attribute_id SERIAL PRIMARY KEY,
  study_id INTEGER REFERENCES studies (study_id), key VARCHAR(512), value_json TEXT,
  UNIQUE (study_id, key));
CREATE TABLE trials (trial_id SERIAL PRIMARY KEY, number INTEGER,
  study_id INTEGER REFERENCES studies (study_id), state trialstate NOT NULL,
  datetime_start TIMESTAMP, datetime_complete TIMESTAMP);
CREATE INDEX ix_trials_study_id ON trials (study_id);
CREATE TABLE trial_user_attributes (trial_user_attribute_id SERIAL PRIMARY KEY,
  trial_id INTEGER REFERENCES trials (trial_id), key VARCHAR(512), value_json TEXT,
  UNIQUE (trial_id, key));
CREATE TABLE trial_system_attributes (trial_system_attribute_id SERIAL PRIMARY KEY,
  trial_id INTEGER REFERENCES trials (trial_id), key VARCHAR(512), value_json TEXT,
  UNIQUE (trial_id, key));
CREATE TABLE trial_params (param_id SERIAL PRIMARY KEY,
  trial_id INTEGER REFERENCES trials (trial_id), param_name VARCHAR(512),
  param_value DOUBLE PRECISION, distribution_json TEXT, UNIQUE (trial_id, param_name));
CREATE TABLE trial_values (trial_value_id SERIAL PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), objective INTEGER NOT NULL,
  value DOUBLE PRECISION, value_type trialvaluetype NOT NULL, UNIQUE (trial_id, objective));
CREATE TABLE trial_intermediate_values (trial_intermediate_value_id SERIAL PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), step INTEGER NOT NULL,
  intermediate_value DOUBLE PRECISION,
  intermediate_value_type trialintermediatevaluetype NOT NULL, UNIQUE (trial_id, step));
CREATE TABLE trial_heartbeats (trial_heartbeat_id SERIAL PRIMARY KEY,
  trial_id INTEGER NOT NULL UNIQUE REFERENCES trials (trial_id), heartbeat TIMESTAMP NOT NULL);
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL
  CONSTRAINT alembic_version_pkc PRIMARY KEY);
INSERT INTO version_info VALUES (1, 12, '5.0.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
)sql";

// What is used of libpq.
struct PqFunctions {
  LateLibrary library{"libpq.so.5", "libpq5"};
  template <typename Pointer>
  Pointer get(const char* name) const {
    return library.function<Pointer>(name);
  }
  decltype(&PQbackendPID) backendPID = get<decltype(&PQbackendPID)>("PQbackendPID");
  decltype(&PQclear) clear = get<decltype(&PQclear)>("PQclear");
  decltype(&PQconnectdb) connectdb = get<decltype(&PQconnectdb)>("PQconnectdb");
  decltype(&PQconsumeInput) consumeInput = get<decltype(&PQconsumeInput)>("PQconsumeInput");
  decltype(&PQenterPipelineMode) enterPipelineMode =
      get<decltype(&PQenterPipelineMode)>("PQenterPipelineMode");
  decltype(&PQerrorMessage) errorMessage = get<decltype(&PQerrorMessage)>("PQerrorMessage");
  decltype(&PQexec) exec = get<decltype(&PQexec)>("PQexec");
  decltype(&PQexecPrepared) execPrepared = get<decltype(&PQexecPrepared)>("PQexecPrepared");
  decltype(&PQexitPipelineMode) exitPipelineMode =
      get<decltype(&PQexitPipelineMode)>("PQexitPipelineMode");
  decltype(&PQfinish) finish = get<decltype(&PQfinish)>("PQfinish");
  decltype(&PQfreemem) freemem = get<decltype(&PQfreemem)>("PQfreemem");
  decltype(&PQgetResult) getResult = get<decltype(&PQgetResult)>("PQgetResult");
  decltype(&PQgetisnull) getisnull = get<decltype(&PQgetisnull)>("PQgetisnull");
  decltype(&PQgetvalue) getvalue = get<decltype(&PQgetvalue)>("PQgetvalue");
  decltype(&PQnfields) nfields = get<decltype(&PQnfields)>("PQnfields");
  decltype(&PQnotifies) notifies = get<decltype(&PQnotifies)>("PQnotifies");
  decltype(&PQntuples) ntuples = get<decltype(&PQntuples)>("PQntuples");
  decltype(&PQpipelineSync) pipelineSync = get<decltype(&PQpipelineSync)>("PQpipelineSync");
  decltype(&PQprepare) prepare = get<decltype(&PQprepare)>("PQprepare");
  decltype(&PQresultStatus) resultStatus = get<decltype(&PQresultStatus)>("PQresultStatus");
  decltype(&PQsendQueryPrepared) sendQueryPrepared =
      get<decltype(&PQsendQueryPrepared)>("PQsendQueryPrepared");
  decltype(&PQstatus) status = get<decltype(&PQstatus)>("PQstatus");
};
const PqFunctions& pq() {
  static const PqFunctions loaded;
  return loaded;
}

struct Freed {
  void operator()(PGresult* result) const { pq().clear(result); }
};
using Result = std::unique_ptr<PGresult, Freed>;

class PostgresqlConnection final : public SqlConnection {
 public:
  explicit PostgresqlConnection(const std::string& address) : place_(without_password(address)) {
    connection_ = pq().connectdb(address.c_str());
    if (pq().status(connection_) == CONNECTION_OK) {
      // A server that crashes may lose its last half second, whole transactions each: trials are
      // then tried again. Waiting for the disk at every commit would cost more than most trials.
      check(Result(pq().exec(connection_, "SET synchronous_commit = off")));
      // Plans are made while the tables are almost empty, and kept: without a word they read tables
      // of any later size from end to end. Whatever is asked here has an index.
      // Nor is any of it worth a compiler's time, which the price of such plans would call for.
      check(Result(pq().exec(connection_,
                             "SELECT set_config(name, 'off', false) FROM pg_settings "
                             "WHERE name IN ('enable_seqscan', 'jit')")));
      // A process that is stopped in the middle of a transaction holds the study's lock: the server
      // ends it, unless it was told another time.
      check(
          Result(pq().exec(connection_,
                           "SELECT set_config('idle_in_transaction_session_timeout', '60s', false) "
                           "WHERE current_setting('idle_in_transaction_session_timeout') = '0'")));
      return;
    }
    const std::string cause = first_line(pq().errorMessage(connection_));
    pq().finish(connection_);
    throw Error(place_, cause, "check server, name and password");
  }
  ~PostgresqlConnection() override { pq().finish(connection_); }
  PostgresqlConnection(const PostgresqlConnection&) = delete;
  PostgresqlConnection& operator=(const PostgresqlConnection&) = delete;

  std::vector<SqlRow> run(const std::string& sql,
                          const std::vector<SqlValue>& parameters) override {
    const std::string name = prepared(sql);
    const Parameters given(parameters);
    const Result result(pq().execPrepared(connection_, name.c_str(), given.count(), given.texts(),
                                          nullptr, nullptr, 0));
    check(result);
    return rows_of(result);
  }

  // Sent together, answered together: one way to the server and back for all of them.
  std::vector<std::vector<SqlRow>> run_all(const std::vector<SqlStatement>& statements) override {
    constexpr size_t most = 400;  // so that answers that wait to be read never fill a buffer
    std::vector<std::vector<SqlRow>> results;
    for (size_t first = 0; first < statements.size(); first += most)
      run_some(statements, first, std::min(first + most, statements.size()), results);
    return results;
  }

  SqlStatement exclusive() const override { return {"BEGIN"}; }

  void make_tables() override {
    run("BEGIN", {});
    // A lock of our own: two that find no tables must not both make them.
    run("SELECT pg_advisory_xact_lock(7061746)", {});
    if (run("SELECT to_regclass('alembic_version')", {})[0][0]) {
      run("COMMIT", {});
      return;
    }
    check(Result(pq().exec(connection_, tables)));
    run("COMMIT", {});
  }

  // Before ids are drawn: a trial with a smaller id that is committed later is never seen by
  // Optuna's cache.
  std::vector<SqlStatement> lock_study(int64_t study) const override {
    return {{"SELECT study_id FROM studies WHERE study_id = $1 FOR UPDATE", {study}}};
  }
  const std::string& place() const override { return place_; }

  std::string among(const std::string& column, size_t parameter) const override {
    return fmt::format("{} = ANY(${}::integer[])", column, parameter);
  }
  SqlValue list(const std::vector<int64_t>& numbers) const override {
    return fmt::format("{{{}}}", fmt::join(numbers, ","));
  }
  std::string seconds_ago(size_t parameter) const override {
    return fmt::format("now()::timestamp - ${}::float8 * interval '1 second'", parameter);
  }

  void listen(int64_t study) override {
    check(Result(pq().exec(connection_, fmt::format("LISTEN mase_study_{}", study).c_str())));
  }
  std::vector<SqlStatement> tell(int64_t study) const override {
    return {{"SELECT pg_notify($1, '')", {fmt::format("mase_study_{}", study)}}};
  }
  bool changed() override {
    if (!pq().consumeInput(connection_))
      throw Error(place_, first_line(pq().errorMessage(connection_)));
    bool others = false;
    while (PGnotify* note = pq().notifies(connection_)) {
      others = others || note->be_pid != pq().backendPID(connection_);
      pq().freemem(note);
    }
    return others;
  }

 private:
  class Parameters {
   public:
    explicit Parameters(const std::vector<SqlValue>& values) {
      for (const SqlValue& value : values) kept_.push_back(text_of(value));
      for (const auto& text : kept_) texts_.push_back(text ? text->c_str() : nullptr);
    }
    int count() const { return static_cast<int>(texts_.size()); }
    const char* const* texts() const { return texts_.data(); }

   private:
    std::vector<std::optional<std::string>> kept_;
    std::vector<const char*> texts_;
  };

  static std::vector<SqlRow> rows_of(const Result& result) {
    std::vector<SqlRow> rows(static_cast<size_t>(pq().ntuples(result.get())));
    for (size_t r = 0; r < rows.size(); ++r)
      for (int c = 0; c < pq().nfields(result.get()); ++c) {
        const int row = static_cast<int>(r);
        if (pq().getisnull(result.get(), row, c))
          rows[r].emplace_back();
        else
          rows[r].emplace_back(pq().getvalue(result.get(), row, c));
      }
    return rows;
  }

  // Statements are planned once.
  std::string prepared(const std::string& sql) {
    const auto known = prepared_.find(sql);
    if (known != prepared_.end()) return known->second;
    const std::string name = fmt::format("s{}", prepared_.size());
    check(Result(pq().prepare(connection_, name.c_str(), sql.c_str(), 0, nullptr)));
    return prepared_[sql] = name;
  }

  void run_some(const std::vector<SqlStatement>& statements, size_t first, size_t last,
                std::vector<std::vector<SqlRow>>& results) {
    std::vector<std::string> names;
    for (size_t i = first; i < last; ++i) names.push_back(prepared(statements[i].sql));
    if (!pq().enterPipelineMode(connection_)) fail();
    for (size_t i = first; i < last; ++i) {
      const Parameters given(statements[i].parameters);
      if (!pq().sendQueryPrepared(connection_, names[i - first].c_str(), given.count(),
                                  given.texts(), nullptr, nullptr, 0))
        fail();
    }
    if (!pq().pipelineSync(connection_)) fail();
    std::string cause;
    for (size_t i = first; i < last; ++i) {
      const Result result(pq().getResult(connection_));
      const ExecStatusType status = pq().resultStatus(result.get());
      if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        results.push_back(rows_of(result));
      else if (cause.empty())
        cause = first_line(pq().errorMessage(connection_));
      if (!result) break;                   // the connection is gone
      Result(pq().getResult(connection_));  // the end of this statement's answers
    }
    Result(pq().getResult(connection_));  // that of the pipeline
    pq().exitPipelineMode(connection_);
    if (!cause.empty()) throw Error(place_, cause);
  }

  [[noreturn]] void fail() const {
    throw Error(place_, first_line(pq().errorMessage(connection_)));
  }

  static std::string first_line(const std::string& text) {
    return strip(text.substr(0, text.find('\n')));
  }

  static std::optional<std::string> text_of(const SqlValue& value) {
    if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return {};
  }

  void check(const Result& result) const {
    const ExecStatusType status = pq().resultStatus(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return;
    throw Error(place_, first_line(pq().errorMessage(connection_)));
  }

  std::string place_;
  PGconn* connection_ = nullptr;
  std::map<std::string, std::string> prepared_;  // names by text
};

// Addresses of SQLAlchemy name a driver: "postgresql+psycopg2://" is "postgresql://" here.
std::string without_driver(const std::string& address) {
  const size_t end = address.find("://");
  const size_t plus = address.find('+');
  if (end == std::string::npos || plus > end) return address;
  return address.substr(0, plus) + address.substr(end);
}

bool takes(const std::string& address) {
  const std::string plain = without_driver(address);
  return starts_with(plain, "postgresql://") || starts_with(plain, "postgres://");
}

const Register<StorageRecord> registered{{
    .name = "postgresql",
    .summary = "postgresql://USER@HOST/DATABASE",
    .many_machines = true,
    .takes = takes,
    .open = [](const std::string& address) -> std::unique_ptr<Storage> {
      const std::string plain = without_driver(address);
      return make_sql_storage([plain] { return std::make_unique<PostgresqlConnection>(plain); });
    },
}};

}  // namespace
}  // namespace mase::postgresql_storage
