// SPDX-License-Identifier: Apache-2.0
#include "mase/train/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/base/value.h"

namespace mase {
namespace {

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

bool whole_csv_row(const std::string& line, const std::string& header) {
  if (line == header) return true;
  const std::vector<std::string> cells = split(line, ',');
  return cells.size() == split(header, ',').size() &&
         std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
           return cell.empty() || parse_number(cell) || cell == "nan" || cell == "inf" ||
                  cell == "-nan" || cell == "-inf";
         });
}

bool whole_json_row(const std::string& line) {
  try {
    return parse_json(line, "").is_dict();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string MetricsLog::File::open(int64_t keep,
                                   const std::function<bool(const std::string& line)>& whole) {
  fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) throw Error(path, fmt::format("cannot write the file: {}", std::strerror(errno)));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(path, "is not a regular file");
  // Shorter than the checkpoint says: the machine went down before the rows reached the disk.
  std::string old(static_cast<size_t>(std::min<int64_t>(keep, status.st_size)), '\0');
  read_at(fd, std::as_writable_bytes(std::span(old)).data(), old.size(), 0, path);
  std::string good;
  int64_t damaged = 0;
  for (size_t at = 0; at < old.size();) {
    const size_t end = old.find('\n', at);
    const std::string line = old.substr(at, end - at);
    if (end != std::string::npos && whole(line))
      good += line + "\n";
    else
      ++damaged;
    at = end == std::string::npos ? old.size() : end + 1;
  }
  if (good != old) {
    if (::ftruncate(fd, 0) != 0 || ::lseek(fd, 0, SEEK_SET) != 0)
      throw Error(path, fmt::format("cannot write the file: {}", std::strerror(errno)));
    write_all(fd, good.data(), good.size(), path);
  }
  bytes = static_cast<int64_t>(good.size());
  if (::ftruncate(fd, bytes) != 0 || ::lseek(fd, bytes, SEEK_SET) != bytes)
    throw Error(path, fmt::format("cannot write the file: {}", std::strerror(errno)));
  if (damaged > 0)
    return fmt::format("{}: {} damaged row{} left out", path, damaged, damaged == 1 ? "" : "s");
  if (static_cast<int64_t>(old.size()) < keep)
    return fmt::format("{}: rows at its end are missing", path);
  return "";
}

void MetricsLog::File::add(const std::string& text) {
  pending += text;
  bytes += static_cast<int64_t>(text.size());
  if (pending.size() > size_t{1} << 16) flush();
}

void MetricsLog::File::flush() {
  if (pending.empty()) return;
  write_all(fd, pending.data(), pending.size(), path);
  pending.clear();
}

MetricsLog::MetricsLog(const std::string& folder, std::vector<std::string> figures,
                       int64_t csv_bytes, int64_t jsonl_bytes)
    : figures_(std::move(figures)) {
  const std::string header = "epoch,step,train_acc_step,train_loss_step," +
                             (figures_.empty() ? "" : join(figures_, ",") + ",") +
                             "learning_rate,seconds";
  csv_.path = folder + "/metrics.csv";
  jsonl_.path = folder + "/metrics.jsonl";
  const std::string first =
      csv_.open(csv_bytes, [&](const std::string& line) { return whole_csv_row(line, header); });
  const std::string second = jsonl_.open(jsonl_bytes, whole_json_row);
  notice_ = first.empty() || second.empty() ? first + second : first + "; " + second;
  if (csv_.bytes == 0) csv_.add(header + "\n");
  flush();
}

MetricsLog::~MetricsLog() {
  try {
    flush();
  } catch (const Error&) {
    // The error that ends the run was reported already; a destructor cannot add to it.
  }
  if (csv_.fd >= 0) ::close(csv_.fd);
  if (jsonl_.fd >= 0) ::close(jsonl_.fd);
}

void MetricsLog::add(const MetricsRow& row) {
  std::string cells;
  for (const std::string& name : figures_) {
    const auto found = std::find_if(row.figures.begin(), row.figures.end(),
                                    [&](const auto& figure) { return figure.first == name; });
    if (found != row.figures.end()) cells += cell(found->second);
    cells += ',';
  }
  csv_.add(fmt::format("{},{},{},{},{}{},{:.3f}\n", row.epoch, row.step, cell(row.train_accuracy),
                       cell(row.train_loss), cells, cell(row.learning_rate), row.seconds));
  std::string line = fmt::format(R"({{"epoch": {}, "step": {})", row.epoch, row.step);
  const auto member = [&](const char* name, const std::optional<double>& value) {
    if (value) line += fmt::format(R"(, "{}": {})", name, to_json(Value(*value)));
  };
  member("train_acc_step", row.train_accuracy);
  member("train_loss_step", row.train_loss);
  for (const auto& [name, value] : row.figures) member(name.c_str(), value);
  member("learning_rate", row.learning_rate);
  jsonl_.add(line + fmt::format(R"(, "seconds": {:.3f}}})", row.seconds) + "\n");
}

void MetricsLog::flush() {
  csv_.flush();
  jsonl_.flush();
}

}  // namespace mase
