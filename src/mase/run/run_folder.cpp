// SPDX-License-Identifier: Apache-2.0
#include "mase/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "mase/base/address.h"
#include "mase/base/file.h"
#include "mase/base/temporary_folder.h"
#include "mase/base/text.h"

namespace mase {
namespace fs = std::filesystem;
namespace {

std::string formatted_time(const char* format, bool local) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (local)
    ::localtime_r(&now, &parts);
  else
    ::gmtime_r(&now, &parts);
  char text[64];
  const size_t length = std::strftime(text, sizeof text, format, &parts);
  return std::string(text, length);
}

// A model or data set may be a path; folder names take its stem, and nothing that leaves a folder.
std::string word_of(const std::string& name) {
  std::string word = name;
  if (name.find('/') != std::string::npos && fs::path(name).has_extension())
    word = fs::path(name).stem().string();
  else if (fs::path(name).has_extension() && fs::exists(name))
    word = fs::path(name).stem().string();
  for (char& c : word)
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '-';
  return word.empty() || word == "." || word == ".." ? "run" : word;
}

[[noreturn]] void cannot_create(const std::string& path) {
  throw Error(path, fmt::format("cannot create the folder: {}", std::strerror(errno)),
              "choose another place with --project-dir");
}

// False if the new name is taken.
bool rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST || errno == ENOTEMPTY) return false;
  if (errno != EINVAL && errno != ENOSYS) cannot_create(to);
  // A file system without that call: plain rename refuses folders that are not empty.
  if (fs::exists(to)) return false;
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (errno == EEXIST || errno == ENOTEMPTY) return false;
  cannot_create(to);
}

struct FolderLock {
  int fd;
  explicit FolderLock(int descriptor) : fd(descriptor) {}
  ~FolderLock() { ::close(fd); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
};

}  // namespace

std::string utc_now() { return formatted_time("%Y-%m-%dT%H:%M:%SZ", false); }

std::string default_project(const std::string& model, const std::string& task,
                            const std::string& dataset) {
  return fmt::format("{}_{}_{}_{}", word_of(model), task, word_of(dataset),
                     formatted_time("%Y-%m-%d", true));
}

Value machine_record() {
  std::string cpu = "unknown";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (starts_with(line, "model name")) {
      cpu = strip(line.substr(std::min(line.size(), line.find(':') + 1)));
      break;
    }
  utsname system{};
  ::uname(&system);
  return Dict{{"cpu", cpu},
              {"cores", static_cast<int64_t>(std::thread::hardware_concurrency())},
              {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
}

RunFolder RunFolder::create(const std::string& project_dir, const std::string& project,
                            Value record) {
  if (project.empty() || project == "." || project == ".." ||
      project.find('/') != std::string::npos)
    throw Error("--project", fmt::format("'{}' is not a folder name", printable(project)),
                "use --project-dir for the folder above it");
  make_directories(project_dir);
  RunFolder run;
  run.record_ = without_passwords(record);
  run.record_["status"] = "running";
  run.record_["started"] = utc_now();
  run.record_["machine"] = machine_record();
  // The folder is filled under another name and then renamed: whoever sees it sees a run.json in
  // it, and two runs started at once never share one.
  TemporaryFolder hidden(project_dir + "/.new-run-");
  run.path_ = hidden.path();
  run.save();
  for (int number = 1;; ++number) {
    run.path_ = project_dir + "/" + project + (number == 1 ? "" : fmt::format("_{}", number));
    if (!rename_to_new(hidden.path(), run.path_)) continue;
    hidden.release();
    return run;
  }
}

RunFolder RunFolder::open(const std::string& path) {
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored).lexically_normal();
  for (int up = 0; up < 4 && !folder.empty(); ++up, folder = folder.parent_path()) {
    if (!fs::exists(folder / "run.json", ignored)) continue;
    RunFolder run;
    run.path_ = up == 0 ? path : folder.string();
    while (run.path_.size() > 1 && run.path_.back() == '/') run.path_.pop_back();
    run.record_ = read_json((folder / "run.json").string());
    if (!run.record_.is_dict()) throw Error((folder / "run.json").string(), "is not a run record");
    return run;
  }
  throw Error(path, "is not a run folder: there is no run.json",
              "give a folder that ch train wrote, such as mase_output/NAME");
}

std::string RunFolder::software(const std::string& below) const {
  const std::string folder = path_ + "/software" + (below.empty() ? "" : "/" + below);
  make_directories(folder);
  return folder;
}

std::string RunFolder::checkpoint(const std::string& name) const {
  return software("training_ckpts") + "/" + name + ".ckpt";
}

std::string RunFolder::initial_graph() const { return software("training_ckpts") + "/initial.mz"; }

void RunFolder::write(const std::string& below, const std::string& text) const {
  const fs::path file = fs::path(path_) / below;
  make_directories(file.parent_path().string());
  write_file_atomically(file.string(), text);
}

void RunFolder::save() const {
  write_file_atomically(path_ + "/run.json", to_json(record_, 1) + "\n");
}

std::string RunFolder::status() const {
  return record_["status"].is_string() ? record_["status"].as_string() : std::string();
}

std::shared_ptr<const void> try_lock_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw Error(folder, fmt::format("cannot open the folder: {}", std::strerror(errno)));
  auto lock = std::make_shared<const FolderLock>(fd);
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 ? lock : nullptr;
}

void RunFolder::lock() {
  lock_ = try_lock_folder(path_);
  if (!lock_)
    throw Error(path_, "another process is training this run", "wait for it, or stop it first");
}

void RunFolder::note_failure() noexcept {
  try {
    if (status() != "finished") finish("failed");
  } catch (const std::exception&) {  // a full disk: the error that is under way says more
  }
}

void RunFolder::finish(const std::string& status) {
  record_["status"] = status;
  record_["finished"] = utc_now();
  save();
}

}  // namespace mase
