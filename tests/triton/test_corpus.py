"""Every kernel of the corpus, without matrix products and descriptors, from Python to a cubin through
the plug-in; and it is the kernel that was recorded."""

import importlib.util
import json
import os
import re
import sys
import types

import pytest
import standin
import triton

import lilac.triton

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")
CONSTANTS = {
    "vector_add_f32": (1024,),
    "softmax_float16_4096": (4096,),
    "softmax_float32_1000": (1024,),
    "softmax_bfloat16_8192": (8192,),
    "layer_norm_f16_4096": (4096,),
    "layer_norm_f16_5120": (1024,),
    "rms_norm_f16_4096": (4096,),
    "rms_norm_f16_5120": (8192,),
    "transpose_float16": (64, 64),
    "transpose_float32": (64, 64),
    "transpose_int8": (64, 64),
    "gather_64x32_axis1": (64, 32, 1, 4),
    "gather_32x64_axis0": (32, 64, 0, 4),
    "gather_128x8_axis1": (128, 8, 1, 4),
    "cumsum_16x256": (16, 256, False),
    "rope_f16": (128, 8),
    "swiglu_bf16": (4096,),
    "cross_entropy_bf16": (4096,),
    "reduce_64x64_axis0": (64, 64, 0),
    "reduce_16x256_axis1": (16, 256, 1),
    "reduce_128x128_axis0": (128, 128, 0),
    "histogram_sort": (512, 128),
}
TYPES = {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16", "int8": "i8", "int32": "i32", "int64": "i64"}


@pytest.fixture(scope="module")
def corpus():
    """The module of the corpus's kernels; its launches need PyTorch, its kernels do not."""
    absent = "torch" not in sys.modules
    if absent:
        sys.modules["torch"] = types.ModuleType("torch")
    try:
        spec = importlib.util.spec_from_file_location("corpus_kernels", os.path.join(DATA, "kernels.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        if absent:
            del sys.modules["torch"]
    return module


@pytest.fixture(scope="module")
def cases():
    with open(os.path.join(DATA, "cases.json"), encoding="utf-8") as file:
        return {case["name"]: case for case in json.load(file)}


def test_all_are_here(cases):
    with_products = {name for name in cases if "matmul" in name or "attention" in name}
    assert set(CONSTANTS) == set(cases) - with_products


def operations(ttir):
    """The operations of a module in order, without names and places."""
    return re.findall(r"\b(?:tt|arith|math|scf)\.[\w.]+", re.sub(r"loc\(.*?\)+", "", ttir))


@pytest.mark.parametrize("name", CONSTANTS)
def test_compiles(corpus, cases, name):
    case = cases[name]
    arguments = [standin.Pointer(TYPES[argument["dtype"]]) if argument["kind"] == "pointer" else argument["value"]
                 for argument in case["arguments"]]
    with lilac.triton.enabled():
        kernel = getattr(corpus, case["kernel"]).warmup(
            *arguments, *CONSTANTS[name], grid=tuple(case["grid"]), num_warps=case["num_warps"],
            num_stages=case["num_stages"])
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    assert set(kernel.asm) == {"source", "ttir", "ttgir", "ptx", "cubin"}
    assert f".visible .entry {case['kernel']}(" in kernel.asm["ptx"]
    if triton.__version__.startswith("3.6."):  # which wrote the corpus
        with open(os.path.join(DATA, f"{name}.ttir"), encoding="utf-8") as file:
            assert operations(kernel.asm["ttir"]) == operations(file.read())
    (row,) = lilac.triton.report().rows
    assert (row.name, row.compiler, row.num_warps) == (case["kernel"], "lilac", case["num_warps"])
    assert os.path.basename(row.file) == "kernels.py" and row.line > 0
    assert row.registers > 0 and row.spills == 0 and row.shared == kernel.metadata.shared
    assert set(row.seconds) == {"front end", "ttir", "print", "lilac", "ptxas"}
    assert 0 < row.compile <= row.seconds["lilac"]
