// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention. A thread takes one head of keys after the other, of each the tiles of
// keys, and of these the tiles of queries that see them: their weights are computed once more.
#include "runtime/kernels/attention_gradient.h"

#include "runtime/cpu/attention_tiles.h"

#include <vector>

namespace trainc {
namespace {

// ---- which heads a mask's gradient is made of

// Heads of keys: some index of them is kept in a mask's gradient, the other is added up.
class mask_heads {
public:
  mask_heads(const attention_shape &shape, bool of_masks) {
    int rank = batch_rank(shape.batch.of);
    for (int64_t sharing = shape.sizes.sharing; sharing > 1; sharing /= shape.batch.of[rank])
      --rank;
    rank_ = rank;
    const matrix_layout &dmask = shape.masks.of[shape.sizes.masks];
    for (int d = 0; d < rank; ++d) {
      size_[d] = shape.batch.of[d];
      is_added_[d] = of_masks && dmask.batch_strides[d] == 0;
      (is_added_[d] ? added_ : kept_) *= size_[d];
    }
    for (int d = 0; of_masks && d < batch_rank(shape.batch.of); ++d)
      matrices_ *= dmask.batch_strides[d] == 0 ? 1 : shape.batch.of[d];
  }

  int64_t kept() const { return kept_; }
  int64_t added() const { return added_; }
  int64_t matrices() const { return matrices_; } // in the gradient

  // Of keys.
  int64_t head(int64_t kept, int64_t added) const {
    int64_t head = 0, place = 1;
    for (int d = rank_ - 1; d >= 0; --d) {
      int64_t &index = is_added_[d] ? added : kept;
      head += index % size_[d] * place;
      index /= size_[d];
      place *= size_[d];
    }
    return head;
  }

private:
  int rank_ = 0;
  int64_t size_[max_batch_rank] = {}, kept_ = 1, added_ = 1, matrices_ = 1;
  bool is_added_[max_batch_rank] = {};
};

// ---- a tile

template <typename P, typename S> struct gradient_tile {
  S *scores, factor; // what these have still to be multiplied by
  S *slopes;         // gradients of the weights
  P *weights;        // may be where the scores are
  P *score_slopes;   // times the factor; may be where the slopes are
  const S *log_sum, *mean, *inverse;
  S *dmask; // null, or rows of dmask_leading
  int64_t dmask_leading;
};

template <typename T, typename P, typename S>
void differentiate_weights(const attention_sizes &sizes, const tile_masks<S> &masks, int64_t query,
                           int64_t rows, int64_t key, int64_t columns,
                           const tile_dropout<S> &dropout, const gradient_tile<P, S> &tile) {
  const int64_t reach = sizes.reach, leading = whole_lanes(columns);
  vectorised<S>([=]() INLINED {
    for (int64_t i = 0; i < rows; ++i) {
      S *scores = tile.scores + i * leading, *slopes = tile.slopes + i * leading;
      P *weights = tile.weights + i * leading, *score_slopes = tile.score_slopes + i * leading;
      const int64_t open = query + i + reach + 1 - key;
      const int64_t seen = open < 0 ? 0 : open < columns ? open : columns;
      multiply_scores(scores, seen, tile.factor);
      masks.add(i, seen, scores);
      hide_rest(scores, seen);
      const S log_sum = tile.log_sum[i], mean = tile.mean[i], factor = tile.factor,
              inverse = tile.inverse[i];
      dropout.apply(i, seen, [&](auto drop) ALWAYS_INLINED {
#pragma omp simd
        for (int64_t j = 0; j < whole_lanes(seen); ++j) {
          const S weight = exp(scores[j] - log_sum) * inverse;
          store_read<T>(drop(weight, j), weights[j]);
          slopes[j] = weight * (drop(slopes[j], j) - mean);
        }
      });
      if (tile.dmask != nullptr) {
        S *dmask = tile.dmask + i * tile.dmask_leading;
#pragma omp simd
        for (int64_t j = 0; j < seen; ++j)
          dmask[j] += slopes[j];
      }
      if constexpr (is_narrow_v<T>)
#pragma omp simd
        for (int64_t j = 0; j < whole_lanes(seen); ++j)
          store_read<T>(slopes[j] * factor, score_slopes[j]);
      for (int64_t j = seen; j < columns; ++j)
        weights[j] = score_slopes[j] = P(0);
    }
  });
}

// sums += those of the rows' weights
template <typename S>
void add_weights(const attention_sizes &sizes, const tile_masks<S> &masks, int64_t query,
                 int64_t rows, int64_t key, int64_t columns, S *all_scores, S factor,
                 const S *log_sums, S *sums) {
  const int64_t reach = sizes.reach, leading = whole_lanes(columns);
  vectorised<S>([=]() INLINED {
    for (int64_t i = 0; i < rows; ++i) {
      S *scores = all_scores + i * leading;
      const int64_t open = query + i + reach + 1 - key;
      const int64_t seen = open < 0 ? 0 : open < columns ? open : columns;
      multiply_scores(scores, seen, factor);
      masks.add(i, seen, scores);
      const S log_sum = log_sums[i];
#pragma omp simd
      for (int64_t j = 0; j < whole_lanes(seen); ++j)
        scores[j] = exp(scores[j] - log_sum);
      S partial[lanes];
      set_lanes(partial, lanes, S(0));
      in_lanes(int64_t(0), seen,
               [&](int64_t j, int lane) ALWAYS_INLINED { partial[lane] += scores[j]; });
      sums[i] += sum_lanes(partial);
    }
  });
}

// The mean of each row's slopes by its weights: the product of the result and its gradient.
template <typename T, typename S>
void mean_slopes(const T *result, const matrix_layout &layout, const T *dresult,
                 const matrix_layout &dlayout, int64_t rows, int64_t size, S *mean) {
  const int64_t row = layout.row_stride, column = layout.column_stride, drow = dlayout.row_stride,
                dcolumn = dlayout.column_stride;
  vectorised<S>([=]() INLINED {
    for (int64_t i = 0; i < rows; ++i) {
      S partial[lanes];
      set_lanes(partial, lanes, S(0));
      const T *y = result + i * row, *dy = dresult + i * drow;
      if (column == 1 && dcolumn == 1)
        in_lanes(int64_t(0), size, [&](int64_t d, int lane) ALWAYS_INLINED {
          partial[lane] += static_cast<S>(y[d]) * static_cast<S>(dy[d]);
        });
      else
        in_lanes(int64_t(0), size, [&](int64_t d, int lane) ALWAYS_INLINED {
          partial[lane] += static_cast<S>(y[d * column]) * static_cast<S>(dy[d * dcolumn]);
        });
      mean[i] = sum_lanes(partial);
    }
  });
}

// ---- a head of keys

template <typename T, typename P> class key_head {
  using S = attention_sum<T>;

public:
  key_head(const attention_shape &shape, const attention_gradient_layouts &layouts,
           const attention_tensors<T> &tensors, const attention_gradients<T> &gradients,
           int64_t number, S *dmask, S *part_of_dq)
      : shape_(shape), sizes_(shape.sizes), layouts_(layouts), tensors_(tensors),
        gradients_(gradients), first_(number * sizes_.sharing), dmask_(dmask),
        part_of_dq_(part_of_dq), factors_(shape.scale) {
    constexpr bool is_in_place = std::is_same_v<P, S>; // what products read of scores
    const int64_t scores = tile_queries * tile_keys, both = sizes_.size + sizes_.value_size;
    const int64_t rows = sizes_.sharing * sizes_.queries;
    tile_memory<S> memory((is_in_place ? 2 : 4) * scores + (tile_queries + 2 * tile_keys) * both +
                          2 * rows + (in_place() ? 0 : rows * sizes_.size));
    scores_ = memory.template take<S>(scores);
    slopes_ = memory.template take<S>(scores);
    if constexpr (is_in_place) {
      weights_ = scores_;
      score_slopes_ = slopes_;
    } else {
      weights_ = memory.template take<P>(scores);
      score_slopes_ = memory.template take<P>(scores);
    }
    copy_q_ = memory.template take<P>(tile_queries * sizes_.size);
    copy_dresult_ = memory.template take<P>(tile_queries * sizes_.value_size);
    copy_k_ = memory.template take<P>(tile_keys * sizes_.size);
    copy_v_ = memory.template take<P>(tile_keys * sizes_.value_size);
    dk_ = memory.template take<S>(tile_keys * sizes_.size);
    dv_ = memory.template take<S>(tile_keys * sizes_.value_size);
    mean_ = memory.template take<S>(rows);
    inverse_ = memory.template take<S>(rows);
    dq_ = memory.template take<S>(0);
  }

  // Keys from `begin` on, a multiple of a tile.
  void run(int64_t begin, int64_t end) {
    begin_queries();
    for (int64_t key = begin; key < end; key += tile_keys) {
      const int64_t columns = std::min(tile_keys, end - key);
      const tile_matrix<P> k = load_tile(at(tensors_.k, shape_.k, first_), shape_.k, key, columns,
                                         sizes_.size, copy_k_),
                           v = load_tile(at(tensors_.v, shape_.v, first_), shape_.v, key, columns,
                                         sizes_.value_size, copy_v_);
      std::fill_n(dk_, columns * sizes_.size, S(0));
      std::fill_n(dv_, columns * sizes_.value_size, S(0));
      for (int64_t head = first_; head < first_ + sizes_.sharing; ++head)
        for (int64_t query = 0; query < sizes_.queries; query += tile_queries) {
          const int64_t rows = std::min(tile_queries, sizes_.queries - query);
          if (const int64_t seen = seen_keys(sizes_, query + rows - 1, key, columns); seen > 0)
            add_tile(head, query, rows, key, seen, k, v);
        }
      store_tile(dk_, sizes_.size, at(gradients_.dk, layouts_.dk, first_), layouts_.dk, key,
                 columns, sizes_.size);
      store_tile(dv_, sizes_.value_size, at(gradients_.dv, layouts_.dv, first_), layouts_.dv, key,
                 columns, sizes_.value_size);
    }
    if (!in_place() && part_of_dq_ == nullptr)
      for (int64_t head = first_; head < first_ + sizes_.sharing; ++head)
        store_tile(dq_of(head, 0).data, sizes_.size, at(gradients_.dq, layouts_.dq, head),
                   layouts_.dq, 0, sizes_.queries, sizes_.size);
  }

private:
  // Whether dq is added up where it will be.
  bool in_place() const {
    return std::is_same_v<T, S> && (layouts_.dq.column_stride == 1 || sizes_.size == 1);
  }

  template <typename E> E *at(E *tensor, const matrix_layout &layout, int64_t head) const {
    return tensor + head_offset(shape_.batch, layout, head);
  }

  struct rows_of_dq {
    S *data;
    int64_t leading;
  };
  rows_of_dq dq_of(int64_t head, int64_t query) const {
    if (part_of_dq_ != nullptr)
      return {part_of_dq_ + (head * sizes_.queries + query) * sizes_.size, sizes_.size};
    if constexpr (std::is_same_v<T, S>)
      if (in_place()) {
        const int64_t leading = sizes_.queries == 1 ? sizes_.size : layouts_.dq.row_stride;
        return {at(gradients_.dq, layouts_.dq, head) + query * leading, leading};
      }
    return {dq_ + ((head - first_) * sizes_.queries + query) * sizes_.size, sizes_.size};
  }

  void begin_queries() {
    for (int64_t head = first_; head < first_ + sizes_.sharing; ++head) {
      mean_slopes(at(tensors_.result, shape_.result, head), shape_.result,
                  at(gradients_.dresult, layouts_.dresult, head), layouts_.dresult, sizes_.queries,
                  sizes_.value_size, mean_ + (head - first_) * sizes_.queries);
      for (int64_t query = 0; query < sizes_.queries; query += tile_queries)
        find_inverse(head, query, std::min(tile_queries, sizes_.queries - query));
      for (int64_t query = 0; query < sizes_.queries; ++query)
        std::fill_n(dq_of(head, query).data, sizes_.size, S(0));
    }
  }

  // What rows' weights are multiplied by: 1, but where their log_sums are rounded off.
  void find_inverse(int64_t head, int64_t query, int64_t rows) {
    const S *log_sum = tensors_.log_sum + head * sizes_.queries + query;
    S *inverse = inverse_ + (head - first_) * sizes_.queries + query;
    std::fill_n(inverse, rows, S(1));
    if (std::none_of(log_sum, log_sum + rows, is_rounded_off<S>))
      return;
    S *sums = slopes_; // no tile has begun them
    std::fill_n(sums, rows, S(0));
    const tile_matrix<P> q =
        load_tile(at(tensors_.q, shape_.q, head), shape_.q, query, rows, sizes_.size, copy_q_);
    for (int64_t key = 0; key < sizes_.keys; key += tile_keys) {
      const int64_t columns = std::min(tile_keys, sizes_.keys - key),
                    seen = seen_keys(sizes_, query + rows - 1, key, columns);
      if (seen == 0)
        break;
      const tile_matrix<P> k =
          load_tile(at(tensors_.k, shape_.k, first_), shape_.k, key, columns, sizes_.size, copy_k_);
      multiply_rows('N', 'T', rows, seen, sizes_.size, factors_.of_product, q.data, q.leading,
                    k.data, k.leading, S(0), scores_, whole_lanes(seen));
      add_weights<S>(sizes_, masks_of(shape_, tensors_, head, query, key), query, rows, key, seen,
                     scores_, static_cast<S>(factors_.of_scores), log_sum, sums);
    }
    for (int64_t i = 0; i < rows; ++i)
      if (is_rounded_off(log_sum[i]))
        inverse[i] = 1 / sums[i];
  }

  void add_tile(int64_t head, int64_t query, int64_t rows, int64_t key, int64_t columns,
                const tile_matrix<P> &k, const tile_matrix<P> &v) {
    const int64_t leading = whole_lanes(columns);
    const tile_matrix<P> q = load_tile(at(tensors_.q, shape_.q, head), shape_.q, query, rows,
                                       sizes_.size, copy_q_),
                         dresult = load_tile(at(gradients_.dresult, layouts_.dresult, head),
                                             layouts_.dresult, query, rows, sizes_.value_size,
                                             copy_dresult_);
    multiply_rows('N', 'T', rows, columns, sizes_.size, factors_.of_product, q.data, q.leading,
                  k.data, k.leading, S(0), scores_, leading);
    multiply_rows('N', 'T', rows, columns, sizes_.value_size, 1, dresult.data, dresult.leading,
                  v.data, v.leading, S(0), slopes_, leading);
    gradient_tile<P, S> tile = {scores_,
                                static_cast<S>(factors_.of_scores),
                                slopes_,
                                weights_,
                                score_slopes_,
                                tensors_.log_sum + head * sizes_.queries + query,
                                mean_ + (head - first_) * sizes_.queries + query,
                                inverse_ + (head - first_) * sizes_.queries + query,
                                nullptr,
                                sizes_.keys};
    if (dmask_ != nullptr)
      tile.dmask = dmask_ + head_offset(shape_.batch, shape_.masks.of[sizes_.masks], head) +
                   query * sizes_.keys + key;
    differentiate_weights<T>(sizes_, masks_of(shape_, tensors_, head, query, key), query, rows, key,
                             columns, dropout_of(shape_, tensors_, head, query, key), tile);
    multiply_rows('T', 'N', columns, sizes_.value_size, rows, 1, weights_, leading, dresult.data,
                  dresult.leading, S(1), dv_, sizes_.value_size);
    multiply_rows('T', 'N', columns, sizes_.size, rows, factors_.of_product, score_slopes_, leading,
                  q.data, q.leading, S(1), dk_, sizes_.size);
    const rows_of_dq dq = dq_of(head, query);
    multiply_rows('N', 'N', rows, sizes_.size, columns, factors_.of_product, score_slopes_, leading,
                  k.data, k.leading, S(1), dq.data, dq.leading);
  }

  const attention_shape &shape_;
  const attention_sizes &sizes_;
  const attention_gradient_layouts &layouts_;
  const attention_tensors<T> &tensors_;
  const attention_gradients<T> &gradients_;
  const int64_t first_;    // of its heads of queries
  S *dmask_, *part_of_dq_; // null where there is none
  const attention_factors<P> factors_;
  P *weights_, *score_slopes_, *copy_q_, *copy_dresult_, *copy_k_, *copy_v_;
  S *scores_, *slopes_, *dk_, *dv_, *mean_, *inverse_, *dq_;
};

// dmask = the sum of the parts, in order.
template <typename S> void add_parts(const S *parts, int64_t count, int64_t elements, S *dmask) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < elements; ++i) {
    S sum = parts[i];
    for (int64_t part = 1; part < count; ++part)
      sum += parts[part * elements + i];
    dmask[i] = sum;
  }
}

// dq = the sum of the parts, in order, which the first becomes.
template <typename T, typename S>
void add_parts_of_dq(const attention_shape &shape, const matrix_layout &layout, S *parts,
                     int64_t count, T *dq) {
  const int64_t heads = head_count(shape.batch), elements = shape.sizes.queries * shape.sizes.size;
  for_each_item(shape, heads, [&](int64_t head) {
    S *sum = parts + head * elements;
    for (int64_t part = 1; part < count; ++part)
      for (int64_t i = 0; i < elements; ++i)
        sum[i] += sum[part * heads * elements + i];
    store_tile(sum, shape.sizes.size, dq + head_offset(shape.batch, layout, head), layout, 0,
               shape.sizes.queries, shape.sizes.size);
  });
}

template <typename T, typename P>
void differentiate(const attention_shape &shape, const attention_gradient_layouts &layouts,
                   const attention_tensors<T> &tensors, const attention_gradients<T> &gradients) {
  using S = attention_sum<T>;
  const attention_sizes &sizes = shape.sizes;
  const mask_heads heads(shape, gradients.dmask != nullptr);
  const attention_split split(sizes, heads.kept(), heads.added());
  const int64_t elements = heads.matrices() * sizes.queries * sizes.keys,
                elements_of_dq = head_count(shape.batch) * sizes.queries * sizes.size,
                tiles = (sizes.keys + tile_keys - 1) / tile_keys;
  S *parts_of_dq = reinterpret_cast<S *>(gradients.scratch);
  S *sums = split.added == 1 ? gradients.dmask
                             : parts_of_dq + (split.keys > 1 ? split.keys * elements_of_dq : 0);
  if (gradients.dmask == nullptr)
    sums = nullptr;
  else
    std::fill_n(sums, split.added * elements, S(0));
  for_each_item(shape, heads.kept() * split.added * split.keys, [&](int64_t item) {
    const int64_t keys = item % split.keys, part = item / split.keys % split.added,
                  kept = item / split.keys / split.added;
    S *dmask = sums == nullptr ? nullptr : sums + part * elements;
    S *part_of_dq = split.keys == 1 ? nullptr : parts_of_dq + keys * elements_of_dq;
    const int64_t begin = tiles * keys / split.keys * tile_keys,
                  end = std::min(sizes.keys, tiles * (keys + 1) / split.keys * tile_keys);
    for (int64_t added = heads.added() * part / split.added;
         added < heads.added() * (part + 1) / split.added; ++added)
      key_head<T, P>(shape, layouts, tensors, gradients, heads.head(kept, added), dmask, part_of_dq)
          .run(begin, end);
  });
  if (split.keys > 1)
    add_parts_of_dq(shape, layouts.dq, parts_of_dq, split.keys, gradients.dq);
  if (sums != nullptr && split.added > 1)
    add_parts(sums, split.added, elements, gradients.dmask);
}

} // namespace

template <typename T>
void compute_attention_gradient(const attention_shape &shape,
                                const attention_gradient_layouts &layouts,
                                const attention_tensors<T> &tensors,
                                const attention_gradients<T> &gradients) {
  with_product_type<T>(
      [&]<typename P>(P) { differentiate<T, P>(shape, layouts, tensors, gradients); });
}

template void compute_attention_gradient(const attention_shape &,
                                         const attention_gradient_layouts &,
                                         const attention_tensors<float> &,
                                         const attention_gradients<float> &);
template void compute_attention_gradient(const attention_shape &,
                                         const attention_gradient_layouts &,
                                         const attention_tensors<double> &,
                                         const attention_gradients<double> &);
template void compute_attention_gradient(const attention_shape &,
                                         const attention_gradient_layouts &,
                                         const attention_tensors<bfloat16> &,
                                         const attention_gradients<bfloat16> &);
template void compute_attention_gradient(const attention_shape &,
                                         const attention_gradient_layouts &,
                                         const attention_tensors<float16> &,
                                         const attention_gradients<float16> &);

} // namespace trainc
