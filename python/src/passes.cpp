// SPDX-License-Identifier: Apache-2.0
// Passes on graphs, statistics on arrays, and passes written in Python, which join the registry and
// are then passes like all others.
#include "mase/passes/pass.h"

#include <nanobind/stl/string.h>

#include <map>
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

// Where a call from Python keeps what a pass written in Python raised; set while it runs.
struct Raised {
  explicit Raised(nb::object* to) : before(kept) { kept = to; }
  ~Raised() { kept = before; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

  static thread_local nb::object* kept;
  nb::object* before;  // passes may run passes
};
thread_local nb::object* Raised::kept = nullptr;

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
  nb::object raised;
  try {
    const Raised here(&raised);
    nb::gil_scoped_release unlocked;
    result = run_pass(changed, name, arguments, context);
  } catch (const Error&) {
    if (!raised.is_valid()) throw;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
    throw nb::python_error();
  }
  graph = std::move(changed);
  if (!print.is_none() && !printed.empty()) print(nb::str(printed.data(), printed.size()));
  return nb::make_tuple(from_value(result.data), result.changed);
}

// Passes written in Python by name. A notebook's cell may be run again: it replaces its own pass.
struct PythonPass {
  std::shared_ptr<const void> function;
  bool transform = false;
};
std::map<std::string, std::shared_ptr<PythonPass>>& python_passes() {
  static std::map<std::string, std::shared_ptr<PythonPass>> passes;
  return passes;
}

std::string one_line(nb::python_error& error) {
  return fmt::format("{}: {}", nb::cast<std::string>(error.type().attr("__name__")),
                     nb::cast<std::string>(nb::str(error.value())));
}

// function(graph, args) -> dict or None, or (graph, dict). The graph it returns, if it is another
// one, replaces the pass's.
PassResult run_python(const PythonPass& pass, Graph& graph, const Value& args) {
  nb::gil_scoped_acquire lock;
  const std::shared_ptr<const void> kept = pass.function;
  const nb::handle call(const_cast<PyObject*>(static_cast<const PyObject*>(kept.get())));
  nb::object native = nb::cast(Graph(graph));
  nb::object result;
  try {
    result = call(native, from_value(args));
  } catch (nb::python_error& error) {
    // Crosses the library as one of its own errors; who called from Python gets it back whole.
    if (Raised::kept) *Raised::kept = nb::borrow(error.value());
    throw Error("", one_line(error));
  }
  graph = nb::cast<const Graph&>(native);
  return PassResult{to_value(result, "result"), pass.transform};
}

void register_pass(const std::string& name, nb::object function, const std::string& summary,
                   bool transform) {
  const auto own = python_passes().find(name);
  if (own != python_passes().end() && own->second->transform == transform) {
    own->second->function = keep_alive(function);
    return;
  }
  if (Registry<PassRecord>::instance().find(name))
    throw Error(name, "there is a pass of this name already");
  const auto pass = std::make_shared<PythonPass>();
  pass->function = keep_alive(function);
  pass->transform = transform;
  PassRecord record;
  record.name = name;
  record.pass_kind = transform ? PassKind::transform : PassKind::analysis;
  record.summary = summary;
  record.schema.open = true;
  record.tolerance = -1;
  record.run = [pass](Graph& graph, const Value& args, PassContext&) {
    return run_python(*pass, graph, args);
  };
  Registry<PassRecord>::instance().add(std::move(record));
  python_passes()[name] = pass;
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
