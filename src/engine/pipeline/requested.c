/* The number of buffers of a pipelined loop that has a request (lilac/schedule.h). What the request
 * leaves open is as depth.c chooses it. What must hold (depth.c says why):
 *
 *     products    copies          buffers, at least
 *     in flight   first           D + 2
 *                 last            D + 1; with multicast D + 2, and no more
 *     delayed     any             D + 2; late D + 1
 *     other       any             D + 1
 *                 last            D, if D > 1
 *
 * Copies start behind a product only where none is in flight over the back edge and, if tensor
 * copies, none is delayed. */
#include "pipeline/pipeline.h"

#include <stdarg.h>

bool lilac_pipeline_is_requested(const lilac_schedule *asked) {
    return asked->has[LILAC_SCHEDULE_PRODUCTS] || asked->has[LILAC_SCHEDULE_COPIES] ||
           asked->has[LILAC_SCHEDULE_DISTANCE] || asked->has[LILAC_SCHEDULE_BUFFERS] ||
           asked->has[LILAC_SCHEDULE_LATE] || asked->has[LILAC_SCHEDULE_MULTICAST];
}

/* Always false. */
LILAC_PRINTF(2, 3) static bool refuse(pipeline *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(p->module->context, lilac_tile_position(p->loop), p->loop->location,
                 "impossible-schedule", format, arguments);
    va_end(arguments);
    p->refused = true;
    return false;
}

bool lilac_pipeline_request_products(pipeline *p, const lilac_schedule *asked) {
    if (!asked->has[LILAC_SCHEDULE_PRODUCTS]) {
        return true;
    }
    switch (asked->values[LILAC_SCHEDULE_PRODUCTS]) {
    case LILAC_PRODUCTS_IN_FLIGHT:
        return p->in_flight || refuse(p, "the schedule products=in_flight is not possible here: no "
                                         "sum of the loop is a chain of products alone whose "
                                         "operands the next iteration keeps");
    case LILAC_PRODUCTS_DELAY:
        return p->delays || refuse(p, "the schedule products=delay is not possible here: the loop "
                                      "has no product of what it computes from another product, "
                                      "whose sum is only scaled");
    case LILAC_PRODUCTS_OVERLAP:
        if (lilac_pipeline_first_product(p) == NULL) {
            return refuse(p, "the schedule products=overlap is not possible here: the loop has no "
                             "products by wgmma");
        }
        break;
    default:
        break;
    }
    p->in_flight = p->delays = false;
    return true;
}

/* The buffers that the products and the place of the copies need. */
static uint32_t least_buffers(const pipeline *p) {
    const bool last = p->copies == LILAC_COPIES_LAST;
    if (p->in_flight) {
        return p->distance + (last && !p->multicasts ? 1 : 2);
    }
    if (p->delays) {
        return p->distance + (p->late ? 1 : 2);
    }
    return p->distance + (last && p->distance > 1 ? 0 : 1);
}

/* Where the copies start. */
static bool request_copies(pipeline *p, const lilac_schedule *asked) {
    if (asked->has[LILAC_SCHEDULE_COPIES]) {
        p->copies = asked->values[LILAC_SCHEDULE_COPIES];
    }
    const bool behind = p->copies == LILAC_COPIES_BEHIND;
    if (behind && (p->in_flight || lilac_pipeline_first_product(p) == NULL ||
                   (p->delays && p->box_count > 0))) {
        return refuse(p, "the schedule copies=behind is not possible here: %s",
                      p->in_flight ? "products stay in flight over the back edge"
                      : p->delays  ? "tensor copies and delayed products"
                                   : "the loop has no product by wgmma");
    }
    return !p->multicasts || p->copies == LILAC_COPIES_LAST ||
           refuse(p, "the schedule copies=first is not possible with multicast=yes");
}

static bool request_late(pipeline *p, const lilac_schedule *asked) {
    p->late &= p->delays;
    if (asked->has[LILAC_SCHEDULE_LATE]) {
        p->late = asked->values[LILAC_SCHEDULE_LATE] != 0;
    }
    return !p->late || (p->delays && p->can_be_late) ||
           refuse(p, "the schedule late=yes is not possible here: no load by threads is an operand "
                     "of delayed products alone");
}

static bool request_distance(pipeline *p, const lilac_schedule *asked) {
    if (asked->has[LILAC_SCHEDULE_DISTANCE]) {
        p->distance = asked->values[LILAC_SCHEDULE_DISTANCE];
    }
    return !p->trip_count_known || p->distance < p->trip_count ||
           refuse(p, "the schedule distance=%u is not possible here: the loop has %llu iterations",
                  p->distance, (unsigned long long)p->trip_count);
}

static bool request_buffers(pipeline *p, const lilac_schedule *asked, uint64_t bytes,
                            uint64_t most) {
    const uint32_t least = least_buffers(p);
    const bool same = !asked->has[LILAC_SCHEDULE_PRODUCTS] && !asked->has[LILAC_SCHEDULE_COPIES] &&
                      !asked->has[LILAC_SCHEDULE_DISTANCE] && !asked->has[LILAC_SCHEDULE_LATE];
    if (asked->has[LILAC_SCHEDULE_BUFFERS]) {
        p->buffers = asked->values[LILAC_SCHEDULE_BUFFERS];
    } else if (!same || p->buffers < least) {
        p->buffers = least;
    }
    if (p->buffers < least || (p->multicasts && p->buffers > least)) {
        return refuse(p, "the schedule has %u buffers; with distance=%u it needs %s %u", p->buffers,
                      p->distance, p->multicasts ? "exactly" : "at least", least);
    }
    return bytes * p->buffers <= most ||
           refuse(p, "the schedule has %u buffers of %llu bytes; there are %llu bytes for them",
                  p->buffers, (unsigned long long)bytes, (unsigned long long)most);
}

bool lilac_pipeline_request_depth(pipeline *p, const lilac_schedule *asked, uint64_t bytes,
                                  uint64_t most, bool shares) {
    p->delays |= asked->has[LILAC_SCHEDULE_PRODUCTS] &&
                 asked->values[LILAC_SCHEDULE_PRODUCTS] == LILAC_PRODUCTS_DELAY;
    if (asked->has[LILAC_SCHEDULE_MULTICAST]) {
        p->multicasts = asked->values[LILAC_SCHEDULE_MULTICAST] != 0;
        if (p->multicasts && !shares) {
            return refuse(p, "the schedule multicast=yes is not possible here: no block of a "
                             "cluster has a share of an operand of products in flight");
        }
        if (p->multicasts && !asked->has[LILAC_SCHEDULE_COPIES]) {
            p->copies = LILAC_COPIES_LAST;
        }
    }
    return request_late(p, asked) && request_distance(p, asked) && request_copies(p, asked) &&
           request_buffers(p, asked, bytes, most);
}
