// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/recurrence.td"

def RnnOp : Recurrence<"rnn"> {
  let summary = "A recurrent layer of one gate over the steps of a sequence";
  let description = [{
    As nn.lstm, with `h = F(gates + bias + h r')`.

    rnn-c1: gates are steps x sequences x hidden, with a step; r is hidden x hidden.
    rnn-c2: the other operands have the sizes and types that follow.
    rnn-c3: one activation that is known, with two numbers; clip is not negative.

        %states = nn.rnn %gates, %r, %bias, %h, %lengths {activations = ["tanh"], alphas = array<f64: 0.0>,
            betas = array<f64: 0.0>, clip = 0.0 : f64}
            : (tensor<3x2x3xf32>, tensor<3x3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<4x2x3xf32>)
  }];
  let arguments = !con((ins NN_FloatTensor:$gates, NN_FloatTensor:$r, NN_FloatTensor:$bias,
                            NN_FloatTensor:$h, NN_IntegerTensor:$lengths),
                       recurrenceAttributes);
  let results = (outs NN_FloatTensor:$states);
}

def RnnGradientOp : RecurrenceGradient<"rnn_gradient"> {
  let summary = "Gradients of a recurrent layer's gates and of its initial state";
  let description = [{
    As nn.lstm_gradient.

    rnn-c4: the operands have the sizes and types that follow.

        %dgates, %dh = nn.rnn_gradient %r, %lengths, %states, %dstates {activations = ["tanh"],
            alphas = array<f64: 0.0>, betas = array<f64: 0.0>, clip = 0.0 : f64}
            : (tensor<3x3xf32>, tensor<2xi64>, tensor<4x2x3xf32>, tensor<4x2x3xf32>) -> (tensor<3x2x3xf32>, tensor<2x3xf32>)
  }];
  let arguments = !con((ins NN_FloatTensor:$r, NN_IntegerTensor:$lengths, NN_FloatTensor:$states,
                            NN_FloatTensor:$dstates),
                       recurrenceAttributes);
  let results = (outs NN_FloatTensor:$dgates, NN_FloatTensor:$dh);
}
