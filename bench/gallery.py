"""The gallery of docs/explain.md: three kernels with a problem that `lilac explain` shows, each followed by the same work
without the problem. Their times are in bench/results/h200_gallery.json:

    PYTHONPATH=bench python -m lilac.bench gallery --json h200_gallery.json

    product      8-bit integers, both operands stored so that the inner index is not the contiguous one; stored the other way
    layer norm   rows of 5000 elements: 16 does not divide 5000, so that nothing is known of the alignment of a row; with 5000 // 8 * 8, it is
    attention    a tile of 128 x 128 scores for 4 warps; for 8 warps (with LILAC_TRITON_CHOOSE_WARPS=0: the compiler else chooses 8)

`PYTHONPATH=bench python bench/gallery.py FOLDER` writes the TTIR of the three kernels with the problem.
"""

import dataclasses
import os
import re
import sys

import triton
import triton.language as tl

from lilac.bench.case import Buffer, Case, Launch, within
from lilac.bench.operators.norms import EPSILON, layer_norm, layer_norm_reference
from lilac.bench.operators.products.attention import attention_case
from lilac.bench.operators.products.matmul import matmul_case


@triton.jit
def layer_norm_aligned(x, weight, bias, y, mean, rstd, stride, columns, epsilon, BLOCK: tl.constexpr):
    """Only for rows of multiples of 8 elements."""
    layer_norm(x, weight, bias, y, mean, rstd, stride // 8 * 8, columns // 8 * 8, epsilon, BLOCK)


def layer_norm_case(kernel, rows=8192, columns=5000, dtype="f16"):
    launch = Launch(kernel, rows,
                    [Buffer((rows, columns), dtype), Buffer(columns, dtype), Buffer(columns, dtype),
                     Buffer((rows, columns), dtype, output=True), Buffer(rows, "f32", output=True),
                     Buffer(rows, "f32", output=True), columns, columns, EPSILON],
                    BLOCK=triton.next_power_of_2(columns), num_warps=4)
    return Case("layer_norm", "gallery", launch, layer_norm_reference, operations=8 * rows * columns,
                tolerance={"y": within(dtype, 64), "mean": within("f32", 64), "rstd": within("f32", 32)})


def named(name, case):
    if dataclasses.is_dataclass(case):
        return dataclasses.replace(case, name=name, family="gallery")
    case.name, case.family = name, "gallery"
    return case


def cases():
    return [named("product, transposed operands", matmul_case("i8", "TN", 4096, 4096, 4096)),
            named("product, fixed", matmul_case("i8", "NT", 4096, 4096, 4096)),
            named("layer norm, no promise", layer_norm_case(layer_norm)),
            named("layer norm, fixed", layer_norm_case(layer_norm_aligned)),
            named("attention, 4 warps", attention_case("f16", 4, 16, 4096, 128, tile=(128, 128), num_warps=4)),
            named("attention, fixed", attention_case("f16", 4, 16, 4096, 128, tile=(128, 128), num_warps=8))]


def write(folder):
    for case in cases()[::2]:
        text = re.sub(r'loc\("/[^"]*/', 'loc("', case.launch.compile().asm["ttir"])
        with open(os.path.join(folder, case.name.split(",")[0].replace(" ", "_") + ".ttir"), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    write(sys.argv[1])
