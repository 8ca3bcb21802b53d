"""The rings of attention's loops: further buffers do not cost the resident blocks that are worth more."""

import pytest

import lilac.triton
from lilac.bench.operators.products.attention import attention_case


@pytest.mark.parametrize("elements, tile, causal, stages, schedule", [
    (64, (64, 128), False, 3, "products=delay,copies=first,distance=1,buffers=3"),   # two blocks
    (64, (64, 128), False, 4, "products=delay,copies=first,distance=1,buffers=3"),   # and not one with five buffers
    (128, (64, 64), False, 4, "products=delay,copies=first,distance=1,buffers=3"),
    (64, (64, 128), True, 3, "products=overlap,copies=first,distance=1,buffers=2"),  # three blocks and not two
    (64, (64, 128), True, 4, "products=overlap,copies=first,distance=1,buffers=2"),  # and not one with five buffers
    (64, (128, 64), False, 4, "products=delay,copies=first,distance=3,buffers=5"),   # two blocks in any case
])
def test_blocks_before_buffers(elements, tile, causal, stages, schedule):
    case = attention_case("bf16", 4, 16, 4096, elements, causal=causal, tile=tile, num_warps=4, num_stages=stages)
    with lilac.triton.enabled():
        kernel = case.launch.compile()
    found = [one["schedule"] for one in lilac.triton.explain(kernel).json["schedules"]]
    assert found == [schedule]
