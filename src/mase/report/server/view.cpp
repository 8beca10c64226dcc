// SPDX-License-Identifier: Apache-2.0
#include "mase/report/server/view.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/report/pages/run_page.h"
#include "mase/report/pages/search_page.h"
#include "mase/report/text/utf8.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

constexpr const char* cookie_name = "mase_token";
constexpr size_t most_cached = 64;
constexpr size_t most_runs_of_a_page = 200;
constexpr double live_seconds = 2;

HttpAnswer refusal(int status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", text + "\n"};
}

std::string cookie_token(const std::string& cookie) {
  const std::string prefix = std::string(cookie_name) + "=";
  for (const std::string& part : split(cookie, ';')) {
    const std::string entry = strip(part);
    if (starts_with(entry, prefix)) return entry.substr(prefix.size());
  }
  return "";
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
  for (const char* name : {"/run.json", "/software/metrics.csv", "/software/transform/results.json",
                           "/software/search_ckpts/search.json"}) {
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

// mase_output for ../mase_output/ and for "." within it.
std::string folder_name_of(const std::string& folder) {
  std::error_code ignored;
  fs::path path = fs::weakly_canonical(folder, ignored);
  if (path.filename().empty()) path = path.parent_path();
  const std::string name = valid_utf8(path.filename().string());
  return name.empty() ? valid_utf8(folder) : name;
}

// What the list shows of a run: thousands of them are kept.
RunData listed_run(const std::string& folder, const std::string& root) {
  RunData run = read_run_outline(folder, root);
  if (run.run.is_dict()) run.run = run_outline(run.run);
  return run;
}

}  // namespace

bool names_this_machine(const std::string& header, const std::string& further) {
  std::string name = lower_case(header);
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos && colon > 0 && name.find(']', colon) == std::string::npos) {
    const std::string port = name.substr(colon + 1);
    const bool digits =
        std::all_of(port.begin(), port.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (!digits || port.empty() || port.size() > 5 || std::stoi(port) > 65535) return false;
    name.resize(colon);
  }
  if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return true;
  return !further.empty() && (name == lower_case(further) || name == "[" + further + "]");
}

std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw Error("", "the system gives no random numbers");
  std::string token;
  for (unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

std::string RunView::list() {
  std::vector<ListedRun> runs;
  std::map<std::string, Outline> seen;
  for (const std::string& folder : find_run_folders(rules_.folder)) {
    Outline& outline = seen[folder];
    const auto known = outlines_.find(folder);
    const std::string stamp = stamp_of(folder);
    if (known != outlines_.end() && known->second.stamp == stamp)
      outline = std::move(known->second);
    else
      outline = {stamp, {id_of(rules_.folder, folder), listed_run(folder, rules_.folder)}};
    runs.push_back(outline.run);
  }
  outlines_ = std::move(seen);
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    const auto started = [](const ListedRun& one) {
      const Value& value = one.run.run["started"];
      return value.is_string() ? value.as_string() : std::string();
    };
    return started(a) > started(b);  // newest first; equal ones stay sorted by path
  });
  PageFrame frame;
  frame.generator = rules_.generator;
  frame.title = folder_name_of(rules_.folder);
  frame.subtitle = fmt::format("{} runs", runs.size());
  frame.live_seconds = live_seconds;
  return page_html(frame, {list_part(runs, valid_utf8(rules_.folder))});
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
  const std::string query = run_query(ids);
  if (cache_.size() > most_cached) cache_.clear();
  Cached& cached = cache_[query];
  if (cached.stamp == stamp) return &cached;
  PageContent content;
  if (auto of_search = folders.size() == 1 ? search(folders[0]) : std::nullopt) {
    content = std::move(*of_search);
  } else {
    std::vector<RunData> runs;
    for (const std::string& folder : folders)
      runs.push_back(read_run_leniently(folder, rules_.folder));
    content = runs_content(runs);
  }
  content.frame.generator = rules_.generator;
  content.frame.home = std::string(1, '/');  // not "/": g++ 12 warns of it
  content.frame.live_seconds = live_seconds;
  cached = {stamp, page_html(content.frame, content.parts)};
  return &cached;
}

// Nothing if the run is no search. As everywhere here no symbolic link is followed.
std::optional<PageContent> RunView::search(const std::string& folder) const {
  std::error_code ignored;
  for (const char* below :
       {"", "/software", "/software/search_ckpts", "/software/search_ckpts/search.json"})
    if (fs::is_symlink(folder + below, ignored)) return {};
  try {
    const auto record = read_search_record(folder);
    if (!record) return {};
    PageContent content{search_frame(*record), search_parts(*record)};
    const RunData outline = read_run_outline(folder, rules_.folder);
    const Value& status = outline.run["status"];
    content.frame.title = outline.name;
    if (status.is_string()) content.frame.status = status.as_string();
    return content;
  } catch (const Error&) {  // a file that is no record: the page of any run
    return {};
  }
}

HttpAnswer RunView::content(const std::string& path, const std::vector<std::string>& ids) {
  if (path == "/") return {200, "text/html; charset=utf-8", list()};
  if (path != "/run") return refusal(404, "There is nothing here.");
  const Cached* found = page(ids);
  if (!found) return refusal(404, "There is no such run here.");
  return {200, "text/html; charset=utf-8", found->html};
}

HttpAnswer RunView::answer(const HttpRequest& request) {
  std::vector<std::string> ids;
  std::string token = cookie_token(request.cookie);
  bool in_address = false;
  for (const auto& [name, value] : request.query) {
    if (name == "run") ids.push_back(value);
    if (name != "token") continue;
    token = value;
    in_address = true;
  }
  HttpAnswer result;
  if (!rules_.token.empty() && !same_token(token, rules_.token))
    result = refusal(403, "The address must carry the token that ch view printed.");
  else if (rules_.token.empty() && !names_this_machine(request.host, rules_.host))
    result = refusal(403, "Only requests to this machine itself are answered.");
  else if (ids.size() > most_runs_of_a_page)
    result = refusal(400, fmt::format("At most {} runs at once.", most_runs_of_a_page));
  else
    result = content(request.path, ids);
  result.headers = {{"Cache-Control", "no-store"},
                    {"X-Content-Type-Options", "nosniff"},
                    {"X-Frame-Options", "DENY"},
                    {"Referrer-Policy", "no-referrer"}};
  // The token then leaves the address bar's further links; it stays valid while ch view runs.
  if (result.status == 200 && !rules_.token.empty() && in_address)
    result.headers.emplace_back(
        "Set-Cookie",
        fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name, rules_.token));
  return result;
}

}  // namespace mase
