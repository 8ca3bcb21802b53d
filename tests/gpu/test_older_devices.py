"""PTX for devices before Hopper on whatever GPU there is: the same bits as on the simulator.

f8 conversions in software, 64-bit integers to bf16, additions of bf16 by compare-and-swap, a kernel's
name that PTX does not take, and the arguments of `lilac run` that point into buffers."""

import subprocess
import sys

import numpy as np
import pytest

CAST = """module {
  tt.func public @%(name)s(%%x: !tt.ptr<%(from)s>, %%o: !tt.ptr<%(to)s>) {
    %%b = tt.get_program_id x : i32
    %%s = arith.constant 256 : i32
    %%f = arith.muli %%b, %%s : i32
    %%i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %%g = tt.splat %%f : i32 -> tensor<256xi32>
    %%j = arith.addi %%g, %%i : tensor<256xi32>
    %%p = tt.splat %%x : !tt.ptr<%(from)s> -> tensor<256x!tt.ptr<%(from)s>>
    %%q = tt.addptr %%p, %%j : tensor<256x!tt.ptr<%(from)s>>, tensor<256xi32>
    %%v = tt.load %%q : tensor<256x!tt.ptr<%(from)s>>
    %%w = %(op)s %%v%(rounding)s : tensor<256x%(from)s> -> tensor<256x%(to)s>
    %%r = tt.splat %%o : !tt.ptr<%(to)s> -> tensor<256x!tt.ptr<%(to)s>>
    %%t = tt.addptr %%r, %%j : tensor<256x!tt.ptr<%(to)s>>, tensor<256xi32>
    tt.store %%t, %%w : tensor<256x!tt.ptr<%(to)s>>
    tt.return
  }
}
"""
ADD = """module {
  tt.func public @add(%%x: !tt.ptr<bf16>, %%o: !tt.ptr<bf16>) {
    %%m = arith.constant dense<true> : tensor<256xi1>
    %%k = arith.constant dense<%(step)d> : tensor<256xi32>
    %%i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %%j = arith.%(op)s %%i, %%k : tensor<256xi32>
    %%p = tt.splat %%x : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>>
    %%q = tt.addptr %%p, %%i : tensor<256x!tt.ptr<bf16>>, tensor<256xi32>
    %%v = tt.load %%q : tensor<256x!tt.ptr<bf16>>
    %%r = tt.splat %%o : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>>
    %%t = tt.addptr %%r, %%j : tensor<256x!tt.ptr<bf16>>, tensor<256xi32>
    %%u = tt.atomic_rmw fadd, acq_rel, gpu, %%t, %%v, %%m : (tensor<256x!tt.ptr<bf16>>, tensor<256xbf16>, tensor<256xi1>) -> tensor<256xbf16>
    tt.return
  }
}
"""
POINTERS = """module {
  tt.func public @k(%p: !tt.ptr<i64>, %o: !tt.ptr<i32>, %n: !tt.ptr<i32>) {
    %z = arith.constant 0 : i64
    %a = tt.load %p : !tt.ptr<i64>
    %b = tt.int_to_ptr %a : i64 -> !tt.ptr<i32>
    %v = tt.load %b : !tt.ptr<i32>
    %c = tt.ptr_to_int %n : !tt.ptr<i32> -> i64
    %e = arith.cmpi eq, %c, %z : i64
    %w = arith.extui %e : i1 to i32
    %s = arith.addi %v, %w : i32
    tt.store %o, %s : !tt.ptr<i32>
    tt.return
  }
}
"""
BITS = {"f8E5M2": np.uint8, "f8E4M3FN": np.uint8, "bf16": np.int16, "f16": np.float16, "f32": np.float32,
        "i64": np.int64}


def run(folder, text, device, *words):
    (folder / "kernel.ttir").write_text(text)
    done = subprocess.run([sys.executable, "-m", "lilac", "run", "kernel.ttir", "--device", device, *words],
                          cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def both(folder, text, target, *words):
    """The buffer o after a launch on the simulator and on the GPU."""
    results = []
    for device in ("simulator", "cuda"):
        run(folder, text, device, "--target", target, *words, "--save", "o=o.npy")
        results.append(np.load(folder / "o.npy"))
    return results


def values(kind, random):
    if BITS[kind] == np.uint8:
        return np.tile(np.arange(256, dtype=np.uint8), 16)
    if kind in ("f16", "bf16"):
        return random.integers(-1 << 15, 1 << 15, 4096).astype(np.int16).view(BITS[kind])
    if kind == "i64":
        return random.integers(-1 << 62, 1 << 62, 4096) >> random.integers(0, 62, 4096)
    return (random.standard_normal(4096) * 2.0 ** random.integers(-20, 20, 4096)).astype(np.float32)


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90a"])
@pytest.mark.parametrize("source, result", [
    ("f8E5M2", "f32"), ("f8E4M3FN", "f32"), ("f8E5M2", "f16"), ("f8E4M3FN", "bf16"), ("f32", "f8E5M2"),
    ("f32", "f8E4M3FN"), ("f16", "f8E5M2"), ("bf16", "f8E4M3FN"), ("i64", "bf16")])
def test_conversions(tmp_path, target, source, result):
    np.save(tmp_path / "x.npy", values(source, np.random.default_rng(7)))
    to_byte = BITS[result] == np.uint8
    op = "arith.sitofp" if source == "i64" else "tt.fp_to_fp"
    text = CAST % {"name": "cast", "from": source, "to": result, "op": op if source != "i64" else op,
                   "rounding": ", rounding = rtne" if to_byte else ""}
    if source == "i64":
        text = text.replace("tensor<256xi64> -> tensor<256xbf16>", "tensor<256xi64> to tensor<256xbf16>")
    simulated, real = both(tmp_path, text, target, "--grid", "16", "--arg", "x=@x.npy", "--arg",
                           f"o=zeros:{result}:4096")
    nan = np.isnan(simulated) if simulated.dtype.kind == "f" else np.zeros(len(simulated), bool)
    assert np.array_equal(simulated[~nan], real[~nan]) and np.isnan(real[nan]).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a"])
@pytest.mark.parametrize("step, op", [(1, "muli"), (3, "muli"), (7, "remsi")])
def test_additions_of_bf16(tmp_path, target, step, op):
    """Small whole numbers, so that the order of the additions does not matter."""
    whole = np.random.default_rng(3).integers(-3, 4, 256).astype(np.float32)
    np.save(tmp_path / "x.npy", (whole.view(np.uint32) >> 16).astype(np.int16))
    simulated, real = both(tmp_path, ADD % {"step": step, "op": op}, target, "--grid", "1", "--arg", "x=@x.npy",
                           "--arg", "o=zeros:bf16:769")
    assert np.array_equal(simulated, real) and simulated.any()


def test_a_name_that_ptx_does_not_take(tmp_path):
    np.save(tmp_path / "x.npy", values("i64", np.random.default_rng(1)))
    text = CAST % {"name": "WARP_SZ", "from": "i64", "to": "i64", "op": "arith.bitcast", "rounding": ""}
    text = text.replace("tensor<256xi64> -> tensor<256xi64>", "tensor<256xi64> to tensor<256xi64>")
    _, real = both(tmp_path, text, "sm_90a", "--grid", "16", "--arg", "x=@x.npy", "--arg", "o=zeros:i64:4096")
    assert np.array_equal(real, np.load(tmp_path / "x.npy"))


def test_pointers_among_arguments(tmp_path):
    np.save(tmp_path / "v.npy", np.arange(100, 164, dtype=np.int32))
    for pointer, expected in (("pointers:v+5", 106), ("pointers:v+63", 164)):
        for device in ("simulator", "cuda"):
            run(tmp_path, POINTERS, device, "--grid", "1", "--buffer", "v=@v.npy", "--arg", f"p={pointer}", "--arg",
                "o=same:v+8", "--arg", "n=null", "--save", "v=after.npy")
            after = np.load(tmp_path / "after.npy")
            assert after[8] == expected and np.array_equal(np.delete(after, 8), np.delete(np.arange(100, 164), 8))
