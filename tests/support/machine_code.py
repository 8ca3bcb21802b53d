"""PTX and SASS as lists of instructions, and the rules that the SASS of a kernel with matrix products
obeys. tests/exec/sass.py applies the rules to kernels, tests/exec/sass_rules.py tests the rules.

    Program                   instructions and loops of a text
    check_log(log, ptx)       the violated rules of ptxas's messages, and the registers of a thread
    check_kernel(ptx, sass)   the violated rules of the code
    compare_loops(ptx, sass)  the counts of the loops with products

Both texts have the same form: a label ends with a colon, an instruction is

    /*0070*/  @!P0  LDGSTS.E.BYPASS.128 [R49], desc[UR14][R40.64], P3 ;
              @%p1  bra.uni $L_loop_0;

A loop is the text from a label to the last branch back to it. Loops are compared in their order.
"""

import re
from collections import Counter, namedtuple

INSTRUCTION = re.compile(
    r"^\s*(?:/\*[0-9a-f]{4,}\*/)?\s*(@!?%?\w+\s+)?([A-Za-z_][\w.:]*)(?:\s+([^;]*?))?\s*;")
LABEL = re.compile(r"^\s*([.$]?[\w.$]+):\s*$")
TARGET = re.compile(r"\(?([.$]L\w+)\)?")
REGISTER = re.compile(r"^[-|~!]*R(\d+)(?:\.\w+)*\|?$")
PREDICATE = re.compile(r"^!?U?P(?:\d+|T)$")

A_REGISTERS = 4           # 64 rows of 32 bytes in 128 threads
REGISTERS = 65536         # of a multiprocessor
MOST_REGISTERS = 255      # of a thread
MOST_INSTRUCTIONS = 1000  # of a loop; the instruction cache that is nearest to the core holds about so many
MOST_OF_A_TEST = 4        # instructions of a loop that tests an mbarrier
IN_FLIGHT = 0.2           # share of a loop from which on products overlap with other work


# `rule`: its name, one of RULES.
Violation = namedtuple("Violation", "rule text")


class Instruction:
    """`predicate` with its @, `opcode` with its modifiers, operands as text."""

    def __init__(self, predicate, opcode, operands):
        self.predicate, self.opcode = (predicate or "").strip(), opcode
        parts = re.split(r",(?![^{\[]*[}\]])", operands or "")
        self.operands = [part.strip() for part in parts if part.strip()]

    def __str__(self):
        return " ".join([self.predicate, self.opcode, ", ".join(self.operands)]).strip()

    def starts(self, *prefixes):
        return self.opcode.startswith(prefixes)


class Program:
    def __init__(self, text):
        self.instructions, self.labels = [], {}
        for line in text.splitlines():
            line = line.split("//")[0]
            label, instruction = LABEL.match(line), INSTRUCTION.match(line)
            if label:
                self.labels[label.group(1)] = len(self.instructions)
            elif instruction and not instruction.group(2).startswith("."):
                self.instructions.append(Instruction(*instruction.groups()))

    def loops(self):
        """(first, last) of the innermost loops. A branch to itself, which ends a kernel, is none, and so is
        the test of an mbarrier until it is true, which is a part of the loop around it; ptxas places the test
        again behind the kernel, with a branch back into the loop."""
        ends = {}
        for at, instruction in enumerate(self.instructions):
            target = TARGET.search(instruction.operands[-1]) if (
                instruction.starts("bra", "BRA") and instruction.operands) else None
            start = self.labels.get(target.group(1), at) if target else at
            tests = any(is_mbarrier_test(one)
                        for one in self.instructions[max(start, at - MOST_OF_A_TEST):at + 1])
            if start < at and not tests:
                ends[start] = at
        return [(a, b) for a, b in sorted(ends.items())
                if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in ends.items())]

    def loops_with_products(self):
        return [(a, b) for a, b in self.loops()
                if any(is_product(i) for i in self.instructions[a:b + 1])]


# ---- what instructions are -------------------------------------------------------------------

def is_mbarrier_test(instruction):
    return instruction.starts("mbarrier.try_wait") or (
        instruction.starts("SYNCS.PHASECHK") and "TRYWAIT" in instruction.opcode)


def is_tensor_copy(instruction):
    return instruction.starts("cp.async.bulk.tensor", "UTMALDG")


def is_asynchronous_product(instruction):
    return (instruction.starts("wgmma.mma_async") or
            re.match(r"[HQIB]GMMA\.", instruction.opcode) is not None)


def is_product(instruction):
    return (is_asynchronous_product(instruction) or instruction.starts("mma.sync") or
            re.match(r"[HIDQB]MMA\.", instruction.opcode) is not None)


def machine_products(instruction):
    """The machine's products for an instruction. Hopper's mma.sync has no 8-bit floats: ptxas converts them
    to f16, and half of their inner indices fill an instruction."""
    is_converted = instruction.starts("mma.sync") and re.search(r"\.e[45]m[32]\.", instruction.opcode)
    return 2 if is_converted else int(is_product(instruction))


def ends_group(instruction):
    return instruction.starts("wgmma.commit_group") or (
        is_asynchronous_product(instruction) and "gsb0" in instruction.operands)


def product_wait(instruction):
    """The groups that a wait for products leaves in flight; None: it is no such wait."""
    if instruction.starts("wgmma.wait_group", "WARPGROUP.DEPBAR"):
        return int(instruction.operands[-1], 0)
    return None


def copy_wait(instruction):
    if instruction.starts("cp.async.wait_all"):
        return 0
    if instruction.starts("cp.async.wait_group") or (
            instruction.opcode == "DEPBAR.LE" and instruction.operands[0] == "SB0"):
        return int(instruction.operands[-1], 0)
    return None


def is_block_barrier(instruction):
    return instruction.starts("bar.sync", "barrier.sync", "barrier.cta.sync", "BAR.SYNC")


def copy_kind(instruction):
    """(bytes, whether it goes past the first cache) of an asynchronous copy, or None."""
    if instruction.starts("cp.async.cg.", "cp.async.ca."):
        return int(instruction.operands[2]), instruction.starts("cp.async.cg.")
    if instruction.starts("LDGSTS"):
        parts = instruction.opcode.split(".")
        size = 16 if "128" in parts else 8 if "64" in parts else 4
        return size, "BYPASS" in parts
    return None


def shared_access(instruction):
    """(what, bytes of a thread) of an access to shared memory, or None. In front of copies ptxas places
    loads with the predicate !PT, which are never executed."""
    parts = instruction.opcode.split(".")
    if instruction.predicate == "@!PT":
        return None
    if instruction.starts("ld.shared", "st.shared"):
        count = next((int(part[1:]) for part in parts if re.match(r"v[248]$", part)), 1)
        return parts[0], count * int(re.search(r"\d+$", parts[-1]).group(0)) // 8
    if instruction.starts("ldmatrix", "stmatrix"):
        return parts[0], 4 * next(int(part[1:]) for part in parts if re.match(r"x[124]$", part))
    if parts[0] in ("LDS", "STS"):
        size = {"U8": 1, "S8": 1, "8": 1, "U16": 2, "S16": 2, "16": 2, "64": 8, "128": 16}
        return parts[0][:2].lower(), next((size[part] for part in parts if part in size), 4)
    if parts[0] in ("LDSM", "STSM"):
        size = {"4": 16, "2": 8}
        return parts[0][:2].lower() + "matrix", next((size[part] for part in parts if part in size), 4)
    return None


def result_width(opcode):
    """Registers that an instruction writes from its first one on."""
    parts = opcode.split(".")
    shape = re.search(r"\.64x(\d+)x\d+", opcode)
    if shape:
        return int(shape.group(1)) // (4 if "F16" == parts[2] else 2)
    if re.match(r"[HIQ]MMA$", parts[0]) or "128" in parts or (parts[0] == "LDSM" and "4" in parts):
        return 4
    if parts[0] in ("DADD", "DMUL", "DFMA", "DMMA") or any(
            part in ("64", "WIDE", "F64") for part in parts) or (parts[0] == "LDSM" and "2" in parts):
        return 2
    return 1


def written_registers(instruction):
    """The general registers that a SASS instruction writes. Stores have no register as first operand;
    comparisons write predicates only."""
    operands = instruction.operands
    while operands and PREDICATE.match(operands[0]):
        if re.search(r"SETP", instruction.opcode):
            return set()
        operands = operands[1:]
    match = REGISTER.match(operands[0]) if operands else None
    if not match:
        return set()
    first = int(match.group(1))
    return set(range(first, first + result_width(instruction.opcode)))


def operand_a(instruction):
    """The registers of operand A of a product; empty: A is in shared memory."""
    match = REGISTER.match(instruction.operands[1]) if is_asynchronous_product(instruction) else None
    return set(range(int(match.group(1)), int(match.group(1)) + A_REGISTERS)) if match else set()


def written_names(instruction):
    """The registers that a PTX instruction writes."""
    first = instruction.operands[0] if instruction.operands else ""
    is_store = instruction.starts("st.", "red.", "bar", "cp.", "mbarrier", "prefetch", "stmatrix")
    return set() if is_store else set(re.findall(r"%\w+", first))


def operand_names(instruction):
    """The PTX registers of operand A of a product; empty: A is in shared memory."""
    is_list = is_asynchronous_product(instruction) and instruction.operands[1].startswith("{")
    return set(re.findall(r"%\w+", instruction.operands[1])) if is_list else set()


# ---- the rules -------------------------------------------------------------------------------

# Counts of a loop that are equal in PTX and SASS; each is a rule.
EQUAL = ["products", "groups", "waits", "copy waits", "copy groups", "barriers", "copies", "shared",
         "proxy fences", "tensor copies"]

RULES = EQUAL + [
    "message",       # ptxas warns of nothing and serialises no wgmma (C75xx)
    "local memory",  # no stack, no spills
    "registers",     # at most as many as the launch allows
    "call",          # none: it serialises wgmma
    "predicate",     # a wgmma has none
    "operand A",     # a wgmma's registers of A stay as they are until the wait that covers it
    "stale",         # a wgmma's registers of A that no iteration writes before it are written nowhere in the loop
    "loops",         # as many with products in SASS as in PTX
    "fences",        # at most one WARPGROUP.ARRIVE for each wgmma.fence of the loop
    "uniform",       # a loop with wgmma moves nothing to uniform registers (R2UR)
    "undefined",     # a uniform register that is read is written before
    "size",          # a loop with wgmma fits in the instruction cache
    "overlap",       # work under products in flight stays there
    "deleted",       # the kernel has at least as many products as its PTX
    "lanes",         # no loop over the lanes of a warp for what the thread of elect.sync starts
]


def check_log(log, ptx):
    """The rules that what ptxas -v says violates, and the number of registers."""
    found = [Violation("message", line) for line in log.splitlines()
             if re.search(r"C75\d\d|warning|error", line, re.I)]
    for count, what in re.findall(r"(\d+) bytes (stack frame|spill stores|spill loads)", log):
        if int(count):
            found.append(Violation("local memory", "%s bytes of %s" % (count, what)))
    registers = max([int(count) for count in re.findall(r"Used (\d+) registers", log)], default=0)
    threads = re.search(r"\.(?:max|req)ntid (\d+)", ptx)
    blocks = re.search(r"\.minnctapersm (\d+)", ptx)
    budget = MOST_REGISTERS
    if threads:
        each = REGISTERS // (int(threads.group(1)) * (int(blocks.group(1)) if blocks else 1))
        budget = min(budget, each // 8 * 8)
    if registers == 0 or registers > budget:
        found.append(Violation("registers", "%d registers of a thread, the launch allows %d" % (
            registers, budget)))
    return found, registers


def covering_wait_path(path, registers):
    """None if a wait covers the product that path begins with before anything writes `registers`."""
    committed, later = False, 0
    for at, instruction in enumerate(path):
        if at > 0 and written_registers(instruction) & registers:
            return "'%s' writes registers of A of '%s' before the wait" % (instruction, path[0])
        left = product_wait(instruction)
        if left is not None and committed and left <= later:
            return None
        if ends_group(instruction):
            later += committed
            committed = True
    return "no wait covers '%s'" % path[0]


def check_operand_a(sass):
    """Every product with A in registers: nothing writes them before the wait that covers it, neither in
    the text behind it nor in the next iteration of its loop."""
    found = []
    for at, instruction in enumerate(sass.instructions):
        registers = operand_a(instruction)
        if not registers:
            continue
        paths = [sass.instructions[at:]]
        paths += [sass.instructions[at:b + 1] + sass.instructions[a:b + 1] * 2
                  for a, b in sass.loops() if a <= at <= b]
        found += filter(None, [covering_wait_path(path, registers) for path in paths])
    return [Violation("operand A", text) for text in dict.fromkeys(found)]


def stale_products(body):
    """The products of a SASS loop that read registers of A as the iteration before has left them, which writes
    them."""
    count, before = 0, set()
    for at, instruction in enumerate(body):
        stale = operand_a(instruction) - before
        count += bool(stale) and any(written_registers(one) & stale for one in body[at + 1:])
        before |= written_registers(instruction)
    return count


def moved_names(instruction):
    """The PTX registers that a move, a pack or an opaque copy (target/ptx/schedule.c) copies to another one."""
    names = re.findall(r"%\w+", " ".join(instruction.operands[1:]))
    is_copy = instruction.starts("add.s32") and re.match(r"%tr\d+$", instruction.operands[-1]) is not None
    return set(names[:1] if is_copy else names) - {instruction.operands[0]} if (
        is_copy or instruction.starts("mov.")) else set()


def carried_products(body):
    """The products of a PTX loop whose operand A, or what it is a copy of, the iteration before has written."""
    count, before, copies = 0, set(), {}
    for at, instruction in enumerate(body):
        names, seen = operand_names(instruction), set()
        while names:
            name = names.pop()
            seen.add(name)
            names |= copies.get(name, set()) - seen
        roots = seen - copies.keys()
        count += bool(roots - before) and any(written_names(one) & roots - before for one in body[at + 1:])
        for name in written_names(instruction):
            copies.pop(name, None)
            if moved_names(instruction):
                copies[name] = moved_names(instruction)
            else:
                before.add(name)
    return count


def check_stale_operands(ptx, sass):
    """ptxas 12.8 and 13.0 give registers of A that are invariant in a loop to other values of it. `ptx` and `sass`:
    the instructions of the loop. An assembler may copy operands that a loop carries at the end of the iteration
    before."""
    carried, stale = carried_products(ptx), stale_products(sass)
    return [Violation("stale", "%d products read what the iteration before has left in registers of A, %d in the PTX" % (
        stale, carried))] if stale > carried else []


def share_in_flight(body):
    """The share of a loop's instructions that are issued while a product is in flight, in an iteration
    behind the first."""
    pending, is_open, count = 0, False, 0
    for iteration in range(2):
        for instruction in body:
            is_open = is_open or is_asynchronous_product(instruction)
            if ends_group(instruction):
                pending, is_open = pending + 1, False
            left = product_wait(instruction)
            if left is not None:
                pending = min(pending, left)
            count += iteration == 1 and (pending > 0 or is_open)
    return count / len(body)


def counts(body):
    """The counts of a loop, PTX or SASS."""
    def number(test):
        return sum(int(test(instruction)) for instruction in body)
    return {
        "instructions": len(body),
        "products": number(machine_products),
        "asynchronous": number(is_asynchronous_product),
        "groups": number(ends_group),
        "fences": number(lambda i: i.starts("wgmma.fence", "WARPGROUP.ARRIVE")),
        "waits": [left for left in map(product_wait, body) if left is not None],
        "copy waits": [left for left in map(copy_wait, body) if left is not None],
        "copy groups": number(lambda i: i.starts("cp.async.commit_group", "LDGDEPBAR")),
        "barriers": number(is_block_barrier),
        "copies": Counter(filter(None, map(copy_kind, body))),
        "shared": Counter(filter(None, map(shared_access, body))),
        "proxy fences": number(lambda i: i.starts("fence.proxy", "FENCE.VIEW")),
        "tensor copies": number(is_tensor_copy),
        # with a predicate: of the thread that starts a tensor copy
        "to uniform": number(lambda i: i.starts("R2UR") and not i.predicate),
        "in flight": share_in_flight(body),
    }


def check_loop(ptx, sass):
    """The violated rules of one loop, from its counts in PTX and in SASS."""
    found = [Violation(what, "%s: %s in the PTX, %s in the SASS" % (
        what, show(ptx[what]), show(sass[what]))) for what in EQUAL if ptx[what] != sass[what]]
    if sass["fences"] > ptx["fences"]:
        found.append(Violation("fences", "%d WARPGROUP.ARRIVE, the PTX has %d wgmma.fence" % (
            sass["fences"], ptx["fences"])))
    if sass["asynchronous"] and sass["to uniform"]:
        found.append(Violation("uniform", "%d R2UR: a descriptor or an address is not uniform" % (
            sass["to uniform"])))
    if sass["asynchronous"] and sass["instructions"] > MOST_INSTRUCTIONS:
        found.append(Violation("size", "%d instructions, expected at most %d" % (
            sass["instructions"], MOST_INSTRUCTIONS)))
    if ptx["in flight"] >= IN_FLIGHT and sass["in flight"] < ptx["in flight"] / 2:
        found.append(Violation("overlap", "%.0f %% of the PTX are under products in flight, %.0f %% of "
                               "the SASS" % (100 * ptx["in flight"], 100 * sass["in flight"])))
    return found


def show(value):
    if isinstance(value, Counter):
        def kind(one):
            if isinstance(one[0], str):
                return "%s of %d bytes" % one
            return "of %d bytes%s" % (one[0], " past L1" if one[1] else "")
        return ", ".join("%d %s" % (number, kind(one)) for one, number in sorted(value.items())) or "none"
    return str(value)


def compare_loops(ptx, sass):
    """[(counts in PTX, counts in SASS)] of the loops with products; None: their numbers differ."""
    both = [[counts(program.instructions[a:b + 1]) for a, b in program.loops_with_products()]
            for program in (ptx, sass)]
    return list(zip(*both)) if len(both[0]) == len(both[1]) else None


UNIFORM = re.compile(r"\bUR(\d+)\b")
WRITES_UNIFORM = ("U", "R2UR", "S2UR", "LDC", "VOTEU", "ELECT", "REDUX")


def uniform_result(instruction):
    """The uniform registers that an instruction writes."""
    operands = [one for one in instruction.operands if not PREDICATE.match(one)]
    first = re.match(r"^UR(\d+)$", operands[0]) if operands else None
    if not first or not instruction.starts(*WRITES_UNIFORM) or instruction.starts("UTMA", "UBLK"):
        return range(0)
    wide = instruction.opcode
    count = 4 if ".128" in wide else 2 if ".64" in wide or "WIDE" in wide else 1
    return range(int(first.group(1)), int(first.group(1)) + count)


def uniform_operands(instruction):
    """The uniform registers that it reads. The descriptors of a product are in four registers, of which one
    with operand A in registers reads the last two."""
    is_result = len(uniform_result(instruction)) > 0
    in_registers = len(instruction.operands) > 1 and REGISTER.match(instruction.operands[1])
    for operand in instruction.operands:
        if is_result and re.match(r"^UR\d+$", operand):
            is_result = False
            continue
        for found in UNIFORM.finditer(operand):
            register = int(found.group(1))
            descriptors = range(register + (2 if in_registers else 0), register + 4)
            yield from descriptors if "gdesc[" in operand else [register]


def check_uniform_registers(sass):
    """ptxas 12.8 has read registers that nothing writes before, in the order of the listing, where descriptors of
    one address were sums with negative numbers (lilac/simt_matrix.h)."""
    written, found = set(), []
    for one in sass.instructions:
        found += [Violation("undefined", "'%s' reads UR%d, which nothing writes before" % (one, register))
                  for register in uniform_operands(one) if register not in written]
        written.update(uniform_result(one))
    return found


def check_kernel(ptx, sass):
    """The violated rules of a kernel's code."""
    found = check_uniform_registers(sass)[:1]
    local = [instruction for instruction in sass.instructions if instruction.starts("LDL", "STL")]
    if local:
        found.append(Violation("local memory", "%d accesses to local memory, the first one '%s'" % (
            len(local), local[0])))
    for instruction in sass.instructions:
        if instruction.starts("CALL"):
            found.append(Violation("call", "'%s' is a call" % instruction))
        if is_asynchronous_product(instruction) and instruction.predicate:
            found.append(Violation("predicate", "'%s' has a predicate" % instruction))
    if any(one.starts("elect.sync") for one in ptx.instructions):
        found += [Violation("lanes", "'%s' repeats a copy for the lanes of a warp" % one)
                  for one in sass.instructions if one.starts("BRA.U.ANY")][:1]
    in_ptx, in_sass = (sum(map(machine_products, program.instructions)) for program in (ptx, sass))
    if in_sass < in_ptx:
        found.append(Violation("deleted", "%d products in the SASS, the PTX has %d" % (in_sass, in_ptx)))
    found += check_operand_a(sass)
    loops = compare_loops(ptx, sass)
    if loops is None:
        return found + [Violation("loops", "%d loops with products in the PTX, %d in the SASS" % (
            len(ptx.loops_with_products()), len(sass.loops_with_products())))]
    bodies = [[program.instructions[a:b + 1] for a, b in program.loops_with_products()] for program in (ptx, sass)]
    for at, (in_ptx, in_sass) in enumerate(loops):
        found += [Violation(rule, "loop %d: %s" % (at, text))
                  for rule, text in check_loop(in_ptx, in_sass) + check_stale_operands(bodies[0][at], bodies[1][at])]
    return found
