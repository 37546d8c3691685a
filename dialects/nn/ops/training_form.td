// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def TrainingFormOp : Structured<"training_form", [Differentiable, Interpreted, VariesByStep,
    SameOperandsAndResultType]> {
  let summary = "A value that is another in training than in inference";
  let description = [{
    What dropout and its like are imported as. derive-evaluate leaves the first operand in the
    training step and the second in @evaluate, so that no later pass meets this operation. The
    interpreter, which runs models as their user does, takes the second.

        %0 = nn.training_form %dropped, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

    training_form-c1: operands and result have one type.
  }];
  let arguments = (ins NN_Tensor:$training, NN_Tensor:$inference);
  let results = (outs NN_Tensor:$result);
}
