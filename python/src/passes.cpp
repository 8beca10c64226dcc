// SPDX-License-Identifier: Apache-2.0
// Passes on graphs, statistics on arrays, and passes written in Python, which join the registry and
// are then passes like all others.
#include "mase/passes/pass.h"

#include <nanobind/stl/string.h>

#include <memory>

#include "convert.h"
#include "mase/passes/statistics/statistic.h"
#include "module.h"

namespace mase::python {
namespace {

struct Collector {
  std::unique_ptr<Statistic> statistic;
};

Tensor optional_tensor(const nb::dict& context, const char* key) {
  if (!context.contains(key) || context[key].is_none()) return {};
  return to_tensor(context[key], key);
}

template <class T>
T option(const nb::dict& context, const char* key, T fallback) {
  return context.contains(key) && !context[key].is_none() ? nb::cast<T>(context[key]) : fallback;
}

nb::tuple run_one(Graph& graph, const std::string& name, nb::handle args, const nb::dict& given,
                  nb::object print) {
  const Value arguments = to_value(args, name);
  PassContext context;
  context.samples = optional_tensor(given, "samples");
  context.labels = optional_tensor(given, "labels");
  context.test_x = optional_tensor(given, "test_x");
  context.test_labels = optional_tensor(given, "test_labels");
  context.save_dir = option<std::string>(given, "save_dir", "");
  context.base_dir = option<std::string>(given, "base_dir", "");
  context.batch_size = option<int64_t>(given, "batch_size", 0);
  context.seed = option<uint64_t>(given, "seed", 0);
  if (given.contains("original") && !given["original"].is_none())
    context.original = nb::cast<const Graph*>(given["original"]);
  std::string printed;  // told at the end: a pass says little and takes little time
  context.print = [&printed](const std::string& text) { printed += text; };
  // Work on a copy: a pass that fails leaves the caller's graph as it was.
  Graph changed = graph;
  PassResult result;
  {
    nb::gil_scoped_release unlocked;
    result = run_pass(changed, name, arguments, context);
  }
  graph = std::move(changed);
  if (!print.is_none() && !printed.empty()) print(nb::str(printed.data(), printed.size()));
  return nb::make_tuple(from_value(result.data), result.changed);
}

// A Python function as a pass: function(graph, args) -> dict or None, or (graph, dict). The graph
// it returns, if it is another one, replaces the pass's.
void register_pass(const std::string& name, nb::object function, const std::string& summary,
                   bool transform) {
  if (Registry<PassRecord>::instance().find(name))
    throw Error(name, "there is a pass of this name already");
  const std::shared_ptr<const void> kept = keep_alive(function);
  PassRecord record;
  record.name = name;
  record.pass_kind = transform ? PassKind::transform : PassKind::analysis;
  record.summary = summary;
  record.schema.open = true;
  record.tolerance = -1;
  record.run = [kept, transform](Graph& graph, const Value& args, PassContext&) {
    nb::gil_scoped_acquire lock;
    const nb::handle call(const_cast<PyObject*>(static_cast<const PyObject*>(kept.get())));
    nb::object native = nb::cast(Graph(graph));
    nb::object result;
    try {
      result = call(native, from_value(args));
    } catch (nb::python_error& error) {
      // The text crosses the library as one of its own errors: a traceback would not survive it.
      throw Error("plugin", fmt::format("{}", error.what()));
    }
    graph = nb::cast<const Graph&>(native);
    return PassResult{to_value(result, "result"), transform};
  };
  Registry<PassRecord>::instance().add(std::move(record));
}

void update(Collector& collector, nb::handle object, bool rows) {
  Tensor data = to_tensor(object, "values");
  if (data.dtype() != DType::f32) data = data.to(DType::f32);
  Shape sample = data.shape();
  int64_t samples = 1;
  if (rows) {
    if (sample.empty()) throw Error("values", "expected samples as rows");
    samples = sample[0];
    sample[0] = 1;  // MASE keeps a leading dimension of one
  }
  collector.statistic->update(data.values<float>(), sample, samples);
}

}  // namespace

void bind_passes(nb::module_& module) {
  module.def("run_pass", &run_one, nb::arg("graph"), nb::arg("name"), nb::arg("args").none(),
             nb::arg("context"), nb::arg("print").none());
  module.def("register_pass", &register_pass, nb::arg("name"), nb::arg("function"),
             nb::arg("summary"), nb::arg("transform"));
  nb::class_<Collector>(module, "Statistic", "Collects one statistic over samples.")
      .def("__init__",
           [](Collector* self, const std::string& name, nb::handle args) {
             const StatisticRecord& record = Registry<StatisticRecord>::instance().get(name);
             new (self) Collector{record.make(validate(to_value(args), record.schema, name))};
           })
      .def("update", &update, nb::arg("values"), nb::arg("rows"))
      .def("compute",
           [](const Collector& collector) { return from_value(collector.statistic->compute()); });
}

}  // namespace mase::python
