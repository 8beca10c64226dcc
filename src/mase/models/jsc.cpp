// SPDX-License-Identifier: Apache-2.0
// The jet substructure classifiers: 16 features, five kinds of jet. jsc-tiny, jsc-toy, jsc-s and
// jsc-trt are MASE's; jsc-m and jsc-l have the widths of LogicNets (Umuroglu et al., 2020); jsc-10x
// and jsc-toy10x are the labs' larger networks, jsc-three-linear-layers the one whose channels they
// search over. The last ReLU feeds the loss, as in MASE.
#include "mase/models/sequential.h"

namespace mase::jsc_model {
namespace {

Sequential start(const std::string& name, const ModelInputs& inputs) {
  return Sequential(name, inputs, {16}, 5).batch_norm().relu();
}

// Every linear layer followed by batch normalisation and ReLU.
Graph build_uniform(const std::string& name, const ModelInputs& inputs,
                    const std::vector<int64_t>& hidden) {
  Sequential network = start(name, inputs);
  for (const int64_t width : hidden) network.linear(width).batch_norm().relu();
  network.linear(network.outputs()).batch_norm().relu();
  return network.finish();
}

ModelRecord uniform(const std::string& name, const std::string& summary,
                    std::vector<int64_t> hidden) {
  return {.name = name, .summary = summary, .build = [=](const ModelInputs& inputs) {
            return build_uniform(name, inputs, hidden);
          }};
}

Graph build_tiny(const ModelInputs& inputs) {
  Sequential network = start("jsc-tiny", inputs);
  return network.linear(network.outputs()).relu().finish();
}

Graph build_three(const ModelInputs& inputs) {
  Sequential network = start("jsc-three-linear-layers", inputs);
  network.linear(16).relu().linear(16).relu();
  return network.linear(network.outputs()).relu().finish();
}

Graph build_s(const ModelInputs& inputs) {
  Sequential network = start("jsc-s", inputs).linear(64).batch_norm().relu();
  for (int i = 0; i < 3; ++i) network.linear(32).relu();
  return network.linear(network.outputs()).batch_norm().relu().finish();
}

Graph build_trt(const ModelInputs& inputs) {
  Sequential network = start("jsc-trt", inputs);
  network.linear(32).batch_norm().relu();
  network.linear(48).batch_norm().relu().add("dropout", {{"p", 0.5}});
  network.linear(16).batch_norm().relu();
  return network.linear(network.outputs()).batch_norm().relu().finish();
}

const Register<ModelRecord> tiny{
    {.name = "jsc-tiny", .summary = "jets, one linear layer", .build = build_tiny}};
const Register<ModelRecord> toy{uniform("jsc-toy", "jets, 8-8", {8, 8})};
const Register<ModelRecord> three{{.name = "jsc-three-linear-layers",
                                   .summary = "jets, 16-16 without batch norms between",
                                   .build = build_three}};
const Register<ModelRecord> s{
    {.name = "jsc-s", .summary = "jets, 64-32-32-32, few batch norms", .build = build_s}};
const Register<ModelRecord> m{uniform("jsc-m", "jets, 64-32-32-32", {64, 32, 32, 32})};
const Register<ModelRecord> l{uniform("jsc-l", "jets, 32-64-192-192-16", {32, 64, 192, 192, 16})};
const Register<ModelRecord> trt{
    {.name = "jsc-trt", .summary = "jets, 32-48-16 with dropout", .build = build_trt}};
const Register<ModelRecord> ten{uniform("jsc-10x", "jets, 60-32, ten times jsc-toy", {60, 32})};
const Register<ModelRecord> toy_ten{[] {
  ModelRecord record = uniform("jsc-toy10x", "jets, 64-40-10, ten times jsc-toy", {64, 40, 10});
  record.aliases = {"jsc-toy10"};  // as lab files call it too
  return record;
}()};

}  // namespace
}  // namespace mase::jsc_model
