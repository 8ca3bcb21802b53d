#!/usr/bin/env python3
"""The paper's Table 2 (widths of loads and stores of [512, k] tensors): lilac beside Triton 3.6.

    python3 bench/paper/table2.py LILAC [--triton] [--json FILE] [--markdown FILE]

LILAC is the command. The kernels' TTIR, as Triton 3.6 makes it of bench/paper/copy_kernel.py with 4
warps, lies in bench/paper/table2/; --triton (needs Triton 3.6, no GPU) writes it anew, with the
widths in Triton's own PTX (widths.json there). Widths are those of the narrowest ld.global and
st.global of a kernel.

Exit status 1 when a width is less than the paper's last column.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "support"))
import command  # noqa: E402

TEXTS = HERE / "table2"
# k, type: the instruction and bits in legacy Triton, and in Triton with linear layouts.
PAPER = [
    (1, "f8", "v1.b32", 32, "v1.b32", 32), (2, "f8", "v1.b16", 16, "v4.b32", 128),
    (4, "f8", "v1.b32", 32, "v4.b32", 128), (8, "f8", "v2.b32", 64, "v4.b32", 128),
    (16, "f8", "v4.b32", 128, "v4.b32", 128), (1, "f16", "v2.b32", 64, "v2.b32", 64),
    (2, "f16", "v1.b32", 32, "v4.b32", 128), (4, "f16", "v2.b32", 64, "v4.b32", 128),
    (8, "f16", "v4.b32", 128, "v4.b32", 128), (16, "f16", "v4.b32", 128, "v4.b32", 128),
]


def widths(ptx):
    """(instruction, bits) of the narrowest access to global memory: loads and stores."""
    found = {}
    for kind in ("ld", "st"):
        accesses = re.findall(r"\b%s\.global(?:\.[a-z]\w*)*?(?:\.v(\d))?\.[a-z](\d+)\b" % kind, ptx)
        bits = [(int(count or 1) * int(size), int(count or 1), int(size)) for count, size in accesses]
        if not bits:
            raise SystemExit("no %s.global in the PTX" % kind)
        total, count, size = min(bits)
        found[kind] = ["v%d.b%d" % (count, size), total]
    return found


def compile_triton(k, element):
    import triton
    from triton.backends.compiler import GPUTarget
    sys.path.insert(0, str(HERE))
    from copy_kernel import copy
    pointer = "*fp16" if element == "f16" else "*fp8e4nv"
    aligned = [["tt.divisibility", 16]]
    source = triton.compiler.ASTSource(copy, {"x": pointer, "y": pointer, "K": "constexpr"},
                                       {"K": k}, {(0,): aligned, (1,): aligned})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    text = re.sub(r' ?loc\((?:"[^"]*"\(#loc\w*\)|#loc\w*|callsite\([^)]*\))\)', "",
                  compiled.asm["ttir"])
    text = "".join(line for line in text.splitlines(True) if not line.startswith("#loc"))
    return text, widths(compiled.asm["ptx"])


def compile_lilac(lilac, path):
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "copy.ptx")
        done = command.run(lilac, "compile", path, "-o", output, "--emit", "ptx", "--target",
                           "sm_90a", "--num-warps", "4")
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        with open(output, encoding="utf-8") as file:
            return widths(file.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lilac")
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    record = TEXTS / "widths.json"
    triton = {} if arguments.triton else json.loads(record.read_text())
    rows, narrow = [], 0
    for k, element, *paper in PAPER:
        name = "copy_512x%d_%s" % (k, element)
        path = TEXTS / (name + ".ttir")
        if arguments.triton:
            text, triton[name] = compile_triton(k, element)
            path.write_text(text)
        ours = compile_lilac(os.path.abspath(arguments.lilac), str(path))
        good = all(bits >= paper[3] for _, bits in ours.values())
        narrow += not good
        rows.append({"k": k, "type": element, "paper": paper, "triton": triton[name],
                     "lilac": ours, "reached": good})
    if arguments.triton:
        record.write_text(json.dumps(triton, indent=1) + "\n")
    lines = ["| tensor | paper: legacy | paper: linear | Triton 3.6.0 load, store | lilac load, store "
             "| reached |", "|---|---|---|---|---|---|"]
    for row in rows:
        shown = [", ".join("%s (%d)" % tuple(row[who][kind]) for kind in ("ld", "st"))
                 for who in ("triton", "lilac")]
        lines.append("| [512, %d] x %s | %s (%d) | %s (%d) | %s | %s | %s |" % (
            row["k"], row["type"], *row["paper"], *shown, "yes" if row["reached"] else "NO"))
    table = "\n".join(lines) + "\n"
    print(table, end="")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(
            "# Table 2 of the paper: widths of loads and stores\n\nA [512, k] tensor loaded and stored "
            "by 4 warps; the instruction, and its bits for each thread.\n\n" + table)
    return 1 if narrow else 0


if __name__ == "__main__":
    sys.exit(main())
