// SPDX-License-Identifier: Apache-2.0
// Number formats: a quantizer made from a format's name and config, applied to arrays.
#include "mase/formats/format.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "mase/formats/measure.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/ir/quantization.h"
#include "module.h"

namespace mase::python {
namespace {

Tensor float_tensor(nb::handle object) {
  Tensor tensor = to_tensor(object, "x");
  if (tensor.dtype() != DType::f32)
    throw Error("x", fmt::format("expected float32, got {}", dtype_name(tensor.dtype())));
  return tensor;
}

// From here on the lock may be let go: the tensor keeps the array alive.
template <class Work>
auto without_lock(const Work& work) {
  nb::gil_scoped_release unlocked;
  return work();
}

void check_shape(const Quantizer& quantizer, const Shape& shape) {
  if (const auto reason = misfit(quantizer, shape)) throw Error("x", *reason);
}

// Memory that the caller owns and has checked: contiguous float32 values, `out` may be `in`. This
// is what torch layers call: no array objects are made.
void quantize_memory(const Quantizer& quantizer, uintptr_t in, uintptr_t out,
                     const std::vector<int64_t>& shape) {
  check_shape(quantizer, shape);
  if (element_count(shape) == 0) return;
  quantizer.quantize(reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out), shape);
}

// The gradient by `in`, or false where it is that by `out`, unchanged.
bool gradient_memory(const Quantizer& quantizer, uintptr_t in, uintptr_t grad_out,
                     uintptr_t grad_in, const std::vector<int64_t>& shape) {
  if (!quantizer.has_gradient()) return false;
  if (element_count(shape) == 0) return true;
  quantizer.gradient(reinterpret_cast<const float*>(in), reinterpret_cast<const float*>(grad_out),
                     reinterpret_cast<float*>(grad_in), shape);
  return true;
}

nb::dict codes_of(const Quantizer& quantizer, nb::handle object) {
  const Tensor x = float_tensor(object);
  check_shape(quantizer, x.shape());
  if (!quantizer.code_bits) throw Error(quantizer.format, "has no integer codes");
  const Quantizer::Codes codes =
      without_lock([&] { return quantizer.encode(x.data<float>(), x.shape()); });
  nb::dict result;
  result["codes"] = owned_array(Tensor::of<uint32_t>(x.shape(), codes.codes));
  result["scales"] =
      owned_array(Tensor::of<double>({static_cast<int64_t>(codes.scales.size())}, codes.scales));
  result["exponents"] = owned_array(
      Tensor::of<int32_t>({static_cast<int64_t>(codes.exponents.size())}, codes.exponents));
  return result;
}

nb::any decode(const Quantizer& quantizer, nb::handle codes, nb::handle scales,
               nb::handle exponents) {
  if (!quantizer.code_bits) throw Error(quantizer.format, "has no integer codes");
  const Tensor given = to_tensor(codes, "codes"), steps = to_tensor(scales, "scales"),
               shared = to_tensor(exponents, "exponents");
  if (given.dtype() != DType::u32 || steps.dtype() != DType::f64 || shared.dtype() != DType::i32)
    throw Error("codes", "expected what codes() gave: uint32, float64 and int32");
  Quantizer::Codes all;
  all.codes.assign(given.values<uint32_t>().begin(), given.values<uint32_t>().end());
  all.scales.assign(steps.values<double>().begin(), steps.values<double>().end());
  all.exponents.assign(shared.values<int32_t>().begin(), shared.values<int32_t>().end());
  // The scales and exponents are memory that codes index: they must be as many as for such values.
  const Tensor probe(given.shape());
  const Quantizer::Codes wanted = quantizer.encode(probe.data<float>(), probe.shape());
  if (wanted.scales.size() != all.scales.size() || wanted.exponents.size() != all.exponents.size())
    throw Error("codes", "scales and exponents do not belong to codes of this shape");
  if (quantizer.code_bits < 32)
    for (const uint32_t code : all.codes)
      if (code >> quantizer.code_bits)
        throw Error("codes", fmt::format("{} has more than {} bits", code, quantizer.code_bits));
  Tensor out(given.shape());
  float* values = out.mutable_data<float>();
  without_lock([&] { quantizer.decode(all, values, given.shape()); });
  return owned_array(std::move(out));
}

// {operand: quantizer} of a layer's flat config, as the pass quantize reads it.
nb::dict layer_quantizers(const std::string& op_name, nb::handle config, const std::string& path) {
  const OpRecord& op = find_op(op_name);
  Problems problems;
  const Quantization parsed =
      parse_quantization(to_value(config, path), operand_rules(op), path, problems);
  problems.throw_if_any();
  nb::dict result;
  for (const auto& [operand, quantizer] : parsed.operands)
    result[operand.c_str()] = nb::cast(std::const_pointer_cast<Quantizer>(quantizer));
  return result;
}

}  // namespace

void bind_formats(nb::module_& module) {
  nb::class_<Quantizer>(module, "Quantizer", "A number format with its numbers filled in.")
      .def_ro("format", &Quantizer::format)
      .def_prop_ro("config", [](const Quantizer& q) { return from_value(q.config); })
      .def_ro("code_bits", &Quantizer::code_bits)
      .def_ro("lowest", &Quantizer::lowest)
      .def_ro("largest", &Quantizer::largest)
      .def_ro("smallest_positive", &Quantizer::smallest_positive)
      .def_ro("precision", &Quantizer::precision)
      .def_ro("elementwise", &Quantizer::elementwise)
      .def_prop_ro("straight_through", [](const Quantizer& q) { return !q.has_gradient(); })
      .def_prop_ro("learned", [](const Quantizer& q) { return q.learned != nullptr; })
      .def_prop_ro("type_text",
                   [](const Quantizer& q) { return q.type ? type_text(*q.type) : q.untyped; })
      .def("text", [](const Quantizer& q) { return operand_text(&q); })
      .def("bits_per_value",
           [](const Quantizer& q, const std::vector<int64_t>& shape) {
             element_count(shape);  // an impossible shape is an error
             return q.bits_per_value(shape);
           })
      .def("values",
           [](const Quantizer& q) {
             const std::vector<float> values = representable_values(q);
             return owned_array(Tensor::of({static_cast<int64_t>(values.size())}, values));
           })
      .def("quantize",
           [](const Quantizer& q, nb::handle object) {
             const Tensor x = float_tensor(object);
             check_shape(q, x.shape());
             return owned_array(without_lock([&] { return quantize(q, x); }));
           })
      .def("measure",
           [](const Quantizer& q, nb::handle object) {
             const Tensor x = float_tensor(object);
             check_shape(q, x.shape());
             const QuantizationError error =
                 without_lock([&] { return measure_error(q, x, quantize(q, x)); });
             return from_value(Dict{{"max_error", error.max_error},
                                    {"mean_squared_error", error.mean_squared_error},
                                    {"sqnr", error.sqnr},
                                    {"saturation", error.saturation},
                                    {"bits", error.bits}});
           })
      .def("codes", &codes_of)
      .def("decode", &decode)
      .def("quantize_memory", &quantize_memory)
      .def("gradient_memory", &gradient_memory);
  module.def(
      "make_quantizer",
      [](const std::string& format, nb::handle config, const std::string& path) {
        return std::const_pointer_cast<Quantizer>(
            make_quantizer(format, to_value(config, path), path));
      },
      nb::arg("format"), nb::arg("config"), nb::arg("path") = "");
  module.def("layer_quantizers", &layer_quantizers, nb::arg("op"), nb::arg("config"),
             nb::arg("path") = "config");
}

}  // namespace mase::python
