// SPDX-License-Identifier: Apache-2.0
include "dialects/nn/nn.td"

defvar attention_operands = [{
  mlir::ValueRange getMasks() { return masksOf(getMasksAndKey()); }
  /// The key of its dropout; null where it has none.
  mlir::Value getKey() { return keyOf(getMasksAndKey()); }
}];

def AttentionOp
    : Structured<"attention", [Differentiable, InterpretedResults, InfersShape, Library]> {
  let summary = "Means of values, weighted by the softmax of products of queries and keys";
  let description = [{
    For each of the batch, head and query i:

        score[j] = scale * sum_d q[i, d] * k[j, d] + masks[i, j]...
        result[i] = sum_j softmax(score)[j] * v[j]
        log_sum[i] = log(sum_j exp(score[j]))

    Scores are never in memory as a whole. With `reach`, query i sees no key after i + reach. A mask
    is the same along dimensions where its size is 1. A row that sees no key is NaN, or zeros where
    `masked_to_zero` is set. Keys and values have fewer heads than the queries where several of
    these, neighbours, share one. Of bf16 elements the weights are rounded to bf16; masks, sums and
    `log_sum`, which is for the gradient alone, are f32.

    With `dropped`, elements of the softmax are dropped with a probability of dropped / 2^30, and the
    others divided by that of the rest, before they weigh values: element [..., i, j] by its number of
    `stream` under the key, as nn.random_bits has it. The key is the last operand. Without one it is 0,
    which derive-evaluate replaces: a step has a key.

        %0, %1 = nn.attention %q, %k, %v, %mask {scale = 0.5 : f64, reach = 0 : i64}
            : (tensor<2x6x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x1x1x5xf32>)
            -> (tensor<2x6x5x7xf32>, tensor<2x6x5xf32>)

    attention-c1: q, k and v have one rank, at least 3, one float element type and no size of 0.
    attention-c2: their sizes fit; heads of keys divide those of queries.
    attention-c3: at most two masks, of the sums' type, that broadcast to the scores.
    attention-c6: stream, from 0 on, and dropped, within [1, 2^30], are both there or not; a key is a
    number of i64, where something is dropped.
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v,
                       Variadic<NN_Tensor>:$masks_and_key, F64Attr:$scale, OptionalAttr<I64Attr>:$reach,
                       UnitAttr:$masked_to_zero, OptionalAttr<I64Attr>:$stream,
                       OptionalAttr<I64Attr>:$dropped);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$log_sum);
  let extraClassDeclaration = attention_operands;
}

def AttentionGradientOp
    : Structured<"attention_gradient", [NotDifferentiable, InterpretedResults, InfersShape, Library]> {
  let summary = "Gradients of what nn.attention reads";
  let description = [{
    Of its operands and results and the gradient of its result. With `dmask_sizes`, the last result
    is the gradient of the scores, added up along the dimensions that have size 1 there.

    attention-c4: result, log_sum and dresult are as nn.attention has them.
    attention-c5: dmask_sizes are those of the scores, or 1 in front of the last two.

        %dq, %dk, %dv, %dmask = nn.attention_gradient %q, %k, %v, %0, %1, %dresult, %mask
            {scale = 0.5 : f64, dmask_sizes = array<i64: 1, 6, 5, 5>}
            : (tensor<2x6x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x6x5x7xf32>, tensor<2x6x5xf32>,
               tensor<2x6x5x7xf32>, tensor<1x6x1x5xf32>)
            -> (tensor<2x6x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<1x6x5x5xf32>)
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, NN_FloatTensor:$result,
                       NN_FloatTensor:$log_sum, NN_FloatTensor:$dresult,
                       Variadic<NN_Tensor>:$masks_and_key, F64Attr:$scale, OptionalAttr<I64Attr>:$reach,
                       OptionalAttr<DenseI64ArrayAttr>:$dmask_sizes, OptionalAttr<I64Attr>:$stream,
                       OptionalAttr<I64Attr>:$dropped);
  let results = (outs NN_FloatTensor:$dq, NN_FloatTensor:$dk, NN_FloatTensor:$dv,
                      Optional<NN_FloatTensor>:$dmask);
  let extraClassDeclaration = attention_operands;
}
