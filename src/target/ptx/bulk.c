/* The async proxy in PTX: bulk copies and fences (PTX ISA 8.0, sm_90).
 *
 *     fence.proxy_async shared      fence.proxy.async.shared::cta;
 */
#include "emit.h"

static void fence(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const kinds[] = {"fence.proxy.async.shared::cta;\n",
                                        "fence.proxy.async.global;\n", "fence.proxy.async;\n"};
    lilac_ptx_begin(e, kinds[i->detail]);
}

void lilac_ptx_bulk(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_TMA)) {
        lilac_ptx_refuse(e, i, "%s has no %s", e->arch->name,
                         lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
        return;
    }
    fence(e, i);
}
