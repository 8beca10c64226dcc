// SPDX-License-Identifier: Apache-2.0
// Downloads from a server on loopback that cuts connections, ignores ranges or sends rubbish.
#include "mase/data/download.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/base/value.h"
#include "mase/data/digest.h"
#include "support/support.h"

namespace mase::download_test {
namespace {

struct Behaviour {
  std::string content;
  size_t cut_after = 0;  // bytes of body per connection; 0: all
  bool ranges = true;
  int status = 0;    // answer this instead
  size_t shift = 0;  // sends a part that begins so much later than asked for
};

class Server {
 public:
  explicit Server(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    MASE_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
    ::listen(listener_, 16);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    ::close(listener_);
    thread_.join();
  }
  std::string address() const { return fmt::format("http://127.0.0.1:{}/jets", port_); }
  int connections() const { return connections_; }
  void set_cut(size_t bytes) { behaviour_.cut_after = bytes; }

 private:
  void serve() {
    while (!stopping_) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      ++connections_;
      answer(client);
      ::close(client);
    }
  }

  void answer(int client) {
    std::string request;
    char chunk[2048];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(client, chunk, sizeof chunk, 0);
      if (got <= 0) return;
      request.append(chunk, static_cast<size_t>(got));
    }
    const std::string& content = behaviour_.content;
    size_t from = 0;
    const size_t range = request.find("Range: bytes=");
    if (range != std::string::npos && behaviour_.ranges)
      from = static_cast<size_t>(std::strtoull(request.c_str() + range + 13, nullptr, 10)) +
             behaviour_.shift;
    std::string head;
    if (behaviour_.status != 0) {
      head = fmt::format("HTTP/1.1 {} Nope\r\nContent-Length: 0\r\n\r\n", behaviour_.status);
    } else if (from >= content.size()) {
      head = fmt::format(
          "HTTP/1.1 416 Range\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n",
          content.size());
    } else {
      head = from > 0 ? fmt::format("HTTP/1.1 206 Partial\r\nContent-Range: bytes {}-{}/{}\r\n",
                                    from, content.size() - 1, content.size())
                      : std::string("HTTP/1.1 200 OK\r\n");
      head += fmt::format("ETag: \"one\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                          content.size() - from);
    }
    send_all(client, head);
    if (behaviour_.status != 0 || from >= content.size()) return;
    size_t count = content.size() - from;
    if (behaviour_.cut_after > 0) count = std::min<size_t>(count, behaviour_.cut_after);
    send_all(client, content.substr(from, count));
  }

  static void send_all(int client, const std::string& text) {
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t count = ::send(client, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  Behaviour behaviour_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

std::string some_content() {
  std::string content;
  for (int i = 0; i < 100000; ++i) content += fmt::format("{} ", i);
  return content;
}

std::string digest_of(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

TEST(Download, FetchesAndRecords) {
  const std::string content = some_content(), path = test::temporary_folder() + "/a/jets";
  Server server({content});
  int64_t last = 0;
  const DownloadResult result = download({.address = server.address(),
                                          .path = path,
                                          .sha256 = digest_of(content),
                                          .progress = [&](int64_t done, int64_t total) {
                                            EXPECT_GE(done, last);
                                            EXPECT_EQ(total, static_cast<int64_t>(content.size()));
                                            last = done;
                                          }});
  EXPECT_EQ(test::read(path), content);
  EXPECT_EQ(last, static_cast<int64_t>(content.size()));
  const Value record = read_json(path + ".json");
  EXPECT_EQ(record["sha256"].as_string(), digest_of(content));
  EXPECT_EQ(record["bytes"].as_int(), static_cast<int64_t>(content.size()));
  EXPECT_EQ(result.connections, 1);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(Download, ContinuesAfterEveryCut) {
  const std::string content = some_content(), path = test::temporary_folder() + "/jets";
  Server server({content, 100000});
  const DownloadResult result = download({.address = server.address(), .path = path});
  EXPECT_EQ(test::read(path), content);
  EXPECT_EQ(result.connections, static_cast<int>((content.size() + 99999) / 100000));
}

TEST(Download, TheNextRunContinuesWhatALostConnectionLeft) {
  const std::string content = some_content(), path = test::temporary_folder() + "/jets";
  test::write(path + ".part", content.substr(0, 123456));
  Server server({content});
  const DownloadResult result = download({.address = server.address(), .path = path});
  EXPECT_EQ(result.resumed_at, 123456);
  EXPECT_EQ(test::read(path), content);
  EXPECT_EQ(result.sha256, digest_of(content));
}

TEST(Download, TakesACompletePartAndStartsOverWithoutRanges) {
  const std::string content = some_content(), path = test::temporary_folder() + "/jets";
  test::write(path + ".part", content);
  Server server({content});
  EXPECT_EQ(download({.address = server.address(), .path = path}).bytes,
            static_cast<int64_t>(content.size()));
  EXPECT_EQ(test::read(path), content);
  const std::string other = test::temporary_folder() + "/jets";
  test::write(other + ".part", "rubbish from another day");
  Server plain({.content = content, .ranges = false});
  EXPECT_EQ(download({.address = plain.address(), .path = other}).resumed_at, 0);
  EXPECT_EQ(test::read(other), content);
}

TEST(Download, KeepsAWrongFileAside) {
  const std::string content = some_content(), path = test::temporary_folder() + "/jets";
  Server server({content});
  try {
    download({.address = server.address(), .path = path, .sha256 = digest_of("other")});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("kept as " + path + ".bad and not used"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(test::read(path + ".bad"), content);
}

TEST(Download, GivesUpWithWhatItHas) {
  const std::string path = test::temporary_folder() + "/jets";
  Server missing({.content = "x", .status = 404});
  EXPECT_THROW(download({.address = missing.address(), .path = path}), Error);
  try {
    download({.address = "http://127.0.0.1:9/none", .path = path, .attempts = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be downloaded"), std::string::npos);
  }
  EXPECT_THROW(download({.address = "file:///etc/hostname", .path = path, .attempts = 1}), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));  // nothing came: nothing is kept
}

TEST(Download, RefusesAWebPage) {
  const std::string path = test::temporary_folder() + "/jets";
  for (const char* page : {"<!DOCTYPE html>\n<html>log in</html>", "\xEF\xBB\xBF  \n<HTML><head>",
                           "<head><title>moved</title>"}) {
    Server server({.content = page});
    try {
      download({.address = server.address(), .path = path});
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("a web page instead of the file"),
                std::string::npos);
    }
    EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
  }
  Server server({.content = "<table of numbers, 1, 2>"});
  EXPECT_EQ(download({.address = server.address(), .path = path}).bytes, 24);
}

TEST(Download, RefusesAnotherPartThanAskedFor) {
  const std::string content = some_content(), path = test::temporary_folder() + "/jets";
  test::write(path + ".part", content.substr(0, 1000));
  Server server({.content = content, .shift = 7});
  try {
    download({.address = server.address(), .path = path});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another part of the file than was asked for"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(test::read(path + ".part"), content.substr(0, 1000));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Download, OneAtATime) {
  const std::string content = some_content(), path = test::temporary_folder() + "/jets";
  Server server({content});
  const int other = ::open((path + ".part").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  try {
    download({.address = server.address(), .path = path});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another process is downloading this file"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(server.connections(), 0);
  ::close(other);
  download({.address = server.address(), .path = path});
  EXPECT_EQ(test::read(path), content);
}

TEST(Download, IsWhatChDataFetchDoes) {
  const std::string content = some_content(), folder = test::temporary_folder();
  Server server({content});
  const test::RunResult wrong = test::ch({"data", "fetch", "jsc", "--data-dir", folder, "--address",
                                          server.address(), "--sha256", std::string(64, '0')});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("not used"), std::string::npos) << wrong.err;
  const test::RunResult good =
      test::ch({"data", "fetch", "jsc", "--data-dir", folder, "--address", server.address()});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_NE(good.out.find(digest_of(content)), std::string::npos) << good.out;
  EXPECT_EQ(test::read(folder + "/hls4ml_lhc_jets_hlf.arff"), content);
}

}  // namespace
}  // namespace mase::download_test
