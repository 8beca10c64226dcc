// SPDX-License-Identifier: Apache-2.0
// What the extension module is made of: each function binds one area and lives in the file of its
// name.
#pragma once

#include <nanobind/nanobind.h>

namespace mase::python {

void bind_errors(nanobind::module_& module);
void bind_registries(nanobind::module_& module);
void bind_formats(nanobind::module_& module);
void bind_layers(nanobind::module_& module);
void bind_graph(nanobind::module_& module);
void bind_passes(nanobind::module_& module);
void bind_checkpoints(nanobind::module_& module);
void bind_data(nanobind::module_& module);
void bind_experiment(nanobind::module_& module);
void bind_compress(nanobind::module_& module);
void bind_search(nanobind::module_& module);
void bind_hardware(nanobind::module_& module);
void bind_report(nanobind::module_& module);
void bind_tokenizer(nanobind::module_& module);
void bind_language(nanobind::module_& module);

}  // namespace mase::python
