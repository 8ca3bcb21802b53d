/* The walk over the box of a tensor copy (tensor_map.h).
 *
 *     for k in the box, k₀ fastest:
 *         global   address + Σ xᵢ · strideᵢ, xᵢ = cᵢ + kᵢ · stepᵢ; outside where some xᵢ is not in the tensor
 *         shared   swizzle(destination + number of k · bytes of an element)
 *
 * The swizzle permutes chunks of 16 bytes, so that pieces have 16 bytes where no chunk of any row is
 * partly outside or begins at an address that is no multiple of 16; else a piece is one element. */
#include "memory/access.h"

bool lilac_sim_is_tensor_copy(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD || i->code == LILAC_SIMT_OP_CP_TENSOR_STORE ||
           i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE;
}

const lilac_tensor_map *lilac_sim_map_of(const lilac_sim_launch *launch,
                                         const lilac_simt_instruction *i) {
    const lilac_simt_kernel *kernel = launch->kernel;
    if (!lilac_sim_is_tensor_copy(i)) {
        return NULL;
    }
    bool predicated = kernel->values[i->operands[1]].type == LILAC_SIMT_I1;
    const lilac_simt_instruction *parameter =
        kernel->values[i->operands[1 + predicated]].definition; /* the verifier has checked it */
    return parameter->code == LILAC_SIMT_OP_PARAM
               ? &launch->tensor_maps[launch->arguments[parameter->immediate]]
               : NULL;
}

/* Does the async proxy combine such elements? */
static bool can_reduce(uint32_t kind, lilac_tensor_element element) {
    const bool by_sign = kind == LILAC_SIMT_ATOMIC_MIN_S || kind == LILAC_SIMT_ATOMIC_MAX_S;
    const bool unsigned_only = kind == LILAC_SIMT_ATOMIC_MIN_U || kind == LILAC_SIMT_ATOMIC_MAX_U;
    switch (element) {
    case LILAC_TENSOR_U32:
    case LILAC_TENSOR_U64:
        return !by_sign;
    case LILAC_TENSOR_S32:
    case LILAC_TENSOR_S64:
        return !unsigned_only;
    case LILAC_TENSOR_F16:
    case LILAC_TENSOR_BF16:
        return by_sign || kind == LILAC_SIMT_ATOMIC_ADD;
    case LILAC_TENSOR_F32:
        return kind == LILAC_SIMT_ATOMIC_ADD;
    default:
        return false;
    }
}

/* Is the swizzle one of whole rows of the box? */
static bool has_full_rows(const lilac_tensor_map *map) {
    return map->swizzle == LILAC_TENSOR_SWIZZLE_NONE ||
           map->box[0] * lilac_tensor_element_bytes(map->element) == 16u << map->swizzle;
}

bool lilac_sim_can_copy(const lilac_simt_instruction *i, const lilac_tensor_map *map,
                        uint32_t coordinates) {
    return coordinates == map->rank && has_full_rows(map) &&
           (i->code != LILAC_SIMT_OP_CP_TENSOR_REDUCE || can_reduce(i->detail, map->element));
}

bool lilac_sim_check_tensor_copy(lilac_context *context, const lilac_simt_instruction *i,
                                 const lilac_tensor_map *map, uint32_t coordinates) {
    const char *name = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name;
    if (coordinates != map->rank) {
        lilac_error(context, (lilac_position){0}, i->location, "tensor-map",
                    "%s has %u coordinates, and its tensor map has the rank %u", name, coordinates,
                    map->rank);
        return false;
    }
    uint32_t inner = map->box[0] * lilac_tensor_element_bytes(map->element);
    if (!has_full_rows(map)) {
        lilac_error(context, (lilac_position){0}, i->location, "tensor-map",
                    "%s: the simulator has no swizzle of %u bytes of boxes with %u bytes along "
                    "dimension 0",
                    name, 16u << map->swizzle, inner);
        return false;
    }
    if (i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE && !can_reduce(i->detail, map->element)) {
        lilac_error(context, (lilac_position){0}, i->location, "tensor-map",
                    "%s combines integers of 32 and 64 bits, minima and maxima by their sign, adds "
                    "f16, bf16 and f32, and has min_s and max_s of f16 and bf16; the elements of "
                    "its tensor map are others",
                    name);
        return false;
    }
    return true;
}

/* Is every chunk of 16 bytes along dimension 0 in the tensor or outside as a whole, at a multiple of
 * 16? Addresses and the strides of other dimensions are multiples of 16. */
static bool has_whole_chunks(const lilac_tensor_map *map, int64_t first) {
    uint32_t elements = 16 / lilac_tensor_element_bytes(map->element);
    return first % elements == 0 &&
           (map->dims[0] % elements == 0 || first + (int64_t)map->box[0] <= (int64_t)map->dims[0]);
}

void lilac_sim_tensor_pieces(lilac_sim_bulk *copy, const int32_t *coordinates) {
    const lilac_tensor_map *map = copy->map;
    uint32_t size = lilac_tensor_element_bytes(map->element), k[LILAC_TENSOR_RANK] = {0};
    uint64_t at = copy->at;
    copy->unit = has_whole_chunks(map, coordinates[0]) ? 16 : size;
    copy->bytes = lilac_tensor_map_bytes(map);
    while (at < copy->at + copy->bytes) {
        lilac_sim_piece piece = {.global = map->address,
                                 .shared = lilac_tensor_swizzle_apply(map->swizzle, at)};
        for (uint32_t d = 0; d < map->rank; d++) {
            int64_t step = d == 0 ? 1 : map->element_strides[d];
            int64_t x = coordinates[d] + step * k[d];
            piece.outside |= x < 0 || x >= (int64_t)map->dims[d];
            piece.global += (uint64_t)x * (d == 0 ? size : map->strides[d - 1]);
        }
        *lilac_sim_bulk_add(copy) = piece;
        at += copy->unit;
        k[0] += copy->unit / size;
        for (uint32_t d = 0; d + 1 < map->rank && k[d] == lilac_tensor_map_extent(map, d); d++) {
            k[d] = 0;
            k[d + 1]++;
        }
    }
}
