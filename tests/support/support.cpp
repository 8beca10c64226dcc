// SPDX-License-Identifier: Apache-2.0
#include "support/support.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "mase/base/error.h"

namespace mase::test {
namespace fs = std::filesystem;
namespace {

std::string environment_or(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

struct Folders {
  std::vector<std::string> paths;
  ~Folders() {
    std::error_code ignored;
    for (const std::string& path : paths) fs::remove_all(path, ignored);
  }
};

}  // namespace

std::string source_path(const std::string& relative) {
  return environment_or("MASE_SOURCE", ".") + "/" + relative;
}

std::string golden_path(const std::string& name) { return source_path("tests/golden/" + name); }

std::string temporary_folder() {
  static Folders folders;
  std::string path = (fs::temp_directory_path() / "mase-test-XXXXXX").string();
  MASE_CHECK(::mkdtemp(path.data()), "cannot create {}", path);
  folders.paths.push_back(path);
  return path;
}

RunResult run(const std::vector<std::string>& command, const std::string& folder,
              const std::vector<std::string>& environment) {
  const std::string scratch = temporary_folder();
  const std::string out = scratch + "/out", err = scratch + "/err";
  const pid_t child = ::fork();
  if (child == 0) {
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    for (const std::string& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  RunResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read(out);
  result.err = read(err);
  return result;
}

RunResult ch(const std::vector<std::string>& arguments, const std::string& folder,
             const std::vector<std::string>& environment) {
  std::vector<std::string> command = {environment_or("MASE_CH", "build/release/bin/ch")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, folder, environment);
}

void expect_golden(const std::string& text, const std::string& name) {
  const std::string path = golden_path(name);
  if (std::getenv("MASE_REWRITE_GOLDEN")) {
    fs::create_directories(fs::path(path).parent_path());
    write(path, text);
    return;
  }
  EXPECT_EQ(text, read(path)) << "golden file " << path << " (MASE_REWRITE_GOLDEN=1 rewrites it)";
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

void write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
}

}  // namespace mase::test
