"""Source text of a kernel → TTIR text, by Triton's front end and its passes on TTIR; no GPU."""

import linecache
import os
import types

import triton  # noqa: F401
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend


class FrontEnd:
    def __init__(self):
        self.target = GPUTarget("cuda", 90, 32)
        self.backend = make_backend(self.target)
        self.options = self.backend.parse_options({"sanitize_overflow": False})

    def compile(self, folder, text, signature):
        """The text goes to kernel.py in the folder, as the front end reads functions from files."""
        path = os.path.join(folder, "kernel.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        module = types.ModuleType("kernel")
        module.__file__ = path
        linecache.checkcache(path)
        exec(compile(text, path, "exec"), module.__dict__)
        source = ASTSource(module.kernel, signature)
        context = ir.context()
        ir.load_dialects(context)
        self.backend.load_dialects(context)
        made = source.make_ir(self.target, self.options, self.backend.get_codegen_implementation(self.options),
                              self.backend.get_module_map(), context)
        return str(self.backend.make_ttir(made, {}, self.options, 90))
