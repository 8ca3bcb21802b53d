"""Masks of rows and columns with an order between them, on the simulator.

A kernel stores `order & (rows of mask) & (columns of mask)` for all signed predicates of the order, equality, an unsigned
one and one that is not transitive, and for all predicates of the mask, with the operands of both in either order, in
64 bits. Some orders compare rows with columns that a parameter shifts, as windows do: these imply nothing. The masks
must be those that Python computes, for lengths below, at and above the positions of two blocks.
"""

import itertools
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

SIZE, BLOCKS = 16, 2
ORDERS = ["slt", "sle", "sgt", "sge", "eq", "ne", "ult"]
MASKS = ["slt", "sle", "sgt", "sge"]
WINDOW = 3
SHIFTS = (0, WINDOW, -WINDOW)
CASES = list(itertools.product(ORDERS, MASKS, (False, True), (False, True), range(3), SHIFTS))
LENGTHS = [-1, 0, 1, 7, 15, 16, 17, 24, 31, 32, 40]
MEANING = {"slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
           "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "ult": lambda a, b: a % 2**64 < b % 2**64}


def one(number, order, mask, exchanged, reversed_order, place, shift):
    """The text of a case. `place`: which of the three masks is beside the other two."""
    limits = "%%ns, %%t" if exchanged else "%%t, %%ns"
    columns = "%%cols" + {0: "", WINDOW: "_up", -WINDOW: "_down"}[shift]
    sides = columns + ", %%rows" if reversed_order else "%%rows, " + columns
    three = ["%o{n}", "%r{n}", "%c{n}"]
    alone = three.pop(place)
    return """
    %m{n} = arith.cmpi {mask}, LIMITS : tensor<16xi64>
    %o{n} = arith.cmpi {order}, SIDES : tensor<16x16xi64>
    %re{n} = tt.expand_dims %m{n} {{axis = 1 : i32}} : tensor<16xi1> -> tensor<16x1xi1>
    %ce{n} = tt.expand_dims %m{n} {{axis = 0 : i32}} : tensor<16xi1> -> tensor<1x16xi1>
    %r{n} = tt.broadcast %re{n} : tensor<16x1xi1> -> tensor<16x16xi1>
    %c{n} = tt.broadcast %ce{n} : tensor<1x16xi1> -> tensor<16x16xi1>
    %x{n} = arith.andi FIRST, SECOND : tensor<16x16xi1>
    %y{n} = arith.andi ALONE, %x{n} : tensor<16x16xi1>
    %z{n} = arith.select %y{n}, %ones, %zeros : tensor<16x16xi1>, tensor<16x16xi32>
    %p{n} = tt.addptr %os, %at : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>
    %k{n} = arith.constant dense<{offset}> : tensor<16x16xi32>
    %q{n} = tt.addptr %p{n}, %k{n} : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>
    tt.store %q{n}, %z{n} : tensor<16x16x!tt.ptr<i32>>
""".replace("LIMITS", limits.replace("%%", "%")).replace("SIDES", sides.replace("%%", "%")).replace(
        "FIRST", three[0]).replace("SECOND", three[1]).replace("ALONE", alone).format(
            n=number, mask=mask, order=order, offset=number * SIZE * SIZE)


def text(cases):
    return """module {
  tt.func public @masks(%o: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %length: i32, %window: i32) {
    %size = arith.constant 16 : i64
    %all = arith.constant ALL : i32
    %pitch = arith.constant dense<16> : tensor<16x1xi32>
    %ones = arith.constant dense<1> : tensor<16x16xi32>
    %zeros = arith.constant dense<0> : tensor<16x16xi32>
    %x = tt.get_program_id x : i32
    %xl = arith.extsi %x : i32 to i64
    %first = arith.muli %xl, %size : i64
    %n = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %nl = arith.extsi %n : tensor<16xi32> to tensor<16xi64>
    %firsts = tt.splat %first : i64 -> tensor<16xi64>
    %t = arith.addi %firsts, %nl : tensor<16xi64>
    %length64 = arith.extsi %length : i32 to i64
    %ns = tt.splat %length64 : i64 -> tensor<16xi64>
    %te1 = tt.expand_dims %t {axis = 1 : i32} : tensor<16xi64> -> tensor<16x1xi64>
    %te0 = tt.expand_dims %t {axis = 0 : i32} : tensor<16xi64> -> tensor<1x16xi64>
    %rows = tt.broadcast %te1 : tensor<16x1xi64> -> tensor<16x16xi64>
    %cols = tt.broadcast %te0 : tensor<1x16xi64> -> tensor<16x16xi64>
    %zero = arith.constant 0 : i64
    %window64 = arith.extsi %window : i32 to i64
    %back = arith.subi %zero, %window64 : i64
    %windows = tt.splat %window64 : i64 -> tensor<16xi64>
    %backs = tt.splat %back : i64 -> tensor<16xi64>
    %t_up = arith.addi %t, %windows : tensor<16xi64>
    %t_down = arith.addi %t, %backs : tensor<16xi64>
    %up = tt.expand_dims %t_up {axis = 0 : i32} : tensor<16xi64> -> tensor<1x16xi64>
    %down = tt.expand_dims %t_down {axis = 0 : i32} : tensor<16xi64> -> tensor<1x16xi64>
    %cols_up = tt.broadcast %up : tensor<1x16xi64> -> tensor<16x16xi64>
    %cols_down = tt.broadcast %down : tensor<1x16xi64> -> tensor<16x16xi64>
    %row = tt.expand_dims %n {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %column = tt.expand_dims %n {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %rp = arith.muli %row, %pitch : tensor<16x1xi32>
    %rb = tt.broadcast %rp : tensor<16x1xi32> -> tensor<16x16xi32>
    %cb = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
    %at = arith.addi %rb, %cb : tensor<16x16xi32>
    %mine = arith.muli %x, %all : i32
    %om = tt.addptr %o, %mine : !tt.ptr<i32>, i32
    %os = tt.splat %om : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>>
BODY
    tt.return
  }
}
""".replace("ALL", str(len(cases) * SIZE * SIZE)).replace(
        "BODY", "".join(one(number, *case) for number, case in enumerate(cases)))


def expected(case, block, length):
    order, mask, exchanged, reversed_order, _, shift = case

    def limited(t):
        return MEANING[mask](length, t) if exchanged else MEANING[mask](t, length)
    first = block * SIZE
    return [int(MEANING[order](*((j + shift, i) if reversed_order else (i, j + shift))) and limited(i) and limited(j))
            for i in range(first, first + SIZE) for j in range(first, first + SIZE)]


def main():
    lilac = command.parse_arguments(__doc__).lilac
    with tempfile.TemporaryDirectory() as folder:
        path, result = os.path.join(folder, "masks.ttir"), os.path.join(folder, "o.npy")
        with open(path, "w") as file:
            file.write(text(CASES))
        for length in LENGTHS:
            done = command.run(lilac, "run", path, "--grid", BLOCKS, "--num-warps", 1, "--arg", "length=%d" % length,
                               "--arg", "window=%d" % WINDOW, "--arg", "o=zeros:i32:%d" % (BLOCKS * len(CASES) * SIZE * SIZE), "--save", "o=" + result)
            if done.returncode:
                print(done.stderr)
                return 1
            found = npy.read(result)[0]
            at = 0
            for block in range(BLOCKS):
                for case in CASES:
                    if found[at:at + SIZE * SIZE] != expected(case, block, length):
                        print("wrong: %s, block %d, length %d" % (case, block, length))
                        return 1
                    at += SIZE * SIZE
    print("%d masks" % (len(CASES) * len(LENGTHS) * BLOCKS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
