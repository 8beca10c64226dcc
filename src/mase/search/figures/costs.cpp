// SPDX-License-Identifier: Apache-2.0
// Every cost that adds up over layers (ch pass calculate_bitops prints them), for one sample.
#include "mase/search/measure/figure.h"

namespace mase::cost_figures {
namespace {

using namespace search;

struct RegisterAll {
  RegisterAll() {
    for (const CostQuantity& quantity : cost_quantities())
      Registry<FigureRecord>::instance().add(
          {.name = quantity.key,
           .summary = std::string(quantity.label) + " of a sample",
           .value = [&quantity](const Measured& known) { return quantity.of(known.total); }});
  }
};
const RegisterAll registered;

}  // namespace
}  // namespace mase::cost_figures
