"""Triton's CUDA backend with lilac in it.

    Triton   ttir ─▶ ttgir ─▶ llir ─▶ ptx ─▶ cubin
    here     ttir ─▶ ttgir ─────────▶ ptx ─▶ cubin

The stage `ttgir` runs the compiler, which returns its layouts as TTGIR text and the PTX. The stage `ptx`
returns that PTX. If the user replaced the TTGIR (TRITON_KERNEL_OVERRIDE, ir_override), or the source is
TTGIR, it compiles that.

A class derived from Triton's replaces it in `triton.backends.backends`. It changes only the stages between
TTIR and PTX and the key of the cache; options, front end, ptxas and launcher remain Triton's. Triton creates
a backend for each compilation, so the state of a compilation is in the closure of its stages, and threads
share none.

If a kernel is refused and `fallback="triton"`, Triton's stages run on the same module. The fallback also
covers PTX of lilac that ptxas refuses: it is then assembled immediately, and the stage `cubin` returns the
result.

A kernel with products is compiled again with tensor maps that the launcher makes (mapped.py), and assembled,
in a thread beside the ptxas of the plain kernel, which all artifacts are of. What that thread has made is
part of the metadata; an error in it leaves the plain kernel only.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import Any, Optional

from .. import _core
from ..compiler import compile
from ..errors import CompilationError, Diagnostic
from . import assembler, mapped, rows
from .cubin import resources
from .options import unsupported

_FUNCTION = re.compile(r"tt\.func public @(?:\"([^\"]+)\"|([\w$.]+))")
_FUNCTION_END = re.compile(r"^  \} loc\((#loc\d*)\)$", re.MULTILINE)


class FallbackWarning(UserWarning):
    """A kernel that lilac, or ptxas after it, refuses was compiled by Triton."""


def device_name(capability: int) -> Optional[str]:
    """The compiler's row for a capability: the one with the device's own instructions, if any."""
    for name in (f"sm_{capability}a", f"sm_{capability}"):
        if name in _core.devices():
            return name
    return None


def backend_class(base: type, settings: Any) -> type:
    """The class for these settings, derived from the class that Triton has."""

    class LilacBackend(base):  # type: ignore[misc]
        lilac = settings

        def hash(self) -> str:
            # Triton's own hash holds the version of the ptxas that it found first in this process. torch.compile
            # names another one later, at a time that depends on what its caches hold.
            version = assembler.version_of(base.make_cubin, self.target.arch, settings.ptxas, settings.key)
            ahead = "-ahead-of-time" if _is_ahead_of_time() else ""
            return f"{super().hash() if version is None else f'{version}-{self.target.arch}'}-{settings.key}{ahead}"

        def get_module_map(self) -> Any:
            # The last call of Triton before the front end.
            self._lilac_start = perf_counter()
            return super().get_module_map()

        def add_stages(self, stages: dict[str, Any], options: Any, language: Any, *rest: Any) -> None:
            super().add_stages(stages, options, language, *rest)
            Compilation(self, base, settings, options, dict(stages)).put_stages(stages, language)

        def pack_metadata(self, metadata: Any) -> Any:
            rows.loaded(metadata, settings)
            mapped.created(metadata)
            return super().pack_metadata(metadata)

    LilacBackend.__name__ = LilacBackend.__qualname__ = "LilacBackend"
    LilacBackend.make_cubin = assembler.adapted(base.make_cubin, settings.ptxas)  # type: ignore[attr-defined]
    return LilacBackend


def _is_ahead_of_time() -> bool:
    """Whether triton.tools.compile has called this. Its C code launches as many warps as it was told."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if getattr(frame.f_globals.get("__spec__"), "name", None) == "triton.tools.compile":
            return True
        frame = frame.f_back
    return False


class Compilation:
    """One run through the stages."""

    def __init__(self, backend: Any, base: type, settings: Any, options: Any, stages: dict[str, Any]) -> None:
        self.backend, self.base, self.settings, self.options = backend, base, settings, options
        self.stages = stages  # Triton's, after the user's hook changed them
        self.module: Any = None
        self.tile: Optional[str] = None  # the result of the stage ttgir
        self.ptx_of_tile: Any = None  # the PTX of the same run of the compiler
        self.written: Optional[str] = None  # the PTX, where it is lilac's
        self.assembled: Optional[bytes] = None  # the cubin, if ptxas has already run
        self.second: Optional[SecondKernel] = None  # with tensor maps of the launcher
        self.ahead = _is_ahead_of_time()
        self.record: dict[str, Any] = {"compiler": "lilac", "version": _core.version, "seconds": {}}

    def put_stages(self, stages: dict[str, Any], language: Any) -> None:
        stages.clear()
        if language.name == "GLUON":
            for name, stage in self.stages.items():
                if name == "llir":
                    break
                stages[name] = functools.partial(self.timed, name, stage)
        else:
            stages["ttir"] = self.ttir
            stages["ttgir"] = self.ttgir
        stages["ptx"] = self.ptx
        stages["cubin"] = self.cubin

    # ---- the stages ----------------------------------------------------------------------------

    def timed(self, name: str, stage: Any, src: Any, metadata: dict[str, Any]) -> Any:
        """A stage of Triton's before lilac."""
        start = perf_counter()
        seconds = self.record["seconds"]
        if not seconds:
            seconds["front end"] = start - getattr(self.backend, "_lilac_start", start)
        result = stage(src, metadata)
        seconds[name] = perf_counter() - start
        return result

    def ttir(self, src: Any, metadata: dict[str, Any]) -> Any:
        src = self.timed("ttir", self.stages["ttir"], src, metadata)
        self.module = src
        if _knobs().compilation.use_ir_loc:
            return src
        start = perf_counter()
        text = str(src)  # once: for the cache and for the compiler
        self.record["seconds"]["print"] = perf_counter() - start
        return text

    def ttgir(self, src: Any, metadata: dict[str, Any]) -> str:
        self.ptx_of_tile = self.compile_or_fall_back(src, metadata)
        return str(self.tile)

    def ptx(self, src: Any, metadata: dict[str, Any]) -> Any:
        ptx = self.ptx_of_tile if src is self.tile else self.compile_or_fall_back(src, metadata)
        if _knobs().nvidia.dump_nvptx and self.record["compiler"] == "lilac":
            print("// -----// PTX of lilac //----- //")
            print(ptx)
        return ptx

    def compile_or_fall_back(self, src: Any, metadata: dict[str, Any]) -> Any:
        """The PTX of a module, or of its text. `self.tile` becomes its TTGIR."""
        start = perf_counter()
        if isinstance(src, str):
            text = src
        else:
            self.module = src
            text = str(src)
        self.describe(text, metadata)
        seconds = self.record["seconds"]
        try:
            try:
                ptx = self.written = self.compile(text, metadata)
            finally:
                seconds["lilac"] = perf_counter() - start
            if self.settings.fallback:
                self.assembled = self.assemble(ptx, metadata)
        except CompilationError as refusal:
            if not self.settings.fallback:
                self.refused(refusal, metadata)
                raise
            self.record["diagnostics"] = [one.to_json() for one in refusal.diagnostics]
            self.record["compiler"] = "triton"
            self.written = None
            seconds.pop("ptxas", None)
            start = perf_counter()
            ptx = self.by_triton(metadata)
            seconds["triton"] = perf_counter() - start
        return ptx

    def cubin(self, src: str, metadata: dict[str, Any]) -> bytes:
        cubin = self.assembled
        if cubin is None or src != self.written:  # which a file of TRITON_KERNEL_OVERRIDE replaces
            try:
                cubin = self.assemble(src, metadata)
            except CompilationError as refusal:
                self.refused(refusal, metadata)
                raise
        self.record["registers"], self.record["spills"] = _registers(cubin)
        if self.second is not None and src == self.written:
            self.record.update(self.second.result())
        metadata["lilac"] = self.record
        rows.compiled(metadata)
        self.module = None
        return bytes(cubin)

    # ---- what they are made of -----------------------------------------------------------------

    def refused(self, refusal: CompilationError, metadata: dict[str, Any]) -> None:
        """Puts a refusal that is not handed back to Triton into the report."""
        self.record["diagnostics"] = [one.to_json() for one in refusal.diagnostics]
        self.record["compiler"] = "refused"
        metadata["lilac"] = self.record
        rows.refused(metadata)

    def assemble(self, ptx: str, metadata: dict[str, Any]) -> Any:
        """The stage of Triton's that runs ptxas. If ptxas refuses lilac's PTX, that is a refusal of lilac's."""
        from triton.runtime.errors import PTXASError

        start = perf_counter()
        try:
            if ptx != self.written:
                return self.stages["cubin"](ptx, metadata)
            with assembler.held_output():
                return self.stages["cubin"](ptx, metadata)
        except PTXASError as error:
            if ptx != self.written:
                raise
            first, said = assembler.refusal_of(error)
            where = {key: self.record[key] for key in ("file", "line")}
            diagnostic = Diagnostic("ptx-refused", f"ptxas refuses the PTX: {first}", notes=said, **where)
            raise self.settings.refusal([diagnostic], self.record["name"]) from error
        finally:
            self.record["seconds"]["ptxas"] = perf_counter() - start

    def describe(self, text: str, metadata: dict[str, Any]) -> None:
        function = _FUNCTION.search(text)
        end = _FUNCTION_END.search(text, function.end()) if function else None
        place = re.search(rf'^{end.group(1)} = loc\("([^"]*)":(\d+):', text, re.MULTILINE) if end else None
        self.record["name"] = (function.group(1) or function.group(2)) if function else None
        self.record["file"] = place.group(1) if place else None
        self.record["line"] = int(place.group(2)) if place else None
        metadata["name"] = self.record["name"]

    def refuse(self, messages: list[str], id: str = "unsupported-option") -> CompilationError:
        file, line, name = (self.record[key] for key in ("file", "line", "name"))
        return CompilationError([Diagnostic(id, message, file, line) for message in messages], name)

    def compile(self, text: str, metadata: dict[str, Any]) -> str:
        options, knobs = self.options, _knobs()
        replaced = {name for name, stage in self.stages.items() if name not in ("ttir", "cubin")
                    and getattr(stage, "__module__", None) != self.base.__module__}
        messages = list(unsupported(self.record["name"], text, options, knobs, self.base, replaced))
        if messages:
            raise self.refuse(messages)
        capability = int(re.sub(r"\D", "", str(options.arch or self.backend.target.arch)))
        target = device_name(capability)
        if target is None:
            known = ", ".join(name for name in _core.devices() if name.startswith("sm_"))
            raise self.refuse([f"device sm_{capability} is not supported; supported are {known}"], "unknown-device")
        architecture = self.backend.target.arch
        ptxas, newest = assembler.ptxas_of(self.base.make_cubin, architecture, self.settings.ptxas, self.settings.key)
        if options.ptx_version is not None:
            ptxas, newest = f"option ptx_version={options.ptx_version}", options.ptx_version
        words = {"target": target, "num_warps": options.num_warps, "num_ctas": options.num_ctas,
                 "num_stages": options.num_stages, "fuse": options.enable_fp_fusion,
                 "flush_subnormals": getattr(options, "enable_reflect_ftz", True),
                 "line_info": not knobs.compilation.disable_line_info, "newest_ptx": newest,
                 "keep_warps": not self.settings.choose_warps or options.maxnreg is not None or self.ahead,
                 "keep_order": not self.settings.order_programs,
                 "file": f"{self.record['name']}.ttir"}
        try:
            kernel = compile(text, tile=True, **words)
        except CompilationError as error:
            diagnostics = [replace(one, message=f"{one.message} ({ptxas})") if one.id == "ptx-version" else one
                           for one in error.diagnostics]
            raise self.settings.refusal(diagnostics, self.record["name"]) from None
        said = kernel.metadata
        if any("descriptor" in one for one in said["parameters"]) and not _descriptors_are_parameters():
            raise self.refuse(["this version of Triton passes other arguments for descriptors from the host than "
                               "lilac's kernels have"], "unsupported-descriptor")
        if self.ahead and said["num_warps"] != options.num_warps:
            raise self.refuse([f"triton.tools.compile launches {options.num_warps} warps, and this kernel has "
                               f"{said['num_warps']}, with those that copy"])
        self.tile = kernel.tile
        self.record["compile"] = sum(one["seconds"] for one in said["passes"])
        metadata["name"] = said["name"]
        metadata["num_warps"] = said["num_warps"]  # with those of partitions
        self.record["asked"] = {key: words[key] for key in ("num_warps", "keep_warps", "keep_order")}
        metadata["shared"] = max(said["shared"], getattr(options, "min_shared_mem", None) or 0)
        for key in ("tmem_size", "tensordesc_meta", "global_scratch_size", "global_scratch_align"):
            metadata[key] = said[key]
        if self.settings.profile_scratch:
            metadata["profile_scratch_size"] = said["profile_scratch_size"]
            metadata["profile_scratch_align"] = said["profile_scratch_align"]
        if hasattr(options, "cluster_dims"):
            metadata["cluster_dims"] = tuple(said["cluster_dims"])
        if capability == 90 and self.may_have_maps(text, said):  # the device with TMA and wgmma
            self.second = SecondKernel(self, text, words, metadata)
        return self.adapt(kernel.ptx, said["num_warps"])

    def may_have_maps(self, text: str, said: dict[str, Any]) -> bool:
        """Whether a second compilation may find tensor maps that the launcher makes, and the launcher may use them: not
        for clusters and dependent launches, nor where the user replaces a stage's result, nor beside descriptors."""
        options = self.options
        replaced = _knobs().compilation.override or getattr(options, "ir_override", None) \
            or getattr(self.stages["cubin"], "__module__", None) != self.base.__module__
        return bool(self.settings.launch_maps and "tt.dot" in text and options.num_ctas == 1
                    and not getattr(options, "launch_pdl", False) and not replaced
                    and not any("descriptor" in one or "tensordesc" in one["type"] for one in said["parameters"]))

    def adapt(self, ptx: str, warps: int) -> str:
        """The PTX for these options and this launcher."""
        options = self.options
        if options.maxnreg is not None:
            # The user's limit replaces the compiler's number of blocks, and the registers that partitions request: it
            # holds for all warps. Partitions' warps need registers, too.
            limit = min(int(options.maxnreg), 65536 // (32 * warps) // 8 * 8) if warps != options.num_warps else \
                int(options.maxnreg)
            ptx = re.sub(r"^\.minnctapersm \d+\n", "", ptx, count=1, flags=re.MULTILINE)
            ptx = re.sub(r"^\s*setmaxnreg\.[^\n]*\n", "", ptx, flags=re.MULTILINE)
            ptx = _replace_once(ptx, r"^(\.reqntid [^\n]*)$", rf"\1\n.maxnreg {limit}")
        if options.ptx_version is not None:
            version = f"{options.ptx_version // 10}.{options.ptx_version % 10}"
            ptx = _replace_once(ptx, r"^\.version [\d.]+$", f".version {version}")
        if not self.settings.profile_scratch:
            ptx = _replace_once(ptx, r",\n[^\n]* profile_scratch\n", "\n")
        return ptx

    def by_triton(self, metadata: dict[str, Any]) -> Any:
        """The PTX by Triton's own stages, after a refusal."""
        result = self.module
        after = list(self.stages)
        first = after.index("ttgir") + 1 if result.get_int_attr("ttg.num-warps") is not None else after.index("ttir") + 1
        for name in after[first : after.index("ptx") + 1]:
            result = self.stages[name](result, metadata)
            if name == "ttgir":
                self.tile = str(result)
        return result


class SecondKernel:
    """The same kernel with tensor maps that the launcher makes, compiled and assembled in a thread; and, where it differs,
    the one for launches whose blocks have a multiprocessor each, in another thread."""

    def __init__(self, first: Compilation, text: str, words: dict[str, Any], metadata: dict[str, Any]) -> None:
        self.first, self.text, self.words = first, text, words
        self.metadata = dict(metadata)
        self.made: dict[str, Any] = {}
        self.ptx: list[str] = []
        self.thread = threading.Thread(target=self.run, name="lilac: kernel with maps")
        self.thread.start()

    def run(self) -> None:
        start = perf_counter()
        try:
            self.made = self.make()
        except Exception as error:
            self.made = {"maps_refused": _reason_of(error)}
        self.seconds = perf_counter() - start

    def make(self) -> dict[str, Any]:
        kernel = self.compile(one_block=False)
        said = kernel.metadata
        maps = said.get("launch_maps")
        if not maps:
            return {}
        if said["global_scratch_size"] or said["profile_scratch_size"]:
            return {"maps_refused": "kernels that need scratch memory are launched without maps"}
        made = {one["parameter"] for one in maps}
        recipes = {key: said.get(key) for key in ("launch_maps", "launch_conditions", "launch_split", "launch_least")}
        with ThreadPoolExecutor(1, "lilac: kernel for one block") as pool:
            other = pool.submit(self.one_block, recipes) if said.get("launch_one_block") else None
            result = self.assemble(kernel)
        return {"mapped": {**result, **recipes, **(other.result() if other else {}),
                           "parameters": [one["type"] for number, one in enumerate(said["parameters"])
                                          if number not in made]}}

    def compile(self, one_block: bool) -> Any:
        return compile(self.text, launch_maps=True, split_sums=self.first.settings.split_sums, one_block=one_block,
                       **self.words)

    def assemble(self, kernel: Any) -> dict[str, Any]:
        """What a launcher needs of a kernel with maps."""
        said = kernel.metadata
        ptx = self.first.adapt(kernel.ptx, said["num_warps"])
        self.ptx.append(ptx)
        with assembler.held_output():
            cubin = self.first.stages["cubin"](ptx, dict(self.metadata))
        registers, spills = _registers(cubin)
        return {"cubin": mapped.packed(cubin), "name": said["name"], "num_warps": said["num_warps"],
                "shared": max(said["shared"], getattr(self.first.options, "min_shared_mem", None) or 0),
                "registers": registers, "spills": spills}

    def one_block(self, recipes: dict[str, Any]) -> dict[str, Any]:
        try:
            kernel = self.compile(one_block=True)
            differing = [key for key, value in recipes.items() if kernel.metadata.get(key) != value]
            if differing:
                return {"one_block_refused": f"{differing[0]} differs"}
            return {"one_block": self.assemble(kernel)}
        except Exception as error:  # the other kernel is right for all launches
            return {"one_block_refused": _reason_of(error)}

    def result(self) -> dict[str, Any]:
        """What the record of the kernel gets, when the thread has ended."""
        self.thread.join()
        for ptx in self.ptx if _knobs().nvidia.dump_nvptx else ():
            print("// -----// PTX of lilac, with tensor maps of the launcher //----- //")
            print(ptx)
        if self.made:
            self.first.record["seconds"]["maps"] = self.seconds
        return self.made


def _reason_of(error: Exception) -> str:
    from triton.runtime.errors import PTXASError

    if isinstance(error, PTXASError):
        return f"ptxas refuses the PTX: {assembler.refusal_of(error)[0]}"
    if isinstance(error, CompilationError):
        return f"{error.diagnostics[0].message} [{error.diagnostics[0].id}]"
    return f"{type(error).__name__}: {error}"


def _registers(cubin: Any) -> tuple[Any, Optional[int]]:
    """Registers of a thread, and 32-bit words of its local memory."""
    registers, local = resources(cubin)
    return registers, None if local is None else local // 4


def _knobs() -> Any:
    from triton import knobs

    return knobs


def _descriptors_are_parameters() -> bool:
    """Whether Triton's launcher passes a descriptor as the parameters that lilac's kernels have."""
    from types import SimpleNamespace

    from triton.backends.nvidia import driver

    given = SimpleNamespace(base="base", shape=["size"], strides=["stride"], padding="nan", round_f32_to_tf32=False)
    try:
        passed = driver.make_tensordesc_arg(given, None)
    except (AttributeError, TypeError):
        return False
    return bool(passed == ["base", "size", "stride", True, "size", "stride"])


def _replace_once(text: str, pattern: str, replacement: str) -> str:
    result, count = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
    if count != 1:
        raise AssertionError(f"the PTX has no {pattern}")
    return result


def warn_of_fallback(record: dict[str, Any]) -> None:
    """At the kernel's line; once for each kernel compiled or loaded."""
    first = record["diagnostics"][0]
    where = f"{first['file']}:{first['line']}: " if first["file"] else ""
    by_ptxas = first["id"] == "ptx-refused"  # lilac compiled it, and that is where the kernel begins
    reason = first["message"] if by_ptxas else f"lilac refuses it: {where}{first['message']}"
    reason = reason.replace("the PTX", "lilac's PTX", 1) if by_ptxas else reason
    warnings.warn_explicit(f"kernel '{record['name']}' is compiled by Triton; {reason} [{first['id']}]",
                           FallbackWarning, record["file"] or "<kernel>", record["line"] or 1)
