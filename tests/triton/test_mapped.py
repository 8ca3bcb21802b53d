"""Tensor maps that the launcher makes. The compiler's part is replaced: it returns the plain kernel with further
parameters. The driver's part is a fake one."""

import base64
import json
import os
import re
import sys
import threading
import zlib
from types import SimpleNamespace

import fake_gpu
import kernels
import pytest
import standin
import triton
import triton.language as tl
from standin import Pointer

import lilac.triton
from lilac.bench.compile_time import Recorder
from lilac.compiler import Kernel
from lilac.triton import backend, mapped

MAPS = [
    # a, m × k, and b, k × n from its row 1 on, of f16
    {"base": 0, "offset": [], "sizes": [[[1, 3]], [[1, 5]]], "strides": [[[1, 6]]], "elem_size": 2, "elem_type": 6,
     "swizzle": 3, "block_size": [128, 64], "pitch": 0, "l2_promotion": 128},
    {"base": 1, "offset": [[1, 7]], "sizes": [[[1, 5], [-1]], [[1, 4]]], "strides": [[[1, 7]]], "elem_size": 2,
     "elem_type": 6, "swizzle": 3, "block_size": [64, 64], "pitch": 32, "l2_promotion": 256},
]
CONDITIONS = {"grid": [1 << 20, 65535, 65535], "parameters": [3, 4, 5]}


@triton.jit
def product(a, b, c, m, n, k, a_pitch, b_pitch, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, l = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        x = tl.load(a + i[:, None] * a_pitch + (at + l)[None, :], (i[:, None] < m) & (at + l[None, :] < k), 0.0)
        y = tl.load(b + (at + l)[:, None] * b_pitch + j[None, :], (j[None, :] < n) & (at + l[:, None] < k), 0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + i[:, None] * n + j[None, :], sums, (i[:, None] < m) & (j[None, :] < n))


BLOCKS = {"BM": 128, "BN": 64, "BK": 64}


@pytest.fixture(autouse=True)
def forget():
    yield
    for name, store in vars(product).items():
        if name.startswith("device_caches"):
            store.clear()
    mapped._counts.clear()


@pytest.fixture
def compiler(monkeypatch):
    """What the second compilation returns: `change` may replace its metadata or raise, and `change_one_block` those of
    the kernel for one block of a multiprocessor."""
    state = SimpleNamespace(asked=[], threads=set(), maps=MAPS, change=lambda facts: facts, change_one_block=lambda facts: facts,
                            ptx=lambda text: text)

    def compile(text, launch_maps=False, **words):
        kernel = original(text, **words)
        if not launch_maps:
            return kernel
        state.asked.append(words)
        state.threads.add(threading.current_thread())
        facts, ptx = kernel.metadata, kernel.ptx
        count = len(facts["parameters"])
        facts["launch_maps"] = [{**one, "parameter": count + i} for i, one in enumerate(state.maps)]
        facts["launch_conditions"] = CONDITIONS
        for i, one in enumerate(state.maps):
            facts["parameters"].append({"name": f"map{i}", "type": "!tt.tensordesc<tensor<64x64xf16>>"})
            head, last = re.search(r"\n([^\n]*\.param [^\n]*global_scratch)", ptx).span(1)
            ptx = f"{ptx[:head]}.param .align 64 .b8 map_{i}[128],\n{ptx[head:]}"
        facts = state.change(facts)
        return Kernel(state.ptx(ptx), json.dumps(state.change_one_block(facts) if words["one_block"] else facts))

    original = backend.compile
    monkeypatch.setattr(backend, "compile", compile)
    return state


def warm_up(*pointers, **words):
    a, b, c = pointers or [Pointer("fp16"), Pointer("fp16"), Pointer("fp32")]
    return product.warmup(a, b, c, 384, 64, 256, 256, 64, **{**BLOCKS, "grid": (3,), **words})


def mapped_of(kernel):
    return kernel.metadata.lilac.get("mapped")


# ---- compiling ----------------------------------------------------------------------------------

def test_compiled_twice(compiler):
    with lilac.triton.enabled():
        kernel = warm_up()
        made = mapped_of(kernel)
        assert len(compiler.asked) == 1 and threading.main_thread() not in compiler.threads
        assert [one["parameter"] for one in made["launch_maps"]] == [8, 9]
        assert made["launch_conditions"] == CONDITIONS
        assert made["parameters"] == ["!tt.ptr<f16>", "!tt.ptr<f16>", "!tt.ptr<f32>"] + ["i32"] * 5
        assert zlib.decompress(base64.b64decode(made["cubin"]))[:4] == b"\x7fELF"
        assert "map_0" not in kernel.asm["ptx"] and kernel.metadata.name == made["name"] == "product"
        row, = lilac.triton.report().rows
        assert row.maps == 2 and row.seconds["maps"] > 0 and row.mapped_launches == 0
        assert "product: 0 launches with 2 tensor maps of the launcher" in str(lilac.triton.report())
    assert not hasattr(warm_up().metadata, "lilac")


def test_from_the_cache_on_disk(compiler):
    with lilac.triton.enabled():
        first = mapped_of(warm_up())
        product.device_caches.clear()
        lilac.triton.reset_report()
        assert mapped_of(warm_up()) == first and len(compiler.asked) == 1
        row, = lilac.triton.report().rows
        assert row.cached and row.maps == 2


@pytest.mark.parametrize("why, words", [
    ("clusters", {"num_ctas": 2}),
    ("dependent launches", {"launch_pdl": True}),
])
def test_plain_only(compiler, why, words):
    with lilac.triton.enabled(fallback="triton"):
        assert mapped_of(warm_up(**words)) is None
    assert compiler.asked == []


def test_no_products_no_second_compilation(compiler):
    with lilac.triton.enabled():
        kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
    assert compiler.asked == []


def test_older_devices(compiler):
    standin.use(capability=80)
    with lilac.triton.enabled():
        warm_up()
    assert compiler.asked == []


def test_overrides(compiler):
    with triton.knobs.compilation.scope(), lilac.triton.enabled():
        triton.knobs.compilation.override = True
        assert mapped_of(warm_up()) is None
    assert compiler.asked == []


def test_switched_off(compiler, monkeypatch):
    with lilac.triton.enabled(launch_maps=False):
        assert mapped_of(warm_up()) is None and os.environ["LILAC_TRITON_LAUNCH_MAPS"] == "0"
        with lilac.triton.enabled():  # again with maps, although this variable is set
            assert mapped_of(warm_up()) is not None and "LILAC_TRITON_LAUNCH_MAPS" not in os.environ
        assert mapped_of(warm_up()) is None
    assert "LILAC_TRITON_LAUNCH_MAPS" not in os.environ and len(compiler.asked) == 1
    monkeypatch.setenv("LILAC_TRITON_LAUNCH_MAPS", "0")
    with lilac.triton.enabled():
        assert mapped_of(warm_up()) is None
    assert os.environ["LILAC_TRITON_LAUNCH_MAPS"] == "0"


def test_no_maps_are_found(compiler):
    compiler.maps = []
    with lilac.triton.enabled():
        kernel = warm_up()
    assert mapped_of(kernel) is None and "maps" not in kernel.metadata.lilac["seconds"]
    assert lilac.triton.report().rows[0].launches == ""


def refused(facts):
    raise lilac.CompilationError([lilac.Diagnostic("no", "not today")], "product")


def broken(facts):
    raise ZeroDivisionError("one by zero")


@pytest.mark.parametrize("change, ptx, words", [
    (refused, str, r"not today \[no\]"),
    (broken, str, "ZeroDivisionError: one by zero"),
    (dict, lambda ptx: ptx.replace("ret;", "return;"), "ptxas refuses the PTX: "),
    (lambda facts: {**facts, "global_scratch_size": 128}, str, "kernels that need scratch memory"),
])
@pytest.mark.parametrize("fallback", [None, "triton"])
def test_second_kernel_fails(compiler, capfd, change, ptx, words, fallback):
    """The plain kernel remains, and the report says why."""
    compiler.change, compiler.ptx = change, ptx
    with lilac.triton.enabled(fallback=fallback):
        kernel = warm_up()
    assert mapped_of(kernel) is None and kernel.metadata.lilac["compiler"] == "lilac"
    assert re.search(words, lilac.triton.report().rows[0].maps_refused)
    assert re.search(f"product: launched without tensor maps: .*{words}", str(lilac.triton.report()))
    assert capfd.readouterr().out == ""


def test_register_limit(compiler):
    """maxnreg is that of both kernels."""
    with lilac.triton.enabled():
        made = mapped_of(warm_up(maxnreg=96))
    assert made["registers"] <= 96


# ---- launching ----------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def library(tmp_path_factory):
    path = fake_gpu.build(str(tmp_path_factory.mktemp("fake")))
    if path is None:
        pytest.skip("there is no C compiler for the fake CUDA driver")
    os.environ["LILAC_LIBCUDA"] = path  # opened once in a process
    yield path
    del os.environ["LILAC_LIBCUDA"]


class Utils(standin.Utils):
    """Loads kernels into the fake driver, which reads PTX in place of machine code."""

    def __init__(self, gpu, shared=232448):
        super().__init__(shared)
        self.gpu, self.loaded, self.functions, self.most_threads = gpu, [], [], 1024

    def load_binary(self, name, kernel, shared, device):
        assert kernel[:4] == b"\x7fELF"
        self.loaded.append(name)
        count = 8 if len(self.loaded) == 1 else 10
        listed = 3 * [".param .u64 p"] + 5 * [".param .u32 n"] + (count - 8) * [".param .align 64 .b8 m[128]"]
        module, function = self.gpu.load(name, listed)
        self.functions.append(function)
        registers, spills = (32, 0) if len(self.loaded) == 1 else (168, 4)
        return module, function, registers, spills, self.most_threads


class PlainLauncher:
    def __init__(self, source, metadata):
        self.launches = []

    def __call__(self, *arguments):
        self.launches.append(arguments)


@pytest.fixture
def machine(library, compiler):
    driver, gpu = standin.use(), fake_gpu.Gpu(library)
    driver.utils = Utils(gpu)
    driver.launcher_cls = PlainLauncher
    addresses = [gpu.memory(1 << 20) for _ in range(3)]
    state = SimpleNamespace(gpu=gpu, driver=driver, addresses=addresses, compiler=compiler)

    def launch(m=384, n=64, k=256, a_pitch=256, b_pitch=64, grid=(3,), offset=0, a=None, **words):
        pointers = [Pointer(type, address) for type, address in zip(("fp16", "fp16", "fp32"), addresses)]
        pointers[0] = Pointer("fp16", addresses[0] + 2 * offset) if a is None else a
        state.kernel = product[grid](*pointers, m, n, k, a_pitch, b_pitch, **BLOCKS, **words)
        return state.kernel

    state.launch = launch
    state.plain = lambda: state.kernel.run.plain.launches
    with lilac.triton.enabled():
        yield state


def word(value, digits=8):
    return f"{value & (1 << 4 * digits) - 1:0{digits}x}"


def test_parameters(machine):
    machine.launch()
    launched, = machine.gpu.launches()
    a, b, c = machine.addresses
    made = mapped_of(machine.kernel)
    assert launched.startswith(f"product grid 3 1 1 block {32 * made['num_warps']} 1 1 shared {made['shared']} on the "
                               "default stream")
    values = [word(a, 16), word(b, 16), word(c, 16), *map(word, (384, 64, 256, 256, 64)), word(a, 16),
              word(b + 2 * 64, 16), word(0, 16), word(0, 16)]
    assert f"({', '.join(values)})" in launched
    assert "dimension 0: 256 stride 0 box 64 step 1\n  dimension 1: 384 stride 512 box 128 step 1" in machine.gpu.log
    assert "dimension 0: 64 stride 0 box 64 step 1\n  dimension 1: 255 stride 128 box 64 step 1" in machine.gpu.log
    assert "map element 6 interleave 0 swizzle 3 promotion 2 fill 0" in machine.gpu.log
    assert machine.plain() == []
    row, = lilac.triton.report().rows
    assert row.mapped_launches == 1 and set(row.plain_launches.values()) == {0}


SPLIT = {"iterations": [[1, 5], [63]], "divisor": 64, "clocks": 700, "loads": 24576, "bytes": 32768}


def test_divided_sums(machine):
    """Few programs of long sums: several blocks for each, which are a cluster."""
    machine.compiler.change = lambda facts: {**facts, "launch_split": SPLIT}
    machine.launch(k=256)
    machine.launch(k=64 * 1000, a_pitch=64 * 1000)
    whole, divided = machine.gpu.launches()
    assert whole.startswith("product grid 3 1 1 ") and "cluster" not in whole
    assert divided.startswith("product grid 3 1 8 ") and "on the default stream cluster 1 1 8 policy 1 (" in divided
    row, = lilac.triton.report().rows
    assert row.mapped_launches == 2 and row.divided_launches == 1
    assert "2 launches (1 with divided sums) with 2 tensor maps" in str(lilac.triton.report())


@pytest.mark.parametrize("split", [None, SPLIT])
def test_one_block(machine, split):
    """Launches whose blocks have a multiprocessor each have a kernel of their own."""
    machine.compiler.change = lambda facts: {**facts, "launch_one_block": True, "launch_split": split}
    machine.compiler.change_one_block = lambda facts: {**facts, "shared": 99 * 1024}
    machine.launch(k=256)
    machine.launch(k=256, m=128 * 133, grid=(133,))
    machine.launch(k=64 * 1000, a_pitch=64 * 1000)
    few, many, long = machine.gpu.launches()
    made, row = mapped_of(machine.kernel), lilac.triton.report().rows[0]
    assert made["one_block"]["shared"] == 99 * 1024 > made["shared"] and made["one_block"]["registers"] > 0
    assert few.startswith("product grid 3 1 1 ") and f" shared {99 * 1024} " in few
    assert many.startswith("product grid 133 1 1 ") and f" shared {made['shared']} " in many
    assert long.startswith(f"product grid 3 1 {8 if split else 1} ") and f" shared {99 * 1024} " in long
    assert [one["one_block"] for one in machine.compiler.asked] == [False, True]
    assert row.mapped_launches == 3 and row.one_block_launches == 2 and row.one_block["shared"] == 99 * 1024
    kinds = "1 with divided sums, 2 with" if split else "2 with"
    assert f"3 launches ({kinds} one block for each multiprocessor) with 2 tensor maps" in str(lilac.triton.report())
    assert f"; that for one block of a multiprocessor has {row.one_block['num_warps']} warps, " in str(lilac.triton.report())


def test_rings_for_one_block():
    """As the compiler makes them, without the fixture: the kernel has longer rings and says of the other one that it has."""
    with lilac.triton.enabled():
        kernel = warm_up(num_stages=4)
    made = mapped_of(kernel)
    assert made["one_block"]["shared"] > 1.5 * made["shared"] and made["one_block"]["cubin"] != made["cubin"]
    usual, alone = [lilac.compile(kernel.asm["ttir"], target="sm_90a", num_warps=4, num_stages=4, launch_maps=True,
                                  one_block=one_block).metadata for one_block in (False, True)]
    assert usual["launch_one_block"] is True and "launch_one_block" not in alone
    assert (usual["shared"], alone["shared"]) == (made["shared"], made["one_block"]["shared"])
    with lilac.triton.enabled():
        assert "one_block" not in mapped_of(warm_up(num_warps=8, BN=256))  # its rings have all memory


@pytest.mark.parametrize("change, words", [
    (refused, "not today [no]"),
    (broken, "ZeroDivisionError: one by zero"),
    (lambda facts: {**facts, "launch_maps": facts["launch_maps"][:1]}, "launch_maps differs"),
])
def test_kernel_for_one_block_fails(machine, change, words):
    """All launches are of the kernel with maps."""
    machine.compiler.change = lambda facts: {**facts, "launch_one_block": True}
    machine.compiler.change_one_block = change
    machine.launch()
    assert mapped_of(machine.kernel)["one_block_refused"] == words
    row, = lilac.triton.report().rows
    assert row.mapped_launches == 1 and row.one_block_launches == 0 and row.one_block == {}
    assert row.one_block_refused == words
    assert f"; none for one block of a multiprocessor: {words}" in str(lilac.triton.report())


def test_divided_sums_switched_off(compiler, monkeypatch):
    with lilac.triton.enabled():
        warm_up()
        assert "LILAC_TRITON_SPLIT_SUMS" not in os.environ
    with lilac.triton.enabled(split_sums=False):
        warm_up()
        assert os.environ["LILAC_TRITON_SPLIT_SUMS"] == "0"
        with lilac.triton.enabled():
            warm_up()
            assert "LILAC_TRITON_SPLIT_SUMS" not in os.environ
    assert "LILAC_TRITON_SPLIT_SUMS" not in os.environ
    monkeypatch.setenv("LILAC_TRITON_SPLIT_SUMS", "0")
    with lilac.triton.enabled():
        warm_up(num_stages=4)
    with lilac.triton.enabled(split_sums=True):
        assert os.environ["LILAC_TRITON_SPLIT_SUMS"] == "0"
    assert [words["split_sums"] for words in compiler.asked] == [True, False, False]


REASONS = ("condition", "limit", "argument", "few iterations")


def test_maps_are_kept(machine):
    for pitch in (256, 272, 256, 272):
        machine.launch(a_pitch=pitch)
    assert len(machine.gpu.launches()) == 4 and machine.gpu.count("cuTensorMapEncodeTiled") == 3
    for m in [16 * i for i in range(1, 9)] * 2:
        machine.launch(m=m)
    assert machine.gpu.count("cuTensorMapEncodeTiled") == 3 + 8
    machine.launch()  # the last eight are kept
    assert machine.gpu.count("cuTensorMapEncodeTiled") == 3 + 8 + 1 and machine.plain() == []


@pytest.mark.parametrize("reason, change", [
    ("condition", {"m": -1}),
    ("condition", {"m": (1 << 30) + 1}),
    ("condition", {"grid": (3, 65536)}),
    ("limit", {"m": 0}),
    ("limit", {"offset": 1}),
    ("limit", {"a_pitch": 252}),
    ("limit", {"b_pitch": 72}),  # 144 bytes: a map is possible, but not faster
    ("argument", {"a": Pointer("fp16", 4096)}),  # of the host: Triton's launcher refuses it
])
def test_plain_kernel_where_maps_cannot_be(machine, reason, change):
    machine.launch(**change)
    assert machine.gpu.launches() == [] and len(machine.plain()) == 1
    assert machine.plain()[0][4] == machine.kernel.function
    row, = [row for row in lilac.triton.report().rows if row.mapped_launches or any(row.plain_launches.values())]
    assert row.plain_launches == {**dict.fromkeys(REASONS, 0), reason: 1}
    assert re.search(f"launches with 2 tensor maps of the launcher; without: 1 because of an? {reason}",
                     str(lilac.triton.report()))
    lilac.triton.reset_report()
    assert mapped.counts(machine.kernel.hash)[0] == [0] * 7


def test_plain_kernel_for_few_iterations(machine):
    """Each program has a multiprocessor for itself, and the loop has less than six iterations."""
    machine.compiler.change = lambda facts: {**facts, "launch_least": {
        "iterations": [[1, 5], [63]], "divisor": 64, "least": 6}}
    machine.launch(k=320)
    machine.launch(k=336, a_pitch=336)
    machine.launch(k=320, grid=(133,))
    assert len(machine.plain()) == 1 and len(machine.gpu.launches()) == 2
    row, = lilac.triton.report().rows
    assert row.plain_launches == {**dict.fromkeys(REASONS, 0), "few iterations": 1} and row.mapped_launches == 2
    assert "without: 1 because of few iterations" in str(lilac.triton.report())


def test_driver_refuses_a_map(machine):
    machine.gpu.rule("cuTensorMapEncodeTiled=1")
    machine.launch()
    assert machine.gpu.launches() == [] and len(machine.plain()) == 1


def test_pointers(machine):
    """As Triton's launcher has them: objects with data_ptr, integers, None; host memory goes to that launcher."""
    machine.launch()
    function, packed, run = machine.kernel.function, machine.kernel.packed_metadata, machine.kernel.run
    a, b, c = machine.addresses
    run(3, 1, 1, 0, function, packed, None, None, None, a, b, None, 384, 64, 256, 256, 64, 128, 64, 64)
    assert f"({word(a, 16)}, {word(b, 16)}, {word(0, 16)}, " in machine.gpu.launches()[1]
    for bad in (Pointer("fp16", 4096), object(), "a", 1.5, -1):
        run(3, 1, 1, 0, function, packed, None, None, None, bad, b, c, 384, 64, 256, 256, 64, 128, 64, 64)
        assert machine.plain().pop()[9] is bad
    for grid in ((0, 1, 1), (3, 1, "1")):
        run(*grid, 0, function, packed, None, None, None, a, b, c, 384, 64, 256, 256, 64, 128, 64, 64)
        assert machine.plain().pop()[:3] == grid
    for arguments in ((a, b, c), (a, b, c, 384, 64, 256, 256, 64, 128, 64, 64, 1)):
        run(3, 1, 1, 0, function, packed, None, None, None, *arguments)
        assert machine.plain().pop()[9:] == arguments
    assert len(machine.gpu.launches()) == 2


def test_error_of_the_driver(machine):
    machine.launch()
    machine.gpu.rule("cuLaunchKernelEx=719")
    with pytest.raises(RuntimeError, match=r"Triton Error \[CUDA\]: ") as caught:
        machine.launch()
    assert "'product'" in " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_thread_without_a_context(machine):
    """Triton's launcher makes one."""
    machine.launch()
    machine.gpu.leave()
    machine.launch()
    assert len(machine.gpu.launches()) == 1 and len(machine.plain()) == 1


def test_hooks(machine, monkeypatch):
    called = []
    machine.launch()
    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook",
                        lambda data: called.append(("enter", data.get()["name"], len(machine.gpu.launches()))))
    monkeypatch.setattr(triton.knobs.runtime, "launch_exit_hook",
                        lambda data: called.append(("exit", data.get()["name"], len(machine.gpu.launches()))))
    machine.launch()
    assert called == [("enter", "product", 1), ("exit", "product", 2)]

    def fails(data):
        raise KeyError("hook")

    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", fails)
    with pytest.raises(KeyError, match="hook"):
        machine.launch()
    assert len(machine.gpu.launches()) == 2


def change_resources(machine):
    """The kernel with maps differs from the plain one in everything."""
    machine.compiler.change = lambda facts: {**facts, "num_warps": 12, "shared": 99 * 1024}
    machine.compiler.ptx = lambda ptx: re.sub(r"\.reqntid [^\n]*", r"\g<0>\n.maxnreg 96",
                                              re.sub(r"\.minnctapersm [^\n]*\n", "", ptx))


def test_resources_of_both_kernels(machine, monkeypatch):
    """Triton's kernel, and what hooks see, describe the plain kernel; the report has the other one, too."""
    change_resources(machine)
    seen = []
    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", lambda data: seen.append(data.get()))
    kernel = machine.launch()
    plain, with_maps = machine.driver.utils.functions
    launched, = machine.gpu.launches()
    assert launched.startswith(f"product grid 3 1 1 block {12 * 32} 1 1 shared {99 * 1024} ")
    assert (kernel.function, kernel.n_regs, kernel.n_spills, kernel.n_max_threads) == (plain, 32, 0, 1024)
    assert kernel.metadata.num_warps == 4 and kernel.metadata.shared < 99 * 1024
    assert [(one["name"], one["function"]) for one in seen] == [("product", plain)] and plain != with_maps
    made, row = mapped_of(kernel), lilac.triton.report().rows[0]
    assert row.mapped == {"registers": made["registers"], "spills": made["spills"], "shared": 99 * 1024,
                          "num_warps": 12}
    assert (row.num_warps, row.shared) == (4, kernel.metadata.shared) and row.registers != made["registers"] > 0
    assert str(lilac.triton.report()).endswith(
        f"product: 1 launch with 2 tensor maps of the launcher; the kernel with maps has 12 warps, {made['registers']} "
        f"registers, {made['spills']} spills, {99 * 1024} bytes of shared memory")


def test_no_maps_no_second_resources(compiler):
    compiler.maps = []
    with lilac.triton.enabled():
        warm_up()
    row, = lilac.triton.report().rows
    assert row.mapped == {} and "the kernel with maps" not in str(lilac.triton.report())


def recorded(machine, recorder, **change):
    """What lilac.bench records of a launch."""
    recorder.forget()
    machine.launch(**change)
    one, = recorder.kernels_used()
    return one


@pytest.mark.skipif(not hasattr(triton.knobs.runtime, "kernel_load_start_hook"), reason="lilac.bench needs its hooks")
def test_benchmarks_show_the_kernel_that_was_launched(machine):
    """`launch_maps` and the resources in lilac.bench's rows: of the kernel with maps where it was launched."""
    change_resources(machine)
    recorder = Recorder(attributes=lambda function: {"registers": 32, "spills": 1})
    with recorder.installed():
        recorder.functions.add(product)
        without = recorded(machine, recorder, m=-1)  # a condition of the launcher's does not hold
        plain = {"registers": 32, "spills": 1, "shared": machine.kernel.metadata.shared, "num_warps": 4}
        assert without == {"name": "product", "compiler": "lilac", **plain}
        machine.driver.utils.loaded.clear()
        made, with_maps = mapped_of(machine.kernel), recorded(machine, recorder)
        assert with_maps == {"name": "product", "compiler": "lilac", "launch_maps": True, "plain": plain,
                             "registers": made["registers"], "spills": made["spills"], "shared": 99 * 1024,
                             "num_warps": 12}
        lilac.triton.disable()
        machine.driver.utils.loaded.clear()
        by_triton = recorded(machine, recorder)
        assert by_triton["compiler"] == "triton" and not {"launch_maps", "plain"} & set(by_triton)


def test_cooperative_grid(machine):
    machine.launch(launch_cooperative_grid=True)
    assert " policy 1 (" in machine.gpu.launches()[0]  # the fake driver's words for an attribute of one number


def test_device_has_too_little(machine):
    """The kernel with maps needs more than the device has, which the plain one does not."""
    machine.compiler.change = lambda facts: {**facts, "shared": 232449}
    machine.launch()
    assert isinstance(machine.kernel.run, PlainLauncher)
    assert "it needs 232449 bytes of shared memory" in lilac.triton.report().rows[0].maps_refused


def test_other_attributes_of_the_launcher(machine):
    machine.launch()
    assert machine.kernel.run.launches == [] and isinstance(machine.kernel.run.plain, PlainLauncher)
    with pytest.raises(AttributeError):
        machine.kernel.run.no_such_thing


def test_switching_off_restores_the_loader(machine):
    from triton.compiler.compiler import CompiledKernel

    with lilac.triton.enabled():
        replaced = CompiledKernel._init_handles
    lilac.triton.disable()
    assert CompiledKernel._init_handles is not replaced
    assert CompiledKernel._init_handles is replaced.__wrapped__


@pytest.mark.parametrize("module, name", mapped._STATIC_LAUNCHERS.items())
def test_static_launcher_declines(compiler, monkeypatch, module, name):
    """Inductor's, which would launch the plain kernel, leaves kernels with maps to Triton's launcher."""
    class Launcher:
        def __init__(self, kernel):
            self.kernel = kernel

    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: Launcher}))
    with lilac.triton.enabled():
        for _ in range(2):  # compiled, and from the cache
            with pytest.raises(NotImplementedError, match="makes tensor maps"):
                Launcher(warm_up())
            product.device_caches.clear()
    with lilac.triton.enabled(launch_maps=False):
        plain = warm_up()
        assert Launcher(plain).kernel is plain


# ---- kinds of arguments -------------------------------------------------------------------------

KINDS = [
    ("u1", "i1", True, 1), ("i8", "i8", -1, 0xff), ("i16", "i16", -2, 0xfffe), ("i32", "i32", -3, 0xfffffffd),
    ("i64", "i64", -(1 << 63), 1 << 63), ("u8", "i8", 255, 255), ("u16", "i16", 65535, 65535),
    ("u32", "i32", (1 << 32) - 1, (1 << 32) - 1), ("u64", "i64", (1 << 64) - 1, (1 << 64) - 1),
    ("fp16", "f16", 1.5, 0x3e00), ("bf16", "bf16", 1.00390625, 0x3f80), ("fp32", "f32", 0.1, 0x3dcccccd),
    ("fp64", "f64", 0.1, 0x3fb999999999999a),
]
OUTSIDE = {"u1": 2, "i8": 128, "i16": -32769, "i32": 1 << 31, "i64": 1 << 63, "u8": -1, "u16": 65536, "u32": 1 << 32,
           "u64": 1 << 64, "fp16": 65536.0, "bf16": "1", "fp32": None, "fp64": ()}


@pytest.mark.parametrize("type, tile, value, bits", KINDS, ids=lambda value: str(value))
def test_scalars(library, type, tile, value, bits):
    gpu = fake_gpu.Gpu(library)
    driver = standin.use()
    driver.utils = SimpleNamespace(
        load_binary=lambda *_: (*gpu.load("k", 3 * [".param .u64 p"] + [".param .align 64 .b8 m[128]"]), 32, 0, 1024),
        get_device_properties=lambda device: {"max_shared_mem": 1 << 17})
    plain, counts = [], mapped.Counts()
    facts = {"name": "k", "cubin": mapped.packed(b""), "num_warps": 4, "shared": 0,
             "parameters": ["!tt.ptr<f16>", tile, "i32"], "launch_conditions": {"grid": [1, 1, 1], "parameters": [2]},
             "launch_maps": [{**MAPS[0], "parameter": 3, "sizes": [[[1, 2]], [[64]]], "strides": [[[64]]]}]}
    signature = {"a": "*fp16", "C": "constexpr", "t": (type, "constexpr", ("i32",))}
    launch = mapped.launcher_of(lambda *arguments: plain.append(arguments), signature, facts, False, counts)
    for given in (value, OUTSIDE[type]):
        launch(1, 1, 1, 0, 0, None, None, None, None, gpu.memory(64), object(), (given, None, (7,)))
    assert len(plain) == 1 and plain[0][-1][0] is OUTSIDE[type] and list(counts.values) == [1, 0, 0, 1, 0, 0, 0]
    shown = int(gpu.launches()[0].split("(")[1].split(", ")[1], 16)
    assert shown & (1 << {"1": 8, "8": 8, "6": 16, "2": 32, "4": 64}[tile[-1]]) - 1 == bits


@pytest.mark.parametrize("signature", [{"a": "*fp16"}, {"a": "*fp16", "b": "i32", "c": "i32"}, {"a": "i32", "b": "i32"},
                                       {"a": "*fp16", "b": "i64"}, {"a": "*fp16", "b": "tensordesc<fp16[64, 64]>"}])
def test_other_parameters(signature):
    with pytest.raises(lilac.Error):
        mapped.kinds_of(signature, ["!tt.ptr<f16>", "i32"])
    assert mapped.kinds_of({"a": "*fp16", "b": "i32"}, ["!tt.ptr<f16>", "i32"]) == "pi"
