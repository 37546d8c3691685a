// SPDX-License-Identifier: Apache-2.0
//
// How a target runs a kernel. schedule-kernels decides, the verifier compares the
// decision with the kernel (schedule.cpp), and the printers of a target print it.
// Results depend on what is written here alone, never on a machine.
#ifndef TRAINC_KERNEL_SCHEDULE
#define TRAINC_KERNEL_SCHEDULE

def Kernel_CpuSchedule : AttrDef<Kernel_Dialect, "CpuSchedule"> {
  let mnemonic = "cpu_schedule";
  let summary = "How a CPU runs a kernel";
  let description = [{
    Threads share the `parallel` outermost of the loops whose order is free, as one loop; 0:
    one thread runs the kernel.

    `block`: in form column, the columns that one thread sums side by side, neighbours along
    the last dimension. In form full, what one partial result is reduced from: elements where
    there is one dimension, else rows of the last; 0: there are no partial results.

    `chunk`, in form column: the rows that one thread sums where rows are cut; 0: they are not.
  }];
  let parameters = (ins "int64_t":$parallel, DefaultValuedParameter<"int64_t", "0">:$block,
                        DefaultValuedParameter<"int64_t", "0">:$chunk);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_Stage : I32EnumAttr<"Stage", "part of a kernel that one device function does", [
    I32EnumAttrCase<"whole", 0>,
    // The reduction, cut into parts: partial results in scratch.
    I32EnumAttrCase<"parts", 1>,
    // What the partial results give together, and what is stored.
    I32EnumAttrCase<"total", 2>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Worker : I32EnumAttr<"Worker", "threads that work on one result", [
    I32EnumAttrCase<"thread", 0>, I32EnumAttrCase<"warp", 1>, I32EnumAttrCase<"block", 2>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_DeviceFunction : AttrDef<Kernel_Dialect, "DeviceFunction"> {
  let mnemonic = "device_function";
  let summary = "How one __global__ function shares its work";
  let description = [{
    It is launched with `blocks` times `blocks_y` blocks of `threads` threads. A `worker` works on
    one point (form pointwise), row, column or the only result at a time; a block with `columns`
    works on that many columns, each of them by the threads of one place in all of its
    warps. A thread accesses `vector` neighbours along the last dimension at once where it
    walks that, or has them as columns. With `rounds`, in form row, it does so that often in each phase, all
    written out, and holds what several phases read (heldBuffers); the row's end may cut a vector. Where the blocks of a pointwise kernel have fewer threads than there are points, they loop.
  }];
  let parameters = (ins EnumParameter<Kernel_Stage>:$stage, EnumParameter<Kernel_Worker>:$worker,
                        "int64_t":$threads, "int64_t":$blocks,
                        DefaultValuedParameter<"int64_t", "1">:$blocks_y,
                        DefaultValuedParameter<"int64_t", "1">:$columns,
                        DefaultValuedParameter<"int64_t", "1">:$vector,
                        DefaultValuedParameter<"int64_t", "0">:$rounds);
  let assemblyFormat = [{
    `<` $stage `,` $worker `,` struct($threads, $blocks, $blocks_y, $columns, $vector, $rounds) `>`
  }];
}

def Kernel_Parts : AttrDef<Kernel_Dialect, "Parts"> {
  let mnemonic = "parts";
  let summary = "How a reduction is cut, and where its partial results lie in scratch";
  let description = [{
    A part is `rows` consecutive rows of a column; without, parts are strewn over everything. `offsets`
    has one place for each result of the kernel.reduce, in bytes, part after part; scratch has `bytes`.
  }];
  let parameters = (ins "int64_t":$count, DefaultValuedParameter<"int64_t", "0">:$rows,
                        ArrayRefParameter<"int64_t">:$offsets, "int64_t":$bytes);
  let assemblyFormat = "`<` $count (`of` $rows^ `rows`)? `at` ` ` `[` $offsets `]` `in` $bytes `bytes` `>`";
}

def Kernel_CudaSchedule : AttrDef<Kernel_Dialect, "CudaSchedule"> {
  let mnemonic = "cuda_schedule";
  let summary = "How a GPU runs a kernel: one device function for the whole, or one for parts and one for the total";
  let parameters = (ins ArrayRefParameter<"DeviceFunctionAttr">:$functions,
                        OptionalParameter<"PartsAttr">:$parts);
  let assemblyFormat = "`<` `[` $functions `]` (`parts` $parts^)? `>`";
}

def Kernel_Schedule : AnyAttrOf<[Kernel_CpuSchedule, Kernel_CudaSchedule], "schedule of a target">;

#endif
