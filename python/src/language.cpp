// SPDX-License-Identifier: Apache-2.0
// Language models: perplexity of tokens, and texts token by token.
#include "mase/run/language.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "mase/models/hf.h"
#include "module.h"

namespace mase::python {

namespace {

nb::object dict_of(const Perplexity& result) {
  return from_value(Dict{{"perplexity", result.value()},
                         {"loss", result.loss()},
                         {"predictions", result.predictions},
                         {"tokens", result.tokens},
                         {"windows", result.windows}});
}

}  // namespace

void bind_language(nb::module_& module) {
  module.def(
      "perplexity",
      [](const Graph& graph, const std::vector<int32_t>& ids, int64_t length, int threads) {
        Perplexity result;
        {
          nb::gil_scoped_release unlocked;
          result = perplexity(graph, ids, length, threads);
        }
        return dict_of(result);
      },
      nb::arg("graph"), nb::arg("ids"), nb::arg("length"), nb::arg("threads"));
  module.def(
      "layered_perplexity",
      [](const std::string& path, const std::vector<int32_t>& ids, int64_t length, int threads) {
        NetworkSpec spec;
        spec.load = path;
        Perplexity result;
        {
          nb::gil_scoped_release unlocked;
          result = layered_perplexity(spec, ids, length, threads);
        }
        return dict_of(result);
      },
      nb::arg("path"), nb::arg("ids"), nb::arg("length"), nb::arg("threads"));
  module.def(
      "generate",
      [](const Graph& graph, std::vector<int32_t> prompt, int64_t tokens, double temperature,
         int64_t top_k, double top_p, uint64_t seed, std::vector<int32_t> ends, int threads,
         nb::object each) {
        GenerateSpec spec{.prompt = std::move(prompt),
                          .tokens = tokens,
                          .temperature = temperature,
                          .top_k = top_k,
                          .top_p = top_p,
                          .seed = seed,
                          .ends = std::move(ends),
                          .threads = threads};
        std::exception_ptr thrown;
        std::vector<int32_t> result;
        {
          nb::gil_scoped_release unlocked;
          result = generate(graph, spec, [&](int32_t token) {
            nb::gil_scoped_acquire locked;
            try {
              if (PyErr_CheckSignals() != 0) throw nb::python_error();
              if (each.is_none()) return true;
              const nb::object goes_on = each(token);
              return !goes_on.is(nb::bool_(false));
            } catch (...) {  // what a callback throws is raised when the library has returned
              thrown = std::current_exception();
              return false;
            }
          });
        }
        if (thrown) std::rethrow_exception(thrown);
        return result;
      },
      nb::arg("graph"), nb::arg("prompt"), nb::arg("tokens"), nb::arg("temperature"),
      nb::arg("top_k"), nb::arg("top_p"), nb::arg("seed"), nb::arg("ends"), nb::arg("threads"),
      nb::arg("each").none());
  module.def("text_tokens", [](const std::string& folder, const std::string& path) {
    nb::gil_scoped_release unlocked;
    return text_tokens(folder, path);
  });
  module.def("hf_config", [](const Graph& graph) { return from_value(hf_config(graph)); });
}

}  // namespace mase::python
