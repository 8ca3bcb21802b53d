"""The benchmark's cases with matrix products, in small sizes on the simulator, against their own references: both the
kernels and the references are right, or neither passes. PyTorch computes the references."""

import pytest

from lilac.bench.operators import attention_gradients, products

pytest.importorskip("torch", reason="references are computed by PyTorch")


@pytest.mark.parametrize("case", products.small() + attention_gradients.small(), ids=lambda case: case.name)
def test_result(case):
    case.make(seed=1, device="cpu")
    runs = []
    errors = case.errors(lambda: runs.append(case.launch.simulate()))
    assert max(errors.values()) <= 1, errors
    assert not runs[0].findings


def test_every_kernel_is_run():
    def kernels(cases):
        return {case.launch.name for case in cases}

    assert kernels(products.small()) == kernels(products.cases())
