// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/report/text/utf8.h"

namespace mase {
namespace fs = std::filesystem;
namespace {

constexpr size_t most_columns = 64;
constexpr int deepest = 5;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string metrics_path(const std::string& folder) { return folder + "/software/metrics.csv"; }

void search(const fs::path& folder, int depth, std::vector<std::string>& found) {
  if (is_run_folder(folder.string())) {
    found.push_back(folder.string());
    return;
  }
  if (depth >= deepest) return;
  std::error_code failure;
  fs::directory_iterator entries(folder, failure);
  if (failure) return;
  // Folders may come and go while we look: every failure only ends this folder.
  for (; entries != fs::directory_iterator(); entries.increment(failure)) {
    if (failure) return;
    std::error_code ignored;
    if (entries->is_directory(ignored) && !entries->is_symlink(ignored))
      search(entries->path(), depth + 1, found);
  }
}

// A resumed run logs steps again: what it repeats replaces what was there.
void append(Curve& curve, double x, double y) {
  while (!curve.x.empty() && curve.x.back() >= x) {
    curve.x.pop_back();
    curve.y.pop_back();
  }
  curve.x.push_back(x);
  curve.y.push_back(y);
}

struct EpochMean {
  double sum = 0;
  size_t count = 0;
};

struct EpochEnd {
  double step = 0, seconds = NAN;
  std::vector<EpochMean> means;
};

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line) {
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return false;
    line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ++number;
    return true;
  }
  int number = 0;

 private:
  std::string_view rest_;
};

void split_cells(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  for (size_t at = 0;;) {
    const size_t end = line.find(',', at);
    cells.push_back(line.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return;
    at = end + 1;
  }
}

int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

}  // namespace

const Curve* RunData::curve(const std::string& name) const {
  for (const Curve& one : curves)
    if (one.name == name) return &one;
  return nullptr;
}

std::optional<double> accuracy_on(const RunData& run, const std::string& split) {
  const auto accuracy = [](const Value& found) -> std::optional<double> {
    if (!found.is_dict() || !found["accuracy"].is_number()) return {};
    const double number = found["accuracy"].as_double();
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  };
  const Value& all = run.run["evaluations"];
  if (all.is_dict())
    if (const auto found = accuracy(all[split])) return found;
  const Value& last = run.run["evaluation"];
  if (last.is_dict() && last["split"].is_string() && last["split"].as_string() == split)
    return accuracy(last);
  return {};
}

bool is_run_folder(const std::string& folder) {
  return is_file(folder + "/run.json") || is_file(metrics_path(folder));
}

std::vector<std::string> find_run_folders(const std::string& folder) {
  std::vector<std::string> found;
  search(folder, 0, found);
  std::sort(found.begin(), found.end());
  return found;
}

void read_metrics(const std::string& text, const std::string& path, RunData& run) {
  Lines lines(text);
  std::string_view line;
  if (!lines.next(line)) return;
  std::vector<std::string> names = split(line, ',');
  const auto fail = [&](const std::string& cause) {
    throw Error(fmt::format("{}:{}", path, lines.number), cause,
                "give a metrics.csv as ch train writes it");
  };
  if (names.size() > most_columns) fail(fmt::format("{} columns are too many", names.size()));
  for (std::string& name : names) name = valid_utf8(strip(name));
  const int step_at = index_of(names, "step"), epoch_at = index_of(names, "epoch"),
            seconds_at = index_of(names, "seconds");

  std::vector<Curve> curves(names.size());
  std::vector<double> row(names.size());
  std::vector<std::string_view> cells;
  std::map<double, EpochEnd> epochs;
  while (lines.next(line)) {
    if (line.empty()) continue;
    split_cells(line, cells);
    if (cells.size() != names.size())
      fail(fmt::format("{} cells, but the header names {} columns", cells.size(), names.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      row[i] = NAN;
      if (cells[i].empty()) continue;
      const auto number = parse_number(cells[i]);
      if (!number)
        fail(fmt::format("column '{}': '{}' is not a number", printable(names[i]),
                         printable(cells[i].substr(0, 40))));
      row[i] = *number;
    }
    const double step = step_at >= 0 && std::isfinite(row[static_cast<size_t>(step_at)])
                            ? row[static_cast<size_t>(step_at)]
                            : static_cast<double>(run.rows);
    ++run.rows;
    EpochEnd* end = nullptr;
    if (epoch_at >= 0 && std::isfinite(row[static_cast<size_t>(epoch_at)])) {
      end = &epochs[row[static_cast<size_t>(epoch_at)]];
      end->means.resize(names.size());
      end->step = std::max(end->step, step);
      if (seconds_at >= 0 && std::isfinite(row[static_cast<size_t>(seconds_at)]))
        end->seconds = row[static_cast<size_t>(seconds_at)];
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const int at = static_cast<int>(i);
      if (cells[i].empty() || at == step_at || at == epoch_at || at == seconds_at) continue;
      append(curves[i], step, row[i]);
      if (end && std::isfinite(row[i])) {
        end->means[i].sum += row[i];
        end->means[i].count += 1;
      }
    }
  }

  for (const auto& [epoch, end] : epochs) {
    run.epochs.push_back(epoch);
    run.epoch_steps.push_back(end.step);
    run.epoch_seconds.push_back(end.seconds);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (curves[i].x.empty()) continue;
    if (ends_with(names[i], "_step")) {
      const std::string quantity = names[i].substr(0, names[i].size() - 5);
      Curve mean{quantity + "_logged", {}, {}};
      if (index_of(names, quantity + "_epoch") < 0)
        for (const auto& [epoch, end] : epochs)
          if (end.means[i].count > 0)
            append(mean, end.step, end.means[i].sum / static_cast<double>(end.means[i].count));
      if (!mean.x.empty()) run.curves.push_back(std::move(mean));
    }
    curves[i].name = names[i];
    run.curves.push_back(std::move(curves[i]));
  }
}

namespace {

// What keeps a descriptor that may have to be closed on any way out.
struct Descriptor {
  int number = -1;
  explicit Descriptor(int given) : number(given) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

// Part by part from the root, so that no link is followed, not even one made while we look.
std::string read_beneath(const std::string& root, const std::string& path) {
  const auto fail = [&]() -> Error {
    if (errno == ELOOP || errno == ENOTDIR)
      return {path, "is a symbolic link or lies behind one, which is not followed",
              "show the folder that holds the file itself"};
    return {path, fmt::format("cannot be read: {}", std::strerror(errno))};
  };
  const fs::path relative = fs::path(path).lexically_relative(root);
  auto at = std::make_unique<Descriptor>(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    const bool last = std::next(part) == relative.end();
    const int how = O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY);
    at =
        std::make_unique<Descriptor>(*part == ".." ? -1 : ::openat(at->number, part->c_str(), how));
    if (at->number < 0) throw fail();
  }
  struct stat status {};
  if (::fstat(at->number, &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(path, "is not a file");
  std::string text;
  text.reserve(static_cast<size_t>(status.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(at->number, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw fail();
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

std::string text_of(const std::string& path, const std::string& root) {
  return root.empty() ? read_text_file(path) : read_beneath(root, path);
}

using Attempt = std::function<void(const std::function<void()>&)>;

RunData named(const std::string& folder) {
  RunData run;
  fs::path path = fs::path(folder).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  if (path == "." || path == "..") path = fs::absolute(path).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  run.name = valid_utf8(path.filename().string());
  run.folder = valid_utf8(folder);
  return run;
}

void read_run_file(const std::string& folder, const std::string& root, RunData& run) {
  const std::string path = folder + "/run.json";
  if (!is_file(path)) return;
  Value found = parse_json(text_of(path, root), path);
  if (!found.is_dict()) throw Error(path, "is not a JSON object");
  run.run = std::move(found);
}

RunData read_parts(const std::string& folder, const std::string& root, const Attempt& attempt) {
  RunData run = named(folder);
  attempt([&] { read_run_file(folder, root, run); });
  attempt([&] {
    const std::string path = metrics_path(folder);
    if (!is_file(path)) return;
    RunData read;
    read_metrics(text_of(path, root), path, read);
    run.curves = std::move(read.curves);
    run.epochs = std::move(read.epochs);
    run.epoch_steps = std::move(read.epoch_steps);
    run.epoch_seconds = std::move(read.epoch_seconds);
    run.rows = read.rows;
  });
  attempt([&] {
    const std::string path = folder + "/software/transform/results.json";
    if (is_file(path)) run.results = parse_json(text_of(path, root), path);
  });
  return run;
}

// Notes errors instead of passing them on.
Attempt noting(std::string& problem) {
  return [&problem](const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& error) {
      if (!problem.empty()) problem += "; ";
      problem += error.what();
    }
  };
}

}  // namespace

RunData read_run(const std::string& folder) {
  if (!is_run_folder(folder))
    throw Error(folder, "is not a run folder",
                "give a folder that holds run.json, such as one below mase_output");
  return read_parts(folder, "", [](const std::function<void()>& part) { part(); });
}

RunData read_run_leniently(const std::string& folder, const std::string& root) {
  std::string problem;
  RunData run = read_parts(folder, root, noting(problem));
  run.problem = valid_utf8(problem);
  return run;
}

RunData read_run_outline(const std::string& folder, const std::string& root) {
  std::string problem;
  RunData run = named(folder);
  noting(problem)([&] { read_run_file(folder, root, run); });
  run.problem = valid_utf8(problem);
  return run;
}

}  // namespace mase
