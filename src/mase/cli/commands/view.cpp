// SPDX-License-Identifier: Apache-2.0
// ch view: a small local web server over the runs below a folder. What it answers is decided by
// report/view, how by report/http_server; here are only the address and the end by Ctrl-C.
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "mase/cli/command.h"
#include "mase/report/server/http_server.h"
#include "mase/report/server/view.h"

namespace mase::view_command {
namespace {

int run(const Arguments& arguments) {
  ViewRules rules;
  rules.folder = arguments["folder"].is_string() ? arguments["folder"].as_string() : "mase_output";
  rules.generator = fmt::format("ch {}", program_version());
  std::error_code ignored;
  if (!std::filesystem::is_directory(rules.folder, ignored))
    throw Error(rules.folder, "is not a folder",
                "train something first, or name the folder that holds the runs");
  const std::string host = arguments["host"].as_string();
  HttpServer server(host, static_cast<int>(arguments["port"].as_int()));
  if (!server.loopback()) rules.token = random_token();
  rules.host = host;

  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const int end_fd = ::signalfd(-1, &ends, SFD_CLOEXEC);
  if (end_fd < 0) throw Error("", "the system gives no signal descriptor");

  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  fmt::print("Runs below {}: http://{}:{}/{}\n", printable(rules.folder), shown, server.port(),
             rules.token.empty() ? "" : "?token=" + rules.token);
  fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  RunView view(rules);
  server.run(
      [&](const HttpRequest& request) -> HttpAnswer {
        try {
          return view.answer(request);
        } catch (const std::exception& error) {
          return {500, "text/plain; charset=utf-8", std::string(error.what()) + "\n"};
        }
      },
      end_fd);
  ::close(end_fd);
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
    .examples = {"ch view", "ch view mase_output --port 0", "ch view --host 0.0.0.0"},
    .run = run,
}};

}  // namespace
}  // namespace mase::view_command
