/* Pointers among the arguments of a kernel that have no buffer of their own.
 *
 *   p=null                    the null pointer
 *   y=same:x                  where the parameter or buffer x points
 *   y=same:x+128              128 elements of x further on
 *   y=same:x+512B             512 bytes further on
 *   ptrs=pointers:a,b+16,null a buffer of 64-bit pointers
 *
 *   same:      y ──▶ x ──▶ z     is followed to a buffer; a cycle is an error
 *
 * Names are looked up when all of them are bound, so their order does not matter. */
#include "arguments.h"

#include <inttypes.h>
#include <string.h>

static const char SAME[] = "same:", POINTERS[] = "pointers:";

enum { NOT_IN_A_BUFFER = -1 };

/* One NAME[+OFFSET[B]] of the command line. */
struct pointer_reference {
    value_binding binding;
    size_t begin, end; /* in the value */
    int64_t entry;     /* of arguments->entries; or the name itself is what points */
    bool visiting, done;
};

static bool starts_with(const char *string, const char *start) {
    return strncmp(string, start, strlen(start)) == 0;
}

bool pointer_is(const char *value) {
    return strcmp(value, "null") == 0 || starts_with(value, SAME) || starts_with(value, POINTERS);
}

/* ---- binding ---------------------------------------------------------------------------- */

static void add_reference(const value_binding *binding, size_t begin, size_t end, int64_t entry) {
    bound_arguments *a = binding->arguments;
    a->references =
        lilac_heap_grow(a->references, sizeof *a->references * (a->reference_count + 1));
    a->references[a->reference_count++] =
        (pointer_reference){.binding = *binding, .begin = begin, .end = end, .entry = entry};
}

static uint64_t count_items(const char *list) {
    uint64_t count = 1;
    for (; *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

/* A buffer of as many pointers as the list has names. */
static bool bind_list(const value_binding *binding) {
    bound_arguments *a = binding->arguments;
    const uint64_t count = count_items(binding->value + strlen(POINTERS));
    npy array = {.rank = 1, .shape = {count}, .count = count};
    (void)npy_type_for(&array, LILAC_I64);
    array.data = lilac_heap_grow(NULL, count * array.bytes);
    memset(array.data, 0, count * array.bytes);
    a->entries = lilac_heap_grow(a->entries, sizeof *a->entries * (a->entry_count + count));
    size_t begin = strlen(POINTERS);
    for (uint64_t i = 0; i < count; i++) {
        const size_t end = begin + strcspn(binding->value + begin, ",");
        a->entries[a->entry_count] =
            (pointer_entry){.buffer = a->buffer_count, .index = i, .target.buffer = POINTER_NULL};
        if (end != begin + 4 || memcmp(binding->value + begin, "null", 4) != 0) {
            add_reference(binding, begin, end, a->entry_count);
        }
        a->entry_count++;
        begin = end + 1;
    }
    buffer_add(a, binding->name, &array, NULL);
    return true;
}

bool pointer_bind(const value_binding *binding, const lilac_scalar *scalar) {
    bound_name *name = &binding->arguments->names[binding->name];
    name->scalar = scalar != NULL ? *scalar : LILAC_I64;
    if (starts_with(binding->value, POINTERS)) {
        return name->scalar == LILAC_I64
                   ? bind_list(binding)
                   : argument_refuse(binding, 0, "argument-type",
                                     "a buffer of pointers, but the parameter points to %s: it "
                                     "must point to i64 or to pointers",
                                     lilac_scalar_name(name->scalar));
    }
    if (binding->name >= binding->arguments->count) {
        return argument_refuse(binding, 0, "argument-type",
                               "--buffer takes what has contents: @file.npy, zeros:, empty:, "
                               "random: or pointers:");
    }
    if (starts_with(binding->value, SAME)) {
        add_reference(binding, strlen(SAME), strlen(binding->value), NOT_IN_A_BUFFER);
    }
    return true;
}

/* ---- looking up ------------------------------------------------------------------------- */

static uint32_t element_bytes(lilac_scalar scalar) {
    return (lilac_scalar_bits(scalar) + 7) / 8;
}

/* "128" or "512B", in bytes. */
static bool read_offset(const pointer_reference *r, size_t plus, lilac_scalar scalar,
                        uint64_t *bytes) {
    char digits[24];
    size_t begin = plus + 1, length = r->end - begin;
    const char *string = r->binding.value + begin;
    const bool in_bytes = length > 0 && string[length - 1] == 'B';
    const uint32_t unit = in_bytes ? 1 : element_bytes(scalar);
    length -= in_bytes;
    if (length < sizeof digits) {
        memcpy(digits, string, length);
        digits[length] = '\0';
        if (read_number(digits, UINT64_MAX / 16, bytes)) {
            *bytes *= unit;
            return true;
        }
    }
    return argument_misuse(&r->binding, begin,
                           "'%.*s' is no offset: +128 is 128 elements, +128B is 128 bytes",
                           (int)(r->end - begin), string);
}

static bool resolve(bound_arguments *arguments, pointer_reference *reference);

/* Makes where `named` points known. */
static bool resolve_name(bound_arguments *arguments, uint32_t named) {
    for (uint32_t i = 0; i < arguments->reference_count; i++) {
        pointer_reference *r = &arguments->references[i];
        if (r->entry == NOT_IN_A_BUFFER && r->binding.name == named) {
            return resolve(arguments, r);
        }
    }
    return !arguments->names[named].failed;
}

static bool check_place(const pointer_reference *r, const bound_name *named, size_t plus,
                        const pointer_target *target) {
    const bound_arguments *arguments = r->binding.arguments;
    if (target->buffer == POINTER_NULL) {
        return target->offset == 0 || argument_misuse(&r->binding, plus,
                                                      "'%s' is null: a null "
                                                      "pointer takes no offset",
                                                      named->name);
    }
    const uint64_t size = arguments->buffers[target->buffer].size;
    if (target->offset > size) {
        return argument_misuse(
            &r->binding, plus,
            "%" PRIu64 " bytes into '%s' is beyond its end: the buffer has %" PRIu64 " bytes",
            target->offset, arguments->buffers[target->buffer].name, size);
    }
    const int64_t divisor =
        r->entry == NOT_IN_A_BUFFER ? argument_divisor(arguments, r->binding.name) : 1;
    if (divisor > 1 && target->offset % (uint64_t)divisor != 0) {
        return argument_refuse(&r->binding, plus, "argument-not-divisible",
                               "%" PRIu64 " bytes into a buffer is no multiple of %" PRId64
                               ", for which this kernel is specialised (tt.divisibility)",
                               target->offset, divisor);
    }
    return true;
}

static bool find_target(bound_arguments *arguments, const pointer_reference *r,
                        pointer_target *target) {
    const char *name = r->binding.value + r->begin;
    size_t length = strcspn(name, "+,");
    length = length < r->end - r->begin ? length : r->end - r->begin;
    const int32_t found = arguments_find(arguments, name, length);
    uint64_t bytes = 0;
    if (found < 0) {
        return argument_misuse(&r->binding, r->begin,
                               "there is no parameter or buffer '%.*s'; buffers that are no "
                               "parameters come with --buffer",
                               (int)length, name);
    }
    const bound_name *named = &arguments->names[found];
    if (!named->failed && !named->is_pointer) {
        return argument_misuse(&r->binding, r->begin, "'%s' is no pointer", named->name);
    }
    if (!resolve_name(arguments, (uint32_t)found)) {
        return false;
    }
    const size_t plus = r->begin + length;
    if (plus < r->end && !read_offset(r, plus, named->scalar, &bytes)) {
        return false;
    }
    *target = (pointer_target){named->target.buffer, named->target.offset + bytes};
    return check_place(r, named, plus < r->end ? plus + 1 : r->begin, target);
}

/* False: reported, once. */
static bool resolve(bound_arguments *arguments, pointer_reference *r) {
    bound_name *name = &arguments->names[r->binding.name];
    pointer_target target;
    if (r->done) {
        return r->entry != NOT_IN_A_BUFFER || !name->failed;
    }
    if (r->visiting) {
        name->failed = true;
        r->done = true;
        return argument_misuse(&r->binding, r->begin,
                               "'%s' points to itself by way of same: and has no buffer",
                               name->name);
    }
    r->visiting = true;
    const bool good = find_target(arguments, r, &target);
    r->done = true;
    if (!good) {
        name->failed = true;
        return false;
    }
    *(r->entry == NOT_IN_A_BUFFER ? &name->target : &arguments->entries[r->entry].target) = target;
    return true;
}

bool pointers_resolve(bound_arguments *arguments) {
    bool good = true;
    for (uint32_t i = 0; i < arguments->reference_count; i++) {
        good &= resolve(arguments, &arguments->references[i]);
    }
    return good;
}

void pointers_clear(bound_arguments *arguments) {
    lilac_heap_free(arguments->entries);
    lilac_heap_free(arguments->references);
}

/* ---- addresses -------------------------------------------------------------------------- */

static uint64_t address_of(const pointer_target *target, const uint64_t *addresses) {
    return target->buffer == POINTER_NULL ? 0 : addresses[target->buffer] + target->offset;
}

void arguments_place(bound_arguments *arguments, const uint64_t *addresses) {
    tensor_maps_place(arguments, addresses);
    for (uint32_t i = 0; i < arguments->count; i++) {
        const bool map = arguments->signature.parameters[i].kind == PARAMETER_TENSOR_MAP;
        if (arguments->names[i].is_pointer && !map) {
            arguments->bits[i] = address_of(&arguments->names[i].target, addresses);
        }
    }
    for (uint32_t i = 0; i < arguments->entry_count; i++) {
        const pointer_entry *entry = &arguments->entries[i];
        const uint64_t address = address_of(&entry->target, addresses);
        memcpy(arguments->contents[entry->buffer].data + entry->index * sizeof address, &address,
               sizeof address);
    }
}

npy arguments_view(const bound_arguments *arguments, uint32_t index) {
    const bound_name *name = &arguments->names[index];
    const npy *whole = &arguments->contents[name->target.buffer];
    npy view = *whole;
    const bool own = arguments->buffers[name->target.buffer].name == name->name;
    if (own) {
        return view;
    }
    (void)npy_type_for(&view, name->scalar);
    if (name->target.offset == 0 && view.bytes == whole->bytes) {
        return view; /* in the buffer's shape */
    }
    view.data = whole->data + name->target.offset;
    view.count = (whole->count * whole->bytes - name->target.offset) / view.bytes;
    view.rank = 1;
    view.shape[0] = view.count;
    return view;
}
