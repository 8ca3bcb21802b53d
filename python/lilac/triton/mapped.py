"""Kernels with tensor maps that the launcher makes (docs/triton.md, "Tensor maps of the launcher").

The official artifacts of a kernel (cubin, ptx, ttgir, metadata) are those of the plain kernel, because other
launchers know its parameters only. The metadata also have `lilac["mapped"]`: the cubin of the same kernel with
further parameters, and how the launcher makes them from the arguments; and in lilac["mapped"]["one_block"], if it
differs, that of the kernel for launches whose blocks have a multiprocessor each. Where Triton loads a kernel, this
module loads these cubins as well and replaces the launcher by one of C that makes the maps, and that calls
Triton's launcher for the plain kernel where it cannot. Inductor's static launcher, which would launch the plain
kernel, is told to leave such kernels to Triton's.
"""

from __future__ import annotations

import base64
import ctypes
import functools
import sys
import zlib
from collections.abc import Iterator
from typing import Any, Callable, Optional

from .. import _core
from ..errors import Error
from ..tensor_map import tensor_element

# Characters of MappedLauncher (python/src/launcher.c), by Triton's names of types; and the compiler's names.
_KINDS = {"i1": "?", "u1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
          "u64": "Q", "fp16": "e", "bf16": "y", "fp32": "f", "f32": "f", "fp64": "d"}
_TYPES = {"?": "i1", "b": "i8", "h": "i16", "i": "i32", "q": "i64", "B": "i8", "H": "i16", "I": "i32", "Q": "i64",
          "e": "f16", "y": "bf16", "f": "f32", "d": "f64"}
_WARP = 32


class Counts:
    """How often the launcher of one kernel on one device launched it."""

    __slots__ = ("values", "why")

    def __init__(self) -> None:
        self.values = (ctypes.c_uint64 * 7)()
        """With maps; without, because of a condition, a limit of tensor maps, an argument, few iterations; with maps
        and several blocks for each program; with maps, of the kernel for one block of a multiprocessor."""
        self.why: Optional[str] = None
        """Why the kernel with maps is not used at all."""


_counts: dict[str, list[Counts]] = {}  # by the hash of the kernel


def counts(hash: str) -> tuple[Optional[list[int]], Optional[str]]:
    """The sums over all launchers of a kernel in this process, and why one is not used; None: there is none."""
    known = _counts.get(hash)
    if not known:
        return None, None
    return [sum(column) for column in zip(*(one.values for one in known))], \
        next((one.why for one in known if one.why), None)


def reset() -> None:
    """Sets the counters to zero."""
    for known in _counts.values():
        for one in known:
            ctypes.memset(one.values, 0, ctypes.sizeof(one.values))


def packed(cubin: bytes) -> str:
    """Machine code as JSON has it."""
    return base64.b64encode(zlib.compress(cubin, 1)).decode("ascii")


def _characters(types: Any) -> Iterator[str]:
    for one in types:
        if isinstance(one, tuple):
            yield "("
            yield from _characters(one)
            yield ")"
        elif one == "constexpr":
            yield "x"
        elif one[:1] == "*":
            yield "p"
        elif one in _KINDS:
            yield _KINDS[one]
        else:
            raise Error(f"the launcher does not pass arguments of type {one}")


def kinds_of(signature: dict[Any, Any], parameters: list[str]) -> str:
    """The kinds of a kernel's arguments. Raises Error if they are not those of the kernel's parameters."""
    kinds = "".join(_characters(signature.values()))
    passed = [kind for kind in kinds if kind not in "x()"]
    if len(passed) != len(parameters) or any(
            not type.startswith("!tt.ptr") if kind == "p" else type != _TYPES[kind]
            for kind, type in zip(passed, parameters)):
        raise Error(f"the arguments {kinds} are not those of the kernel's parameters, {', '.join(parameters)}")
    return kinds


def _load(mapped: dict[str, Any]) -> tuple[int, int, int]:
    """A kernel with maps on the current device: its function, warps and bytes of shared memory."""
    from triton.compiler.compiler import max_shared_mem
    from triton.runtime import driver

    device = driver.active.get_current_device()
    if mapped["shared"] > max_shared_mem(device):
        raise Error(f"it needs {mapped['shared']} bytes of shared memory, and the device has {max_shared_mem(device)}")
    loaded = driver.active.utils.load_binary(mapped["name"], zlib.decompress(base64.b64decode(mapped["cubin"])),
                                             mapped["shared"], device)
    if len(loaded) > 4 and mapped["num_warps"] * _WARP > loaded[4]:
        raise Error(f"it has {mapped['num_warps'] * _WARP} threads, and its registers allow {loaded[4]}")
    return loaded[1], mapped["num_warps"], mapped["shared"]


def launcher_of(plain: Any, signature: dict[Any, Any], mapped: dict[str, Any], cooperative: bool,
                counts: Counts) -> Any:
    """The launcher that makes the maps. `plain`: Triton's launcher of the plain kernel."""
    maps, limits = mapped["launch_maps"], mapped["launch_conditions"]
    recipes = [(one["parameter"], one["base"], one["offset"], one["sizes"], one["strides"], one["pitch"],
                one.get("multiples", [])) for one in maps]
    boxes = [(tensor_element(one["elem_type"]), one["swizzle"], tuple(one["block_size"][::-1]), one["l2_promotion"])
             for one in maps]
    split, least = mapped.get("launch_split"), mapped.get("launch_least")
    divided = split and (split["iterations"], split["divisor"], split["clocks"], split["loads"], split["bytes"])
    faster = least and (least["iterations"], least["divisor"], least["least"])
    one_block = mapped.get("one_block")
    return _core.MappedLauncher(plain, _load(mapped), one_block and _load(one_block), kinds_of(signature, mapped["parameters"]),
                                (recipes, limits["grid"], limits["parameters"], divided, faster), boxes, cooperative,
                                ctypes.addressof(counts.values))


def _mapped_of(metadata: Any) -> Any:
    return (getattr(metadata, "lilac", None) or {}).get("mapped")


def _use_maps(kernel: Any) -> None:
    """Replaces the launcher of a kernel that Triton has just loaded, if it has a second one with maps."""
    metadata = kernel.metadata
    mapped = _mapped_of(metadata)
    if mapped is None:
        return
    name = "_run" if "_run" in vars(kernel) else "run"  # Triton 3.4
    made = Counts()
    _counts.setdefault(metadata.hash, []).append(made)
    try:
        launcher = launcher_of(vars(kernel)[name], kernel.src.signature, mapped,
                               bool(getattr(metadata, "launch_cooperative_grid", False)), made)
    except Exception as problem:  # the plain kernel is complete; the report says why it is the only one
        made.why = f"{type(problem).__name__}: {problem}"
        return
    setattr(kernel, name, launcher)


_STATIC_LAUNCHERS = {"torch._inductor.runtime.static_triton_launcher": "StaticallyLaunchedTritonKernel",
                     "torch._inductor.runtime.static_cuda_launcher": "StaticallyLaunchedCudaKernel"}


def _declining(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, kernel: Any, *rest: Any, **words: Any) -> None:
        if _mapped_of(kernel.metadata) is not None:  # Inductor then uses Triton's launcher
            raise NotImplementedError("the launcher of this kernel makes tensor maps")
        original(self, kernel, *rest, **words)

    setattr(__init__, "_lilac", True)
    return __init__


def created(metadata: Any) -> None:
    """Triton created a kernel, compiled or from its cache. Inductor's static launcher, if it is loaded, declines it if it
    has a second kernel with maps."""
    if _mapped_of(metadata) is None:
        return
    for module, name in _STATIC_LAUNCHERS.items():
        launcher = getattr(sys.modules.get(module), name, None)
        if launcher is not None and not hasattr(launcher.__init__, "_lilac"):
            launcher.__init__ = _declining(launcher.__init__)


def install() -> Any:
    """Returns what undoes it. Kernels that are loaded meanwhile keep their launchers."""
    from triton.compiler.compiler import CompiledKernel

    original = getattr(CompiledKernel, "_init_handles", None)
    if original is None:  # a version of Triton that loads kernels elsewhere: plain kernels only
        return lambda: None

    @functools.wraps(original)
    def _init_handles(self: Any) -> Any:
        if self.module is not None:
            return None
        result = original(self)
        if self.module is not None:
            _use_maps(self)
        return result

    CompiledKernel._init_handles = _init_handles

    def undo() -> None:
        if CompiledKernel._init_handles is _init_handles:
            CompiledKernel._init_handles = original

    return undo
