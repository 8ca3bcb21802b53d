#!/usr/bin/env python3
"""TTIR of the launches of the corpus at full size, made by Triton 3.6 with no GPU and no PyTorch.

    python3 bench/full_size_ttir.py FOLDER

The corpus holds small launches; a launch's arguments are part of what Triton specialises a kernel
for (an integer that 16 divides, one that equals 1), so the text at full size can differ. Writes
FOLDER/NAME.ttir for each launch.
"""

import argparse
import pathlib
import sys
import types

from launches import CORPUS, KERNELS, LAUNCHES, load_module

TYPES = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16", "int64": "*i64",
         "int32": "*i32", "int8": "*i8"}


def load_kernels(path):
    """kernels.py names PyTorch at its top and uses it only in the launches, which are not made."""
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.modules["torch"] = types.ModuleType("torch")
    return load_module("kernels", path)


def ttir(kernels, launch, capability):
    import triton
    from triton.backends.compiler import GPUTarget

    signature, constants, attributes = {}, {}, {}
    for index, argument in enumerate(launch.arguments):
        divisible = [["tt.divisibility", 16]]
        if argument.kind == "constexpr" or (argument.kind == "integer" and argument.value == 1):
            signature[argument.name] = "constexpr"
            constants[argument.name] = argument.value
        elif argument.kind == "integer":
            signature[argument.name] = "i32" if argument.value < 1 << 31 else "i64"
            if argument.value % 16 == 0:
                attributes[(index,)] = divisible
        elif argument.kind == "float":
            signature[argument.name] = "fp32"
        else:  # allocations are aligned
            signature[argument.name] = TYPES[argument.dtype]
            attributes[(index,)] = divisible
    source = triton.compiler.ASTSource(getattr(kernels, launch.kernel), signature, constants,
                                       attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                              options={"num_warps": launch.num_warps})
    return compiled.asm["ttir"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kernels", type=pathlib.Path, default=KERNELS)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--all-sizes", action="store_true",
                        help="also the other sizes that bench/gpu.py runs, as NAME.1.ttir …")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    kernels = load_kernels(options.kernels)
    for name, (full, others) in {**LAUNCHES, **CORPUS}.items():
        sizes = [full] + (others if options.all_sizes else [])
        for number, make in enumerate(sizes):
            launch = make()
            path = options.folder / (f"{name}.{number}.ttir" if number else f"{name}.ttir")
            path.write_text(ttir(kernels, launch, options.capability))
            print(f"{path} --num-warps {launch.num_warps}")


if __name__ == "__main__":
    main()
