// The primitives, a function each; the table in primitives.cc has their names and arguments, man/mlc-sched.5 a picture
// of each.
#pragma once
#include "sched/args.h"

namespace mlc {

using PrimitiveRun = void(State &s, Args &a);
PrimitiveRun get_loops, get_child_blocks, get_producers, get_consumers, get_output_blocks, sample_categorical,
    sample_perfect_tile, sample_partitioned_tile, sample_compute_location, split, loop_partition, fuse, merge, reorder,
    reorder_block_iter_var, add_unit_loop, parallel, vectorize, unroll, bind, compute_at, reverse_compute_at,
    compute_inline, reverse_compute_inline, decompose_reduction, rfactor, contract, fuse_reduction_epilogue, blockize, tensorize, decompose_padding, pad_einsum, lift_padding,
    round_up,
    pack_einsum, distribute, annotate, unannotate, enter_postproc;

std::string_view kind_name(const For &f);  // parallel, vectorized, unrolled, bound to threadIdx.x

// Copies (cache.cc, reindex.cc, pipeline.cc), layout and storage.
PrimitiveRun cache_read, cache_write, cache_inplace, cache_index, reindex, reindex_cache_read, reindex_cache_write,
    read_at, write_at, cooperative_fetch, pipeline, transform_layout, transform_block_layout, set_scope, storage_align,
    rolling_buffer, annotate_buffer_access, unsafe_hide_buffer_access, unsafe_set_dtype;

// Every loop that is parallel or vectorize has turns that depend on none of each other: buffers that each turn
// can have for itself move into it; what is left is refused. Runs after every step.
void check_marks(State &s);

}  // namespace mlc
