/* The records of accesses to global memory, and the races that they show (races.h).
 *
 *   access           races with records of                       unless
 *   ---------------  ------------------------------------------  ---------------------------------
 *   load             writes, when no one of them is ordered      –
 *                    atomics                                     the record only reads
 *   store, as        differs                                     –
 *   memory has it
 *   store            writes, reads, atomics                      copies of one element, read by one
 *                                                                instruction, by the writer too
 *   atomic           writes, reads, atomics                      the record is atomic, in a scope
 *                                                                of both
 *
 * A volatile access counts as atomic, and a volatile load acquires. Where the kernel neither
 * synchronises blocks nor orders parts of them, two records from different clusters, of which any
 * third access meets one, say as much as all.
 */
#include "memory/access.h"

#include <string.h>

enum {
    PAGE_BYTES = 1 << LILAC_SIM_PAGE_BITS,
    MOST_SHIFT = 4,
    MOST_WRITERS = 255, /* other clusters' records of a set of writes, and of other sets */
    MOST_PRECISE = 63
};

typedef struct node {
    lilac_sim_record record;
    uint32_t next; /* 0: none */
} node;

typedef enum set_kind { WRITES, DIFFERS, READS, ATOMICS, SETS } set_kind;

struct lilac_sim_page {
    uint32_t shift;               /* of a granule's bytes */
    lilac_sim_record *sets[SETS]; /* by granule; NULL: none so far */
    lilac_sim_release **releases; /* likewise */
    node *nodes;                  /* of lists; entry 0 is unused */
    uint32_t node_count, node_capacity, free_node;
};

/* An access of a thread to one granule. */
typedef struct visit {
    lilac_sim_worker *worker;
    const lilac_simt_instruction *source;
    lilac_sim_page *page;
    uint32_t granule;
    lilac_sim_record now;
    const lilac_sim_record *other; /* that it races with; NULL: none */
    lilac_sim_record found;
} visit;

/* ---- pages ------------------------------------------------------------------------------ */

static uint32_t granules_of(const lilac_sim_page *page) {
    return PAGE_BYTES >> page->shift;
}

static void *zeroed(size_t size) {
    void *bytes = lilac_heap_grow(NULL, size);
    memset(bytes, 0, size);
    return bytes;
}

static lilac_sim_page *new_page(uint32_t shift) {
    lilac_sim_page *page = zeroed(sizeof *page);
    page->shift = shift;
    page->node_count = 1;
    return page;
}

static void free_page(lilac_sim_page *page) {
    for (uint32_t k = 0; page && k < SETS; k++) {
        lilac_heap_free(page->sets[k]);
    }
    if (page) {
        lilac_heap_free(page->releases);
        lilac_heap_free(page->nodes);
    }
    lilac_heap_free(page);
}

static lilac_sim_record *set_at(const visit *v, set_kind kind) {
    lilac_sim_page *page = v->page;
    if (!page->sets[kind]) {
        page->sets[kind] = zeroed(sizeof(lilac_sim_record) * granules_of(page));
    }
    return &page->sets[kind][v->granule];
}

static bool is_empty(const visit *v, set_kind kind) {
    return !v->page->sets[kind] || v->page->sets[kind][v->granule].block == 0;
}

static uint32_t new_node(lilac_sim_page *page, lilac_sim_record record, uint32_t next) {
    uint32_t at = page->free_node;
    if (at) {
        page->free_node = page->nodes[at].next;
    } else {
        if (page->node_count >= page->node_capacity) {
            page->node_capacity = page->node_capacity * 2 + 64;
            page->nodes = lilac_heap_grow(page->nodes, sizeof *page->nodes * page->node_capacity);
        }
        at = page->node_count++;
    }
    page->nodes[at] = (node){record, next};
    return at;
}

static lilac_sim_record copy_list(lilac_sim_page *page, lilac_sim_record set) {
    if (set.block != LILAC_SIM_LISTED) {
        return set;
    }
    uint32_t head = 0;
    for (uint32_t at = set.who; at; at = page->nodes[at].next) {
        head = new_node(page, page->nodes[at].record, head);
    }
    set.who = head;
    return set;
}

/* Makes the granules of a page narrower. Each part has the records of the whole. */
static void split(lilac_sim_page *page, uint32_t shift) {
    uint32_t before = granules_of(page), parts = 1u << (page->shift - shift);
    page->shift = shift;
    for (uint32_t k = 0; k < SETS; k++) {
        lilac_sim_record *old = page->sets[k];
        if (!old) {
            continue;
        }
        page->sets[k] = zeroed(sizeof *old * granules_of(page));
        for (uint32_t g = 0; g < before * parts; g++) {
            page->sets[k][g] = g % parts ? copy_list(page, old[g / parts]) : old[g / parts];
        }
        lilac_heap_free(old);
    }
    lilac_sim_release **releases = page->releases;
    if (!releases) {
        return;
    }
    page->releases = zeroed(sizeof(void *) * granules_of(page));
    for (uint32_t g = 0; g < before * parts; g++) {
        page->releases[g] = releases[g / parts];
    }
    lilac_heap_free(releases);
}

static const lilac_simt_instruction *source_of(const visit *v, const lilac_sim_record *record) {
    return v->worker->program->steps[lilac_sim_step_of(record)].source;
}

static bool is_load(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_CP_ASYNC ||
           i->code == LILAC_SIMT_OP_CP_BULK_LOAD || i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD;
}

static bool is_atomic(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_ATOMIC_GLOBAL || i->code == LILAC_SIMT_OP_CAS_GLOBAL ||
           i->code == LILAC_SIMT_OP_CP_BULK_REDUCE || i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE ||
           (i->flags & LILAC_SIMT_VOLATILE);
}

/* ---- sets ------------------------------------------------------------------------------- */

/* The members of a set, one after another: begin with *at = 0 and go on while it is true. */
static bool next_member(const visit *v, set_kind kind, uint32_t *at, lilac_sim_record *member) {
    if (is_empty(v, kind) || *at == UINT32_MAX) {
        return false;
    }
    lilac_sim_record set = v->page->sets[kind][v->granule];
    if (set.block != LILAC_SIM_LISTED) {
        *member = set;
        *at = UINT32_MAX;
        return true;
    }
    const node *n = &v->page->nodes[*at ? *at : set.who];
    *member = n->record;
    *at = n->next ? n->next : UINT32_MAX;
    return true;
}

static void clear_set(const visit *v, set_kind kind) {
    if (is_empty(v, kind)) {
        return;
    }
    lilac_sim_record *set = set_at(v, kind);
    for (uint32_t at = set->block == LILAC_SIM_LISTED ? set->who : 0, next; at; at = next) {
        next = v->page->nodes[at].next;
        v->page->nodes[at].next = v->page->free_node;
        v->page->free_node = at;
    }
    *set = (lilac_sim_record){0};
}

static uint64_t cluster_of(const visit *v, const lilac_sim_record *record) {
    return (record->block - 1u) / v->worker->program->kernel->num_ctas;
}

static bool same_warp(const visit *v, const lilac_sim_record *record) {
    uint32_t size = v->worker->program->arch->warp_size;
    return record->block == v->now.block &&
           lilac_sim_thread_of(record) / size == lilac_sim_thread_of(&v->now) / size;
}

/* Does every later access that races with the member, if it is ordered before the access, race
 * with the access too? An atomic access races with less than a plain one, and the scope of a block
 * makes a difference between blocks. */
static bool stands_for(const visit *v, const lilac_sim_record *member) {
    const lilac_simt_instruction *other = source_of(v, member);
    if (!is_atomic(v->source)) {
        return true;
    }
    return is_atomic(other) &&
           (!v->worker->memory->races->scoped ||
            (member->block == v->now.block && other->scope == v->source->scope));
}

/* Does a member stay when the access is added? One that it comes after need not: what comes after
 * the access comes after both. `elsewhere`: the members of other clusters so far. */
static bool stays(const visit *v, const lilac_sim_record *member, uint32_t *elsewhere,
                  uint32_t most) {
    bool after = same_warp(v, member) || lilac_sim_is_ordered(v->worker, member, &v->now);
    if (after && stands_for(v, member)) {
        return false;
    }
    return cluster_of(v, member) == cluster_of(v, &v->now) || (*elsewhere)++ < most;
}

/* The set has the greatest number of writers; further ones are not recorded. */
static bool is_full(const lilac_sim_record *set) {
    return set->block == LILAC_SIM_LISTED && set->epoch > MOST_WRITERS;
}

static void add(const visit *v, set_kind kind) {
    lilac_sim_record *set = set_at(v, kind), member;
    uint32_t elsewhere = 0, head = 0;
    uint32_t most = kind == WRITES                      ? MOST_WRITERS
                    : v->worker->memory->races->precise ? MOST_PRECISE
                                                        : 1;
    if (set->block == 0 || (set->block != LILAC_SIM_LISTED && !stays(v, set, &elsewhere, most))) {
        *set = v->now;
        return;
    }
    if (kind == WRITES && is_full(set)) {
        return;
    }
    elsewhere = 0;
    uint32_t count = 1;
    if (set->block != LILAC_SIM_LISTED) {
        head = new_node(v->page, *set, 0);
        count++;
    } else {
        uint32_t next;
        for (uint32_t at = set->who; at; at = next) {
            next = v->page->nodes[at].next;
            member = v->page->nodes[at].record;
            bool keeps = stays(v, &member, &elsewhere, most);
            v->page->nodes[at].next = keeps ? head : v->page->free_node;
            *(keeps ? &head : &v->page->free_node) = at;
            count += keeps;
        }
    }
    head = new_node(v->page, v->now, head);
    *set = (lilac_sim_record){.block = LILAC_SIM_LISTED, .epoch = count, .who = head};
}

/* ---- rules ------------------------------------------------------------------------------ */

/* True: both accesses are atomic, and each is in the scope of the other. */
static bool are_atomic(const visit *v, const lilac_sim_record *record) {
    const lilac_simt_instruction *other = source_of(v, record);
    bool scoped =
        other->scope == LILAC_SIMT_SCOPE_BLOCK || v->source->scope == LILAC_SIMT_SCOPE_BLOCK;
    return is_atomic(other) && is_atomic(v->source) && (!scoped || record->block == v->now.block);
}

static void race_with(visit *v, const lilac_sim_record *record) {
    if (v->other) {
        return;
    }
    v->found = *record;
    v->other = &v->found;
}

/* Races with members that are not ordered; `only_writes`: loads do not count. */
static void check(visit *v, set_kind kind, bool only_writes) {
    lilac_sim_record member;
    for (uint32_t at = 0; !v->other && next_member(v, kind, &at, &member);) {
        if (!(only_writes && is_load(source_of(v, &member))) && !are_atomic(v, &member) &&
            !lilac_sim_is_ordered(v->worker, &member, &v->now)) {
            race_with(v, &member);
        }
    }
}

/* The members of `writes` left one value: a load that comes after any of them reads that. Where the
 * set is full it is not known who else wrote the value. */
static void load_place(visit *v) {
    lilac_sim_record member, first = {0};
    bool known = !is_empty(v, WRITES) && !is_full(set_at(v, WRITES));
    for (uint32_t at = 0; known && next_member(v, WRITES, &at, &member);) {
        if (lilac_sim_is_ordered(v->worker, &member, &v->now)) {
            first.block = 0;
            break;
        }
        first = first.block ? first : member;
    }
    if (first.block) {
        race_with(v, &first);
    }
    check(v, ATOMICS, true);
    add(v, READS);
}

/* Threads that hold copies of an element load it with one instruction; what the others do with
 * theirs is not to be known when one of them stores the element. */
static bool is_copy(const visit *v, const lilac_sim_record *reader) {
    lilac_sim_record member;
    if (cluster_of(v, reader) != cluster_of(v, &v->now)) {
        return false;
    }
    for (uint32_t at = 0; next_member(v, READS, &at, &member);) {
        if (same_warp(v, &member) && lilac_sim_step_of(&member) == lilac_sim_step_of(reader)) {
            return true;
        }
    }
    return false;
}

static void check_reads(visit *v) {
    lilac_sim_record member;
    for (uint32_t at = 0; !v->other && next_member(v, READS, &at, &member);) {
        if (!are_atomic(v, &member) && !lilac_sim_is_ordered(v->worker, &member, &v->now) &&
            !is_copy(v, &member)) {
            race_with(v, &member);
        }
    }
}

static void store_place(visit *v, bool same) {
    lilac_sim_record last;
    uint32_t at = 0;
    if (same && !is_empty(v, WRITES) && is_empty(v, ATOMICS)) {
        check(v, DIFFERS, false);
        add(v, WRITES);
        return;
    }
    check(v, WRITES, false);
    check(v, ATOMICS, false);
    check_reads(v);
    if (!same && next_member(v, WRITES, &at, &last)) {
        *set_at(v, DIFFERS) = last;
    }
    clear_set(v, WRITES);
    clear_set(v, READS);
    clear_set(v, ATOMICS);
    *set_at(v, WRITES) = v->now;
    if (v->page->releases) {
        v->page->releases[v->granule] = NULL;
    }
}

/* ---- a warp's access -------------------------------------------------------------------- */

static lilac_sim_places *places_of(const lilac_sim_worker *w, const lilac_sim_buffer *buffer) {
    return &w->memory->races->buffers[buffer - w->launch->buffers];
}

static uint32_t stripe_of(const lilac_sim_buffer *buffer, uint64_t offset) {
    return (uint32_t)((buffer->address + offset) >> LILAC_SIM_PAGE_BITS) % LILAC_SIM_STRIPES;
}

bool lilac_sim_races_open(lilac_sim_worker *w, const lilac_sim_active *lanes,
                          const lilac_sim_buffer *const *buffers, uint32_t size,
                          uint64_t *stripes) {
    lilac_sim_races *races = w->memory->races;
    bool watched = false;
    *stripes = 0;
    for (uint32_t l = 0; l < lanes->count; l++) {
        if (!places_of(w, buffers[l])->pages) {
            continue;
        }
        watched = true;
        if (!races->shared) {
            break;
        }
        uint64_t offset = lanes->address[l] - buffers[l]->address;
        *stripes |= UINT64_C(1) << stripe_of(buffers[l], offset);
        *stripes |= UINT64_C(1) << stripe_of(buffers[l], offset + size - 1);
    }
    for (uint64_t rest = *stripes; rest; rest &= rest - 1) {
        pthread_mutex_lock(&races->stripes[__builtin_ctzll(rest)]);
    }
    return watched;
}

static bool releases(const lilac_simt_instruction *i) {
    return i->order == LILAC_SIMT_RELEASE || i->order == LILAC_SIMT_ACQUIRE_RELEASE;
}

static bool acquires(const lilac_simt_instruction *i) {
    bool atomic = i->code == LILAC_SIMT_OP_ATOMIC_GLOBAL || i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    if (!atomic) {
        return i->code == LILAC_SIMT_OP_LD_GLOBAL && (i->flags & LILAC_SIMT_VOLATILE);
    }
    return i->result_count > 0 &&
           (i->order == LILAC_SIMT_ACQUIRE || i->order == LILAC_SIMT_ACQUIRE_RELEASE);
}

void lilac_sim_races_close(lilac_sim_worker *w, const lilac_sim_step *step, uint64_t stripes) {
    for (uint64_t rest = stripes; rest; rest &= rest - 1) {
        pthread_mutex_unlock(&w->memory->races->stripes[__builtin_ctzll(rest)]);
    }
    if (!is_load(step->source)) {
        lilac_sim_shared_tick(&w->shared);
    }
}

/* The places of one lane's access: what `act` does at each. */
typedef void action(visit *v, uint8_t *memory, const uint8_t *data, uint32_t bytes);

static void report(visit *v, const lilac_sim_buffer *buffer, uint64_t offset, uint32_t width) {
    lilac_sim_worker *w = v->worker;
    uint64_t other = v->found.block - 1u;
    lilac_sim_finding finding = {.kind = FINDING_GLOBAL_RACE,
                                 .at = v->source,
                                 .other = source_of(v, &v->found),
                                 .block = w->block,
                                 .address = buffer->address + offset,
                                 .thread = lilac_sim_thread_of(&v->now),
                                 .other_block = other,
                                 .other_thread = lilac_sim_thread_of(&v->found),
                                 .width = width};
    bool first = is_load(finding.other) && !is_load(finding.at);
    if (first || (is_load(finding.other) == is_load(finding.at) && finding.block < other)) {
        finding.at = finding.other;
        finding.other = v->source;
        finding.block = other;
        finding.other_block = w->block;
        finding.other_thread = finding.thread;
        finding.thread = lilac_sim_thread_of(&v->found);
    }
    lilac_sim_worker_find(w, finding);
}

static lilac_sim_page *page_at(lilac_sim_places *places, uint64_t number, uint32_t size) {
    lilac_sim_page **page = &places->pages[number];
    uint32_t shift = (uint32_t)__builtin_ctz(size);
    shift = shift > MOST_SHIFT ? MOST_SHIFT : shift;
    if (!*page) {
        *page = new_page(shift);
    } else if ((*page)->shift > shift) {
        split(*page, shift);
    }
    return *page;
}

static lilac_sim_record record_of(const lilac_sim_worker *w, const lilac_sim_step *step,
                                  uint32_t thread) {
    uint32_t index = (uint32_t)(step - w->program->steps);
    return (lilac_sim_record){.block = (uint32_t)(w->block % (UINT32_MAX - 1)) + 1,
                              .epoch = w->shared.epoch,
                              .who = index << LILAC_SIM_WHO_THREAD_BITS | thread};
}

/* Visits all granules that `size` bytes at the address take; true when one shows a race. */
static bool each_place(lilac_sim_worker *w, const lilac_sim_step *step,
                       const lilac_sim_buffer *buffer, uint64_t address, uint32_t size,
                       uint32_t thread, const uint8_t *data, action *act, bool wanted) {
    lilac_sim_places *places = places_of(w, buffer);
    uint64_t begin = address - buffer->address, offset = begin;
    bool found = false;
    /* bytes of pages are counted from the buffer's address, which may be no multiple of them */
    visit v = {.worker = w, .source = step->source, .now = record_of(w, step, thread)};
    while (offset < begin + size) {
        uint64_t at = offset + (buffer->address & (PAGE_BYTES - 1));
        v.page = page_at(places, at >> LILAC_SIM_PAGE_BITS, size);
        uint32_t bytes = 1u << v.page->shift;
        v.granule = (uint32_t)(at & (PAGE_BYTES - 1)) >> v.page->shift;
        v.other = NULL;
        act(&v, buffer->bytes + offset, data ? data + (offset - begin) : NULL, bytes);
        if (v.other && wanted && !found) {
            report(&v, buffer, offset, (uint32_t)w->program->accesses[step->access].width);
        }
        found |= v.other != NULL;
        offset += bytes;
    }
    return found;
}

/* What an acquire reads is ordered before the acquire itself. */
static void acquire_place(const visit *v) {
    if (v->page->releases && acquires(v->source)) {
        lilac_sim_acquire(v->worker, v->page->releases[v->granule], lilac_sim_thread_of(&v->now),
                          v->source->scope == LILAC_SIMT_SCOPE_BLOCK);
    }
}

/* Also of a compare-and-swap that fails. */
static void act_load(visit *v, uint8_t *memory, const uint8_t *data, uint32_t bytes) {
    (void)memory, (void)data, (void)bytes;
    acquire_place(v);
    load_place(v);
}

static void act_store(visit *v, uint8_t *memory, const uint8_t *data, uint32_t bytes) {
    if (is_atomic(v->source)) {
        check(v, WRITES, false);
        check(v, READS, false);
        check(v, ATOMICS, false);
        add(v, ATOMICS);
    } else {
        store_place(v, memcmp(memory, data, bytes) == 0);
    }
    memcpy(memory, data, bytes);
}

void lilac_sim_races_load(lilac_sim_worker *w, const lilac_sim_step *step,
                          const lilac_sim_active *lanes, const lilac_sim_buffer *const *buffers,
                          uint32_t size) {
    bool found = false;
    for (uint32_t l = 0; l < lanes->count; l++) {
        if (places_of(w, buffers[l])->pages) {
            found |= each_place(w, step, buffers[l], lanes->address[l], size, lanes->thread[l],
                                NULL, act_load, !found);
        }
    }
    w->counters.races += found;
}

/* The frequent case: a plain store to a place without records. */
static bool is_first(lilac_sim_page *const *pages, const lilac_sim_buffer *buffer, uint64_t address,
                     uint32_t size, const lilac_sim_record *now) {
    uint64_t at = address - (buffer->address & ~(uint64_t)(PAGE_BYTES - 1));
    lilac_sim_page *page = pages[at >> LILAC_SIM_PAGE_BITS];
    if (!page || size != 1u << page->shift || !page->sets[WRITES] || page->sets[READS] ||
        page->sets[ATOMICS]) {
        return false;
    }
    lilac_sim_record *set = &page->sets[WRITES][(at & (PAGE_BYTES - 1)) >> page->shift];
    if (set->block) {
        return false;
    }
    *set = *now;
    return true;
}

void lilac_sim_races_put(lilac_sim_worker *w, const lilac_sim_step *step,
                         const lilac_sim_active *lanes, const lilac_sim_buffer *const *buffers,
                         uint32_t size, const uint8_t *data) {
    bool found = false, plain = !is_atomic(step->source);
    for (uint32_t l = 0; l < lanes->count; l++, data += size) {
        lilac_sim_record now = record_of(w, step, lanes->thread[l]);
        lilac_sim_page **pages = places_of(w, buffers[l])->pages;
        if (!pages || (plain && is_first(pages, buffers[l], lanes->address[l], size, &now))) {
            memcpy(lanes->host[l], data, size);
        } else {
            found |= each_place(w, step, buffers[l], lanes->address[l], size, lanes->thread[l],
                                data, act_store, !found);
        }
    }
    w->counters.races += found;
}

void lilac_sim_races_store(lilac_sim_worker *w, const lilac_sim_step *step, lilac_sim_active *lanes,
                           const lilac_sim_buffer *const *buffers, uint32_t size) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    uint8_t data[MAX_LANES * 32], *places[MAX_LANES];
    for (uint32_t l = 0; l < lanes->count; l++) {
        places[l] = lanes->host[l];
        lanes->host[l] = data + (size_t)l * size;
    }
    lilac_sim_move(w->registers, access, lanes, false);
    for (uint32_t l = 0; l < lanes->count; l++) {
        lanes->host[l] = places[l];
    }
    lilac_sim_races_put(w, step, lanes, buffers, size, data);
}

/* ---- atomic operations ------------------------------------------------------------------ */

static void act_atomic(visit *v, uint8_t *memory, const uint8_t *data, uint32_t bytes) {
    lilac_sim_page *page = v->page;
    (void)memory, (void)data, (void)bytes;
    acquire_place(v);
    check(v, WRITES, false);
    check(v, ATOMICS, false);
    check(v, READS, false);
    add(v, ATOMICS);
    if (!v->worker->memory->races->synchronises || !releases(v->source)) {
        return;
    }
    if (!page->releases) {
        page->releases = zeroed(sizeof(void *) * granules_of(page));
    }
    page->releases[v->granule] =
        lilac_sim_publish(v->worker, page->releases[v->granule], lilac_sim_thread_of(&v->now),
                          v->source->scope == LILAC_SIMT_SCOPE_BLOCK);
}

void lilac_sim_races_atomic(lilac_sim_worker *w, const lilac_sim_step *step,
                            const lilac_sim_active *lanes, const lilac_sim_buffer *const *buffers,
                            uint32_t l, uint64_t address, bool writes) {
    uint32_t width = w->program->accesses[step->access].width;
    if (places_of(w, buffers[l])->pages &&
        each_place(w, step, buffers[l], address, width, lanes->thread[l], NULL,
                   writes ? act_atomic : act_load, true)) {
        w->counters.races++;
    }
}

/* ---- the launch ------------------------------------------------------------------------- */

static void find_order(lilac_sim_races *races, const lilac_sim_program *program) {
    bool release = false, acquire = false, volatiles = false;
    for (uint32_t k = 0; k < program->step_count; k++) {
        const lilac_sim_step *s = &program->steps[k];
        bool atomic = s->kind == STEP_ATOMIC_GLOBAL;
        if (!atomic && s->kind != STEP_LOAD_GLOBAL && s->kind != STEP_STORE_GLOBAL) {
            continue;
        }
        release |= atomic && releases(s->source);
        acquire |= acquires(s->source);
        volatiles |= !atomic && is_atomic(s->source);
        races->scoped |= atomic && s->source->scope == LILAC_SIMT_SCOPE_BLOCK;
    }
    races->synchronises = release && acquire;
    races->precise = races->synchronises || volatiles || races->scoped || program->partial;
}

/* Where an argument points: that of a tensor map is where the tensor begins. */
static uint64_t address_of(const lilac_sim_launch *launch, uint32_t k) {
    bool is_map = launch->kernel->parameters[k].is_tensor_map;
    return is_map ? launch->tensor_maps[launch->arguments[k]].address : launch->arguments[k];
}

/* Which buffers the kernel may write: those that hold the arguments that stores start from. */
static uint64_t watched_roots(const lilac_sim_program *program, const lilac_sim_launch *launch,
                              const lilac_sim_memory *memory) {
    uint64_t roots = lilac_sim_stored_roots(program->kernel);
    for (uint32_t k = 0; k < launch->argument_count && k < 63; k++) {
        bool pointer = program->kernel->parameters[k].is_pointer && launch->arguments[k] != 0;
        if ((roots >> k & 1) && pointer &&
            !lilac_sim_memory_find(memory, launch->arguments[k], 1)) {
            roots |= LILAC_SIM_ANY_ROOT;
        }
    }
    return roots;
}

void lilac_sim_races_init(lilac_sim_races *races, const lilac_sim_program *program,
                          const lilac_sim_launch *launch, const lilac_sim_memory *memory,
                          uint32_t workers) {
    uint64_t roots = watched_roots(program, launch, memory);
    *races = (lilac_sim_races){.buffer_count = launch->buffer_count, .shared = workers > 1};
    find_order(races, program);
    for (uint32_t k = 0; k < LILAC_SIM_STRIPES; k++) {
        pthread_mutex_init(&races->stripes[k], NULL);
    }
    pthread_mutex_init(&races->order, NULL);
    races->buffers = zeroed(sizeof *races->buffers * (launch->buffer_count + 1u));
    for (uint32_t b = 0; b < launch->buffer_count; b++) {
        const lilac_sim_buffer *buffer = &launch->buffers[b];
        bool watched = roots & LILAC_SIM_ANY_ROOT;
        for (uint32_t k = 0; k < launch->argument_count && k < 63; k++) {
            watched |= (roots >> k & 1) && address_of(launch, k) - buffer->address < buffer->size;
        }
        if (watched && !buffer->read_only && buffer->size) {
            races->buffers[b].pages = zeroed(sizeof(lilac_sim_page *) *
                                             ((size_t)(buffer->size >> LILAC_SIM_PAGE_BITS) + 2));
        }
    }
}

void lilac_sim_races_clear(lilac_sim_races *races, const lilac_sim_launch *launch) {
    for (uint32_t b = 0; b < races->buffer_count; b++) {
        lilac_sim_page **pages = races->buffers[b].pages;
        for (uint64_t k = 0; pages && k < (launch->buffers[b].size >> LILAC_SIM_PAGE_BITS) + 2;
             k++) {
            free_page(pages[k]);
        }
        lilac_heap_free(pages);
    }
    for (uint32_t k = 0; k < races->chunk_count; k++) {
        lilac_heap_free(races->chunks[k]);
    }
    for (uint32_t k = 0; k < LILAC_SIM_STRIPES && races->buffers; k++) {
        pthread_mutex_destroy(&races->stripes[k]);
    }
    if (races->buffers) {
        pthread_mutex_destroy(&races->order);
    }
    lilac_heap_free(races->buffers);
    lilac_heap_free(races->chunks);
    *races = (lilac_sim_races){0};
}
