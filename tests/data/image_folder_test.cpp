// SPDX-License-Identifier: Apache-2.0
// Folders of pictures, CIFAR's files for Python, and what training does to images.
#include <filesystem>
#include <set>

#include "mase/data/augmentation.h"
#include "mase/data/images.h"
#include "support/support.h"

namespace mase::image_folder_test {
namespace {

namespace fs = std::filesystem;

std::string pgm(const std::string& pixels) { return "P5\n# a comment\n3 2\n255\n" + pixels; }

DatasetOptions unscaled() {
  DatasetOptions options;
  options.scaling = "none";
  options.validation_split = "train";
  return options;
}

// Two classes; `test` too if wanted.
std::string folder_of(bool split) {
  const std::string root = test::temporary_folder();
  const std::vector<std::string> parts =
      split ? std::vector<std::string>{"train/", "test/"} : std::vector<std::string>{""};
  for (const std::string& part : parts)
    for (const char* name : {"cat", "dog"}) {
      fs::create_directories(root + "/" + part + name);
      for (int i = 0; i < 3; ++i)
        test::write(fmt::format("{}/{}{}/{}.pgm", root, part, name, i),
                    pgm(std::string(6, static_cast<char>(name[0] == 'c' ? 10 + i : 20 + i))));
    }
  return root;
}

TEST(ImageFolder, ClassesAreFolders) {
  const Dataset dataset = load_dataset(folder_of(true), unscaled());
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(dataset.sample_shape(), (Shape{1, 2, 3}));
  ASSERT_EQ(dataset.train.rows(), 6);
  ASSERT_EQ(dataset.test.rows(), 6);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(dataset.train.labels.item(i), i / 3);
    EXPECT_EQ(dataset.train.x.item(i * 6), i < 3 ? 10 + i : 17 + i);
  }
  const Dataset whole = load_dataset(folder_of(false), unscaled());
  EXPECT_EQ(whole.train.rows() + whole.test.rows(), 6);
  EXPECT_EQ(whole.test.rows(), 1);
}

TEST(ImageFolder, APathIsTheDataSetOfThatFolder) {
  const std::string root = folder_of(true);
  DatasetOptions by_path = unscaled(), by_name = unscaled();
  by_path.arguments = Dict{{"flip", true}, {"crop", 1}};
  by_name.arguments = Dict{{"flip", true}, {"crop", 1}, {"folder", root}};
  const Dataset path = load_dataset(root, by_path), name = load_dataset("images", by_name);
  EXPECT_TRUE(path.augmentation.flip);
  EXPECT_EQ(path.augmentation.crop, 1);
  EXPECT_EQ(path.augmentation.flip, name.augmentation.flip);
  EXPECT_EQ(path.augmentation.crop, name.augmentation.crop);
  EXPECT_EQ(path.name, name.name);
  EXPECT_EQ(path.identity, name.identity);
  by_path.arguments = Dict{{"flop", true}};
  EXPECT_THROW(load_dataset(root, by_path), Error);
  by_path.arguments = Dict{{"folder", root + "/elsewhere"}};
  EXPECT_THROW(load_dataset(root, by_path), Error);
}

TEST(ImageFolder, ColoursAndFormatsMix) {
  const std::string root = folder_of(true);
  fs::copy(test::golden_path("data/colour.png"), root + "/train/cat/x.png");
  fs::copy(test::golden_path("data/grey.png"), root + "/train/dog/x.png");
  const Dataset dataset = load_dataset(root, unscaled());
  ASSERT_EQ(dataset.sample_shape(), (Shape{3, 2, 3}));
  ASSERT_EQ(dataset.train.rows(), 8);
  const auto row = [&](int64_t r) {
    std::vector<int> values;
    for (int64_t i = 0; i < 18; ++i)
      values.push_back(static_cast<int>(dataset.train.x.item(r * 18 + i)));
    return values;
  };
  EXPECT_EQ(row(3),
            (std::vector<int>{1, 4, 7, 10, 40, 70, 2, 5, 8, 20, 50, 80, 3, 6, 9, 30, 60, 255}));
  EXPECT_EQ(row(7), (std::vector<int>{0, 10, 20, 30, 40, 255, 0, 10, 20, 30, 40, 255, 0, 10, 20, 30,
                                      40, 255}));
}

TEST(ImageFolder, DamageIsAnError) {
  const std::string good = test::read(test::golden_path("data/grey.png"));
  const std::vector<std::string> bad = {"",
                                        "P5\n3 2\n255\nabc",
                                        "P5\n3 2\n65535\nabcdefabcdef",
                                        "P5\n999999999 999999999\n255\n",
                                        "P5\n-3 2\n255\nabcdef",
                                        "P3\n3 2\n255\n0 0 0 0 0 0",
                                        "P6\n1 1\n255\nabc",  // another size
                                        good.substr(0, good.size() - 20),
                                        good.substr(0, 20)};
  for (const std::string& bytes : bad) {
    const std::string root = folder_of(true);
    test::write(root + "/train/dog/9.pgm", bytes);
    EXPECT_THROW(load_dataset(root, unscaled()), Error) << bytes.substr(0, 20);
  }
  for (size_t at = 0; at < good.size(); ++at) {  // any byte changed: an image or an error
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    const std::string root = folder_of(true);
    test::write(root + "/train/dog/9.png", changed);
    try {
      load_dataset(root, unscaled());
    } catch (const Error&) {
    }
  }
}

// As Python 2 pickled the published files: bytes are texts.
std::string cifar_pickle(const std::string& pixels, const std::vector<int>& labels) {
  using namespace std::string_literals;
  const auto number = [](size_t value) {
    return "M"s + static_cast<char>(value) + static_cast<char>(value >> 8);
  };
  std::string text = "\x80\x02}q\x01(U\x06labelsq\x04]q\x05("s;
  for (const int label : labels) text += "K"s + static_cast<char>(label);
  text += "eU\x04"s + "dataq\x06"s + "cnumpy.core.multiarray\n_reconstruct\nq\x07"s;
  text += "cnumpy\nndarray\nq\x08K\0\x85U\x01"s + "b\x87Rq\t(K\x01"s;
  text += number(labels.size()) + number(3072) + "\x86"s;
  text += "cnumpy\ndtype\nq\nU\x02u1K\0K\x01\x87Rq\x0b(K\x03U\x01|NNN"s;
  text += "J\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89T"s;
  for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(pixels.size() >> shift);
  return text + pixels + "tbu.";
}

TEST(CifarPickles, AreTheBinaryFiles) {
  std::string pixels;
  for (size_t i = 0; i < 2 * 3072; ++i) pixels += static_cast<char>(i * 37 % 251);
  const std::string folder = test::temporary_folder();
  test::write(folder + "/data_batch_1", cifar_pickle(pixels, {3, 7}));
  const ByteImages images = read_cifar_pickles({read_packed(folder + "/data_batch_1")}, "labels");
  EXPECT_EQ(images.labels, (std::vector<int32_t>{3, 7}));
  EXPECT_EQ(std::string(images.pixels.begin(), images.pixels.end()), pixels);
  EXPECT_THROW(read_cifar_pickles({read_packed(folder + "/data_batch_1")}, "fine_labels"), Error);
  test::write(folder + "/data_batch_1", cifar_pickle(pixels, {3, 7, 1}));
  EXPECT_THROW(read_cifar_pickles({read_packed(folder + "/data_batch_1")}, "labels"), Error);
  test::write(folder + "/data_batch_1", cifar_pickle(pixels, {3, 7}).substr(0, 3000));
  EXPECT_THROW(read_cifar_pickles({read_packed(folder + "/data_batch_1")}, "labels"), Error);
}

TEST(Augmentation, MovesAndTurns) {
  const Shape sample = {2, 4, 5};
  std::vector<uint8_t> in(40), out(40);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i + 1);
  const Augmentation augmentation{.flip = true, .crop = 1};
  std::set<std::vector<uint8_t>> seen;
  int turned = 0;
  for (uint64_t row = 0; row < 400; ++row) {
    augment_sample(augmentation, sample, 5, 3, row, in.data(), out.data());
    seen.insert(out);
    // Found again by trying all: one of the moves, turned or not.
    int matches = 0;
    for (int64_t down = -1; down <= 1; ++down)
      for (int64_t across = -1; across <= 1; ++across)
        for (const bool flip : {false, true}) {
          bool same = true;
          for (int64_t c = 0; c < 2; ++c)
            for (int64_t y = 0; y < 4; ++y)
              for (int64_t x = 0; x < 5; ++x) {
                const int64_t from_y = y + down, from_x = (flip ? 4 - x : x) + across;
                const bool inside = from_y >= 0 && from_y < 4 && from_x >= 0 && from_x < 5;
                const uint8_t wanted =
                    inside ? in[static_cast<size_t>((c * 4 + from_y) * 5 + from_x)] : 0;
                same = same && out[static_cast<size_t>((c * 4 + y) * 5 + x)] == wanted;
              }
          matches += same;
          turned += same && flip;
        }
    ASSERT_EQ(matches, 1) << row;
  }
  EXPECT_EQ(seen.size(), 18u);
  EXPECT_GT(turned, 140);
  EXPECT_LT(turned, 260);
  std::vector<uint8_t> again(40);
  augment_sample(augmentation, sample, 5, 3, 399, in.data(), again.data());
  EXPECT_EQ(again, out);
}

}  // namespace
}  // namespace mase::image_folder_test
