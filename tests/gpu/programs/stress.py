"""Kernels with products under stress: random delays between their warps (tests/support/ptx_delays.py), whole numbers as
inputs, and every result of many launches compared with one that is known to be right.

    python stress.py [--launches 10000] [--filter PART] [--json FILE] [--mutations] [--seconds N]

The kernels are those of lilac.bench's products, at sizes of some tiles and a dozen iterations. Each is compiled as
lilac schedules it, with tensor maps of the launcher and without. First the kernel without delays is launched: the result of a
`product` must be the exact one, rounded once; that of another kernel (attention, scaled operands) must be within the
tolerance of its case. Each launch with delays must then leave the same bytes. The comparison is on the device, where a
counter collects the launches with a difference.

A line for each kernel: its name, the schedule of its loops, the launches, and how many differed. With --mutations, each
of some kernels is also run without one of its waits: at least one such mutation of every kind must be noticed.
Exit status 1: a launch differed, or a kind of mutation was not noticed.
"""

import argparse
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
import ptx_delays  # noqa: E402

IN_A_GRAPH = 100
CACHE_BYTES = 128 << 20  # more than the second-level cache has
SCHEDULE = re.compile(r'lilac\.schedule = "([^"]*)"')


# ---- kernels -------------------------------------------------------------------------------------


def products():
    """Cases whose results are exact for whole numbers."""
    from lilac.bench.operators.products import (convolution, descriptors, fused, grouped, matmul, quantized, scaled,
                                                schedules)

    matmul_case = matmul.matmul_case
    yield matmul_case("f16", "NN", 512, 768, 768)
    yield matmul_case("bf16", "NT", 384, 384, 768)
    yield matmul_case("f8e4m3", "NT", 256, 512, 1024)
    yield matmul_case("f8e5m2", "NT", 256, 256, 1024)
    yield matmul_case("i8", "NT", 256, 512, 1024)
    yield matmul_case("tf32", "NN", 256, 256, 512)
    yield matmul_case("tf32", "TT", 256, 256, 512)
    yield matmul_case("f16", "TN", 248, 264, 500)
    yield matmul_case("f16", "TT", 256, 256, 768, tile=(128, 64, 64), num_warps=4, num_stages=4)
    yield matmul_case("bf16", "NT", 16, 512, 1024, tile=(16, 64, 128), num_warps=4, num_stages=4)
    yield matmul_case("f16", "NN", 256, 256, 512, tile=(64, 64, 32), num_warps=4, num_stages=4)
    yield matmul_case("f16", "NN", 256, 256, 512, tile=(128, 128, 64), num_warps=8, num_stages=1)
    yield matmul_case("f16", "NT", 256, 256, 16384, tile=(128, 128, 64), num_warps=4, num_stages=4)
    yield schedules.persistent_case("f16", "N", 512, 512, 512, programs=4)
    yield schedules.persistent_case("f8e4m3", "T", 512, 768, 768, tile=(128, 256, 128), programs=3)
    yield schedules.split_case("bf16", "T", 128, 256, 2048, 4, tile=(128, 128, 64), num_warps=8, num_stages=3)
    yield schedules.stream_case("f16", 384, 384, 1024, programs=7)
    yield schedules.batched_case("f16", "N", 4, 256, 256, 512)
    yield schedules.stacked_case("f16", 64, 4, 32, 32, 32)
    yield fused.addmm_case("f16", 250, 304, 512)
    yield grouped.grouped_case("bf16", "T", 4, 256, 256, 512)
    yield grouped.persistent_case("f16", 3, 300, 256, 512, programs=5)
    yield grouped.gradient_case("bf16", 3, 512, 256, 128)
    yield convolution.convolution_case("f16", 2, 16, 16, 64, 128)
    yield quantized.weight_only_case("bf16", "i8", "T", 64, 256, 512, tile=(64, 64, 128))
    yield quantized.int4_case("f16", 128, 256, 512, tile=(128, 128, 64), num_warps=8)
    yield scaled.scaled_case("bf16", "e2m1", 128, 256, 512)
    yield scaled.scaled_case("e4m3", "e4m3", 256, 128, 512)
    yield descriptors.described_case("f16", "N", 256, 512, 512)
    yield descriptors.described_case("bf16", "T", 256, 256, 512, tile=(128, 128, 64), specialize=True)
    yield descriptors.made_case("f16", 512, 512, 512, programs=3)
    yield descriptors.made_case("f16", 512, 512, 512, programs=3, specialize=True)
    yield by_clusters(matmul_case("f16", "NN", 512, 512, 512))
    yield by_clusters(descriptors.described_case("f16", "N", 512, 512, 512))


def by_clusters(case):
    """Each program is two blocks."""
    case.launch.options["num_ctas"] = 2
    case.name += "_clusters"
    return case


def others():
    """Cases whose results are those of the kernel without delays."""
    from lilac.bench.operators.products import attention, attention_backward, chained, descriptors, fused, quantized

    yield attention.attention_case("f16", 1, 4, 512, 64)
    yield attention.attention_case("f16", 1, 4, 512, 64, causal=True)
    yield attention.attention_case("f16", 1, 4, 512, 128)
    yield attention.attention_case("bf16", 1, 4, 512, 128, causal=True, tile=(128, 128))
    yield attention.attention_case("bf16", 1, 4, 500, 64, causal=True, group=2)
    yield attention.attention_case("f8e4m3", 1, 4, 512, 128, tile=(128, 128))
    yield attention.varlen_case("f16", 3, 2, 512, 64, True)
    yield descriptors.attention_case("bf16", 4, 512, 128, True)
    yield from (attention_backward.backward_case(which, "f16", 1, 2, 512, 128, True, tile=tile)
                for which, tile in (("dkdv", (64, 128)), ("dq", (128, 64))))
    yield fused.gated_case("bf16", 256, 256, 512)
    yield fused.normed_case("f16", 256, 256, 512)
    yield quantized.block_scaled_case("f8e4m3", 128, 256, 768, tile=(128, 128, 128), num_warps=8)
    yield quantized.scaled_case("f8e4m3", 256, 256, 1024)
    yield from (case for case in chained.small()[:2])


def whole_numbers(torch, case, seed):
    """Overwrites the inputs: floats by -1, 0 and 1, scales of dot_scaled by 1. Integers are as the case has them."""
    tensors = case.launch.tensors
    device = next(iter(tensors.values())).used.device
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    for name, tensor in tensors.items():
        buffer, used = tensor.buffer, tensor.used
        if buffer.output or name in ("lse", "delta"):
            continue
        if used.is_floating_point():
            used.copy_(torch.randint(-1, 2, used.shape, generator=generator, device=device).float())
        elif name.startswith("scale_"):
            used.fill_(127)
    case.expected = None


# ---- compilations ----------------------------------------------------------------------------------


@contextlib.contextmanager
def changed(change, key, maps, found=None):
    """Under it, the PTX of lilac's kernels is `change(ptx, has_maps)`; `key` names the change in the keys of Triton's
    cache. `found` gets the schedules of what is compiled, by whether it has tensor maps of the launcher."""
    import lilac.triton
    from lilac.triton import backend, switch

    compile, build_key = backend.compile, switch.build_key

    def compiled(text, **words):
        has_maps = bool(words.get("launch_maps"))
        kernel = compile(text, **{**words, "tile": True})
        if found is not None:
            found[has_maps] = {"schedules": SCHEDULE.findall(kernel.tile),
                               "delays": len(ptx_delays.places(kernel.ptx.split("\n"))),
                               "waits": {kind: len(ptx_delays.waits(kernel.ptx, kind)) for kind in ptx_delays.REMOVED},
                               "programs": kernel.ptx.count("setmaxnreg.inc")}
        return SimpleNamespace(ptx=change(kernel.ptx, has_maps), metadata=kernel.metadata, tile=kernel.tile)

    backend.compile, switch.build_key = compiled, lambda: f"{build_key()}-{key}"
    try:
        with lilac.triton.enabled(launch_maps=maps):
            yield
    finally:
        backend.compile, switch.build_key = compile, build_key


def usual(maps, found=None):
    return changed(lambda ptx, has_maps: ptx, "usual", maps, found)


def with_delays(maps, found=None):
    return changed(lambda ptx, has_maps: ptx_delays.delayed(ptx), "delayed", maps, found)


def without_wait(maps, kind, which):
    """Without this wait: of the kernel with maps of the launcher, or of that without. With delays, except where copies
    are not awaited, which would arrive during them."""
    def change(ptx, has_maps):
        if has_maps != maps:
            return ptx_delays.delayed(ptx)
        text = ptx_delays.mutated(ptx, kind, which)
        return text if kind == "cp.async" else ptx_delays.delayed(text)

    return changed(change, f"without-{kind}-{which}", maps)


def all_cases():
    return [(case, True) for case in products()] + [(case, False) for case in others()]


def prepare(number, maps):
    """In a process without a GPU: both forms of a case's kernel are in Triton's cache. Returns what was found."""
    case, found = all_cases()[number][0], {}
    with usual(maps):
        case.launch.compile()
    with with_delays(maps, found):
        kernel = case.launch.compile()
    return {has_maps: one for has_maps, one in found.items() if not has_maps or kernel.metadata.lilac.get("mapped")}


# ---- launches ----------------------------------------------------------------------------------------


class Stress:
    """A case on the GPU, with whole numbers, and the result that each launch must have."""

    def __init__(self, torch, case, exact, maps, seed):
        self.torch, self.case, self.maps = torch, case, maps
        case.make(seed)
        whole_numbers(torch, case, seed)
        self.outputs = [case.launch.tensors[name] for name in case.launch.outputs]
        with usual(maps):
            self.problem = self.inexact() if exact else self.wrong()
        torch.cuda.synchronize()
        self.expected = [tensor.used.view(torch.uint8).clone() for tensor in self.outputs]

    def inexact(self):
        """What is wrong with a result that must be the exact one, rounded; None: nothing."""
        launch = self.case.launch
        expected = self.case.reference(launch.inputs())
        expected = expected if isinstance(expected, dict) else dict(zip(launch.outputs, [expected]))
        launch.reset()
        launch()
        for name, value in expected.items():
            used = launch.tensors[name].used
            if not self.torch.equal(used, value.to(used.dtype)):
                return f"{name} is not exact"
        return None

    def wrong(self):
        error = self.case.check()
        return None if error <= 1 else f"{error:.3g} times the error that is allowed"

    def once(self, counter):
        for tensor in self.outputs:
            if tensor.before is None:
                tensor.used.view(self.torch.uint8).fill_(0xFF)
            else:
                tensor.used.copy_(tensor.before)
        self.case.launch()
        differ = [(tensor.used.view(self.torch.uint8) != expected).any()
                  for tensor, expected in zip(self.outputs, self.expected)]
        counter += self.torch.stack(differ).any()

    def run(self, launches, cold=False):
        """(launches, how many of their results differ), under what the caller has switched on. `cold`: the second-level
        cache holds no input."""
        torch = self.torch
        counter = torch.zeros((), dtype=torch.int64, device=self.expected[0].device)
        others = torch.zeros(CACHE_BYTES if cold else 0, dtype=torch.uint8, device=counter.device)
        self.case.launch()
        torch.cuda.synchronize()
        graph, count = torch.cuda.CUDAGraph(), min(launches, IN_A_GRAPH)
        with torch.cuda.graph(graph):
            for _ in range(count):
                others.zero_()
                self.once(counter)
        counter.zero_()
        for _ in range(launches // count):
            graph.replay()
        return launches // count * count, counter.item()


def launched(stress):
    """(launches with maps of the launcher, those with several blocks for each program) of the case's kernel so far."""
    import lilac.triton

    rows = [row for row in lilac.triton.report().rows if row.name == stress.case.launch.name]
    return sum(row.mapped_launches for row in rows), sum(row.divided_launches for row in rows)


def stressed(torch, case, exact, maps, launches, found, seed):
    """The row of a case."""
    row, began = {"name": case.name, "maps": maps, "exact": exact}, time.perf_counter()
    stress = Stress(torch, case, exact, maps, seed)
    if stress.problem:
        row["problem"] = stress.problem
    else:
        before = launched(stress)
        with with_delays(maps):
            row["launches"], row["different"] = stress.run(launches)
        mapped, divided = (now - then for now, then in zip(launched(stress), before))
        if maps and mapped == 0:
            row["problem"] = "the launcher made no maps"
        row["divided"] = divided > 0
    row.update(found[maps], seconds=round(time.perf_counter() - began, 3))
    case.free()
    return row


# ---- mutations ---------------------------------------------------------------------------------------

MUTATED = ("matmul_f16_NN_512x768x768", "attention_f16_d128_full_1x4x512")
LAUNCHES_OF_MUTATIONS = 1000
PATIENCE = 40  # seconds; a kernel without a wait need not end


def mutations(found):
    """(case, maps, kind, which): up to three waits of each kind of some kernels. The programs of a kernel meet at
    barriers, and would wait for ever if one of them did not. A wait for wgmma that is missing is restored by ptxas
    (C7517), or it serialises all of them (C7514)."""
    for number, (case, _) in enumerate(all_cases()):
        if case.name not in MUTATED:
            continue
        for maps in (True, False):
            here = found.get((number, maps), {}).get(maps)
            for kind, count in here["waits"].items() if here else ():
                if kind != "wgmma" and (kind != "barrier" or here["programs"] == 0):
                    yield from ((number, maps, kind, which) for which in range(0, count, count // 3 + 1))


def run_mutation(number, maps, kind, which):
    """In a process of its own, since the kernel may end in an error, or not at all."""
    import torch

    case, exact = all_cases()[number]
    stress = Stress(torch, case, exact, bool(maps), 1)
    with without_wait(bool(maps), kind, which):
        print(*stress.run(LAUNCHES_OF_MUTATIONS, cold=True))


def noticed(number, maps, kind, which):
    """What became of a mutation."""
    row = {"name": all_cases()[number][0].name, "maps": maps, "kind": kind, "wait": which}
    try:
        done = subprocess.run([sys.executable, __file__, "--mutation", str(number), str(int(maps)), kind, str(which)],
                              capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {**row, "noticed": False, "why": f"it did not end within {PATIENCE} seconds"}
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "rror" in line]
        return {**row, "noticed": any("CUDA" in line for line in lines), "why": lines[-1][:200] if lines else "?"}
    launches, different = (int(word) for word in done.stdout.split()[-2:])
    return {**row, "noticed": different > 0, "different": different, "launches": launches}


# ---- the program -------------------------------------------------------------------------------------


def show(row):
    title = f"{row['name']:<58} {'maps' if row['maps'] else 'plain':<6}"
    if "kind" in row:
        seen = f"{row['different']} of {row['launches']} differ" if "different" in row else row["why"]
        print(f"{title} without {row['kind']} wait {row['wait']}: {seen}")
    elif "problem" in row:
        print(f"{title} {row['problem']}")
    else:
        print(f"{title} {row['different']} of {row['launches']} differ  {'; '.join(row['schedules']) or '-'}"
              + ("  divided" if row["divided"] else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=10000)
    parser.add_argument("--filter", default="", help="cases whose name contains this")
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--mutation", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=1e9, help="no case is begun after this time")
    parser.add_argument("--jobs", type=int, default=16, help="processes that compile")
    parser.add_argument("--commit", default="", help="recorded in the data")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.mutation:
        number, maps, kind, which = options.mutation
        return run_mutation(int(number), int(maps), kind, int(which))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder  # what is compiled is found nowhere
        return run(options)


def run(options):
    began = time.perf_counter()
    cases = all_cases()
    chosen = [number for number, (case, _) in enumerate(cases) if options.filter in case.name]
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        wanted = [(number, maps) for maps in (True, False) for number in chosen]
        found = dict(zip(wanted, pool.map(prepare, *zip(*wanted))))
    compiled = time.perf_counter() - began

    import torch
    import triton

    import lilac

    rows, left_out = [], []
    beside = concurrent.futures.ThreadPoolExecutor(6)
    mutants = [beside.submit(noticed, *one) for one in mutations(found)] if options.mutations else []
    for number, maps in wanted:
        case, exact = cases[number]
        if maps not in found[number, maps]:
            continue  # there is no kernel with maps
        if time.perf_counter() - began > options.seconds:
            left_out.append([case.name, maps])
            continue
        try:
            rows.append(stressed(torch, case, exact, maps, options.launches, found[number, maps], seed=number))
        except Exception as error:
            rows.append({"name": case.name, "maps": maps, "problem": f"{type(error).__name__}: {error}"[:300]})
        show(rows[-1])
    mutants = [one.result() for one in mutants]
    for row in mutants:
        show(row)
    wrong = [row for row in rows if row.get("problem") or row["different"]]
    kinds = {row["kind"] for row in mutants}
    unnoticed = kinds - {row["kind"] for row in mutants if row["noticed"]}
    print(f"{len(rows)} kernels, {sum(row.get('launches', 0) for row in rows)} launches, {len(wrong)} kernels wrong; "
          f"{sum(row['noticed'] for row in mutants)} of {len(mutants)} mutations noticed; {len(left_out)} not run")
    if options.json:
        options.json.write_text(json.dumps({
            "device": torch.cuda.get_device_name(), "driver": driver(), "torch": torch.__version__,
            "triton": triton.__version__, "lilac": lilac.__version__, "commit": options.commit,
            "command": " ".join(["stress.py", *sys.argv[1:]]).replace(str(options.json), options.json.name),
            "compile_seconds": round(compiled, 1),
            "seconds": round(time.perf_counter() - began, 1), "kernels": rows, "mutations": mutants,
            "not_run": left_out}, indent=1) + "\n")
    return 1 if wrong or unnoticed else 0


def driver():
    done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                          text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
