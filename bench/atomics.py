#!/usr/bin/env python3
"""Random launches with atomic operations on a GPU, compared with the required contents of memory.

    python3 bench/atomics.py LIBLILAC [--launches N] [--seed S] [--json FILE] [--markdown FILE]
                             [--simulator]

LIBLILAC is liblilac.so. Each launch is one kernel of random kind (add, and, or, xor, signed and
unsigned max and min, exchange, compare-and-swap, floats' max and min by their bits, counters that
blocks raise with compare-and-swap in a loop), type, size, warps, blocks, order and scope, masked or
not, with or without a use of its results, on addresses of its own, addresses shared by all blocks,
random addresses or one. The final contents of memory do not depend on the order of the atomics: the added
floats are small integers, and exchanged values depend only on the address. Used results must be
consistent with some order: at each address, the results together with the final contents are a
permutation of the initial contents together with the value that each operation computes from its
result.

--simulator needs no GPU. Exit status 1 when memory or a result is wrong or a kernel is refused.
"""

import argparse
import collections
import pathlib
import random
import struct
import sys
import time

import report
from driver import Device, find_ptxas
from functions import Simulated, assemble_all, run
from library import Library, LilacError

INTEGERS = ("i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
BYTES = {"i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
KINDS = ("add", "and", "or", "xor", "max", "min", "umax", "umin", "exch", "cas", "fadd", "fmax",
         "fmin", "counter")


def types_of(kind):
    if kind == "fadd":
        return FLOATS
    if kind in ("fmax", "fmin"):
        return ("f32", "f64")
    if kind == "exch":
        return INTEGERS + ("f32", "f64")
    if kind == "cas":
        return INTEGERS + FLOATS
    return INTEGERS


def encode(value, element):
    """A number as the bits of an element."""
    if element[0] == "i":
        return value & ((1 << 8 * BYTES[element]) - 1)
    if element == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    return int.from_bytes(struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[element], value),
                          "little")


def decode(bits, element):
    if element == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    form = {"f16": "<e", "f32": "<f", "f64": "<d"}.get(element)
    if form:
        return struct.unpack(form, bits.to_bytes(BYTES[element], "little"))[0]
    top = 1 << (8 * BYTES[element] - 1)
    return bits - 2 * top if bits & top else bits


def act(kind, element, old, value, expected):
    """The bits that an operation stores where memory holds `old`."""
    def signed(word):
        return decode(word, element)
    if kind in ("add", "counter"):
        return encode(old + value, element)
    if kind == "fadd":
        return encode(signed(old) + signed(value), element)
    if kind in ("and", "or", "xor"):
        return {"and": old & value, "or": old | value, "xor": old ^ value}[kind]
    if kind in ("max", "fmax"):
        return max(old, value, key=signed)
    if kind in ("min", "fmin"):
        return min(old, value, key=signed)
    if kind in ("umax", "umin"):
        return (max if kind == "umax" else min)(old, value)
    if kind == "exch":
        return value
    return value if old == expected else old  # cas


class Launch:
    """One random launch: its text, its memory, what must come of it."""

    def __init__(self, rng, number):
        self.kind = KINDS[number % len(KINDS)]
        self.element = rng.choice(types_of(self.kind))
        self.way = rng.choice(("own", "shared", "random", "random", "scalar", "summed"))
        self.num_warps = rng.choice((1, 2, 4, 8))
        self.blocks = rng.choice((1, 2, 7, 32, 64))
        self.size = rng.choice((16, 32, 64, 128, 256, 512, 1024))
        self.order = rng.choice(("relaxed", "acquire", "release", "acq_rel"))
        self.scope = rng.choice(("gpu", "gpu", "sys") + (("cta",) if self.blocks == 1 else ()))
        self.used = rng.random() < 0.5
        self.masked = rng.random() < 0.5
        kind, element = self.kind, self.element
        if kind == "counter":
            self.way, self.used, self.masked = "counter", False, False
            self.blocks = min(self.blocks, 32)
        if kind == "cas":
            self.masked = False  # it has no mask
        if kind in ("fmax", "fmin"):
            self.used = False  # two operations: an address's results do not chain
        if self.way == "scalar":
            self.size = 1
        # A slot is an address of X; index: the slot that each block's each element acts on.
        slots = {"own": self.blocks * self.size, "shared": self.size, "summed": self.size,
                 "scalar": 1, "counter": 1}.get(self.way, rng.choice((1, 3, 40, 700)))
        if element in ("f16", "bf16") and kind == "fadd":  # few enough at an address to be exact
            if self.way == "random":
                slots = max(slots, 700 if self.blocks * self.size < 20000 else 4000)
            self.blocks = min(self.blocks, 32)
        count = self.blocks * self.size
        if self.way == "own":
            slots = count
            self.index = list(range(count))
        elif self.way == "random":
            self.index = [rng.randrange(slots) for _ in range(count)]
        elif self.way in ("scalar", "counter"):
            self.index = [0] * count
        else:
            self.index = list(range(self.size)) * self.blocks
        bits = 8 * BYTES[element]
        if kind == "fadd":
            small = [encode(float(v), element) for v in (-2, -1, 0, 1, 2)]
            self.first = [rng.choice(small) for _ in range(slots)]
            self.values = [rng.choice(small) for _ in range(count)]
        elif kind in ("fmax", "fmin"):
            def draw():
                return encode(rng.choice((0.5, 1.0, 1e10, 1e-20)) * rng.randrange(-1000, 1000) or 0.25,
                              element)
            self.first = [draw() for _ in range(slots)]
            self.values = [draw() for _ in range(count)]
        else:
            self.first = [rng.getrandbits(bits) for _ in range(slots)]
            self.values = [rng.getrandbits(bits) for _ in range(count)]
        if element[0] != "i" and kind in ("exch", "cas"):  # numbers, so that text shows them
            self.first = [encode(float(rng.randrange(-100, 100)), element) for _ in range(slots)]
            self.values = [encode(float(rng.randrange(-100, 100)), element) for _ in range(count)]
        self.expected = [0] * count
        if kind in ("exch", "cas"):
            last = [self.values[rng.randrange(count)] for _ in range(slots)]
            self.values = [last[i] for i in self.index]
            if kind == "cas":  # one in two slots holds what is expected
                hit = [rng.random() < 0.5 for _ in range(slots)]
                wanted = [self.first[i] if h else (self.first[i] ^ 1) for i, h in enumerate(hit)]
                self.expected = [wanted[i] for i in self.index]
        if kind == "counter":
            self.first, self.values = [rng.randrange(100)], [1] * count
            self.size = 1
            self.index, self.values = [0] * self.blocks, [1] * self.blocks
            count = self.blocks
            self.expected = [0] * count
        self.mask = [int(rng.random() < 0.6) if self.masked else 1 for _ in range(count)]
        if self.way == "summed":
            # The values are sums of four numbers (integers, or floats that are small).
            if element[0] == "i" and kind not in ("exch", "cas"):
                self.parts = [rng.getrandbits(bits) for _ in range(4 * count)]
                self.values = [sum(self.parts[4 * k:4 * k + 4]) & ((1 << bits) - 1)
                               for k in range(count)]
            elif kind == "fadd":
                self.parts = [encode(float(rng.choice((-1, 0, 1))), element)
                              for _ in range(4 * count)]
                self.values = [encode(sum(decode(p, element) for p in self.parts[4 * k:4 * k + 4]),
                                      element) for k in range(count)]
            else:
                self.way = "shared"
        self.text = self.counter_text() if kind == "counter" else self.kernel_text()

    def name(self):
        return (f"{self.kind} {self.element} {self.way} {self.blocks}x{self.size} "
                f"warps={self.num_warps} {self.order} {self.scope} masked={int(self.masked)} "
                f"used={int(self.used)}")

    def counter_text(self):
        t = self.element
        return f"""module {{
  tt.func public @k(%X: !tt.ptr<{t}>, %V: !tt.ptr<{t}>, %E: !tt.ptr<{t}>, %I: !tt.ptr<i32>, %M: !tt.ptr<i8>, %O: !tt.ptr<{t}>) {{
    %one = arith.constant 1 : {t}
    %guess = arith.constant 0 : {t}
    %end = scf.while (%old = %guess) : ({t}) -> {t} {{
      %new = arith.addi %old, %one : {t}
      %was = tt.atomic_cas {self.order}, {self.scope}, %X, %old, %new : (!tt.ptr<{t}>, {t}, {t}) -> {t}
      %other = arith.cmpi ne, %was, %old : {t}
      scf.condition(%other) %was : {t}
    }} do {{
    ^bb0(%again: {t}):
      scf.yield %again : {t}
    }}
    tt.return
  }}
}}
"""

    def kernel_text(self):
        n, t = self.size, self.element
        scalar = self.way == "scalar"
        shape = f"{n}x"

        def of(kind):
            return kind if scalar else f"tensor<{shape}{kind}>"

        def pointers(kind):
            return of(f"!tt.ptr<{kind}>")
        lines = []
        add = lines.append
        add("    %pid = tt.get_program_id x : i32")
        add(f"    %n = arith.constant {n} : i32")
        add("    %first = arith.muli %pid, %n : i32")
        if not scalar:
            add(f"    %r = tt.make_range {{end = {n} : i32, start = 0 : i32}} : {of('i32')}")
            add(f"    %b = tt.splat %first : i32 -> {of('i32')}")
            add(f"    %at0 = arith.addi %b, %r : {of('i32')}")

        def point(name, base, kind, offset):
            if scalar:
                offset = "first" if offset == "at0" else offset
                add(f"    %{name} = tt.addptr %{base}, %{offset} : !tt.ptr<{kind}>, i32")
                return
            add(f"    %{name}s = tt.splat %{base} : !tt.ptr<{kind}> -> {pointers(kind)}")
            add(f"    %{name} = tt.addptr %{name}s, %{offset} : {pointers(kind)}, {of('i32')}")

        def load(name, base, kind):
            point(name + "p", base, kind, "at0")
            add(f"    %{name} = tt.load %{name}p : {pointers(kind)}")
        if self.way == "summed":
            m = 4 * n
            add(f"    %m = arith.constant {m} : i32")
            add("    %wf = arith.muli %pid, %m : i32")
            add(f"    %wr = tt.make_range {{end = {m} : i32, start = 0 : i32}} : tensor<{m}xi32>")
            add(f"    %wb = tt.splat %wf : i32 -> tensor<{m}xi32>")
            add(f"    %wa = arith.addi %wb, %wr : tensor<{m}xi32>")
            add(f"    %ws = tt.splat %V : !tt.ptr<{t}> -> tensor<{m}x!tt.ptr<{t}>>")
            add(f"    %wp = tt.addptr %ws, %wa : tensor<{m}x!tt.ptr<{t}>>, tensor<{m}xi32>")
            add(f"    %w = tt.load %wp : tensor<{m}x!tt.ptr<{t}>>")
            add(f"    %w2 = tt.reshape %w : tensor<{m}x{t}> -> tensor<{n}x4x{t}>")
            op = "addi" if t[0] == "i" else "addf"
            add('    %v = "tt.reduce"(%w2) <{axis = 1 : i32}> ({')
            add(f"    ^bb0(%x: {t}, %y: {t}):")
            add(f"      %z = arith.{op} %x, %y : {t}")
            add(f"      tt.reduce.return %z : {t}")
            add(f"    }}) : (tensor<{n}x4x{t}>) -> tensor<{n}x{t}>")
        else:
            load("v", "V", t)
        where = {"own": "at0", "random": "i", "scalar": "i"}.get(self.way, "r")
        if where == "i":
            load("i", "I", "i32")
        mask = ""
        if self.masked:
            load("m8", "M", "i8")
            zero = "0" if scalar else "dense<0>"
            add(f"    %zero8 = arith.constant {zero} : {of('i8')}")
            add(f"    %m1 = arith.cmpi ne, %m8, %zero8 : {of('i8')}")
            mask = "m1"
        elif self.kind != "cas":
            add("    %true = arith.constant " + ("true" if scalar else f"dense<true> : {of('i1')}"))
            mask = "true"
        point("x", "X", t, where)
        how = f"{self.order}, {self.scope}"

        def rmw(name, kind, pointer, value, over, element):
            add(f"    %{name} = tt.atomic_rmw {kind}, {how}, %{pointer}, %{value}, %{over} : "
                f"({pointers(element)}, {of(element)}, {of('i1')}) -> {of(element)}")
        if self.kind == "cas":
            load("e", "E", t)
            add(f"    %old = tt.atomic_cas {how}, %x, %e, %v : ({pointers(t)}, {of(t)}, {of(t)}) "
                f"-> {of(t)}")
        elif self.kind in ("fmax", "fmin"):
            # Of numbers with bits as integers: signed among those not negative, else unsigned and
            # the other way round.
            whole = "i" + t[1:]
            add("    %f0 = arith.constant " + (f"0.000000e+00 : {t}" if scalar else
                                               f"dense<0.000000e+00> : {of(t)}"))
            add(f"    %xi = tt.bitcast %x : {pointers(t)} -> {pointers(whole)}")
            add(f"    %vi = tt.bitcast %v : {of(t)} -> {of(whole)}")
            add(f"    %pos = arith.cmpf oge, %v, %f0 : {of(t)}")
            add(f"    %neg = arith.cmpf olt, %v, %f0 : {of(t)}")
            add(f"    %mp = arith.andi %{mask}, %pos : {of('i1')}")
            add(f"    %mn = arith.andi %{mask}, %neg : {of('i1')}")
            rmw("o1", "max" if self.kind == "fmax" else "min", "xi", "vi", "mp", whole)
            rmw("o2", "umin" if self.kind == "fmax" else "umax", "xi", "vi", "mn", whole)
        else:
            rmw("old", self.kind, "x", "v", mask, t)
        if self.used:
            point("o", "O", t, "at0")
            add(f"    tt.store %o, %old : {pointers(t)}")
        head = ", ".join(f"%{name}: !tt.ptr<{kind}> {{tt.divisibility = 16 : i32}}"
                         for name, kind in (("X", t), ("V", t), ("E", t), ("I", "i32"),
                                            ("M", "i8"), ("O", t)))
        body = "\n".join(lines)
        return (f"module {{\n  tt.func public @k({head}) {{\n{body}\n    tt.return\n  }}\n}}\n")

    def arrays(self):
        def pack(words, size):
            return bytearray(b"".join(w.to_bytes(size, "little") for w in words)) + bytearray(64)
        size = BYTES[self.element]
        values = self.parts if self.way == "summed" else self.values
        self.guard = b"\x5a" * 64
        return [pack(self.first, size)[:-64] + bytearray(self.guard), pack(values, size),
                pack(self.expected, size), pack(self.index, 4), pack(self.mask, 1),
                bytearray(b"\xa5" * (len(self.values) * size + 64))]

    def complaint(self, arrays):
        size = BYTES[self.element]

        def unpack(array, count):
            return [int.from_bytes(array[k * size:(k + 1) * size], "little") for k in range(count)]
        if arrays[0][len(self.first) * size:] != self.guard:
            return "written behind its memory"
        got = unpack(arrays[0], len(self.first))
        want = list(self.first)
        for i, value, expected, over in zip(self.index, self.values, self.expected, self.mask):
            if over:
                want[i] = act(self.kind, self.element, want[i], value, expected)
        for k, (a, b) in enumerate(zip(got, want)):
            if a != b and not (self.kind == "fadd" and decode(a, self.element) ==
                               decode(b, self.element)):
                return f"address {k} holds {a:#x}, not {b:#x}"
        if not self.used:
            return None
        results = unpack(arrays[5], len(self.values))
        before = collections.defaultdict(collections.Counter)
        after = collections.defaultdict(collections.Counter)

        def key(bits):  # a sum that is zero may have either sign
            return decode(bits, self.element) if self.kind == "fadd" else bits
        for i, value, expected, over, old in zip(self.index, self.values, self.expected, self.mask,
                                                 results):
            if over:
                before[i][key(old)] += 1
                after[i][key(act(self.kind, self.element, old, value, expected))] += 1
        for i in before:
            before[i][key(got[i])] += 1
            after[i][key(self.first[i])] += 1
            if before[i] != after[i]:
                return f"address {i}: the results are on no way from the first contents to the last"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", help="liblilac.so")
    parser.add_argument("--launches", type=int, default=420)
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    report.add_options(parser)
    parser.add_argument("--simulator", action="store_true", help="no GPU: check the simulator")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    rng = random.Random(seed)
    library = Library(pathlib.Path(options.lilac).resolve(), "sm_90a")
    device = None if options.simulator else Device()
    ptxas = None if options.simulator else find_ptxas(options.ptxas)
    rows, done = [], []
    for number in range(options.launches):
        launch = Launch(rng, number)
        row = {"launch": launch.name(), "kind": launch.kind, "type": launch.element}
        rows.append(row)
        try:
            done.append((launch, row, Simulated(library, "k.ttir", launch.text, launch.num_warps)))
        except LilacError as error:
            row["complaint"] = str(error)
    cubins = assemble_all(ptxas, [c.ptx for _, _, c in done]) if device else [None] * len(done)
    for (launch, row, compiled), cubin in zip(done, cubins):
        arrays = launch.arrays()
        try:
            if isinstance(cubin, LilacError):
                raise cubin
            if device:
                run(device, cubin, compiled.metadata, launch.blocks, arrays)
            else:
                compiled.simulate(launch.blocks, arrays)
            complaint = launch.complaint(arrays)
            if complaint:
                row["complaint"] = complaint
        except LilacError as error:
            row["complaint"] = str(error)
        compiled.close()
    about = report.environment(options, device and device.name, ptxas)
    about["seed"] = seed
    wrong = [row for row in rows if "complaint" in row]
    counts = collections.Counter((row["kind"], row["type"]) for row in rows)
    bad = collections.Counter((row["kind"], row["type"]) for row in wrong)
    types = INTEGERS + FLOATS
    table = ["| kind | " + " | ".join(types) + " |", "|---|" + "---:|" * len(types)]
    for kind in KINDS:
        table.append(f"| {kind} | " + " | ".join(
            (f"{counts[kind, t]}" + (f" ({bad[kind, t]} wrong)" if bad[kind, t] else ""))
            if counts[kind, t] else "-" for t in types) + " |")
    verdict = f"{len(rows)} launches with atomic operations, {len(wrong)} wrong or refused"
    print("\n".join(table) + "\n\n" + verdict)
    for row in wrong[:20]:
        print(f"WRONG {row['launch']}: {row['complaint']}")
    report.write_json(options.json, about, launches=rows)
    if options.markdown:
        options.markdown.write_text(f"# Atomic operations on {about['gpu'] or 'the simulator'}\n\n"
                                    f"{verdict}.\n\n" + "\n".join(table) + f"\n\n{report.facts(about)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
