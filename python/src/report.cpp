// SPDX-License-Identifier: Apache-2.0
// Pages of runs.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "mase/report/pages/run_page.h"
#include "module.h"

namespace mase::python {

namespace nb = nanobind;

void bind_report(nb::module_& module) {
  module.def(
      "run_page",
      [](const std::vector<std::string>& folders, const std::string& title) {
        RunPage page;
        {
          nb::gil_scoped_release unlocked;
          page = run_page(folders, title, "mase " MASE_VERSION);
        }
        return nb::make_tuple(page.html, page.plain, page.folders);
      },
      nb::arg("folders"), nb::arg("title"));
}

}  // namespace mase::python
