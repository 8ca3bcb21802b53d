"""Calls of lilac by the programs of bench/: through liblilac.so in this process, or through the command.

They need one file and not the package `lilac`, so a machine with a GPU needs no build.
"""

import ctypes
import json
import pathlib
import re
import subprocess
import tempfile
import time


class Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("length", ctypes.c_size_t),
                ("capacity", ctypes.c_size_t)]


class Target(ctypes.Structure):  # the first member of lilac_options
    _fields_ = [("arch", ctypes.c_void_p), ("num_warps", ctypes.c_uint32),
                ("num_ctas", ctypes.c_uint32), ("num_stages", ctypes.c_uint32)]


class Compilation(ctypes.Structure):  # what lilac_compilation begins with
    _fields_ = [("context", ctypes.c_void_p), ("tile", ctypes.c_void_p),
                ("simt", ctypes.c_void_p), ("ptx", Text)]


class Diagnostic(ctypes.Structure):
    _fields_ = [("severity", ctypes.c_int), ("id", ctypes.c_char_p),
                ("source", ctypes.c_uint32), ("offset", ctypes.c_uint32),
                ("width", ctypes.c_uint32), ("location", ctypes.c_uint32),
                ("message", ctypes.c_char_p), ("notes", ctypes.c_void_p),
                ("next", ctypes.c_void_p)]


class LilacError(Exception):
    pass


class Library:
    """lilac through liblilac.so."""

    def __init__(self, path, device):
        lib = self.lib = ctypes.CDLL(str(path))
        pointer, u32, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
        for name, result, arguments in (
                ("lilac_context_create", pointer, []),
                ("lilac_context_destroy", None, [pointer]),
                ("lilac_source_add", u32, [pointer, ctypes.c_char_p, ctypes.c_char_p, size]),
                ("lilac_options_init", None, [pointer]),
                ("lilac_arch_find", pointer, [ctypes.c_char_p]),
                ("lilac_compile", ctypes.c_bool, [pointer, pointer, u32, pointer]),
                ("lilac_compilation_json", None, [pointer, pointer, pointer]),
                ("lilac_compilation_clear", None, [pointer]),
                ("lilac_diagnostics", pointer, [pointer]),
                ("lilac_diagnostic_print", None, [pointer, pointer, pointer, ctypes.c_bool]),
                ("lilac_text_clear", None, [pointer]),
                ("lilac_sim_place", None, [pointer, u32]),
                ("lilac_sim_run", ctypes.c_bool, [pointer, pointer, pointer])):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        self.arch = lib.lilac_arch_find(device.encode())
        if not self.arch:
            raise SystemExit(f"lilac knows no device {device}")

    def compile(self, name, ttir, num_warps, num_stages):
        """PTX text, metadata, seconds."""
        compiled = Compiled(self, name, ttir, num_warps, num_stages)
        compiled.close()
        return compiled.ptx, compiled.metadata, compiled.seconds


class Compiled:
    """A compilation that stays until it is closed. Options and results are larger than what is named
    above: their storage is generous and only the members above are touched."""

    def __init__(self, library, name, ttir, num_warps, num_stages=None):
        lib = self.lib = library.lib
        options, self.result = (ctypes.c_uint64 * 512)(), (ctypes.c_uint64 * 8192)()
        text = ttir.encode()
        start = time.perf_counter()
        self.context = lib.lilac_context_create()
        source = lib.lilac_source_add(self.context, name.encode(), text, len(text))
        lib.lilac_options_init(options)
        target = Target.from_buffer(options)
        target.arch, target.num_warps = library.arch, num_warps
        if num_stages is not None:
            target.num_stages = num_stages
        good = lib.lilac_compile(self.result, self.context, source, options)
        self.seconds = time.perf_counter() - start
        if not good:
            message = self.said()
            self.close()
            raise LilacError(message)
        compiled = Compilation.from_buffer(self.result)
        self.ptx, self.simt = compiled.ptx.bytes.decode(), compiled.simt
        described = Text()
        lib.lilac_compilation_json(ctypes.byref(described), self.result, options)
        self.metadata = json.loads(described.bytes.decode())
        lib.lilac_text_clear(ctypes.byref(described))

    def said(self):
        """The diagnostics."""
        text, diagnostic = Text(), self.lib.lilac_diagnostics(self.context)
        while diagnostic:
            self.lib.lilac_diagnostic_print(ctypes.byref(text), self.context, diagnostic, False)
            diagnostic = Diagnostic.from_address(diagnostic).next
        message = (text.bytes or b"refused with no diagnostic").decode()
        self.lib.lilac_text_clear(ctypes.byref(text))
        return message

    def close(self):
        self.lib.lilac_compilation_clear(self.result)
        self.lib.lilac_context_destroy(self.context)


class Command:
    """lilac through its command."""

    def __init__(self, path, device):
        self.path, self.device = str(pathlib.Path(path).resolve()), device

    def compile(self, name, ttir, num_warps, num_stages):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / name
            source.write_text(ttir)
            outputs = []
            start = time.perf_counter()
            for kind in ("ptx", "json"):
                output = source.with_suffix("." + kind)
                run = subprocess.run(
                    [self.path, "compile", str(source), "-o", str(output), "--emit", kind,
                     "--target", self.device, "--num-warps", str(num_warps), "--num-stages",
                     str(num_stages)], capture_output=True, text=True)
                if run.returncode:
                    raise LilacError(run.stderr or f"exit status {run.returncode}")
                outputs.append(output.read_text())
            seconds = time.perf_counter() - start
        return outputs[0], json.loads(outputs[1]), seconds


def lilac_at(path, device):
    """liblilac.so or the command, by its name."""
    kind = Library if re.search(r"\.so(\.|$)", pathlib.Path(path).name) else Command
    return kind(path, device)
