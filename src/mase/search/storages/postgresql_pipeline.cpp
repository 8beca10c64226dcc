// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/postgresql_pipeline.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>

#include "mase/base/late_library.h"
#include "mase/base/text.h"

namespace mase::search {
namespace {

// What is used of libpq.
struct PqFunctions {
  LateLibrary library{"libpq.so.5", "libpq5"};
  template <typename Pointer>
  Pointer get(const char* name) const {
    return library.function<Pointer>(name);
  }
  decltype(&PQbackendPID) backendPID = get<decltype(&PQbackendPID)>("PQbackendPID");
  decltype(&PQclear) clear = get<decltype(&PQclear)>("PQclear");
  decltype(&PQconninfoFree) conninfoFree = get<decltype(&PQconninfoFree)>("PQconninfoFree");
  decltype(&PQconninfoParse) conninfoParse = get<decltype(&PQconninfoParse)>("PQconninfoParse");
  decltype(&PQconnectdb) connectdb = get<decltype(&PQconnectdb)>("PQconnectdb");
  decltype(&PQconsumeInput) consumeInput = get<decltype(&PQconsumeInput)>("PQconsumeInput");
  decltype(&PQenterPipelineMode) enterPipelineMode =
      get<decltype(&PQenterPipelineMode)>("PQenterPipelineMode");
  decltype(&PQerrorMessage) errorMessage = get<decltype(&PQerrorMessage)>("PQerrorMessage");
  decltype(&PQexec) exec = get<decltype(&PQexec)>("PQexec");
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
  decltype(&PQresultStatus) resultStatus = get<decltype(&PQresultStatus)>("PQresultStatus");
  decltype(&PQsendPrepare) sendPrepare = get<decltype(&PQsendPrepare)>("PQsendPrepare");
  decltype(&PQsendQueryPrepared) sendQueryPrepared =
      get<decltype(&PQsendQueryPrepared)>("PQsendQueryPrepared");
  decltype(&PQsocket) socket = get<decltype(&PQsocket)>("PQsocket");
  decltype(&PQstatus) status = get<decltype(&PQstatus)>("PQstatus");
};
const PqFunctions& pq() {
  static const PqFunctions loaded;
  return loaded;
}

struct FreedResult {
  void operator()(PGresult* result) const { pq().clear(result); }
};
using PqResult = std::unique_ptr<PGresult, FreedResult>;

std::optional<std::string> text_of(const SqlValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return {};
}

bool succeeded(const PqResult& result) {
  const ExecStatusType status = pq().resultStatus(result.get());
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

std::vector<SqlRow> rows_of(const PqResult& result) {
  std::vector<SqlRow> rows(static_cast<size_t>(pq().ntuples(result.get())));
  const int columns = pq().nfields(result.get());
  for (size_t r = 0; r < rows.size(); ++r) {
    const int row = static_cast<int>(r);
    rows[r].reserve(static_cast<size_t>(columns));
    for (int c = 0; c < columns; ++c)
      if (pq().getisnull(result.get(), row, c))
        rows[r].emplace_back();
      else
        rows[r].emplace_back(pq().getvalue(result.get(), row, c));
  }
  return rows;
}

std::string first_line_of_error(PGconn* connection) {
  const std::string text = pq().errorMessage(connection);
  return strip(text.substr(0, text.find('\n')));
}

}  // namespace

std::string array_text(const SqlTable& rows, size_t column) {
  std::string array = "{";
  for (size_t i = column; i < rows.values.size(); i += rows.columns.size()) {
    if (i > column) array += ',';
    const std::optional<std::string> text = text_of(rows.values[i]);
    if (!text || !std::holds_alternative<std::string>(rows.values[i])) {
      array += text.value_or("NULL");
      continue;
    }
    array += '"';
    for (const char c : *text) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return array + "}";
}

void PostgresqlPipeline::Closed::operator()(pg_conn* connection) const { pq().finish(connection); }

PostgresqlPipeline::PostgresqlPipeline(const std::string& address, std::string place)
    : place_(std::move(place)) {
  // libpq's own text about a malformed address shows pieces of it, and a password may be one.
  PQconninfoOption* parts = pq().conninfoParse(address.c_str(), nullptr);
  if (!parts)
    throw Error(place_, "is no address that PostgreSQL's library can read",
                "write postgresql://USER@HOST/DATABASE, odd characters as %XX, and the password in "
                "PGPASSWORD or ~/.pgpass");
  pq().conninfoFree(parts);
  connection_.reset(pq().connectdb(address.c_str()));
  if (pq().status(connection_.get()) != CONNECTION_OK)
    throw Error(place_, first_line_of_error(connection_.get()),
                "check server, name and password (PGPASSWORD and ~/.pgpass are read)");
}

void PostgresqlPipeline::execute(const std::string& sql) {
  if (!succeeded(PqResult(pq().exec(connection_.get(), sql.c_str())))) fail();
}

std::vector<std::vector<SqlRow>> PostgresqlPipeline::run(
    const std::vector<SqlStatement>& statements) {
  constexpr size_t most = 400;  // so that answers that wait to be read never fill a buffer
  std::vector<std::vector<SqlRow>> answers;
  for (const SqlStatement& one : statements) {
    put(one);
    if (sent_.size() >= most) collect(answers);
  }
  if (!sent_.empty()) collect(answers);
  return answers;
}

void PostgresqlPipeline::put(const SqlStatement& statement) {
  if (!pq().enterPipelineMode(connection_.get())) fail();
  auto known = prepared_.find(statement.sql);
  if (known == prepared_.end()) {
    known = prepared_.emplace(statement.sql, fmt::format("s{}", names_++)).first;
    preparing_.push_back(statement.sql);
    sent_.push_back(false);
    if (!pq().sendPrepare(connection_.get(), known->second.c_str(), statement.sql.c_str(), 0,
                          nullptr))
      fail();
  }
  std::vector<std::optional<std::string>> kept;
  std::vector<const char*> texts;
  for (const SqlValue& value : statement.parameters) kept.push_back(text_of(value));
  for (const auto& text : kept) texts.push_back(text ? text->c_str() : nullptr);
  sent_.push_back(true);
  if (!pq().sendQueryPrepared(connection_.get(), known->second.c_str(),
                              static_cast<int>(texts.size()), texts.data(), nullptr, nullptr, 0))
    fail();
}

void PostgresqlPipeline::collect(std::vector<std::vector<SqlRow>>& answers) {
  std::vector<bool> sent;
  std::vector<std::string> preparing;
  sent.swap(sent_);
  preparing.swap(preparing_);
  PGconn* connection = connection_.get();
  if (!pq().pipelineSync(connection)) fail();
  std::string cause;
  for (const bool answered : sent) {
    const PqResult result(pq().getResult(connection));
    if (!succeeded(result)) {
      if (cause.empty()) cause = first_line_of_error(connection);
    } else if (answered) {
      answers.push_back(rows_of(result));
    }
    if (!result) break;                    // the connection is gone
    PqResult(pq().getResult(connection));  // the end of this statement's answers
  }
  PqResult(pq().getResult(connection));  // that of the pipeline
  pq().exitPipelineMode(connection);
  if (cause.empty()) return;
  for (const std::string& sql : preparing) prepared_.erase(sql);  // perhaps they are not
  throw Error(place_, cause);
}

bool PostgresqlPipeline::told_by_others() {
  PGconn* connection = connection_.get();
  if (!pq().consumeInput(connection)) fail();
  bool others = false;
  while (PGnotify* note = pq().notifies(connection)) {
    others = others || note->be_pid != pq().backendPID(connection);
    pq().freemem(note);
  }
  return others;
}

void PostgresqlPipeline::wait(std::chrono::milliseconds longest) const {
  pollfd answers{pq().socket(connection_.get()), POLLIN, 0};
  ::poll(&answers, 1, static_cast<int>(longest.count()));
}

void PostgresqlPipeline::fail() const {
  throw Error(place_, first_line_of_error(connection_.get()));
}

}  // namespace mase::search
