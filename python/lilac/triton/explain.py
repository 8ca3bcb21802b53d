"""Explanations of kernels that Triton has compiled, with lilac or by itself: from their TTIR and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from ..explanation import Explanation, Grid
from ..explanation import explain as explain_module
from .backend import device_name


def explain(kernel: Any, *, grid: Optional[Grid] = None, arguments: Optional[Mapping[str, Any]] = None,
            trip_counts: Optional[Mapping[int, float]] = None) -> Explanation:
    """Explains a compiled kernel: what a launch, `fn[grid](…)`, or `fn.warmup(…, grid=grid)` returns.

    grid, arguments, trip_counts: the launch, as for `lilac.explain`: integers, and arrays or tensors on which trip counts
        depend, by the names of the kernel's parameters.

    The kernel is compiled again from its TTIR (`kernel.asm["ttir"]`) under its options; of a kernel with tensor maps that
    the launcher makes, that one, unless the arguments permit no maps, or the one for launches whose blocks have a multiprocessor
    each. If it was loaded, its registers are those that the assembler reports. Raises the exceptions of `lilac.explain`, and
    TypeError for what is no compiled kernel."""
    text = getattr(kernel, "asm", {}).get("ttir") if hasattr(kernel, "asm") else None
    metadata = getattr(kernel, "metadata", None)
    if text is None or metadata is None:
        raise TypeError(f"expected a kernel that Triton compiled from TTIR, as a launch or warmup returns it, "
                        f"not {kernel!r}")
    backend = metadata.target
    architecture = getattr(metadata, "arch", None) or backend.arch
    record = getattr(metadata, "lilac", None) or {}
    mapped, asked = record.get("mapped"), record.get("asked", {"num_warps": metadata.num_warps})
    own = getattr(kernel, "n_regs", None) or None  # of the plain kernel
    known = {name: value.cpu().numpy() if hasattr(value, "cpu") else value for name, value in (arguments or {}).items()}

    def explanation(launch_maps: bool, registers: Optional[int], one_block: bool = False) -> Explanation:
        return explain_module(text, grid=grid, arguments=known, trip_counts=trip_counts,
                              target=device_name(int(re.sub(r"\D", "", str(architecture)))),
                              **asked, num_ctas=metadata.num_ctas, num_stages=metadata.num_stages,
                              launch_maps=launch_maps, one_block=one_block, registers=registers,
                              fuse=getattr(metadata, "enable_fp_fusion", True),
                              flush_subnormals=getattr(metadata, "enable_reflect_ftz", True),
                              file=f"{metadata.name}.ttir")

    if mapped is None:
        return explanation(False, own)
    result = explanation(True, mapped["registers"] if own is not None else None)
    if own is None:
        return result
    if result.json["one_block"] and "one_block" in mapped:
        return explanation(True, mapped["one_block"]["registers"], one_block=True)
    return result if result.json["launch_maps"] else explanation(False, own)
