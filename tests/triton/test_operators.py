"""Every case of the benchmark's own operators, from Python to a cubin through the plug-in."""

import pytest

import lilac.triton
from lilac.bench import operators

CASES = operators.cases()

# Words of local memory that ptxas may need beside registers; Triton's kernel needs 124 here.
SPILLS = {"cumsum_time_f32_64x512x1024": 16, "rms_norm_bf16_8192x7168": 2}


def test_there_are_many():
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiles(case):
    with lilac.triton.enabled():
        kernel = case.launch.compile()
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    (row,) = lilac.triton.report()
    assert row.compiler == "lilac"
    assert row.spills <= SPILLS.get(case.name, 0)
