// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/recurrence.td"

def GruOp : Recurrence<"gru"> {
  let summary = "Gated recurrent units over the steps of a sequence";
  let description = [{
    As nn.lstm, with the blocks z, r, n of gates and r, and one more of the bias, m:

        z = F(z + bias_z + h r_z')    r = F(r + bias_r + h r_r')
        n = G(n + bias_n + (r h) r_n' + bias_m)         or, with `linear_before_reset`,
        n = G(n + bias_n + r (h r_n' + bias_m))
        h = (1 - z) n + z h

    `candidates`, for the gradient, is the r h that meets r_n, or what r multiplies.

    gru-c1: gates are steps x sequences x 3 hidden, with a step; r is 3 hidden x hidden.
    gru-c2: the other operands have the sizes and types that follow.
    gru-c3: two activations that are known, each with two numbers; clip is not negative.

        %states, %activated, %projected = nn.gru %gates, %r, %bias, %h, %lengths {activations = ["sigmoid", "tanh"],
            alphas = array<f64: 0.0, 0.0>, betas = array<f64: 0.0, 0.0>, clip = 0.0 : f64}
            : (tensor<3x2x9xf32>, tensor<9x3xf32>, tensor<12xf32>, tensor<2x3xf32>, tensor<2xi64>)
            -> (tensor<4x2x3xf32>, tensor<3x2x9xf32>, tensor<3x2x3xf32>)
  }];
  let arguments = !con((ins NN_FloatTensor:$gates, NN_FloatTensor:$r, NN_FloatTensor:$bias,
                            NN_FloatTensor:$h, NN_IntegerTensor:$lengths),
                       recurrenceAttributes, (ins UnitAttr:$linear_before_reset));
  let results = (outs NN_FloatTensor:$states, NN_FloatTensor:$activated, NN_FloatTensor:$candidates);
}

def GruGradientOp : RecurrenceGradient<"gru_gradient"> {
  let summary = "Gradients of a GRU's gates and of its initial state";
  let description = [{
    As nn.lstm_gradient. `dcandidates`, with `linear_before_reset`, is the gradient of the
    candidates; otherwise that of gates holds it too, and it and the operand are left out.

    gru-c4: the operands have the sizes and types that follow.

        %dgates, %dh = nn.gru_gradient %r, %lengths, %states, %activated, %dstates {activations = ["sigmoid", "tanh"],
            alphas = array<f64: 0.0, 0.0>, betas = array<f64: 0.0, 0.0>, clip = 0.0 : f64}
            : (tensor<9x3xf32>, tensor<2xi64>, tensor<4x2x3xf32>, tensor<3x2x9xf32>, tensor<4x2x3xf32>)
            -> (tensor<3x2x9xf32>, tensor<2x3xf32>)
  }];
  let arguments = !con((ins NN_FloatTensor:$r, NN_IntegerTensor:$lengths, NN_FloatTensor:$states,
                            NN_FloatTensor:$activated, NN_FloatTensor:$dstates,
                            Variadic<NN_FloatTensor>:$candidates),
                       recurrenceAttributes, (ins UnitAttr:$linear_before_reset));
  let results = (outs NN_FloatTensor:$dgates, NN_FloatTensor:$dh,
                      Variadic<NN_FloatTensor>:$dcandidates);
}
