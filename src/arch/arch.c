/* arch: the table of devices, and looking things up in it.
 *
 * devices.def holds one row a device, costs.def one a family of them; this file turns the rows into
 * an array and searches it from the front, which for a dozen rows is quicker than anything
 * cleverer.
 */
#include <lilac/arch.h>

#include <string.h>

/* What each generation has beyond the one before. */
#define AMPERE (LILAC_HAS_LDMATRIX | LILAC_HAS_CP_ASYNC | LILAC_HAS_MMA_SYNC)
#define ADA    (AMPERE | LILAC_HAS_F8_CONVERSIONS)
#define HOPPER                                                                                     \
    (ADA | LILAC_HAS_STMATRIX | LILAC_HAS_TMA | LILAC_HAS_CLUSTERS | LILAC_HAS_BF16_ARITHMETIC |   \
     LILAC_HAS_BF16_ATOMICS)

#define COSTS(name_, measured_, wavefront_, shuffle_, select_, permute_, pack_, issue_, special_,  \
              access_, remote_, overlap_, warp_, group_, block_, cluster_, staging_, exchange_,    \
              sector_, global_, line_, late_)                                                      \
    static const lilac_costs name_ = {                                                             \
        .name = #name_,                                                                            \
        .measured = measured_,                                                                     \
        .wavefront = wavefront_,                                                                   \
        .shuffle = shuffle_,                                                                       \
        .select = select_,                                                                         \
        .permute = permute_,                                                                       \
        .pack = pack_,                                                                             \
        .issue = issue_,                                                                           \
        .special = special_,                                                                       \
        .access = access_,                                                                         \
        .remote = remote_,                                                                         \
        .overlap = overlap_,                                                                       \
        .barrier_warp = warp_,                                                                     \
        .barrier_group = group_,                                                                   \
        .barrier_block = block_,                                                                   \
        .barrier_cluster = cluster_,                                                               \
        .staging_latency = staging_,                                                               \
        .shuffle_latency = exchange_,                                                              \
        .sector = sector_,                                                                         \
        .global = global_,                                                                         \
        .line = line_,                                                                             \
        .latency = late_,                                                                          \
    };
#include "costs.def"
#undef COSTS

static const lilac_arch devices[] = {
#define DEVICE(name_, vendor_, capability_, ptx_, assembly_, warp_, banks_, bank_bytes_, shared_,  \
               registers_, warps_, resident_, blocks_, vector_, sector_, number_, costs_,          \
               features_, description_)                                                            \
    {                                                                                              \
        .name = name_,                                                                             \
        .description = description_,                                                               \
        .vendor = LILAC_##vendor_,                                                                 \
        .capability = capability_,                                                                 \
        .ptx_version = ptx_,                                                                       \
        .ptx_assembly = assembly_,                                                                 \
        .warp_size = warp_,                                                                        \
        .banks = banks_,                                                                           \
        .bank_bytes = bank_bytes_,                                                                 \
        .shared_bytes = shared_,                                                                   \
        .registers = registers_,                                                                   \
        .max_warps = warps_,                                                                       \
        .resident_warps = resident_,                                                               \
        .resident_blocks = blocks_,                                                                \
        .vector_bytes = vector_,                                                                   \
        .sector_bytes = sector_,                                                                   \
        .multiprocessors = number_,                                                                \
        .features = features_,                                                                     \
        .costs = &costs_,                                                                          \
    },
#include "devices.def"
#undef DEVICE
};

const lilac_arch *lilac_arch_at(size_t index) {
    return index < sizeof devices / sizeof devices[0] ? &devices[index] : NULL;
}

const lilac_arch *lilac_arch_find(const char *name) {
    const lilac_arch *arch;
    for (size_t i = 0; (arch = lilac_arch_at(i)) != NULL; i++) {
        if (strcmp(arch->name, name) == 0) {
            return arch;
        }
    }
    return NULL;
}

bool lilac_arch_has(const lilac_arch *arch, lilac_feature feature) {
    return (arch->features & (uint32_t)feature) == (uint32_t)feature;
}
