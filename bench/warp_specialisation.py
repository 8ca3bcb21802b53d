"""Products whose tiles are loaded through tensor descriptors, each also with a loop that asks for warp specialisation:

    PYTHONPATH=bench python -m lilac.bench warp_specialisation

`ws_NAME` is the kernel of NAME with `warp_specialize=True`: of the loop over tiles in persistent kernels, otherwise of
the loop over K."""

from lilac.bench.operators.products.descriptors import described_case, made_case


def both(make, *arguments, **options):
    return [make(*arguments, **options, specialize=specialize) for specialize in (False, True)]


def cases():
    return [case for pair in (
        both(made_case, "f16", 4096, 4096, 4096),
        both(made_case, "f16", 8192, 8192, 8192),
        both(made_case, "bf16", 8192, 8192, 2048, tile=(128, 128, 64), num_stages=4),
        both(made_case, "f8e4m3", 8192, 8192, 4096, tile=(128, 256, 128)),
        both(made_case, "f16", 8192, 8192, 1024),
        both(described_case, "f16", "N", 4096, 4096, 4096),
        both(described_case, "bf16", "T", 8192, 8192, 8192, tile=(128, 128, 64)),
        both(described_case, "f8e4m3", "T", 4096, 4096, 8192, tile=(128, 256, 128))) for case in pair]
