// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def MeanOverRanksOp : Structured<"mean_over_ranks",
    [Differentiable, InterpretedResults, InfersShape, Library, VariesByStep]> {
  let summary = "Mean of the tensors that the ranks of a step have in the place of x";
  let description = [{
    The ranks are those that run the same function on batches of their own, of which a program alone is
    the only one; `ranks` is how many they are. They add in the order of their numbers, in f64, and all
    have the same result. A step's loss is a mean over them too, so the gradient of x is the mean of
    the gradients of `mean`.

        %mean, %ranks = nn.mean_over_ranks %x : (tensor<16xf32>) -> (tensor<16xf32>, tensor<f64>)

    mean_over_ranks-c1: x is of floats.
  }];
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$mean, NN_FloatTensor:$ranks);
}
