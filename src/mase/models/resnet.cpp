// SPDX-License-Identifier: Apache-2.0
// resnet18 (He et al., 2016) with torchvision's names, and its form for small images: a 3 x 3 first
// convolution without pooling.
#include "mase/models/network_builder.h"

namespace mase::resnet_model {
namespace {

NodeId block(NetworkBuilder& net, const std::string& path, NodeId x, int64_t channels,
             int64_t stride) {
  NodeId y = net.conv(path + ".conv1", x, channels, 3, stride, 1, false);
  y = net.batch_norm(path + ".bn1", y);
  y = net.module(path + ".relu", "relu", {{"inplace", true}}, y);
  y = net.conv(path + ".conv2", y, channels, 3, 1, 1, false);
  y = net.batch_norm(path + ".bn2", y);
  NodeId skip = x;
  if (stride != 1 || net.shape(x)[1] != channels) {
    skip = net.conv(path + ".downsample.0", x, channels, 1, stride, 0, false);
    skip = net.batch_norm(path + ".downsample.1", skip);
  }
  return net.function("relu", {net.function("add", {y, skip})});
}

Graph build(const std::string& name, const ModelInputs& inputs, bool small) {
  NetworkBuilder net(name, inputs, small ? Shape{3, 32, 32} : Shape{3, 224, 224},
                     small ? 10 : 1000);
  NodeId x = net.input();
  x = small ? net.conv("conv1", x, 64, 3, 1, 1, false) : net.conv("conv1", x, 64, 7, 2, 3, false);
  x = net.batch_norm("bn1", x);
  x = net.module("relu", "relu", {{"inplace", true}}, x);
  if (!small)
    x = net.module("maxpool", "max_pool2d", {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}}, x);
  for (int stage = 1; stage <= 4; ++stage)
    for (int i = 0; i < 2; ++i)
      x = block(net, fmt::format("layer{}.{}", stage, i), x, int64_t{64} << (stage - 1),
                stage > 1 && i == 0 ? 2 : 1);
  x = net.module("avgpool", "adaptive_avg_pool2d", {{"output_size", List{1, 1}}}, x);
  x = net.function("flatten", {x}, {1});
  return net.finish(net.linear("fc", x, net.outputs()));
}

const Register<ModelRecord> large{
    {.name = "resnet18",
     .summary = "images, ResNet-18 with torchvision's parameter names",
     .build = [](const ModelInputs& inputs) { return build("resnet18", inputs, false); }}};
const Register<ModelRecord> small{
    {.name = "resnet18-cifar",
     .aliases = {"resnet18_cifar"},
     .summary = "images of 32 x 32, ResNet-18 with a small first convolution",
     .build = [](const ModelInputs& inputs) { return build("resnet18-cifar", inputs, true); }}};

}  // namespace
}  // namespace mase::resnet_model
