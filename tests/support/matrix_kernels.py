"""Matrix products for Hopper, written by hand in SIMT IR: the text of four kernels.

Each computes D = A · Bᵀ of f16 matrices with f32 accumulators, A of M × K, B of N × K elements, both
with contiguous K, by tiles of 64 elements of K in a ring of buffers in shared memory:

    cp_async      one warpgroup; cp.async fills the ring two tiles ahead; one wgmma group in flight
    tensor_map    one warpgroup; one thread starts tensor copies; mbarriers say when a buffer is full
    specialized   a producer program and two consumer programs of a warpgroup each, with mbarriers for
                  full and for empty buffers and register budgets
    epilogue      cp_async with D in f16: stmatrix into shared memory, one bulk tensor store

A tile of a matrix has rows of 128 bytes, swizzled over 128 bytes as wgmma's descriptors and tensor
maps define it: the 16-byte chunk c of row r is at r · 128 + ((c xor r mod 8) · 16).
"""

import argparse

TILE_K = 64  # elements of f16: 128 bytes, the swizzle's row
ROW = 128  # bytes
SWIZZLE_128 = 1 << 62
ROW_GROUP = 1024  # bytes of eight rows


class Text:
    """SIMT text in the making: instructions get fresh names, constants are shared."""

    def __init__(self):
        self.lines, self.constants, self.count, self.depth = [], {}, 0, 2
        self.head = []

    def fresh(self, hint="v"):
        self.count += 1
        return "%%%s%d" % (hint, self.count)

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def const(self, value, kind="i32"):
        key = (value, kind)
        if key not in self.constants:
            name = self.fresh("c")
            self.constants[key] = name
            self.head.append("    %s = const %s : %s" % (name, value, kind))
        return self.constants[key]

    def value(self, operation, kind="i32", hint="v", more=""):
        name = self.fresh(hint)
        self.line("%s = %s : %s%s" % (name, operation, kind, more))
        return name

    def _operand(self, x, kind):
        return self.const(x, kind) if isinstance(x, int) else x

    def binary(self, code, a, b, kind="i32", result=None):
        return self.value("%s %s, %s" % (code, self._operand(a, kind), self._operand(b, kind)), result or kind)

    def add(self, a, b, kind="i32"):
        return self.binary("add", a, b, kind)

    def mul(self, a, b, kind="i32"):
        return self.binary("mul", a, b, kind)

    def shr(self, a, by):
        return self.binary("shr_u", a, by)

    def shl(self, a, by):
        return self.binary("shl", a, by)

    def mask(self, a, bits):
        return self.binary("and", a, bits)

    def compare(self, kind, a, b):
        return self.value("cmp %s %s, %s" % (kind, self._operand(a, "i32"), self._operand(b, "i32")), "i1")

    def select(self, condition, a, b):
        return self.value("select %s, %s, %s" % (condition, self._operand(a, "i32"), self._operand(b, "i32")))

    def wide(self, a, b):
        return self.value("mulwide_s %s, %s" % (a, self._operand(b, "i32")), "i64")

    def open(self, text):
        self.line(text)
        self.depth += 1

    def close(self, text="}"):
        self.depth -= 1
        self.line(text)

    def kernel(self, name, parameters, warps, shared, extra=""):
        body = "\n".join(self.head + self.lines)
        given = ", ".join("%%%s: %s" % p for p in parameters)
        values = "\n".join("    %%%s = param %d : %s" % (p[0], i, p[1].split()[0]) for i, p in enumerate(parameters))
        return ('simt.module target "sm_90a" {\n  kernel @%s(%s) warps %d ctas 1 shared %d%s {\n%s\n%s\n    return\n  }\n}\n'
                % (name, given, warps, shared, extra, values, body))


def descriptor(t, address):
    """The 64-bit descriptor of a matrix with contiguous K in the swizzle of 128 bytes, from its shared
    address: start / 16, leading offset (not used: 1), the stride between groups of 8 rows, the swizzle."""
    fields = SWIZZLE_128 | (ROW_GROUP >> 4) << 32 | 1 << 16
    start = t.value("zext %s" % t.mask(t.shr(address, 4), 0x3FFF), "i64")
    return t.binary("or", start, t.const(fields, "i64"), "i64")


def multiply(t, accumulators, a, b, n, options=""):
    """Four wgmmas over the 64 elements of K of one pair of tiles; the accumulators after them."""
    true = t.const("true", "i1")
    for step in range(TILE_K // 16):
        da, db = (t.add(x, t.const(2 * step, "i64"), "i64") if step else x for x in (a, b))
        names = [t.fresh("d") for _ in accumulators]
        t.line("%s = wgmma %s, %s, %s, %s : %s {a = f16, b = f16, d = f32, m = 64, n = %d, k = 16%s}" % (
            ", ".join(names), ", ".join(accumulators), da, db, true, ", ".join(["f32"] * len(names)), n, options))
        accumulators = names
    return accumulators


def wait_products(t, groups, accumulators=()):
    """wgmma.wait; the accumulators that may be used after it."""
    names = [t.fresh("d") for _ in accumulators]
    if names:
        t.line("%s = wgmma.wait %s : %s {groups = %d}" % (", ".join(names), ", ".join(accumulators),
                                                       ", ".join(["f32"] * len(names)), groups))
    else:
        t.line("wgmma.wait {groups = %d}" % groups)
    return names


def fragment_place(t, thread):
    """Row and column of a thread's first accumulator: 16 w + g and 2 t (PTX ISA, wgmma fragments)."""
    warp, lane = t.shr(thread, 5), t.mask(thread, 31)
    return t.add(t.shl(warp, 4), t.shr(lane, 2)), t.shl(t.mask(lane, 3), 1)


def store_f32(t, accumulators, row, column, n_elements):
    """The accumulators to D, two columns at a time: row + 8 ⌊e / 2⌋ mod 2, column + 8 ⌊e / 4⌋."""
    at = t.add("%d", t.wide(t.add(t.mul(row, "%n"), column), 4), "i64")
    below = t.add(at, t.wide(t.shl("%n", 3), 4), "i64")
    for e in range(0, n_elements, 2):
        t.line("st.global [%s + %d], (%s, %s)" % (below if e // 2 % 2 else at, 32 * (e // 4), accumulators[e], accumulators[e + 1]))


class Copier:
    """cp.async of a tile of `rows` rows of 128 bytes by 128 threads: chunk thread mod 8 of row
    thread / 8 + 16 i."""

    def __init__(self, t, thread, rows):
        self.t, self.rows = t, rows
        self.row, self.chunk = t.shr(thread, 3), t.mask(thread, 7)
        swizzled = t.binary("xor", self.chunk, t.mask(self.row, 7))
        self.offset = t.add(t.shl(self.row, 7), t.shl(swizzled, 4))

    def source(self, matrix, first_row):
        """The address of the thread's first chunk of the rows from `first_row` on, at K = 0."""
        t = self.t
        element = t.add(t.mul(t.add(self.row, first_row), "%k"), t.shl(self.chunk, 3))
        self.stride = t.wide(t.shl("%k", 4), 2)  # 16 rows
        return t.add(matrix, t.wide(element, 2), "i64")

    def copy(self, source, destination, k, predicate):
        t = self.t
        at = t.add(source, t.wide(t.shl(k, 6), 2), "i64")
        to = t.add(destination, self.offset)
        for i in range(self.rows // 16):
            t.line("cp.async [%s + %d], %s, (%s) {size = 16}" % (to, 2048 * i, predicate, at))
            at = t.add(at, self.stride, "i64")


PARAMETERS = [("a", "i64 ptr align 16"), ("b", "i64 ptr align 16"), ("d", "i64 ptr align 16"), ("n", "i32"), ("k", "i32")]
BUFFER = 64 * ROW  # bytes of a tile of 64 rows


def next_slot(t, slot, stages):
    after = t.add(slot, 1)
    return t.select(t.compare("eq", after, stages), 0, after)


def cp_async(stages=4, name="matmul_cp_async", epilogue=store_f32, epilogue_bytes=0, ahead=None):
    """D tile of 64 × 64 a block, one warpgroup. Iteration k waits for tile k, which all warps have
    then waited for behind one barrier, starts the copies of tile k + stages - 2 into the buffer that
    the products of iteration k - 2 read, and starts its own products; those of k - 1 are then complete."""
    t = Text()
    ahead = stages - 2 if ahead is None else ahead
    thread, zero = t.value("thread", "i32"), t.const(0)
    base = t.value("shared_base", "i32")
    first_row, first_column = t.shl(t.value("block x", "i32"), 6), t.shl(t.value("block y", "i32"), 6)
    copier = Copier(t, thread, 64)
    a, b = copier.source("%a", first_row), copier.source("%b", first_column)
    tiles = t.shr("%k", 6)

    def fill(k, slot):
        predicate = t.compare("lt", k, tiles)
        to = t.add(base, t.mul(slot, 2 * BUFFER))
        copier.copy(a, to, k, predicate)
        copier.copy(b, t.add(to, BUFFER), k, predicate)
        t.line("cp.async.commit")

    for k in range(ahead):
        fill(t.const(k), t.const(k))
    counter, carried, (slot, filled), names = loop(t, tiles, 32, [("slot", zero), ("filled", t.const(ahead))])
    t.line("cp.async.wait {groups = %d}" % (ahead - 1))
    t.line("barrier")
    fill(t.add(counter, ahead), filled)
    buffer = t.add(base, t.mul(slot, 2 * BUFFER))
    da, db = descriptor(t, buffer), descriptor(t, t.add(buffer, BUFFER))
    t.line("wgmma.fence")
    products = multiply(t, carried, da, db, 64)
    t.line("wgmma.commit")
    wait_products(t, 1)
    t.line("yield %s, %s, %s" % (", ".join(products), next_slot(t, slot, stages), next_slot(t, filled, stages)))
    t.close()
    t.line("cp.async.wait_all")
    done = wait_products(t, 0, names)
    row, column = fragment_place(t, thread)
    epilogue(t, done, t.add(row, first_row), t.add(column, first_column), 32)
    return t.kernel(name, PARAMETERS, 4, stages * 2 * BUFFER + epilogue_bytes)


def loop(t, tiles, products, extra):
    """Opens the loop over tiles of K. It carries the accumulators and the pairs (hint, initial value)
    of `extra`; its counter, the arguments, and the names of the results."""
    zeros = [t.const("0.0", "f32")] * products
    carried = [t.fresh("acc") for _ in zeros]
    arguments = [t.fresh(hint) for hint, _ in extra]
    results = [t.fresh("out") for _ in zeros] + [t.fresh("end") for _ in extra]
    counter = t.fresh("i")
    pairs = list(zip(carried, zeros)) + list(zip(arguments, [value for _, value in extra]))
    t.open("%s = loop %s = %s to %s step %s (%s) : %s {" % (
        ", ".join(results), counter, t.const(0), tiles, t.const(1), ", ".join("%s = %s" % pair for pair in pairs),
        ", ".join(["f32"] * products + ["i32"] * len(extra))))
    return counter, carried, arguments, results[:products]


def advance(t, slot, parity, stages):
    """The next buffer of the ring, and the parity of its phase: it changes at the ring's end."""
    after = t.add(slot, 1)
    ends = t.compare("eq", after, stages)
    return t.select(ends, 0, after), t.select(ends, t.binary("xor", parity, 1), parity)


def init_mbarriers(t, thread, at, counts):
    """One thread initialises the mbarriers; a barrier makes them known to the others."""
    first = t.compare("eq", thread, 0)
    for i, count in enumerate(counts):
        t.line("mbarrier.init [%s + %d], %s, (%s)" % (at, 8 * i, first, t.const(count)))
    t.line("fence.mbarrier_init")
    t.line("barrier")
    return first


MAP_PARAMETERS = [("ma", "i64 tensor_map"), ("mb", "i64 tensor_map"), ("d", "i64 ptr align 16"), ("n", "i32"), ("k", "i32")]


def load_tiles(t, predicate, full, buffer, k, row, column, rows):
    """Tile k of A, `rows` rows from `row` on, and of B; the mbarrier `full` expects their bytes."""
    element = t.shl(k, 6)
    t.line("mbarrier.expect [%s], %s, (%s)" % (full, predicate, t.const((rows + 64) * ROW)))
    t.line("cp.tensor.load [%s], %s, (%%ma, %s, %s, %s)" % (buffer, predicate, element, row, full))
    t.line("cp.tensor.load [%s], %s, (%%mb, %s, %s, %s)" % (t.add(buffer, rows * ROW), predicate, element, column, full))


def tensor_map(stages=4):
    """D tile of 64 × 64 a block, one warpgroup; thread 0 starts the copies. Iteration k waits for the
    mbarrier of its buffer, starts its products, waits for those of k - 1 in every warp, and refills
    their buffer with tile k + stages - 1."""
    t = Text()
    thread, base = t.value("thread", "i32"), t.value("shared_base", "i32")
    full = t.add(base, stages * 2 * BUFFER)
    first_row, first_column = t.shl(t.value("block x", "i32"), 6), t.shl(t.value("block y", "i32"), 6)
    tiles = t.shr("%k", 6)
    first = init_mbarriers(t, thread, full, [1] * stages)

    def fill(k, slot):
        predicate = t.binary("and", first, t.compare("lt", k, tiles), "i1")
        buffer = t.add(base, t.mul(slot, 2 * BUFFER))
        load_tiles(t, predicate, t.add(full, t.shl(slot, 3)), buffer, k, first_row, first_column, 64)

    for k in range(stages - 1):
        fill(t.const(k), t.const(k))
    counter, carried, (slot, parity, filled), names = loop(
        t, tiles, 32, [("slot", t.const(0)), ("parity", t.const(0)), ("filled", t.const(stages - 1))])
    t.line("mbarrier.wait [%s], (%s)" % (t.add(full, t.shl(slot, 3)), parity))
    buffer = t.add(base, t.mul(slot, 2 * BUFFER))
    a, b = descriptor(t, buffer), descriptor(t, t.add(buffer, BUFFER))
    t.line("wgmma.fence")
    products = multiply(t, carried, a, b, 64)
    t.line("wgmma.commit")
    wait_products(t, 1)
    t.line("barrier")
    fill(t.add(counter, stages - 1), filled)
    after = advance(t, slot, parity, stages)
    t.line("yield %s, %s, %s, %s" % (", ".join(products), *after, next_slot(t, filled, stages)))
    t.close()
    done = wait_products(t, 0, names)
    row, column = fragment_place(t, thread)
    store_f32(t, done, t.add(row, first_row), t.add(column, first_column), 32)
    return t.kernel("matmul_tensor_map", MAP_PARAMETERS, 4, stages * 2 * BUFFER + 8 * stages)


def specialized(stages=4, early=False):
    """D tile of 128 × 64 a block. A producer program fills the ring; each of two consumer programs
    multiplies 64 rows. Each consumer warp releases the buffer of iteration k - 1 when its products
    are complete, which it knows in iteration k. `early` is a fault: it releases the buffer of iteration
    k then, which its products still read."""
    t = Text()
    stage = (128 + 64) * ROW
    thread, base = t.value("thread", "i32"), t.value("shared_base", "i32")
    full = t.add(base, stages * stage)
    empty = t.add(full, 8 * stages)
    first_row, first_column = t.shl(t.value("block x", "i32"), 7), t.shl(t.value("block y", "i32"), 6)
    tiles = t.shr("%k", 6)
    first = init_mbarriers(t, thread, full, [1] * stages + [8] * stages)
    t.open("programs warps 0 to 4 {")
    t.line("set_max_registers dec {registers = 40}")
    counter, _, (slot, parity), _ = loop(t, tiles, 0, [("slot", t.const(0)), ("parity", t.const(1))])
    bar = t.shl(slot, 3)
    t.line("mbarrier.wait [%s], (%s)" % (t.add(empty, bar), parity))
    load_tiles(t, first, t.add(full, bar), t.add(base, t.mul(slot, stage)), counter, first_row, first_column, 128)
    t.line("yield %s, %s" % advance(t, slot, parity, stages))
    t.close()
    t.line("yield")
    for consumer in range(2):
        t.close("} warps %d to %d {" % (4 + 4 * consumer, 8 + 4 * consumer))
        t.depth += 1
        t.line("set_max_registers inc {registers = 232}")
        elected = t.value("elect", "i1")
        counter, carried, (slot, parity, before), names = loop(
            t, tiles, 32, [("slot", t.const(0)), ("parity", t.const(0)), ("before", t.const(0))])
        t.line("mbarrier.wait [%s], (%s)" % (t.add(full, t.shl(slot, 3)), parity))
        buffer = t.add(base, t.mul(slot, stage))
        a = descriptor(t, t.add(buffer, consumer * BUFFER))
        b = descriptor(t, t.add(buffer, 2 * BUFFER))
        t.line("wgmma.fence")
        products = multiply(t, carried, a, b, 64)
        t.line("wgmma.commit")
        wait_products(t, 1)
        release = t.binary("and", elected, t.compare("gt", counter, 0), "i1")
        t.line("mbarrier.arrive [%s], %s" % (t.add(empty, t.shl(slot if early else before, 3)), elected if early else release))
        after = advance(t, slot, parity, stages)
        t.line("yield %s, %s, %s, %s" % (", ".join(products), *after, slot))
        t.close()
        done = wait_products(t, 0, names)
        row, column = fragment_place(t, t.add(thread, -128 * (1 + consumer)))
        store_f32(t, done, t.add(t.add(row, 64 * consumer), first_row), t.add(column, first_column), 32)
        t.line("yield")
    t.close()
    return t.kernel("matmul_specialized", MAP_PARAMETERS, 12, stages * stage + 16 * stages, " min_blocks 1")


PITCH = 144  # bytes of a row of D's tile: 128 and 16 more, so that eight rows are in different banks


def store_f16(stages):
    """The epilogue by stmatrix and bulk stores, a row of 64 elements each, behind the ring."""
    def epilogue(t, accumulators, row, column, count):
        del row, column
        thread = t.value("thread", "i32")
        lane, warp = t.mask(thread, 31), t.shr(thread, 5)
        tile = t.add(t.value("shared_base", "i32"), stages * 2 * BUFFER)
        halves = [t.value("fcvt %s" % x, "f16") for x in accumulators]
        words = [t.value("pack %s, %s" % (halves[e], halves[e + 1]), "f16x2") for e in range(0, count, 2)]
        # Lane 8 i + r gives the address of row r of matrix i: rows 0 and 8, then columns 0 and 8.
        inside = t.add(t.mask(lane, 7), t.mask(lane, 8))
        at = t.add(tile, t.mul(t.add(t.shl(warp, 4), inside), PITCH))
        at = t.add(at, t.mask(lane, 16))
        for q in range(0, len(words), 4):
            t.line("st.matrix [%s + %d], (%s)" % (at, 8 * q, ", ".join(words[q:q + 4])))
        t.line("fence.proxy_async shared")
        t.line("barrier")
        stores = t.compare("lt", thread, 64)
        place = t.add(t.mul(t.add(t.shl(t.value("block x", "i32"), 6), thread), "%n"), t.shl(t.value("block y", "i32"), 6))
        t.line("cp.bulk.store [%s], %s, (%s, %s)" % (t.add(tile, t.mul(thread, PITCH)), stores,
                                                  t.add("%d", t.wide(place, 2), "i64"), t.const(ROW)))
        t.line("bulk.commit")
        t.line("bulk.wait")
    return epilogue


def epilogue(stages=4):
    """cp_async with D in f16 by stmatrix and bulk stores."""
    return cp_async(stages, "matmul_epilogue", store_f16(stages), 64 * PITCH)


KERNELS = {"cp_async": cp_async, "tensor_map": tensor_map, "specialized": specialized, "epilogue": epilogue}


def main():
    parser = argparse.ArgumentParser(description="Prints a kernel.")
    parser.add_argument("kernel", choices=sorted(KERNELS))
    parser.add_argument("--stages", type=int, default=4)
    arguments = parser.parse_args()
    print(KERNELS[arguments.kernel](arguments.stages), end="")


if __name__ == "__main__":
    main()
