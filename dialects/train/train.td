// SPDX-License-Identifier: Apache-2.0
//
// The train dialect: what the arguments and results of entry functions are. It
// has attributes alone. Each argument or result has at most one role, as the
// attribute `train.role`; a role in the wrong place, a name that means nothing
// and any other attribute `train.*` are errors of the verifier (train.cpp).
#ifndef TRAINC_TRAIN
#define TRAINC_TRAIN

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::trainc::train";
  let summary = "Roles of tensors in training";
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasOperationAttrVerify = 1;
}

// A run is a contiguous part of the flat arena of parameters. The two trained ones are there for
// each group of parameters (`train.groups`, those in none first), then buffers and frozen ones. The
// gradients arena has the same offsets without frozen parameters, a slot of optimizer
// state without buffers besides.
def Train_Run : I32EnumAttr<"Run", "part of the flat parameters", [
    I32EnumAttrCase<"decayed", 0>,   // trained, with weight decay
    I32EnumAttrCase<"undecayed", 1>, // trained, without
    I32EnumAttrCase<"buffer", 2>,    // replaced by the step
    I32EnumAttrCase<"frozen", 3>]> {
  let cppNamespace = "::trainc::train";
  let genSpecializedAttr = 0;
}

// Where the planner of memory puts a tensor with a role.
def Train_Placement : I32EnumAttr<"Placement", "where a tensor lies", [
    I32EnumAttrCase<"own", 0>,        // where its step puts it
    I32EnumAttrCase<"parameter", 1>,  // in the parameters, by its name
    I32EnumAttrCase<"gradient", 2>,   // in the gradients, by its name
    I32EnumAttrCase<"flat", 3>,       // a whole run of parameters, gradients or states
    I32EnumAttrCase<"totals", 4>,     // after the gradients
    I32EnumAttrCase<"activations", 5>, // pinned there for the whole step, by getPlaceName
    I32EnumAttrCase<"workspace", 6>,   // likewise
    I32EnumAttrCase<"copy", 7>]> {     // after the parameters, by the parameter's name
  let cppNamespace = "::trainc::train";
  let genSpecializedAttr = 0;
}

def RoleAttrInterface : AttrInterface<"RoleAttrInterface"> {
  let cppNamespace = "::trainc::train";
  let description = [{What a tensor at the boundary of a function is.}];
  let methods = [
    InterfaceMethod<[{
      The tensor's name in the ONNX file; null where it has none.
    }], "::mlir::StringAttr", "getName", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      What people call it: the module's name where the exporter made up the other one.
    }], "::mlir::StringAttr", "getTitle", (ins), "", [{ return $_attr.getName(); }]>,
    InterfaceMethod<[{
      Where it lies.
    }], "::trainc::train::Placement", "getPlacement">,
    InterfaceMethod<[{
      What tells its place from others of the arena: equal names are one place.
    }], "std::string", "getPlaceName", (ins), "",
        [{ return $_attr.getName() ? $_attr.getName().str() : std::string(); }]>,
    InterfaceMethod<[{
      What a result is called in plans and emitted code; empty: as the node that made it.
    }], "std::string", "getResultName", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
      Its name in a micro-batch's slot of a chunk's stash, of what other passes of the chunk read or
      the step adds up; empty: it is not there.
    }], "std::string", "getKeptName", (ins), "", [{ return {}; }]>
  ];
}

class Train_Attr<string name, string word, list<Trait> traits = []>
    : AttrDef<Train_Dialect, name, traits> {
  let mnemonic = word;
}

// What may have a role, and what its tensor is. The verifier asks for these (train.cpp).
class Train_Facet<string name> : NativeAttrTrait<name> {
  let cppNamespace = "::trainc::train";
}
def OfArgument : Train_Facet<"OfArgument">;
def OfResult : Train_Facet<"OfResult">;
def OfFloats : Train_Facet<"OfFloats">;
def Scalar : Train_Facet<"Scalar">;

// A role answers its interface with these expressions of C++; one that is empty leaves the default.
class Train_Role<string name, string word, list<Trait> facets, string placement = "own">
    : Train_Attr<name, word, [RoleAttrInterface] # facets> {
  string givenName = "";
  string title = "";
  string placeName = "";
  string resultName = "";
  string keptName = "";
  string more = "";
  let extraClassDeclaration =
      "::trainc::train::Placement getPlacement() const { return ::trainc::train::Placement::" # placement # "; }" #
      !if(!empty(givenName), "", "::mlir::StringAttr getName() const { return " # givenName # "; }") #
      !if(!empty(title), "", "::mlir::StringAttr getTitle() const { return " # title # "; }") #
      !if(!empty(placeName), "", "std::string getPlaceName() const { return " # placeName # "; }") #
      !if(!empty(resultName), "", "std::string getResultName() const { return " # resultName # "; }") #
      !if(!empty(keptName), "", "std::string getKeptName() const { return " # keptName # "; }") # more;
}

// A role that is a name and nothing else.
class Train_NamedRole<string name, string word, list<Trait> facets, string placement = "own">
    : Train_Role<name, word, facets, placement> {
  let parameters = (ins "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` $name `>`";
}

// Number of a group of parameters, from 1, in the list `train.groups` of the module; 0: of none.
def Train_Group : DefaultValuedParameter<"int64_t", "0">;

// A role that is the flat tensor of one run.
class Train_RunRole<string name, string word, list<Trait> facets> : Train_Role<name, word, facets, "flat"> {
  let parameters = (ins EnumParameter<Train_Run>:$run, Train_Group:$group);
  let assemblyFormat = "`<` $run (`,` struct($group)^)? `>`";
}

// ---- arguments of the model and of the entry functions made from it

def Train_Parameter : Train_Role<"Parameter", "parameter", [OfArgument, OfFloats], "parameter"> {
  let summary = "A weight: trained, or frozen";
  let description = [{`#train.parameter<"val_115", run = decayed, module = "h.1.mlp.c_proj.weight", group = 2>`}];
  let parameters = (ins "::mlir::StringAttr":$name,
                        DefaultValuedParameter<"::trainc::train::Run", "::trainc::train::Run::undecayed">:$run,
                        OptionalParameter<"::mlir::StringAttr">:$module, Train_Group:$group);
  let assemblyFormat = "`<` $name (`,` struct($run, $module, $group)^)? `>`";
  let title = [{getModule() ? getModule() : getName()}];
  let more = [{ bool isFrozen() const { return getRun() == Run::frozen; } }];
  let genVerifyDecl = 1;
}

def Train_ParameterCopy : Train_Role<"ParameterCopy", "parameter_copy", [OfArgument, OfFloats], "copy"> {
  let summary = "A parameter rounded to the 16 bits that products read";
  let description = [{
    `#train.parameter_copy<"val_115", title = "h.1.mlp.c_proj.weight.bf16">`, of the parameter of this name. `@update`
    writes it with the parameter, `@round_parameters` where something else wrote that.
  }];
  let parameters = (ins "::mlir::StringAttr":$parameter, "::mlir::StringAttr":$title);
  let assemblyFormat = "`<` $parameter `,` struct($title) `>`";
}

def Train_Buffer : Train_Role<"Buffer", "buffer", [OfArgument, OfFloats], "parameter"> {
  let summary = "A tensor that the step replaces, such as a running mean; has no gradient";
  let parameters = (ins "::mlir::StringAttr":$name, OptionalParameter<"::mlir::StringAttr">:$module);
  let assemblyFormat = "`<` $name (`,` struct($module)^)? `>`";
  let title = [{getModule() ? getModule() : getName()}];
}

def Train_Input : Train_Role<"Input", "input", [OfArgument], "activations"> {
  let summary = "What a sample brings";
  let description = [{
    Integers that index a table are in [index_low, index_bound), from 0 unless it is said; a loss of
    the model's own also allows `ignore_index`.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, OptionalParameter<"std::optional<int64_t>">:$index_bound,
                        OptionalParameter<"std::optional<int64_t>">:$ignore_index,
                        OptionalParameter<"std::optional<int64_t>">:$index_low);
  let assemblyFormat = "`<` $name (`,` struct($index_bound, $ignore_index, $index_low)^)? `>`";
  let keptName = [{getName().str()}];
}

def Train_Label : Train_Role<"Label", "label", [OfArgument], "activations"> {
  let summary = "What the loss compares with; `ignore_index` is allowed besides";
  let parameters = (ins "::mlir::StringAttr":$name, OptionalParameter<"std::optional<int64_t>">:$index_bound,
                        OptionalParameter<"std::optional<int64_t>">:$ignore_index);
  let assemblyFormat = "`<` $name (`,` struct($index_bound, $ignore_index)^)? `>`";
  let keptName = [{getName().str()}];
}

// ---- results

def Train_Loss : Train_Role<"Loss", "loss", [OfResult], "activations"> {
  let summary = "The mean loss of one micro-batch";
  let placeName = [{"loss of the step"}];
  let resultName = [{"loss"}];
  let keptName = [{getName().str()}];
  let givenName = [{::mlir::StringAttr::get(getContext(), "loss")}];
}

def Train_LossPart : Train_Role<"LossPart", "loss_part", [OfResult, Scalar], "activations"> {
  let summary = "One of several means that the loss is the sum of, each with a weight of its own";
  let description = [{
    `#train.loss_part<1>` of `@model` and `@evaluate`: over a step, or an evaluation, each part is the sum of the
    micro-batches' means times their weights (`#train.loss_weight<1>`; 1 where it has none), over the sum of the weights; with
    `is_sum` it is their sum. Absent where the loss is a single mean.
  }];
  let parameters = (ins "int64_t":$part, DefaultValuedParameter<"bool", "false">:$is_sum);
  let assemblyFormat = "`<` $part (`,` struct($is_sum)^)? `>`";
  let placeName = [{"loss part " + std::to_string(getPart())}];
  let resultName = [{"loss_part_" + std::to_string(getPart())}];
}

def Train_LossWeight : Train_Role<"LossWeight", "loss_weight", [OfResult, Scalar], "activations"> {
  let summary = "What the micro-batch's mean loss weighs in the step's: 1 where all its labels count";
  let description = [{
    The step's loss is the sum of the micro-batches' losses times their weights, over the sum of
    the weights; its gradient likewise. Absent where every weight is 1. `#train.loss_weight<1>` is that of a part.
  }];
  let parameters = (ins OptionalParameter<"std::optional<int64_t>">:$part);
  let assemblyFormat = "(`<` $part^ `>`)?";
  let placeName = [{"loss weight of the step" + textOfPart(", part ", getPart())}];
  let resultName = [{"loss_weight" + textOfPart("_of_part_", getPart())}];
  let keptName = [{kKeptLossWeight.str()}];
}

def Train_SampleLosses : Train_Role<"SampleLosses", "sample_losses", [OfResult], "activations"> {
  let summary = "The loss of each sample, or that part of it, for a batch that is not full; `@evaluate` alone has it";
  let parameters = (ins OptionalParameter<"std::optional<int64_t>">:$part);
  let assemblyFormat = "(`<` $part^ `>`)?";
  let placeName = [{"losses of the samples" + textOfPart(", part ", getPart())}];
  let resultName = [{"sample_losses" + textOfPart("_of_part_", getPart())}];
}

def Train_Metric : Train_Role<"Metric", "metric", [OfResult], "activations"> {
  let summary = "What an evaluation tells people besides the loss; `@evaluate` alone has it";
  let description = [{
    `#train.metric<"accuracy">`: a scalar, the mean over the labels that count in the loss, which weighs what the loss
    weighs, or with `weight = 0` what `#train.metric_weight<0>` says; or the number of each sample.
  }];
  let parameters = (ins "::mlir::StringAttr":$metric, OptionalParameter<"std::optional<int64_t>">:$weight);
  let assemblyFormat = "`<` $metric (`,` struct($weight)^)? `>`";
  let placeName = [{getMetric().str() + " of the batch"}];
  let resultName = [{getMetric().str()}];
}

def Train_MetricWeight : Train_Role<"MetricWeight", "metric_weight", [OfResult, Scalar], "activations"> {
  let summary = "How many labels some metrics are means over, where the loss weighs something else";
  let parameters = (ins "int64_t":$number);
  let assemblyFormat = "`<` $number `>`";
  let placeName = [{"metric weight " + std::to_string(getNumber())}];
  let resultName = [{"metric_weight_" + std::to_string(getNumber())}];
}

def Train_Output : Train_NamedRole<"Output", "output", [OfResult]> {
  let summary = "An output of the model";
}

def Train_Gradient : Train_NamedRole<"Gradient", "gradient", [OfResult], "gradient"> {
  let summary = "Gradient of the loss for the parameter of this name";
}

def Train_NewValue : Train_NamedRole<"NewValue", "new_value", [OfResult], "gradient"> {
  let summary = "What one micro-batch makes of the buffer of this name";
}

def Train_StepTotals : Train_Role<"StepTotals", "step_totals", [OfArgument, OfResult], "totals"> {
  let summary = "What micro-batches and ranks sum beside the gradients, in the same order";
  let description = [{
    Three numbers: the loss weight, the loss times its weight, and how many micro-batches had a fault
    (a batch that could not be read, an index out of range). `@update` reads their sums: with a fault,
    or with a sum that is not finite, it leaves everything as it was.
  }];
  let title = [{::mlir::StringAttr::get(getContext(), "step_totals")}];
  let resultName = [{"step_totals"}];
}

def Train_CheckedIndex : Train_Attr<"CheckedIndex", "checked_index"> {
  let summary = "A node whose index, which the model computes, is to be in [low, end)";
  let parameters = (ins "::mlir::StringAttr":$node, "int64_t":$low, "int64_t":$end);
  let assemblyFormat = "`<` $node `,` struct($low, $end) `>`";
}

def Train_IndexCheck : Train_Role<"IndexCheck", "index_check", [OfResult], "activations"> {
  let summary = "Which index that the model computes was out of range";
  let description = [{
    Two f64: the number of the first check of the list that failed, from 1, and an index that
    failed it; 0 and 0 where none did. `#train.index_check<[#train.checked_index<"h.gather", low = -3, end = 3>]>`
  }];
  let parameters = (ins "::mlir::ArrayAttr":$checks);
  let assemblyFormat = "`<` $checks `>`";
  let genVerifyDecl = 1;
  let placeName = [{"index check of the step"}];
  let resultName = [{"index_check"}];
  let keptName = [{kKeptIndexCheck.str()}];
}

// ---- the stages of a pipeline

def Train_ChunkPass : I32EnumAttr<"ChunkPass", "pass of a micro-batch through a chunk of the model", [
    I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"backward", 1>, I32EnumAttrCase<"weight_gradient", 2>]> {
  let cppNamespace = "::trainc::train";
  let genSpecializedAttr = 0;
}

def Train_Chunk : Train_Attr<"Chunk", "chunk"> {
  let summary = "Of an entry function: the chunk that it computes of a micro-batch, and the pass";
  let description = [{
    `#train.chunk<forward of 0>`. Chunk c is on stage c modulo the number of stages. Where chunks have a
    `weight_gradient`, their `backward` computes what other chunks wait for alone.
  }];
  let parameters = (ins EnumParameter<Train_ChunkPass>:$chunk_pass, "int64_t":$number);
  let assemblyFormat = "`<` $chunk_pass `of` $number `>`";
}

def Train_Pipeline : Train_Attr<"Pipeline", "pipeline"> {
  let summary = "How many stages a step goes through, with how many micro-batches, by which schedule";
  let description = [{
    `#train.pipeline<stages = 2, chunks_per_stage = 1, micro_batches = 8, schedule = "1f1b", cuts = ["h.1.add"]>`:
    cut behind these nodes.
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$chunks_per_stage, "int64_t":$micro_batches,
                        "::mlir::StringAttr":$schedule, "::mlir::ArrayAttr":$cuts);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = "int64_t chunks() const { return getStages() * getChunksPerStage(); }";
}

def Train_Kept : Train_NamedRole<"Kept", "kept", [OfArgument, OfResult]> {
  let summary = "What a micro-batch's passes leave in its slot of a chunk's stash";
  let description = [{
    As a result of a function: made there. As an argument of a forward function: received, from the chunk
    whose result has this name. As an argument of another: in its chunk's slot.
  }];
  let keptName = [{getName().str()}];
}

def Train_Passed : Train_NamedRole<"Passed", "passed", [OfArgument, OfResult]> {
  let summary = "What the backward function of a chunk hands to that of an earlier one, for each micro-batch";
}

// ---- @update

def Train_RunParameters : Train_RunRole<"RunParameters", "run_parameters", [OfArgument, OfResult, OfFloats]> {
  let summary = "All parameters of a run; as a result, what the step makes of them";
}

def Train_RunCopies : Train_RunRole<"RunCopies", "run_copies", [OfResult, OfFloats]> {
  let summary = "All parameters of a run, rounded to 16 bits: what the step makes of them";
}

def Train_RunGradients : Train_RunRole<"RunGradients", "run_gradients", [OfArgument, OfFloats]> {
  let summary = "Sums over the step's micro-batches: gradients, or new values of buffers";
}

def Train_State : Train_Role<"State", "state", [OfArgument, OfResult], "flat"> {
  let summary = "One slot of the optimizer's state for a run; as a result, its new value";
  let parameters = (ins EnumParameter<Train_Run>:$run, "int64_t":$slot, Train_Group:$group);
  let assemblyFormat = "`<` $run `,` `slot` `=` $slot (`,` struct($group)^)? `>`";
}

def Train_Scalar : Train_NamedRole<"Scalar", "scalar", [OfArgument, Scalar], "workspace"> {
  let summary = "A number that the trainer sets";
}

def Train_RandomKey : Train_Role<"RandomKey", "random_key", [OfArgument, Scalar], "workspace"> {
  let summary = "What the random numbers of a micro-batch follow from; the trainer sets it";
  let placeName = [{"random_key of the micro-batch"}];
  let title = [{::mlir::StringAttr::get(getContext(), "random_key")}];
}

def Train_BatchFault : Train_Role<"BatchFault", "batch_fault", [OfArgument, Scalar], "workspace"> {
  let summary = "Above 0: the trainer could not read the micro-batch, and what it holds is none";
  let placeName = [{"batch_fault of the micro-batch"}];
  let title = [{::mlir::StringAttr::get(getContext(), "batch_fault")}];
}

def Train_MeanPerBatch : Train_Role<"MeanPerBatch", "mean_per_batch", [OfArgument, Scalar], "workspace"> {
  let summary = "Above 0: every micro-batch weighs 1, however many of its labels count";
  let placeName = [{"mean_per_batch of the micro-batch"}];
  let title = [{::mlir::StringAttr::get(getContext(), "mean_per_batch")}];
}

def Train_LossScale : Train_Role<"LossScale", "loss_scale", [OfArgument, Scalar], "workspace"> {
  let summary = "What the gradients of a step are times those of its loss; the trainer sets it";
  let description = [{
    Argument of `@forward_backward` and of `@update` where products read floats of little range, in which small
    gradients would be 0.
  }];
  let placeName = [{"loss_scale"}];
  let title = [{::mlir::StringAttr::get(getContext(), "loss_scale")}];
}

def Train_PartScale : Train_Role<"PartScale", "part_scale", [OfArgument, Scalar], "workspace"> {
  let summary = "What turns a part's sum over the micro-batch into its share of the step's loss; the trainer sets it";
  let description = [{
    Argument of `@forward_backward`: the number of micro-batches over the sum of their weights for this part
    (`#train.loss_weight<0>` of `@count_labels`); of a sum, the number of micro-batches.
  }];
  let parameters = (ins "int64_t":$part);
  let assemblyFormat = "`<` $part `>`";
  let placeName = [{"scale of loss part " + std::to_string(getPart())}];
}

def Train_GradientNorm : Train_Role<"GradientNorm", "gradient_norm", [OfResult, Scalar], "workspace"> {
  let summary = "Norm of the mean gradient over all trained parameters; not finite: the step was skipped";
  let givenName = [{::mlir::StringAttr::get(getContext(), "gradient_norm")}];
}

// ---- the module

def Train_Placed : Train_Attr<"Placed", "placed"> {
  let summary = "Where a parameter or buffer lies in the flat arena, in elements";
  let parameters = (ins "::mlir::StringAttr":$name, EnumParameter<Train_Run>:$run,
                        "int64_t":$offset, "int64_t":$count, Train_Group:$group);
  let assemblyFormat = "`<` $name `,` $run `at` $offset `,` $count `elements` (`,` struct($group)^)? `>`";
}

def Train_Target : Train_Attr<"Target", "target"> {
  let summary = "What the program computes on";
  let description = [{`#train.target<"cuda", march = "sm_80, sm_90", architectures = ["80", "90"]>`}];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::StringAttr":$march,
                        "::mlir::ArrayAttr":$architectures);
  let assemblyFormat = "`<` $name `,` struct($march, $architectures) `>`";
}

def Train_ExportForm : I32EnumAttr<"ExportForm", "how an initializer comes from its parameter", [
    I32EnumAttrCase<"copy", 0>, I32EnumAttrCase<"transposed", 1>]> {
  let cppNamespace = "::trainc::train";
  let genSpecializedAttr = 0;
}

def Train_Export : Train_Attr<"Export", "export"> {
  let summary = "An initializer of the model's file that export writes, and where its values come from";
  let description = [{
    `#train.export<"lm_head.weight", transposed of "wte.weight">`; with `as f16` or `as bf16` the values are
    rounded to that.
  }];
  let parameters = (ins "::mlir::StringAttr":$initializer, EnumParameter<Train_ExportForm>:$form,
                        "::mlir::StringAttr":$parameter, OptionalParameter<"::mlir::Type">:$type);
  let assemblyFormat = "`<` $initializer `,` $form `of` $parameter (`as` $type^)? `>`";
}

def Train_Quantized : Train_Attr<"Quantized", "quantized"> {
  let summary = "How the file has a frozen weight as integers with scales";
  let description = [{
    The weight, the numbers of `quantized_layout` (runtime/kernels/dequantize.h), the tensor of integers, then
    the names of the tensors of scales and of zero points:

        #train.quantized<tensor<64x64xf32> by [4, 0, 8, 64, 64, 1, 32, 64, 2, 1, 0, 2], tensor<64x32xui8>, "w_scale" as tensor<64x2xf32>>
  }];
  let parameters = (ins "::mlir::Type":$weight, ArrayRefParameter<"int64_t">:$layout,
                        "::mlir::Type":$integers,
                        "::mlir::StringAttr":$scales, "::mlir::Type":$scalesType,
                        OptionalParameter<"::mlir::StringAttr">:$zeros, OptionalParameter<"::mlir::Type">:$zerosType);
  let assemblyFormat = [{
    `<` $weight `by` `[` $layout `]` `,` $integers `,` $scales `as` $scalesType (`,` $zeros^ `as` $zerosType)? `>`
  }];
}

def Train_Layout : Train_Attr<"Layout", "layout"> {
  let summary = "The flat arena: elements of each run, padding included, and what lies in them";
  let description = [{
    The runs are decayed and undecayed of what is in no group, the same of group 1, of group 2 and so on, then
    buffers and frozen parameters, which are in no group.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$runs, "::mlir::ArrayAttr":$parameters);
  let assemblyFormat = "`<` `runs` `=` `[` $runs `]` `,` `parameters` `=` $parameters `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kTrainedRuns = 2, kOtherRuns = 2;
    /// Where a run stands in the list of them.
    static int64_t indexOf(Run run, int64_t group, int64_t groups) {
      int64_t place = static_cast<int64_t>(run);
      return place < kTrainedRuns ? group * kTrainedRuns + place : (groups - 1) * kTrainedRuns + place;
    }
    /// That of the parameters in none included: one at least.
    int64_t groups() const { return (static_cast<int64_t>(getRuns().size()) - kOtherRuns) / kTrainedRuns; }
    int64_t elementsOf(Run run, int64_t group = 0) const { return getRuns()[indexOf(run, group, groups())]; }
    int64_t offsetOf(Run run, int64_t group = 0) const;
    /// Elements with optimizer state, and those that micro-batches and ranks sum.
    int64_t trainedElements() const { return offsetOf(Run::buffer); }
    int64_t summedElements() const { return offsetOf(Run::frozen); }
    int64_t totalElements() const { return summedElements() + elementsOf(Run::frozen); }
    auto placed() const { return getParameters().getAsRange<PlacedAttr>(); }
  }];
}

#endif
