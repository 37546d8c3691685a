// SPDX-License-Identifier: Apache-2.0
//
// The pointwise operations, a record each. From a record follow the op class,
// its shape rule, import from ONNX, gradient, scalar code and cost.
//
//   value     the result in terms of the operands; names of other records are
//             functions. Left empty for the primitives of the scalar language
//             (add, exp, ...), which the kernel dialect has as operations.
//   gradient  one expression per operand in terms of the operands, `y` (the
//             result) and `dy`. Prefer `y` where it serves: then the operand
//             need not be kept for the backward pass. "none": no gradient.
//   ulp       largest error of the f32 value, in units in the last place of the
//             exact result ("no floats" where it takes none). Results below the
//             smallest normal number may be off by as much as that.
//   cancels   the value is a difference of terms as large as the operands: the unit
//             is the last place of the largest operand where that is larger.
//             `trainc-check-gradient --records` measures all of them.
#ifndef TRAINC_NN_POINTWISE
#define TRAINC_NN_POINTWISE

include "dialects/nn/nn.td"

class OnnxOp<string opName, int firstVersion> {
  string name = opName;
  int since = firstVersion; // first opset in which it means this
}

// Element type of the result: that of the last operand, or bool.
//
//   pointwise-c1: operands have one shape.
//   pointwise-c2: operands have one element type; of three the first is a condition, bool.
class PointwiseBase<string mnemonic, list<string> names, string resultKind, list<Trait> traits>
    : NN_Op<mnemonic, [SameOperandsAndResultShape, InferTypeOpInterface, PointwiseOpInterface,
                       CostOpInterface] # traits> {
  list<OnnxOp> onnx = [];
  string value = "";
  list<string> gradient = [];
  int flops = 1;
  string ulp = "0.5";
  bit cancels = 0;

  dag arguments = !con((ins), !dag(ins, !foreach(n, names, NN_Tensor), names));
  dag results = (outs NN_Tensor:$result);

  code extraClassDeclaration = [{
    static ::mlir::LogicalResult inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties,
        ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::trainc::nn::inferPointwiseType(location, operands, "}] # resultKind # [{", types);
    }
    static ::llvm::ArrayRef<::llvm::StringRef> operandNames() {
      static const ::llvm::StringRef names[] = }] # "{\"" # !interleave(names, "\", \"") # "\"}" # [{;
      return names;
    }
    static ::llvm::StringRef valueExpression() { return "}] # value # [{"; }
    static ::llvm::ArrayRef<::llvm::StringRef> gradientExpressions() {
      static const ::llvm::StringRef list[] = }] # "{\"" # !interleave(gradient, "\", \"") # "\"}" # [{;
      return list;
    }
    static double flopsPerElement() { return }] # flops # [{; }
    static ::trainc::nn::Accuracy accuracy() { return {}] # !if(!eq(ulp, "no floats"), "-1", ulp) # ", " # cancels # [{}; }
    double flops() {
      return flopsPerElement() * static_cast<double>(getResult().getType().getNumElements());
    }
    /// "Name:since" of each ONNX operator that this record imports.
    static ::llvm::ArrayRef<::llvm::StringRef> onnxNames() {
      static const ::llvm::StringRef list[] = }] # "{\"" # !interleave(!foreach(o, onnx, o.name # ":" # o.since), "\", \"") # "\"}" # [{;
      return list;
    }
  }];
}

class Pointwise<string mnemonic, list<string> names>
    : PointwiseBase<mnemonic, names, "same", [Differentiable]> {
  let extraClassDefinition = resultNames # [{
    ::mlir::LogicalResult $cppClass::buildGradient(
        ::trainc::nn::Builder &builder, ::llvm::ArrayRef<::mlir::Value> resultGradients,
        const ::llvm::SmallBitVector &needed,
        ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      return ::trainc::nn::buildPointwiseGradient(getOperation(), builder, resultGradients, needed,
                                                  operandGradients);
    }
  }];
}
class Predicate<string mnemonic, list<string> names>
    : PointwiseBase<mnemonic, names, "bool", [NotDifferentiable]> { let gradient = ["none"]; }
class IntegerLike<string mnemonic, list<string> names>
    : PointwiseBase<mnemonic, names, "same", [NotDifferentiable]> { let gradient = ["none"]; }

// ---- arithmetic primitives

def AddOp : Pointwise<"add", ["a", "b"]> {
  let onnx = [OnnxOp<"Add", 6>];
  let gradient = ["dy", "dy"];
}
def SubOp : Pointwise<"sub", ["a", "b"]> {
  let onnx = [OnnxOp<"Sub", 6>];
  let gradient = ["dy", "-dy"];
}
def MulOp : Pointwise<"mul", ["a", "b"]> {
  let onnx = [OnnxOp<"Mul", 6>];
  let gradient = ["dy * b", "dy * a"];
}
// Integers are rounded towards zero. By zero it has no value: the interpreter fails, and with it the
// import of a model whose shapes need one; a step goes on with 0, as it does with the infinity of floats.
def DivOp : Pointwise<"div", ["a", "b"]> {
  let onnx = [OnnxOp<"Div", 6>];
  let gradient = ["dy / b", "-(dy * y / b)"];
}
def NegOp : Pointwise<"neg", ["x"]> {
  let onnx = [OnnxOp<"Neg", 6>];
  let gradient = ["-dy"];
}
def AbsOp : Pointwise<"abs", ["x"]> {
  let onnx = [OnnxOp<"Abs", 6>];
  let gradient = ["dy * sign(x)"];
}
def ExpOp : Pointwise<"exp", ["x"]> {
  let onnx = [OnnxOp<"Exp", 6>];
  let gradient = ["dy * y"];
  let ulp = "1.1";
  let flops = 10;
}
def Expm1Op : Pointwise<"expm1", ["x"]> {
  let gradient = ["dy * (y + 1)"];
  let ulp = "1.5";
  let flops = 12;
}
def LogOp : Pointwise<"log", ["x"]> {
  let onnx = [OnnxOp<"Log", 6>];
  let gradient = ["dy / x"];
  let ulp = "1";
  let flops = 10;
}
def Log1pOp : Pointwise<"log1p", ["x"]> {
  let gradient = ["dy / (1 + x)"];
  let ulp = "1.4";
  let flops = 12;
}
def SqrtOp : Pointwise<"sqrt", ["x"]> {
  let onnx = [OnnxOp<"Sqrt", 6>];
  let gradient = ["0.5 * dy / y"];
  let flops = 4;
}
def TanhOp : Pointwise<"tanh", ["x"]> {
  let onnx = [OnnxOp<"Tanh", 6>];
  let gradient = ["dy * (1 - y * y)"];
  let ulp = "2";
  let flops = 15;
}
def ErfOp : Pointwise<"erf", ["x"]> {
  let onnx = [OnnxOp<"Erf", 9>];
  let gradient = ["dy * 1.1283791670955126 * exp(-(x * x))"];
  let ulp = "2";
  let flops = 20;
}
def SinOp : Pointwise<"sin", ["x"]> {
  let onnx = [OnnxOp<"Sin", 7>];
  let gradient = ["dy * cos(x)"];
  let ulp = "1";
  let flops = 15;
}
def CosOp : Pointwise<"cos", ["x"]> {
  let onnx = [OnnxOp<"Cos", 7>];
  let gradient = ["-(dy * sin(x))"];
  let ulp = "1";
  let flops = 15;
}
def AtanOp : Pointwise<"atan", ["x"]> {
  let onnx = [OnnxOp<"Atan", 7>];
  let gradient = ["dy / (1 + x * x)"];
  let ulp = "1.4";
  let flops = 15;
}
def AsinOp : Pointwise<"asin", ["x"]> {
  let onnx = [OnnxOp<"Asin", 7>];
  let gradient = ["dy / sqrt((1 - x) * (1 + x))"]; // near 1 without cancellation
  let ulp = "2.4";
  let flops = 15;
}
def AcosOp : Pointwise<"acos", ["x"]> {
  let onnx = [OnnxOp<"Acos", 7>];
  let gradient = ["-(dy / sqrt((1 - x) * (1 + x)))"];
  let ulp = "1.2";
  let flops = 15;
}
def PowOp : Pointwise<"pow", ["x", "e"]> {
  // x^0 is the constant 1, at 0 too; at x = 0 the exponent's gradient is 0: as PyTorch has both.
  let gradient = ["select(e == 0, 0, dy * e * pow(x, e - 1))",
                  "select(x > 0, dy * y * log(select(x > 0, x, 1)), 0)"];
  let ulp = "1";
  let flops = 25;
}
def MinimumOp : Pointwise<"minimum", ["a", "b"]> {
  // NaN wins. Ties share the gradient evenly, as in PyTorch; with a NaN both have it.
  let gradient = ["select(a > b, 0, select(a == b, 0.5 * dy, dy))",
                  "select(b > a, 0, select(a == b, 0.5 * dy, dy))"];
}
def MaximumOp : Pointwise<"maximum", ["a", "b"]> {
  let gradient = ["select(a < b, 0, select(a == b, 0.5 * dy, dy))",
                  "select(b < a, 0, select(a == b, 0.5 * dy, dy))"];
}
// condition is bool; a and b share the result's type.
def SelectOp : Pointwise<"select", ["condition", "a", "b"]> {
  let onnx = [OnnxOp<"Where", 9>];
  let gradient = ["none", "select(condition, dy, 0)", "select(condition, 0, dy)"];
}
def FloorOp : IntegerLike<"floor", ["x"]> { let onnx = [OnnxOp<"Floor", 6>]; }
def CeilOp : IntegerLike<"ceil", ["x"]> { let onnx = [OnnxOp<"Ceil", 6>]; }
def RoundOp : IntegerLike<"round", ["x"]> { let onnx = [OnnxOp<"Round", 11>]; } // half to even
// Its operand, to which no gradient passes: PyTorch's detach().
def DetachOp : IntegerLike<"detach", ["x"]> {
  let value = "x";
  let flops = 0;
}
// Sign of the dividend; (a - y) / b is the quotient rounded towards zero. Of integers by zero: as
// div, but a step goes on with the dividend.
def RemainderOp : Pointwise<"remainder", ["a", "b"]> {
  let gradient = ["dy", "-(dy * ((a - y) / b))"];
}
def EqualOp : Predicate<"equal", ["a", "b"]> { let onnx = [OnnxOp<"Equal", 1>]; }
def LessOp : Predicate<"less", ["a", "b"]> { let onnx = [OnnxOp<"Less", 1>]; }
def LessOrEqualOp : Predicate<"less_or_equal", ["a", "b"]> { let onnx = [OnnxOp<"LessOrEqual", 12>]; }
def GreaterOp : Predicate<"greater", ["a", "b"]> { let onnx = [OnnxOp<"Greater", 1>]; }
def GreaterOrEqualOp : Predicate<"greater_or_equal", ["a", "b"]> { let onnx = [OnnxOp<"GreaterOrEqual", 12>]; }
def AndOp : Predicate<"and", ["a", "b"]> { let onnx = [OnnxOp<"And", 1>]; let ulp = "no floats"; }
def OrOp : Predicate<"or", ["a", "b"]> { let onnx = [OnnxOp<"Or", 1>]; let ulp = "no floats"; }
def XorOp : Predicate<"xor", ["a", "b"]> { let onnx = [OnnxOp<"Xor", 1>]; let ulp = "no floats"; }
def NotOp : Predicate<"not", ["x"]> { let onnx = [OnnxOp<"Not", 1>]; let ulp = "no floats"; }
// Integers, bit by bit.
def BitAndOp : IntegerLike<"bit_and", ["a", "b"]> { let onnx = [OnnxOp<"BitwiseAnd", 18>]; let ulp = "no floats"; }
def BitOrOp : IntegerLike<"bit_or", ["a", "b"]> { let onnx = [OnnxOp<"BitwiseOr", 18>]; let ulp = "no floats"; }
def BitXorOp : IntegerLike<"bit_xor", ["a", "b"]> { let onnx = [OnnxOp<"BitwiseXor", 18>]; let ulp = "no floats"; }
def IsNaNOp : Predicate<"is_nan", ["x"]> { let onnx = [OnnxOp<"IsNaN", 9>]; }

// ---- composed of the primitives. A comparison with NaN is false: what a selection takes then
// is the operand itself, so that a divergence stays visible.

def SignOp : IntegerLike<"sign", ["x"]> {
  let onnx = [OnnxOp<"Sign", 9>];
  let value = "select(x > 0, 1, select(x < 0, -1, select(x == 0, 0, x)))";
}
def BitNotOp : IntegerLike<"bit_not", ["x"]> {
  let onnx = [OnnxOp<"BitwiseNot", 18>];
  let value = "-1 - x"; // of two's complements
  let ulp = "no floats";
}
def ReciprocalOp : Pointwise<"reciprocal", ["x"]> {
  let onnx = [OnnxOp<"Reciprocal", 6>];
  let value = "1 / x";
  let gradient = ["-(dy * y * y)"];
}
def RsqrtOp : Pointwise<"rsqrt", ["x"]> {
  let value = "1 / sqrt(x)";
  let gradient = ["-0.5 * dy * y * y * y"];
  let ulp = "1.5";
  let flops = 5;
}
def SigmoidOp : Pointwise<"sigmoid", ["x"]> {
  let onnx = [OnnxOp<"Sigmoid", 6>];
  let value = "1 / (1 + exp(-x))";
  let gradient = ["dy * y * (1 - y)"];
  let ulp = "3";
  let flops = 13;
}
def ReluOp : Pointwise<"relu", ["x"]> {
  let onnx = [OnnxOp<"Relu", 6>];
  let value = "select(x <= 0, 0, x)"; // 0 for -0, too
  let gradient = ["select(y <= 0, 0, dy)"];
}
def SoftplusOp : Pointwise<"softplus", ["x"]> {
  let onnx = [OnnxOp<"Softplus", 1>];
  // log(1 + exp(x)) without overflow.
  let value = "maximum(x, 0) + log1p(exp(-abs(x)))";
  let gradient = ["dy * sigmoid(x)"];
  let ulp = "2.5";
  let flops = 25;
}
def SoftsignOp : Pointwise<"softsign", ["x"]> {
  let onnx = [OnnxOp<"Softsign", 1>];
  let value = "x / (1 + abs(x))";
  let gradient = ["dy / ((1 + abs(x)) * (1 + abs(x)))"];
  let ulp = "1.5";
  let flops = 3;
}
def TanOp : Pointwise<"tan", ["x"]> {
  let onnx = [OnnxOp<"Tan", 7>];
  let value = "sin(x) / cos(x)";
  let gradient = ["dy * (1 + y * y)"];
  let ulp = "2";
  let flops = 31;
}
// The first halves of the hyperbolic functions are for where exp(|x|) itself may overflow.
def SinhOp : Pointwise<"sinh", ["x"]> {
  let onnx = [OnnxOp<"Sinh", 9>];
  let value = "sign(x) * select(abs(x) > 80, 0.5 * exp(0.5 * abs(x)) * exp(0.5 * abs(x)), 0.5 * (expm1(abs(x)) + expm1(abs(x)) / (expm1(abs(x)) + 1)))";
  let gradient = ["dy * cosh(x)"];
  let ulp = "4";
  let flops = 30;
}
def CoshOp : Pointwise<"cosh", ["x"]> {
  let onnx = [OnnxOp<"Cosh", 9>];
  let value = "select(abs(x) > 80, 0.5 * exp(0.5 * abs(x)) * exp(0.5 * abs(x)), 0.5 * (exp(abs(x)) + exp(-abs(x))))";
  let gradient = ["dy * sinh(x)"];
  let ulp = "4";
  let flops = 25;
}
// Beyond 1e9 the root is x itself, and its square may overflow.
def AsinhOp : Pointwise<"asinh", ["x"]> {
  let onnx = [OnnxOp<"Asinh", 9>];
  let value = "sign(x) * select(abs(x) > 1000000000, log(abs(x)) + 0.6931471805599453, log1p(abs(x) + x * x / (1 + sqrt(1 + x * x))))";
  let gradient = ["dy / sqrt(1 + x * x)"];
  let ulp = "4";
  let flops = 25;
}
def AcoshOp : Pointwise<"acosh", ["x"]> {
  let onnx = [OnnxOp<"Acosh", 9>];
  let value = "select(x > 1000000000, log(x) + 0.6931471805599453, log1p(x - 1 + sqrt(x - 1) * sqrt(x + 1)))";
  let gradient = ["dy / (sqrt(x - 1) * sqrt(x + 1))"];
  let ulp = "4";
  let flops = 25;
}
def AtanhOp : Pointwise<"atanh", ["x"]> {
  let onnx = [OnnxOp<"Atanh", 9>];
  let value = "0.5 * sign(x) * log1p(2 * abs(x) / (1 - abs(x)))";
  let gradient = ["dy / ((1 - x) * (1 + x))"];
  let ulp = "4";
  let flops = 20;
}
// Gaussian error linear unit, x * Phi(x), with the exact error function.
def GeluOp : Pointwise<"gelu", ["x"]> {
  let value = "0.5 * x * (1 + erf(x * 0.7071067811865476))";
  let gradient = ["dy * (0.5 * (1 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x))"];
  let ulp = "2.5";
  let cancels = 1;
  let flops = 25;
}
// Its tanh approximation (Hendrycks and Gimpel 2016).
def GeluTanhOp : Pointwise<"gelu_tanh", ["x"]> {
  let value = "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))";
  let gradient = ["dy * (0.5 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) + 0.5 * x * (1 - tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)) * tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) * 0.7978845608028654 * (1 + 0.134145 * x * x))"];
  let ulp = "3";
  let cancels = 1;
  let flops = 25;
}

#endif
