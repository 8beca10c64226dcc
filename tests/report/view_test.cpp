// SPDX-License-Identifier: Apache-2.0
#include "mase/report/server/view.h"

#include <filesystem>
#include <fstream>

#include "mase/base/file.h"
#include "mase/base/value.h"
#include "support/counted_memory.h"
#include "support/support.h"

namespace mase::view_test {
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

HttpAnswer ask(RunView& view, const std::string& path, const std::vector<std::string>& runs = {},
               const std::string& host = "127.0.0.1:80", const std::string& token = "") {
  HttpRequest request;
  request.path = path;
  request.host = host;
  for (const std::string& run : runs) request.query.emplace_back("run", run);
  if (!token.empty()) request.cookie = "a=b; mase_token=" + token;
  return view.answer(request);
}

TEST(View, ServesTheListAndTheRuns) {
  RunView view({folder_with_runs()});
  EXPECT_EQ(ask(view, "/").status, 200);
  const std::string list = ask(view, "/").body;
  for (const char* link : {"href=\"run?run=a%20b\"", "href=\"run?run=deep%2Fc\""})
    EXPECT_NE(list.find(link), std::string::npos) << link;
  EXPECT_NE(ask(view, "/run", {"a b"}).body.find("<h1>a b</h1>"), std::string::npos);
  const std::string both = ask(view, "/run", {"a b", "deep/c"}).body;
  EXPECT_NE(both.find("2 runs compared"), std::string::npos);
  EXPECT_NE(both.find("data-live=\"2\""), std::string::npos);
}

// A list keeps what it shows, not whole records.
TEST(View, ManyRunsTakeLittleMemory) {
  const std::string root = test::temporary_folder();
  std::string cells = "[0";
  for (int i = 1; i < 40000; ++i) cells += ",1";
  for (int i = 0; i < 60; ++i) {
    const std::string folder = fmt::format("{}/run{}", root, i);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/run.json")
        << R"({"kind":"train","best":{"val_acc_epoch":0.5},"evaluation":{"split":"test","confusion":)"
        << cells << "]}}";
  }
  RunView view({root});
  const size_t before = test::live_bytes;
  EXPECT_NE(ask(view, "/").body.find("60 runs under"), std::string::npos);
  EXPECT_LT(test::live_bytes - before, 5'000'000u);  // not 60 times 40,000 values
}

TEST(View, ServesNothingElse) {
  const std::string root = folder_with_runs();
  RunView view({root});
  for (const char* path : {"/secret.txt", "/../etc/passwd", "/a b/run.json", "/deep", "//", "/api/",
                           "/api/list", "/api/run"})
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
  EXPECT_EQ(ask(open, "/", {}, "127.0.0.1", "s3cre").status, 403);
  EXPECT_EQ(ask(open, "/", {}, "host.example", "s3cret").status, 200);
  EXPECT_EQ(random_token().size(), 32u);
  EXPECT_NE(random_token(), random_token());
}

TEST(View, OnlyExactHostsPass) {
  for (const char* host :
       {"127.0.0.1", "localhost", "LOCALHOST:1", "[::1]", "[::1]:80", "127.0.0.1:65535"})
    EXPECT_TRUE(names_this_machine(host)) << host;
  for (const char* host : {"",
                           ":",
                           ":80",
                           "0.0.0.0",
                           "::",
                           "::1",
                           "127.0.0.1.evil.example",
                           "127.evil.example",
                           "localhost.evil",
                           "127.0.0.999",
                           "127.8.8.8",
                           "[::2]",
                           "[",
                           "[::1",
                           "[::1]evil.example",
                           "[::1]:80.evil",
                           "localhost:",
                           "localhost:80a",
                           "localhost:evil.example",
                           "localhost:99999",
                           "localhost:-1",
                           "localhost:+1",
                           "127.0.0.1:80:80",
                           "127.1",
                           "0127.0.0.1",
                           "localhost.",
                           "a@localhost",
                           "localhost\t",
                           "127.0.0.1/"})
    EXPECT_FALSE(names_this_machine(host)) << host;
  EXPECT_TRUE(names_this_machine("127.8.8.8:80", "127.8.8.8"));
  EXPECT_TRUE(names_this_machine("[::2]:80", "::2"));
}

TEST(View, FollowsNoLinks) {
  const std::string root = folder_with_runs(), outside = test::temporary_folder();
  test::write(outside + "/run.json", "{\"kind\":\"outside-secret\"}");
  test::write(outside + "/metrics.csv", "epoch,step,outside_secret\n0,1,0.5\n");
  for (const char* name : {"/linked", "/behind"}) make_directories(root + name);
  fs::create_symlink(outside + "/run.json", root + "/linked/run.json");
  test::write(root + "/behind/run.json", "{}");
  fs::create_directory_symlink(outside, root + "/behind/software");
  RunView view({root});
  for (const HttpAnswer& answer :
       {ask(view, "/"), ask(view, "/run", {"linked"}), ask(view, "/run", {"behind"}),
        ask(view, "/run", {"behind", "linked"})}) {
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body.find("outside-secret"), std::string::npos);
    EXPECT_EQ(answer.body.find("outside_secret"), std::string::npos);
    EXPECT_NE(answer.body.find("is a symbolic link or lies behind one"), std::string::npos);
  }
}

TEST(View, FollowsChangesAndSurvivesDeletion) {
  const std::string root = folder_with_runs();
  RunView view({root});
  const std::string before = ask(view, "/run", {"a b"}).body;
  EXPECT_EQ(ask(view, "/run", {"a b"}).body, before);
  test::write(root + "/a b/software/metrics.csv", "epoch,step,train_loss_step\n0,1,0.5\n");
  const std::string after = ask(view, "/run", {"a b"}).body;
  EXPECT_NE(before, after);
  test::write(root + "/a b/run.json", "{broken");
  const HttpAnswer broken = ask(view, "/run", {"a b"});
  EXPECT_EQ(broken.status, 200);
  EXPECT_NE(broken.body.find("not valid JSON"), std::string::npos);
  fs::remove_all(root + "/a b");
  EXPECT_EQ(ask(view, "/run", {"a b"}).status, 404);
  EXPECT_EQ(ask(view, "/").status, 200);
  fs::remove_all(root);
  EXPECT_EQ(ask(view, "/").status, 200);
}

}  // namespace
}  // namespace mase::view_test
