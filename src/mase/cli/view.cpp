// SPDX-License-Identifier: Apache-2.0
// ch view: a small local web server over the runs below a folder. What it answers is decided by
// report/view; here are only the socket, the headers and the end by Ctrl-C.
#include <fmt/format.h>
#include <httplib.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "mase/cli/command.h"
#include "mase/report/view.h"

namespace mase::view_command {
namespace {

constexpr const char* cookie_name = "mase_token";

std::string cookie_token(const httplib::Request& request) {
  for (const std::string& part : split(request.get_header_value("Cookie"), ';')) {
    const std::string entry = strip(part), prefix = std::string(cookie_name) + "=";
    if (starts_with(entry, prefix)) return entry.substr(prefix.size());
  }
  return "";
}

ViewRequest request_of(const httplib::Request& request) {
  ViewRequest result;
  result.path = request.path;
  result.host = request.get_header_value("Host");
  for (size_t i = 0; i < request.get_param_value_count("run"); ++i)
    result.runs.push_back(request.get_param_value("run", i));
  result.token =
      request.has_param("token") ? request.get_param_value("token") : cookie_token(request);
  return result;
}

void answer(RunView& view, const httplib::Request& request, httplib::Response& response) {
  ViewAnswer result;
  try {
    result = view.answer(request_of(request));
  } catch (const std::exception& error) {
    result = {500, "text/plain; charset=utf-8", std::string(error.what()) + "\n"};
  }
  response.status = result.status;
  response.set_content(result.body, result.type.c_str());
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Referrer-Policy", "no-referrer");
  // The token then leaves the address bar's further links; it stays valid while ch view runs.
  if (result.status == 200 && request.has_param("token"))
    response.set_header("Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/",
                                                  cookie_name, request.get_param_value("token")));
}

int run(const Arguments& arguments) {
  ViewRules rules;
  rules.folder = arguments["folder"].is_string() ? arguments["folder"].as_string() : "mase_output";
  rules.generator = fmt::format("ch {}", program_version());
  std::error_code ignored;
  if (!std::filesystem::is_directory(rules.folder, ignored))
    throw Error(rules.folder, "is not a folder",
                "train something first, or name the folder that holds the runs");
  const std::string host = arguments["host"].as_string();
  const auto port = static_cast<int>(arguments["port"].as_int());
  if (!is_loopback(host)) rules.token = random_token();

  RunView view(rules);
  httplib::Server server;
  server.set_payload_max_length(1 << 10);
  server.set_read_timeout(5);
  server.set_keep_alive_max_count(1000);
  server.Get(".*", [&](const httplib::Request& request, httplib::Response& response) {
    answer(view, request, response);
  });
  server.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    if (request.method != "GET" && request.method != "HEAD") response.status = 405;
    response.set_content("This server only shows runs.\n", "text/plain; charset=utf-8");
  });
  const int bound = port == 0 ? server.bind_to_any_port(host.c_str())
                    : server.bind_to_port(host.c_str(), port) ? port
                                                              : -1;
  if (bound < 0)
    throw Error(fmt::format("{}:{}", host, port), "cannot listen there",
                "choose another --port; 0 takes any free one");

  // Ends are waited for in a thread of their own: stopping a server is no work for a handler.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  std::thread([&server, ends] {
    int received = 0;
    sigwait(&ends, &received);
    server.stop();
  }).detach();

  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  fmt::print("Runs below {}: http://{}:{}/{}\n", printable(rules.folder), shown, bound,
             rules.token.empty() ? "" : "?token=" + rules.token);
  fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  server.listen_after_bind();
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "view",
    .group = CommandGroup::look,
    .summary = "show the runs below a folder in a browser, live",
    .help = "Serves pages on this machine only, unless --host says otherwise: then the address "
            "carries a random token without which nothing is answered. Nothing is ever written.",
    .positionals = {{.name = "folder",
                     .help = "folder that holds the runs (default: mase_output)",
                     .required = false}},
    .options = {{{.name = "host",
                  .type = FieldType::text,
                  .default_value = "127.0.0.1",
                  .help = "address to listen on"},
                 {.name = "port",
                  .type = FieldType::integer,
                  .default_value = 8123,
                  .help = "port to listen on; 0 takes any free one",
                  .minimum = 0,
                  .maximum = 65535}}},
    .examples = {"ch view", "ch view mase_output --port 0"},
    .run = run,
}};

}  // namespace
}  // namespace mase::view_command
