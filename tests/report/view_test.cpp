// SPDX-License-Identifier: Apache-2.0
#include "mase/report/view.h"

#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/value.h"
#include "support/support.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

std::string folder_with_runs() {
  const std::string root = test::temporary_folder();
  for (const char* name : {"/a b", "/deep/c"}) {
    make_directories(root + name + std::string("/software"));
    test::write(root + name + std::string("/run.json"), "{\"kind\":\"train\"}");
  }
  test::write(root + "/secret.txt", "secret");
  return root;
}

ViewAnswer ask(RunView& view, const std::string& path, std::vector<std::string> runs = {},
               const std::string& host = "127.0.0.1:80", const std::string& token = "") {
  return view.answer({path, std::move(runs), host, token});
}

TEST(View, ServesTheListAndTheRuns) {
  RunView view({folder_with_runs()});
  EXPECT_EQ(ask(view, "/").status, 200);
  const Value list = parse_json(ask(view, "/api/list").body, "list");
  EXPECT_EQ(list["runs"].as_list().size(), 2u);
  EXPECT_EQ(list["runs"].as_list().at(0)["id"].as_string(), "a b");
  const Value page = parse_json(ask(view, "/api/run", {"a b"}).body, "run");
  EXPECT_EQ(page["live"]["url"].as_string(), "/api/run?run=a%20b");
  EXPECT_EQ(
      parse_json(ask(view, "/api/run", {"a b", "deep/c"}).body, "both")["runs"].as_list().size(),
      2u);
}

TEST(View, ServesNothingElse) {
  const std::string root = folder_with_runs();
  RunView view({root});
  for (const char* path :
       {"/secret.txt", "/../etc/passwd", "/a b/run.json", "/deep", "//", "/api/"})
    EXPECT_EQ(ask(view, path).status, 404) << path;
  for (const std::string& id : {std::string("../"), std::string("/etc"), root, std::string("deep"),
                                std::string(""), std::string("deep/../a b"), std::string(".")})
    EXPECT_EQ(ask(view, "/run", {id}).status, 404) << id;
  EXPECT_EQ(ask(view, "/run", std::vector<std::string>(1000, "a b")).status, 400);
}

TEST(View, AnswersOnlyThisMachineOrTheToken) {
  const std::string root = folder_with_runs();
  RunView local({root});
  EXPECT_EQ(ask(local, "/", {}, "evil.example").status, 403);
  EXPECT_EQ(ask(local, "/", {}, "").status, 403);
  EXPECT_EQ(ask(local, "/", {}, "localhost:8123").status, 200);
  RunView open({root, "ch", "s3cret"});
  EXPECT_EQ(ask(open, "/", {}, "host.example", "").status, 403);
  EXPECT_EQ(ask(open, "/", {}, "127.0.0.1", "s3creT").status, 403);
  EXPECT_EQ(ask(open, "/api/list", {}, "127.0.0.1", "s3cre").status, 403);
  EXPECT_EQ(ask(open, "/", {}, "host.example", "s3cret").status, 200);
  EXPECT_EQ(random_token().size(), 32u);
  EXPECT_NE(random_token(), random_token());
}

TEST(View, Loopback) {
  for (const char* host :
       {"127.0.0.1", "127.8.8.8:80", "localhost", "LOCALHOST:1", "::1", "[::1]:80"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "0.0.0.0", "::", "127.0.0.1.evil.example", "127.evil.example",
                           "localhost.evil", "127.0.0.999", "[::2]", "["})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(View, FollowsChangesAndSurvivesDeletion) {
  const std::string root = folder_with_runs();
  RunView view({root});
  const std::string before = ask(view, "/api/run", {"a b"}).body;
  EXPECT_EQ(ask(view, "/api/run", {"a b"}).body, before);
  test::write(root + "/a b/software/metrics.csv", "epoch,step,train_loss_step\n0,1,0.5\n");
  const std::string after = ask(view, "/api/run", {"a b"}).body;
  EXPECT_NE(parse_json(before, "")["digest"], parse_json(after, "")["digest"]);
  test::write(root + "/a b/run.json", "{broken");
  const ViewAnswer broken = ask(view, "/api/run", {"a b"});
  EXPECT_EQ(broken.status, 200);
  EXPECT_NE(broken.body.find("not valid JSON"), std::string::npos);
  fs::remove_all(root + "/a b");
  EXPECT_EQ(ask(view, "/api/run", {"a b"}).status, 404);
  EXPECT_EQ(ask(view, "/api/list").status, 200);
  fs::remove_all(root);
  EXPECT_EQ(ask(view, "/api/list").status, 200);
}

}  // namespace
}  // namespace mase
