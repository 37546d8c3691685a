// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

def RandomBitsOp : Structured<"random_bits", [NotDifferentiable, Interpreted, VariesByStep]> {
  let summary = "Random integers of [0, 2^bits)";
  let description = [{
    Element i is number i of the stream under the key of its element: a function of these and
    nothing else (`runtime/kernels/random.h`), so that it may be computed again wherever it is
    read. Without keys the key is 0, as it is in inference; derive-evaluate gives those without
    keys in the training step the key of the micro-batch. A stream belongs to one operation of the model:
    two with the same keys and streams have the same numbers.

        %0 = nn.random_bits %keys {stream = 6 : i64, bits = 30 : i64} : (tensor<4x8xi64>) -> tensor<4x8xi64>

    random_bits-c1: the result is of i64; keys have its type.
    random_bits-c2: bits is within [1, 63].
    random_bits-c3: stream is not negative.
  }];
  let arguments = (ins Optional<StaticShapeTensorOf<[I64]>>:$keys, I64Attr:$stream, I64Attr:$bits);
  let results = (outs StaticShapeTensorOf<[I64]>:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// 10 rounds of two products of 32 bits and six other operations.
    static double flopsPerElement() { return 80; }
  }];
}
