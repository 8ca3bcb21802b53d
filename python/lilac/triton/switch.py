"""Switching lilac on and off in a process.

`_on` changes, and `_off` restores: the class of the CUDA backend, the caches in memory, the environment
(for processes that are started meanwhile), and the state that torch derived from the compiler: the tag
of its caches, the hash of the backend, and its worker processes, which are restarted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import site
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

from .. import _core
from ..errors import CompilationError
from . import caches, launch, mapped, rows
from .backend import backend_class

VARIABLE = "LILAC_TRITON"
KNOWN = ((3, 4), (3, 9))  # the oldest and the newest minor version of Triton that this works with
MAPS_VARIABLE = "LILAC_TRITON_LAUNCH_MAPS"
SPLIT_VARIABLE = "LILAC_TRITON_SPLIT_SUMS"
WARPS_VARIABLE = "LILAC_TRITON_CHOOSE_WARPS"
ORDER_VARIABLE = "LILAC_TRITON_ORDER_PROGRAMS"
TAG_VARIABLE = "TORCH_COMPILE_CACHE_KEY_TAG"


class UnknownTriton(ImportError):
    """lilac does not support this version of Triton."""


@functools.lru_cache(maxsize=None)
def build_key() -> str:
    """Names this build of lilac: its version, and what the library and this package hold."""
    digest = hashlib.sha256()
    folder = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(folder)
    files = [_core.__file__, *(os.path.join(package, name) for name in ("compiler.py", "tensor_map.py"))]
    files += sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py"))
    for path in files:
        with open(path, "rb") as file:
            digest.update(file.read())
    return f"lilac-{_core.version}-{digest.hexdigest()[:24]}"


@dataclass(frozen=True)
class Settings:
    """The facts for which a backend class is created."""

    fallback: bool
    ptxas: Optional[str]
    profile_scratch: bool  # the launcher passes a pointer for it
    refusal: Callable[..., CompilationError]
    launch_maps: bool = True  # kernels may have tensor maps that the launcher makes
    split_sums: bool = True  # and the launcher may divide their sums of products among blocks
    choose_warps: bool = True  # kernels may have other numbers of warps than they ask for
    order_programs: bool = True  # programs with the most work may start first

    @functools.cached_property
    def key(self) -> str:
        """Part of every key of a cache."""
        key = build_key() + ("-or-triton" if self.fallback else "") + ("" if self.launch_maps else "-no-maps") \
            + ("" if self.split_sums else "-whole-sums") + ("" if self.choose_warps else "-asked-warps") \
            + ("" if self.order_programs else "-own-order")
        return f"{key}-{_file_key(self.ptxas)}" if self.ptxas else key


def _file_key(path: str) -> str:
    facts = os.stat(path)
    return f"{os.path.realpath(path)}-{facts.st_size}-{facts.st_mtime_ns}"


def _refusal_class() -> Callable[..., CompilationError]:
    """Makes exceptions of diagnostics. A kernel that needs too much shared memory or too many threads is
    out of resources as well, and one whose PTX ptxas refuses is Triton's error of that: Triton's
    autotuner catches both and continues with the next configuration."""
    from .errors import OutOfSharedMemory, OutOfThreads, PTXRefused, too_many_warps

    def refusal(diagnostics: Any, kernel: Optional[str]) -> CompilationError:
        if any(one.id == "too-much-shared-memory" for one in diagnostics):
            return OutOfSharedMemory(diagnostics, kernel)
        if too_many_warps(diagnostics) is not None:
            return OutOfThreads(diagnostics, kernel)
        if any(one.id == "ptx-refused" for one in diagnostics):
            return PTXRefused(diagnostics, kernel)
        return CompilationError(diagnostics, kernel)

    return refusal


def _version() -> tuple[int, int]:
    import triton

    found = re.match(r"(\d+)\.(\d+)", triton.__version__)
    version = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    if not KNOWN[0] <= version <= KNOWN[1]:
        oldest, newest = (".".join(map(str, one)) for one in KNOWN)
        raise UnknownTriton(f"lilac works with Triton {oldest} to {newest}, and this is Triton {triton.__version__}")
    return version


# ---- the switch --------------------------------------------------------------------------------

_lock = threading.RLock()
_active: Optional[Settings] = None
_undo: list[Callable[[], Any]] = []


_SWITCHES = {MAPS_VARIABLE: "launch_maps", SPLIT_VARIABLE: "split_sums",
             WARPS_VARIABLE: "choose_warps", ORDER_VARIABLE: "order_programs"}  # fields, which "0" switches off
_user: dict[str, Optional[str]] = {}  # those variables that lilac has set, as they were before


def _asked(variable: str) -> bool:
    """What the user's environment says."""
    return (_user[variable] if variable in _user else os.environ.get(variable)) != "0"


def enable(fallback: Optional[str] = None, launch_maps: bool = True, split_sums: bool = True,
           choose_warps: bool = True, order_programs: bool = True) -> None:
    """From now on Triton compiles through lilac, in this process and in those that it starts.

    What lilac refuses raises `lilac.CompilationError`; with `fallback="triton"` such kernels are
    compiled by Triton, with a FallbackWarning each. With `launch_maps=False`, or
    LILAC_TRITON_LAUNCH_MAPS=0 in the environment, no kernel has tensor maps that the launcher makes. The
    launcher of such a kernel may start several blocks for each program, which divide the iterations of a sum of
    products; its order depends on the grid then. With `split_sums=False`, or LILAC_TRITON_SPLIT_SUMS=0, it does
    not. A kernel with matrix products has four or eight warps where that is faster than what it asks for; with
    `choose_warps=False`, or LILAC_TRITON_CHOOSE_WARPS=0, it has as many as it asks for. Where the programs of a
    kernel have more and more work, as in causal attention, those with the most start first; with
    `order_programs=False`, or LILAC_TRITON_ORDER_PROGRAMS=0, they start in the order of their numbers."""
    if fallback not in (None, "triton"):
        raise ValueError(f'fallback is None or "triton", not {fallback!r}')
    with _lock:
        settings = Settings(fallback == "triton", os.environ.get("LILAC_PTXAS") or None, _version() >= (3, 5),
                            _refusal_class(), bool(launch_maps) and _asked(MAPS_VARIABLE),
                            bool(split_sums) and _asked(SPLIT_VARIABLE),
                            bool(choose_warps) and _asked(WARPS_VARIABLE),
                            bool(order_programs) and _asked(ORDER_VARIABLE))
        _switch_to(settings)


def disable() -> None:
    """From now on Triton compiles as it would without lilac."""
    with _lock:
        _switch_to(None)


def is_enabled() -> bool:
    return _active is not None


@contextlib.contextmanager
def enabled(fallback: Optional[str] = None, launch_maps: bool = True,
            split_sums: bool = True, choose_warps: bool = True,
            order_programs: bool = True) -> Iterator[None]:
    """`enable` for a block; then as it was before."""
    before = _active
    enable(fallback, launch_maps, split_sums, choose_warps, order_programs)
    try:
        yield
    finally:
        with _lock:
            _switch_to(before)


def _switch_to(settings: Optional[Settings]) -> None:
    global _active
    if settings is not None and _active is not None and settings.key == _active.key:
        return
    if settings is None and _active is None:
        os.environ.pop(VARIABLE, None)
        return
    while _undo:
        _undo.pop()()
    _active = None
    if settings is not None:
        try:
            _on(settings)
        except BaseException:
            while _undo:
                _undo.pop()()
            raise
        _active = settings
    else:
        os.environ.pop(VARIABLE, None)
    _tell_torch(settings.key if settings is not None else None)


def _on(settings: Settings) -> None:
    from triton.backends import backends

    found = backends.get("nvidia")
    if found is None:
        raise UnknownTriton("this Triton has no backend 'nvidia'")
    caches.install()
    backends["nvidia"] = replace(found, compiler=backend_class(found.compiler, settings))
    _undo.append(lambda: backends.__setitem__("nvidia", found))
    caches.use(settings.key)
    _undo.append(lambda: caches.use(None))
    _undo.append(launch.install())
    _undo.append(mapped.install())
    _set(VARIABLE, "fallback" if settings.fallback else "1")
    for name, field in _SWITCHES.items():
        value = getattr(settings, field)
        if (os.environ.get(name) != "0") != value:
            _user[name] = os.environ.get(name)
            _undo.append(functools.partial(_user.pop, name))
            _set(name, "1" if value else "0")
    _set(TAG_VARIABLE, _without(os.environ.get(TAG_VARIABLE, ""), settings.key) + settings.key)
    rows.listen_to_children()


def _without(tag: str, key: str) -> str:
    """A tag without the key that this process, or the one that started it, added."""
    return tag[: -len(key)] if key and tag.endswith(key) else tag


def _set(variable: str, value: str) -> None:
    before = os.environ.get(variable)
    os.environ[variable] = value

    def undo() -> None:
        if before is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = before

    _undo.append(undo)


# ---- torch -------------------------------------------------------------------------------------

_torch_tag = ""  # what this module added to torch's tag


def _tell_torch(key: Optional[str]) -> None:
    """What torch.compile has computed from the compiler so far, it computes again. Modules of torch
    that were not imported yet read the environment."""
    global _torch_tag
    config: Any = sys.modules.get("torch.compiler.config")
    if config is not None:
        tag = _without(config.cache_key_tag or "", _torch_tag)
        config.cache_key_tag = tag if key is None else _without(tag, key) + key
    _torch_tag = key or ""
    helpers = sys.modules.get("torch.utils._triton")
    for name in ("triton_backend", "triton_hash_with_backend"):
        clear = getattr(getattr(helpers, name, None), "cache_clear", None)
        if clear is not None:
            clear()
    _restart_workers(sys.modules.get("torch._inductor.async_compile"))
    if key is not None and not hook_is_installed():
        _no_workers()


def hook_is_installed() -> bool:
    """Do processes that torch.compile starts find lilac in their environment?"""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return any(os.path.exists(os.path.join(folder, "lilac_triton.pth")) for folder in folders)


def _restart_workers(module: Any) -> None:
    """Worker processes know the compiler from the environment that they were started with. Those
    there are leave in the background (it takes them seconds); the next compilation starts others."""
    pools = list(getattr(module, "_pool_set", ()))
    if pools:
        module.AsyncCompile._ready_future = None
        module.after_fork()  # forgets them
        for pool in pools:
            threading.Thread(target=pool.shutdown, daemon=True).start()


def _no_workers() -> None:
    """Without the hook that the package installs, worker processes would compile with Triton."""
    if os.environ.get("TORCHINDUCTOR_COMPILE_THREADS") != "1":
        _set("TORCHINDUCTOR_COMPILE_THREADS", "1")
    config: Any = sys.modules.get("torch._inductor.config")
    if config is not None and config.compile_threads != 1:
        before, config.compile_threads = config.compile_threads, 1
        _undo.append(lambda: setattr(config, "compile_threads", before))
        warnings.warn("lilac's start-up hook is not installed (pip install of the package puts it into "
                      "site-packages), so torch.compile uses no worker processes", RuntimeWarning, stacklevel=5)
