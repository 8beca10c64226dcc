// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/evaluator.h"

#include "mase/search/measure/candidate_evaluator.h"
#include "mase/search/measure/ptq_evaluator.h"

namespace mase::search {

std::unique_ptr<Evaluator> make_evaluator(EvaluatorSetup setup) {
  const QuantizeSpace* formats =
      setup.space.parts().size() == 1 ? setup.space.parts()[0]->formats() : nullptr;
  if (formats && !setup.training)
    return std::make_unique<PtqEvaluator>(setup.graph, *formats, setup.rows, setup.batch_size,
                                          setup.figures);
  return std::make_unique<CandidateEvaluator>(std::move(setup));
}

}  // namespace mase::search
