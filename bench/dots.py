#!/usr/bin/env python3
"""Matrix products of the corpus at full size: Triton, lilac in its place, lilac from Triton's own TTIR and TTGIR.

    python3 bench/dots.py LILAC [--only NAME …] [--seconds S] [--json FILE] [--markdown FILE]

LILAC is liblilac.so or the `lilac` command. Needs a Hopper GPU, PyTorch, Triton 3.6 and the package lilac. Triton
compiles each kernel of tests/data/corpus/kernels.py, and so does lilac as its plug-in: kernels with tensor maps, and
launches that choose among them. Triton's TTIR and TTGIR also go through LILAC and the same ptxas, for kernels without
maps. All run on the same random inputs, in turn, several rounds, launched by CUDA graphs, so that the host's time
counts for none; results are compared with PyTorch in f32 or f64 (rows chosen at random). TFLOP/s are medians. Exit
status 1 when a result is wrong.
"""

import argparse
import ctypes
import importlib.util
import math
import pathlib
import re
import statistics
import sys

import report
from driver import SCRATCH, Driver, assemble, bundled_ptxas, pointers_to
from library import LilacError, lilac_at

HERE = pathlib.Path(__file__).resolve().parent


def load_kernels():
    path = HERE.parent / "tests" / "data" / "corpus" / "kernels.py"
    spec = importlib.util.spec_from_file_location("corpus_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- cases ----------------------------------------------------------------------------------


class Case:
    """A launch: the kernel's arguments by name, its options, and how to check some rows of the result."""

    def __init__(self, name, kernel, arguments, constants, grid, warps, stages, flops, out, check):
        self.name, self.kernel, self.arguments, self.constants = name, kernel, arguments, constants
        self.grid, self.warps, self.stages, self.flops, self.out, self.check = grid, warps, stages, flops, out, check


def matmul_case(torch, kernels, name, kind, m, n, k, tile, warps, stages, transposed):
    import triton.language as tl
    device = "cuda"
    bm, bn, bk = tile
    shape_b = (n, k) if transposed else (k, n)
    if kind == "i8":
        a = torch.randint(-128, 128, (m, k), device=device, dtype=torch.int8)
        b = torch.randint(-128, 128, shape_b, device=device, dtype=torch.int8)
        c, acc = torch.empty((m, n), device=device, dtype=torch.int32), tl.int32
    else:
        types = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "f8": torch.float8_e4m3fn}
        a = torch.randn((m, k), device=device).to(types[kind])
        b = torch.randn(shape_b, device=device).to(types[kind])
        c = torch.empty((m, n), device=device, dtype=torch.float32 if kind == "tf32" else torch.float16)
        acc = tl.float32
    strides_b = (1, k) if transposed else (n, 1)

    def check():
        rows = torch.randint(0, m, (16,), device=device)
        full = b.double().t() if transposed else b.double()
        wanted = a[rows].double() @ full
        return float((c[rows].double() - wanted).norm() / wanted.norm()), 0.0 if kind == "i8" else 3e-3

    arguments = dict(a=a, b=b, c=c, M=m, N=n, K=k, am=k, ak=1, bk=strides_b[0], bn=strides_b[1], cm=n, cn=1)
    constants = dict(BM=bm, BN=bn, BK=bk, G=8, ACC=acc)
    grid = (-(-m // bm) * -(-n // bn),)
    return Case(name, kernels.matmul, arguments, constants, grid, warps, stages, 2.0 * m * n * k, c, check)


def attention_case(torch, kernels, name, d, causal, bn):
    z, h, n, bm = 4, 16, 4096, 128
    q, k, v = (torch.randn((z, h, n, d), device="cuda").half() for _ in range(3))
    o, lse = torch.empty_like(q), torch.empty((z * h, n), device="cuda")

    def check():
        wanted = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
        return float((o.float() - wanted).norm() / wanted.norm()), 3e-3

    arguments = dict(q=q, k=k, v=v, o=o, lse=lse, scale=d**-0.5, sz=h * n * d, sh=n * d, sm=d, H=h, N=n)
    constants = dict(BM=bm, BN=bn, D=d, CAUSAL=causal)
    flops = 4.0 * z * h * n * n * d * (0.5 if causal else 1.0)
    return Case(name, kernels.attention, arguments, constants, (n // bm, z * h), 8, 3, flops, o, check)


def int4_case(torch, kernels, name):
    m = n = k = 4096
    a = torch.randn((m, k), device="cuda").bfloat16()
    b = torch.randint(-128, 128, (k // 2, n), device="cuda", dtype=torch.int8)
    c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)

    def check():
        low, high = ((b.int() << 28) >> 28).double(), (b.int() >> 4).double()
        wanted = a[:64].double() @ torch.stack((low, high), 1).reshape(k, n)
        return float((c[:64].double() - wanted).norm() / wanted.norm()), 1e-2

    arguments = dict(a=a, b=b, c=c, M=m, N=n, K=k, am=k, bk=n, cm=n)
    return Case(name, kernels.int4_matmul, arguments, dict(BM=128, BN=128, BK=64), (32, 32), 8, 3, 2.0 * m * n * k, c,
                check)


def mxfp4_case(torch, kernels, name):
    m = n = k = 4096
    a = torch.randn((m, k), device="cuda").bfloat16()
    b = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
    scales = torch.randint(120, 134, (n, k // 32), device="cuda", dtype=torch.uint8)
    c = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device="cuda").double()

    def check():
        w = torch.stack((numbers[(b & 15).long()], numbers[(b >> 4).long()]), 2).reshape(n, k)
        w = w * torch.exp2(scales.double() - 127).repeat_interleave(32, 1)
        wanted = a[:64].double() @ w.t()
        return float((c[:64].double() - wanted).norm() / wanted.norm()), 1e-2

    arguments = dict(a=a, b=b, bs=scales, c=c, M=m, N=n, K=k)
    return Case(name, kernels.mxfp4_matmul, arguments, dict(BM=128, BN=128, BK=128), (32, 32), 8, 3, 2.0 * m * n * k, c,
                check)


def descriptor_case(torch, kernels, name):
    import triton
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    m = n = k = 8192
    a, b = (torch.randn((m, k), device="cuda").half() for _ in range(2))
    c = torch.empty((m, n), device="cuda", dtype=torch.float16)

    def check():
        wanted = a[:64].double() @ b.double().t()
        return float((c[:64].double() - wanted).norm() / wanted.norm()), 3e-3

    arguments = dict(a=a, b=b, c=c, M=m, N=n, K=k)
    constants = dict(BM=128, BN=256, BK=64, SMS=132)
    return Case(name, kernels.matmul_descriptor, arguments, constants, (132,), 8, 3, 2.0 * m * n * k, c, check)


def cases(torch, kernels):
    matmul = lambda *rest: matmul_case(torch, kernels, *rest)
    return {
        "matmul_f16": lambda: matmul("matmul_f16", "f16", 8192, 8192, 8192, (128, 256, 64), 8, 3, False),
        "matmul_bf16_bT": lambda: matmul("matmul_bf16_bT", "bf16", 8192, 8192, 8192, (128, 128, 64), 4, 4, True),
        "matmul_f8": lambda: matmul("matmul_f8", "f8", 8192, 8192, 8192, (128, 256, 128), 8, 3, True),
        "matmul_tf32": lambda: matmul("matmul_tf32", "tf32", 4096, 4096, 4096, (128, 128, 32), 8, 3, False),
        "matmul_i8": lambda: matmul("matmul_i8", "i8", 8192, 8192, 8192, (128, 128, 64), 4, 3, True),
        "matmul_f16_skinny": lambda: matmul("matmul_f16_skinny", "f16", 16, 4096, 4096, (16, 64, 128), 4, 4, True),
        "attention_f16_d128_causal": lambda: attention_case(torch, kernels, "attention_f16_d128_causal", 128, True, 64),
        "attention_f16_d64_full": lambda: attention_case(torch, kernels, "attention_f16_d64_full", 64, False, 128),
        "matmul_descriptor_f16": lambda: descriptor_case(torch, kernels, "matmul_descriptor_f16"),
        "mxfp4_matmul": lambda: mxfp4_case(torch, kernels, "mxfp4_matmul"),
        "int4_matmul": lambda: int4_case(torch, kernels, "int4_matmul"),
    }


# ---- the compilers --------------------------------------------------------------------------


class Loaded:
    """A kernel that the driver launches, so that the host's time counts for neither compiler."""

    def __init__(self, driver, case, cubin, shared, parameters, name, scratch_bytes=0, warps=None):
        import torch
        self.driver, self.shared, self.case = driver, shared, case
        self.function = driver.load(cubin, name)
        driver.allow_shared(self.function, self.shared)
        self.storage = [self.value(case.arguments[name]) for name in parameters] + list(SCRATCH)
        if scratch_bytes:  # for each program
            self.scratch = torch.empty(scratch_bytes * math.prod(case.grid), dtype=torch.uint8, device="cuda")
            self.storage[-2] = self.value(self.scratch)
        self.threads = 32 * (warps or case.warps)

    @staticmethod
    def value(argument):
        if isinstance(argument, float):
            return ctypes.c_float(argument)
        return ctypes.c_int32(argument) if isinstance(argument, int) else ctypes.c_uint64(argument.data_ptr())

    def __call__(self):
        import torch
        grid = (*self.case.grid, 1, 1)[:3]
        self.driver.call("cuLaunchKernel", self.function, *grid, self.threads, 1, 1, self.shared,
                         ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), pointers_to(self.storage), None)


def own(driver, lilac, text, case):
    """lilac's kernel for a text."""
    ptx, metadata, seconds = lilac.compile(case.name + ".ttir", text, case.warps, case.stages)
    cubin, registers, spills, _, warnings = assemble(bundled_ptxas(), "sm_90a", ptx)
    made = Loaded(driver, case, cubin, metadata["shared"], *parameters_of(text), metadata["global_scratch_size"],
                  metadata["num_warps"])
    made.registers, made.spills, made.seconds = registers, spills, seconds
    made.warnings = [line for line in warnings if "(C75" in line]
    return made


def parameters_of(text):
    """The names of the kernel's parameters, and its own."""
    header = re.search(r"tt\.func public @(\w+)\((.*?)\) (attributes|\{)", text, re.S)
    return re.findall(r"%(\w+): ", header.group(2)), header.group(1)


class Plugged:
    """A kernel that lilac compiles and launches in Triton's place."""

    def __init__(self, launch):
        self.launch, self.warnings = launch, []
        kernel = self()
        self.registers, self.spills = kernel.n_regs, kernel.n_spills
        if mapped := (kernel.metadata.lilac or {}).get("mapped"):
            self.registers, self.spills = mapped["registers"], mapped["spills"]

    def __call__(self):
        import lilac.triton

        with lilac.triton.enabled():
            return self.launch()


def variants(torch, driver, lilac, case):
    """Launchers by name; a text where one is refused."""
    def launch():
        return case.kernel[case.grid](**case.arguments, **case.constants, num_warps=case.warps, num_stages=case.stages)

    kernel = launch()
    triton = launch  # a kernel with descriptors needs scratch memory, which Triton's launcher allocates
    if not kernel.metadata.global_scratch_size:
        triton = Loaded(driver, case, kernel.asm["cubin"], kernel.metadata.shared, *parameters_of(kernel.asm["ttgir"]))
    made = {"triton": triton, "lilac": Plugged(launch)}
    for name, text in (("lilac from TTIR", kernel.asm["ttir"]), ("lilac from TTGIR", kernel.asm["ttgir"])):
        try:
            made[name] = own(driver, lilac, text, case)
        except (LilacError, RuntimeError) as error:
            made[name] = str(error).strip().splitlines()[0][:160]
    return made, kernel


def seconds_of(torch, launch, budget):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    launch()
    start.record()
    launch()
    end.record()
    torch.cuda.synchronize()
    count = max(2, min(50, int(budget / max(start.elapsed_time(end) * 1e-3, 1e-6))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            launch()
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3 / count


def measure(torch, driver, lilac, case, options):
    made, kernel = variants(torch, driver, lilac, case)
    row = {"name": case.name, "triton registers": kernel.n_regs, "triton spills": kernel.n_spills, "wrong": []}
    running = {}
    for name, launch in made.items():
        if isinstance(launch, str):
            row[name + " refused"] = launch
            continue
        case.out.fill_(float("nan") if case.out.is_floating_point() else 77)
        launch()
        torch.cuda.synchronize()
        error, limit = case.check()
        row[name + " error"] = error
        if not error <= limit:
            row["wrong"].append(name)
        running[name] = launch
        if name != "triton":
            row.update({name + " registers": launch.registers, name + " spills": launch.spills,
                        name + " C75xx": len(launch.warnings)})
    times = {name: [] for name in running}
    for number in range(options.rounds):
        order = list(running) if number % 2 == 0 else list(reversed(running))
        for name in order:  # alternating: whoever comes first has the higher clock
            times[name].append(seconds_of(torch, running[name], options.seconds))
    for name, each in times.items():
        row[name + " TFLOP/s"] = case.flops / statistics.median(each) * 1e-12
    return row


def table(rows):
    names = ("triton", "lilac", "lilac from TTIR", "lilac from TTGIR")
    lines = ["| case | " + " | ".join(f"{name} TFLOP/s" for name in names) +
             " | ratio | ratio from TTIR | ratio from TTGIR | registers |", "|---" * 9 + "|"]
    for row in rows:
        rates = [row.get(name + " TFLOP/s") for name in names]
        ratio = [f"{rate / rates[0]:.3f}" if rate else "–" for rate in rates[1:]]
        registers = " / ".join(str(row.get(name + " registers", "–")) for name in names)
        shown = [f"{rate:.1f}" if rate else "refused" for rate in rates]
        lines.append(f"| {row['name']} | " + " | ".join(shown + ratio + [registers]) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lilac", help="liblilac.so or the lilac command")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these cases")
    parser.add_argument("--seconds", type=float, default=0.05, help="time of a measurement (default 0.05)")
    parser.add_argument("--rounds", type=int, default=4)
    report.add_options(parser)
    options = parser.parse_args()
    import torch

    driver, lilac, rows = Driver(), lilac_at(options.lilac, "sm_90a"), []
    for name, make in cases(torch, load_kernels()).items():
        if options.only and name not in options.only:
            continue
        row = measure(torch, driver, lilac, make(), options)
        rows.append(row)
        print(row, flush=True)
    text = table(rows)
    print(text)
    if options.markdown:
        options.markdown.write_text(text)
    import triton
    about = report.environment(options, torch.cuda.get_device_name(), bundled_ptxas(), triton=triton.__version__,
                               torch=torch.__version__)
    report.write_json(options.json, about, rows=rows)
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
