/* Barriers that order nothing go.
 *
 *     loop … {                               loop … {
 *       barrier {shared}                       st.shared … {bytes = 0 to 512}
 *       st.shared … {bytes = 0 to 512}         barrier {shared}
 *       barrier {shared}                 →     ld.shared … {bytes = 0 to 512}
 *       ld.shared … {bytes = 0 to 512}         st.shared … {bytes = 512 to 1024}
 *       barrier {shared}                       barrier {shared}
 *       st.shared … {bytes = 512 to 1024}      ld.shared … {bytes = 512 to 1024}
 *       barrier {shared}                     }
 *       ld.shared … {bytes = 512 to 1024}
 *     }
 *
 * A barrier is needed when on some path through it an access before and one after conflict (their
 * bytes may overlap, one of them writes) and no other barrier on that path orders the two. Paths
 * compose at the barrier, so it is enough to know which accesses are *pending* when it is reached
 * and which are *coming* when it is left: two data-flows over sets, each to a fixpoint. Taking one
 * barrier away makes others needed, never the reverse; so each barrier is looked at once, the wider
 * ones first, then those in most bodies, and what is found needed stays. And the sets only grow, from
 * the barrier on that went: all of it together takes no longer than the sets can grow.
 *
 * Scope. A barrier of mask M makes those warps wait for each other whose numbers agree in the bits
 * of M: 0 is the whole block, all bits each warp by itself, and a group barrier's shared_partition
 * says it. Accesses are distinguished by their promises (simt.h): two of one promise with
 * shared_partition A meet only in warps that agree in A, so that barriers with M ⊆ A order them;
 * two of different ones need M = 0. A barrier that is narrower than a pair needs counts as if it
 * did order the pair, until one at least as wide does too: several such may make up a wide one.
 *
 * Asynchronous copies. A copy writes at some time between its start and the wait of its thread that
 * completes it, so it is two events:
 *
 *     start       what comes before it is ordered before the write: it is a write that is coming
 *     completion  at each wait that may complete it: a write that is pending from there on
 *
 *     cp.async      no barrier between a start and its completion orders the write before what comes
 *     barrier       behind the barrier: the first one here orders nothing, the second one stays
 *     cp.async.wait
 *     barrier
 *     ld.shared
 *
 * What is started travels through barriers: `ungrouped` up to a commit, `grouped` up to a wait for
 * no group less than all. A wait that leaves groups incomplete may complete any of what is grouped
 * and may leave it incomplete.
 *
 * A bulk store is an access where it starts, and one of any byte that is pending from each wait on
 * that may complete it. A bulk load is a write that is coming where it starts. Nothing is pending
 * afterwards: the wait at its mbarrier, which all threads execute, orders its write, and no barrier
 * does before. A fence of the async proxy is ordered by the barrier behind it, even where a barrier
 * before it orders the stores that it fences: it is such an access too. A wgmma reads the bytes that it
 * promises where it is issued, and is a read of them that is pending from each wgmma.wait on.
 *
 * Mbarriers. Their init and invalidation write their bytes and all other operations read them, so
 * that a barrier between the init and the uses stays. The order that arrivals and waits add is not
 * used: a pair of accesses that it orders counts as a conflict. A cp.async may complete at any of
 * these operations, and none completes it for certain: it is a write that is pending behind each of
 * them, and still incomplete.
 *
 * Kernels with several programs keep all their barriers. So do kernels with a multicast load: it
 * writes the memory of blocks that are elsewhere in the program, and the graph has one path for all
 * blocks.
 *
 * A set holds a bit for each promise, read and written apart. Only barriers for shared memory
 * (LILAC_SIMT_SHARED_ONLY) are taken away; all others are there to stay, and order. */
#include "internal.h"

#include <string.h>

enum { MOST_KEYS = 64, MOST_LEVELS = 16 };

/* A promise of accesses. */
typedef struct key {
    uint32_t begin, end; /* end UINT32_MAX: any */
    uint32_t partition;
    uint64_t overlaps; /* keys whose bytes these may be, itself too */
} key;

typedef struct set {
    uint64_t reads, writes;
    uint64_t ungrouped, grouped; /* forwards only: copies that are started and maybe incomplete */
    uint64_t loading;            /* of a node only: bulk loads that start */
} set;

/* Accesses with no barrier between, a barrier, or a commit or wait, in the graph of the program. */
typedef struct node {
    lilac_simt_instruction *barrier; /* NULL: accesses, a commit or a wait */
    uint32_t mask;
    uint32_t depth; /* operations around it that have bodies */
    bool gone;
    set accesses;                        /* ungrouped: copies that start here */
    set completed;                       /* accesses of earlier events that end here */
    const lilac_simt_instruction *event; /* a commit or wait; else NULL */
    uint32_t next[2], previous[2];       /* nodes; NONE */
} node;

#define NONE UINT32_MAX

typedef struct pass {
    uint32_t warps; /* all bits of a warp's number */
    key keys[MOST_KEYS];
    uint32_t key_count;
    uint32_t levels[MOST_LEVELS];
    uint32_t level_count;
    node *nodes;
    uint32_t count, capacity;
    uint32_t depth, deepest; /* of the nodes that are added, and the largest */
    set *before, *after; /* of each level and node: pending when it is reached, coming when left */
    uint32_t *work;      /* nodes to look at */
    uint8_t *in_work;
    uint64_t products; /* keys of all wgmmas */
    bool candidates;   /* barriers that may go */
    bool given_up;     /* too many promises or kinds of barriers for a set */
} pass;

/* ---- the graph -------------------------------------------------------------------------- */

static uint32_t find_key(pass *p, const lilac_simt_instruction *i) {
    bool any = i->shared_begin == 0 && i->shared_end == 0;
    key k = {.begin = i->shared_begin,
             .end = any ? UINT32_MAX : i->shared_end,
             .partition = i->shared_partition & p->warps};
    for (uint32_t n = 0; n < p->key_count; n++) {
        const key *other = &p->keys[n];
        if (other->begin == k.begin && other->end == k.end && other->partition == k.partition) {
            return n;
        }
    }
    if (p->key_count == MOST_KEYS) {
        p->given_up = true;
        return 0;
    }
    uint32_t number = p->key_count++;
    p->keys[number] = k;
    for (uint32_t n = 0; n <= number; n++) {
        if (p->keys[n].begin < k.end && k.begin < p->keys[n].end) {
            p->keys[n].overlaps |= UINT64_C(1) << number;
            p->keys[number].overlaps |= UINT64_C(1) << n;
        }
    }
    return number;
}

/* The key of an access with no promise. */
static uint32_t any_key(pass *p) {
    return find_key(p, &(lilac_simt_instruction){.code = LILAC_SIMT_OP_NONE});
}

static void add_level(pass *p, uint32_t mask) {
    for (uint32_t k = 0; k < p->level_count; k++) {
        if (p->levels[k] == mask) {
            return;
        }
    }
    if (p->level_count == MOST_LEVELS) {
        p->given_up = true;
    } else {
        p->levels[p->level_count++] = mask;
    }
}

static uint32_t add_node(pass *p) {
    if (p->count == p->capacity) {
        p->capacity = p->capacity * 2 + 64;
        p->nodes = lilac_heap_grow(p->nodes, sizeof *p->nodes * p->capacity);
    }
    p->nodes[p->count] = (node){.next = {NONE, NONE}, .previous = {NONE, NONE}};
    return p->count++;
}

static void link(pass *p, uint32_t from, uint32_t to) {
    uint32_t *next = p->nodes[from].next, *previous = p->nodes[to].previous;
    next[next[0] != NONE] = to;
    previous[previous[0] != NONE] = from;
}

/* A new node behind `from`. */
static uint32_t follow(pass *p, uint32_t from) {
    uint32_t made = add_node(p);
    link(p, from, made);
    return made;
}

/* A node of its own for a barrier, commit or wait behind `from`; the node behind it. */
static uint32_t follow_with(pass *p, uint32_t from, const lilac_simt_instruction *event,
                            lilac_simt_instruction *barrier, uint32_t mask) {
    uint32_t made = follow(p, from);
    p->nodes[made].event = event;
    p->nodes[made].barrier = barrier;
    p->nodes[made].mask = mask;
    p->nodes[made].depth = p->depth;
    return follow(p, made);
}

/* Does the barrier say which warps meet? */
static bool mask_of(const pass *p, const lilac_simt_instruction *i, uint32_t *mask) {
    switch (i->code) {
    case LILAC_SIMT_OP_BARRIER:
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        *mask = 0;
        return true;
    case LILAC_SIMT_OP_WARP_BARRIER:
        *mask = p->warps;
        return true;
    default:
        *mask = i->shared_partition & p->warps;
        return *mask != 0;
    }
}

/* Does an access that began before end here, which a barrier behind orders and one before does not? */
static bool completes(uint32_t code) {
    return code == LILAC_SIMT_OP_FENCE_PROXY_ASYNC || code == LILAC_SIMT_OP_BULK_WAIT ||
           code == LILAC_SIMT_OP_BULK_WAIT_READ || code == LILAC_SIMT_OP_WGMMA_WAIT;
}

/* Collects the keys of the wgmmas in a body. */
static void add_products(pass *p, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        p->products |= i->code == LILAC_SIMT_OP_WGMMA ? UINT64_C(1) << find_key(p, i) : 0;
        for (uint32_t k = 0; k < i->body_count; k++) {
            add_products(p, i->bodies[k]);
        }
    }
}

static uint32_t add_body(pass *p, const lilac_simt_body *body, uint32_t at);

static uint32_t add_structure(pass *p, const lilac_simt_instruction *i, uint32_t at) {
    switch (i->code) {
    case LILAC_SIMT_OP_IF: {
        at = follow(p, at);
        p->deepest = max_u32(p->deepest, ++p->depth);
        uint32_t yes = add_body(p, i->bodies[0], follow(p, at));
        uint32_t no = add_body(p, i->bodies[1], follow(p, at));
        p->depth--;
        uint32_t end = follow(p, yes);
        link(p, no, end);
        return end;
    }
    case LILAC_SIMT_OP_LOOP: {
        uint32_t first = follow(p, at);
        p->deepest = max_u32(p->deepest, ++p->depth);
        link(p, add_body(p, i->bodies[0], follow(p, first)), first);
        p->depth--;
        return follow(p, first);
    }
    default: {
        uint32_t first = follow(p, at);
        p->deepest = max_u32(p->deepest, ++p->depth);
        uint32_t middle = follow(p, add_body(p, i->bodies[0], first));
        link(p, add_body(p, i->bodies[1], follow(p, middle)), first);
        p->depth--;
        return follow(p, middle);
    }
    }
}

/* Adds the body's nodes behind `at`, a node with accesses; the last of them. */
static uint32_t add_body(pass *p, const lilac_simt_body *body, uint32_t at) {
    for (lilac_simt_instruction *i = body->first; i != NULL && !p->given_up; i = i->next) {
        uint32_t mask;
        if (i->code == LILAC_SIMT_OP_PROGRAMS ||
            (i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD && i->payload.bulk.multicast)) {
            p->given_up = true; /* the graph has one path for all warps of all blocks */
        } else if (i->body_count > 0) {
            at = add_structure(p, i, at);
        } else if (i->code == LILAC_SIMT_OP_CP_ASYNC) {
            p->nodes[at].accesses.ungrouped |= UINT64_C(1) << find_key(p, i);
        } else if (i->code == LILAC_SIMT_OP_BULK_COMMIT || i->code == LILAC_SIMT_OP_WGMMA_COMMIT ||
                   i->code == LILAC_SIMT_OP_WGMMA_FENCE ||
                   i->code == LILAC_SIMT_OP_PREFETCH_TENSOR_MAP) {
            continue; /* what a commit groups is pending from the wait on */
        } else if (i->code == LILAC_SIMT_OP_WGMMA) {
            p->nodes[at].accesses.reads |= UINT64_C(1) << find_key(p, i);
        } else if (lilac_simt_completes_at_mbarrier(i->code)) {
            p->nodes[at].accesses.loading |= UINT64_C(1) << find_key(p, i);
        } else if (completes(i->code)) {
            at = follow(p, at);
            set *completed = &p->nodes[at].completed;
            if (i->code == LILAC_SIMT_OP_WGMMA_WAIT) {
                completed->reads |= p->products;
            } else {
                completed->writes |= UINT64_C(1) << any_key(p);
            }
        } else if (lilac_simt_has_trait(i->code, LILAC_SIMT_MBARRIER)) {
            const bool writes = i->code == LILAC_SIMT_OP_MBARRIER_INIT ||
                                i->code == LILAC_SIMT_OP_MBARRIER_INVALIDATE;
            set *accesses = &p->nodes[at].accesses;
            *(writes ? &accesses->writes : &accesses->reads) |= UINT64_C(1) << find_key(p, i);
            at = follow_with(p, at, i, NULL, 0);
        } else if (!lilac_simt_is_shared_access(i->code) &&
                   lilac_simt_has_trait(i->code, LILAC_SIMT_ASYNCHRONOUS)) {
            at = follow_with(p, at, i, NULL, 0);
        } else if (lilac_simt_is_shared_access(i->code)) {
            uint64_t bit = UINT64_C(1) << find_key(p, i);
            set *accesses = &p->nodes[at].accesses;
            *(lilac_simt_is_load(i->code) ? &accesses->reads : &accesses->writes) |= bit;
        } else if (lilac_simt_has_trait(i->code, LILAC_SIMT_SYNC) && mask_of(p, i, &mask)) {
            at = follow_with(p, at, NULL, i, mask);
            p->candidates |= (i->flags & LILAC_SIMT_SHARED_ONLY) != 0;
            add_level(p, mask);
        }
    }
    return at;
}

/* ---- the data-flows --------------------------------------------------------------------- */

/* Does the node order all that a barrier of this level does? */
static bool stops(const node *n, uint32_t level) {
    return n->barrier != NULL && !n->gone && (n->mask & ~level) == 0;
}

static bool merge(set *into, set from) {
    set old = *into;
    into->reads |= from.reads;
    into->writes |= from.writes;
    into->ungrouped |= from.ungrouped;
    into->grouped |= from.grouped;
    return into->reads != old.reads || into->writes != old.writes ||
           into->ungrouped != old.ungrouped || into->grouped != old.grouped;
}

/* What is pending, and started, behind a node that `in` reaches. */
static set leaving(const node *n, uint32_t level, set in) {
    if (stops(n, level)) {
        in.reads = in.writes = 0;
    }
    set out = n->accesses;
    out.loading = 0;
    merge(&out, n->completed);
    merge(&out, in);
    if (n->event == NULL) {
        return out;
    }
    if (lilac_simt_has_trait(n->event->code, LILAC_SIMT_MBARRIER)) {
        out.writes |= out.grouped | out.ungrouped;
        return out;
    }
    switch (n->event->code) {
    case LILAC_SIMT_OP_CP_ASYNC_COMMIT:
        out.grouped |= out.ungrouped;
        out.ungrouped = 0;
        break;
    case LILAC_SIMT_OP_CP_ASYNC_WAIT:
        out.writes |= out.grouped;
        out.grouped = n->event->immediate == 0 ? 0 : out.grouped;
        break;
    default: /* a wait for all */
        out.writes |= out.grouped | out.ungrouped;
        out.grouped = out.ungrouped = 0;
        break;
    }
    return out;
}

/* What is coming from a node on, before which `in` is coming. */
static set arriving(const node *n, uint32_t level, set in) {
    set out = {.reads = n->accesses.reads,
               .writes = n->accesses.writes | n->accesses.ungrouped | n->accesses.loading};
    if (!stops(n, level)) {
        merge(&out, in);
    }
    return out;
}

static void push(pass *p, uint32_t *count, uint32_t number) {
    if (!p->in_work[number]) {
        p->in_work[number] = 1;
        p->work[(*count)++] = number;
    }
}

/* Passes on what the nodes on the stack know, to the nodes behind them or before them. */
static void spread(pass *p, uint32_t level_index, uint32_t count, bool forward) {
    uint32_t level = p->levels[level_index];
    set *sets = (forward ? p->before : p->after) + (size_t)level_index * p->count;
    while (count > 0) {
        uint32_t k = p->work[--count];
        const node *n = &p->nodes[k];
        const uint32_t *to = forward ? n->next : n->previous;
        p->in_work[k] = 0;
        set out = forward ? leaving(n, level, sets[k]) : arriving(n, level, sets[k]);
        bool flies = (out.ungrouped | out.grouped | out.loading) != 0;
        for (uint32_t s = 0; s < 2 && to[s] != NONE; s++) {
            if (merge(&sets[to[s]], out) && (flies || !stops(&p->nodes[to[s]], level))) {
                push(p, &count, to[s]);
            }
        }
    }
}

/* From everywhere, or from one node. */
static void flow(pass *p, uint32_t level_index, uint32_t from) {
    for (uint32_t forward = 0; forward < 2; forward++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < p->count && from == NONE; k++) {
            push(p, &count, forward ? p->count - 1 - k : k); /* taken from the end */
        }
        if (from != NONE) {
            push(p, &count, from);
        }
        spread(p, level_index, count, forward);
    }
}

/* Is there a conflict across node k of which this level speaks? With `own`, of accesses of one
 * promise whose shared_partition is the level; else of all others. */
static bool any_conflict(const pass *p, uint32_t k, uint32_t level_index, bool own) {
    const node *n = &p->nodes[k];
    uint32_t level = p->levels[level_index];
    size_t at = (size_t)level_index * p->count + k;
    set before = p->before[at], after = p->after[at];
    for (uint32_t j = 0; j < p->key_count; j++) {
        uint64_t bit = UINT64_C(1) << j;
        uint32_t partition = p->keys[j].partition;
        bool read = (before.reads & bit) != 0, written = (before.writes & bit) != 0;
        if (!read && !written) {
            continue;
        }
        bool narrow =
            partition != 0 && (n->mask & ~partition) == 0; /* then the pair with itself is `own` */
        uint64_t others = p->keys[j].overlaps & (narrow ? ~bit : UINT64_MAX);
        if (own) {
            others = narrow && partition == level ? bit : 0;
        }
        uint64_t conflicting = after.writes | (written ? after.reads : 0);
        if ((conflicting & others) != 0) {
            return true;
        }
    }
    return false;
}

/* Is the barrier of node k needed, as things are? */
static bool is_needed(const pass *p, uint32_t k) {
    uint32_t mask = p->nodes[k].mask;
    for (uint32_t level = 0; level < p->level_count; level++) {
        if ((p->levels[level] == mask && any_conflict(p, k, level, false)) ||
            ((mask & ~p->levels[level]) == 0 && any_conflict(p, k, level, true))) {
            return true;
        }
    }
    return false;
}

/* ---- the pass --------------------------------------------------------------------------- */

static void take_away(pass *p, uint32_t k) {
    node *n = &p->nodes[k];
    n->gone = true;
    lilac_simt_unlink(n->barrier);
    for (uint32_t level = 0; level < p->level_count; level++) {
        if ((n->mask & ~p->levels[level]) == 0) {
            flow(p, level, k);
        }
    }
}

/* Looks at the barriers of one mask at one depth. From the last one on: an iteration that begins with
 * its copies reads then. The barrier before all copies stays and orders them behind all reads of the
 * iteration before; of the others each orders some. */
static bool thin_out(pass *p, uint32_t mask, uint32_t depth) {
    bool changed = false;
    for (uint32_t k = p->count; k-- > 0;) {
        const node *n = &p->nodes[k];
        if (n->barrier != NULL && n->mask == mask && n->depth == depth &&
            (n->barrier->flags & LILAC_SIMT_SHARED_ONLY) && !is_needed(p, k)) {
            take_away(p, k);
            changed = true;
        }
    }
    return changed;
}

static bool run(pass *p) {
    bool changed = false;
    size_t sets = (size_t)p->level_count * p->count;
    p->before = lilac_heap_grow(NULL, 2 * sets * sizeof *p->before);
    memset(p->before, 0, 2 * sets * sizeof *p->before);
    p->after = p->before + sets;
    p->work = lilac_heap_grow(NULL, (sizeof *p->work + 1) * p->count);
    p->in_work = (uint8_t *)(p->work + p->count);
    memset(p->in_work, 0, p->count);
    for (uint32_t level = 0; level < p->level_count; level++) {
        flow(p, level, NONE);
    }
    for (int bits = 0; bits <= 32; bits++) { /* wide ones first */
        for (uint32_t k = 0; k < p->level_count; k++) {
            for (uint32_t depth = p->deepest + 1;
                 depth-- > 0 && __builtin_popcount(p->levels[k]) == bits;) {
                changed |= thin_out(p, p->levels[k], depth);
            }
        }
    }
    lilac_heap_free(p->before);
    lilac_heap_free(p->work);
    return changed;
}

bool lilac_simt_opt_barriers(lilac_simt_kernel *kernel) {
    pass p = {.warps = kernel->num_warps > 0 ? kernel->num_warps - 1 : 0};
    add_level(&p, 0);
    add_products(&p, kernel->body);
    add_body(&p, kernel->body, add_node(&p));
    for (uint32_t k = 0; k < p.key_count; k++) {
        add_level(&p, p.keys[k].partition);
    }
    bool changed = p.candidates && !p.given_up && run(&p);
    lilac_heap_free(p.nodes);
    return changed;
}
