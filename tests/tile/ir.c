/* Building and editing tile IR: types are interned, lists of uses are correct after each
 * edit, removed operations have no uses, clones are independent, and printed names are unique. */
#include <lilac/tile.h>

#include "support/tile_harness.h"

static void check_printed(const lilac_tile_module *module, const char *expected) {
    lilac_text text = {0};
    lilac_tile_print(&text, module, false);
    assert_string_equal(lilac_text_get(&text), expected);
    lilac_text_clear(&text);
}

/* The uses of a value, and that each is where it says. */
static uint32_t count_uses(const lilac_tile_value *value) {
    uint32_t count = 0;
    for (const lilac_tile_use *use = value->uses; use; use = use->next, count++) {
        assert_ptr_equal(use->value, value);
        assert_ptr_equal(&use->op->operands[use->index], use);
        assert_ptr_equal(*use->previous, use);
    }
    return count;
}

static void types_are_interned(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = lilac_tile_module_create(context);
    const lilac_tile_type *f16 = lilac_tile_scalar(module, LILAC_F16);
    const lilac_tile_type *pointer = lilac_tile_pointer(module, f16, 1);
    int64_t shape[] = {4, 8}, turned[] = {8, 4};
    const lilac_tile_type *tensor = lilac_tile_tensor(module, pointer, 2, shape, NULL);
    assert_ptr_equal(f16, lilac_tile_scalar(module, LILAC_F16));
    assert_ptr_equal(pointer, lilac_tile_pointer(module, f16, 1));
    assert_ptr_not_equal(pointer, lilac_tile_pointer(module, f16, 3));
    assert_ptr_equal(tensor, lilac_tile_tensor(module, pointer, 2, shape, NULL));
    assert_ptr_not_equal(tensor, lilac_tile_tensor(module, pointer, 2, turned, NULL));
    assert_ptr_not_equal(tensor, lilac_tile_tensor(module, f16, 2, shape, NULL));
    assert_ptr_not_equal(
        lilac_tile_tensor(module, f16, 2, shape, NULL),
        lilac_tile_descriptor(module, lilac_tile_tensor(module, f16, 2, shape, NULL)));
    /* Layouts are compared by what they are, not by where they stand. */
    lilac_layout a, b;
    lilac_layout_identity(&a, 5, "lane", "dim0");
    lilac_layout_identity(&b, 5, "lane", "dim0");
    const lilac_tile_type *with = lilac_tile_with_layout(module, tensor, &a);
    assert_ptr_not_equal(with, tensor);
    assert_ptr_equal(with, lilac_tile_with_layout(module, tensor, &b));
    assert_ptr_not_equal(with->layout, &a);
    assert_ptr_equal(with->layout, lilac_tile_intern_layout(module, &b));
    assert_ptr_equal(with->layout, lilac_tile_intern_layout(module, with->layout));
    assert_ptr_equal(lilac_tile_with_layout(module, with, NULL), tensor);
    assert_ptr_equal(lilac_tile_with_layout(module, f16, &a), f16);
    lilac_layout_identity(&b, 5, "register", "dim0");
    assert_ptr_not_equal(with, lilac_tile_with_layout(module, tensor, &b));
    /* Looking. */
    assert_true(lilac_tile_is_tensor(tensor));
    assert_true(lilac_tile_is_pointer(tensor));
    assert_true(lilac_tile_is_pointer(pointer));
    assert_false(lilac_tile_is_pointer(f16));
    assert_ptr_equal(lilac_tile_element(tensor), pointer);
    assert_ptr_equal(lilac_tile_element(f16), f16);
    assert_int_equal(lilac_tile_element_bits(tensor), 64);
    assert_int_equal(lilac_tile_element_bits(f16), 16);
    assert_int_equal(lilac_tile_element_count(tensor), 32);
    assert_int_equal(lilac_tile_element_count(f16), 1);
    /* Very many types: the tables grow, the pointers stay, ids are dense. */
    const lilac_tile_type *many[2000];
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 2000; i++) {
            int64_t size[] = {INT64_C(1) << i % 10, INT64_C(1) << i / 10 % 10, i / 100 + 1};
            const lilac_tile_type *type = lilac_tile_tensor(module, f16, 3, size, NULL);
            if (round) {
                assert_ptr_equal(type, many[i]);
            }
            many[i] = type;
            assert_true(type->id < 2010);
        }
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static lilac_tile_op *binary(lilac_tile_module *module, lilac_tile_opcode code, lilac_tile_value *a,
                             lilac_tile_value *b) {
    return lilac_tile_op_create(module, code, 2, (lilac_tile_value *[]){a, b}, 1,
                                (const lilac_tile_type *[]){a->type}, 0, 0);
}

/* A function made from nothing is what its text says. */
static void building(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, "module { tt.func @f(%n: i32) { tt.return } }");
    lilac_tile_function *f = module->functions;
    lilac_tile_value *n = f->parameters[0];
    lilac_tile_op *end = f->body->first->last;
    lilac_tile_op *twice = binary(module, LILAC_TILE_OP_ARITH_ADDI, n, n);
    lilac_tile_insert_before(end, twice);
    lilac_tile_op *square = binary(module, LILAC_TILE_OP_ARITH_MULI, n, &twice->results[0]);
    lilac_tile_insert_after(twice, square);
    square->results[0].name = lilac_intern_string(context, "square");
    lilac_tile_value *bounds[] = {n, &twice->results[0], n, &square->results[0]};
    const lilac_tile_type *type[] = {n->type};
    lilac_tile_op *loop =
        lilac_tile_op_create(module, LILAC_TILE_OP_SCF_FOR, 4, bounds, 1, type, 1, 0);
    lilac_tile_block *body = lilac_tile_block_create(module, loop->regions[0]);
    lilac_tile_value *i = lilac_tile_add_argument(module, body, n->type, NULL, 0);
    lilac_tile_value *sum =
        lilac_tile_add_argument(module, body, n->type, lilac_intern_string(context, "sum"), 0);
    lilac_tile_append(body, binary(module, LILAC_TILE_OP_ARITH_XORI, sum, i));
    lilac_tile_op *yield =
        lilac_tile_op_create(module, LILAC_TILE_OP_SCF_YIELD, 1,
                             (lilac_tile_value *[]){&body->first->results[0]}, 0, NULL, 0, 0);
    lilac_tile_append(body, yield);
    lilac_tile_insert_before(end, loop);
    lilac_tile_attribute stages = {.kind = LILAC_TILE_ATTR_INTEGER,
                                   .name = lilac_intern_string(context, "tt.num_stages"),
                                   .type = n->type,
                                   .integer = 2};
    lilac_tile_set_attribute(module, &loop->attributes, &stages);
    assert_ptr_equal(loop->regions[0]->function, f);
    assert_true(lilac_tile_verify(module, false));
    check_printed(module, "module {\n"
                          "  tt.func public @f(%n: i32) {\n"
                          "    %0 = arith.addi %n, %n : i32\n"
                          "    %square = arith.muli %n, %0 : i32\n"
                          "    %1 = scf.for %arg0 = %n to %0 step %n iter_args(%sum = %square) -> "
                          "(i32)  : i32 {\n"
                          "      %2 = arith.xori %sum, %arg0 : i32\n"
                          "      scf.yield %2 : i32\n"
                          "    } {tt.num_stages = 2 : i32}\n"
                          "    tt.return\n"
                          "  }\n"
                          "}\n");
    /* Dense ids, arguments and results, each once. */
    lilac_tile_number(f);
    assert_int_equal(f->value_count, 7);
    bool seen[7] = {false};
    const lilac_tile_value *all[] = {
        n,   &twice->results[0],      &square->results[0], &loop->results[0], i,
        sum, &body->first->results[0]};
    for (int k = 0; k < 7; k++) {
        assert_true(all[k]->id < 7);
        assert_false(seen[all[k]->id]);
        seen[all[k]->id] = true;
    }
    /* Attributes: replaced by name, found, defaults. */
    stages.integer = 5;
    lilac_tile_set_attribute(module, &loop->attributes, &stages);
    assert_int_equal(loop->attributes.count, 1);
    assert_int_equal(lilac_tile_find_integer(&loop->attributes, "tt.num_stages", 0), 5);
    assert_int_equal(lilac_tile_find_integer(&loop->attributes, "absent", -7), -7);
    assert_null(lilac_tile_find_text(&loop->attributes, "tt.num_stages"));
    for (int k = 0; k < 40; k++) {
        char name[16] = {'a', (char)('a' + k / 10), (char)('0' + k % 10)};
        lilac_tile_attribute extra = {.kind = LILAC_TILE_ATTR_INTEGER,
                                      .name = lilac_intern_string(context, name),
                                      .type = n->type,
                                      .integer = k};
        lilac_tile_set_attribute(module, &loop->attributes, &extra);
    }
    assert_int_equal(loop->attributes.count, 41);
    assert_int_equal(lilac_tile_find_integer(&loop->attributes, "aa7", 0), 7);
    assert_int_equal(lilac_tile_find_integer(&loop->attributes, "ad9", 0), 39);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void uses_follow_edits(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, "module { tt.func @f(%a: i32, %b: i32) {\n"
                                                   "%c = arith.addi %a, %a : i32\n"
                                                   "%d = arith.muli %c, %a : i32\n"
                                                   "%e = arith.subi %d, %c : i32\n"
                                                   "tt.return } }");
    lilac_tile_function *f = module->functions;
    lilac_tile_value *a = f->parameters[0], *b = f->parameters[1];
    lilac_tile_op *c = f->body->first->first, *d = c->next, *e = d->next;
    assert_int_equal(count_uses(a), 3);
    assert_int_equal(count_uses(b), 0);
    assert_int_equal(count_uses(&c->results[0]), 2);
    lilac_tile_set_operand(c, 1, b);
    assert_int_equal(count_uses(a), 2);
    assert_int_equal(count_uses(b), 1);
    lilac_tile_set_operand(c, 1, b); /* the same again */
    assert_int_equal(count_uses(b), 1);
    lilac_tile_replace_uses(&c->results[0], b);
    assert_int_equal(count_uses(&c->results[0]), 0);
    assert_int_equal(count_uses(b), 3);
    lilac_tile_replace_uses(b, b);
    assert_int_equal(count_uses(b), 3);
    lilac_tile_remove(c);
    assert_int_equal(count_uses(a), 1);
    assert_int_equal(count_uses(b), 2);
    assert_ptr_equal(f->body->first->first, d);
    assert_null(d->previous);
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_remove(e);
    lilac_tile_remove(d);
    assert_int_equal(count_uses(a), 0);
    assert_int_equal(count_uses(b), 0);
    assert_ptr_equal(f->body->first->first, f->body->first->last);
    assert_ptr_equal(lilac_tile_operand(d, 0), NULL);
    assert_null(lilac_tile_operand(d, 5));
    check_printed(module,
                  "module {\n  tt.func public @f(%a: i32, %b: i32) {\n    tt.return\n  }\n}\n");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void count_visit(void *data, lilac_tile_op *op) {
    uint32_t *counts = data;
    counts[op->code]++;
}

/* A clone defines new values inside and uses the same values from outside. Its names are unique. */
static void cloning_loops(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(
        context, "module { tt.func @f(%n: i32, %b: i1) {\n"
                 "%c = arith.constant 3 : i32\n"
                 "%s = scf.for %i = %n to %n step %c iter_args(%x = %c) -> (i32)  : i32 {\n"
                 "  %y = arith.addi %x, %n : i32\n"
                 "  %z = scf.if %b -> (i32) { scf.yield %y : i32 } else { scf.yield %i : i32 }\n"
                 "  scf.yield %z : i32\n"
                 "} {tt.flatten}\n"
                 "tt.return } }");
    lilac_tile_function *f = module->functions;
    lilac_tile_op *loop = f->body->first->first->next;
    lilac_tile_op *copy = lilac_tile_clone(module, loop);
    assert_null(copy->parent);
    assert_int_equal(count_uses(f->parameters[0]), 6);
    lilac_tile_insert_after(loop, copy);
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_set_operand(copy, 3, &loop->results[0]);
    assert_true(lilac_tile_verify(module, false));
    check_printed(module,
                  "module {\n"
                  "  tt.func public @f(%n: i32, %b: i1) {\n"
                  "    %c = arith.constant 3 : i32\n"
                  "    %s = scf.for %i = %n to %n step %c iter_args(%x = %c) -> (i32)  : i32 {\n"
                  "      %y = arith.addi %x, %n : i32\n"
                  "      %z = scf.if %b -> (i32) {\n"
                  "        scf.yield %y : i32\n"
                  "      } else {\n"
                  "        scf.yield %i : i32\n"
                  "      }\n"
                  "      scf.yield %z : i32\n"
                  "    } {tt.flatten}\n"
                  "    %s_0 = scf.for %i = %n to %n step %c iter_args(%x = %s) -> (i32)  : i32 {\n"
                  "      %y = arith.addi %x, %n : i32\n"
                  "      %z = scf.if %b -> (i32) {\n"
                  "        scf.yield %y : i32\n"
                  "      } else {\n"
                  "        scf.yield %i : i32\n"
                  "      }\n"
                  "      scf.yield %z : i32\n"
                  "    } {tt.flatten}\n"
                  "    tt.return\n"
                  "  }\n"
                  "}\n");
    /* Changing one does not change the other. */
    lilac_tile_remove(copy);
    assert_int_equal(count_uses(f->parameters[0]), 3);
    assert_int_equal(count_uses(&loop->results[0]), 0);
    assert_true(lilac_tile_verify(module, false));
    uint32_t counts[LILAC_TILE_OP_COUNT] = {0};
    lilac_tile_walk(f->body, count_visit, counts);
    assert_int_equal(counts[LILAC_TILE_OP_SCF_YIELD], 3);
    assert_int_equal(counts[LILAC_TILE_OP_SCF_FOR], 1);
    assert_int_equal(counts[LILAC_TILE_OP_SCF_IF], 1);
    assert_int_equal(counts[LILAC_TILE_OP_ARITH_ADDI], 1);
    assert_int_equal(counts[LILAC_TILE_OP_TT_RETURN], 1);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void remove_dead(void *data, lilac_tile_op *op) {
    (void)data;
    bool used = false;
    for (uint32_t i = 0; i < op->result_count; i++) {
        used |= op->results[i].uses != NULL;
    }
    if (!used && lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) {
        lilac_tile_remove(op);
    }
}

static void walks_may_remove(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        read_tile(context, "module { tt.func @f(%a: i32, %x: tensor<8xf32>) {\n"
                           "%c = arith.addi %a, %a : i32\n"
                           "%r = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n"
                           "^bb0(%p: f32, %q: f32):\n"
                           "  %u = arith.addf %p, %q : f32\n"
                           "  tt.reduce.return %u : f32\n"
                           "}) : (tensor<8xf32>) -> f32\n"
                           "%d = arith.muli %a, %a : i32\n"
                           "tt.return } }");
    lilac_tile_walk(module->functions->body, remove_dead, NULL);
    assert_true(lilac_tile_verify(module, false));
    assert_int_equal(count_uses(module->functions->parameters[0]), 0);
    assert_int_equal(count_uses(module->functions->parameters[1]), 0);
    lilac_tile_op *first = module->functions->body->first->first;
    assert_int_equal(first->code, LILAC_TILE_OP_TT_RETURN);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* Names that no reader would take, names that clash, numbers as names: all print as something that
 * reads back to the same text. */
static void names_are_made_apart(void **state) {
    (void)state;
    static const char *const names[] = {"v",   "v",  "v_0", "v_0", "7", "7",  "0", "",
                                        "a b", "%x", "-",   "a-",  "é", "1x", "?", NULL};
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, "module { tt.func @f(%v: i32) { tt.return } }");
    lilac_tile_function *f = module->functions;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lilac_tile_op *op =
            binary(module, LILAC_TILE_OP_ARITH_ADDI, f->parameters[0], f->parameters[0]);
        op->results[0].name = names[i] ? lilac_intern_string(context, names[i]) : NULL;
        lilac_tile_insert_before(f->body->first->last, op);
    }
    lilac_text text = {0};
    lilac_tile_print(&text, module, false);
    lilac_tile_module *again = read_tile(context, text.bytes);
    check_printed(again, text.bytes);
    lilac_text_clear(&text);
    lilac_tile_module_destroy(again);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* One operation prints as it does in its function, and also when it stands nowhere. */
static void printing_one(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, "module { tt.func @f(%a: i32) {\n"
                                                   "%0 = arith.addi %a, %a : i32\n"
                                                   "%1 = arith.addi %a, %0 : i32\n"
                                                   "tt.return } }");
    lilac_tile_op *op = module->functions->body->first->first->next;
    lilac_text text = {0};
    lilac_tile_print_op(&text, module, op);
    assert_string_equal(lilac_text_get(&text), "%1 = arith.addi %a, %0 : i32");
    lilac_text_reset(&text);
    lilac_tile_op *alone = lilac_tile_clone(module, op);
    lilac_tile_print_op(&text, module, alone);
    assert_string_equal(lilac_text_get(&text), "%0 = arith.addi %a, %? : i32");
    lilac_tile_remove(alone);
    lilac_text_clear(&text);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* The table is what its head says: formats and signatures use the language only, names are unique
 * and the enum follows from them. */
/* In the order of the text, and what is not a constant. */
static void zeros(void **state) {
    (void)state;
    static const char expected[] = "yynyynynyyn";
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        read_tile(context, "tt.func @f(%x: f32) {\n"
                           "%0 = arith.constant 0 : i32\n"
                           "%1 = arith.constant 0.0 : f32\n"
                           "%2 = arith.constant -0.0 : f32\n"
                           "%3 = arith.constant dense<0.0> : tensor<4xf16>\n"
                           "%4 = arith.constant dense<[0, 0]> : tensor<2xi8>\n"
                           "%5 = arith.constant dense<[0, 1]> : tensor<2xi8>\n"
                           "%6 = arith.constant false\n"
                           "%7 = arith.constant dense<-0.0> : tensor<4xf32>\n"
                           "%8 = tt.splat %1 : f32 -> tensor<4xf32>\n"
                           "%9 = tt.splat %0 : i32 -> tensor<4xi32>\n"
                           "%10 = tt.splat %x : f32 -> tensor<4xf32>\n"
                           "tt.return\n}\n");
    const lilac_tile_op *op = module->functions->body->first->first;
    assert_false(lilac_tile_is_zero(module->functions->body->first->arguments[0]));
    for (uint32_t i = 0; expected[i] != '\0'; i++, op = op->next) {
        assert_int_equal(lilac_tile_is_zero(&op->results[0]), expected[i] == 'y');
    }
    assert_int_equal(op->code, LILAC_TILE_OP_TT_RETURN);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void the_table_is_sound(void **state) {
    (void)state;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const lilac_tile_op_info *info = lilac_tile_op_info_get((lilac_tile_opcode)code);
        assert_non_null(info->name);
        assert_non_null(strchr(info->name, '.'));
        assert_true(strlen(info->doc) > 0);
        assert_non_null(strstr(info->signature, "->"));
        uint32_t bars = 0;
        for (const char *at = info->format; *at; at++) {
            bars += *at == '|';
        }
        assert_int_equal(bars % 2, 0);
        bool generic = (info->traits & LILAC_TILE_GENERIC) != 0, own = !strcmp(info->format, "own");
        if (!generic && !own && strncmp(info->name, "gpu.", 4) != 0) {
            assert_non_null(strchr(info->format, '{'));
        }
        for (int other = code + 1; other < LILAC_TILE_OP_COUNT; other++) {
            assert_string_not_equal(info->name,
                                    lilac_tile_op_info_get((lilac_tile_opcode)other)->name);
        }
    }
    assert_string_equal(lilac_tile_op_info_get(LILAC_TILE_OP_TT_REDUCE_RETURN)->name,
                        "tt.reduce.return");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_interned), cmocka_unit_test(building),
        cmocka_unit_test(uses_follow_edits),  cmocka_unit_test(cloning_loops),
        cmocka_unit_test(walks_may_remove),   cmocka_unit_test(names_are_made_apart),
        cmocka_unit_test(printing_one),       cmocka_unit_test(zeros),
        cmocka_unit_test(the_table_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
