// SPDX-License-Identifier: Apache-2.0
// One SQLite file. Writers take turns; readers are not held up (write-ahead log).
#include <sqlite3.h>

#include <chrono>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/search/storages/sql_storage.h"

namespace mase::sqlite_storage {
namespace {

using namespace search;

// As Optuna creates them.
constexpr const char* tables = R"sql(
CREATE TABLE IF NOT EXISTS studies (
	study_id INTEGER NOT NULL,
	study_name VARCHAR(512) NOT NULL,
	PRIMARY KEY (study_id)
);
CREATE UNIQUE INDEX IF NOT EXISTS ix_studies_study_name ON studies (study_name);
CREATE TABLE IF NOT EXISTS version_info (
	version_info_id INTEGER NOT NULL,
	schema_version INTEGER,
	library_version VARCHAR(256),
	PRIMARY KEY (version_info_id),
	CHECK (version_info_id=1)
);
CREATE TABLE IF NOT EXISTS study_directions (
	study_direction_id INTEGER NOT NULL,
	direction VARCHAR(8) NOT NULL,
	study_id INTEGER NOT NULL,
	objective INTEGER NOT NULL,
	PRIMARY KEY (study_direction_id),
	UNIQUE (study_id, objective),
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE IF NOT EXISTS study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL,
	study_id INTEGER,
	"key" VARCHAR(512),
	value_json TEXT,
	PRIMARY KEY (study_user_attribute_id),
	UNIQUE (study_id, "key"),
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE IF NOT EXISTS study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL,
	study_id INTEGER,
	"key" VARCHAR(512),
	value_json TEXT,
	PRIMARY KEY (study_system_attribute_id),
	UNIQUE (study_id, "key"),
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE IF NOT EXISTS trials (
	trial_id INTEGER NOT NULL,
	number INTEGER,
	study_id INTEGER,
	state VARCHAR(8) NOT NULL,
	datetime_start DATETIME,
	datetime_complete DATETIME,
	PRIMARY KEY (trial_id),
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE INDEX IF NOT EXISTS ix_trials_study_id ON trials (study_id);
CREATE TABLE IF NOT EXISTS trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL,
	trial_id INTEGER,
	"key" VARCHAR(512),
	value_json TEXT,
	PRIMARY KEY (trial_user_attribute_id),
	UNIQUE (trial_id, "key"),
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE IF NOT EXISTS trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL,
	trial_id INTEGER,
	"key" VARCHAR(512),
	value_json TEXT,
	PRIMARY KEY (trial_system_attribute_id),
	UNIQUE (trial_id, "key"),
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE IF NOT EXISTS trial_params (
	param_id INTEGER NOT NULL,
	trial_id INTEGER,
	param_name VARCHAR(512),
	param_value FLOAT,
	distribution_json TEXT,
	PRIMARY KEY (param_id),
	UNIQUE (trial_id, param_name),
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE IF NOT EXISTS trial_values (
	trial_value_id INTEGER NOT NULL,
	trial_id INTEGER NOT NULL,
	objective INTEGER NOT NULL,
	value FLOAT,
	value_type VARCHAR(7) NOT NULL,
	PRIMARY KEY (trial_value_id),
	UNIQUE (trial_id, objective),
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE IF NOT EXISTS trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL,
	trial_id INTEGER NOT NULL,
	step INTEGER NOT NULL,
	intermediate_value FLOAT,
	intermediate_value_type VARCHAR(7) NOT NULL,
	PRIMARY KEY (trial_intermediate_value_id),
	UNIQUE (trial_id, step),
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE IF NOT EXISTS trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL,
	trial_id INTEGER NOT NULL,
	heartbeat DATETIME NOT NULL,
	PRIMARY KEY (trial_heartbeat_id),
	UNIQUE (trial_id),
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE IF NOT EXISTS alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
)sql";

constexpr int milliseconds_to_wait = 30000;

class SqliteConnection final : public SqlConnection {
 public:
  explicit SqliteConnection(const std::string& path) : path_(path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty()) make_directories(folder);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) != SQLITE_OK) {
      const std::string cause = db_ ? sqlite3_errmsg(db_) : "out of memory";
      sqlite3_close(db_);
      throw Error(path_, cause);
    }
    sqlite3_busy_timeout(db_, milliseconds_to_wait);
    try {
      write_ahead();
      execute("PRAGMA synchronous = NORMAL");
    } catch (...) {
      sqlite3_close(db_);
      throw;
    }
  }

  ~SqliteConnection() override {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  std::vector<SqlRow> run(const std::string& sql,
                          const std::vector<SqlValue>& parameters) override {
    sqlite3_stmt* statement = prepared(sql);
    for (size_t i = 0; i < parameters.size(); ++i) bind(statement, i + 1, parameters[i]);
    std::vector<SqlRow> rows;
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
      SqlRow row;
      for (int c = 0; c < sqlite3_column_count(statement); ++c) row.push_back(column(statement, c));
      rows.push_back(std::move(row));
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    if (result != SQLITE_DONE) fail();
    return rows;
  }

  // Every other writer waits: nothing is left to lock.
  SqlStatement exclusive() const override { return {"BEGIN IMMEDIATE"}; }

  void make_tables() override {
    run(exclusive().sql, {});
    try {
      execute(tables);
      run("INSERT INTO version_info VALUES (1, 12, $1) ON CONFLICT DO NOTHING", {"5.0.0"});
      run("INSERT INTO alembic_version VALUES ($1) ON CONFLICT DO NOTHING", {"v3.2.0.a"});
      run("COMMIT", {});
    } catch (...) {
      sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  }

  std::string among(const std::string& column, size_t parameter) const override {
    return fmt::format("{} IN (SELECT value FROM json_each(${}))", column, parameter);
  }
  SqlValue list(const std::vector<int64_t>& numbers) const override {
    return fmt::format("[{}]", fmt::join(numbers, ","));
  }
  std::string seconds_ago(size_t parameter) const override {
    return fmt::format("datetime('now', -${} || ' seconds')", parameter);
  }
  // Every commit of another connection gives the file another version.
  bool changed() override {
    const std::string now = run("PRAGMA data_version", {}).at(0).at(0).value_or("");
    if (now == version_) return false;
    version_ = now;
    return true;
  }
  const std::string& place() const override { return path_; }

 private:
  [[noreturn]] void fail() const {
    std::string remedy;
    const int code = sqlite3_errcode(db_) & 0xff;
    if (code == SQLITE_BUSY) remedy = "another program holds the file; try again";
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
      remedy = "it is no SQLite file or damaged; move it away or give another --storage";
    throw Error(path_, sqlite3_errmsg(db_), remedy);
  }

  // Of several that open a new file at the same time one is told that it is busy, without a wait.
  void write_ahead() {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin <
           std::chrono::milliseconds(milliseconds_to_wait)) {
      const int result =
          sqlite3_exec(db_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr) & 0xff;
      if (result == SQLITE_OK) return;
      if (result != SQLITE_BUSY) break;
      sqlite3_sleep(5);
    }
    fail();
  }

  void execute(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }

  sqlite3_stmt* prepared(const std::string& sql) {
    sqlite3_stmt*& statement = statements_[sql];
    if (!statement && sqlite3_prepare_v2(db_, sql.c_str(), static_cast<int>(sql.size()), &statement,
                                         nullptr) != SQLITE_OK) {
      statements_.erase(sql);
      fail();
    }
    return statement;
  }

  void bind(sqlite3_stmt* statement, size_t number, const SqlValue& value) {
    char name[24] = {};
    fmt::format_to(name, "${}", number);
    const int at = sqlite3_bind_parameter_index(statement, name);
    int result = SQLITE_OK;
    if (const auto* whole = std::get_if<int64_t>(&value))
      result = sqlite3_bind_int64(statement, at, *whole);
    else if (const auto* real = std::get_if<double>(&value))
      result = sqlite3_bind_double(statement, at, *real);
    else if (const auto* text = std::get_if<std::string>(&value))
      result = sqlite3_bind_text(statement, at, text->data(), static_cast<int>(text->size()),
                                 SQLITE_TRANSIENT);
    else
      result = sqlite3_bind_null(statement, at);
    if (result != SQLITE_OK) fail();
  }

  static std::optional<std::string> column(sqlite3_stmt* statement, int c) {
    switch (sqlite3_column_type(statement, c)) {
      case SQLITE_NULL:
        return {};
      case SQLITE_FLOAT:  // SQLite's own text has 15 digits
        return fmt::format("{}", sqlite3_column_double(statement, c));
      default: {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, c));
        return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, c)));
      }
    }
  }

  std::string path_, version_;
  sqlite3* db_ = nullptr;
  std::map<std::string, sqlite3_stmt*> statements_;
};

constexpr const char* scheme = "sqlite:///";

bool takes(const std::string& address) {
  if (starts_with(address, scheme)) return true;
  return address.find("://") == std::string::npos &&
         (ends_with(address, ".db") || ends_with(address, ".sqlite3"));
}

std::string file_of(const std::string& address) {
  return starts_with(address, scheme) ? address.substr(std::string(scheme).size()) : address;
}

std::unique_ptr<Storage> open(const std::string& address) {
  const std::string path = file_of(address);
  return make_sql_storage([path] { return std::make_unique<SqliteConnection>(path); });
}

const Register<StorageRecord> registered{{
    .name = "sqlite",
    .summary = "sqlite:///FILE.db",
    .file = file_of,
    .takes = takes,
    .open = open,
}};

}  // namespace
}  // namespace mase::sqlite_storage
