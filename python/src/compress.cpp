// SPDX-License-Identifier: Apache-2.0
// Formats times methods, as ch compress does them: the library decides, here it is converted.
#include "mase/run/compress/compress.h"

#include <nanobind/stl/string.h>

#include "convert.h"
#include "experiment.h"
#include "module.h"

namespace mase::python {
namespace {

nb::dict compressed(Session& session, bool save, nb::object finished) {
  CompressResult result;
  Value contents;
  session.run([&] {
    const CompressSpec spec = compress_spec(session.settings());
    for (const std::string& warning : session.settings().warnings)
      session.observer().warning(warning);
    const std::unique_ptr<Experiment> experiment =
        compress_experiment(session.settings(), spec, session.observer(), session.memory());
    std::function<RunFolder()> folder;
    if (!spec.resume.empty())
      folder = [&] { return resumed_compress_folder(spec); };
    else if (save)
      folder = [&] { return session.create_folder("compress", *experiment); };
    CompressCalls calls;
    calls.finished = [&](const CompressRow& row, size_t done, size_t all) {
      if (finished.is_none()) return;
      session.callbacks().call([&] { finished(row.format, row.method, done, all); });
    };
    Observer observer = session.observer();
    observer.cancelled = [&session] { return session.callbacks().stop_requested(); };
    result = compress(*experiment, spec, observer, folder, calls);
    contents = experiment->file_contents();
  });
  nb::dict dict = nb::cast<nb::dict>(from_value(result.record()));
  dict["table"] = compress_table(result);
  dict["folder"] = result.folder;
  dict["extra"] = from_value(contents);
  nb::dict networks;
  for (auto& [row, graph] : result.networks) networks[nb::int_(row)] = nb::cast(std::move(graph));
  dict["networks"] = networks;
  return dict;
}

}  // namespace

void bind_compress(nb::module_& module) {
  module.def("compress", &compressed, nb::arg("experiment"), nb::arg("save"),
             nb::arg("finished").none());
}

}  // namespace mase::python
