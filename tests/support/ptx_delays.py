"""PTX with a delay of random length before each operation that orders warps or copies, and after each that waits; and
PTX of which one wait is removed. Races that the usual speed of the warps hides become wrong results.

    text = delayed(ptx)                 the same program, slower
    text = mutated(ptx, "mbarrier", 0)  without its first wait at an mbarrier

A delay has no branch and defines no register of the program, so an assembler keeps the instructions around it as they
are. Its length is computed from the clock, the warp and the block: one of four is 0 to 1 microsecond, the others are 0.
"""

import re

STARTS = re.compile(r"^\s*(@!?%\w+ )?(mbarrier\.(arrive|expect|complete)|wgmma\.(fence|commit_group|wait_group)|"
                    r"cp\.(async|reduce)|bar\.sync|bar\.arrive|barrier\.|fence\.)")
WAITS = re.compile(r"^\s*(wgmma\.wait_group|cp\.async\.(bulk\.)?wait_group|bar\.sync|barrier\.cluster\.wait|"
                   r"@!%\w+ bra \$L_wait_)")
WAIT_LABEL = re.compile(r"^\$L_wait_\d+:")
COPY = re.compile(r"^\s*(@!?%\w+ )?cp\.async\.c[ag]\.")

DELAY = """\t{{
\t.reg .b32 %delay<5>;
\tmov.u32 %delay0, %clock;
\tmov.u32 %delay1, %tid.x;
\tshr.u32 %delay1, %delay1, 5;
\tmad.lo.u32 %delay0, %delay1, 0x9e3779b1, %delay0;
\tmov.u32 %delay2, %ctaid.x;
\tmad.lo.u32 %delay0, %delay2, 0x85ebca77, %delay0;
\tadd.u32 %delay0, %delay0, {site};
\tmul.lo.u32 %delay0, %delay0, 0xc2b2ae3d;
\tshr.u32 %delay1, %delay0, 15;
\txor.b32 %delay0, %delay0, %delay1;
\tmul.lo.u32 %delay0, %delay0, 0x27d4eb2f;
\tshr.u32 %delay3, %delay0, 22;
\tbfe.s32 %delay1, %delay0, 8, 1;
\tand.b32 %delay3, %delay3, %delay1;
\tbfe.s32 %delay1, %delay0, 13, 1;
\tand.b32 %delay3, %delay3, %delay1;
\tnanosleep.u32 %delay3;
\t}}"""

# Waits that a mutation removes. Without the branch, the one try of a wait at an mbarrier remains, and nothing
# depends on its result.
REMOVED = {
    "mbarrier": re.compile(r"^\s*@!%\w+ bra \$L_wait_"),
    "wgmma": re.compile(r"^\s*wgmma\.wait_group"),
    "cp.async": re.compile(r"^\s*cp\.async\.wait_group"),
    "barrier": re.compile(r"^\s*bar\.sync"),
}


def places(lines):
    """The lines before which there is a delay: once for a sequence of copies of cp.async, and before the label of a
    loop that waits."""
    found, copying = [], False
    for number, line in enumerate(lines):
        copies = bool(COPY.match(line))
        if WAIT_LABEL.match(line) or STARTS.match(line) and not (copies and copying):
            found.append(number)
        if WAITS.match(line):
            found.append(number + 1)
        copying = copies
    return sorted(set(found))


def delayed(ptx):
    lines = ptx.split("\n")
    for site, number in reversed(list(enumerate(places(lines), 1))):
        lines[number:number] = DELAY.format(site=(site * 0x61c88647) % 2**32).split("\n")
    return "\n".join(lines)


def waits(ptx, kind):
    """The numbers of the lines with a wait of this kind."""
    return [number for number, line in enumerate(ptx.split("\n")) if REMOVED[kind].match(line)]


def mutated(ptx, kind, which):
    lines = ptx.split("\n")
    del lines[waits(ptx, kind)[which]]
    return "\n".join(lines)
