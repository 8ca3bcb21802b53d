/* The counters of each instruction of a launch as JSON. */
#include "launch.h"

void put_profile_json(lilac_text *out, const lilac_context *context,
                      const lilac_sim_profile *profile) {
    lilac_text_puts(out, ", \"profile\": [");
    for (uint32_t i = 0; i < profile->count; i++) {
        const lilac_sim_site *site = &profile->sites[i];
        lilac_text_printf(
            out,
            "%s{\"operation\": %u, \"instruction\": \"%s\", \"executions\": %llu, \"counters\": ",
            i > 0 ? ", " : "", lilac_operation_number(context, site->instruction->location),
            lilac_simt_op_info_get((lilac_simt_opcode)site->instruction->code)->name,
            (unsigned long long)site->executions);
        lilac_sim_counters_json(out, &site->counters);
        lilac_text_char(out, '}');
    }
    lilac_text_char(out, ']');
}
