// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL database, for studies that several machines work on.
#include <memory>

#include "mase/base/address.h"
#include "mase/base/text.h"
#include "mase/search/storages/postgresql_pipeline.h"
#include "mase/search/storages/sql_storage.h"

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

class PostgresqlConnection final : public SqlConnection {
 public:
  explicit PostgresqlConnection(const std::string& address)
      : place_(masked_address(address)), server_(address, place_) {
    // A server that crashes may lose its last half second, whole transactions each: trials are
    // then tried again. Waiting for the disk at every commit would cost more than most trials.
    server_.execute("SET synchronous_commit = off");
    // Plans are made once, while the tables are almost empty, and kept: without a word they read
    // tables of any later size from end to end. Whatever is asked here has an index.
    // Nor is any of it worth a compiler's time, which the price of such plans would call for.
    server_.execute(
        "SELECT set_config(name, CASE name WHEN 'plan_cache_mode' THEN 'force_generic_plan' ELSE "
        "'off' END, false) FROM pg_settings WHERE name IN ('plan_cache_mode', 'enable_seqscan', "
        "'enable_hashjoin', 'enable_mergejoin', 'jit')");
    // A process that is stopped in the middle of a transaction holds the study's lock: the server
    // ends it, unless it was told another time.
    server_.execute(
        "SELECT set_config('idle_in_transaction_session_timeout', '60s', false) WHERE "
        "current_setting('idle_in_transaction_session_timeout') = '0'");
  }

  std::vector<SqlRow> run(const std::string& sql,
                          const std::vector<SqlValue>& parameters) override {
    return std::move(server_.run({{sql, parameters}}).at(0));
  }
  std::vector<std::vector<SqlRow>> run_all(const std::vector<SqlStatement>& statements) override {
    return server_.run(statements);
  }

  // An array for each column: one statement for any number of rows.
  std::vector<SqlStatement> with_rows(const SqlTable& rows, const std::string& before,
                                      const std::string& after) const override {
    if (rows.values.empty()) return {};
    const size_t columns = rows.columns.size();
    std::string arrays, names;
    SqlStatement statement;
    for (size_t c = 0; c < columns; ++c) {
      arrays += fmt::format("{}${}::{}[]", c ? ", " : "", c + 1, rows.columns[c].type);
      names += (c ? ", " : "") + rows.columns[c].name;
      statement.parameters.emplace_back(array_text(rows, c));
    }
    statement.sql = fmt::format("{}unnest({}) AS given({}){}", before, arrays, names, after);
    return {statement};
  }

  SqlStatement exclusive() const override { return {"BEGIN"}; }
  SqlStatement snapshot() const override {
    return {"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"};
  }

  void make_tables() override {
    run("BEGIN", {});
    // A lock of our own: two that find no tables must not both make them.
    run("SELECT pg_advisory_xact_lock(7061746)", {});
    if (run("SELECT to_regclass('alembic_version')", {})[0][0]) {
      run("COMMIT", {});
      return;
    }
    server_.execute(tables);
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
    server_.execute(fmt::format("LISTEN mase_study_{}", study));
  }
  std::vector<SqlStatement> tell(int64_t study) const override {
    return {{"SELECT pg_notify($1, '')", {fmt::format("mase_study_{}", study)}}};
  }
  bool changed() override { return server_.told_by_others(); }
  void wait(std::chrono::milliseconds longest) override { server_.wait(longest); }

 private:
  std::string place_;
  PostgresqlPipeline server_;
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
