// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/recurrence.td"

def LstmOp : Recurrence<"lstm"> {
  let summary = "Long short-term memory over the steps of a sequence";
  let description = [{
    At each step, of gates that hold the input's part and all blocks in the order i, o, f, g:

        gates += bias + h r'                   h, c: hidden state and cell of the step before
        i = F(i + p_i c)    f = F(f + p_f c)   F, G, H: `activations`, after the bound `clip`
        c = f c + i G(g)
        h = F(o + p_o c) H(c)                  c: the new one

    With `coupled`, f is 1 - i. `peepholes` are p_i, p_o and p_f. A sequence takes part in
    the first `lengths` steps; in the others its state stays. Steps are the first dimension, in `states` and
    `cells` with one more: behind each step is its result, or before it where `reverse` lets
    the last step be first, and at the end which that leaves is the initial state. `activated`, with
    gates as they are after their functions, and `cells` are for the gradient alone.

        %states, %last, %cells, %activated = nn.lstm %gates, %r, %bias, %peepholes, %h, %c, %lengths
            {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>,
             betas = array<f64: 0.0, 0.0, 0.0>, clip = 0.0 : f64}
            : (tensor<5x2x12xf32>, tensor<12x3xf32>, tensor<12xf32>, tensor<9xf32>, tensor<2x3xf32>,
               tensor<2x3xf32>, tensor<2xi64>)
            -> (tensor<6x2x3xf32>, tensor<2x3xf32>, tensor<6x2x3xf32>, tensor<5x2x12xf32>)

    lstm-c1: gates are steps x sequences x 4 hidden, with a step; r is 4 hidden x hidden.
    lstm-c2: the other operands have the sizes and types that follow.
    lstm-c3: three activations that are known, each with two numbers; clip is not negative.
  }];
  let arguments = !con((ins NN_FloatTensor:$gates, NN_FloatTensor:$r, NN_FloatTensor:$bias,
                            NN_FloatTensor:$peepholes, NN_FloatTensor:$h, NN_FloatTensor:$c,
                            NN_IntegerTensor:$lengths),
                       recurrenceAttributes, (ins UnitAttr:$coupled));
  let results = (outs NN_FloatTensor:$states, NN_FloatTensor:$last_cell, NN_FloatTensor:$cells,
                      NN_FloatTensor:$activated);
}

def LstmGradientOp : RecurrenceGradient<"lstm_gradient"> {
  let summary = "Gradients of an LSTM's gates and of its initial state and cell";
  let description = [{
    Of the results of nn.lstm and the gradients of its states and last cell. That of r is a
    product of all steps: the gradients of the gates with the states that the steps began with.

    lstm-c4: the operands have the sizes and types that follow.

        %dgates, %dh, %dc = nn.lstm_gradient %r, %peepholes, %lengths, %cells, %activated, %dstates, %dlast
            {activations = ["sigmoid", "tanh", "tanh"], alphas = array<f64: 0.0, 0.0, 0.0>, betas = array<f64: 0.0, 0.0, 0.0>,
            clip = 0.0 : f64}
            : (tensor<12x3xf32>, tensor<9xf32>, tensor<2xi64>, tensor<4x2x3xf32>, tensor<3x2x12xf32>, tensor<4x2x3xf32>, tensor<2x3xf32>)
            -> (tensor<3x2x12xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  }];
  let arguments = !con((ins NN_FloatTensor:$r, NN_FloatTensor:$peepholes, NN_IntegerTensor:$lengths,
                            NN_FloatTensor:$cells, NN_FloatTensor:$activated,
                            NN_FloatTensor:$dstates, NN_FloatTensor:$dlast_cell),
                       recurrenceAttributes, (ins UnitAttr:$coupled));
  let results = (outs NN_FloatTensor:$dgates, NN_FloatTensor:$dh, NN_FloatTensor:$dc);
}
