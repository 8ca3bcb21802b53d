"""Triton's linear layouts of types: reads one type a line from standard input and writes one JSON value a
line to standard output.

    {"bases": {"register": [[0, 1], …], …}}     the linear layout
    {"refused": "why"}

Triton's checks are assertions, so this process aborts at some types; the caller starts it again after
them.

Tensors: the layout goes through Gluon's to_linear_layout. Shared memory: the type is reshaped to its
own shape, and the layout that Triton then gives it is a shared_linear, or a padded_shared by its bases.
(An nvmma_shared would stay what it is; it gets one more dimension of size 1, where it is contiguous.) Tensor memory: of the layout of registers that a load of 32
lanes by 32 bits has, row bits are the lanes and warps and column bits the registers; columns of zero
are not seen.
"""

import json
import os
import re
import sys
import tempfile

import triton.language as tl
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, TensorMemoryScalesLayout

MODULE = """module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", \
"ttg.threads-per-warp" = 32 : i32} {
  tt.func private @k(%%argument: %s) {
    tt.return
  }
}
"""
ELEMENTS = {"i8": tl.int8, "f16": tl.float16, "f32": tl.float32}


class Oracle:

    def __init__(self, folder):
        self.path = os.path.join(folder, "type.ttgir")
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.builder = gluon_ir.GluonOpBuilder(self.context)

    def parse(self, text):
        """The function's argument of this type, and what keeps it alive."""
        with open(self.path, "w") as file:
            file.write(MODULE % text)
        module = ir.parse_mlir_module(self.path, self.context)
        module.context = self.context
        function = module.get_function("k")
        return function.args(0), function, module

    def tensor(self, text, shape):
        value, *alive = self.parse(text)
        attribute = self.builder.get_gluon_layout_from_tensor(value)._to_ir(self.builder)
        made = self.builder.to_linear_layout(attribute, shape)
        return {"register": made.reg_bases, "lane": made.lane_bases, "warp": made.warp_bases, "block": made.block_bases}

    def shared(self, text, shape):
        value, function, module = self.parse(text)
        operations = []
        module.walk(operations.append)
        block = next(one for one in operations if one.get_name() == "tt.return").get_block()
        self.builder.set_insertion_point_to_start(block)
        nvmma, transposed = "#ttg.nvmma" in text, "transposed = true" in text
        before = [1] if nvmma and transposed else []
        behind = [1] if nvmma and not transposed else []
        flat = self.builder.create_memdesc_reshape(value, before + shape + behind)
        made = self.builder.get_gluon_layout_from_memdesc(flat)
        return {name: [basis[len(before):len(before) + len(shape)] for basis in bases]
                for name, bases in (("offset", made.offset_bases), ("block", made.block_bases))}

    @staticmethod
    def tensor_memory(text, shape):
        def number(name, default):
            found = re.search(name + r" = (\d+)", text)
            return int(found.group(1)) if found else default

        split = number("CTASplitM", 1), number("CTASplitN", 1)
        layout = TensorMemoryScalesLayout(split) if "_scales_" in text else TensorMemoryLayout(
            (number("blockM", 0), number("blockN", 0)), number("colStride", 0), split, "twoCTAs = true" in text)
        element = ELEMENTS[re.search(r"x([a-z]\w+), #", text).group(1)]
        made = gluon_ir.compute_tmem_reg_layout(element, shape, layout, 4, "32x32b", [])
        if made is None:
            raise ValueError("no layout of registers")
        return {"row": made.lane_bases + made.warp_bases, "col": [basis for basis in made.reg_bases if any(basis)]}

    def answer(self, text):
        shape = [int(size) for size in re.match(r"(?:tensor|!ttg\.memdesc)<((?:\d+x)*)", text).group(1).split("x")[:-1]]
        try:
            if text.startswith("tensor<"):
                return {"bases": self.tensor(text, shape)}
            if "#ttng." in text:
                return {"bases": self.tensor_memory(text, shape)}
            return {"bases": self.shared(text, shape)}
        except (RuntimeError, ValueError, AttributeError) as problem:
            return {"refused": str(problem).strip().splitlines()[-1]}


def main():
    with tempfile.TemporaryDirectory() as folder:
        oracle = Oracle(folder)
        for line in sys.stdin:
            print(json.dumps(oracle.answer(line.strip())), flush=True)


if __name__ == "__main__":
    main()
