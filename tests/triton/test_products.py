"""The benchmark's cases with matrix products, in small sizes on the simulator, against their own references: both the
kernels and the references are right, or neither passes. PyTorch computes the references."""

import pytest

import lilac
from lilac.bench.operators import attention_gradients, products

pytest.importorskip("torch", reason="references are computed by PyTorch")


@pytest.mark.parametrize("case", products.small() + attention_gradients.small(), ids=lambda case: case.name)
def test_result(case):
    case.make(seed=1, device="cpu")
    runs = []
    errors = case.errors(lambda: runs.append(case.launch.simulate()))
    assert max(errors.values()) <= 1, errors
    assert not runs[0].findings


# Cases with strides that a tensor map cannot have.
MAPLESS = {
    "addmm_bf16_50x40x70", "batched_matmul_f16_NN_3x40x50x70", "grouped_matmul_f16_NN_3_of_70x50x40",
    "matmul_bf16_NT_1x70x65_tile_16x32x32", "matmul_f16_TN_75x50x41_tile_32x32x16", "persistent_matmul_f8e4m3_NT_64x64x50",
    *(f"linear_bias_{name}_f16_64x50x70" for name in
      ("gelu", "gelu_tanh", "leaky_relu", "relu", "residual", "sigmoid", "silu")),
}


@pytest.mark.parametrize("case", products.small(), ids=lambda case: case.name)
def test_result_with_launch_maps(case):
    case.make(seed=2, device="cpu")
    runs = []
    try:
        errors = case.errors(lambda: runs.append(case.launch.simulate(launch_maps=True)))
    except lilac.SimulationError as refused:
        assert case.name in MAPLESS and "[tensor-map]" in str(refused), refused
        return
    assert case.name not in MAPLESS
    assert max(errors.values()) <= 1, errors
    assert not runs[0].findings


def test_every_kernel_is_run():
    def kernels(cases):
        return {case.launch.name for case in cases}

    assert kernels(products.small()) == kernels(products.cases())
