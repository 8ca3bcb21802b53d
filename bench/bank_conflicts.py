"""Measures bank conflicts on a GPU for the pairs of tests/data/conflicts_that_differ.jsonl in which lanes
access part of a bank's word.

    python3 bench/bank_conflicts.py --lilac build/tools/lilac/lilac --addresses build/lanes.json
    python3 bench/bank_conflicts.py --measure build/lanes.json          # where there is a GPU

The first command computes the byte address that each lane of the first warp accesses with the first
instruction. The second command times a store and a load of those addresses by many warps at once, so
that shared memory, not the issue of instructions, is the limit, and prints the cycles of one warp
instruction; `stride` lines are known conflicts (1, 2, 4 … lanes in each bank) for comparison.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess

from driver import Device

HERE = os.path.dirname(os.path.abspath(__file__))

LIST = os.path.join(HERE, "..", "tests", "data", "conflicts_that_differ.jsonl")
WARPS, REPEAT, ROUNDS = 16, 64, 64

KERNEL = """.version 7.8
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry time_access(.param .u64 lanes, .param .u64 out) {
  .reg .b32 %%r<8>; .reg .b64 %%d<8>; .reg .%(register)s %%v<%(repeat)d>; .reg .pred %%p;
  ld.param.u64 %%d0, [lanes]; ld.param.u64 %%d1, [out];
  mov.u32 %%r0, %%tid.x; and.b32 %%r1, %%r0, 31;
  mul.wide.u32 %%d2, %%r1, 4; add.u64 %%d2, %%d2, %%d0; ld.global.u32 %%r2, [%%d2];
  mov.u32 %%r3, memory; add.u32 %%r2, %%r2, %%r3;
  mov.u32 %%r4, 0;
%(prepare)s
  bar.sync 0;
  mov.u64 %%d3, %%clock64;
again:
%(body)s
  add.u32 %%r4, %%r4, 1; setp.lt.u32 %%p, %%r4, %(rounds)d; @%%p bra again;
  bar.sync 0;
  mov.u64 %%d4, %%clock64; sub.u64 %%d4, %%d4, %%d3;
  mul.wide.u32 %%d5, %%r0, 8; add.u64 %%d5, %%d5, %%d1; st.global.u64 [%%d5], %%d4;
  ret;
}
"""


def kernel(operation, size):
    register, type = {1: ("b16", "u8"), 2: ("b16", "u16"), 4: ("b32", "u32")}[size]
    if operation == "store":
        line = "  st.volatile.shared.%s [%%r2], %%v0;" % type
    else:
        line = "  ld.volatile.shared.%s %%v{0}, [%%r2];" % type
    return KERNEL % {"register": register, "repeat": REPEAT, "rounds": ROUNDS,
                     "prepare": "  mov.%s %%v0, 0;" % register,
                     "body": "\n".join(line.replace("{0}", str(i)) for i in range(REPEAT))}


# ---- addresses, by the layouts that lilac prints ------------------------------------------------

def vector(basis):
    return sum(coordinate << 20 * dim for dim, coordinate in enumerate(basis))


def offsets_of(memory):
    """Element -> the offset that holds it."""
    found = {0: 0}
    for bit, basis in enumerate(memory["offset"]):
        found.update({element ^ vector(basis): offset | 1 << bit for element, offset in list(found.items())})
    return found


def layout(lilac, type):
    return json.loads(subprocess.run([lilac, "layout", "--json", type], check=True, stdout=subprocess.PIPE).stdout)


def write_addresses(lilac, path):
    cases = []
    with open(LIST, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        if line["why"] != "part-of-a-word":
            continue
        tensor, offsets = layout(lilac, line["type"]), offsets_of(layout(lilac, line["memdesc"]))
        table = subprocess.run([lilac, "conflicts", line["type"], line["memdesc"]], check=True,
                               stdout=subprocess.PIPE, universal_newlines=True).stdout
        size = int(re.search(r"a thread .* (\d+) bytes?\n", table).group(1))
        lanes = [0]
        for basis in tensor["lane"]:
            lanes += [lane ^ offsets[vector(basis)] for lane in lanes]
        cases.append(dict(line, size=size, lanes=[lane * line["bits"] // 8 for lane in lanes]))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(cases, file)


# ---- the GPU --------------------------------------------------------------------------------------

class Gpu(Device):
    def __init__(self):
        super().__init__()
        self.functions = {}

    def loaded(self, operation, size):
        if (operation, size) not in self.functions:
            self.functions[operation, size] = self.load(kernel(operation, size).encode(), "time_access")
        return self.functions[operation, size]

    def cycles(self, operation, size, lanes):
        """Cycles of one warp's instruction, the best of a few launches."""
        threads = 32 * WARPS
        addresses, taken = self.allocate(128), self.allocate(8 * threads)
        self.upload(addresses, (ctypes.c_uint32 * 32)(*lanes))
        result, best = (ctypes.c_uint64 * threads)(), None
        for _ in range(5):
            self.launch(self.loaded(operation, size), 1, threads, 48 * 1024, addresses, taken)
            self.download(result, taken)
            best = min(best or max(result), max(result))
        self.free(addresses)
        self.free(taken)
        return best / (WARPS * REPEAT * ROUNDS)


def measure(path):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    gpu = Gpu()
    print(json.dumps({"device": gpu.name, "warps": WARPS}))
    for size in (1, 2, 4):
        for stride in (1, 2, 4, 8):
            lanes = [4 * stride * lane for lane in range(32)]
            print(json.dumps({"size": size, "stride": stride, "wavefronts": stride,
                              "store_cycles": round(gpu.cycles("store", size, lanes), 2),
                              "load_cycles": round(gpu.cycles("load", size, lanes), 2)}))
    for case in cases:
        print(json.dumps({"type": case["type"], "memdesc": case["memdesc"], "size": case["size"],
                          "triton_wavefronts": case["triton"] + 1, "lilac_wavefronts": case["conflicts"] + 1,
                          "store_cycles": round(gpu.cycles("store", case["size"], case["lanes"]), 2),
                          "load_cycles": round(gpu.cycles("load", case["size"], case["lanes"]), 2)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lilac", help="the command")
    parser.add_argument("--addresses", metavar="FILE", help="write the lanes' addresses there")
    parser.add_argument("--measure", metavar="FILE", help="time the addresses of this file on a GPU")
    arguments = parser.parse_args()
    if arguments.addresses:
        write_addresses(arguments.lilac, arguments.addresses)
    if arguments.measure:
        measure(arguments.measure)


main()
