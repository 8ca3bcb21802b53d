/* divide_boxes: in a cluster, each block copies its part of the blocks of tensor descriptors.
 *
 *     %t = lilac.tensor_box %d[%y, %x]     : !tt.tensordesc<tensor<128x64xf16>>
 *     %a = tt.load %pointers, …, %t        : block = [[64, 0]], 2 blocks have 64 rows each
 *   →
 *     the same                             : !tt.tensordesc<tensor<64x64xf16>>
 *
 * The layout of the loaded tensor says which elements a block has: the columns of its rank's bits.
 * A tensor map is of boxes of one size. So the descriptor's block becomes a piece that lies in one
 * block of the cluster, for each load through it, and a block copies as many pieces as it has.
 * Loads through one descriptor that divide the tensor differently share the smallest piece:
 *
 *     A: block = [[64, 0]]     64 × 64        piece 64 × 64
 *     B: block = [[0, 0]]     128 × 64        each block copies two pieces
 *
 * Elements that blocks exchange behind the load, because a product needs another division, need no
 * exchange: the copies fill the memory of the blocks that need them (lilac_box_loaded). */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"

#include <lilac/tile_loops.h>

enum { LEAST_ROWS = 8, LEAST_BYTES = 32 };

/* The sizes of a piece; false: a column of the blocks is no unit vector, or a piece fills no
 * swizzle. */
static bool find_piece(int64_t *piece, const lilac_tile_type *tensor) {
    const lilac_layout *layout = tensor->layout;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], taken = 0;
    const uint32_t count = lilac_layout_block_columns(columns, layout);
    int64_t rows = 1;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        piece[d] = tensor->shape[d];
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((columns[i] & (columns[i] - 1)) != 0 || (columns[i] & taken) != 0) {
            return false;
        }
        taken |= columns[i];
        for (uint32_t d = 0; d < tensor->rank; d++) {
            const int64_t along = (int64_t)lilac_layout_coordinate(layout, columns[i], d);
            piece[d] = along > 0 ? min_i64(piece[d], along) : piece[d];
        }
    }
    for (uint32_t d = 0; d + 1 < tensor->rank; d++) {
        rows *= piece[d];
    }
    return rows >= LEAST_ROWS &&
           piece[tensor->rank - 1] * lilac_tile_element_bits(tensor) / 8 >= LEAST_BYTES;
}

/* The type itself, or that of the tensor with copies in all blocks. */
static const lilac_tile_type *with_pieces(lilac_tile_module *module,
                                          const lilac_tile_type *tensor) {
    static const uint64_t none[LILAC_LAYOUT_MAX_BITS];
    int64_t piece[LILAC_MAX_RANK];
    lilac_layout whole;
    lilac_reason why;
    return lilac_layout_in_bits(tensor->layout, "block") == 0 || find_piece(piece, tensor) ||
                   !lilac_layout_change_blocks(&whole, tensor->layout, none, &why)
               ? tensor
               : lilac_tile_with_layout(module, tensor, lilac_tile_intern_layout(module, &whole));
}

const lilac_tile_type *lilac_box_loaded(lilac_tile_module *module, const lilac_tile_op *load) {
    const lilac_tile_value *value = &load->results[0];
    const lilac_tile_type *first = value->type;
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->code != LILAC_TILE_OP_TTG_CONVERT_LAYOUT ||
            lilac_layout_same_blocks(op->results[0].type->layout, value->type->layout)) {
            return with_pieces(module, value->type);
        }
        first = op->results[0].type;
    }
    return with_pieces(module, first);
}

const lilac_tile_type *lilac_box_stored(lilac_tile_module *module, const lilac_tile_type *tensor) {
    return with_pieces(module, tensor);
}

const lilac_tile_type *lilac_box_divide(lilac_tile_module *module,
                                        const lilac_tile_type *descriptor,
                                        const lilac_tile_type *tensor) {
    const lilac_tile_type *block = descriptor->element;
    int64_t piece[LILAC_MAX_RANK], sizes[LILAC_MAX_RANK];
    if (!find_piece(piece, tensor)) {
        return descriptor;
    }
    for (uint32_t d = 0, t = 0; d < block->rank; d++) {
        while (t < tensor->rank && tensor->shape[t] == 1) {
            t++;
        }
        sizes[d] = block->shape[d] > 1 && t < tensor->rank ? min_i64(block->shape[d], piece[t++])
                                                           : block->shape[d];
    }
    return lilac_tile_descriptor(
        module, lilac_tile_tensor(module, block->element, block->rank, sizes, block->layout));
}

typedef struct division {
    lilac_tile_module *module;
    bool changed;
} division;

static void divide_load(void *data, lilac_tile_op *op) {
    division *x = data;
    if (op->code != LILAC_TILE_OP_TT_LOAD || lilac_box_of(op) == NULL) {
        return;
    }
    lilac_tile_value *descriptor = lilac_box_of(op)->op->operands[0].value;
    const lilac_tile_type *type =
        lilac_box_divide(x->module, descriptor->type, lilac_box_loaded(x->module, op));
    x->changed |= type != descriptor->type;
    descriptor->type = type;
}

bool lilac_engine_divide_boxes(lilac_tile_module *module, const lilac_target *target,
                               bool *changed) {
    division x = {.module = module};
    for (lilac_tile_function *f = module->functions; target->num_ctas > 1 && f != NULL;
         f = f->next) {
        if (f->body != NULL) {
            lilac_tile_walk(f->body, divide_load, &x);
        }
    }
    *changed = x.changed;
    return true;
}
