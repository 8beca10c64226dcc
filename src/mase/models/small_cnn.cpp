// SPDX-License-Identifier: Apache-2.0
// Small convolutional networks: lenet (LeCun et al., 1998, with ReLU), vgg7 (MASE's network for
// CIFAR), cnv and lfc (FINN's, Umuroglu et al., 2017, without their quantisers), toy_convnet.
#include "mase/models/network_builder.h"

namespace mase::small_cnn_model {
namespace {

NodeId pool(NetworkBuilder& net, NodeId x) { return net.function("max_pool2d", {x}, {2}); }

Graph build_lenet(const ModelInputs& inputs) {
  NetworkBuilder net("lenet", inputs, {1, 28, 28}, 10);
  // 28 x 28 images are padded to the paper's 32 x 32.
  const int64_t padding = net.shape(net.input())[2] < 32 ? 2 : 0;
  NodeId x = net.function("relu", {net.conv("conv1", net.input(), 6, 5, 1, padding)});
  x = pool(net, x);
  x = pool(net, net.function("relu", {net.conv("conv2", x, 16, 5)}));
  x = net.function("flatten", {x}, {1});
  x = net.function("relu", {net.linear("fc1", x, 120)});
  x = net.function("relu", {net.linear("fc2", x, 84)});
  return net.finish(net.linear("fc3", x, net.outputs()));
}

Graph build_vgg7(const ModelInputs& inputs) {
  NetworkBuilder net("vgg7", inputs, {3, 32, 32}, 10);
  NodeId x = net.input();
  int index = 0;
  const auto layer = [&] { return fmt::format("feature_layers.{}", index++); };
  for (const int64_t channels : {128, 256, 512})
    for (int i = 0; i < 2; ++i) {
      x = net.conv(layer(), x, channels, 3, 1, 1);
      x = net.batch_norm(layer(), x);
      x = net.module(layer(), "relu", {}, x);
      if (i == 1) x = net.module(layer(), "max_pool2d", {{"kernel_size", 2}}, x);
    }
  x = net.function("flatten", {x}, {1});
  x = net.module("classifier.0", "linear", {{"out_features", 1024}}, x);
  x = net.module("classifier.1", "relu", {}, x);
  x = net.module("classifier.2", "linear", {{"out_features", 1024}}, x);
  x = net.module("classifier.3", "relu", {}, x);
  return net.finish(net.linear("last_layer", x, net.outputs()));
}

Graph build_cnv(const ModelInputs& inputs) {
  NetworkBuilder net("cnv", inputs, {3, 32, 32}, 10);
  NodeId x = net.input();
  int index = 0;
  const auto layer = [&] { return fmt::format("conv_features.{}", index++); };
  for (const int64_t channels : {64, 128, 256})
    for (int i = 0; i < 2; ++i) {
      x = net.conv(layer(), x, channels, 3, 1, 0, false);
      x = net.batch_norm(layer(), x);
      x = net.module(layer(), "relu", {}, x);
      if (i == 1 && channels < 256) x = net.module(layer(), "max_pool2d", {{"kernel_size", 2}}, x);
    }
  x = net.function("flatten", {x}, {1});
  index = 0;
  for (int i = 0; i < 2; ++i) {
    x = net.module(fmt::format("linear_features.{}", index++), "linear",
                   {{"out_features", 512}, {"bias", false}}, x);
    x = net.module(fmt::format("linear_features.{}", index++), "batch_norm1d", {}, x);
    x = net.module(fmt::format("linear_features.{}", index++), "relu", {}, x);
  }
  return net.finish(net.module(fmt::format("linear_features.{}", index), "linear",
                               {{"out_features", net.outputs()}, {"bias", false}}, x));
}

Graph build_lfc(const ModelInputs& inputs) {
  NetworkBuilder net("lfc", inputs, {1, 28, 28}, 10);
  NodeId x = net.function("flatten", {net.input()}, {1});
  int index = 0;
  for (int i = 0; i < 3; ++i) {
    x = net.module(fmt::format("features.{}", index++), "linear",
                   {{"out_features", 1024}, {"bias", false}}, x);
    x = net.module(fmt::format("features.{}", index++), "batch_norm1d", {}, x);
    x = net.module(fmt::format("features.{}", index++), "relu", {}, x);
  }
  return net.finish(net.module(fmt::format("features.{}", index), "linear",
                               {{"out_features", net.outputs()}, {"bias", false}}, x));
}

Graph build_toy(const ModelInputs& inputs) {
  NetworkBuilder net("toy_convnet", inputs, {3, 32, 32}, 10);
  NodeId x = net.input();
  for (int i = 0; i < 3; ++i) {
    x = net.conv(fmt::format("conv{}", i + 1), x, int64_t{16} << i, 3, 1, 1);
    x = net.batch_norm(fmt::format("bn{}", i + 1), x);
    x = net.function("relu", {x});
    if (i < 2) x = pool(net, x);
  }
  x = net.function("adaptive_avg_pool2d", {x}, {1});
  x = net.function("flatten", {x}, {1});
  return net.finish(net.linear("fc", x, net.outputs()));
}

const Register<ModelRecord> lenet{
    {.name = "lenet", .summary = "images, LeNet-5 with ReLU", .build = build_lenet}};
const Register<ModelRecord> vgg7{
    {.name = "vgg7",
     .summary = "images, six convolutions 128-256-512, 14 M parameters",
     .build = build_vgg7}};
const Register<ModelRecord> cnv{
    {.name = "cnv", .summary = "images, FINN's six convolutions 64-128-256", .build = build_cnv}};
const Register<ModelRecord> lfc{
    {.name = "lfc", .summary = "images, FINN's three layers of 1024", .build = build_lfc}};
const Register<ModelRecord> toy{{.name = "toy_convnet",
                                 .aliases = {"toy-convnet"},
                                 .summary = "images, three convolutions 16-32-64 and a mean",
                                 .build = build_toy}};

}  // namespace
}  // namespace mase::small_cnn_model
