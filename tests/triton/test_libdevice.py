"""Every function and overload of Triton's libdevice module, and what else needs no matrix product."""

import ast
import inspect
import os
import subprocess

import kernels
import pytest
import triton
from standin import Pointer
from triton import knobs
from triton.language.extra.cuda import libdevice

import lilac
import lilac.triton

LIST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "libdevice.txt")
LETTERS = {"int32": "i", "uint32": "i", "int64": "l", "uint64": "l", "fp32": "f", "fp64": "d"}
NAMES = {"i": "i32", "l": "i64", "f": "f32", "d": "f64"}
SIZE = 128


def listed():
    """(name, the types of the result and of the operands) of tests/data/libdevice.txt"""
    with open(LIST, encoding="utf-8") as file:
        return [tuple(line.split()) for line in file]


def installed():
    """The same of the installed module: the dictionaries from types to (symbol, type)"""
    rows = set()
    for node in ast.walk(ast.parse(inspect.getsource(libdevice))):
        if isinstance(node, ast.Dict):
            for operands, result in zip(node.keys, node.values):
                types = [result.elts[1], *operands.elts]
                letters = "".join(LETTERS[one.args[0].value] for one in types)
                rows.add((result.elts[0].value.removeprefix("__nv_"), letters))
    return rows


def test_the_list_is_complete():
    """tests/lower/libdevice.c lowers all of the list."""
    assert installed() - set(listed()) == set()
    if triton.__version__.startswith("3.6."):
        assert set(listed()) == installed()


def module(functions):
    """One kernel with a call of each function, on addresses of its own."""
    lines = [f"%r = tt.make_range {{end = {SIZE} : i32, start = 0 : i32}} : tensor<{SIZE}xi32>",
             f"%s = tt.splat %p : !tt.ptr<i64> -> tensor<{SIZE}x!tt.ptr<i64>>"]
    for k, (name, types) in enumerate(functions):
        lines += [f"%c{k} = arith.constant dense<{SIZE * k}> : tensor<{SIZE}xi32>",
                  f"%o{k} = arith.addi %r, %c{k} : tensor<{SIZE}xi32>",
                  f"%a{k} = tt.addptr %s, %o{k} : tensor<{SIZE}x!tt.ptr<i64>>, tensor<{SIZE}xi32>"]
        for i, letter in enumerate(types):
            pointer = f"tensor<{SIZE}x!tt.ptr<{NAMES[letter]}>>"
            lines.append(f"%b{k}_{i} = tt.bitcast %a{k} : tensor<{SIZE}x!tt.ptr<i64>> -> {pointer}")
            if i > 0:
                lines.append(f"%v{k}_{i} = tt.load %b{k}_{i} : {pointer}")
        tensors = [f"tensor<{SIZE}x{NAMES[letter]}>" for letter in types]
        operands = ", ".join(f"%v{k}_{i}" for i in range(1, len(types)))
        lines += [f'%x{k} = tt.extern_elementwise {operands} {{libname = "", libpath = "", pure = true, '
                  f'symbol = "__nv_{name}"}} : ({", ".join(tensors[1:])}) -> {tensors[0]}',
                  f"tt.store %b{k}_0, %x{k} : tensor<{SIZE}x!tt.ptr<{NAMES[types[0]]}>>"]
    body = "\n    ".join(lines)
    return f"module {{\n  tt.func public @k(%p: !tt.ptr<i64>) {{\n    {body}\n    tt.return\n  }}\n}}\n"


def test_ptxas_takes_all(tmp_path):
    """Not optimised: what is at stake is whether ptxas has the instructions."""
    text = lilac.compile(module(listed()), target="sm_90a").ptx
    (tmp_path / "all.ptx").write_text(text)
    command = [knobs.nvidia.ptxas.path, "-O0", "-arch=sm_90a", str(tmp_path / "all.ptx"), "-o",
               str(tmp_path / "all.cubin")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_through_the_plug_in(dtype):
    with lilac.triton.enabled():
        kernels.bessel.warmup(Pointer("i32"), Pointer(dtype), Pointer(dtype), SIZE, grid=(1,))
        kernels.directed.warmup(Pointer(dtype), Pointer(dtype), SIZE, grid=(1,))
    assert [row.compiler for row in lilac.triton.report()] == ["lilac", "lilac"]


@pytest.mark.parametrize("dtype", ["fp8e5", "fp8e4nv", "fp8e4b15"])
def test_byte_floats(dtype):
    """Triton compiles it too, and prints the same format."""
    both = []
    for enabled in (True, False):
        lilac.triton.enable() if enabled else lilac.triton.disable()
        both.append(kernels.byte_floats.warmup(Pointer(dtype), Pointer(dtype), SIZE, grid=(1,)))
    assert [row.compiler for row in lilac.triton.report()] == ["lilac"]
    text = ", ".join(str(byte) for byte in b" v: %u\n")
    assert all(text in kernel.asm["ptx"] for kernel in both)
