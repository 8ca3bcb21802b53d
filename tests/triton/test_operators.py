"""Every case of the benchmark's own operators, from Python to a cubin through the plug-in."""

import pytest

import lilac.triton
from lilac.bench import operators

CASES = operators.cases()


def test_there_are_many():
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiles(case):
    with lilac.triton.enabled():
        kernel = case.launch.compile()
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    assert [row.compiler for row in lilac.triton.report()] == ["lilac"]
