// SPDX-License-Identifier: Apache-2.0
//
// Opens the ledger, step by step. Each step sees what the earlier ones changed. Weights in bodies
// and nodes become initializers. Dropout returns to attention. Lost calls and changed buffers are
// refused. Merged parameters are apart again, by calls, then by names. Parameters are taken out of
// values that were computed from them.
#include "compiler/onnx/graph/conditions.h"
#include "compiler/onnx/graph/inputs.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "compiler/onnx/parameters/recorded_calls.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

bool isFromPyTorch(const ModelFile &file) { return file.model().producer_name() == "pytorch"; }

static bool isQuantized(const ModelFile &file) {
  return any_of(file.graph().node(), [](const onnx::NodeProto &node) {
    return quantizedInput(node.domain(), node.op_type()).has_value();
  });
}

// For files that record the exported program.
static void giveBackParameters(ModelFile &file, Ledger &ledger, Claims claims, Report &report) {
  rewrite(file, ledger, resolve(file, ledger, claims.uses));
  ledger.absent = std::move(claims.absent);
  for (const auto &[parameter, note] : claims.notes)
    ledger.notes[parameter] = note;
  if (isQuantized(file)) // a tool has made integers of them, under other names
    claims.lost.unclear.clear();
  refuseLosses(file, std::move(claims.lost), report);
}

bool openLedger(ModelFile &file, const Recipe &recipe, Ledger &ledger, Report &report) {
  ledger.program = ExportedProgram(file);
  ledger.lacksRequiresGrad = isFromPyTorch(file) && !ledger.program.isOfTrainc();
  if (recipe.trains)
    liftWeightsOfBodies(file.editableGraph(), ledger);
  liftBranchInitializers(file, ledger);
  if (!recipe.trains) // a model that is only evaluated is taken as it is
    return true;
  const size_t before = report.size();
  rewrite(file, ledger, weightsInNodes(file, ledger, report));
  rewrite(file, ledger, attentionDropout(file, ledger, report));
  refuseLostCalls(file, ledger.program, recipe, report);
  const RecordedCalls calls(file, ledger.program);
  refuseChangedBuffers(calls, recipe, report);
  if (report.size() == before)
    giveBackParameters(file, ledger, claimsOfCalls(calls), report);
  if (report.size() == before)
    rewrite(file, ledger, copiesOfWeights(file, ledger, report));
  if (report.size() == before)
    rewrite(file, ledger, unfoldedParameters(file, ledger));
  return report.size() == before;
}

} // namespace trainc::reader
