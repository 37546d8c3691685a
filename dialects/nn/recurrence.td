// SPDX-License-Identifier: Apache-2.0
//
// What nn.lstm, nn.gru and nn.rnn share.
#ifndef TRAINC_NN_RECURRENCE
#define TRAINC_NN_RECURRENCE

include "dialects/nn/nn.td"

// What cells have in common, their gradients too: functions of the gates by ONNX's names in lower case,
// each with alpha and beta where it has them; a bound of what they are applied to, 0 for
// none; and whether the last step is computed first.
defvar recurrenceAttributes = (ins StrArrayAttr:$activations, DenseF64ArrayAttr:$alphas,
                                   DenseF64ArrayAttr:$betas, F64Attr:$clip, UnitAttr:$reverse);

class Recurrence<string mnemonic>
    : Structured<mnemonic, [Differentiable, InterpretedResults, InfersShape, Library]>;
class RecurrenceGradient<string mnemonic>
    : Structured<mnemonic, [NotDifferentiable, InterpretedResults, InfersShape, Library]>;

#endif
