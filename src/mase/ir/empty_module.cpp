// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/empty_module.h"

#include <sys/mman.h>

#include <new>

#include "mase/ir/op.h"

namespace mase {
namespace {

// Zeros of pages that only become memory where somebody writes: most are replaced by a file's
// tensors, unread, and a network larger than half the memory would not fit beside them.
Tensor unwritten_zeros(const Shape& shape, DType dtype) {
  constexpr size_t worth_pages = size_t{64} << 10;
  const size_t bytes = static_cast<size_t>(element_count(shape)) * dtype_size(dtype);
  if (bytes < worth_pages) return Tensor(shape, dtype);
  void* pages = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return {shape, dtype, static_cast<const std::byte*>(pages),
          std::shared_ptr<const void>(pages, [bytes](void* own) { ::munmap(own, bytes); })};
}

}  // namespace

Module make_empty_module(const std::string& op_name, const Value& attributes,
                         const std::string& path) {
  const OpRecord& op = find_op(op_name, Error(attributes.position(), path, "").place());
  Module module;
  module.op = op.name;
  module.attributes = validate(attributes, op.attributes, path);
  if (!op.params) return module;
  for (const ParamSpec& spec : op.params(module.attributes))
    (spec.trainable ? module.parameters : module.buffers)
        .emplace_back(spec.name, unwritten_zeros(spec.shape, spec.dtype));
  return module;
}

}  // namespace mase
