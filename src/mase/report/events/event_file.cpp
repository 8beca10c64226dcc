// SPDX-License-Identifier: Apache-2.0
// The writer of event files. Field numbers are those of TensorFlow's event.proto and summary.proto:
// Event {1 wall_time, 2 step, 3 file_version, 5 summary}, Summary {1 value},
// Value {1 tag, 2 simple_value, 5 histo}, HistogramProto {1 min, 2 max, 3 num, 4 sum,
// 5 sum_squares, 6 bucket_limit (packed), 7 bucket (packed)}.
#include "mase/report/events/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/report/text/utf8.h"

namespace mase {
namespace {

constexpr size_t buffer_limit = 1 << 16;
constexpr size_t bucket_count = 64;

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> crc_table = make_crc_table();

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

void put_fixed32(std::string& out, uint32_t bits) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
}

void put_fixed64(std::string& out, uint64_t bits) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
}

void put_varint(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out.push_back(static_cast<char>(number | 0x80));
    number >>= 7;
  }
  out.push_back(static_cast<char>(number));
}

enum WireType : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& out, uint32_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

void put_double(std::string& out, uint32_t field, double value) {
  put_key(out, field, fixed64);
  put_fixed64(out, std::bit_cast<uint64_t>(value));
}

void put_float(std::string& out, uint32_t field, float value) {
  put_key(out, field, fixed32);
  put_fixed32(out, std::bit_cast<uint32_t>(value));
}

void put_bytes(std::string& out, uint32_t field, std::string_view content) {
  put_key(out, field, bytes);
  put_varint(out, content.size());
  out.append(content);
}

void put_packed(std::string& out, uint32_t field, const std::vector<double>& values) {
  std::string packed;
  for (double value : values) put_fixed64(packed, std::bit_cast<uint64_t>(value));
  put_bytes(out, field, packed);
}

void put_record(std::string& out, std::string_view payload) {
  std::string length;
  put_fixed64(length, payload.size());
  out += length;
  put_fixed32(out, masked(crc32c(length)));
  out += payload;
  put_fixed32(out, masked(crc32c(payload)));
}

double clock_seconds() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

// Equal buckets over the values seen. TensorBoard draws between bucket edges, so an all-equal
// tensor gets one narrow bucket around its value.
EventHistogram summarise(std::span<const float> values) {
  EventHistogram result;
  for (float value : values) {
    if (!std::isfinite(value)) continue;
    const double v = value;
    result.lowest = result.count == 0 ? v : std::min(result.lowest, v);
    result.largest = result.count == 0 ? v : std::max(result.largest, v);
    result.count += 1;
    result.sum += v;
    result.sum_of_squares += v * v;
  }
  if (result.count == 0) return result;
  const double span = result.largest - result.lowest;
  const size_t buckets = span > 0 ? bucket_count : 1;
  const double width = span > 0 ? span / static_cast<double>(buckets)
                                : std::max(std::abs(result.largest) * 1e-3, 1e-6);
  result.limits.resize(buckets);
  result.counts.resize(buckets);
  for (size_t i = 0; i < buckets; ++i)
    result.limits[i] = result.lowest + width * static_cast<double>(i + 1);
  for (float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = span > 0 ? (value - result.lowest) / width : 0;
    result.counts[std::min(buckets - 1, static_cast<size_t>(place))] += 1;
  }
  return result;
}

std::string event(int64_t step, double wall_time) {
  std::string message;
  put_double(message, 1, wall_time > 0 ? wall_time : clock_seconds());
  if (step != 0) {
    put_key(message, 2, varint);
    put_varint(message, static_cast<uint64_t>(step));
  }
  return message;
}

std::string event_with(std::string_view tag, int64_t step, double wall_time,
                       std::string_view value_fields) {
  std::string value, summary, message = event(step, wall_time);
  put_bytes(value, 1, valid_utf8(tag));
  value += value_fields;
  put_bytes(summary, 1, value);
  put_bytes(message, 5, summary);
  return message;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "host";
  std::string safe(name);
  for (char& c : safe)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '-';
  return safe.empty() ? "host" : safe;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

struct EventWriter::State {
  int fd = -1;
  std::string path, pending;

  ~State() {
    try {
      flush();
    } catch (const Error&) {  // a destructor has nobody to tell
    }
    if (fd >= 0) ::close(fd);
  }

  void flush() {
    if (fd < 0 || pending.empty()) return;
    const std::string content = std::exchange(pending, {});
    write_all(fd, content.data(), content.size(), path);
  }

  void record(std::string_view payload) {
    put_record(pending, payload);
    if (pending.size() >= buffer_limit) flush();
  }
};

EventWriter::EventWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;
EventWriter::~EventWriter() = default;

EventWriter EventWriter::open(const std::string& folder) {
  make_directories(folder);
  auto state = std::make_unique<State>();
  const std::string stem =
      fmt::format("{}/events.out.tfevents.{}.{}.{}", folder, static_cast<int64_t>(clock_seconds()),
                  host_name(), static_cast<int64_t>(::getpid()));
  for (int number = 0; state->fd < 0; ++number) {
    state->path = fmt::format("{}.{}", stem, number);
    state->fd = ::open(state->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (state->fd < 0 && errno != EEXIST)
      throw Error(state->path, fmt::format("cannot create the file: {}", std::strerror(errno)));
  }
  std::string first = event(0, 0);
  put_bytes(first, 3, "brain.Event:2");
  state->record(first);
  state->flush();
  return EventWriter(std::move(state));
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value, double wall_time) {
  std::string fields;
  put_float(fields, 2, static_cast<float>(value));
  state_->record(event_with(tag, step, wall_time, fields));
}

void EventWriter::histogram(std::string_view tag, int64_t step, std::span<const float> values,
                            double wall_time) {
  const EventHistogram summary = summarise(values);
  std::string histogram, fields;
  put_double(histogram, 1, summary.lowest);
  put_double(histogram, 2, summary.largest);
  put_double(histogram, 3, summary.count);
  put_double(histogram, 4, summary.sum);
  put_double(histogram, 5, summary.sum_of_squares);
  put_packed(histogram, 6, summary.limits);
  put_packed(histogram, 7, summary.counts);
  put_bytes(fields, 5, histogram);
  state_->record(event_with(tag, step, wall_time, fields));
}

void EventWriter::flush() { state_->flush(); }
const std::string& EventWriter::path() const { return state_->path; }

std::string new_event_folder(const std::string& logs) {
  make_directories(logs);
  for (int number = 0;; ++number) {
    const std::string folder = fmt::format("{}/version_{}", logs, number);
    std::error_code failure;
    if (std::filesystem::create_directory(folder, failure)) return folder;
    if (failure)
      throw Error(folder, fmt::format("cannot create the folder: {}", failure.message()));
  }
}

namespace {

// Reads a message's fields in order; a field cut short is an error of the record.
class Fields {
 public:
  Fields(std::string_view message, const std::string& place) : rest_(message), place_(place) {}

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = take_varint();
    field = key >> 3;
    type = static_cast<uint32_t>(key & 7);
    if (type == varint) {
      number = take_varint();
    } else if (type == fixed64) {
      number = take_fixed(8);
    } else if (type == fixed32) {
      number = take_fixed(4);
    } else if (type == bytes) {
      const uint64_t size = take_varint();
      if (size > rest_.size()) cut();
      content = rest_.substr(0, size);
      rest_.remove_prefix(size);
    } else {
      throw Error(place_, fmt::format("unknown wire type {}", type));
    }
    return true;
  }

  bool is(uint64_t wanted, uint32_t wanted_type) const {
    return field == wanted && type == wanted_type;
  }
  double as_double() const { return std::bit_cast<double>(number); }
  float as_float() const { return std::bit_cast<float>(static_cast<uint32_t>(number)); }
  std::vector<double> as_doubles() const {
    if (content.size() % 8 != 0) cut();
    std::vector<double> values(content.size() / 8);
    if (!values.empty()) std::memcpy(values.data(), content.data(), content.size());
    return values;
  }

  uint64_t field = 0, number = 0;
  uint32_t type = 0;
  std::string_view content;

 private:
  [[noreturn]] void cut() const { throw Error(place_, "the message is cut short"); }

  uint64_t take_varint() {
    uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = take_fixed(1);
      result |= (byte & 0x7F) << shift;
      if (byte < 0x80) return result;
    }
    throw Error(place_, "a number is too long");
  }

  uint64_t take_fixed(size_t size) {
    if (rest_.size() < size) cut();
    uint64_t result = 0;
    for (size_t i = 0; i < size; ++i)
      result |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
    rest_.remove_prefix(size);
    return result;
  }

  std::string_view rest_;
  std::string place_;
};

EventHistogram parse_histogram(std::string_view message, const std::string& place) {
  EventHistogram histogram;
  for (Fields fields(message, place); fields.next();) {
    if (fields.is(1, fixed64)) histogram.lowest = fields.as_double();
    if (fields.is(2, fixed64)) histogram.largest = fields.as_double();
    if (fields.is(3, fixed64)) histogram.count = fields.as_double();
    if (fields.is(4, fixed64)) histogram.sum = fields.as_double();
    if (fields.is(5, fixed64)) histogram.sum_of_squares = fields.as_double();
    if (fields.is(6, bytes)) histogram.limits = fields.as_doubles();
    if (fields.is(7, bytes)) histogram.counts = fields.as_doubles();
  }
  return histogram;
}

void parse_value(std::string_view message, const std::string& place, EventRecord& record) {
  std::string tag;
  for (Fields fields(message, place); fields.next();) {
    if (fields.is(1, bytes)) tag = fields.content;
    if (fields.is(2, fixed32)) record.scalars.emplace_back(tag, fields.as_float());
    if (fields.is(5, bytes))
      record.histograms.emplace_back(tag, parse_histogram(fields.content, place));
  }
}

EventRecord parse_event(std::string_view message, const std::string& place) {
  EventRecord record;
  for (Fields fields(message, place); fields.next();) {
    if (fields.is(1, fixed64)) record.wall_time = fields.as_double();
    if (fields.is(2, varint)) record.step = static_cast<int64_t>(fields.number);
    if (fields.is(3, bytes)) record.version = fields.content;
    if (!fields.is(5, bytes)) continue;
    for (Fields summary(fields.content, place); summary.next();)
      if (summary.is(1, bytes)) parse_value(summary.content, place, record);
  }
  return record;
}

}  // namespace

std::vector<EventRecord> read_event_file(const std::string& path) {
  const std::string content = read_text_file(path);
  std::string_view rest = content;
  std::vector<EventRecord> records;
  const auto take = [&](size_t size, const std::string& place) {
    if (rest.size() < size) throw Error(place, "the record is cut short");
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  };
  const auto little_endian = [](std::string_view bytes) {
    uint64_t result = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      result |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
    return result;
  };
  while (!rest.empty()) {
    const std::string place = fmt::format("{}: record {}", path, records.size() + 1);
    const std::string_view length = take(8, place);
    if (little_endian(take(4, place)) != masked(crc32c(length)))
      throw Error(place, "the checksum of its length is wrong");
    const std::string_view payload = take(little_endian(length), place);
    if (little_endian(take(4, place)) != masked(crc32c(payload)))
      throw Error(place, "the checksum of its content is wrong");
    records.push_back(parse_event(payload, place));
  }
  if (records.empty() || records.front().version != "brain.Event:2")
    throw Error(path, "does not begin with the version record of an event file");
  return records;
}

}  // namespace mase
