// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of f32 and of 16 bits by oneDNN, cut into parts by image and by channel, each one
// single-threaded primitive inside our own parallel loop. The parts are a function of the sizes,
// never of the number of threads, and no sum is cut, so the bits depend on the sizes alone. oneDNN
// is several times as fast on its own layouts as on ours (1.6 ms instead of 3.2 for 16 x 64 x 16 x
// 16 and 3 x 3 kernels, on one core with AVX-512), so tensors are copied to those, in the call's
// scratch. Measured with oneDNN 2.6.
//
// bf16 is oneDNN's where the processor multiplies tiles of it (AMX): there one core does 700 to
// 2200 GFLOP/s in place of 150 to 220. Elsewhere tensors are widened first, which takes the time of
// f32.
//
// f64, which serves tests, is plain loops.
#include "runtime/kernels/convolution.h"

#include "runtime/cpu/narrow_lines.h"
#include "runtime/cpu/one_thread.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/row_products.h"
#include "runtime/cpu/thread_memory.h"

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace trainc {

namespace {

using dnnl::memory;

using computed = convolution_part;
// ---- plain loops

// Calls visit(point of the input, tap, point of the result) for all that meet, in this order from
// the inside out: the last dimension of the result, ..., taps.
template <typename Visit> void for_each_meeting(const convolution_space &space, Visit visit) {
  const auto &[input, kernel, result, stride, dilation, before] = space;
  for (int64_t tap = 0; tap < kernel.count(); ++tap) {
    const int64_t at[max_space] = {
        tap / (kernel.of[1] * kernel.of[2]) * dilation.of[0] - before.of[0],
        tap / kernel.of[2] % kernel.of[1] * dilation.of[1] - before.of[1],
        tap % kernel.of[2] * dilation.of[2] - before.of[2]};
    for (int64_t a = 0; a < result.of[0]; ++a) {
      const int64_t i = at[0] + a * stride.of[0];
      if (i < 0 || i >= input.of[0])
        continue;
      for (int64_t b = 0; b < result.of[1]; ++b) {
        const int64_t j = at[1] + b * stride.of[1];
        if (j < 0 || j >= input.of[1])
          continue;
        for (int64_t c = 0; c < result.of[2]; ++c) {
          const int64_t k = at[2] + c * stride.of[2];
          if (k >= 0 && k < input.of[2])
            visit((i * input.of[1] + j) * input.of[2] + k, tap,
                  (a * result.of[1] + b) * result.of[2] + c);
        }
      }
    }
  }
}

// One plane of the computed tensor at a time, each by one thread.
void compute_convolution(computed what, const convolution_shape &shape, const double *first,
                         const double *second, double *to, int64_t, char *) {
  const convolution_space space(shape);
  const int64_t images = shape.input.of[0], inputs = shape.input.of[1], own = shape.weight.of[1];
  const int64_t outputs = shape.weight.of[0], of_group = outputs / shape.groups;
  const int64_t x_plane = space.input.count(), w_plane = space.kernel.count(),
                y_plane = space.result.count();
  const int64_t planes = what == computed::result           ? images * outputs
                         : what == computed::input_gradient ? images * inputs
                                                            : outputs * own;
  const int64_t plane_size = what == computed::result           ? y_plane
                             : what == computed::input_gradient ? x_plane
                                                                : w_plane;
#pragma omp parallel for schedule(static)
  for (int64_t plane = 0; plane < planes; ++plane) {
    double *sums = to + plane * plane_size;
    std::fill(sums, sums + plane_size, 0.0);
    if (what == computed::result) {
      const int64_t image = plane / outputs, output = plane % outputs;
      for (int64_t i = 0; i < own; ++i) {
        const double *x = first + (image * inputs + output / of_group * own + i) * x_plane;
        const double *w = second + (output * own + i) * w_plane;
        for_each_meeting(
            space, [&](int64_t in, int64_t tap, int64_t out) { sums[out] += x[in] * w[tap]; });
      }
    } else if (what == computed::input_gradient) {
      const int64_t image = plane / inputs, input = plane % inputs, group = input / own;
      for (int64_t output = group * of_group; output < (group + 1) * of_group; ++output) {
        const double *dy = first + (image * outputs + output) * y_plane;
        const double *w = second + (output * own + input % own) * w_plane;
        for_each_meeting(
            space, [&](int64_t in, int64_t tap, int64_t out) { sums[in] += dy[out] * w[tap]; });
      }
    } else {
      const int64_t output = plane / own, input = output / of_group * own + plane % own;
      for (int64_t image = 0; image < images; ++image) {
        const double *x = first + (image * inputs + input) * x_plane;
        const double *dy = second + (image * outputs + output) * y_plane;
        for_each_meeting(
            space, [&](int64_t in, int64_t tap, int64_t out) { sums[tap] += x[in] * dy[out]; });
      }
    }
  }
}

// ---- oneDNN

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  // Several threads run one primitive: each needs its own.
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

// A primitive that threads run at the same time, each a call of its own, on the thread itself. What
// a call takes is made before: running allocates nothing.
class prepared_primitive {
public:
  struct argument {
    int what; // DNNL_ARG_...
    memory::desc layout;
  };
  static constexpr int most_arguments = 3;

  prepared_primitive() = default;
  prepared_primitive(dnnl::primitive primitive, const std::vector<argument> &arguments,
                     const memory::desc &scratchpad, int64_t calls)
      : primitive_(std::move(primitive)), scratchpad_bytes_(scratchpad.get_size()) {
    for (const argument &each : arguments)
      kinds_.push_back(each.what);
    kinds_.push_back(DNNL_ARG_SCRATCHPAD);
    for (int64_t call = 0; call < calls; ++call) {
      for (const argument &each : arguments)
        memories_.push_back({each.layout, library_engine(), DNNL_MEMORY_NONE});
      memories_.push_back({scratchpad, library_engine(), DNNL_MEMORY_NONE});
    }
  }

  // Tensors in the order of the arguments.
  void run(int64_t call, std::initializer_list<void *> tensors) const {
    static const dnnl::stream stream(library_engine());
    dnnl_exec_arg_t arguments[most_arguments + 1];
    const memory *own = &memories_[static_cast<size_t>(call) * kinds_.size()];
    size_t count = 0;
    auto add = [&](void *address) {
      own[count].set_data_handle(address);
      arguments[count] = {kinds_[count], own[count].get()};
      ++count;
    };
    for (void *tensor : tensors)
      add(tensor);
    add(thread_memory<char>(scratchpad_bytes_));
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(count), arguments),
        "oneDNN refused a convolution");
  }

private:
  dnnl::primitive primitive_;
  size_t scratchpad_bytes_ = 0;
  std::vector<int> kinds_;
  std::vector<memory> memories_; // of call after call
};

template <typename Work> void for_parts(int64_t count, Work work) {
  const bool parallel = count > 1;
  const one_thread alone(!parallel);
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t index = 0; index < count; ++index)
    work(index);
}

// Parts of a convolution: `images` of equal numbers of images, `channels` of equal numbers of
// channels of the computed tensor, or of groups.
struct part_counts {
  int64_t images = 1, channels = 1;
};

constexpr double smallest_part = 4e6; // flops: some ten microseconds
constexpr int64_t channel_block = 16; // what oneDNN's layouts put side by side

part_counts parts_of(computed what, const convolution_shape &shape) {
  const int64_t images = shape.input.of[0], outputs = shape.weight.of[0],
                inputs = shape.weight.of[1];
  double flops = 2.0 * static_cast<double>(images * outputs * inputs);
  flops *= static_cast<double>(convolution_space(shape).result.count() *
                               convolution_space(shape).kernel.count());
  part_counts parts;
  const bool by_weight = what == computed::weight_gradient;
  const int rank = space_rank(shape);
  const bool weight_outweighs =
      count_of(shape.weight, rank) > count_of(shape.input, rank) + count_of(shape.result, rank);
  const int64_t most = by_weight || weight_outweighs ? 8 : 4; // the others are cut by images too
  int64_t cut = what == computed::input_gradient ? inputs : outputs;
  int64_t narrowest = by_weight ? channel_block : 4 * channel_block;
  if (shape.groups > 1) {
    cut = shape.groups;
    narrowest = outputs == shape.groups ? channel_block : 1;
  }
  while (parts.channels < most && cut % (2 * parts.channels * narrowest) == 0 &&
         flops / static_cast<double>(2 * parts.channels) >= smallest_part)
    parts.channels *= 2;
  if (by_weight || weight_outweighs) // a sum over all images; a weight to be read once
    return parts;
  const double of_image =
      flops / static_cast<double>(std::max<int64_t>(images, 1) * parts.channels);
  int64_t together = 1;
  while (together < images &&
         (images % together != 0 || of_image * static_cast<double>(together) < smallest_part))
    ++together;
  parts.images = images / std::max<int64_t>(together, 1);
  return parts;
}

enum class layouts { any, as_given };

struct number_types {
  memory::data_type operands, computed;
};

// One of the three tensors: as it lies in memory, and as oneDNN wants the part of it that belongs
// to a part of the convolution.
class tensor_parts {
public:
  // `strides` of the whole tensor. Cut along dimension 0 by images and `channel` by channels;
  // a negative dimension is not cut.
  tensor_parts(memory::data_type type, memory::dims sizes, memory::dims strides, bool by_images,
               int channel, part_counts parts)
      : element_bytes_(static_cast<int64_t>(memory::data_type_size(type))),
        images_(by_images ? parts.images : 1), channels_(channel < 0 ? 1 : parts.channels) {
    sizes[0] /= images_;
    image_step_ = sizes[0] * strides[0];
    if (channel >= 0) {
      sizes[static_cast<size_t>(channel)] /= channels_;
      channel_step_ = sizes[static_cast<size_t>(channel)] * strides[static_cast<size_t>(channel)];
    }
    plain_ = memory::desc(sizes, type, strides);
  }

  // What oneDNN may choose from.
  memory::desc allowed(layouts from, memory::data_type type) const {
    if (from == layouts::any)
      return {plain_.dims(), type, memory::format_tag::any};
    memory::desc given = plain_;
    given.data.data_type = memory::convert_to_c(type);
    return given;
  }
  memory::desc allowed(layouts from) const { return allowed(from, plain_.data_type()); }

  // Takes the layout that oneDNN chose and the copies' place in the scratch. `batch` says that
  // dimension 0 is one of images, which copies may be shared by.
  void adopt(const memory::desc &chosen, bool batch, bool is_result, int64_t &scratch_bytes) {
    chosen_ = chosen;
    in_place_ = chosen_ == plain_;
    if (in_place_)
      return;
    offset_ = scratch_bytes;
    copy_bytes_ = (static_cast<int64_t>(chosen_.get_size()) + 63) / 64 * 64;
    scratch_bytes += copy_bytes_ * images_ * channels_;
    memory::desc from = plain_, to = chosen_;
    const auto &blocking = chosen_.data.format_desc.blocking;
    bool whole_images = batch && !is_result && chosen_.dims()[0] > 1;
    for (int i = 0; i < blocking.inner_nblks; ++i)
      whole_images &= blocking.inner_idxs[i] != 0;
    if (whole_images) {
      copies_ = chosen_.dims()[0];
      from_step_ = plain_.data.format_desc.blocking.strides[0];
      to_step_ = blocking.strides[0];
      memory::dims one = chosen_.dims(), origin(one.size(), 0);
      one[0] = 1;
      from = plain_.submemory_desc(one, origin);
      to = chosen_.submemory_desc(one, origin);
    }
    if (is_result)
      std::swap(from, to);
    const dnnl::reorder::primitive_desc reorder(library_engine(), from, library_engine(), to,
                                                attributes());
    copy_ = {dnnl::reorder(reorder),
             {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}},
             reorder.scratchpad_desc(),
             images_ * channels_ * copies_};
  }

  // The tensor that the convolution's part works on.
  char *part(int64_t image, int64_t channel, char *tensor, char *scratch) const {
    return in_place_ ? plain(image, channel, tensor) : copied(image, channel, scratch);
  }

  int64_t copies() const { return in_place_ ? 0 : images_ * channels_ * copies_; }

  void copy_in(int64_t index, char *tensor, char *scratch) const {
    const int64_t piece = index % copies_, part = index / copies_;
    const int64_t image = part / channels_, channel = part % channels_;
    copy_.run(index, {plain(image, channel, tensor) + piece * from_step_ * element_bytes_,
                      copied(image, channel, scratch) + piece * to_step_ * element_bytes_});
  }

  void copy_out(int64_t image, int64_t channel, char *tensor, char *scratch) const {
    if (!in_place_)
      copy_.run(part_index(image, channel),
                {copied(image, channel, scratch), plain(image, channel, tensor)});
  }

private:
  char *plain(int64_t image, int64_t channel, char *tensor) const {
    return tensor + ((images_ > 1 ? image * image_step_ : 0) +
                     (channels_ > 1 ? channel * channel_step_ : 0)) *
                        element_bytes_;
  }
  char *copied(int64_t image, int64_t channel, char *scratch) const {
    return scratch + offset_ + part_index(image, channel) * copy_bytes_;
  }
  int64_t part_index(int64_t image, int64_t channel) const {
    return (images_ > 1 ? image * channels_ : 0) + (channels_ > 1 ? channel : 0);
  }

  int64_t element_bytes_;
  int64_t images_, channels_; // parts that this tensor has
  int64_t image_step_ = 0, channel_step_ = 0;
  memory::desc plain_, chosen_; // of one part
  bool in_place_ = true;
  int64_t offset_ = 0, copy_bytes_ = 0;
  int64_t copies_ = 1, from_step_ = 0, to_step_ = 0; // pieces that a part is copied in
  prepared_primitive copy_;
};

memory::dims contiguous_strides(const memory::dims &sizes) {
  memory::dims strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d > 0; --d)
    strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

// A convolution made ready: primitives, layouts and places in the scratch.
class convolution_plan {
public:
  convolution_plan(computed what, const convolution_shape &shape, number_types types,
                   part_counts parts, layouts from)
      : what_(what), parts_(parts), types_(types), input_(cut_input(shape)),
        weight_(cut_weight(shape)), result_(cut_result(shape)) {
    const one_thread alone;
    const size_t rank = static_cast<size_t>(space_rank(shape));
    const memory::dims strides(shape.strides.of, shape.strides.of + rank);
    const memory::dims before(shape.pads.of, shape.pads.of + rank);
    const memory::dims behind(shape.pads.of + rank, shape.pads.of + 2 * rank);
    memory::dims dilations(shape.dilations.of, shape.dilations.of + rank);
    for (int64_t &dilation : dilations)
      --dilation; // oneDNN counts what lies between
    using namespace dnnl;
    const auto direct = algorithm::convolution_direct;
    const memory::desc x = input_.allowed(from), w = weight_.allowed(from),
                       y = result_.allowed(from);
    const auto operands = [&](const tensor_parts &tensor) {
      return tensor.allowed(from, types.operands);
    };
    // To the gradients it is a hint, with operands alone.
    const convolution_forward::primitive_desc forward(
        {prop_kind::forward_training, direct, operands(input_), operands(weight_),
         what == computed::result ? y : operands(result_), strides, dilations, before, behind},
        attributes(), library_engine());
    if (what == computed::result) {
      adopt(convolution_forward(forward), forward.scratchpad_desc(), forward.src_desc(),
            forward.weights_desc(), forward.dst_desc());
    } else if (what == computed::input_gradient) {
      const convolution_backward_data::primitive_desc backward(
          {direct, x, w, y, strides, dilations, before, behind}, attributes(), library_engine(),
          forward);
      adopt(convolution_backward_data(backward), backward.scratchpad_desc(),
            backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc());
    } else {
      const convolution_backward_weights::primitive_desc backward(
          {direct, x, w, y, strides, dilations, before, behind}, attributes(), library_engine(),
          forward);
      adopt(convolution_backward_weights(backward), backward.scratchpad_desc(), backward.src_desc(),
            backward.diff_weights_desc(), backward.diff_dst_desc());
    }
  }

  int64_t scratch_bytes() const { return scratch_bytes_; }

  void run(char *x, char *w, char *y, char *scratch) const {
    copy_inputs(x, w, y, scratch);
    for_parts(parts_.images * parts_.channels, [&](int64_t index) {
      const int64_t image = index / parts_.channels, channel = index % parts_.channels;
      convolve_.run(index, {input_.part(image, channel, x, scratch),
                            weight_.part(image, channel, w, scratch),
                            result_.part(image, channel, y, scratch)});
      if (what_ == computed::result)
        result_.copy_out(image, channel, y, scratch);
      else if (what_ == computed::input_gradient)
        input_.copy_out(image, channel, x, scratch);
      else
        weight_.copy_out(image, channel, w, scratch);
    });
  }

private:
  memory::data_type type_of(computed tensor) const {
    return tensor == what_ ? types_.computed : types_.operands;
  }
  // Channels of the computed tensor are cut, of the other two those that go with them; all where
  // groups are cut.
  static memory::dims sizes_of(const convolution_shape &shape, const convolution_sizes &sizes) {
    return {sizes.of, sizes.of + 2 + space_rank(shape)};
  }
  tensor_parts cut_input(const convolution_shape &shape) const {
    const memory::dims sizes = sizes_of(shape, shape.input);
    return {type_of(computed::input_gradient),
            sizes,
            contiguous_strides(sizes),
            true,
            shape.groups > 1 || what_ == computed::input_gradient ? 1 : -1,
            parts_};
  }
  tensor_parts cut_result(const convolution_shape &shape) const {
    const memory::dims sizes = sizes_of(shape, shape.result);
    return {type_of(computed::result),
            sizes,
            contiguous_strides(sizes),
            true,
            shape.groups > 1 || what_ != computed::input_gradient ? 1 : -1,
            parts_};
  }
  tensor_parts cut_weight(const convolution_shape &shape) const {
    memory::dims sizes = sizes_of(shape, shape.weight);
    if (shape.groups > 1) {
      sizes[0] /= shape.groups;
      sizes.insert(sizes.begin(), shape.groups);
    }
    return {type_of(computed::weight_gradient),
            sizes,
            contiguous_strides(sizes),
            false,
            shape.groups == 1 && what_ == computed::input_gradient ? 1 : 0,
            parts_};
  }

  void adopt(dnnl::primitive primitive, const memory::desc &scratchpad, const memory::desc &input,
             const memory::desc &weight, const memory::desc &result) {
    input_.adopt(input, true, what_ == computed::input_gradient, scratch_bytes_);
    weight_.adopt(weight, false, what_ == computed::weight_gradient, scratch_bytes_);
    result_.adopt(result, true, what_ == computed::result, scratch_bytes_);
    convolve_ = {
        std::move(primitive),
        {{what_ == computed::input_gradient ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, input},
         {what_ == computed::weight_gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weight},
         {what_ == computed::result ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, result}},
        scratchpad,
        parts_.images * parts_.channels};
  }

  void copy_inputs(char *x, char *w, char *y, char *scratch) const {
    const int64_t of_x = what_ == computed::input_gradient ? 0 : input_.copies();
    const int64_t of_w = what_ == computed::weight_gradient ? 0 : weight_.copies();
    const int64_t of_y = what_ == computed::result ? 0 : result_.copies();
    for_parts(of_x + of_w + of_y, [&](int64_t index) {
      if (index < of_x)
        input_.copy_in(index, x, scratch);
      else if (index < of_x + of_w)
        weight_.copy_in(index - of_x, w, scratch);
      else
        result_.copy_in(index - of_x - of_w, y, scratch);
    });
  }

  computed what_;
  part_counts parts_;
  number_types types_;
  tensor_parts input_, weight_, result_;
  prepared_primitive convolve_;
  int64_t scratch_bytes_ = 0;
};

// The most parts whose layouts fit: a part that is one group alone may be padded, several together
// are not. At the worst the tensors stay as they are, which takes no scratch.
std::unique_ptr<convolution_plan> plan_within(computed what, const convolution_shape &shape,
                                              number_types types, int64_t scratch_bytes) {
  part_counts parts = parts_of(what, shape);
  for (;; parts.channels /= 2) {
    auto plan = std::make_unique<convolution_plan>(what, shape, types, parts, layouts::any);
    if (plan->scratch_bytes() <= scratch_bytes)
      return plan;
    if (parts.channels == 1)
      return std::make_unique<convolution_plan>(what, shape, types, parts, layouts::as_given);
  }
}

struct plan_key {
  computed what;
  number_types types;
  int64_t scratch_bytes;
  convolution_shape shape;
  auto numbers() const { return std::tie(what, types.operands, types.computed, scratch_bytes); }
  bool operator<(const plan_key &other) const {
    if (numbers() != other.numbers())
      return numbers() < other.numbers();
    return std::memcmp(&shape, &other.shape, sizeof shape) < 0;
  }
};

// Made when a convolution runs first on a thread, kept until that ends: threads that compute for
// themselves, each with a team, share nothing.
const convolution_plan &plan_of(computed what, const convolution_shape &shape, number_types types,
                                int64_t scratch_bytes) {
  thread_local std::map<plan_key, std::unique_ptr<convolution_plan>> plans;
  auto &plan = plans[{what, types, scratch_bytes, shape}];
  if (!plan)
    plan = plan_within(what, shape, types, scratch_bytes);
  return *plan;
}

// ---- the gradient of the weight as one matrix product

// Where the result has few points, its weight is large and oneDNN's primitive reads and
// writes all of it for each image: 7.7 ms instead of 2.4 for 16 x 512 x 2 x 2 and 3 x 3 kernels.
constexpr int64_t few_points = 8;
constexpr int64_t most_rows_parts = 8; // of the product, along the output channels

struct column_sizes {
  int64_t outputs, inputs, columns; // channels, channels x taps, images x points

  explicit column_sizes(const convolution_shape &shape)
      : outputs(shape.weight.of[0]),
        inputs(shape.weight.of[1] * convolution_space(shape).kernel.count()),
        columns(shape.input.of[0] * convolution_space(shape).result.count()) {}

  int64_t bytes() const {
    return (outputs + inputs) * columns * static_cast<int64_t>(sizeof(float));
  }
};

bool suits_product(const convolution_shape &shape, int64_t scratch_bytes) {
  return shape.groups == 1 && convolution_space(shape).result.count() <= few_points &&
         column_sizes(shape).bytes() <= scratch_bytes;
}

// dw [outputs, inputs] = dy [outputs, columns] x [inputs, columns]'
void weight_gradient_by_product(const convolution_shape &shape, const float *x, const float *dy,
                                float *dw, float *scratch) {
  const convolution_space space(shape);
  const column_sizes sizes(shape);
  const int64_t images = shape.input.of[0], channels = shape.input.of[1];
  const int64_t taps = space.kernel.count(), points = space.result.count(),
                plane = space.input.count();
  float *gradients = scratch, *columns = scratch + sizes.outputs * sizes.columns;
#pragma omp parallel for schedule(static)
  for (int64_t output = 0; output < sizes.outputs; ++output)
    for (int64_t image = 0; image < images; ++image)
      std::copy_n(dy + (image * sizes.outputs + output) * points, points,
                  gradients + output * sizes.columns + image * points);
#pragma omp parallel for schedule(static)
  for (int64_t channel = 0; channel < channels; ++channel) {
    float *rows = columns + channel * taps * sizes.columns;
    std::fill_n(rows, taps * sizes.columns, 0.0f);
    for (int64_t image = 0; image < images; ++image) {
      const float *from = x + (image * channels + channel) * plane;
      for_each_meeting(space, [&](int64_t in, int64_t tap, int64_t out) {
        rows[tap * sizes.columns + image * points + out] = from[in];
      });
    }
  }
  const int64_t parts = std::min(most_rows_parts, sizes.outputs);
  for_parts(parts, [&](int64_t part) {
    const int64_t row = sizes.outputs * part / parts;
    const int64_t rows = sizes.outputs * (part + 1) / parts - row;
    multiply_rows('N', 'T', rows, sizes.inputs, sizes.columns, 1, gradients + row * sizes.columns,
                  sizes.columns, columns, sizes.columns, 0, dw + row * sizes.inputs, sizes.inputs);
  });
}

bool has_work(const convolution_shape &shape) {
  const int rank = space_rank(shape);
  return count_of(shape.input, rank) > 0 && count_of(shape.weight, rank) > 0 &&
         count_of(shape.result, rank) > 0;
}

int64_t computed_count(computed what, const convolution_shape &shape) {
  return count_of(what == computed::result           ? shape.result
                  : what == computed::input_gradient ? shape.input
                                                     : shape.weight,
                  space_rank(shape));
}

template <typename T, typename To>
void run_plan(computed what, const convolution_shape &shape, const T *first, const T *second,
              To *to, int64_t scratch_bytes, char *scratch) {
  const convolution_plan &plan =
      plan_of(what, shape, {library_type(first), library_type(to)}, scratch_bytes);
  // oneDNN's interface knows no const.
  auto *a = reinterpret_cast<char *>(const_cast<T *>(first));
  auto *b = reinterpret_cast<char *>(const_cast<T *>(second));
  auto *c = reinterpret_cast<char *>(to);
  if (what == computed::result)
    plan.run(a, b, c, scratch);
  else if (what == computed::input_gradient)
    plan.run(c, b, a, scratch);
  else
    plan.run(a, c, b, scratch);
}

void compute_convolution(computed what, const convolution_shape &shape, const float *first,
                         const float *second, float *to, int64_t scratch_bytes, char *scratch) {
  if (!has_work(shape))
    std::fill_n(to, computed_count(what, shape), 0.0f);
  else if (what == computed::weight_gradient && suits_product(shape, scratch_bytes))
    weight_gradient_by_product(shape, first, second, to, reinterpret_cast<float *>(scratch));
  else
    run_plan(what, shape, first, second, to, scratch_bytes, scratch);
}

template <typename From, typename To> void convert(const From *from, To *to, int64_t count) {
  constexpr int64_t line = 4096;
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < count; begin += line)
    convert_line(from + begin, to + begin, std::min(line, count - begin));
}

// In the front of the scratch are the tensors in f32.
template <typename T, typename To>
void compute_widened(computed what, const convolution_shape &shape, const T *first, const T *second,
                     To *to, int64_t scratch_bytes, char *scratch) {
  const int rank = space_rank(shape);
  const int64_t of_first =
      count_of(what == computed::input_gradient ? shape.result : shape.input, rank);
  const int64_t of_second =
      count_of(what == computed::weight_gradient ? shape.result : shape.weight, rank);
  char *place = scratch;
  const auto take = [&](int64_t count) {
    auto *tensor = reinterpret_cast<float *>(place);
    place += (count * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
    return tensor;
  };
  float *a = take(of_first), *b = take(of_second);
  convert(first, a, of_first);
  convert(second, b, of_second);
  const int64_t rest = scratch_bytes - convolution_widened_bytes(shape);
  if constexpr (std::is_same_v<To, float>) {
    compute_convolution(what, shape, a, b, to, rest, place);
  } else {
    float *sums = take(computed_count(what, shape));
    compute_convolution(what, shape, a, b, sums, rest, place);
    convert(sums, to, computed_count(what, shape));
  }
}

template <typename Format, typename To>
void compute_convolution(computed what, const convolution_shape &shape,
                         const narrow_float<Format> *first, const narrow_float<Format> *second,
                         To *to, int64_t scratch_bytes, char *scratch) {
  if constexpr (std::is_same_v<Format, bfloat16_format>) {
    const bool by_product =
        what == computed::weight_gradient && suits_product(shape, scratch_bytes);
    if (multiplies_bfloat16() && has_work(shape) && !by_product)
      return run_plan(what, shape, first, second, to, scratch_bytes, scratch);
  }
  compute_widened(what, shape, first, second, to, scratch_bytes, scratch);
}

} // namespace

DEFINE_CONVOLUTIONS_OF_ALL_TYPES

} // namespace trainc
