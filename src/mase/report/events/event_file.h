// SPDX-License-Identifier: Apache-2.0
// TensorBoard event files: scalars and histograms, as `tensorboard --logdir` reads them. A file is
// a sequence of TFRecords (length, masked CRC-32C of it, payload, masked CRC-32C of that), each
// holding one Event message in protobuf's wire format. Only the few fields needed are written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mase {

// Writes one event file in a folder (created if absent); several writers never share a file.
// Records are buffered; flush() hands them to the system, the destructor too, as far as it can.
class EventWriter {
 public:
  static EventWriter open(const std::string& folder);
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;
  ~EventWriter();

  // wall_time in seconds since 1970; 0 takes the clock. Tags may be any bytes: what is not valid
  // UTF-8 is replaced, since readers refuse a whole file for one such tag.
  void scalar(std::string_view tag, int64_t step, double value, double wall_time = 0);
  // Non-finite values are left out of the buckets.
  void histogram(std::string_view tag, int64_t step, std::span<const float> values,
                 double wall_time = 0);
  void flush();
  const std::string& path() const;

 private:
  struct State;
  explicit EventWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// software/tensorboard/lightning_logs -> software/tensorboard/lightning_logs/version_N, with the
// first N not taken. The folder is created.
std::string new_event_folder(const std::string& logs);

struct EventHistogram {
  double lowest = 0, largest = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;  // right edge and number of values of each bucket
};

struct EventRecord {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;  // of the first record: "brain.Event:2"
  std::vector<std::pair<std::string, float>> scalars;
  std::vector<std::pair<std::string, EventHistogram>> histograms;
};

// The checker: every record's length, both checksums and its message. An error names the record.
std::vector<EventRecord> read_event_file(const std::string& path);

uint32_t crc32c(std::string_view bytes);

}  // namespace mase
