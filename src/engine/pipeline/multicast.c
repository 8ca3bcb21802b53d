/* Multicast in clusters: a part of an operand that several blocks need is fetched once.
 *
 *     blocks 0 and 1 have the same columns of B       block r copies half r of it to both
 *
 *     ttng.wait_barrier %full[%slot], %phase      the halves of all blocks have arrived
 *     %d = ttng.warp_group_dot …                  in flight
 *     ttng.warp_group_dot_wait …                  the product of iteration i - 1 is complete
 *     ttng.arrive_barrier %empty[(i - 1) mod B]   its buffer is free: to all blocks of the cluster
 *     ttng.wait_barrier %empty[(i + D) mod B]     all blocks have read what iteration i - 2 needed
 *     ttng.barrier_expect %full[…], bytes         of the whole part
 *     ttng.async_tma_copy_global_to_local …       {lilac.multicast}: the block's share, to all that
 *                                                 need it
 *
 * A ring has B = D + 2 buffers. So the arrivals that an iteration waits for were made in the
 * iteration before, and blocks may be one iteration apart. Its mbarriers are initialised before a
 * barrier of the cluster, since other blocks use them; and another one behind the loop keeps the
 * memory until all arrivals and copies of other blocks are complete.
 *
 * Only loops whose products stay in flight and whose loads all are tensor copies have multicast,
 * where a model says that it pays. Let T be the clocks of the products of an iteration, b the bytes
 * that a block fills, and s the bytes that it fetches itself:
 *
 *     without     max(T, b / L2_BYTES)                with     max(T + HANDSHAKE, s / L2_BYTES)
 *
 * L2_BYTES is a multiprocessor's share of the bytes that the second-level cache delivers in a
 * clock: of published models of products on an H100. HANDSHAKE is an estimate: an arrival at
 * each block, and a wait. */
#include "pipeline/pipeline.h"

enum { L2_BYTES = 46, HANDSHAKE = 64 };

/* The blocks of the cluster that have the same part. */
static uint32_t sharers(const lilac_tile_type *memory) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(columns, memory->layout);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        bits += columns[i] == 0;
    }
    return 1U << bits;
}

/* The descriptor's type with smaller blocks: `count` of them are a part of `part_bytes`, one for each
 * block of the cluster that needs it. NULL: they would have too few rows for a swizzle. */
static const lilac_tile_type *share(const pipeline *p, const lilac_tile_type *descriptor,
                                    uint64_t part_bytes, uint32_t count) {
    enum { LEAST_ROWS = 8 };
    const lilac_tile_type *block = descriptor->element;
    int64_t sizes[LILAC_MAX_RANK], rows = 1;
    lilac_box box;
    if (!lilac_engine_box(&box, block)) {
        return NULL;
    }
    uint64_t bytes = lilac_tile_element_bits(block) / 8;
    for (uint32_t d = 0; d < block->rank; d++) {
        sizes[d] = box.sizes[d];
        bytes *= box.sizes[d];
        rows *= d + 1 < block->rank ? sizes[d] : 1;
    }
    for (uint32_t d = 0; d + 1 < block->rank; d++) {
        while (bytes * count > part_bytes && sizes[d] > 1 && rows > LEAST_ROWS) {
            sizes[d] /= 2;
            rows /= 2;
            bytes /= 2;
        }
    }
    for (uint32_t d = 0; d < block->rank; d++) { /* several boxes are one block, as before */
        sizes[d] = sizes[d] == box.sizes[d] ? block->shape[d] : sizes[d];
    }
    return bytes * count > part_bytes
               ? NULL
               : lilac_tile_descriptor(p->module,
                                       lilac_tile_tensor(p->module, block->element, block->rank,
                                                         sizes, block->layout));
}

bool lilac_pipeline_find_shares(pipeline *p, uint64_t clocks) {
    uint64_t filled = 0, fetched = 0;
    bool any = false;
    p->multicasts = false;
    if (p->target->num_ctas == 1 || !p->in_flight || p->box_count < p->load_count) {
        return false;
    }
    for (uint32_t i = 0; i < p->load_count; i++) {
        pipeline_load *load = &p->loads[i];
        const uint32_t count = sharers(load->slot);
        load->shared = count > 1 &&
                       share(p, load->box->op->operands[0].value->type, load->bytes, count) != NULL;
        filled += load->bytes;
        fetched += load->shared ? load->bytes / count : load->bytes;
        any |= load->shared;
    }
    p->multicasts =
        any && max_u64(clocks + HANDSHAKE, fetched / L2_BYTES) < max_u64(clocks, filled / L2_BYTES);
    return any;
}

void lilac_pipeline_divide_shares(const pipeline *p) {
    for (uint32_t i = 0; i < p->load_count && p->multicasts; i++) {
        const pipeline_load *load = &p->loads[i];
        lilac_tile_value *descriptor = load->box->op->operands[0].value;
        if (load->shared) {
            descriptor->type = share(p, descriptor->type, load->bytes, sharers(load->slot));
        }
    }
}

void lilac_pipeline_make_empty_barriers(pipeline *p) {
    const lilac_emitter e = {p->module, p->loop};
    p->empty = lilac_box_make_barriers(&e, p->target->num_ctas, p->buffers, p->target->num_ctas);
    (void)lilac_emit(&e, LILAC_TILE_OP_GPU_BARRIER, NULL, 0, NULL);
}

/* The wait for the copies orders products of rings; other memory may have been written by other
 * warps. */
static void mark_products(const pipeline *p) {
    for (uint32_t i = 0; i < p->product_count; i++) {
        lilac_tile_op *op = p->products[i];
        if (lilac_pipeline_load_of(p, op->operands[0].value) != NULL &&
            lilac_pipeline_load_of(p, op->operands[1].value) != NULL) {
            lilac_engine_set_integer(p->module, op, "lilac.ordered", 1);
        }
    }
}

void lilac_pipeline_release(const pipeline *p, lilac_tile_value *slot, lilac_tile_value *phase,
                            lilac_tile_op *place) {
    const lilac_emitter e = {p->module, place};
    lilac_tile_value *zero = lilac_emit_integer(&e, slot->type, 0),
                     *one = lilac_emit_integer(&e, slot->type, 1),
                     *last = lilac_emit_integer(&e, slot->type, p->buffers - 1),
                     *first_wrapped = lilac_emit_integer(&e, slot->type, p->buffers - p->distance);
    /* the buffer of the iteration before, if there is one */
    lilac_tile_value *before =
        lilac_emit_select(&e, lilac_emit_compare(&e, "eq", slot, zero), last,
                          lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_SUBI, slot, one));
    lilac_tile_value *operands[2] = {lilac_box_barrier(&e, p->empty, before),
                                     lilac_emit_compare(&e, "ne",
                                                        lilac_tile_induction_variable(p->loop),
                                                        lilac_tile_lower_bound(p->loop))};
    lilac_tile_op *arrive = lilac_emit(&e, LILAC_TILE_OP_TTNG_ARRIVE_BARRIER, NULL, 2, operands);
    lilac_emit_attribute(&e, arrive, "count", 1);
    lilac_emit_attribute(&e, arrive, "lilac.cluster", 1);
    /* the buffer of iteration i + D, whose parity is the other one unless the ring begins again
     * before it */
    lilac_tile_value *wraps = lilac_emit_compare(&e, "sge", slot, first_wrapped);
    lilac_tile_value *next = lilac_emit_select(
        &e, wraps, lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_SUBI, slot, first_wrapped),
        lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ADDI, slot,
                          lilac_emit_integer(&e, slot->type, p->distance)));
    lilac_tile_value *other = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_XORI, phase, one);
    lilac_box_wait(&e, lilac_box_barrier(&e, p->empty, next),
                   lilac_emit_select(&e, wraps, phase, other));
    mark_products(p);
}

void lilac_pipeline_mark_copy(const pipeline *p, const pipeline_load *load, lilac_tile_op *copy) {
    lilac_engine_set_integer(p->module, copy, "lilac.ordered", 1);
    if (load->shared) {
        lilac_engine_set_integer(p->module, copy, "lilac.multicast", 1);
    }
}

void lilac_pipeline_remove_empty_barriers(const pipeline *p, lilac_tile_op *place) {
    const lilac_emitter e = {p->module, place};
    (void)lilac_emit(&e, LILAC_TILE_OP_GPU_BARRIER, NULL, 0, NULL);
    lilac_box_remove_barriers(&e, p->empty, p->buffers);
}
