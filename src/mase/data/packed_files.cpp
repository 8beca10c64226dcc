// SPDX-License-Identifier: Apache-2.0
#include "mase/data/packed_files.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {

constexpr size_t most_bytes = size_t{1} << 31;

class PackedStream {
 public:
  explicit PackedStream(const std::string& path) : path_(path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
      throw Error(path, "is no plain file");
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) throw Error(path, "cannot be opened", "check that it exists and may be read");
  }

  // Fewer than `count` only at the end.
  size_t read(uint8_t* to, size_t count) {
    size_t done = 0;
    while (done < count) {
      const auto piece = static_cast<unsigned>(std::min<size_t>(count - done, size_t{1} << 20));
      const int got = gzread(file_.get(), to + done, piece);
      if (got < 0) throw Error(path_, "the packed data is damaged", "fetch it again");
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    total_ += done;
    if (total_ > most_bytes) throw Error(path_, "holds more than 2 GiB", "this is no such file");
    int code = Z_OK;
    if (done < count) gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) throw Error(path_, "the packed data ends early", "fetch it again");
    return done;
  }

 private:
  struct Closer {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Closer> file_;
  size_t total_ = 0;
};

// All that follows, up to `most`.
std::vector<uint8_t> read_bytes(PackedStream& stream, size_t most) {
  std::vector<uint8_t> bytes;
  constexpr size_t piece = size_t{1} << 20;
  while (bytes.size() < most) {
    const size_t wanted = std::min(piece, most - bytes.size()), before = bytes.size();
    bytes.resize(before + wanted);
    const size_t got = stream.read(bytes.data() + before, wanted);
    bytes.resize(before + got);
    if (got < wanted) break;
  }
  return bytes;
}

constexpr size_t block = 512;

std::string_view field(const uint8_t* header, size_t at, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(header) + at, size);
  return text.substr(0, text.find('\0'));
}

std::optional<size_t> octal(std::string_view text) {
  size_t value = 0;
  bool any = false;
  for (const char c : text) {
    if (c == ' ' && !any) continue;
    if (c == ' ') break;
    if (c < '0' || c > '7' || value > most_bytes) return {};
    value = value * 8 + static_cast<size_t>(c - '0');
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

}  // namespace

FileBytes read_packed(const std::string& path) {
  PackedStream stream(path);
  return {path, read_bytes(stream, most_bytes)};
}

std::vector<FileBytes> read_archive(const std::string& path,
                                    const std::vector<std::string>& names) {
  PackedStream stream(path);
  std::vector<FileBytes> found(names.size());
  size_t left = names.size();
  uint8_t header[block];
  while (left > 0 && stream.read(header, block) == block && header[0] != 0) {
    // The sum of the header's bytes, its own field counting as blanks.
    size_t sum = 8 * ' ';
    for (size_t i = 0; i < block; ++i)
      if (i < 148 || i >= 156) sum += header[i];
    const std::optional<size_t> size = octal(field(header, 124, 12));
    if (octal(field(header, 148, 8)) != sum || !size || *size > most_bytes)
      throw Error(path, "is no tar archive, or a damaged one", "fetch it again");
    const std::string name(field(header, 0, 100));
    const std::string own = name.substr(name.rfind('/') + 1);
    const bool plain = header[156] == '0' || header[156] == '\0';
    const auto wanted =
        static_cast<size_t>(std::find(names.begin(), names.end(), own) - names.begin());
    std::vector<uint8_t> bytes = read_bytes(stream, *size);
    if (bytes.size() != *size) throw Error(path, "ends early", "fetch it again");
    const size_t rest = (block - *size % block) % block;
    if (stream.read(header, rest) != rest) throw Error(path, "ends early", "fetch it again");
    if (!plain || wanted == names.size() || !found[wanted].place.empty()) continue;
    found[wanted] = {fmt::format("{}: {}", path, printable(name)), std::move(bytes)};
    --left;
  }
  // To the end, where gzip's checksum is.
  std::vector<uint8_t> ignored(size_t{1} << 20);
  while (stream.read(ignored.data(), ignored.size()) == ignored.size()) {
  }
  std::erase_if(found, [](const FileBytes& file) { return file.place.empty(); });
  return found;
}

}  // namespace mase
