// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def CustomOp : NN_Op<"custom", [Differentiable, Library, OnlyCompiled,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "A function that a user's source file supplies, or one of the runtime";
  let description = [{
    `function` of the header `library` (a name without a folder: of `runtime/kernels`), called with
    `numbers`, then the addresses of the inputs and of the results. Each dictionary of `backward` is a
    function that computes gradients, called in the same way: `inputs` are numbers of operands, of
    results behind them, and of gradients of results behind these; `gradients` the operands whose
    gradients it writes. An operand that none writes has no gradient.

        %0 = nn.custom %x {function = "::cube", library = "operators/cube/cube.h", numbers = [6],
            flops = 12.0 : f64, backward = [{function = "::cube_gradient", numbers = [6],
            flops = 18.0 : f64, inputs = array<i64: 0, 2>, gradients = array<i64: 0>} ]}
            : (tensor<2x3xf32>) -> tensor<2x3xf32>

    custom-c1: numbers are integers, floats and lists of i64; inputs and gradients of backward functions are there.
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, StrAttr:$function, StrAttr:$library,
                       ArrayAttr:$numbers, F64Attr:$flops,
                       DefaultValuedAttr<DictArrayAttr, "{}">:$backward);
  let results = (outs Variadic<NN_Tensor>:$outs);
  let hasVerifier = 1;
}
