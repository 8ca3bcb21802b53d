"""The reductions of the paper's Table 3: one sum along one axis of a tensor, for every layout family,
shape, number of warps and axis, as TTGIR text. Standard library only.

The tensor is loaded in the layout and the result stored from the slice of it, so the only accesses
to shared memory are the reduction's own.
"""

import re

SHAPES = [(16, 16), (16, 32), (32, 16), (32, 32), (64, 32), (32, 64), (64, 64), (64, 128), (128, 64),
          (128, 128)]
WARPS = [1, 2, 4, 8]

# Family: the paper's pass rates (legacy, linear) and shared-memory instructions (legacy, linear).
PAPER = {
    "Blocked": ("20/20", "20/20", 5888, 1388),
    "MMA": ("20/20", "20/20", 5914, 3517),
    "MMA Input": ("0/10", "10/10", None, 5884),
    "Sliced<Blocked>": ("20/20", "20/20", 6703, 4687),
    "Sliced<MMA>": ("0/10", "10/10", None, 320),
    "Sliced<MMA Input>": ("0/10", "10/10", None, 545),
    "Custom": ("0/10", "10/10", None, 913),
}


def blocked(size, threads, warps, order):
    return "#ttg.blocked<{sizePerThread = %s, threadsPerWarp = %s, warpsPerCTA = %s, order = %s}>" % (
        size, threads, warps, order)


def mma(warps, shape):
    return ("#ttg.nvidia_mma<{versionMajor = %d, versionMinor = 0, warpsPerCTA = %s, "
            "instrShape = %s}>" % (3 if len(shape) == 3 and len(warps) == 2 else 2, warps, shape))


def operand(index, parent):
    return "#ttg.dot_op<{opIdx = %d, parent = %s, kWidth = 2}>" % (index, parent)


def sliced(dim, parent):
    return "#ttg.slice<{dim = %d, parent = %s}>" % (dim, parent)


def custom(m, n, warps, order):
    """Bits of the two dimensions in the order given ('i' rows, 'j' columns, '.' nothing), dealt to
    two registers, five lanes and the warps; what is left goes to more registers."""
    left = {"i": [[1 << b, 0] for b in range(m.bit_length() - 1)],
            "j": [[0, 1 << b] for b in range(n.bit_length() - 1)]}

    def take(letter):
        return left[letter].pop(0) if letter != "." and left[letter] else [0, 0]

    bases = [take(letter) for letter in order[:7 + warps.bit_length() - 1]]
    register = [b for b in bases[:2] if b != [0, 0]] + left["i"] + left["j"]
    return "#ttg.linear<{register = %s, lane = %s, warp = %s, block = []}>" % (
        register, bases[2:7], bases[7:])


def layouts(family, m, n, warps):
    """The layouts of a family for a tensor of this shape."""
    w = warps
    if family == "Blocked":
        return [blocked([1, 4], [4, 8], [w, 1], [1, 0]), blocked([4, 1], [8, 4], [w, 1], [0, 1]),
                blocked([1, 1], [2, 16], [1, w], [1, 0])]
    if family == "MMA":
        wide = mma([w, 1], [16, min(n, 64), 16]) if w >= 4 else mma([1, w], [16, 8])
        return [mma([w, 1], [16, 8]), wide]
    if family == "MMA Input":
        return [operand(0, mma([w, 1], [16, 8])), operand(1, mma([w, 1], [16, 8])),
                operand(0, mma([1, w], [16, 8])), operand(1, mma([1, w], [16, 8]))]
    if family == "Sliced<Blocked>":
        return [sliced(0, blocked([1, 1, 4], [2, 4, 4], [1, w, 1], [2, 1, 0])),
                sliced(2, blocked([1, 4, 1], [2, 4, 4], [1, w, 1], [2, 1, 0])),
                sliced(1, blocked([1, 1, 2], [8, 1, 4], [1, w, 1], [2, 1, 0]))]
    if family == "Sliced<MMA>":
        return [sliced(0, mma([w, 1, 1], [1, 16, 8])), sliced(0, mma([1, w, 1], [1, 16, 8]))]
    if family == "Sliced<MMA Input>":
        return [sliced(0, operand(0, mma([1, w, 1], [1, 16, 8]))),
                sliced(0, operand(1, mma([1, 1, w], [1, 16, 8])))]
    return [custom(m, n, w, "jijijijiji"), custom(m, n, w, "ii.jj.jiij"),
            custom(m, n, w, "j.iijjj.ij")]


def cases(family):
    """(name, layout, m, n, warps, axis) of every reduction of a family."""
    for m, n in SHAPES:
        for warps in WARPS:
            for number, layout in enumerate(layouts(family, m, n, warps)):
                for axis in (0, 1):
                    name = "%s %d, %dx%d, %d warps, axis %d" % (family, number, m, n, warps, axis)
                    yield name, layout, m, n, warps, axis


def module(layout, m, n, warps, axis):
    """A kernel sum(in, out)."""
    rows, columns = sliced(1, layout), sliced(0, layout)
    full = "tensor<%dx%d%%s, %s>" % (m, n, layout)
    length, result = (m, rows) if axis == 1 else (n, columns)
    line = "tensor<%d%%s, %s>" % (length, result)
    kept = "r" if axis == 1 else "c"
    body = f"""
    %r = tt.make_range {{end = {m} : i32, start = 0 : i32}} : tensor<{m}xi32, {rows}>
    %r1 = tt.expand_dims %r {{axis = 1 : i32}} : tensor<{m}xi32, {rows}> -> tensor<{m}x1xi32, {layout}>
    %n = arith.constant dense<{n}> : tensor<{m}x1xi32, {layout}>
    %rn = arith.muli %r1, %n : tensor<{m}x1xi32, {layout}>
    %rb = tt.broadcast %rn : tensor<{m}x1xi32, {layout}> -> {full % "xi32"}
    %c = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, {columns}>
    %c1 = tt.expand_dims %c {{axis = 0 : i32}} : tensor<{n}xi32, {columns}> -> tensor<1x{n}xi32, {layout}>
    %cb = tt.broadcast %c1 : tensor<1x{n}xi32, {layout}> -> {full % "xi32"}
    %i = arith.addi %rb, %cb : {full % "xi32"}
    %ps = tt.splat %in : !tt.ptr<f32> -> {full % "x!tt.ptr<f32>"}
    %p = tt.addptr %ps, %i : {full % "x!tt.ptr<f32>"}, {full % "xi32"}
    %x = tt.load %p : {full % "x!tt.ptr<f32>"}
    %y = "tt.reduce"(%x) <{{axis = {axis} : i32}}> ({{
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }}) : ({full % "xf32"}) -> {line % "xf32"}
    %qs = tt.splat %out : !tt.ptr<f32> -> {line % "x!tt.ptr<f32>"}
    %q = tt.addptr %qs, %{kept} : {line % "x!tt.ptr<f32>"}, {line % "xi32"}
    tt.store %q, %y : {line % "x!tt.ptr<f32>"}
    tt.return
"""
    return ('module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = %d : i32, '
            'ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {\n'
            "  tt.func public @sum(%%in: !tt.ptr<f32> {tt.divisibility = 16 : i32}, "
            "%%out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {%s  }\n"
            "}\n" % (warps, body))


def shared_instructions(ptx):
    """Stores to and loads from shared memory in a PTX text."""
    return len(re.findall(r"\b(?:st|ld)(?:\.\w+)*\.shared|\b(?:st|ld)matrix\.", ptx))
