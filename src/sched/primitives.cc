#include "sched/primitives.h"

#include <algorithm>

namespace mlc {

static constexpr size_t kAny = 64;

static constexpr Primitive kPrimitives[] = {
    // questions
    {"get_loops", "i, j = get_loops(block)", 1, 1, get_loops, "", false, true},
    {"get_child_blocks", "a, b = get_child_blocks(loop or block)", 1, 1, get_child_blocks, "", false, true},
    {"get_producers", "a, b = get_producers(block)", 1, 1, get_producers, "", false, true},
    {"get_consumers", "a, b = get_consumers(block)", 1, 1, get_consumers, "", false, true},
    {"get_output_blocks", "a, b = get_output_blocks()", 0, 0, get_output_blocks, "", false, true},
    // draws
    {"sample_categorical", "v = sample_categorical([values], [probabilities])", 2, 2, sample_categorical, "decision", false, true},
    {"sample_perfect_tile", "t = sample_perfect_tile(loop, n, max_innermost)", 3, 3, sample_perfect_tile, "decision", false, true},
    {"sample_partitioned_tile", "t = sample_partitioned_tile(loop, n, partition_pos, innerpart)", 4, 4,
     sample_partitioned_tile, "decision"},
    {"sample_compute_location", "l = sample_compute_location(block)", 1, 1, sample_compute_location, "decision", false, true},
    // loops
    {"split", "i0, i1 = split(loop, [factors])", 2, 2, split, "disable_predication preserve_unit_iters"},
    {"loop_partition", "i0, i1 = loop_partition(loop, [turns])", 2, 2, loop_partition, ""},
    {"fuse", "f = fuse(loop, loop, ..)", 2, kAny, fuse, ""},
    {"merge", "m = merge(loop, loop, ..)", 2, kAny, merge, ""},
    {"reorder", "reorder(loop, loop, ..)", 2, kAny, reorder, ""},
    {"reorder_block_iter_var", "reorder_block_iter_var(block, [order])", 2, 2, reorder_block_iter_var, ""},
    {"add_unit_loop", "u = add_unit_loop(loop or block)", 1, 1, add_unit_loop, ""},
    {"parallel", "parallel(loop)", 1, 1, parallel, ""},
    {"vectorize", "vectorize(loop)", 1, 1, vectorize, ""},
    {"unroll", "unroll(loop)", 1, 1, unroll, "", false, true},
    {"bind", "bind(loop, tag)", 2, 2, bind, ""},
    // blocks
    {"compute_at", "compute_at(block, loop)", 2, 2, compute_at, "index preserve_unit_loops"},
    {"reverse_compute_at", "reverse_compute_at(block, loop)", 2, 2, reverse_compute_at, "index preserve_unit_loops"},
    {"compute_inline", "compute_inline(block)", 1, 1, compute_inline, ""},
    {"reverse_compute_inline", "reverse_compute_inline(block)", 1, 1, reverse_compute_inline, ""},
    {"decompose_reduction", "init = decompose_reduction(block, loop)", 2, 2, decompose_reduction, ""},
    {"rfactor", "part, buffer = rfactor(loop, factor_axis)", 2, 2, rfactor, ""},
    {"contract", "contract(block)", 1, 1, contract, ""},
    {"fuse_reduction_epilogue", "fuse_reduction_epilogue(reduction, epilogue)", 2, 2, fuse_reduction_epilogue, ""},
    {"blockize", "outer = blockize(loop), blockize(block, ..)", 1, kAny, blockize, "preserve_unit_iters"},
    {"tensorize", "tensorize(loop or block, @intrinsic)", 2, 2, tensorize, ""},
    {"decompose_padding", "pad = decompose_padding(block, loop)", 2, 2, decompose_padding, ""},
    {"pad_einsum", "pad_einsum(block, [multiples])", 2, 2, pad_einsum, ""},
    {"distribute", "distribute(block)", 1, 1, distribute, ""},
    {"pack_einsum", "i, j, k = pack_einsum(block, [[axes], ..], [multiples])", 3, 3, pack_einsum, "copy depth"},
    {"lift_padding", "padded = lift_padding(block, buffer)", 2, 2, lift_padding, ""},
    {"round_up", "round_up(block, [multiples])", 2, 2, round_up, ""},
    // notes
    {"annotate", "annotate([loop or block,] \"key\", value)", 2, 3, annotate, "", false, true},
    {"unannotate", "unannotate([loop or block,] \"key\")", 1, 2, unannotate, "", false, true},
    {"enter_postproc", "enter_postproc()", 0, 0, enter_postproc, "", false, true},
    // copies
    {"cache_read", "copy = cache_read(block, buffer, scope)", 3, 3, cache_read, "consumers"},
    {"cache_write", "copy = cache_write(block, buffer, scope)", 3, 3, cache_write, ""},
    {"cache_inplace", "copy, back = cache_inplace(block, buffer, scope)", 3, 3, cache_inplace, ""},
    {"reindex", "copy = reindex(block, buffer)", 2, 2, reindex, ""},
    {"reindex_cache_read", "copy = reindex_cache_read(block, buffer, scope, [axes] -> [..])", 4, 4,
     reindex_cache_read, ""},
    {"reindex_cache_write", "copy = reindex_cache_write(block, buffer, scope, [axes] -> [..])", 4, 4,
     reindex_cache_write, ""},
    {"cache_index", "i, j = cache_index(block)", 1, 1, cache_index, "threshold"},
    {"read_at", "copy = read_at(loop, block, buffer, scope)", 4, 4, read_at, ""},
    {"write_at", "copy = write_at(loop, block, buffer, scope)", 4, 4, write_at, ""},
    {"cooperative_fetch", "r, t, v = cooperative_fetch(block, tag, .., lanes)", 3, kAny, cooperative_fetch, ""},
    {"pipeline", "pipeline(loop, stages)", 2, 2, pipeline, ""},
    // layout
    {"transform_layout", "transform_layout(block, buffer, [i, j] -> [..])", 3, 3, transform_layout, "pad_value"},
    {"transform_block_layout", "transform_block_layout(block, [i, j] -> [..])", 2, 2, transform_block_layout, ""},
    // storage
    {"set_scope", "set_scope(block, buffer, scope)", 3, 3, set_scope, ""},
    {"storage_align", "storage_align(block, buffer or its number, dimension, factor, offset)", 5, 5, storage_align, ""},
    {"rolling_buffer", "rolling_buffer(block, buffer)", 2, 2, rolling_buffer, ""},
    {"annotate_buffer_access", "annotate_buffer_access(block, buffer, [axes] -> [i, [first, number]])", 3, 3,
     annotate_buffer_access, ""},
    {"unsafe_hide_buffer_access", "unsafe_hide_buffer_access(block, \"reads\" or \"writes\", [numbers])", 3, 3,
     unsafe_hide_buffer_access, "", true},
    {"unsafe_set_dtype", "unsafe_set_dtype(block, buffer, type)", 3, 3, unsafe_set_dtype, "", true},
};

std::span<const Primitive> primitives() { return kPrimitives; }

const Primitive *find_primitive(std::string_view name) {
  auto it =
      std::find_if(std::begin(kPrimitives), std::end(kPrimitives), [&](const Primitive &p) { return p.name == name; });
  return it == std::end(kPrimitives) ? nullptr : it;
}

}  // namespace mlc
