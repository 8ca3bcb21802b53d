"""Options and switches of Triton that lilac does not support.

Each is refused by its name, with the diagnostic `unsupported-option`; none is ignored. The other options
belong to the front end, the launcher or ptxas, which remain Triton's, or are implemented by
the compiler or the stages of backend.py (num_warps, num_stages, maxnreg, ptx_version,
enable_fp_fusion, enable_reflect_ftz, disable_line_info, dump_nvptx).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Any, Callable

SKIPPED_STAGES = ("llir",)


_OPTIONS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("instrumentation_mode", lambda o: bool(o.instrumentation_mode), "kernels are not instrumented"),
    ("ir_override", lambda o: str(o.ir_override or "").rpartition(".")[2] in SKIPPED_STAGES,
     "there is no such stage to replace"),
    ("sched4reg", lambda o: bool(o.sched4reg), "that schedule is Triton's"),
    ("clc", lambda o: bool(o.clc), "kernels do not ask the device for more work"),
    ("fpsan_homomorphic_casts", lambda o: bool(o.fpsan_homomorphic_casts), "kernels are not instrumented"),
)

_SWITCHES: tuple[tuple[str, str, Callable[[Any], bool], str], ...] = (
    ("compilation", "enable_experimental_consan", bool, "kernels are not instrumented"),
    ("compilation", "enable_asan", bool, "there is no address sanitizer"),
    ("compilation", "dump_ir_extract_di_local_variables", bool, "local variables are not described"),
    ("compilation", "use_ir_loc", lambda value: value in SKIPPED_STAGES, "there is no such stage"),
    ("compilation", "use_ir_loc", lambda value: value == "ttgir", "locations are those of the source or of ttir"),
)


def unsupported(kernel: str, text: str, options: Any, knobs: Any, backend: type,
                replaced: set[str]) -> Iterator[str]:
    """Why a module cannot be compiled with these options, one sentence for each."""
    for name, is_asked, why in _OPTIONS:
        if hasattr(options, name) and is_asked(options):
            yield f"option {name}={getattr(options, name)!r} is not supported: {why}"
    for group, name, is_set, why in _SWITCHES:
        value = getattr(getattr(knobs, group, None), name, None)
        if value is not None and is_set(value):
            yield f"triton.knobs.{group}.{name}={value!r} is not supported: {why}"
    if "tt.extern_elementwise" in text:
        libraries = dict(options.extern_libs or ())
        if set(libraries) != {"libdevice"} or libraries != dict(type(options)().extern_libs):
            yield "option extern_libs is not supported: device functions are lilac's own, not another library's"
        elif knobs.nvidia.libdevice_path:
            yield "triton.knobs.nvidia.libdevice_path is not supported: device functions are lilac's own"
    if getattr(backend, "instrumentation", None):
        yield "instrumentation of the backend (Proton inside kernels) is not supported"
    if replaced:
        names = ", ".join(sorted(replaced))
        yield f"triton.knobs.runtime.add_stages_inspection_hook replaces stages that are lilac's: {names}"
    if knobs.compilation.override:
        for stage in SKIPPED_STAGES:
            files = glob.glob(os.path.join(glob.escape(knobs.cache.override_dir), "*", f"{kernel}.{stage}"))
            if files:
                yield f"TRITON_KERNEL_OVERRIDE is not supported for a stage that is not there: {files[0]}"
