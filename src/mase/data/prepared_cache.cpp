// SPDX-License-Identifier: Apache-2.0
#include "mase/data/prepared_cache.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/data/digest.h"
#include "mase/data/row_hash.h"

namespace mase {
namespace {

constexpr std::array<char, 8> magic = {'M', 'A', 'S', 'E', 'D', 'A', 'T', 'A'};
constexpr uint32_t version = 1;
constexpr uint64_t largest_header = uint64_t{64} << 20;

struct Front {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t unused;
  uint64_t header_bytes;  // padded, so that the body starts aligned
  uint64_t header_checksum;
  uint64_t body_bytes;
  uint64_t padding[3];
};
static_assert(sizeof(Front) == 64);

size_t aligned(size_t size) { return (size + 63) / 64 * 64; }

// Of all bytes of a file, at the speed of memory: what tells a source from another. Its sha256,
// which names it in records, takes several times as long and is computed when it is prepared.
std::string content_hash(const std::string& path) {
  const InputFile file(path);
  std::vector<std::byte> chunk(std::min<uint64_t>(file.size(), uint64_t{1} << 20));
  std::vector<uint64_t> sums = {file.size()};
  for (uint64_t at = 0; at < file.size();) {
    const size_t size = std::min<uint64_t>(chunk.size(), file.size() - at);
    file.read(chunk.data(), size, at, path);
    sums.push_back(checksum(std::span(chunk).first(size)));
    at += size;
  }
  return fmt::format("{} bytes {:016x}", file.size(), checksum(std::as_bytes(std::span(sums))));
}

// The parts of the body in order; empty ones are left out.
std::vector<const Tensor*> parts(const Dataset& dataset, bool own_validation) {
  std::vector<const Tensor*> list;
  const auto add = [&](const Split& split) {
    for (const Tensor* tensor : {&split.x, &split.labels, &split.targets})
      if (tensor->numel() > 0) list.push_back(tensor);
  };
  add(dataset.train);
  if (own_validation) add(dataset.validation);
  add(dataset.test);
  return list;
}

Dict split_value(const Split& split) {
  return Dict{{"x", Value::of(split.x.shape())},
              {"labels", split.labels.numel() > 0},
              {"outputs", split.targets.numel() > 0 ? split.targets.dim(-1) : int64_t{0}}};
}

List float_list(const std::vector<float>& values) {
  List list;
  for (const float value : values) list.emplace_back(double{value});
  return list;
}

// Takes tensors off the mapped body one after the other.
class Body {
 public:
  Body(std::shared_ptr<const MappedFile> file, size_t offset, const List& checksums)
      : file_(std::move(file)), at_(offset), checksums_(checksums) {}

  Tensor take(const Shape& shape, DType dtype) {
    const auto count = static_cast<uint64_t>(element_count(shape));
    const size_t size = count * dtype_size(dtype);
    if (count > file_->bytes().size() || size > file_->bytes().size() - at_)
      throw Error(file_->path(), "is damaged");
    if (next_ >= checksums_.size() || static_cast<uint64_t>(checksums_[next_++].as_int()) !=
                                          checksum(file_->bytes().subspan(at_, size)))
      throw Error(file_->path(), "is damaged");
    Tensor tensor(shape, dtype, file_->bytes().data() + at_, file_);
    at_ = std::min(file_->bytes().size(), at_ + aligned(size));
    return tensor;
  }

  Split split(const Value& value, int64_t classes) {
    Split result;
    const Shape shape = value["x"].as_int_list("x");
    if (shape.empty()) throw Error(file_->path(), "is damaged");
    result.x = take(shape, DType::f32);
    if (value["labels"].as_bool("labels")) {
      result.labels = take({shape[0]}, DType::i32);
      for (const int32_t label : result.labels.values<int32_t>())
        if (label < 0 || label >= classes) throw Error(file_->path(), "is damaged");
    }
    if (const int64_t outputs = value["outputs"].as_int("outputs"); outputs > 0)
      result.targets = take({shape[0], outputs}, DType::f32);
    return result;
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  size_t at_;
  const List& checksums_;
  size_t next_ = 0;
};

Dataset from_header(const Value& header, const std::shared_ptr<const MappedFile>& file,
                    size_t offset) {
  Dataset dataset;
  dataset.name = header["name"].as_string();
  dataset.variant = header["variant"].as_string();
  dataset.identity = header["identity"].as_string();
  dataset.notice = header["notice"].as_string();
  dataset.classification = header["classification"].as_bool();
  dataset.class_names = header["class_names"].as_string_list();
  for (const Value& weight : header["class_weights"].as_list())
    dataset.class_weights.push_back(static_cast<float>(weight.as_double()));
  dataset.preprocessing = preprocessing_from_value(header["preprocessing"]);
  Body body(file, offset, header["checksums"].as_list());
  const auto classes = static_cast<int64_t>(dataset.class_names.size());
  dataset.train = body.split(header["train"], classes);
  dataset.validation =
      header["validation"].is_null() ? dataset.train : body.split(header["validation"], classes);
  dataset.test = body.split(header["test"], classes);
  // The checksums are ours, but anybody can compute them.
  const auto features = static_cast<int64_t>(dataset.preprocessing.feature_names.size());
  const Shape sample = dataset.sample_shape();
  bool good = element_count(sample) == features &&
              (dataset.class_weights.empty() || std::ssize(dataset.class_weights) == classes);
  for (const Split* split : {&dataset.train, &dataset.validation, &dataset.test}) {
    const Tensor& target = dataset.classification ? split->labels : split->targets;
    good = good && split->rows() > 0 && target.numel() > 0 &&
           Shape(split->x.shape().begin() + 1, split->x.shape().end()) == sample &&
           (dataset.classification || target.dim(-1) == dataset.train.targets.dim(-1));
  }
  if (!good) throw Error(file->path(), "is damaged");
  return dataset;
}

}  // namespace

std::string user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/mase";  // the specification says to ignore a relative one
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/mase";
  const passwd* user = ::getpwuid(::getuid());
  if (user && user->pw_dir && *user->pw_dir == '/' && std::string(user->pw_dir) != "/")
    return std::string(user->pw_dir) + "/.cache/mase";
  return "";
}

PreparedKey prepared_key(const std::string& stem, const std::string& source_file,
                         const DatasetOptions& options, const Value& further) {
  if (!options.use_cache) return {};
  Dict made_from{{"stem", stem},
                 {"validation_split", options.validation_split},
                 {"scaling", options.scaling},
                 {"categorical", options.categorical},
                 {"class_weighting", options.class_weighting},
                 {"drop_bad_rows", options.drop_bad_rows},
                 {"fill_missing", options.fill_missing},
                 {"missing_values", options.missing_values},
                 {"ignore", options.ignore},
                 {"target", options.target},
                 {"task", options.task},
                 {"further", further}};
  // One prepared file for each source and way of preparing it; other content replaces it.
  std::error_code unknown;
  if (!source_file.empty())
    made_from.set("source", std::filesystem::absolute(source_file, unknown).string());
  const std::string text = to_json(Value(made_from));
  const std::string digest = sha256_hex(std::as_bytes(std::span(text))).substr(0, 10);
  if (!source_file.empty()) made_from.set("content", content_hash(source_file));
  const char* given = std::getenv("MASE_DATA");
  const std::string folder = given && *given ? given : user_cache_folder();
  if (folder.empty()) return {};
  return {fmt::format("{}/prepared/{}.{}.prepared", folder, stem, digest), std::move(made_from)};
}

std::optional<Dataset> load_prepared(const PreparedKey& key, std::string& reason) {
  reason.clear();
  std::error_code absent;
  if (!std::filesystem::is_regular_file(key.path, absent)) return {};
  try {
    const auto file = MappedFile::open(key.path, 0);  // ours: nobody writes into it
    const std::span<const std::byte> bytes = file->bytes();
    Front front{};
    reason = "damaged";
    if (bytes.size() < sizeof front) return {};
    std::memcpy(&front, bytes.data(), sizeof front);
    if (front.magic != magic) return {};
    if (front.version != version) {
      reason = "of another version";
      return {};
    }
    if (front.header_bytes > largest_header || front.header_bytes % 64 != 0 ||
        front.header_bytes > bytes.size() - sizeof front ||
        front.body_bytes != bytes.size() - sizeof front - front.header_bytes)
      return {};
    const auto header_bytes = bytes.subspan(sizeof front, front.header_bytes);
    if (checksum(header_bytes) != front.header_checksum) return {};
    std::string text(reinterpret_cast<const char*>(header_bytes.data()), header_bytes.size());
    const Value header = parse_json(strip(text), key.path);
    if (!(header["made_from"] == key.made_from)) {
      reason = "made from other content";
      return {};
    }
    Dataset dataset = from_header(header, file, sizeof front + front.header_bytes);
    reason.clear();
    return dataset;
  } catch (const Error&) {
    reason = "damaged";
    return {};
  }
}

void save_prepared(const PreparedKey& key, const Dataset& dataset) {
  const bool own_validation = dataset.validation.x.raw() != dataset.train.x.raw();
  const std::vector<const Tensor*> body = parts(dataset, own_validation);
  uint64_t body_bytes = 0;
  List checksums;
  for (const Tensor* tensor : body) {
    body_bytes += aligned(tensor->bytes());
    checksums.emplace_back(static_cast<int64_t>(checksum({tensor->raw(), tensor->bytes()})));
  }
  Dict header{{"made_from", key.made_from},
              {"checksums", std::move(checksums)},
              {"name", dataset.name},
              {"variant", dataset.variant},
              {"identity", dataset.identity},
              {"notice", dataset.notice},
              {"classification", dataset.classification},
              {"class_names", Value::of(dataset.class_names)},
              {"class_weights", float_list(dataset.class_weights)},
              {"preprocessing", preprocessing_to_value(dataset.preprocessing)},
              {"train", split_value(dataset.train)},
              {"validation", own_validation ? Value(split_value(dataset.validation)) : Value()},
              {"test", split_value(dataset.test)}};
  std::string text = to_json(Value(std::move(header)));
  text.resize(aligned(text.size()), ' ');
  const Front front{magic,      version, 0, text.size(), checksum(std::as_bytes(std::span(text))),
                    body_bytes, {}};
  write_file_atomically(key.path, [&](int fd) {
    write_all(fd, &front, sizeof front, key.path);
    write_all(fd, text.data(), text.size(), key.path);
    const std::array<std::byte, 64> zeros{};
    for (const Tensor* tensor : body) {
      write_all(fd, tensor->raw(), tensor->bytes(), key.path);
      write_all(fd, zeros.data(), aligned(tensor->bytes()) - tensor->bytes(), key.path);
    }
  });
}

Dataset load_or_prepare(const PreparedKey& key, const DatasetOptions& options,
                        const std::function<Dataset()>& make) {
  const auto say = [&](const std::string& line) {
    if (options.notify) options.notify(line);
  };
  const auto fits = [&](const Dataset& dataset) {
    return !options.apply || (options.apply->offset == dataset.preprocessing.offset &&
                              options.apply->scale == dataset.preprocessing.scale &&
                              options.apply->feature_names == dataset.preprocessing.feature_names);
  };
  if (!options.use_cache || key.path.empty()) return make();
  std::string reason;
  if (std::optional<Dataset> dataset = load_prepared(key, reason); dataset && fits(*dataset))
    return *dataset;
  if (!reason.empty()) say(fmt::format("{}: {}; preparing the data again", key.path, reason));
  Dataset dataset = make();
  if (options.apply) return dataset;  // scaled for one checkpoint only
  try {
    make_directories(std::filesystem::path(key.path).parent_path().string());
    save_prepared(key, dataset);
  } catch (const Error& error) {
    say(fmt::format("the prepared data are not kept: {}", error.what()));
  }
  return dataset;
}

}  // namespace mase
