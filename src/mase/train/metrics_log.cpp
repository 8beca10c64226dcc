// SPDX-License-Identifier: Apache-2.0
#include "mase/train/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/base/value.h"

namespace mase {
namespace {

constexpr const char* header =
    "epoch,step,train_acc_step,train_loss_step,val_acc_epoch,val_loss_epoch,learning_rate,"
    "seconds\n";

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

void MetricsLog::File::open(int64_t keep) {
  fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw Error(path, fmt::format("cannot write the file: {}", std::strerror(errno)));
  struct stat status {};
  // Shorter than the checkpoint says: the machine went down before the rows reached the disk. The
  // run itself is whole, so go on with the rows there are.
  if (::fstat(fd, &status) == 0 && status.st_size < keep) keep = status.st_size;
  if (::ftruncate(fd, keep) != 0 || ::lseek(fd, keep, SEEK_SET) != keep)
    throw Error(path, fmt::format("cannot write the file: {}", std::strerror(errno)));
  bytes = keep;
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

MetricsLog::MetricsLog(const std::string& folder, int64_t csv_bytes, int64_t jsonl_bytes) {
  csv_.path = folder + "/metrics.csv";
  jsonl_.path = folder + "/metrics.jsonl";
  csv_.open(csv_bytes);
  jsonl_.open(jsonl_bytes);
  if (csv_bytes == 0) csv_.add(header);
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
  csv_.add(fmt::format("{},{},{},{},{},{},{},{:.3f}\n", row.epoch, row.step,
                       cell(row.train_accuracy), cell(row.train_loss), cell(row.val_accuracy),
                       cell(row.val_loss), cell(row.learning_rate), row.seconds));
  std::string line = fmt::format(R"({{"epoch": {}, "step": {})", row.epoch, row.step);
  const auto member = [&](const char* name, const std::optional<double>& value) {
    if (value) line += fmt::format(R"(, "{}": {})", name, to_json(Value(*value)));
  };
  member("train_acc_step", row.train_accuracy);
  member("train_loss_step", row.train_loss);
  member("val_acc_epoch", row.val_accuracy);
  member("val_loss_epoch", row.val_loss);
  member("learning_rate", row.learning_rate);
  jsonl_.add(line + fmt::format(R"(, "seconds": {:.3f}}})", row.seconds) + "\n");
}

void MetricsLog::flush() {
  csv_.flush();
  jsonl_.flush();
}

}  // namespace mase
