#!/usr/bin/env python3
"""The cost of instructions that move data within a multiprocessor on this GPU, in clocks.

    python3 bench/costs.py --measure [--json FILE]            # throughput, barriers, exchanges, wavefronts
    python3 bench/costs.py --ptx FILE                         # only write the program (no GPU needed)
    ncu --csv --clock-control none --metrics METRICS python3 bench/costs.py --counted FILE > NCU.csv
    python3 bench/costs.py --join NCU.csv FILE --json FILE    # the counters and the model

Needs an NVIDIA GPU of compute capability 9.0 and ptxas. Every kernel is a loop of one kind of
instruction or of a mix, written in PTX; each block notes the clock and its multiprocessor before
and after, and the clocks of a multiprocessor between its first start and its last end, divided by
what its warps issued, are the cost. METRICS: see COUNTERS below.

The wavefront part gives each lane an address by a linear map over F2 (one xor mask for each bit of
the lane), counts the wavefronts of one load or store of all lanes, and compares them with two models:
groups of consecutive lanes that together access at most 128 bytes, where each group costs the number
of distinct words in its fullest bank; and the same with groups twice as large for loads of 8 and 16 bytes when
every lane l has the address of lane l ^ 1, or every one that of l ^ 2, as measured on the H200.
"""

import argparse
import ctypes
import json
import pathlib
import random

import report
from driver import Device, assemble, find_ptxas

COUNTERS = ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
            "l1tex__data_pipe_lsu_wavefronts.sum")
ITERATIONS = 512
WORDS = 32  # independent registers of a kernel


# ---- programs: a body that the loop repeats, and how many of what are in it ---------------------


def shuffles(count, kind="bfly 1", start=0):
    operand = "%t0" if kind == "idx" else kind.split()[1]
    return [f"shfl.sync.{kind.split()[0]}.b32 %w{i % WORDS}, %w{i % WORDS}, {operand}, 31, -1;"
            for i in range(start, start + count)]


def selects(count, start=0):
    return [f"selp.b32 %w{i % WORDS}, %w{i % WORDS}, %w{(i + 5) % WORDS}, %p{1 + i % 3};"
            for i in range(start, start + count)]


def float_selects(count):
    return [f"selp.f32 %f{i % WORDS}, %f{i % WORDS}, %f{(i + 5) % WORDS}, %p{1 + i % 3};"
            for i in range(count)]


def permutes(count, start=0):
    return [f"prmt.b32 %w{i % WORDS}, %w{i % WORDS}, %w{(i + 5) % WORDS}, %t1;"
            for i in range(start, start + count)]


def words(first, count):
    names = ", ".join(f"%w{(first + k) % WORDS}" for k in range(count))
    return "{" + names + "}" if count > 1 else names


def accesses(operation, suffix, count, base="%a", first=0, used=False):
    """`count` of them, each at another address of the same bank, so that none is one before again."""
    vector = int(suffix[1]) if suffix[0] == "v" else 1
    lines = []
    for i in range(count):
        place = f"[{base}+{128 * i}]"
        value = words(first + i * vector, vector)
        kind = {"b8": "u8", "b16": "u16"}.get(suffix, suffix.replace("_", "."))
        lines.append(f"st.volatile.shared.{kind} {place}, {value};" if operation == "st" else
                     f"ld.volatile.shared.{kind} {value}, {place};")
        if used:  # by something, so that it stays
            lines += [f"xor.b32 %x{k}, %x{k}, %w{(first + i * vector + k) % WORDS};"
                      for k in range(vector)]
    return lines


def matrices(operation, number, transposed, count):
    trans = ".trans" if transposed else ""
    lines = []
    for i in range(count):
        names = ", ".join(f"%w{(i * number + k) % WORDS}" for k in range(number))
        place = f"[%m+{128 * i}]"
        if operation == "ld":
            lines.append(f"ldmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16 "
                         f"{{{names}}}, {place};")
            for k in range(number):  # used, so that it stays
                lines.append(f"xor.b32 %x{k}, %x{k}, %w{(i * number + k) % WORDS};")
        else:
            lines.append(f"stmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16 "
                         f"{place}, {{{names}}};")
    return lines


def interleave(*parts):
    """Spread evenly."""
    placed = [((k + 0.5) / len(part), which, line)
              for which, part in enumerate(parts) for k, line in enumerate(part)]
    return [line for _, _, line in sorted(placed, key=lambda p: p[:2])]


REMOTE = "mapa.shared::cluster.u32 %b, %a, %t7;"  # the same place of the other block


def remote_loads(suffix, count):
    vector = int(suffix[1]) if suffix[0] == "v" else 1
    lines = []
    for i in range(count):
        lines.append(f"ld.shared::cluster.{suffix.replace('_', '.')} {words(i * vector, vector)}, "
                     f"[%b+{128 * i}];")
        lines += [f"xor.b32 %x{k}, %x{k}, %w{(i * vector + k) % WORDS};" for k in range(vector)]
    return lines


def remote_exchange(suffix, count):
    lines = accesses("st", suffix, count, "%a") + CLUSTER_BARRIER
    lines += [line for line in remote_loads(suffix, count) if line.startswith("ld")]
    return lines + CLUSTER_BARRIER


CLUSTER_BARRIER = ["barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"]
BARRIERS = {"warp": "bar.warp.sync -1;", "pair": "barrier.cta.sync %t2, 64;",
            "block": "barrier.cta.sync 0;"}


def exchange(barrier, suffix, count, buffers=1):
    """Stores, barrier, loads of what another lane stored, barrier (not needed when the next one
    takes another buffer)."""
    lines = []
    for buffer in range(buffers):
        base, other = ("%a", "%b") if buffer == 0 else ("%c", "%d")
        lines += accesses("st", suffix, count, base)
        lines.append(BARRIERS[barrier])
        lines += accesses("ld", suffix, count, other)
        if buffers == 1:
            lines.append(BARRIERS[barrier])
    return lines


def programs():
    """name -> (body, instructions that the cost is divided by, lane bytes)"""
    found = {}

    def add(name, body, count, lane_bytes=4):
        found[name] = (body, count, lane_bytes)

    for distance in (1, 2, 4, 8, 16, 31):
        add(f"shfl.bfly {distance}", shuffles(64, f"bfly {distance}"), 64)
    add("shfl.idx", shuffles(64, "idx"), 64)
    add("selp", selects(96), 96)
    add("prmt", permutes(96), 96)
    add("selp.f32", float_selects(96), 96)
    add("selp 1 : selp.f32 1", interleave(selects(48), float_selects(48)), 96)
    for distance in (1, 2):
        add(f"shfl.bfly {distance} 2 : selp.f32 3 (per shfl)",
            interleave(shuffles(32, f"bfly {distance}"), float_selects(48)), 32)
    add("selp 1 : prmt 1", interleave(selects(48), permutes(48)), 96)
    for ratio in (1, 2, 3, 4):
        add(f"shfl 1 : selp {ratio} (per shfl)", interleave(shuffles(24), selects(24 * ratio)), 24)
        add(f"shfl 1 : prmt {ratio} (per shfl)", interleave(shuffles(24), permutes(24 * ratio)), 24)
    for suffix, size in (("b8", 1), ("b16", 2), ("b32", 4), ("v2_b32", 8), ("v4_b32", 16)):
        add(f"st.{suffix}", accesses("st", suffix, 32), 32, size)
        add(f"ld.{suffix}", accesses("ld", suffix, 32, used=True), 32, size)
    for suffix, size in (("b32", 4), ("v4_b32", 16)):
        add(f"st+ld.{suffix} (per pair)",
            interleave(accesses("st", suffix, 16), accesses("ld", suffix, 16, "%c", 8)), 16, size)
    add("shfl 1 : ld.b32 1 (per pair)",
        interleave(shuffles(16), accesses("ld", "b32", 16, first=16)), 16)
    add("shfl 1 : st.b32 1 (per pair)", interleave(shuffles(16), accesses("st", "b32", 16)), 16)
    add("selp 2 : st.b32 1 (per st)", interleave(selects(64), accesses("st", "b32", 32)), 32)
    add("selp 8 : st.v4 1 (per st)", interleave(selects(128), accesses("st", "v4_b32", 16)), 16, 16)
    for number in (1, 2, 4):
        for transposed in (False, True):
            tail = f" x{number}" + (" trans" if transposed else "")
            add("ldmatrix" + tail, matrices("ld", number, transposed, 16), 16, 16)
            add("stmatrix" + tail, matrices("st", number, transposed, 16), 16, 16)
    for suffix, size in (("b32", 4), ("v4_b32", 16)):
        add(f"remote ld.{suffix}", remote_loads(suffix, 16), 16, size)
        for count in (1, 4):
            add(f"remote exchange {count} {suffix}", remote_exchange(suffix, count), 1, size)
    add("remote barrier", CLUSTER_BARRIER * 16, 16)
    for barrier, line in BARRIERS.items():
        add(f"barrier {barrier}", [line] * 32, 32)
    for barrier in BARRIERS:
        for suffix, size, counts in (("v4_b32", 16, (1, 2, 4, 8)), ("b32", 4, (1, 4, 16))):
            for count in counts:
                add(f"exchange {barrier} {count} {suffix}", exchange(barrier, suffix, count), 1, size)
                add(f"exchange {barrier} {count} {suffix}, two buffers (per exchange)",
                    exchange(barrier, suffix, count, 2), 2, size)
    return found


# Blocks a multiprocessor, warps a block.
SHAPES = {"4 blocks of 4 warps": (4, 4), "1 block of 4 warps": (1, 4), "1 warp": (1, 1),
          "2 blocks of 8 warps": (2, 8), "8 blocks of 1 warp": (8, 1)}

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 memory[];
"""

KERNEL = """.visible .entry k%(number)d(.param .u64 out, .param .u32 zero) %(cluster)s {
  .reg .b32 %%w<%(words)d>; .reg .f32 %%f<%(words)d>; .reg .b32 %%x<4>; .reg .b32 %%t<8>;
  .reg .b32 %%a; .reg .b32 %%b; .reg .b32 %%c; .reg .b32 %%d; .reg .b32 %%m; .reg .b32 %%n;
  .reg .b32 %%z; .reg .b64 %%q<4>; .reg .pred %%p<5>;
  ld.param.u64 %%q0, [out]; ld.param.u32 %%n, [zero];
  mov.u32 %%z, %%n;
  mov.u32 %%t3, %%tid.x; and.b32 %%t0, %%t3, 31; shr.u32 %%t2, %%t3, 5;
  mov.u32 %%a, memory;
  mad.lo.u32 %%m, %%t3, 16, %%a;
  xor.b32 %%t4, %%t3, 1; mad.lo.u32 %%b, %%t4, %(bytes)d, %%a;
  mad.lo.u32 %%a, %%t3, %(bytes)d, %%a;
  add.u32 %%c, %%a, 16384; add.u32 %%d, %%b, 16384;
  shr.u32 %%t2, %%t2, 1; add.u32 %%t2, %%t2, 1;
  xor.b32 %%t0, %%t0, 3; add.u32 %%t1, %%n, 0x3254;
  setp.eq.u32 %%p1, %%n, 0; and.b32 %%t5, %%t3, 1; setp.eq.u32 %%p2, %%t5, 0;
  and.b32 %%t5, %%t3, 2; setp.eq.u32 %%p3, %%t5, 0;
%(prepare)s
%(start)s
  mov.u64 %%q1, %%clock64;
again:
%(body)s
  add.u32 %%a, %%a, %%z; add.u32 %%b, %%b, %%z; add.u32 %%c, %%c, %%z; add.u32 %%d, %%d, %%z;
  add.u32 %%m, %%m, %%z;
  add.u32 %%n, %%n, 1; setp.lt.u32 %%p0, %%n, %(iterations)d; @%%p0 bra again;
%(start)s
  mov.u64 %%q2, %%clock64;
%(finish)s
  mov.u32 %%t4, %%ctaid.x; mul.wide.u32 %%q3, %%t4, 32; add.u64 %%q3, %%q3, %%q0;
  mov.u32 %%t5, %%smid; cvt.u64.u32 %%q0, %%t5;
  st.global.u64 [%%q3], %%q1; st.global.u64 [%%q3+8], %%q2; st.global.u64 [%%q3+16], %%q0;
  cvt.u64.u32 %%q0, %%x0; st.global.u64 [%%q3+24], %%q0;
  ret;
}
"""


def entry(number, body, lane_bytes, cluster):
    prepare = [f"  mad.lo.u32 %w{i}, %t3, {i + 1}, %n;" for i in range(WORDS)]
    prepare += [f"  mov.u32 %x{i}, 0;" for i in range(4)]
    if cluster:
        prepare += ["  mov.u32 %t7, %cluster_ctarank; xor.b32 %t7, %t7, 1;", "  " + REMOTE]
    prepare += [f"  cvt.rn.f32.u32 %f{i}, %w{i};" for i in range(WORDS)]
    finish = [f"  xor.b32 %x0, %x0, %w{i};" for i in range(WORDS)]
    finish += [f"  xor.b32 %x0, %x0, %x{i};" for i in range(1, 4)]
    finish += [f"  add.f32 %f0, %f0, %f{i};" for i in range(1, WORDS)]
    finish += ["  mov.b32 %t6, %f0; xor.b32 %x0, %x0, %t6;"]
    return KERNEL % {"number": number, "words": WORDS, "bytes": lane_bytes,
                     "cluster": ".reqnctapercluster 2" if cluster else "",
                     "start": "\n".join("  " + b for b in CLUSTER_BARRIER) if cluster else "  bar.sync 0;",
                     "prepare": "\n".join(prepare), "body": "\n".join("  " + b for b in body),
                     "finish": "\n".join(finish), "iterations": ITERATIONS}


# ---- wavefronts ---------------------------------------------------------------------------------

# name -> (PTX, {0} being an offset that changes no bank; bytes a lane)
FACTS = {}
for _kind, _size in (("u8", 1), ("u16", 2), ("b32", 4), ("v2.b32", 8), ("b64", 8), ("v4.b32", 16)):
    _names = ["%w0", "%w1", "%w2", "%w3"][:max(1, _size // 4)] if _kind != "b64" else ["%q3"]
    _value = _names[0] if len(_names) == 1 else "{{" + ", ".join(_names) + "}}"
    _used = " ".join(f"xor.b32 %x{k}, %x{k}, {n};" if n != "%q3" else "xor.b64 %q5, %q5, %q3;"
                     for k, n in enumerate(_names))
    FACTS["ld." + _kind] = (f"ld.volatile.shared.{_kind} {_value}, [%a+{{0}}]; {_used}", _size)
    FACTS["st." + _kind] = (f"st.volatile.shared.{_kind} [%a+{{0}}], {_value};", _size)
for _number in (1, 2, 4):
    _names = ["%w0", "%w1", "%w2", "%w3"][:_number]
    _value = "{{" + ", ".join(_names) + "}}"
    _used = " ".join(f"xor.b32 %x{k}, %x{k}, {n};" for k, n in enumerate(_names))
    _tail = f"matrix.sync.aligned.m8n8.x{_number}.shared.b16"
    FACTS[f"ldmatrix.x{_number}"] = (f"ld{_tail} {_value}, [%a+{{0}}]; {_used}", 16)
    FACTS[f"stmatrix.x{_number}"] = (f"st{_tail} [%a+{{0}}], {_value};", 16)
REPEAT, ROUNDS = 32, 16

FACT = """.visible .entry f%(number)d(.param .u64 out, .param .u64 table, .param .u32 rounds,
                             .param .u32 zero) {
  .reg .b32 %%w<8>; .reg .b32 %%x<4>; .reg .b32 %%t<8>; .reg .b32 %%a;
  .reg .b32 %%n; .reg .b32 %%z; .reg .b64 %%q<6>; .reg .pred %%p0;
  ld.param.u64 %%q0, [out]; ld.param.u64 %%q3, [table]; ld.param.u32 %%n, [rounds];
  ld.param.u32 %%z, [zero];
  mov.u32 %%t0, %%tid.x; and.b32 %%t1, %%t0, 31; mov.u32 %%t2, %%ctaid.x;
  mad.lo.u32 %%t3, %%t2, 32, %%t1; mul.wide.u32 %%q4, %%t3, 4; add.u64 %%q4, %%q4, %%q3;
  ld.global.u32 %%a, [%%q4]; mov.u32 %%t4, memory; add.u32 %%a, %%a, %%t4;
  mov.u32 %%w0, %%t0; mov.u32 %%w1, %%t1; mov.u32 %%w2, %%t2; mov.u32 %%w3, %%t3;
  mov.u32 %%x0, 0; mov.u32 %%x1, 0; mov.u32 %%x2, 0; mov.u32 %%x3, 0;
  mov.u64 %%q3, 0; mov.u64 %%q5, 0;
  bar.sync 0;
  mov.u64 %%q1, %%clock64;
again:
%(body)s
  add.u32 %%a, %%a, %%z; sub.u32 %%n, %%n, 1; setp.ne.u32 %%p0, %%n, 0; @%%p0 bra again;
  bar.sync 0;
  mov.u64 %%q2, %%clock64; sub.u64 %%q2, %%q2, %%q1;
  xor.b32 %%x0, %%x0, %%x1; xor.b32 %%x0, %%x0, %%x2; xor.b32 %%x0, %%x0, %%x3;
  xor.b32 %%x0, %%x0, %%w0; xor.b32 %%x0, %%x0, %%w1; xor.b32 %%x0, %%x0, %%w2;
  xor.b32 %%x0, %%x0, %%w3;
  mul.wide.u32 %%q4, %%t2, 16; add.u64 %%q4, %%q4, %%q0; cvt.u64.u32 %%q0, %%x0;
  add.u64 %%q0, %%q0, %%q5; st.global.u64 [%%q4], %%q2; st.global.u64 [%%q4+8], %%q0;
  ret;
}
"""


def fact_entry(number, line):
    return FACT % {"number": number, "body": "\n".join("  " + line.format(4096 * i) for i in range(REPEAT))}


def lanes_of(basis):
    addresses = [0]
    for mask in basis:
        addresses += [address ^ mask for address in addresses]
    return addresses


def fullest_bank(words_touched):
    banks = [0] * 32
    for word in set(words_touched):
        banks[word % 32] += 1
    return max(banks)


def model(kind, size, basis, merging=False):
    """Wavefronts by groups of 128 bytes; `merging`: twice that where neighbours share addresses."""
    addresses = lanes_of(basis)
    if "matrix" in kind:  # each matrix is one wavefront if its eight rows differ in banks
        number = int(kind[-1])
        return sum(fullest_bank([address // 4 + k for address in addresses[8 * i:8 * i + 8]
                                 for k in range(4)]) for i in range(number))
    group = 32 // max(1, size // 4)
    if merging and kind.startswith("ld") and size >= 8 and 0 in basis[:2]:
        group *= 2
    return sum(fullest_bank([address // 4 + k for address in addresses[i:i + group]
                             for k in range(max(1, size // 4))]) for i in range(0, 32, group))


def fact_cases():
    """[kind, xor masks by lane bit (bytes), what]"""
    cases = []

    def add(kind, basis, what):
        cases.append((kind, tuple(basis), what))

    generator = random.Random(4)
    for kind, (_, size) in FACTS.items():
        add(kind, [size << i for i in range(5)], "all different, consecutive")
        add(kind, [0] * 5, "all one address")
        for dropped in range(1, 31):  # lanes that differ in these bits share an address
            basis, next_unit = [], size
            for bit in range(5):
                basis.append(0 if dropped >> bit & 1 else next_unit)
                next_unit <<= not dropped >> bit & 1
            add(kind, basis, f"copies by lane bits {dropped:05b}")
        for number in range(12):
            order = generator.sample(range(5), 5)
            add(kind, [size << i for i in order], "a permutation of consecutive ones")
        if size < 4:
            for bits in range(1, 3 if size == 1 else 2):
                add(kind, [128 << i if i >= 5 - bits else 4 << i for i in range(5)], "strided words")
            add(kind, [4 << i for i in range(5)], "one word a lane")
            add(kind, [4, 8, 16, 32, size], "a word shared by lanes 16 apart")
            add(kind, [128, 256, 512, 1024, size], "one bank, words shared by lanes 16 apart")
        for number in range(28):
            width = generator.choice((7, 8, 9, 10))
            basis = [generator.randrange(1 << width) // size * size for _ in range(5)]
            add(kind, basis, "random")
    return cases


# ---- the GPU ------------------------------------------------------------------------------------


class Gpu(Device):
    def __init__(self, ptx):
        super().__init__()
        self.program = self.module(assemble(find_ptxas(), "sm_90a", ptx)[0])

    def kernel(self, name):
        return self.function(self.program, name)


def median(values):
    return sorted(values)[len(values) // 2]


def clocks(gpu, function, blocks, warps):
    """Clocks of a multiprocessor for one iteration of the loop by all of its warps."""
    count = gpu.multiprocessors * blocks
    out = gpu.allocate(32 * count)
    got = (ctypes.c_uint64 * (4 * count))()
    shared = min(227, 224 // blocks) * 1024
    best = []
    for _ in range(5):
        gpu.launch(function, count, 32 * warps, shared, out, ctypes.c_uint32(0))
        gpu.download(got, out)
        starts, ends = {}, {}
        for block in range(count):
            start, end, place = got[4 * block:4 * block + 3]
            starts.setdefault(place, []).append(start)
            ends.setdefault(place, []).append(end)
        full = [max(ends[p]) - min(starts[p]) for p in starts if len(starts[p]) == blocks]
        if full:
            best.append(median(full))
    gpu.free(out)
    return min(best) / ITERATIONS if best else None


def whole_program():
    found = programs()
    ptx = HEAD + "".join(entry(number, body, size, name.startswith("remote"))
                         for number, (name, (body, _, size)) in enumerate(found.items()))
    return ptx + "".join(fact_entry(number, line) for number, (line, _) in enumerate(FACTS.values()))


def measure_programs(gpu):
    rows = []
    for number, (name, (body, count, _)) in enumerate(programs().items()):
        function = gpu.kernel(f"k{number}")
        row = {"name": name}
        for shape, (blocks, warps) in SHAPES.items():
            if "pair" in name and warps == 1:
                continue
            taken = clocks(gpu, function, blocks, warps)
            if taken is None:
                continue
            # Barriers and exchanges are of a block, all blocks at once: what one takes. The others:
            # what one warp's instruction takes of the multiprocessor.
            alone = name.startswith(("barrier", "exchange", "remote exchange", "remote barrier"))
            row[shape] = round(taken / count / (1 if alone else blocks * warps), 3)
        rows.append(row)
    return rows


def measure_facts(gpu):
    rows, warps = [], 16
    cases = fact_cases()
    kinds = list(FACTS)
    for number, kind in enumerate(kinds):
        mine = [case for case in cases if case[0] == kind]
        table = (ctypes.c_uint32 * (32 * len(mine)))(*(a for case in mine for a in lanes_of(case[1])))
        lanes, out = gpu.allocate(4 * len(table)), gpu.allocate(16 * len(mine))
        gpu.upload(lanes, table)
        got = (ctypes.c_uint64 * (2 * len(mine)))()
        best = [None] * len(mine)
        for _ in range(4):
            gpu.launch(gpu.kernel(f"f{number}"), len(mine), 32 * warps, 160 * 1024, out, lanes,
                       ctypes.c_uint32(ROUNDS), ctypes.c_uint32(0))
            gpu.download(got, out)
            best = [min(b or got[2 * i], got[2 * i]) for i, b in enumerate(best)]
        for (_, basis, what), taken in zip(mine, best):
            rows.append({"kind": kind, "lanes": basis, "what": what,
                         "model": model(kind, FACTS[kind][1], basis),
                         "merging_model": model(kind, FACTS[kind][1], basis, True),
                         "clocks": round(taken / (warps * REPEAT * ROUNDS), 2)})
    return rows


def run_counted(gpu, path):
    """One launch a case, of one warp, for a profiler to count; the list of them to `path`."""
    out, lanes = gpu.allocate(64), gpu.allocate(128)
    cases, kinds = fact_cases(), list(FACTS)
    for kind, basis, _ in cases:
        gpu.upload(lanes, (ctypes.c_uint32 * 32)(*lanes_of(basis)))
        gpu.launch(gpu.kernel(f"f{kinds.index(kind)}"), 1, 32, 160 * 1024, out, lanes,
                   ctypes.c_uint32(1), ctypes.c_uint32(0))
    path.write_text(json.dumps([{"kind": k, "lanes": b, "what": w,
                                 "model": model(k, FACTS[k][1], b)} for k, b, w in cases]))


def join(counters, cases, timed):
    """The cases with what was counted; with the clocks too, of cases that were timed."""
    rows = []
    for number, (case, counted) in enumerate(zip(cases, counters)):
        if number < len(timed) and (timed[number]["kind"], list(timed[number]["lanes"])) == (
                case["kind"], list(case["lanes"])):
            case = timed[number]
        name = COUNTERS[1] if case["kind"].startswith("ld") else COUNTERS[2]
        merging = model(case["kind"], FACTS[case["kind"]][1], case["lanes"], True)
        rows.append(dict(case, merging_model=merging, counted=counted[name] / REPEAT))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--no-wavefronts", action="store_true", help="costs only")
    parser.add_argument("--ptx", type=pathlib.Path)
    parser.add_argument("--counted", type=pathlib.Path)
    parser.add_argument("--join", type=pathlib.Path, nargs=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.ptx:
        options.ptx.write_text(whole_program())
    if options.counted:
        run_counted(Gpu(whole_program()), options.counted)
    result = {}
    if options.json and options.json.exists():
        result = json.loads(options.json.read_text())
    if options.measure:
        gpu = Gpu(whole_program())
        result.update({"device": gpu.name, "costs": measure_programs(gpu)})
        if not options.no_wavefronts:
            result["wavefronts"] = measure_facts(gpu)
        for row in result["costs"]:
            print(row["name"].ljust(52), *(f"{row.get(s, float('nan')):9.3f}" for s in SHAPES))
    if options.join:
        counters, cases = report.read_counters(options.join[0]), json.loads(options.join[1].read_text())
        result["wavefronts"] = join(counters, cases, result.get("wavefronts", []))
    for by in ("clocks", "counted"):
        rows = [row for row in result.get("wavefronts", []) if by in row]
        different = [r for r in rows if abs(r[by] - r["model"]) > 0.15 * r["model"]]
        merged = [r for r in rows if abs(r[by] - r["merging_model"]) > 0.15 * r["merging_model"]]
        print(f"{by}: {len(rows)} cases, {len(different)} differ from the plain model, "
              f"{len(merged)} from the one with merging")
        for row in merged:
            print("  ", row["kind"], list(row["lanes"]), row["what"], row["merging_model"], row[by])
    if options.json:
        rows = ["  " + json.dumps(key) + ": " + (json.dumps(value) if not isinstance(value, list) else
                "[\n" + ",\n".join("   " + json.dumps(item) for item in value) + "\n  ]")
                for key, value in result.items()]
        options.json.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
