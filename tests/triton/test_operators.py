"""Every case of the benchmark's own operators, from Python to a cubin through the plug-in. Cases whose kernels differ
in nothing but the shapes of a launch are compiled once."""

import pytest

import lilac.triton
from lilac.bench import operators

CASES = operators.cases()

# Known faults: the words of local memory that a kernel needs beside its registers, at most. Those of Triton's kernels
# follow in the comments. A kernel that is not listed needs none.
SPILLS = {
    "attention_bf16_d256_causal_2x16x2048": 2,          # 0; the number of the program, none in the loop
    "attention_bf16_d64_causal_bias_4x16x4096": 2,      # 0, with 229 registers; none in the loop
    "attention_bf16_d64_full_8x24x4429": 2,             # 0
    "attention_dkdv_bf16_d128_causal_gqa4_2x32x2048": 42,  # of four warps; eight spill none and take 1.46 times as long
    "attention_dkdv_f16_d128_causal_2x16x4096": 4,      # 0, with 234 registers; none in the loop
    "attention_f16_d64_causal_4x16x4096": 2,            # none in the loop
    "attention_f16_d64_causal_gqa8_2x64x4000": 6,       # 0
    "attention_varlen_bf16_d64_full_32x12x1024": 4,     # 0
    "attention_varlen_f16_d64_causal_16x16x2048": 2,    # 0
    "cumsum_time_f32_64x512x1024": 10,                  # 124
    "linear_attention_f16_4x16x4096x128x128": 10,       # 0
    "matmul_bf16_NT_32x14336x4096_tile_32x64x128": 2,   # 2
    "retention_bf16_8x8x2048x128x256": 8,               # 0
    "rms_norm_bf16_8192x7168": 2,
    "welford_short_rows_f16_65536x192": 2,              # 0; six blocks of 80 registers are resident
    # two blocks of 128 registers are resident
    "convolution_f16_8x128x128x100_to_200_window_5": 14,
    "convolution_tf32_16x56x56x128_to_128_window_3": 6,
    "dot_scaled_bf16_e2m1_128x8192x8192": 8,
    "dot_scaled_bf16_e4m3_4096x4096x4096": 2,
    "dot_scaled_e4m3_e2m1_4096x4096x4096": 2,
    "dot_scaled_e5m2_e2m1_2048x4096x4096": 2,
    "dot_scaled_f16_e5m2_2048x4096x4096": 2,
    "layer_norm_linear_bf16_8192x1024x4096": 20,
    "layer_norm_linear_f16_4096x3072x1024": 18,
    "matmul_f16_i8_weights_N_2048x8192x4096_groups_of_128": 4,
    "matmul_f16_int4_weights_4096x11008x4096_groups_of_128": 2,
    "matmul_tf32_TN_2048x2048x2048": 12,
    "matmul_tf32_TT_2048x2048x2048": 2,
    "rms_norm_linear_bf16_4096x6144x4096": 8,
}


def different(cases):
    """The first case of each kernel, arguments and options that the compiler sees."""
    first = {}
    for case in cases:
        launch = case.launch
        first.setdefault(repr((launch.name, launch.specialization(), launch.options)), case)
    return list(first.values())


def test_there_are_many():
    assert len(CASES) >= 400
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.unit is not None for case in CASES) >= 150
    assert {*SPILLS} <= {case.name for case in CASES}


@pytest.mark.parametrize("case", different(CASES), ids=lambda case: case.name)
def test_compiles(case):
    with lilac.triton.enabled():
        kernel = case.launch.compile()
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    (row,) = lilac.triton.report()
    assert row.compiler == "lilac"
    assert row.spills <= SPILLS.get(case.name, 0)
