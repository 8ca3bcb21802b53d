/* metadata: the facts about a compiled kernel that a launcher reads, and the statistics of the
 * passes, as one line of JSON.
 *
 * Triton's launcher reads these keys: name, shared, num_warps, num_ctas, cluster_dims, tmem_size,
 * tensordesc_meta, and the sizes and alignments of scratch memory. lilac's kernels keep tensor maps
 * in scratch memory in global memory, and need no profile scratch and no tensor memory, so these
 * are 0. Tensor descriptors are parameters of numbers and pointers, which Triton's launcher passes
 * where tensordesc_meta is empty. The remaining conversions between layouts, each with its price
 * and its neighbours, and the plans of the accesses to global memory are statistics for people.
 */
#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/tensor_map.h>

#include <string.h>

static void put_string(lilac_text *out, const char *string) {
    lilac_text_json(out, string, strlen(string));
}

/* Of the base pointer of a tensor descriptor, the descriptor's type. Its i64 shape, i64 strides and
 * i1 padding are the next parameters. */
static void put_descriptor(lilac_text *out, const lilac_tile_attributes *attributes) {
    const lilac_tile_attribute *descriptor = lilac_tile_find(attributes, "lilac.descriptor");
    if (descriptor == NULL || descriptor->type == NULL) {
        return;
    }
    lilac_text type;
    lilac_text_init(&type);
    lilac_tile_print_type(&type, descriptor->type);
    lilac_text_puts(out, ", \"descriptor\": ");
    lilac_text_json(out, lilac_text_get(&type), type.length);
    lilac_text_clear(&type);
}

static void put_parameters(lilac_text *out, const lilac_tile_function *function) {
    lilac_text type;
    lilac_text_init(&type);
    lilac_text_puts(out, ", \"parameters\": [");
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_value *parameter = function->parameters[i];
        lilac_text_puts(out, i == 0 ? "{\"name\": " : ", {\"name\": ");
        put_string(out, parameter->name != NULL ? parameter->name : "");
        lilac_text_reset(&type);
        lilac_tile_print_type(&type, parameter->type);
        lilac_text_puts(out, ", \"type\": ");
        lilac_text_json(out, lilac_text_get(&type), type.length);
        put_descriptor(out, &function->parameter_attributes[i]);
        lilac_text_char(out, '}');
    }
    lilac_text_char(out, ']');
    lilac_text_clear(&type);
}

/* What a tensor map of blocks of this type has in common with all others. */
static void put_box(lilac_text *out, const lilac_box *box, const lilac_tile_type *block) {
    lilac_text_printf(out,
                      "\"swizzle\": %u, \"elem_size\": %u, \"elem_type\": %u, \"block_size\": [",
                      lilac_tensor_swizzle_of(box->swizzle_bytes),
                      lilac_tile_element_bits(block) / 8, lilac_engine_box_element(block));
    for (uint32_t d = 0; d < box->rank; d++) {
        lilac_text_printf(out, d == 0 ? "%u" : ", %u", box->sizes[d]);
    }
    lilac_text_char(out, ']');
}

/* Does the launcher make this parameter, a tensor map, from the others? */
static bool is_made(const lilac_tile_function *function, uint32_t parameter) {
    return function->parameter_attributes != NULL &&
           lilac_tile_find(&function->parameter_attributes[parameter], "lilac.launch_map") != NULL;
}

/* tensordesc_meta: for each descriptor from the host, what its tensor map needs, or null: its parts
 * are passed. Empty: the parts of all are passed. */
static void put_maps(lilac_text *out, const lilac_tile_function *function) {
    bool any = false, first = true;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        any |=
            function->parameters[i]->type->kind == LILAC_TILE_DESCRIPTOR && !is_made(function, i);
    }
    lilac_text_puts(out, ", \"tensordesc_meta\": [");
    for (uint32_t i = 0; any && i < function->parameter_count; i++) {
        const lilac_tile_attributes *attributes = &function->parameter_attributes[i];
        const bool map = function->parameters[i]->type->kind == LILAC_TILE_DESCRIPTOR;
        if ((!map && lilac_tile_find(attributes, "lilac.descriptor") == NULL) ||
            is_made(function, i)) {
            continue;
        }
        lilac_text_puts(out, first ? "" : ", ");
        first = false;
        lilac_box box;
        if (!map || !lilac_engine_box(&box, function->parameters[i]->type->element)) {
            lilac_text_puts(out, "null");
            continue;
        }
        lilac_text_char(out, '{');
        put_box(out, &box, function->parameters[i]->type->element);
        lilac_text_puts(out, ", \"fp4_padded\": false}");
    }
    lilac_text_char(out, ']');
}

/* [[2, 3], [1, [4, 2]], [8]]: 2 · parameter 3 + parameter 4 / 2 + 8. */
static void put_sum(lilac_text *out, const lilac_launch_sum *sum) {
    lilac_text_char(out, '[');
    for (uint32_t i = 0; i < sum->count; i++) {
        lilac_text_printf(out, "%s[%lld", i > 0 ? ", " : "", (long long)sum->terms[i].factor);
        for (uint32_t k = 0; k < sum->terms[i].parameter_count; k++) {
            const uint32_t parameter = sum->terms[i].parameters[k];
            const uint32_t divisor = sum->terms[i].divisors[k];
            lilac_text_printf(out, divisor > 1 ? ", [%u, %u]" : ", %u", parameter, divisor);
        }
        lilac_text_char(out, ']');
    }
    lilac_text_char(out, ']');
}

static void put_sums(lilac_text *out, const char *key, uint32_t count,
                     const lilac_launch_sum *sums) {
    lilac_text_printf(out, ", \"%s\": [", key);
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_puts(out, i > 0 ? ", " : "");
        put_sum(out, &sums[i]);
    }
    lilac_text_char(out, ']');
}

/* What the sizes are rounded up to, if one of them is. */
static void put_multiples(lilac_text *out, const lilac_launch_map *map) {
    bool any = false;
    for (uint32_t i = 0; i < map->rank; i++) {
        any |= map->multiples[i] > 1;
    }
    for (uint32_t i = 0; any && i < map->rank; i++) {
        lilac_text_printf(out, "%s%u", i > 0 ? ", " : ", \"multiples\": [", map->multiples[i]);
    }
    lilac_text_puts(out, any ? "]" : "");
}

/* The bytes that a miss in the second-level cache reads: wide rows are copied by several boxes
 * at the same time, which need the neighbouring bytes, too. */
static uint32_t promotion_of(const lilac_tile_type *block) {
    const int64_t bits = lilac_tile_element_bits(block);
    return block->shape[block->rank - 1] * bits / 8 >= 256 ? 256 : 128;
}

/* The tensor maps that the launcher makes, and the conditions of a launch. */
static void put_launch_maps(lilac_text *out, const lilac_tile_function *function) {
    lilac_arena *arena = lilac_arena_create();
    lilac_launch_maps maps;
    lilac_box box;
    if (!lilac_launch_maps_get(&maps, arena, function)) {
        maps.count = 0; /* recorded */
    }
    lilac_text_puts(out, ", \"launch_maps\": [");
    for (uint32_t i = 0; i < maps.count; i++) {
        const lilac_launch_map *map = &maps.maps[i];
        const lilac_tile_type *block = function->parameters[map->parameter]->type->element;
        lilac_text_printf(out,
                          "%s{\"parameter\": %u, \"base\": %u, \"offset\": ", i > 0 ? ", " : "",
                          map->parameter, map->base);
        put_sum(out, &map->offset);
        put_sums(out, "sizes", map->rank, map->sizes);
        put_sums(out, "strides", map->rank - 1, map->strides);
        put_multiples(out, map);
        lilac_text_printf(out, ", \"pitch\": %u, \"l2_promotion\": %u, ", map->pitch,
                          promotion_of(block));
        if (lilac_engine_box(&box, block)) { /* the reader has tested it */
            put_box(out, &box, block);
        }
        lilac_text_char(out, '}');
    }
    lilac_text_char(out, ']');
    if (maps.count > 0) {
        lilac_text_printf(
            out, ", \"launch_conditions\": {\"grid\": [%u, %u, %u], \"parameters\": [",
            maps.conditions.grid[0], maps.conditions.grid[1], maps.conditions.grid[2]);
        for (uint32_t i = 0; i < maps.conditions.parameter_count; i++) {
            lilac_text_printf(out, i == 0 ? "%u" : ", %u", maps.conditions.parameters[i]);
        }
        lilac_text_puts(out, "]}");
    }
    if (maps.count > 0 && maps.split.divisor > 0) {
        lilac_text_puts(out, ", \"launch_split\": {\"iterations\": ");
        put_sum(out, &maps.split.iterations);
        lilac_text_printf(out, ", \"divisor\": %u, \"clocks\": %u, \"loads\": %u, \"bytes\": %u}",
                          maps.split.divisor, maps.split.clocks, maps.split.loads,
                          maps.split.bytes);
    }
    if (maps.count > 0 && maps.least.divisor > 0) {
        lilac_text_puts(out, ", \"launch_least\": {\"iterations\": ");
        put_sum(out, &maps.least.iterations);
        lilac_text_printf(out, ", \"divisor\": %u, \"least\": %u}", maps.least.divisor,
                          maps.least.least);
    }
    if (maps.one_block) {
        lilac_text_puts(out, ", \"launch_one_block\": true");
    }
    lilac_arena_destroy(arena);
}

static const lilac_simt_kernel *find_kernel(const lilac_simt_module *module, lilac_name name) {
    if (module == NULL) {
        return NULL;
    }
    const lilac_simt_kernel *kernel = module->kernels;
    while (kernel != NULL && strcmp(kernel->name, name) != 0) {
        kernel = kernel->next;
    }
    return kernel;
}

static void put_layout(lilac_text *out, const char *key, const lilac_layout *layout) {
    lilac_text text;
    lilac_text_init(&text);
    if (layout != NULL) {
        lilac_layout_print(&text, layout);
    }
    lilac_text_printf(out, ", \"%s\": ", key);
    lilac_text_json(out, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
}

static void put_cycles(lilac_text *out, uint64_t cycles) {
    lilac_text_printf(out, "\"cycles\": %.1f", (double)cycles / 16);
}

/* The position in the user's program. */
static void put_place(lilac_text *out, const lilac_context *context, const lilac_tile_op *op) {
    lilac_name file;
    uint32_t line, column;
    lilac_text_puts(out, "\"source\": ");
    if (lilac_location_file(context, op->location, &file, &line, &column)) {
        lilac_text_char(out, '[');
        put_string(out, file);
        lilac_text_printf(out, ", %u, %u]", line, column);
    } else {
        lilac_text_puts(out, "null");
    }
}

static void put_operation(lilac_text *out, const char *key, const lilac_tile_op *op) {
    lilac_text_printf(out, ", \"%s\": ", key);
    if (op != NULL) {
        put_string(out, lilac_tile_op_info_get(op->code)->name);
    } else {
        lilac_text_puts(out, "null");
    }
}

/* The remaining conversions, the price of each, the operation that defines its operand and the
 * first user of its result. */
static void put_conversions(lilac_text *out, const lilac_context *context,
                            const lilac_tile_function *function, const lilac_target *target) {
    lilac_arena *arena = lilac_arena_create();
    lilac_conversion_report report;
    lilac_engine_conversions(&report, arena, function, target);
    lilac_text_printf(out, ", \"conversions\": {\"count\": %u, ", report.count);
    put_cycles(out, report.cycles);
    lilac_text_puts(out, ", \"each\": [");
    for (uint32_t i = 0; i < report.count; i++) {
        const lilac_conversion *one = &report.conversions[i];
        lilac_text_puts(out, i == 0 ? "{" : ", {");
        put_place(out, context, one->op);
        put_operation(out, "made_by", one->source);
        put_operation(out, "wanted_by", one->user);
        put_layout(out, "from", one->from);
        put_layout(out, "to", one->to);
        lilac_text_printf(out, ", \"bits\": %u, \"loops\": %u, \"kind\": \"%s\", ",
                          one->element_bits, one->loops, lilac_plan_kind_name(one->kind));
        put_cycles(out, one->price.cycles);
        lilac_text_char(out, '}');
    }
    lilac_text_puts(out, "]}");
    lilac_arena_destroy(arena);
}

/* The plans of the accesses to global memory. */
static void put_accesses(lilac_text *out, const lilac_context *context,
                         lilac_tile_function *function, const lilac_target *target) {
    lilac_arena *arena = lilac_arena_create();
    lilac_access_report report;
    lilac_engine_accesses(&report, arena, function, target);
    lilac_text_printf(out, ", \"accesses\": {\"count\": %u, ", report.count);
    put_cycles(out, report.cycles);
    lilac_text_puts(out, ", \"each\": [");
    for (uint32_t i = 0; i < report.count; i++) {
        const lilac_access *one = &report.accesses[i];
        lilac_text_puts(out, i == 0 ? "{" : ", {");
        put_place(out, context, one->op);
        put_operation(out, "operation", one->op);
        lilac_text_printf(out, ", \"loops\": %u, \"plan\": ", one->loops);
        lilac_plan_global_access_json(out, &one->plan);
        lilac_text_char(out, '}');
    }
    lilac_text_puts(out, "]}");
    lilac_arena_destroy(arena);
}

static void put_kernel(lilac_text *out, const lilac_compilation *compilation,
                       lilac_tile_function *function) {
    const lilac_context *context = compilation->context;
    const lilac_target *target = &compilation->target;
    const lilac_simt_kernel *kernel = find_kernel(compilation->simt, function->name);
    lilac_text name;
    lilac_text_init(&name);
    lilac_ptx_kernel_name(&name, function->name);
    lilac_text_puts(out, "\"name\": ");
    lilac_text_json(out, lilac_text_get(&name), name.length);
    lilac_text_clear(&name);
    lilac_text_puts(out, ", \"target\": ");
    put_string(out, target->arch->name);
    if (kernel != NULL) {
        lilac_text_printf(out, ", \"shared\": %u", kernel->shared_bytes);
    } else {
        lilac_text_puts(out, ", \"shared\": null");
    }
    const uint32_t scratch = kernel != NULL ? kernel->scratch_bytes : 0;
    lilac_text_printf(
        out,
        ", \"num_warps\": %u, \"asked_warps\": %u, \"num_ctas\": %u, \"num_stages\": %u"
        ", \"warp_size\": %u, \"cluster_dims\": [%u, 1, 1], \"tmem_size\": 0"
        ", \"global_scratch_size\": %u, \"global_scratch_align\": %u"
        ", \"profile_scratch_size\": 0, \"profile_scratch_align\": 1",
        kernel != NULL ? kernel->num_warps : target->num_warps, compilation->asked_warps,
        target->num_ctas, target->num_stages, target->arch->warp_size, target->num_ctas, scratch,
        scratch > 0 ? 128u : 1u);
    put_maps(out, function);
    put_launch_maps(out, function);
    put_parameters(out, function);
    put_conversions(out, context, function, target);
    put_accesses(out, context, function, target);
}

/* The next function at or after this one that is a kernel. */
static lilac_tile_function *next_kernel(lilac_tile_function *function) {
    while (function != NULL && (!function->is_public || function->body == NULL)) {
        function = function->next;
    }
    return function;
}

static void put_passes(lilac_text *out, const lilac_compilation *compilation) {
    lilac_text_puts(out, "\"passes\": [");
    for (uint32_t i = 0; i < compilation->pass_count; i++) {
        const lilac_pass_statistics *pass = &compilation->passes[i];
        lilac_text_puts(out, i == 0 ? "{\"name\": " : ", {\"name\": ");
        put_string(out, pass->name);
        lilac_text_printf(out, ", \"seconds\": %.9f, \"operations\": %u}", pass->seconds,
                          pass->operations);
    }
    lilac_text_char(out, ']');
}

void lilac_compilation_json(lilac_text *out, const lilac_compilation *compilation,
                            const lilac_options *options) {
    (void)options; /* the compilation has the completed target */
    lilac_tile_function *function = next_kernel(compilation->tile->functions);
    lilac_text_char(out, '{');
    if (function != NULL) {
        put_kernel(out, compilation, function);
        lilac_text_puts(out, ", ");
        function = next_kernel(function->next);
    }
    if (function != NULL) {
        lilac_text_puts(out, "\"more_kernels\": [");
        for (const char *separator = "{"; function != NULL; separator = ", {") {
            lilac_text_puts(out, separator);
            put_kernel(out, compilation, function);
            lilac_text_char(out, '}');
            function = next_kernel(function->next);
        }
        lilac_text_puts(out, "], ");
    }
    put_passes(out, compilation);
    lilac_text_char(out, '}');
}
