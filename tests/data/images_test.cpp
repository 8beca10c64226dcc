// SPDX-License-Identifier: Apache-2.0
// Image files: MNIST's and CIFAR's binary forms, scaling, splits, and files that lie about
// themselves.
#include "mase/data/images.h"

#include <cmath>

#include "support/support.h"

namespace mase::images_test {
namespace {

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string idx(const std::vector<uint32_t>& shape, const std::string& bytes) {
  std::string text = {0, 0, 8, static_cast<char>(shape.size())};
  for (const uint32_t size : shape) text += big_endian(size);
  return text + bytes;
}

std::string pixels(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += static_cast<char>(i * 37 % 251);
  return text;
}

// A folder with twenty training and four test images of 3 x 2.
std::string mnist_folder() {
  const std::string folder = test::temporary_folder();
  std::string labels;
  for (int i = 0; i < 20; ++i) labels += static_cast<char>(i % 10);
  test::write(folder + "/train-images-idx3-ubyte", idx({20, 3, 2}, pixels(120)));
  test::write(folder + "/train-labels-idx1-ubyte", idx({20}, labels));
  test::write(folder + "/t10k-images-idx3-ubyte", idx({4, 3, 2}, pixels(24)));
  test::write(folder + "/t10k-labels-idx1-ubyte", idx({4}, labels.substr(0, 4)));
  return folder;
}

DatasetOptions options_for(const std::string& folder) {
  DatasetOptions options;
  options.data_dir = folder;
  return options;
}

TEST(Images, MnistIsSplitAndStandardised) {
  const Dataset dataset = load_dataset("mnist", options_for(mnist_folder()));
  EXPECT_EQ(dataset.sample_shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(dataset.outputs(), 10);
  EXPECT_EQ(dataset.train.rows(), 18);
  EXPECT_EQ(dataset.validation.rows(), 2);
  EXPECT_EQ(dataset.test.rows(), 4);
  double sum = 0, squares = 0;
  const Tensor samples = dataset.train.samples();
  for (const float value : samples.values<float>()) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 108, 0, 1e-5);
  EXPECT_NEAR(squares / 108, 1, 1e-4);
}

TEST(Images, PixelsAreWhatTheFileSays) {
  DatasetOptions options = options_for(mnist_folder());
  options.scaling = "none";
  options.validation_split = "train";
  const Dataset dataset = load_dataset("mnist", options);
  const std::string bytes = pixels(120);
  for (int64_t i = 0; i < 120; ++i)
    EXPECT_EQ(dataset.train.x.item(i), static_cast<uint8_t>(bytes[static_cast<size_t>(i)]));
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(dataset.train.labels.item(i), i % 10);
}

TEST(Images, PackedFilesAreRead) {
  const std::string folder = mnist_folder(), name = folder + "/train-images-idx3-ubyte";
  ASSERT_EQ(test::run({"gzip", "-k", name}).exit_code, 0);
  const ByteImages packed = read_idx_images(name + ".gz", folder + "/train-labels-idx1-ubyte");
  const ByteImages unpacked = read_idx_images(name, folder + "/train-labels-idx1-ubyte");
  EXPECT_EQ(packed.pixels, unpacked.pixels);
  const std::string cut = test::read(name + ".gz");
  test::write(name + ".gz", cut.substr(0, cut.size() - 9));
  EXPECT_THROW(read_idx_images(name + ".gz", folder + "/train-labels-idx1-ubyte"), Error);
}

TEST(Images, LyingFilesAreErrors) {
  const std::string folder = mnist_folder(), images = folder + "/train-images-idx3-ubyte",
                    labels = folder + "/train-labels-idx1-ubyte";
  for (const std::string& bad :
       {std::string(), std::string("\0\0\10", 3), idx({20, 3, 2}, pixels(119)),
        idx({20, 3, 2}, pixels(121)), idx({0xffffffff, 0xffffffff, 0xffffffff}, pixels(8)),
        idx({19, 3, 2}, pixels(114)), idx({20, 6}, pixels(120))}) {
    test::write(images, bad);
    EXPECT_THROW(read_idx_images(images, labels), Error);
  }
  const std::string whole = mnist_folder();
  test::write(whole + "/t10k-labels-idx1-ubyte", idx({4}, std::string("\1\2\3\12", 4)));
  EXPECT_THROW(load_dataset("mnist", options_for(whole)), Error);
  EXPECT_THROW(load_dataset("mnist", options_for(test::temporary_folder())), Error);
}

TEST(Images, CifarKeepsItsPlanes) {
  const std::string folder = test::temporary_folder();
  const std::string image = pixels(3072);
  test::write(folder + "/data_batch_1.bin",
              "\3" + image + "\7" + image + "\1" + image + "\2" + image);
  test::write(folder + "/test_batch.bin", "\11" + image);
  DatasetOptions options = options_for(folder);
  options.scaling = "min-max";
  options.validation_split = "0.25";
  const Dataset dataset = load_dataset("cifar10", options);
  EXPECT_EQ(dataset.sample_shape(), (Shape{3, 32, 32}));
  EXPECT_EQ(dataset.train.rows(), 3);
  EXPECT_FALSE(dataset.notice.empty());
  EXPECT_EQ(dataset.test.labels.item(0), 9);
  for (int64_t i = 0; i < 3072; i += 97)
    EXPECT_FLOAT_EQ(static_cast<float>(dataset.test.samples().item(i)),
                    static_cast<float>(static_cast<uint8_t>(image[static_cast<size_t>(i)])) / 255);
  test::write(folder + "/data_batch_1.bin", "\3" + image.substr(1));
  EXPECT_THROW(load_dataset("cifar10", options), Error);
}

}  // namespace
}  // namespace mase::images_test
