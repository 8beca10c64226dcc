// SPDX-License-Identifier: Apache-2.0
// mobilenetv2 (Sandler et al., 2018) with torchvision's names: inverted residuals of a pointwise, a
// depthwise and a linear pointwise convolution.
#include "mase/models/network_builder.h"

namespace mase::mobilenetv2_model {
namespace {

NodeId conv_norm(NetworkBuilder& net, const std::string& path, NodeId x, int64_t channels,
                 int64_t kernel, int64_t stride, int64_t groups) {
  x = net.conv(path + ".0", x, channels, kernel, stride, (kernel - 1) / 2, false, groups);
  x = net.batch_norm(path + ".1", x);
  return net.module(path + ".2", "relu6", {{"inplace", true}}, x);
}

NodeId inverted_residual(NetworkBuilder& net, const std::string& path, NodeId x, int64_t channels,
                         int64_t stride, int64_t expansion) {
  const int64_t in = net.shape(x)[1], hidden = in * expansion;
  NodeId y = x;
  int index = 0;
  const auto layer = [&] { return fmt::format("{}.conv.{}", path, index++); };
  if (expansion != 1) y = conv_norm(net, layer(), y, hidden, 1, 1, 1);
  y = conv_norm(net, layer(), y, hidden, 3, stride, hidden);
  y = net.conv(layer(), y, channels, 1, 1, 0, false);
  y = net.batch_norm(layer(), y);
  return stride == 1 && in == channels ? net.function("add", {x, y}) : y;
}

Graph build(const ModelInputs& inputs) {
  NetworkBuilder net("mobilenetv2", inputs, {3, 224, 224}, 1000);
  // Images of CIFAR's size keep their resolution in the first stages.
  const bool small = net.shape(net.input())[2] <= 64;
  struct Stage {
    int64_t expansion, channels, repeats, stride;
  };
  const Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int index = 0;
  const auto layer = [&] { return fmt::format("features.{}", index++); };
  NodeId x = conv_norm(net, layer(), net.input(), 32, 3, small ? 1 : 2, 1);
  for (const Stage& stage : stages)
    for (int64_t i = 0; i < stage.repeats; ++i) {
      const int64_t stride = i > 0 || (small && stage.channels == 24) ? 1 : stage.stride;
      x = inverted_residual(net, layer(), x, stage.channels, stride, stage.expansion);
    }
  x = conv_norm(net, layer(), x, 1280, 1, 1, 1);
  x = net.function("adaptive_avg_pool2d", {x}, {1});
  x = net.function("flatten", {x}, {1});
  x = net.module("classifier.0", "dropout", {{"p", 0.2}}, x);
  return net.finish(net.linear("classifier.1", x, net.outputs()));
}

const Register<ModelRecord> registered{
    {.name = "mobilenetv2",
     .aliases = {"mobilenet_v2"},
     .summary = "images, MobileNetV2 with torchvision's parameter names",
     .build = build}};

}  // namespace
}  // namespace mase::mobilenetv2_model
