"""The rules of tests/support/machine_code.py: a small kernel obeys all of them, and each mutation of its
PTX or SASS violates exactly the rules that are named beside it."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import machine_code  # noqa: E402

PTX = """
.visible .entry k(.param .u64 p)
.reqntid 256
.minnctapersm 1
{
	elect.sync %r10|%p3, 0xffffffff;
$L_loop_0:
	cp.async.wait_group 1;
	bar.sync 0;
	ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r9];
	st.shared.b16 [%r9], %h1;
	fence.proxy.async.shared::cta;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2}, {%r1, %r2, %r3, %r4}, %rd2, 1, 1, 1, 0;
	wgmma.commit_group.sync.aligned;
	cp.async.cg.shared.global [%r5], [%rd3], 16, %r7;
	cp.async.commit_group;
	wgmma.wait_group.sync.aligned 0;
	add.s32 %r6, %r6, 1; // an index
	@%p1 bra.uni $L_loop_0;
	ret;
}
"""

SASS = """
	.text.k:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0004*/                   ULDC.64 UR4, c[0x0][0x208] ;
        /*0008*/                   ULDC.64 UR6, c[0x0][0x210] ;
        /*000c*/                   UMOV UR8, 0x400 ;
.L_x_0:
        /*0010*/                   DEPBAR.LE SB0, 0x1 ;
        /*0020*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0030*/                   LDS.128 R8, [R4] ;
        /*0040*/                   STS.U16 [R4], R2 ;
        /*0050*/                   FENCE.VIEW.ASYNC.S ;
        /*0060*/                   WARPGROUP.ARRIVE ;
        /*0070*/                   HGMMA.64x16x16.F32 R24, R8, gdesc[UR4], R24, gsb0 ;
        /*0080*/              @!PT LDS RZ, [RZ] ;
        /*0090*/                   LDGSTS.E.BYPASS.128 [R5], desc[UR6][R6.64], P0 ;
        /*00a0*/                   LDGDEPBAR ;
        /*00b0*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*00c0*/                   IADD3 R3, R3, 0x1, RZ ;
        /*00d0*/               @P1 BRA `(.L_x_0) ;
        /*00e0*/                   EXIT ;
.L_x_1:
        /*00f0*/                   BRA `(.L_x_1);
"""

LOG = """ptxas info    : Compiling entry function 'k' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers
"""

MMA = "	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};\n"
MMA_F8 = "	mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f1}, {%r1}, {%r2}, {%f1};\n"
HMMA = "        /*0070*/                   HMMA.16816.F32 R24, R8, R12, R24 ;\n"

BEHIND_A = SASS[SASS.index("LDS.128 R8"):SASS.index("IADD3 R3")]  # from the load of A to the end of the loop

# Which text, what is replaced by what, the violated rules.
MUTATIONS = [
    # harmless: other registers, an instruction that is not counted, a comment
    ("sass", "IADD3 R3, R3", "IADD3 R7, R7", set()),
    ("sass", "IADD3 R3, R3, 0x1, RZ ;", "IADD3 R3, R3, 0x1, RZ ;\n        ISETP.GE.AND P1, PT, R8, R3, PT ;",
     set()),
    ("ptx", "// an index", "// wgmma.fence;", set()),
    # messages and registers
    ("log", "ptxas info    : Used", "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
     "instructions are serialized\nptxas info    : Used", {"message"}),
    ("log", "ptxas info    : Used", "ptxas warning : Unresolved\nptxas info    : Used", {"message"}),
    ("log", "0 bytes stack", "8 bytes stack", {"local memory"}),
    ("log", "0 bytes spill loads", "4 bytes spill loads", {"local memory"}),
    ("log", "Used 168", "Used 255", set()),
    ("log", "Used 168 registers", "", {"registers"}),
    ("ptx", ".minnctapersm 1", ".minnctapersm 2", {"registers"}),
    ("ptx", ".reqntid 256", ".reqntid 512", {"registers"}),
    # the kernel
    ("sass", "EXIT", "STL [R1], R2 ;\n        EXIT", {"local memory"}),
    ("sass", "EXIT", "LDL.LU R2, [R1] ;\n        EXIT", {"local memory"}),
    ("sass", "EXIT", "CALL.REL.NOINC `($k$div) ;\n        EXIT", {"call"}),
    ("sass", "       HGMMA", "@P0    HGMMA", {"predicate"}),
    ("ptx", "	ret;", MMA + "	ret;", {"deleted"}),
    ("sass", "ULDC.64 UR6", "ULDC UR6", {"undefined"}),  # the descriptor of B is in UR6 and UR7
    ("sass", "ULDC.64 UR4", "ULDC UR4", set()),
    ("sass", "UMOV UR8, 0x400", "UIADD3 UR8, UR9, 0x1, URZ", {"undefined"}),
    ("sass", "UMOV UR8, 0x400", "UIADD3 UR8, UR8, 0x1, URZ", {"undefined"}),
    ("sass", "`(.L_x_0)", "`(.L_x_1)", {"loops"}),
    # operand A in R8 to R11: until the wait nothing may write it
    ("sass", "LDGDEPBAR", "IADD3 R11, R3, 0x1, RZ ;\n        LDGDEPBAR", {"operand A"}),
    ("sass", "LDGDEPBAR", "LDG.E.64 R10, desc[UR6][R2.64] ;\n        LDGDEPBAR", {"operand A"}),
    ("sass", "LDGDEPBAR", "IADD3 R12, R3, 0x1, RZ ;\n        LDGDEPBAR", set()),
    ("both", "wait", 1, {"operand A"}),  # in flight over the back edge, where the next iteration loads A
    # ... nor may what is behind the wait, if the iteration does not load them
    ("sass", BEHIND_A, BEHIND_A.replace("LDS.128 R8", "LDS.128 R12") + "IADD3 R8, R3, 0x1, RZ ;\n        ", {"stale"}),
    ("sass", BEHIND_A, BEHIND_A.replace("LDS.128 R8", "LDS.128 R12"), set()),
    ("sass", BEHIND_A, BEHIND_A + "IADD3 R8, R3, 0x1, RZ ;\n        ", set()),
    # the loop
    ("sass", "R24, R8, gdesc[UR4], R24, gsb0 ;", "R24, R8, gdesc[UR4], R24 ;\n"
     "        HGMMA.64x16x16.F32 R24, R8, gdesc[UR4], R24, gsb0 ;", {"products"}),
    ("sass", "HGMMA.64x16x16.F32 R24, R8, gdesc[UR4], R24, gsb0 ;\n",
     "HGMMA.64x16x16.F32 R24, R8, gdesc[UR4], R24, gsb0 ;\n"
     "        HGMMA.64x16x16.F32 R24, R8, gdesc[UR4], R24, gsb0 ;\n", {"products", "groups"}),
    ("sass", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n"
     "        WARPGROUP.DEPBAR.LE gsb0, 0x0 ;", {"waits"}),
    ("sass", "WARPGROUP.ARRIVE ;", "WARPGROUP.ARRIVE ;\n        WARPGROUP.ARRIVE ;", {"fences"}),
    ("sass", "WARPGROUP.ARRIVE ;", "", set()),
    ("sass", "SB0, 0x1", "SB0, 0x0", {"copy waits"}),
    ("sass", "LDGDEPBAR", "LDGDEPBAR ;\n        LDGDEPBAR", {"copy groups"}),
    ("sass", "BAR.SYNC.DEFER_BLOCKING 0x0 ;", "BAR.SYNC.DEFER_BLOCKING 0x0 ;\n        BAR.SYNC 0x0 ;",
     {"barriers"}),
    ("sass", "LDGSTS.E.BYPASS.128", "LDGSTS.E.64", {"copies"}),
    ("sass", "LDGSTS.E.BYPASS.128", "LDGSTS.E.128", {"copies"}),
    ("ptx", "cp.async.cg.shared.global [%r5], [%rd3], 16", "cp.async.ca.shared.global [%r5], [%rd3], 4",
     {"copies"}),
    ("sass", "LDS.128 R8, [R4] ;", "LDS.64 R8, [R4] ;\n        LDS.64 R10, [R4+0x8] ;", {"shared"}),
    ("sass", "STS.U16", "STS", {"shared"}),
    ("sass", "@!PT LDS RZ", "@!P0 LDS R9", {"shared", "operand A"}),
    ("ptx", "ld.shared.v4.b32 {", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {", {"shared"}),
    ("sass", "FENCE.VIEW.ASYNC.S", "MEMBAR.ALL.CTA", {"proxy fences"}),
    ("sass", "IADD3 R3, R3, 0x1, RZ", "R2UR UR4, R3", {"uniform"}),
    ("sass", "IADD3 R3, R3, 0x1, RZ", "@P2 R2UR UR4, R3", set()),
    ("sass", "IADD3 R3, R3, 0x1, RZ", "@UP0 UTMALDG.2D [UR8], [UR4]", {"tensor copies"}),
    ("sass", "IADD3 R3, R3, 0x1, RZ", "@P2 BRA.U.ANY `(.L_x_9)", {"lanes"}),
    # a test of an mbarrier is no loop, and neither is the branch back from where ptxas places it again
    ("sass", ".L_x_1:\n", ".L_x_1:\n        SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R3 ;\n"
     "        @!P1 BRA `(.L_x_1) ;\n        BRA `(.L_x_0) ;\n", set()),
    ("sass", "IADD3 R3, R3, 0x1, RZ ;", "IADD3 R3, R3, 0x1, RZ ;\n" * 1000, {"size", "overlap"}),
    # work that the PTX has between the product and the wait: ptxas moved it behind the wait
    ("ptx", "wgmma.wait_group", "add.s32 %r6, %r6, 1;\n" * 12 + "wgmma.wait_group", {"overlap"}),
]


def mutated(texts, which, old, new):
    texts = dict(texts)
    if which == "both":  # the number of a wait for products
        which, old, new = "ptx", "wgmma.wait_group.sync.aligned 0", "wgmma.wait_group.sync.aligned %d" % new
        texts["sass"] = texts["sass"].replace("gsb0, 0x0", "gsb0, 0x%s" % new[-1])
    if texts[which].count(old) != 1:
        raise AssertionError("'%s' occurs %d times" % (old, texts[which].count(old)))
    texts[which] = texts[which].replace(old, new)
    return texts


def violated(texts):
    found, _ = machine_code.check_log(texts["log"], texts["ptx"])
    found = found + machine_code.check_kernel(machine_code.Program(texts["ptx"]),
                                              machine_code.Program(texts["sass"]))
    return {violation.rule for violation in found}


def main():
    command.parse_arguments(__doc__)
    texts = {"ptx": PTX, "sass": SASS, "log": LOG}
    mma = [line if "wgmma" not in line else MMA.strip() if "mma_async" in line else ""
           for line in PTX.splitlines()]
    hmma = [HMMA if "HGMMA" in line else line for line in SASS.splitlines() if "WARPGROUP" not in line]
    synchronous = {"ptx": "\n".join(mma), "sass": "\n".join(hmma), "log": LOG}
    converted = dict(synchronous, ptx=synchronous["ptx"].replace(MMA.strip(), MMA_F8.strip()))
    cases = [("unchanged", texts, set()), ("mma.sync", synchronous, set()),
             ("mma.sync of 8-bit floats, one product", converted, {"products", "deleted"}),
             ("mma.sync of 8-bit floats, two products",
              dict(converted, sass=synchronous["sass"].replace(HMMA, HMMA * 2)), set())]
    cases += [("%s: %s -> %s" % (which, old, str(new)[:80]), mutated(texts, which, old, new), rules)
              for which, old, new, rules in MUTATIONS]
    failures = []
    for name, case, rules in cases:
        found = violated(case)
        if found != rules:
            failures.append(name)
            print("%s\n    violates %s, expected %s" % (name, sorted(found), sorted(rules)))
    provoked = set().union(*[rules for _, _, rules in cases])
    failures += ["no case violates the rule '%s'" % rule for rule in machine_code.RULES
                 if rule not in provoked]
    command.finish(failures, len(cases), "cases")


if __name__ == "__main__":
    main()
