#!/usr/bin/env python3
"""Products of an integer and a floating-point matrix: the pairs of types of Table 4 of the linear-layouts paper.

    python3 bench/mixed_products.py [--simulator | --compile-only] [--only PAIR …] [--compiler NAME …] [--jobs N]
                                    [--json FILE] [--markdown FILE]

A program loads A (M × K, integers) and B (K × N, floats), converts A to the type of B, and stores their product.
Half of the products have the float on the left. All numbers and sums are small enough to be exact in every type on
the way, so a result must be equal to the expected one.

The paper gives 784 cases by pair of types, and not their shapes. Its counts are those of seven floating-point types
(f16 and bf16 are `f16`; e4m3, e5m2 and e4b15 are `f8`; f32; f64) with a number of shapes that depends on the integer
alone, if i32/f32 is counted under i32/f64, and i64/f64 under i64/f32, which the paper has no rows for:

    i8     48 shapes, 336 cases         i32    16 shapes, 112 cases
    i16    32 shapes, 224 cases         i64    16 shapes, 112 cases

The choice here: M and N are each 16, 32, 64 or 128, and K is 32; for i16 also 64, for i8 also 64 and 128. The
number of warps is 1, 2, 4 or 8, in turn, but no warp has more than 2048 sums (which would spill).

By default on a GPU under lilac and Triton (PyTorch needed), compiled in parallel before. --simulator runs lilac's
kernels on its simulator, and --compile-only compiles under both: neither needs a GPU or PyTorch. Exit status 1 if a
product under lilac fails.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import warnings
import zlib
from collections import namedtuple

import numpy
import report

import triton
import triton.language as tl

DEPTHS = {"i8": (32, 64, 128), "i16": (32, 64), "i32": (32,), "i64": (32,)}
SIDES = (16, 32, 64, 128)
MOST_SUMS = 2048  # of a warp
# The paper's name, and its name of the pairs whose integer it has no row for.
FLOATS = {"f16": "f16", "bf16": "f16", "f32": "f32", "f64": "f64", "e4m3": "f8", "e5m2": "f8", "e4b15": "f8"}
ELSEWHERE = {"i32/f32": "i32/f64", "i64/f64": "i64/f32"}
PAPER = {  # pair: passes of the paper's Triton, of its Triton with linear layouts, cases
    "i16/f16": (32, 64, 64), "i16/f32": (32, 32, 32), "i16/f64": (32, 32, 32), "i16/f8": (36, 96, 96),
    "i32/f16": (32, 32, 32), "i32/f64": (16, 32, 32), "i32/f8": (18, 48, 48), "i64/f16": (32, 32, 32),
    "i64/f32": (16, 32, 32), "i64/f8": (18, 48, 48), "i8/f16": (36, 96, 96), "i8/f32": (18, 48, 48),
    "i8/f64": (18, 48, 48), "i8/f8": (30, 144, 144)}  # fmt: skip
COMPILERS = ("triton", "lilac")

# name: type in Triton, mantissa bits, exponent bits, bias; integers of the same width hold the bits
Float = namedtuple("Float", "triton width mantissa bias")
FORMATS = {"f16": Float("fp16", 16, 10, 15), "bf16": Float("bf16", 16, 7, 127), "f32": Float("fp32", 32, 23, 127),
           "f64": Float("fp64", 64, 52, 1023), "e4m3": Float("fp8e4nv", 8, 3, 7), "e5m2": Float("fp8e5", 8, 2, 15),
           "e4b15": Float("fp8e4b15", 8, 3, 15)}  # fmt: skip

warnings.filterwarnings("ignore", message=".*fp8e4b15 is deprecated")  # in processes of the pool too

Case = namedtuple("Case", "integer float M N K left warps")  # left: the float is


@triton.jit
def mixed(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FLOAT: tl.constexpr, LEFT: tl.constexpr,
          SUM: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    if LEFT:
        left = left.to(FLOAT, bitcast=True)
        right = converted(right, FLOAT)
    else:
        left = converted(left, FLOAT)
        right = right.to(FLOAT, bitcast=True)
    result = tl.dot(left, right, out_dtype=SUM, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], result)


@triton.jit
def converted(x, FLOAT: tl.constexpr):
    """Integers become 8-bit floats by way of f32."""
    if FLOAT.primitive_bitwidth == 8:
        x = x.to(tl.float32)
    return x.to(FLOAT)


# ---- cases ----------------------------------------------------------------------------------


def pair(case):
    name = f"{case.integer}/{FLOATS[case.float]}"
    return ELSEWHERE.get(name, name)


def name(case):
    types = (case.float, case.integer) if case.left else (case.integer, case.float)
    return f"{'*'.join(types)} {case.M}x{case.N}x{case.K}, {case.warps} warps"


def cases():
    made = []
    for integer, float in itertools.product(DEPTHS, FLOATS):
        for number, (K, M, N) in enumerate(itertools.product(DEPTHS[integer], SIDES, SIDES)):
            # Neither the order nor the number of warps has the period of M or N.
            left, warps = (number // 4 + number) % 2 == 1, (1, 2, 4, 8)[(number // 3 + number) % 4]
            made.append(Case(integer, float, M, N, K, left, max(warps, M * N // MOST_SUMS)))
    return made


def count_agrees():
    counts = {}
    for case in cases():
        counts[pair(case)] = counts.get(pair(case), 0) + 1
    return counts == {name: paper[2] for name, paper in PAPER.items()}


# ---- numbers --------------------------------------------------------------------------------


def encoded(values, format):
    """The bits of these numbers, which the format holds exactly."""
    mantissa, exponent = numpy.frexp(numpy.abs(values))  # values = mantissa · 2^exponent, mantissa in [½, 1)
    field = exponent - 1 + format.bias
    assert ((field > 0) | (values == 0)).all()
    fraction = (2 * mantissa - 1) * 2.0**format.mantissa
    assert (fraction[values != 0] == numpy.floor(fraction[values != 0])).all()
    bits = (field.astype("uint64") << numpy.uint64(format.mantissa)) + numpy.abs(fraction).astype("uint64")
    sign = numpy.where(values < 0, numpy.uint64(1) << numpy.uint64(format.width - 1), numpy.uint64(0))
    whole = numpy.where(values == 0, numpy.uint64(0), bits) + sign
    return whole.astype(f"uint{format.width}").view(f"int{format.width}")


def operands(case):
    """(A, B, A · B): integers as they are and floats as their bits; the exact product."""
    random = numpy.random.default_rng(zlib.crc32(repr(case).encode()))
    # e4b15 ends at 1.875; the other types hold 7 in 3 bits.
    largest = 1 if case.float == "e4b15" else 7
    shape = [(case.M, case.K), (case.K, case.N)]
    integers = random.integers(-largest, largest + 1, shape[1 if case.left else 0]).astype("int" + case.integer[1:])
    if case.float == "e5m2":
        integers = numpy.where(numpy.abs(integers) % 2, numpy.sign(integers), integers).astype(integers.dtype)
    floats = random.integers(-3, 4, shape[0 if case.left else 1]) / 4.0
    bits = encoded(floats, FORMATS[case.float])
    if case.left:
        return bits, integers, floats @ integers
    return integers, bits, integers @ floats


def sum_type(case):
    return tl.float64 if case.float == "f64" else tl.float32


# ---- runs -----------------------------------------------------------------------------------


def source(case):
    """The argument of triton.compile."""
    from triton.compiler import ASTSource

    integer, bits = f"*{case.integer}", f"*i{FORMATS[case.float].width}"
    signature = dict(zip("abc", (bits, integer) if case.left else (integer, bits)))
    signature["c"] = "*fp64" if case.float == "f64" else "*fp32"
    constants = {"M": case.M, "N": case.N, "K": case.K, "FLOAT": tl.dtype(FORMATS[case.float].triton),
                 "LEFT": case.left,
                 "SUM": sum_type(case)}
    signature.update(dict.fromkeys(constants, "constexpr"))
    return ASTSource(mixed, signature, constants, {(i,): [["tt.divisibility", 16]] for i in range(3)})


def using(compiler):
    import lilac.triton

    return lilac.triton.enabled() if compiler == "lilac" else contextlib.nullcontext()


def compiled(case, compiler):
    from triton.backends.compiler import GPUTarget

    with using(compiler):
        return triton.compile(source(case), target=GPUTarget("cuda", 90, 32), options={"num_warps": case.warps})


def reason(problem):
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    refused = len(lines) > 1 and lines[0].startswith("lilac cannot compile")
    return f"{type(problem).__name__}: {lines[1] if refused else (lines or [''])[0]}"[:300]


def attempt(job):
    """None, or why it fails: compiling, or running on the simulator. In a process of its own."""
    case, compiler, simulate = job
    try:
        kernel = compiled(case, compiler)
        if not simulate:
            return None
        import lilac

        a, b, expected = operands(case)
        c = numpy.full(expected.shape, numpy.nan, "float64" if case.float == "f64" else "float32")
        done = lilac.run(kernel.asm["ttir"], 1, a.copy(), b.copy(), c, num_warps=case.warps, target="sm_90a", threads=1)
        if done.findings:
            return str(done.findings[0])
        return None if (c == expected).all() else wrong(c, expected)
    except Exception as problem:
        return reason(problem)


def wrong(c, expected):
    return f"wrong result: {(c != expected).sum()} of {c.size} elements"


def launched(case, compiler):
    """The same on the GPU; the compiled kernel is in Triton's cache."""
    import torch

    a, b, expected = operands(case)
    left, right = (torch.from_numpy(array.copy()).cuda() for array in (a, b))
    result = torch.float64 if case.float == "f64" else torch.float32
    c = torch.full(expected.shape, float("nan"), dtype=result, device="cuda")
    try:
        with using(compiler):
            mixed[(1,)](left, right, c, M=case.M, N=case.N, K=case.K, FLOAT=tl.dtype(FORMATS[case.float].triton),
                        LEFT=case.left, SUM=sum_type(case), num_warps=case.warps)
        found = c.cpu().numpy()
    except Exception as problem:
        if "CUDA" in str(problem):
            torch.cuda.synchronize()  # a GPU that is lost ends the run
        return reason(problem)
    return None if (found == expected).all() else wrong(found, expected)


def be_quiet():
    """In a process of the pool: where Triton fails, MLIR prints the module to the standard error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def together(chosen, compilers, options):
    """{(case, compiler): None or why it fails}"""
    jobs = [(case, compiler, options.simulator) for compiler in compilers for case in chosen]
    found = {}
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=context, initializer=be_quiet) as pool:
        for job, why in zip(jobs, pool.map(attempt, jobs, chunksize=8)):
            found[job[:2]] = why
    if options.simulator or options.compile_only:
        return found
    return {(case, compiler): why or launched(case, compiler) for (case, compiler), why in found.items()}


# ---- the table ------------------------------------------------------------------------------


def counted(found, compilers):
    """{pair: {"cases", compiler: passes …}}"""
    table = {}
    for (case, compiler), why in found.items():
        row = table.setdefault(pair(case), {"cases": 0, **dict.fromkeys(compilers, 0)})
        row["cases"] += compiler == compilers[0]
        row[compiler] += why is None
    return table


def markdown(table, compilers):
    lines = ["| pair | cases | " + " | ".join(compilers) + " | the paper's Triton | with linear layouts |",
             "|---|---:|" + "---:|" * (len(compilers) + 2)]
    rows = [(title, *(table[title][key] for key in ("cases", *compilers)), *PAPER[title]) for title in PAPER
            if title in table]
    rows.append(("all", *map(sum, list(zip(*rows))[1:])))
    for *cells, before, after, count in rows:
        lines.append("| " + " | ".join(map(str, cells)) + f" | {before}/{count} | {after}/{count} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="products of matrices of two types")
    parser.add_argument("--simulator", action="store_true", help="lilac's kernels on its simulator; no GPU")
    parser.add_argument("--compile-only", action="store_true", help="compile under both; no GPU")
    parser.add_argument("--only", action="append", default=[], metavar="PAIR", help="a pair of the table, as i8/f16")
    parser.add_argument("--compiler", action="append", choices=COMPILERS, help="one compiler only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    report.add_options(parser)
    options = parser.parse_args()
    assert count_agrees()
    compilers = options.compiler or (["lilac"] if options.simulator else list(COMPILERS))
    if options.simulator and compilers != ["lilac"]:
        parser.error("the simulator runs lilac's kernels only")
    if unknown := set(options.only) - set(PAPER):
        parser.error(f"no such pair: {', '.join(sorted(unknown))}; pairs: {', '.join(PAPER)}")
    chosen = [case for case in cases() if not options.only or pair(case) in options.only]
    gpu = None
    if not options.simulator and not options.compile_only:
        import torch

        if not torch.cuda.is_available():
            parser.error("no GPU; --simulator and --compile-only need none")
        gpu = torch.cuda.get_device_name()
    with tempfile.TemporaryDirectory(prefix="lilac-mixed-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        found = together(chosen, compilers, options)
    table = counted(found, compilers)
    text = markdown(table, compilers)
    print(text)
    failed = [(name(case), compiler, why) for (case, compiler), why in found.items() if why]
    for title, compiler, why in failed[:40]:
        print(f"FAILED {title} under {compiler}: {why}")
    if len(failed) > 40:
        print(f"… and {len(failed) - 40} more")
    about = report.environment(options, gpu, None, triton=triton.__version__)
    if options.json:
        data = {"environment": about, "pairs": table, "failures": failed}
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    if options.markdown:
        how = "on lilac's simulator" if options.simulator else "compiled only" if options.compile_only else f"on {gpu}"
        options.markdown.write_text(f"# Products of two types (the paper's Table 4), {how}\n\n{text}\n\n" + "\n".join(
            f"- {key}: {value}" for key, value in about.items() if value) + "\n")
    return 1 if any(compiler == "lilac" for _, compiler, _ in failed) else 0


if __name__ == "__main__":
    sys.exit(main())
