// SPDX-License-Identifier: Apache-2.0
#include "mase/report/view.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/report/page.h"
#include "mase/report/utf8.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_cached = 64;
constexpr size_t most_runs_of_a_page = 200;

ViewAnswer refusal(int status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", text + "\n"};
}

bool same_token(const std::string& given, const std::string& wanted) {
  if (given.size() != wanted.size()) return false;
  unsigned difference = 0;  // no early end, so that timing tells nothing
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(wanted[i]);
  return difference == 0;
}

// Changes whenever one of the files a page is made from does.
std::string stamp_of(const std::string& folder) {
  std::string stamp;
  for (const char* name :
       {"/run.json", "/software/metrics.csv", "/software/transform/results.json"}) {
    struct stat status {};
    if (::stat((folder + name).c_str(), &status) == 0)
      stamp += fmt::format("{}.{}.{}.{} ", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                           status.st_mtim.tv_nsec);
    else
      stamp += "- ";
  }
  return stamp;
}

std::string id_of(const std::string& root, const std::string& folder) {
  const std::string relative = fs::path(folder).lexically_relative(root).generic_string();
  return valid_utf8(relative);
}

std::string query_of(const std::vector<std::string>& ids) {
  std::string query;
  for (const std::string& id : ids) {
    query += query.empty() ? "run=" : "&run=";
    for (unsigned char c : id)
      query += std::isalnum(c) || c == '-' || c == '_' || c == '.'
                   ? std::string(1, static_cast<char>(c))
                   : fmt::format("%{:02X}", c);
  }
  return query;
}

}  // namespace

bool is_loopback(const std::string& host) {
  std::string name = host;
  if (starts_with(name, "[")) {
    name = name.substr(1, name.find(']') - 1);
  } else if (std::count(name.begin(), name.end(), ':') == 1) {
    name = name.substr(0, name.find(':'));
  }
  if (lower_case(name) == "localhost" || name == "::1") return true;
  const std::vector<std::string> parts = split(name, '.');
  if (parts.size() != 4 || parts[0] != "127") return false;
  return std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    const auto number = parse_integer(part);
    return number && *number >= 0 && *number <= 255;
  });
}

std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw Error("", "the system gives no random numbers");
  std::string token;
  for (unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

RunView::Cached RunView::list() {
  std::vector<ListedRun> runs;
  for (const std::string& folder : find_run_folders(rules_.folder))
    runs.push_back({id_of(rules_.folder, folder), read_run_outline(folder)});
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    const auto started = [](const ListedRun& one) {
      const Value& value = one.run.run["started"];
      return value.is_string() ? value.as_string() : std::string();
    };
    return started(a) > started(b);  // newest first; equal ones stay sorted by path
  });
  PageOptions options;
  options.generator = rules_.generator;
  options.title = valid_utf8(rules_.folder);
  options.live_url = "/api/list";
  return {"", page_json(list_data(runs, options)), options.title};
}

const RunView::Cached* RunView::page(const std::vector<std::string>& ids) {
  std::vector<std::string> folders;
  std::string stamp;
  for (const std::string& folder : find_run_folders(rules_.folder)) {
    if (std::find(ids.begin(), ids.end(), id_of(rules_.folder, folder)) == ids.end()) continue;
    folders.push_back(folder);
    stamp += stamp_of(folder);
  }
  if (folders.empty() || (ids.size() == 1 && folders.size() != 1)) return nullptr;
  const std::string query = query_of(ids);
  if (cache_.size() > most_cached) cache_.clear();
  Cached& cached = cache_[query];
  if (cached.stamp == stamp) return &cached;
  std::vector<RunData> runs;
  for (const std::string& folder : folders) runs.push_back(read_run_leniently(folder));
  PageOptions options;
  options.generator = rules_.generator;
  options.live_url = "/api/run?" + query;
  options.home = "/";
  const Value data = page_data(runs, options);
  cached = {stamp, page_json(data), data["title"].as_string()};
  return &cached;
}

ViewAnswer RunView::answer(const ViewRequest& request) {
  if (!rules_.token.empty() && !same_token(request.token, rules_.token))
    return refusal(403, "The address must carry the token that ch view printed.");
  if (rules_.token.empty() && !is_loopback(request.host))
    return refusal(403, "Only requests to this machine itself are answered.");
  if (request.runs.size() > most_runs_of_a_page)
    return refusal(400, fmt::format("At most {} runs at once.", most_runs_of_a_page));
  std::lock_guard lock(mutex_);
  const bool json = starts_with(request.path, "/api/");
  if (request.path == "/" || request.path == "/api/list") {
    const Cached found = list();
    if (json) return {200, "application/json", found.json};
    return {200, "text/html; charset=utf-8", page_html(found.json, found.title, true)};
  }
  if (request.path == "/run" || request.path == "/api/run") {
    const Cached* found = page(request.runs);
    if (!found) return refusal(404, "There is no such run here.");
    if (json) return {200, "application/json", found->json};
    return {200, "text/html; charset=utf-8", page_html(found->json, found->title, true)};
  }
  return refusal(404, "There is nothing here.");
}

}  // namespace mase
