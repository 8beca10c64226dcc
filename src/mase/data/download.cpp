// SPDX-License-Identifier: Apache-2.0
#include "mase/data/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>

#include "mase/base/file.h"
#include "mase/base/late_library.h"
#include "mase/base/text.h"
#include "mase/base/value.h"
#include "mase/data/digest.h"

namespace mase {
namespace {

constexpr int64_t largest_file = int64_t{64} << 30;
constexpr long wrong_part = -1;  // as a status: the server sends another part than it was asked for

// One connection's state, seen by curl's callbacks.
struct Transfer {
  int fd = -1;
  std::string path;
  int64_t offset = 0;  // where the next byte goes
  int64_t total = 0;
  long status = 0;
  std::string tag;  // the server's ETag: which version of the file this is
  const DownloadRequest* request = nullptr;
  std::exception_ptr failure;
  bool restarted = false;
};

size_t on_header(char* data, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string line = strip(std::string_view(data, std::min<size_t>(count, 8192)));
  const std::string lowered = lower_case(line);
  if (starts_with(lowered, "http/")) {
    const auto parts = split(line, ' ');
    const auto status = parts.size() > 1 ? parse_integer(parts[1]) : std::nullopt;
    transfer.status = status ? static_cast<long>(*status) : 0;
    transfer.tag.clear();
    // The server sends all of it although a rest was asked for: begin anew.
    if (transfer.status == 200 && transfer.offset > 0) {
      if (::ftruncate(transfer.fd, 0) != 0) return 0;
      transfer.offset = 0;
      transfer.restarted = true;
    }
  } else if (starts_with(lowered, "etag:")) {
    transfer.tag = strip(std::string_view(line).substr(5));
  } else if (starts_with(lowered, "content-range:")) {  // bytes 100-199/1000, bytes */1000
    const size_t slash = line.rfind('/'), unit = lowered.find("bytes"), dash = line.find('-', 14);
    const auto total = parse_integer(strip(std::string_view(line).substr(slash + 1)));
    if (slash != std::string::npos && total) transfer.total = *total;
    if (transfer.status != 206) return count;
    std::optional<int64_t> first;
    if (unit != std::string::npos && dash != std::string::npos && dash > unit + 5)
      first = parse_integer(strip(std::string_view(line).substr(unit + 5, dash - unit - 5)));
    if (first != transfer.offset) transfer.status = wrong_part;
  } else if (starts_with(lowered, "content-length:") && transfer.status == 200) {
    if (const auto total = parse_integer(strip(std::string_view(line).substr(15))))
      transfer.total = *total;
  }
  return count;
}

// A page to log in or to say that a file has moved comes with status 200 all the same.
bool looks_like_page(std::string_view text) {
  if (starts_with(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  const std::string head = lower_case(text.substr(begin, 20));
  return starts_with(head, "<!doctype html") || starts_with(head, "<html") ||
         starts_with(head, "<head");
}

size_t on_body(char* data, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.status != 200 && transfer.status != 206) return count;  // an error page
  try {
    if (transfer.offset + static_cast<int64_t>(count) > largest_file)
      throw Error(transfer.request->address, "sends more than 64 GB");
    if (transfer.offset == 0 && looks_like_page({data, count}))
      throw Error(transfer.request->address, "sends a web page instead of the file",
                  "download the file by hand into the data folder, or give --address");
    if (::lseek(transfer.fd, transfer.offset, SEEK_SET) < 0)
      throw Error(transfer.path, std::strerror(errno));
    write_all(transfer.fd, data, count, transfer.path);
    transfer.offset += static_cast<int64_t>(count);
    if (transfer.request->progress) transfer.request->progress(transfer.offset, transfer.total);
    return count;
  } catch (...) {
    transfer.failure = std::current_exception();
    return 0;  // makes curl stop
  }
}

// What is used of libcurl.
struct CurlFunctions {
  LateLibrary library{"libcurl.so.4", "libcurl4"};
  template <typename Pointer>
  Pointer get(const char* name) const {
    return library.function<Pointer>(name);
  }
  decltype(&curl_global_init) global_init = get<decltype(&curl_global_init)>("curl_global_init");
  decltype(&curl_easy_init) init = get<decltype(&curl_easy_init)>("curl_easy_init");
  decltype(&curl_easy_setopt) setopt = get<decltype(&curl_easy_setopt)>("curl_easy_setopt");
  decltype(&curl_easy_perform) perform = get<decltype(&curl_easy_perform)>("curl_easy_perform");
  decltype(&curl_easy_strerror) strerror = get<decltype(&curl_easy_strerror)>("curl_easy_strerror");
  decltype(&curl_easy_cleanup) cleanup = get<decltype(&curl_easy_cleanup)>("curl_easy_cleanup");
  decltype(&curl_slist_append) append = get<decltype(&curl_slist_append)>("curl_slist_append");
  decltype(&curl_slist_free_all) free_all =
      get<decltype(&curl_slist_free_all)>("curl_slist_free_all");
  CURLcode ready = global_init(CURL_GLOBAL_DEFAULT);
};
const CurlFunctions& libcurl() {
  static const CurlFunctions loaded;
  return loaded;
}

struct Curl {
  Curl() {
    handle = libcurl().ready == CURLE_OK ? libcurl().init() : nullptr;
    if (!handle) throw Error("", "libcurl cannot be started");
  }
  ~Curl() {
    libcurl().free_all(headers);
    libcurl().cleanup(handle);
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
};

CURLcode connect_once(Transfer& transfer, const std::string& expected_tag, std::string& reason) {
  Curl curl;
  char text[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) {
    libcurl().setopt(curl.handle, option, value);
  };
  set(CURLOPT_URL, transfer.request->address.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_CONNECTTIMEOUT, 30L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, 60L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "mase");
  set(CURLOPT_ERRORBUFFER, text);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &transfer);
  const std::string range = fmt::format("{}-", transfer.offset);
  if (transfer.offset > 0) {
    set(CURLOPT_RANGE, range.c_str());
    if (!expected_tag.empty()) {
      curl.headers = libcurl().append(nullptr, ("If-Range: " + expected_tag).c_str());
      set(CURLOPT_HTTPHEADER, curl.headers);
    }
  }
  const CURLcode code = libcurl().perform(curl.handle);
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  if (code != CURLE_OK) reason = *text ? text : libcurl().strerror(code);
  return code;
}

// The unfinished file, for this process alone: two writers would mix their bytes. Removed when
// nothing came.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path), file_(open(path)) {}
  ~PartFile() {
    struct stat opened {
    }, named{};
    if (::fstat(fd(), &opened) == 0 && opened.st_size == 0 && ::stat(path_.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino)
      ::unlink(path_.c_str());
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  int fd() const { return file_.get(); }

 private:
  static int open(const std::string& part);

  std::string path_;
  Descriptor file_;
};

int PartFile::open(const std::string& part) {
  const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0)
    throw Error(part, fmt::format("cannot create the file: {}", std::strerror(errno)),
                "choose another folder with --data-dir");
  struct stat opened {
  }, named{};
  // Whoever held the lock before may have finished and renamed the file.
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &opened) == 0 &&
      ::stat(part.c_str(), &named) == 0 && opened.st_ino == named.st_ino)
    return fd;
  ::close(fd);
  throw Error(part, "another process is downloading this file", "wait for it to finish");
}

std::string read_tag(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  const std::string text = read_text_file(path);
  return text.size() > 512 || text.find_first_of("\r\n") != std::string::npos ? "" : text;
}

void record(const DownloadRequest& request, const DownloadResult& result) {
  const Dict facts{{"address", request.address},
                   {"bytes", result.bytes},
                   {"sha256", result.sha256},
                   {"checked", !request.sha256.empty()}};
  write_file_atomically(request.path + ".json", to_json(Value(facts), 2) + "\n");
}

}  // namespace

DownloadResult download(const DownloadRequest& request) {
  make_directories(std::filesystem::path(request.path).parent_path().string());
  const std::string part = request.path + ".part", tag_file = part + ".etag";
  DownloadResult result;
  Transfer transfer;
  transfer.request = &request;
  transfer.path = part;
  const PartFile part_file(part);
  transfer.fd = part_file.fd();
  transfer.offset = std::max<int64_t>(0, ::lseek(transfer.fd, 0, SEEK_END));
  result.resumed_at = transfer.offset;
  std::string reason;
  for (int fruitless = 0;;) {
    const int64_t before = transfer.offset;
    transfer.status = 0;
    const CURLcode code = connect_once(transfer, read_tag(tag_file), reason);
    ++result.connections;
    if (transfer.restarted) result.resumed_at = 0;
    if (transfer.status == 416 && transfer.total == transfer.offset) break;  // had it all
    if (transfer.status == 416) {  // the part belongs to another file
      if (::ftruncate(transfer.fd, 0) != 0) throw Error(part, std::strerror(errno));
      transfer.offset = result.resumed_at = 0;
      if (++fruitless >= request.attempts) throw Error(request.address, "cannot be continued");
      continue;
    }
    if (transfer.status == wrong_part)
      throw Error(request.address, "the server sends another part of the file than was asked for",
                  fmt::format("remove {} to begin anew", part));
    if (transfer.status >= 400)
      throw Error(request.address, fmt::format("the server answers {}", transfer.status),
                  "download the file by hand into the data folder, or give --address");
    if (!transfer.tag.empty()) write_file_atomically(tag_file, transfer.tag);
    if (code == CURLE_OK && (transfer.total == 0 || transfer.offset >= transfer.total)) break;
    fruitless = transfer.offset > before ? 0 : fruitless + 1;
    if (fruitless >= request.attempts)
      throw Error(request.address,
                  fmt::format("cannot be downloaded: {}",
                              reason.empty() ? "the connection ends too early" : reason),
                  transfer.offset > 0
                      ? fmt::format("{} are kept; run the command again to continue",
                                    human_bytes(static_cast<double>(transfer.offset)))
                      : "check the network");
  }
  if (::fsync(transfer.fd) != 0) throw Error(part, std::strerror(errno));
  result.bytes = transfer.offset;
  result.sha256 = sha256_of_file(part);
  std::error_code ignored;
  std::filesystem::remove(tag_file, ignored);
  if (!request.sha256.empty() && lower_case(request.sha256) != result.sha256) {
    std::filesystem::rename(part, request.path + ".bad", ignored);
    throw Error(request.address,
                fmt::format("the download has checksum {}, not {}", result.sha256, request.sha256),
                fmt::format("it is kept as {}.bad and not used", request.path));
  }
  if (::rename(part.c_str(), request.path.c_str()) != 0)
    throw Error(request.path, fmt::format("cannot be written: {}", std::strerror(errno)));
  record(request, result);
  return result;
}

}  // namespace mase
