"""The time from a kernel's first call to its first result, by stage.

    call ─ front end ─ TTIR ─ … ─ PTX ─ assembling ─ cubin ─ stub ─ loading ─ launch ─ result
           (Python)      compiler         ptxas               (C)    (driver)

Triton reports the time of each stage to its listeners. The compilers are compared between the stages
`ttir` and `cubin`; everything else is the same for both. The stub is Triton's launcher for one
signature of parameters, C code that Triton generates and compiles with the system's C compiler; it
serves every kernel with that signature, in one process and the next. Its time is therefore
separate, and first calls are timed with stubs on disk.

An empty cache folder and JIT functions with cleared caches make a call a first call again.
"""

import contextlib
import hashlib
import os
import shutil
import statistics
import tempfile
import time

PARTS = ("front_ms", "lower_ms", "library_ms", "assemble_ms", "load_ms")
PATIENCE = 1.0  # seconds for the first calls of one case
RESOURCES = ("registers", "spills", "shared", "num_warps")


class Recorder:
    """Hears of every compilation and loading while it is installed. One a process: Triton's hooks are
    global."""

    def __init__(self, attributes=None, keep=None):
        self.attributes = attributes  # function(handle) → {"registers": …, "spills": …}
        self.keep, self.title = keep, None  # where every stage's file goes, and what it is called
        self.functions = set()        # JIT functions ever compiled
        self.kernels = []             # of the measurement under way
        self.stubs = {}               # hash of a stub's source → seconds to compile it
        self.stubs_asked = set()
        self.stub_seconds = 0.0       # in the measurement under way, to be taken off
        self.load_begin = None

    # ---- Triton's hooks

    def compiled(self, *, src, metadata, metadata_group, times, cache_hit, **more):
        if hasattr(src, "fn"):
            self.functions.add(src.fn)
        stages = {name: us / 1e3 for name, us in times.lowering_stages}
        self.kernels.append({
            "name": metadata.get("name", getattr(src, "name", "?")), "stages": stages,
            "front_ms": times.ir_initialization / 1e3 + stages.get("ttir", 0.0),
            "lower_ms": sum(ms for name, ms in stages.items() if name not in ("ttir", "cubin")),
            "assemble_ms": stages.get("cubin", 0.0), "load_ms": 0.0,
            "library_ms": 1e3 * ((metadata.get("lilac") or {}).get("compile") or 0.0),
            "shared": metadata.get("shared"), "num_warps": metadata.get("num_warps"),
            "compiler": (metadata.get("lilac") or {}).get("compiler", "triton"),
            "mapped": (metadata.get("lilac") or {}).get("mapped"),
            "cached": cache_hit})
        if self.keep and self.title:
            for file in metadata_group.values():
                suffix = os.path.splitext(str(file))[1]
                if suffix in (".ttir", ".ttgir", ".ptx", ".cubin"):
                    shutil.copyfile(file, os.path.join(self.keep, self.title + suffix))
        if self.listener_before:
            self.listener_before(src=src, metadata=metadata, metadata_group=metadata_group, times=times,
                                 cache_hit=cache_hit, **more)

    def loading(self, *_):
        self.load_begin = time.perf_counter()

    def loaded(self, module, function, name, metadata_group, hash):
        seconds = time.perf_counter() - self.load_begin
        kernel = next((k for k in reversed(self.kernels) if k["name"] == name), None)
        if kernel is None:  # compiled before and loaded now
            kernel = {"name": name, "stages": {}, "front_ms": 0.0, "lower_ms": 0.0, "assemble_ms": 0.0,
                      "library_ms": 0.0, "shared": None, "num_warps": None, "cached": True}
            self.kernels.append(kernel)
        kernel["load_ms"], kernel["hash"] = 1e3 * seconds, hash
        if self.attributes:
            kernel.update(self.attributes(function))

    def stub(self, *arguments, **options):
        """In place of Triton's compile_module_from_src: with a cache folder of its own."""
        source = options.get("src", arguments[0] if arguments else "")
        key = hashlib.sha256(source.encode()).hexdigest()
        begin = time.perf_counter()
        with cache_folder(self.stub_folder):
            module = self.build_before(*arguments, **options)
        seconds = time.perf_counter() - begin
        if key not in self.stubs:
            self.stubs[key] = seconds
            self.stub_seconds += seconds
        self.stubs_asked.add(key)
        return module

    @contextlib.contextmanager
    def installed(self):
        from triton import knobs
        from triton.backends.nvidia import driver

        self.listener_before = knobs.compilation.listener
        self.build_before = driver.compile_module_from_src
        knobs.compilation.listener = self.compiled
        knobs.runtime.kernel_load_start_hook.add(self.loading)
        knobs.runtime.kernel_load_end_hook.add(self.loaded)
        driver.compile_module_from_src = self.stub
        try:
            with tempfile.TemporaryDirectory(prefix="lilac-bench-stubs-") as self.stub_folder:
                yield self
        finally:
            driver.compile_module_from_src = self.build_before
            knobs.runtime.kernel_load_end_hook.remove(self.loaded)
            knobs.runtime.kernel_load_start_hook.remove(self.loading)
            knobs.compilation.listener = self.listener_before

    @contextlib.contextmanager
    def titled(self, title):
        """Kernels that are compiled meanwhile are kept under this title."""
        self.title = title
        try:
            yield
        finally:
            self.title = None

    # ---- measuring

    def forget(self):
        """Makes every kernel's next call its first in this process, for the compiler that is on."""
        self.kernels = []
        for function in self.functions:
            function.device_caches.clear()
            function.hash = None  # of its source: computed at the first call

    def first_call(self, call, folder):
        """Calls once, with an empty cache in `folder`; what that took, by stage, in milliseconds."""
        self.forget()
        self.stub_seconds, self.stubs_asked = 0.0, set()
        with cache_folder(folder):
            begin = time.perf_counter()
            call()
            seconds = time.perf_counter() - begin
        return self.account(seconds)

    def account(self, seconds):
        compiled = [k for k in self.kernels if not k["cached"]]
        sums = {key: sum(k[key] for k in compiled)
                for key in PARTS}
        stages = {}
        for kernel in compiled:
            for name, ms in kernel["stages"].items():
                stages[name] = stages.get(name, 0.0) + ms
        return {**sums, "stages": stages, "total_ms": 1e3 * (seconds - self.stub_seconds),
                "stub_ms": 1e3 * sum(self.stubs[key] for key in self.stubs_asked)}

    def kernels_used(self):
        """The kernels since the last `forget`, and what they use."""
        return [used(kernel) for kernel in self.kernels if "compiler" in kernel]


def used(kernel):
    """What rows say of a kernel. With `launch_maps`, the resources are those of the kernel with tensor maps of lilac's
    launcher, and those of the kernel without them are in `plain`."""
    row = {key: kernel[key] for key in ("name", "compiler", *RESOURCES) if key in kernel}
    if has_maps(kernel):
        row.update(launch_maps=True, plain={key: row[key] for key in RESOURCES if key in row},
                   **{key: kernel["mapped"][key] for key in RESOURCES})
    return row


def has_maps(kernel):
    """Was it launched with tensor maps of lilac's launcher?"""
    from lilac.triton.mapped import counts

    launches, _ = counts(kernel.get("hash"))
    return kernel["compiler"] == "lilac" and launches is not None and launches[0] > 0


@contextlib.contextmanager
def cache_folder(folder):
    """Triton's cache in another folder for a while; None: where it is."""
    if folder is None:
        yield
        return
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRITON_CACHE_DIR"]
        else:
            os.environ["TRITON_CACHE_DIR"] = before


def rounds_left(done, seconds, most):
    """Whether to make another round of first calls, after `done` that took `seconds` in all: `most` of
    them, but only one where they take long."""
    return done < most and (done == 0 or seconds * (done + 1) / done < PATIENCE)


def medians(accounts):
    """Each number's median over several accounts of the same first call."""
    if not accounts:
        return None
    middle = dict(accounts[0])
    for key in (*PARTS, "total_ms"):
        middle[key] = statistics.median(a[key] for a in accounts)
    middle["stages"] = {name: statistics.median(a["stages"].get(name, 0.0) for a in accounts)
                        for name in accounts[0]["stages"]}
    middle["stub_ms"] = max(a["stub_ms"] for a in accounts)
    return middle
