// SPDX-License-Identifier: Apache-2.0
#include "mase/report/server/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include "mase/base/error.h"

namespace mase {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

enum class ConnectionState { idle, reading, writing, lingering };

struct Connection {
  int socket = -1;
  ConnectionState state = ConnectionState::reading;
  Clock::time_point since, deadline;  // of the state
  std::string received, sending;
  size_t sent = 0, requests = 0;
  bool keep = false;
  bool unheard = false;  // bytes of a further request came with the one before

  explicit Connection(int descriptor) : socket(descriptor) {}
  ~Connection() { ::close(socket); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
};

bool is_loopback_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(four->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
  return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

class Session {
 public:
  Session(const HttpLimits& limits, const HttpHandler& handler, int listener, int stop_fd)
      : limits_(limits), handler_(handler), listener_(listener), stop_fd_(stop_fd) {}

  void run() {
    std::vector<pollfd> waits;
    for (;;) {
      waits = {{stop_fd_, POLLIN, 0}, {listener_, POLLIN, 0}};
      auto next = Clock::now() + std::chrono::hours(1);
      for (const auto& one : connections_) {
        const bool writing = one->state == ConnectionState::writing;
        waits.push_back({one->socket, static_cast<short>(writing ? POLLOUT : POLLIN), 0});
        next = one->unheard ? Clock::now() : std::min(next, one->deadline);
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count() + 1;
      if (::poll(waits.data(), waits.size(), static_cast<int>(std::max<int64_t>(0, left))) < 0 &&
          errno != EINTR)
        throw Error("", fmt::format("waiting for connections failed: {}", std::strerror(errno)));
      if (waits[0].revents) return;
      // Who has something to say is heard before deadlines are looked at: an answer that took long
      // to make must not count against the others.
      size_t index = 2;
      for (auto at = connections_.begin(); at != connections_.end(); ++index) {
        const bool goes_on = !(waits[index].revents || (*at)->unheard) || serve(**at);
        at = goes_on ? std::next(at) : connections_.erase(at);
      }
      expire();
      if (waits[1].revents) accept_all();
    }
  }

 private:
  void enter(Connection& one, ConnectionState state, double seconds) {
    one.state = state;
    one.since = Clock::now();
    one.deadline = one.since + seconds_of(seconds);
  }

  void accept_all() {
    // A bounded number, so that a flood of connections does not keep us from those we have.
    for (size_t i = 0; i < limits_.connections; ++i) {
      if (connections_.size() >= limits_.connections) make_room();
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) {
        if ((errno == EMFILE || errno == ENFILE) && !connections_.empty()) make_room();
        return;
      }
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_.push_back(std::make_unique<Connection>(socket));
      enter(*connections_.back(), ConnectionState::reading, limits_.head_seconds);
    }
  }

  // Refused ones go first, then who asks nothing, then who takes long to ask, then to listen.
  void make_room() {
    const auto rank = [](const Connection& one) {
      switch (one.state) {
        case ConnectionState::lingering:
          return 0;
        case ConnectionState::idle:
          return 1;
        case ConnectionState::reading:
          return 2;
        case ConnectionState::writing:
          return 3;
      }
      return 3;
    };
    const auto victim = std::min_element(
        connections_.begin(), connections_.end(), [&](const auto& a, const auto& b) {
          return std::make_pair(rank(*a), a->since) < std::make_pair(rank(*b), b->since);
        });
    connections_.erase(victim);
  }

  void expire() {
    const auto now = Clock::now();
    for (auto at = connections_.begin(); at != connections_.end();) {
      Connection& one = **at;
      const bool late = one.deadline <= now;
      if (late && one.state == ConnectionState::reading && !one.received.empty()) {
        refuse(one, {408, "text/plain; charset=utf-8", "The request took too long.\n"});
        ++at;
      } else {
        at = late ? connections_.erase(at) : std::next(at);
      }
    }
  }

  // False: the connection is over.
  bool serve(Connection& one) {
    if (one.state == ConnectionState::writing) return write_more(one);
    if (one.unheard) {
      one.unheard = false;
      return answer_next(one);
    }
    char buffer[16 << 10];
    const ssize_t count = ::recv(one.socket, buffer, sizeof buffer, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    if (one.state == ConnectionState::lingering) return true;
    if (one.state == ConnectionState::idle)
      enter(one, ConnectionState::reading, limits_.head_seconds);
    one.received.append(buffer, static_cast<size_t>(count));
    return answer_next(one);
  }

  bool answer_next(Connection& one) {
    ParsedHead head = parse_head(one.received, limits_);
    if (head.state == HeadState::incomplete) return true;
    if (head.state == HeadState::refused) return refuse(one, head.refusal);
    one.received.erase(0, head.bytes);
    ++one.requests;
    one.keep = head.request.keep_alive && one.requests < limits_.requests_of_connection;
    const HttpAnswer answer = handler_(head.request);
    one.keep = one.keep && answer.status < 400;
    return send(one, answer_text(head.request, answer, one.keep));
  }

  bool refuse(Connection& one, const HttpAnswer& refusal) {
    one.keep = false;
    one.received.clear();
    return send(one, answer_text({}, refusal, false));
  }

  bool send(Connection& one, std::string text) {
    one.sending = std::move(text);
    one.sent = 0;
    enter(one, ConnectionState::writing, limits_.answer_seconds);
    return write_more(one);
  }

  bool write_more(Connection& one) {
    while (one.sent < one.sending.size()) {
      const ssize_t count = ::send(one.socket, one.sending.data() + one.sent,
                                   one.sending.size() - one.sent, MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      one.sent += static_cast<size_t>(count);
    }
    one.sending = {};
    if (!one.keep) {
      // Closed at once with bytes unread, the client would get a reset instead of the answer.
      ::shutdown(one.socket, SHUT_WR);
      enter(one, ConnectionState::lingering, limits_.linger_seconds);
      return true;
    }
    // A further request waits for its turn: one client's queue does not hold up the others.
    one.unheard = !one.received.empty();
    if (one.unheard)
      enter(one, ConnectionState::reading, limits_.head_seconds);
    else
      enter(one, ConnectionState::idle, limits_.idle_seconds);
    return true;
  }

  const HttpLimits& limits_;
  const HttpHandler& handler_;
  int listener_, stop_fd_;
  std::list<std::unique_ptr<Connection>> connections_;
};

}  // namespace

HttpServer::HttpServer(const std::string& host, int port, HttpLimits limits) : limits_(limits) {
  const auto fail = [&](const std::string& cause) -> Error {
    return {fmt::format("{}:{}", host, port), "cannot listen there: " + cause,
            "choose another --port; 0 takes any free one"};
  };
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    throw fail(::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  int cause = 0;
  for (const addrinfo* one = found; one && listener_ < 0; one = one->ai_next) {
    const int socket =
        ::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol);
    if (socket < 0) {
      cause = errno;
      continue;
    }
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket, one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket, 128) == 0) {
      listener_ = socket;
    } else {
      cause = errno;
      ::close(socket);
    }
  }
  if (listener_ < 0) throw fail(std::strerror(cause));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size);
  loopback_ = is_loopback_address(reinterpret_cast<const sockaddr*>(&bound));
  port_ =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

HttpServer::~HttpServer() {
  if (listener_ >= 0) ::close(listener_);
}

void HttpServer::run(const HttpHandler& handler, int stop_fd) {
  Session(limits_, handler, listener_, stop_fd).run();
}

}  // namespace mase
