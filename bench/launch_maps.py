#!/usr/bin/env python3
"""The host's time for a launch with tensor maps of the launcher (docs/triton.md), and for the same launch by Triton's
launcher, which has none.

    python3 bench/launch_maps.py [--launches N] [--rounds N] [--json FILE]

The kernel is a product of two matrices: three pointers, five integers, three constants. Neither a GPU nor PyTorch is
needed: a CUDA driver that does nothing takes the place of the real one, so the time is that of the launchers alone. It
needs the package lilac, Triton 3.4 to 3.6 and a C compiler.

    pointers    objects with data_ptr(), as tensors are, or integers
    triton      Triton's launcher
    mapped      the launcher with maps, which are those of the last launches
    new maps    the same with other addresses in every launch
    plain       the launcher with maps where a size is 0, so that it calls Triton's

The ways take turns. Times are the least of the rounds, in nanoseconds, without those of an empty Python function with
the same arguments.
"""

import argparse
import ctypes
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sysconfig
import tempfile
import timeit
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent
SIGNATURE = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32", "a_pitch": "i32",
             "b_pitch": "i32", "BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}
MAP = {"elem_size": 2, "elem_type": 6, "swizzle": 3, "offset": [], "pitch": 0, "l2_promotion": 128}
MAPPED = {"name": "product", "num_warps": 4, "shared": 0, "parameters": 3 * ["!tt.ptr<f16>"] + 5 * ["i32"],
          "launch_conditions": {"grid": [1 << 20, 65535, 65535], "parameters": [3, 4, 5]}, "launch_maps": [
              {**MAP, "parameter": 8, "base": 0, "sizes": [[[1, 3]], [[1, 5]]], "strides": [[[1, 6]]],
               "block_size": [128, 64]},
              {**MAP, "parameter": 9, "base": 1, "sizes": [[[1, 5]], [[1, 4]]], "strides": [[[1, 7]]],
               "block_size": [64, 64]}]}
DRIVER = """
#include <stdint.h>
#include <string.h>
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuCtxGetCurrent(void **context) { *context = &context; return 0; }
int cuPointerGetAttribute(void *value, int attribute, uint64_t at) { memcpy(value, &at, sizeof at); return 0; }
int cuTensorMapEncodeTiled(void *map) { memset(map, 0, 128); return 0; }
"""


def compiler():
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


def null_driver(folder):
    """A libcuda.so.1 whose functions return 0."""
    names = set(re.findall(r'"(cu\w+)"', (ROOT / "src" / "runtime" / "cuda_api.def").read_text()))
    names |= {"cuCtxSetCurrent", "cuDevicePrimaryCtxRetain"}
    others = names - set(re.findall(r"cu[A-Z]\w+", DRIVER))
    source, library = folder / "driver.c", folder / "libcuda.so.1"
    source.write_text(DRIVER + "".join(f"int {name}(void) {{ return 0; }}\n" for name in sorted(others)))
    subprocess.run([compiler(), "-O2", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source],
                   check=True)
    return library


def triton_launcher(folder, library):
    """Triton's launcher for the signature, linked with that driver."""
    from triton.backends.nvidia import driver

    source, module = folder / "launcher.c", folder / "__triton_launcher.so"
    driver.PyCUtensorMap = object
    source.write_text(driver.make_launcher({}, SIGNATURE, None))
    include = [os.path.join(driver.dirname, "include"), sysconfig.get_paths()["include"]]
    subprocess.run([compiler(), "-O3", "-w", "-shared", "-fPIC", *(f"-I{one}" for one in include), "-o", module, source,
                    library], check=True)
    spec = importlib.util.spec_from_file_location("__triton_launcher", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    launcher = driver.CudaLauncher.__new__(driver.CudaLauncher)
    vars(launcher).update(num_ctas=1, launch=loaded.launch, launch_cooperative_grid=False, launch_pdl=False,
                          global_scratch_size=0, global_scratch_align=1, profile_scratch_size=0, profile_scratch_align=1)
    return launcher


def mapped_launcher(plain):
    import triton.runtime.driver as runtime
    from lilac.triton import mapped

    class Driver:
        utils = SimpleNamespace(load_binary=lambda *_: (0, 64, 32, 0, 1024),
                                get_device_properties=lambda device: {"max_shared_mem": 1 << 17})

        @staticmethod
        def get_current_device():
            return 0

    getattr(runtime, "driver", runtime).set_active(Driver())
    counts = mapped.Counts()
    return mapped.launcher_of(plain, SIGNATURE, {**MAPPED, "cubin": mapped.packed(b"")}, False, counts), counts


class Tensor:
    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


def arguments(pointers, m=4096):
    return (32, 1, 1, 0, 64, (4, 1, 0), None, None, None, *pointers, m, 4096, 4096, 4096, 4096, 128, 64, 64)


def measure(options, plain, mapped):
    def empty(*arguments):
        pass

    for kind, make in (("data_ptr", Tensor), ("integer", int)):
        usual = arguments([make(1 << bit) for bit in (20, 21, 22)])
        none = arguments(usual[9:12], 0)
        many = itertools.cycle([arguments([make((1 << bit) + 128 * i) for bit in (20, 21, 22)]) for i in range(64)])
        ways = {"empty": lambda: empty(*usual), "triton": lambda: plain(*usual), "mapped": lambda: mapped(*usual),
                "new maps": lambda: mapped(*next(many)), "plain": lambda: mapped(*none)}
        times = [{name: timeit.timeit(way, number=options.launches) for name, way in ways.items()}
                 for _ in range(options.rounds)]
        least = {name: 1e9 * min(one[name] for one in times) / options.launches for name in ways}
        yield {"pointers": kind, **{name: least[name] - least["empty"] for name in list(ways)[1:]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = null_driver(Path(folder))
        ctypes.CDLL(str(library))  # which the name libcuda.so.1 means from now on
        os.environ["LILAC_LIBCUDA"] = str(library)
        plain = triton_launcher(Path(folder), library)
        mapped, counts = mapped_launcher(plain)
        rows = list(measure(options, plain, mapped))
    launches = options.launches * options.rounds * len(rows)
    if list(counts.values) != [2 * launches, 0, launches, 0]:
        raise SystemExit(f"the launches were not those that were to be measured: {list(counts.values)}")
    print("  ".join(f"{name:>10}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:>10}" if isinstance(value, str) else f"{value:>10.0f}" for value in row.values()))
    if options.json:
        options.json.write_text(json.dumps({"unit": "ns", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
