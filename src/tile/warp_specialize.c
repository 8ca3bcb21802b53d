/* ttg.warp_specialize: its assembly and its rules.
 *
 *   %r = ttg.warp_specialize(%p, %m) attributes {requestedRegisters = array<i32: 24>}
 *   default {
 *     ttg.warp_yield %x : f32
 *   }
 *   partition0(%p2: !tt.ptr<f16>, %m2: !ttg.memdesc<…>) num_warps(4) {
 *     ttg.warp_return
 *   } : (!tt.ptr<f16>, !ttg.memdesc<…>) -> f32
 *
 * Region 0 is the default region, which the warps of the kernel execute. Region 1 + k is partition
 * k, which `partitionNumWarps[k]` further warps execute at the same time. Partitions see their
 * arguments, which have the values of the operands, and nothing else from outside. The operation
 * ends when all regions have ended.
 */
#include "verify/verify.h"

#include <lilac/bits.h>
#include <lilac/tile_loops.h>

#include <stdio.h>
#include <string.h>

static const char warps_name[] = "partitionNumWarps";
static const char registers_name[] = "requestedRegisters";

/* ---- access ------------------------------------------------------------------------------- */

uint32_t lilac_tile_partition_count(const lilac_tile_op *op) {
    return op->region_count - 1;
}

uint32_t lilac_tile_partition_warps(const lilac_tile_op *op, uint32_t partition) {
    return (uint32_t)lilac_tile_find(&op->attributes, warps_name)->integers[partition];
}

uint32_t lilac_tile_partition_registers(const lilac_tile_op *op, uint32_t partition) {
    const lilac_tile_attribute *found = lilac_tile_find(&op->attributes, registers_name);
    return found != NULL ? (uint32_t)found->integers[partition] : 0;
}

static bool has_partitions(const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        for (const lilac_tile_op *op = block->first; op; op = op->next) {
            if (op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
                return true;
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                if (has_partitions(op->regions[r])) {
                    return true;
                }
            }
        }
    }
    return false;
}

bool lilac_tile_has_partitions(const lilac_tile_module *module) {
    for (const lilac_tile_function *f = module->functions; f; f = f->next) {
        if (f->body && has_partitions(f->body)) {
            return true;
        }
    }
    return false;
}

/* ---- making ------------------------------------------------------------------------------- */

static void set_integers(lilac_tile_module *module, lilac_tile_op *op, const char *name,
                         uint32_t count, const uint32_t *numbers) {
    int64_t *copy = lilac_arena_array(module->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = numbers[i];
    }
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGERS,
                                            .name = lilac_intern_string(module->context, name),
                                            .type = lilac_tile_scalar(module, LILAC_I32),
                                            .count = count,
                                            .integers = copy};
    lilac_tile_set_attribute(module, &op->attributes, &attribute);
}

lilac_tile_op *lilac_tile_create_partitions(lilac_tile_module *module, uint32_t captures,
                                            lilac_tile_value *const *values, uint32_t count,
                                            const uint32_t *warps, const uint32_t *registers,
                                            lilac_location location) {
    lilac_tile_op *op = lilac_tile_op_create(module, LILAC_TILE_OP_TTG_WARP_SPECIALIZE, captures,
                                             values, 0, NULL, 1 + count, location);
    set_integers(module, op, warps_name, count, warps);
    if (registers != NULL) {
        set_integers(module, op, registers_name, count, registers);
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        lilac_tile_block *block = lilac_tile_block_create(module, op->regions[r]);
        for (uint32_t i = 0; r > 0 && i < captures; i++) {
            lilac_tile_add_argument(module, block, values[i]->type, values[i]->name, 0);
        }
        const lilac_tile_opcode end =
            r == 0 ? LILAC_TILE_OP_TTG_WARP_YIELD : LILAC_TILE_OP_TTG_WARP_RETURN;
        lilac_tile_append(block, lilac_tile_op_create(module, end, 0, NULL, 0, NULL, 0, location));
    }
    return op;
}

static bool is_within(const lilac_tile_op *op, const lilac_tile_op *around) {
    while (op != NULL && op != around) {
        op = op->parent != NULL ? op->parent->parent->parent : NULL;
    }
    return op == around;
}

static bool is_used_outside(const lilac_tile_value *value, const lilac_tile_op *op) {
    const lilac_tile_use *use = value->uses;
    while (use != NULL && is_within(use->op, op)) {
        use = use->next;
    }
    return use != NULL;
}

void lilac_tile_add_partition_results(lilac_tile_module *module, lilac_tile_op *op, uint32_t count,
                                      lilac_tile_value *values) {
    const lilac_tile_type **types =
        lilac_arena_array(module->arena, const lilac_tile_type *, count);
    lilac_tile_value **yielded = lilac_arena_array(module->arena, lilac_tile_value *, count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_used_outside(&values[i], op)) {
            types[n] = values[i].type;
            yielded[n++] = &values[i];
        }
    }
    tile_change_results(module, op, NULL, n, types);
    for (uint32_t i = 0; i < n; i++) {
        for (lilac_tile_use *use = yielded[i]->uses, *next; use != NULL; use = next) {
            next = use->next;
            if (!is_within(use->op, op)) {
                lilac_tile_set_operand(use->op, use->index, &op->results[i]);
            }
        }
    }
    lilac_tile_op *end = op->regions[0]->first->last;
    lilac_tile_op *yield = lilac_tile_op_create(module, LILAC_TILE_OP_TTG_WARP_YIELD, n, yielded, 0,
                                                NULL, 0, end->location);
    lilac_tile_insert_before(end, yield);
    lilac_tile_remove(end);
}

/* ---- reading ------------------------------------------------------------------------------ */

static lilac_tile_region *new_region(tile_reader *reader, tile_draft *draft) {
    lilac_tile_region *region = tile_region_create(reader->module, reader->function);
    draft->regions[draft->region_count++] = region;
    return region;
}

/* partition0(%a: i32) num_warps(4) { … } */
static bool read_partition(tile_reader *reader, tile_draft *draft, int64_t *warps) {
    lilac_scanner *scan = &reader->scan;
    if (draft->region_count > TILE_MOST_PARTITIONS) {
        return tile_fail(reader, lilac_scanner_position(scan), "count-mismatch",
                         "ttg.warp_specialize has at most %d partitions", TILE_MOST_PARTITIONS);
    }
    lilac_scanner_next(scan);
    uint32_t mark;
    tile_scope_open(reader, &mark);
    lilac_tile_block *entry = tile_block_create(reader->module);
    bool good = lilac_scanner_expect(scan, '(') && tile_read_arguments(reader, entry, NULL, NULL) &&
                lilac_scanner_expect_word(scan, "num_warps") && lilac_scanner_expect(scan, '(') &&
                lilac_scanner_integer(scan, warps) && lilac_scanner_expect(scan, ')') &&
                tile_read_region(reader, new_region(reader, draft), entry);
    tile_scope_close(reader, mark);
    return good;
}

static bool is_partition(const lilac_scanner *scan, uint32_t number) {
    char name[24];
    (void)snprintf(name, sizeof name, "partition%u", number);
    return tile_token_is(scan, name);
}

bool tile_read_warp_specialize(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    int64_t warps[TILE_MOST_PARTITIONS + 1] = {0};
    uint32_t count = 0;
    if (!lilac_scanner_expect(scan, '(') || !tile_read_operands(reader, &draft->operands) ||
        !lilac_scanner_expect(scan, ')') ||
        (lilac_scanner_accept_word(scan, "attributes") &&
         !tile_read_dictionary(reader, &draft->attributes)) ||
        !lilac_scanner_expect_word(scan, "default") ||
        !tile_read_region(reader, new_region(reader, draft), NULL)) {
        return false;
    }
    while (is_partition(scan, count)) {
        if (!read_partition(reader, draft, &warps[count++])) {
            return false;
        }
    }
    if (lilac_tile_find(&draft->attributes, warps_name)) {
        return tile_fail(reader, draft->position, "redefinition", "attribute '%s' is there twice",
                         warps_name);
    }
    int64_t *copy = lilac_arena_array(reader->module->arena, int64_t, count + 1);
    memcpy(copy, warps, sizeof *copy * count);
    tile_attribute_append(
        reader->module->arena, &draft->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGERS,
                                .name = lilac_intern_string(reader->context, warps_name),
                                .type = lilac_tile_scalar(reader->module, LILAC_I32),
                                .count = count,
                                .integers = copy});
    return tile_read_types_of_operation(reader, draft);
}

/* ---- printing ----------------------------------------------------------------------------- */

static void print_partition(tile_printer *printer, const lilac_tile_op *op, uint32_t number) {
    const lilac_tile_block *block = op->regions[1 + number]->first;
    lilac_text *out = printer->out;
    lilac_text_char(out, '\n');
    tile_print_indent(printer);
    lilac_text_printf(out, "partition%u(", number);
    for (uint32_t i = 0; i < block->argument_count; i++) {
        lilac_text_puts(out, i ? ", " : "");
        tile_print_value(printer, block->arguments[i]);
        lilac_text_puts(out, ": ");
        lilac_tile_print_type(out, block->arguments[i]->type);
        tile_print_location(printer, block->arguments[i]->location);
    }
    lilac_text_printf(out, ") num_warps(%u) ", lilac_tile_partition_warps(op, number));
    tile_print_region(printer, op->regions[1 + number], false, false);
}

void tile_print_warp_specialize(tile_printer *printer, const lilac_tile_op *op) {
    static const char *const hidden[] = {warps_name, NULL};
    lilac_text *out = printer->out;
    lilac_text_char(out, '(');
    tile_print_values(printer, op, 0, op->operand_count);
    lilac_text_char(out, ')');
    tile_print_dictionary(printer, " attributes ", &op->attributes, hidden);
    lilac_text_char(out, '\n');
    tile_print_indent(printer);
    lilac_text_puts(out, "default ");
    tile_print_region(printer, op->regions[0], false, false);
    for (uint32_t k = 0; k < lilac_tile_partition_count(op); k++) {
        print_partition(printer, op, k);
    }
    lilac_text_puts(out, " : (");
    tile_print_operand_types(printer, op, 0, op->operand_count);
    lilac_text_puts(out, ") -> ");
    tile_print_result_types(printer, op);
}

bool tile_fits_warp_specialize(const lilac_tile_op *op) {
    const lilac_tile_attribute *warps = lilac_tile_find(&op->attributes, warps_name);
    bool fits = op->region_count > 0 && warps != NULL && warps->kind == LILAC_TILE_ATTR_INTEGERS &&
                warps->count == op->region_count - 1 && op->regions[0]->first != NULL &&
                op->regions[0]->first->argument_count == 0;
    for (uint32_t r = 1; fits && r < op->region_count; r++) {
        fits = op->regions[r]->first != NULL && op->regions[r]->first->next == NULL;
    }
    return fits;
}

/* ---- rules -------------------------------------------------------------------------------- */

static bool refuse(const tile_verifier *verifier, const lilac_tile_op *op, const char *id,
                   const char *message) {
    tile_op_error(verifier->module, op, id, "'%s' %s", lilac_tile_op_info_get(op->code)->name,
                  message);
    return false;
}

/* A list of one number for each partition; optional. */
static bool check_list(const tile_verifier *verifier, const lilac_tile_op *op, const char *name) {
    const lilac_tile_attribute *found = lilac_tile_find(&op->attributes, name);
    if (found == NULL || (found->kind == LILAC_TILE_ATTR_INTEGERS &&
                          found->count == lilac_tile_partition_count(op))) {
        return true;
    }
    tile_op_error(verifier->module, op, "bad-attribute",
                  "the attribute '%s' of '%s' needs one i32 for each of its %u partitions", name,
                  lilac_tile_op_info_get(op->code)->name, lilac_tile_partition_count(op));
    return false;
}

static bool check_numbers(const tile_verifier *verifier, const lilac_tile_op *op) {
    enum { MOST_WARPS = 16, MOST_REGISTERS = 256 };
    for (uint32_t k = 0; k < lilac_tile_partition_count(op); k++) {
        const int64_t warps = lilac_tile_find(&op->attributes, warps_name)->integers[k];
        if (warps < 1 || warps > MOST_WARPS || !is_power_of_two((uint64_t)warps)) {
            tile_op_error(verifier->module, op, "bad-attribute",
                          "partition %u has %lld warps; a power of two from 1 to %d is allowed", k,
                          (long long)warps, MOST_WARPS);
            return false;
        }
        const lilac_tile_attribute *registers = lilac_tile_find(&op->attributes, registers_name);
        if (registers != NULL &&
            (registers->integers[k] < 1 || registers->integers[k] > MOST_REGISTERS)) {
            tile_op_error(verifier->module, op, "bad-attribute",
                          "partition %u requests %lld registers; 1 to %d are allowed", k,
                          (long long)registers->integers[k], MOST_REGISTERS);
            return false;
        }
    }
    return true;
}

static bool check_partition(const tile_verifier *verifier, const lilac_tile_op *op,
                            uint32_t number) {
    const lilac_tile_block *block = op->regions[1 + number]->first;
    if (block->argument_count != op->operand_count) {
        tile_op_error(verifier->module, op, "count-mismatch",
                      "partition %u has %u arguments; the operation has %u operands", number,
                      block->argument_count, op->operand_count);
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (block->arguments[i]->type != op->operands[i].value->type) {
            tile_op_error(verifier->module, op, "type-mismatch",
                          "argument %u of partition %u is '%s'; the operand is '%s'", i + 1, number,
                          tile_type_text(verifier->module, block->arguments[i]->type),
                          tile_type_text(verifier->module, op->operands[i].value->type));
            return false;
        }
    }
    return true;
}

bool tile_verify_warp_specialize(const tile_verifier *verifier, const lilac_tile_op *op) {
    if (lilac_tile_find(&op->attributes, warps_name) == NULL) {
        return refuse(verifier, op, "bad-attribute", "needs the attribute 'partitionNumWarps'");
    }
    if (lilac_tile_partition_count(op) > TILE_MOST_PARTITIONS) {
        return refuse(verifier, op, "count-mismatch", "has more partitions than barriers exist");
    }
    if (!check_list(verifier, op, warps_name) || !check_list(verifier, op, registers_name) ||
        !check_list(verifier, op, "warpGroupStartIds") || !check_numbers(verifier, op)) {
        return false;
    }
    for (const lilac_tile_op *around = op->parent->parent->parent; around != NULL;
         around = around->parent->parent->parent) {
        if (around->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
            return refuse(verifier, op, "bad-region", "is inside another one");
        }
    }
    if (op->regions[0]->first->argument_count != 0) {
        return refuse(verifier, op, "count-mismatch", "has a default region with arguments");
    }
    const lilac_tile_op *yield = op->regions[0]->first->last;
    bool good = yield->operand_count == op->result_count;
    for (uint32_t i = 0; good && i < op->result_count; i++) {
        good = yield->operands[i].value->type == op->results[i].type;
    }
    if (!good) {
        return refuse(verifier, op, "type-mismatch",
                      "has other results than its default region yields");
    }
    for (uint32_t k = 0; k < lilac_tile_partition_count(op); k++) {
        if (!check_partition(verifier, op, k)) {
            return false;
        }
    }
    return true;
}
