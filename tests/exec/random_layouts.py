"""Kernels with random layouts on the simulator, from text to results.

    conversions   a loop that carries a tensor from one layout through two others and back, by
                  plans or as an attribute orders
    memory        a tensor stored to shared memory of a random layout, perhaps one of several
                  buffers, and a part of a part of it loaded in another layout

Layouts of tensors are any surjective maps: columns that are sums, lanes, warps and registers that
repeat. The results must be the inputs, bit for bit, with nothing reported: no race, no read of what
nobody wrote.
"""

import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

KERNELS = 60  # of each kind
TYPES = {"i8": ("i1", 8), "i16": ("i2", 16), "i32": ("i4", 32), "i64": ("i8", 64)}


# ---- layouts ------------------------------------------------------------------------------------


def basis(source, bits, dense):
    """Columns of an invertible matrix: units in any order, or sums of them."""
    columns, reduced = [], []
    if not dense:
        columns = [1 << i for i in range(bits)]
        source.shuffle(columns)
    while len(columns) < bits:
        column = source.randrange(1, 1 << bits)
        rest = column
        for other in reduced:
            rest = min(rest, rest ^ other)
        if rest:
            reduced = sorted(reduced + [rest], reverse=True)
            columns.append(column)
    return columns


def distributed(source, rows, columns, warps):
    """A layout of a 2^rows x 2^columns tensor for 2^warps warps."""
    own = basis(source, rows + columns, source.random() < 0.5)
    threads = []
    repeating = source.sample(range(5 + warps), source.choice([0, 0, 0, 1, 2]))
    for i in range(5 + warps):
        threads.append(0 if i in repeating or not own else own.pop())
    if source.random() < 0.25:
        own.insert(source.randrange(len(own) + 1), 0)
    if own and repeating and source.random() < 0.3:
        threads[repeating[0]] = source.choice(own)
    places = [[c >> columns, c & (1 << columns) - 1] for c in own + threads]
    registers = len(own)
    return "#ttg.generic_linear<{register = %s, lane = %s, warp = %s, block = []}>" % (
        places[:registers], places[registers:registers + 5], places[registers + 5:])


def memory(source, rows, columns):
    order = source.choice(["[1, 0]", "[0, 1]"])
    kind = source.randrange(4)
    if kind == 0:
        return ("#ttg.swizzled_shared<{vec = %d, perPhase = %d, maxPhase = %d, order = %s}>" %
                (1 << source.randrange(4), 1 << source.randrange(3), 1 << source.randrange(4),
                 order))
    if kind == 1:
        return ("#ttg.padded_shared<[%d:+%d] {order = %s, shape = [%d, %d]}>" %
                (1 << source.randrange(3, 7), 1 << source.randrange(4), order, 1 << rows,
                 1 << columns))
    own = basis(source, rows + columns, kind == 2)
    return "#ttg.shared_linear<{offset = %s}, alignment = 16>" % (
        [[c >> columns, c & (1 << columns) - 1] for c in own])


# ---- kernels ------------------------------------------------------------------------------------


def module(aliases, warps, element, body):
    return "".join("#%s = %s\n" % alias for alias in aliases) + (
        'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = %d : i32, '
        'ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {\n'
        "  tt.func public @f(%%in: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
        "%%out: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%n: i32) {\n%s    tt.return\n  }\n}\n" %
        (1 << warps, element, element, body))


POINTERS = """\
    %{v}r = tt.make_range {{end = {m} : i32, start = 0 : i32}} : {rows}
    %{v}r1 = tt.expand_dims %{v}r {{axis = 1 : i32}} : {rows} -> {tall}
    %{v}k = arith.constant dense<{n}> : {tall}
    %{v}rk = arith.muli %{v}r1, %{v}k : {tall}
    %{v}rb = tt.broadcast %{v}rk : {tall} -> {all}
    %{v}c = tt.make_range {{end = {n} : i32, start = 0 : i32}} : {columns}
    %{v}c1 = tt.expand_dims %{v}c {{axis = 0 : i32}} : {columns} -> {wide}
    %{v}cb = tt.broadcast %{v}c1 : {wide} -> {all}
    %{v}i = arith.addi %{v}rb, %{v}cb : {all}
    %{v}p = tt.splat %{base} : !tt.ptr<{t}> -> {pointers}
    %{v} = tt.addptr %{v}p, %{v}i : {pointers}, {all}
"""


def pointers(name, base, layout, m, n, element):
    """%name: pointers to a row-major m x n tensor."""
    return POINTERS.format(
        v=name, base=base, m=m, n=n, t=element,
        rows="tensor<%dxi32, #ttg.slice<{dim = 1, parent = %s}>>" % (m, layout),
        columns="tensor<%dxi32, #ttg.slice<{dim = 0, parent = %s}>>" % (n, layout),
        tall="tensor<%dx1xi32, %s>" % (m, layout), wide="tensor<1x%dxi32, %s>" % (n, layout),
        all="tensor<%dx%dxi32, %s>" % (m, n, layout),
        pointers="tensor<%dx%dx!tt.ptr<%s>, %s>" % (m, n, element, layout))


def conversions(source, element):
    """The text, the elements, and which of them come out."""
    rows, columns, warps = source.randrange(7), source.randrange(7), source.randrange(4)
    m, n = 1 << rows, 1 << columns
    way = source.choice(["", "", "", ' {lilac.movement = "shared"}',
                         ' {lilac.movement = "unswizzled"}'])
    tensor = "tensor<%dx%dx%s, #%%s>" % (m, n, element)
    a, b, c = (tensor % name for name in "abc")
    body = pointers("from", "in", "#a", m, n, element)
    body += "    %%x = tt.load %%from : tensor<%dx%dx!tt.ptr<%s>, #a>\n" % (m, n, element)
    body += "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
    body += ("    %%y = scf.for %%j = %%zero to %%n step %%one iter_args(%%u = %%x) -> (%s)  : i32 "
             "{\n" % a)
    body += "      %%v = ttg.convert_layout %%u%s : %s -> %s\n" % (way, a, b)
    body += "      %%w = ttg.convert_layout %%v : %s -> %s\n" % (b, c)
    body += "      %%z = ttg.convert_layout %%w : %s -> %s\n" % (c, a)
    body += "      scf.yield %%z : %s\n    }\n" % a
    body += pointers("to", "out", "#a", m, n, element)
    body += "    tt.store %%to, %%y : tensor<%dx%dx!tt.ptr<%s>, #a>\n" % (m, n, element)
    aliases = [(name, distributed(source, rows, columns, warps)) for name in "abc"]
    return module(aliases, warps, element, body), m * n, list(range(m * n))


def parts(source, element):
    rows, columns, warps = source.randrange(1, 7), source.randrange(1, 7), source.randrange(4)
    m, n = 1 << rows, 1 << columns

    def space(shape, more):
        return "!ttg.memdesc<%sx%s, #s, #smem%s>" % (shape, element, more)

    now = space("%dx%d" % (m, n), ", mutable")
    body = pointers("from", "in", "#a", m, n, element)
    body += "    %%x = tt.load %%from : tensor<%dx%dx!tt.ptr<%s>, #a>\n" % (m, n, element)
    buffers = source.choice([0, 1, 2, 3])
    if buffers == 0:
        now = space("%dx%d" % (m, n), "")
        body += "    %%m = ttg.local_alloc %%x : (tensor<%dx%dx%s, #a>) -> %s\n" % (m, n, element,
                                                                                 now)
    else:
        every = space("%dx%dx%d" % (buffers, m, n), ", mutable")
        body += "    %%every = ttg.local_alloc : () -> %s\n" % every
        body += "    %%i = arith.constant %d : i32\n" % source.randrange(buffers)
        body += "    %%m = ttg.memdesc_index %%every[%%i] : %s -> %s\n" % (every, now)
        body += "    ttg.local_store %%x, %%m : tensor<%dx%dx%s, #a> -> %s\n" % (m, n, element, now)
    name, down, across = "m", range(m), range(n)
    for step in range(source.randrange(3)):
        height = 1 << source.randrange(len(down).bit_length())
        width = 1 << source.randrange(len(across).bit_length())
        top = height * source.randrange(len(down) // height)
        left = width * source.randrange(len(across) // width)
        part = space("%dx%d" % (height, width),
                     "" if (height, width) == (m, n) else ", %dx%d" % (m, n))
        body += "    %%p%d = ttg.memdesc_subslice %%%s[%d, %d] : %s -> %s\n" % (step, name, top,
                                                                            left, now, part)
        name, now = "p%d" % step, part
        down, across = down[top:top + height], across[left:left + width]
    tensor = "tensor<%dx%dx%%s, #b>" % (len(down), len(across))
    body += "    %%y = ttg.local_load %%%s : %s -> %s\n" % (name, now, tensor % element)
    body += pointers("to", "out", "#b", len(down), len(across), element)
    body += "    tt.store %%to, %%y : %s\n" % (tensor % ("!tt.ptr<%s>" % element))
    aliases = [("a", distributed(source, rows, columns, warps)),
               ("b", distributed(source, len(down).bit_length() - 1, len(across).bit_length() - 1,
                                 warps)),
               ("s", memory(source, rows, columns)), ("smem", "#ttg.shared_memory")]
    return module(aliases, warps, element, body), m * n, [r * n + c for r in down for c in across]


# ---- running them -------------------------------------------------------------------------------


def check(lilac, kind, seed):
    """Why this kernel fails, or None; and its text."""
    source = random.Random("%s %d" % (kind.__name__, seed))
    element = source.choice(sorted(TYPES))
    descr, bits = TYPES[element]
    text, count, chosen = kind(source, element)
    values = [source.randrange(-(1 << (bits - 1)), 1 << (bits - 1)) for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("f.ttgir", "in.npy", "out.npy", "ref.npy")]
        with open(paths[0], "w", encoding="utf-8") as file:
            file.write(text)
        npy.write(paths[1], descr, values)
        npy.write(paths[2], descr, [0] * len(chosen))
        npy.write(paths[3], descr, [values[i] for i in chosen])
        done = command.run(lilac, "run", paths[0], "--grid", "1", "--arg", "in=@" + paths[1],
                           "--arg", "out=@" + paths[2], "--arg", "n=2", "--expect",
                           "out=%s,0" % paths[3], "--json", "--verify")
    if done.returncode not in (0, 3):
        return "exit status %d\n%s" % (done.returncode, done.stderr), text
    report = json.loads(done.stdout)
    if done.returncode != 0 or len(report["expect"]) != 1:
        return "outputs differ: %s" % json.dumps(report["expect"]), text
    if report["findings"] or done.stderr:
        return "it has something to say:\n%s" % done.stderr, text
    return None, text


def main():
    arguments = command.parse_arguments(__doc__)
    kinds = {"conversions": conversions, "memory": parts}
    failures, count = [], 0
    for name in arguments.names or kinds:
        for seed in range(KERNELS):
            count += 1
            reason, text = check(arguments.lilac, kinds[name], seed)
            if reason:
                failures.append("%s %d" % (name, seed))
                print("%s %d FAILED: %s\n%s" % (name, seed, reason, text))
    command.finish(failures, count, "kernels with random layouts")


if __name__ == "__main__":
    main()
