// SPDX-License-Identifier: Apache-2.0
#include "mase/report/server/http_message.h"

#include <gtest/gtest.h>

#include <random>

namespace mase::http_message_test {
namespace {

ParsedHead parsed(const std::string& text) { return parse_head(text, HttpLimits()); }

int refusal_of(const std::string& text) {
  const ParsedHead head = parsed(text);
  return head.state == HeadState::refused ? head.refusal.status : 0;
}

const std::string plain = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST(HttpMessage, ReadsARequestAndNoMore) {
  const ParsedHead head = parsed(
      "GET /run?run=a%20b&run=c+d&token HTTP/1.1\r\nhOsT:  localhost:1 \r\n"
      "Cookie: x=1; mase_token=2\r\nRange: bytes=0-1\r\n\r\nGET /next");
  ASSERT_EQ(head.state, HeadState::complete);
  EXPECT_EQ(head.request.path, "/run");
  EXPECT_EQ(head.request.query, (std::vector<std::pair<std::string, std::string>>{
                                    {"run", "a b"}, {"run", "c d"}, {"token", ""}}));
  EXPECT_EQ(head.request.host, "localhost:1");
  EXPECT_EQ(head.request.cookie, "x=1; mase_token=2");
  EXPECT_EQ(head.request.range, "bytes=0-1");
  EXPECT_TRUE(head.request.keep_alive);
  EXPECT_FALSE(
      parsed("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n").request.keep_alive);
  EXPECT_FALSE(parsed("GET / HTTP/1.0\r\n\r\n").request.keep_alive);
}

TEST(HttpMessage, EveryBeginningOfARequestWaits) {
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(parsed(plain.substr(0, i)).state, HeadState::incomplete) << i;
  EXPECT_EQ(parsed(plain).bytes, plain.size());
}

TEST(HttpMessage, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(refusal_of("\x16\x03\x01"), 400);  // TLS
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
  EXPECT_EQ(refusal_of("GET / HTTP/2\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n\r\n"), 400);
  for (const char* line : {"GET", "GET ", "GET /", "GET  HTTP/1.1", "GET a HTTP/1.1",
                           "G@T / HTTP/1.1", "GET http://evil/ HTTP/1.1", "GET /%zz HTTP/1.1",
                           "GET /%00 HTTP/1.1", "GET /?a=%4 HTTP/1.1", "GET /\x01 HTTP/1.1"})
    EXPECT_GE(refusal_of(line + std::string("\r\nHost: a\r\n\r\n")), 400) << line;
  for (const char* header :
       {"Host: b", "no colon", " folded: 1", "Bad Name: 1", ": 1", "A: \x01", "A: b\nHost: evil"})
    EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(header) + "\r\n\r\n"), 400)
        << header;
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"), 413);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
}

TEST(HttpMessage, LimitsHoldBeforeTheRequestIsWhole) {
  const std::string start = "GET /" + std::string(20000, 'a');
  EXPECT_EQ(refusal_of(start), 414);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(40000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n", query = "GET /?";
  for (int i = 0; i < 100; ++i) many += "X: 1\r\n";
  EXPECT_EQ(refusal_of(many + "\r\n"), 431);
  for (int i = 0; i < 1000; ++i) query += "&a=1";
  EXPECT_EQ(refusal_of(query + " HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

// However a request is damaged and cut into pieces, the answer is the one to the whole.
TEST(HttpMessage, DamagedRequestsAreReadOrRefusedNeverBoth) {
  const std::string seed =
      "GET /run?run=a%20b&token=1 HTTP/1.1\r\nHost: localhost:80\r\nRange: bytes=0-1\r\n"
      "Cookie: a=b\r\nConnection: keep-alive\r\n\r\n";
  std::mt19937 random(11);
  size_t complete = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed;
    for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.insert(at, 1, "\r\n :%?&/\0"[random() % 9]);
      }
    }
    const ParsedHead whole = parsed(text);
    complete += whole.state == HeadState::complete;
    HeadState state = HeadState::incomplete;
    size_t used = 0;
    for (size_t length = 0; length <= text.size() && state == HeadState::incomplete; ++length) {
      const ParsedHead part = parse_head(std::string_view(text).substr(0, length), HttpLimits());
      state = part.state;
      used = part.bytes;
    }
    EXPECT_EQ(state, whole.state) << text;
    EXPECT_EQ(used, whole.bytes) << text;
    if (whole.state == HeadState::refused) {
      EXPECT_GE(whole.refusal.status, 400) << text;
    }
    if (whole.state == HeadState::complete) {
      EXPECT_EQ(whole.request.path.front(), '/') << text;
      EXPECT_EQ(text.substr(whole.bytes - 4, 4), "\r\n\r\n");
    }
  }
  EXPECT_GT(complete, 1000u);  // the damage leaves something to read
}

struct Answered {
  int status = 0;
  std::string range, body;
};

Answered with_range(const std::string& range, const std::string& body = "0123456789",
                    const std::string& method = "GET") {
  HttpRequest request;
  request.method = method;
  request.range = range;
  const std::string text = answer_text(request, {200, "text/plain", body}, true);
  Answered result;
  result.status = std::stoi(text.substr(9, 3));
  const size_t end = text.find("\r\n\r\n"), at = text.find("Content-Range: ");
  if (at < end) result.range = text.substr(at + 15, text.find("\r\n", at) - at - 15);
  result.body = text.substr(end + 4);
  if (method == "GET" && text.find("Content-Length: " + std::to_string(result.body.size()) +
                                   "\r\n") == std::string::npos)
    result.status = -1;
  return result;
}

TEST(HttpMessage, OneRangeIsAnsweredExactlyAndSeveralWithTheWhole) {
  const auto expect = [](const std::string& range, int status, const std::string& stated,
                         const std::string& body) {
    const Answered answered = with_range(range);
    EXPECT_EQ(answered.status, status) << range;
    EXPECT_EQ(answered.range, stated) << range;
    if (status != 416) {
      EXPECT_EQ(answered.body, body) << range;
    }
  };
  expect("bytes=0-0", 206, "bytes 0-0/10", "0");
  expect("bytes=2-4", 206, "bytes 2-4/10", "234");
  expect("bytes=8-", 206, "bytes 8-9/10", "89");
  expect("bytes=8-99", 206, "bytes 8-9/10", "89");
  expect("bytes=-3", 206, "bytes 7-9/10", "789");
  expect("bytes=-99", 206, "bytes 0-9/10", "0123456789");
  expect("bytes=10-", 416, "bytes */10", "");
  expect("bytes=-0", 416, "bytes */10", "");
  std::string many = "bytes=0-1";
  for (int i = 0; i < 5000; ++i) many += ",0-1";
  for (const std::string& whole :
       {std::string(""), std::string("bytes=0-1,3-4"), std::string("bytes=4-2"), many,
        std::string("lines=0-1"), std::string("bytes="), std::string("bytes=-"),
        std::string("bytes=a-b"), std::string("bytes=+1-2"),
        std::string("bytes=0-99999999999999999999999")})
    expect(whole, 200, "", "0123456789");
  EXPECT_EQ(with_range("bytes=0-", "").status, 416);
  EXPECT_EQ(with_range("bytes=0-3", "0123456789", "HEAD").body, "");
}

}  // namespace
}  // namespace mase::http_message_test
