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


def ring_buffer(t, base, slot, stages, bytes_of_stage):
    del stages
    return t.add(base, t.mul(slot, bytes_of_stage))


def next_slot(t, slot, stages):
    after = t.add(slot, 1)
    return t.select(t.compare("eq", after, stages), 0, after)


def cp_async(stages=4, name="matmul_cp_async", epilogue=store_f32):
    """D tile of 64 × 64 a block, one warpgroup. Iteration k waits for tile k, which all warps have
    then waited for behind one barrier, starts the copies of tile k + stages - 2 into the buffer that
    the products of iteration k - 2 read, and starts its own products; those of k - 1 are then complete."""
    t = Text()
    ahead = stages - 2
    thread, zero = t.value("thread", "i32"), t.const(0)
    base = t.value("shared_base", "i32")
    first_row, first_column = t.shl(t.value("block x", "i32"), 6), t.shl(t.value("block y", "i32"), 6)
    copier = Copier(t, thread, 64)
    a, b = copier.source("%a", first_row), copier.source("%b", first_column)
    tiles = t.shr("%k", 6)

    def fill(k, slot):
        predicate = t.compare("lt", k, tiles)
        to = ring_buffer(t, base, slot, stages, 2 * BUFFER)
        copier.copy(a, to, k, predicate)
        copier.copy(b, t.add(to, BUFFER), k, predicate)
        t.line("cp.async.commit")

    for k in range(ahead):
        fill(t.const(k), t.const(k))
    zeros = [t.const("0.0", "f32")] * 32
    carried = [t.fresh("acc") for _ in zeros]
    names = [t.fresh("out") for _ in zeros]
    counter, slot, filled = t.fresh("i"), t.fresh("slot"), t.fresh("filled")
    t.open("%s, %s, %s = loop %s = %s to %s step %s (%s, %s = %s, %s = %s) : %s, i32, i32 {" % (
        ", ".join(names), t.fresh("s"), t.fresh("f"), counter, zero, tiles, t.const(1),
        ", ".join("%s = %s" % pair for pair in zip(carried, zeros)), slot, zero, filled, t.const(ahead),
        ", ".join(["f32"] * 32)))
    t.line("cp.async.wait {groups = %d}" % (ahead - 1))
    t.line("barrier")
    fill(t.add(counter, ahead), filled)
    buffer = ring_buffer(t, base, slot, stages, 2 * BUFFER)
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
    return t.kernel(name, PARAMETERS, 4, stages * 2 * BUFFER)


if __name__ == "__main__":
    print(cp_async())
