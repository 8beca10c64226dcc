// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/empty_module.h"

#include "mase/ir/op.h"

namespace mase {

Module make_empty_module(const std::string& op_name, const Value& attributes,
                         const std::string& path) {
  const OpRecord& op = find_op(op_name, Error(attributes.position(), path, "").place());
  Module module;
  module.op = op.name;
  module.attributes = validate(attributes, op.attributes, path);
  if (!op.params) return module;
  for (const ParamSpec& spec : op.params(module.attributes))
    (spec.trainable ? module.parameters : module.buffers)
        .emplace_back(spec.name, Tensor(spec.shape, spec.dtype));
  return module;
}

}  // namespace mase
