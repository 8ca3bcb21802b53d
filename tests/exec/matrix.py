"""Matrix products for Hopper, written by hand in SIMT IR, on the simulator.

The four kernels of tests/support/matrix_kernels.py give the right product with no finding, for several
sizes and numbers of stages. Each of a list of faults in them is reported, with the places of both
instructions: a wait or barrier that is missing, a ring that is too small, a fence that is missing, a
wrong parity, count or number of bytes, a wrong place in shared memory, a wrong descriptor.
"""

import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
from matrix_kernels import ROW_GROUP, cp_async, specialized  # noqa: E402
from matrix_launches import Launches, reports  # noqa: E402

RIGHT = [("cp_async", (64, 64, 64), 4), ("cp_async", (128, 64, 320), 3), ("cp_async", (64, 128, 512), 6),
         ("tensor_map", (64, 64, 64), 4), ("tensor_map", (128, 64, 320), 2), ("tensor_map", (64, 128, 512), 5),
         ("specialized", (128, 64, 64), 4), ("specialized", (256, 64, 320), 2), ("specialized", (128, 128, 512), 3),
         ("epilogue", (64, 64, 64), 4), ("epilogue", (128, 64, 320), 3), ("epilogue", (64, 128, 512), 4)]


def without(line, count=1, last=False):
    """Removes the first (or last) instruction that matches."""
    def change(text):
        lines = text.split("\n")
        found = [i for i, one in enumerate(lines) if re.match(r"\s*" + line, one)]
        for i in sorted(found[-count:] if last else found[:count], reverse=True):
            del lines[i]
        return "\n".join(lines)
    return change


def replace(before, after, count=1):
    return lambda text: re.sub(before, after, text, count=count)


def in_loop(change):
    """Applies a change to the text from the first loop on."""
    return lambda text: text[:text.index(" = loop ")] + change(text[text.index(" = loop "):])


def constant(text, value):
    """The name of a constant of the text, which is added if it has none."""
    found = re.search(r"(%%\w+) = const %d : i32" % value, text)
    if found:
        return text, found.group(1)
    head = text.index(" = const ")
    start = text.rindex("\n", 0, head) + 1
    return text[:start] + "    %%added = const %d : i32\n" % value + text[start:], "%added"


def with_constant(pattern, value, count=1):
    """Replaces the name after the pattern by that of the constant."""
    def change(text):
        text, name = constant(text, value)
        return re.sub("(" + pattern + r")%\w+", lambda m: m.group(1) + name, text, count=count)
    return change


def after(start, change):
    """Applies a change behind the first occurrence of `start`."""
    return lambda text: text[:text.index(start)] + change(text[text.index(start):])


def misaligned(text):
    """Shared memory begins 512 bytes further on than the swizzle's pattern."""
    text, name = constant(text, 512)
    bytes_of = int(re.search(r"shared (\d+)", text).group(1))
    text = text.replace("shared %d" % bytes_of, "shared %d" % (bytes_of + 512))
    return re.sub(r"(%\w+) = shared_base : i32", r"%%base = shared_base : i32\n    \1 = add %%base, %s : i32" % name, text, count=1)


def misaligned_b(text):
    """B's tiles begin 512 bytes further on than the swizzle's pattern."""
    for before, behind in (("const 8192 : i32", "const 8704 : i32"), ("const 16384 : i32", "const 17408 : i32"), ("shared 65536", "shared 69632")):
        text = text.replace(before, behind)
    return text


SWIZZLED, STRIDE, ONE = 1 << 62, ROW_GROUP >> 4, 1
# kernel, what is wrong, the change of the text, ids of which one must be reported, places named
WRONG = [
    ("cp_async", "no wait for the copies", in_loop(without(r"cp\.async\.wait \{")), {"copy-in-flight"}, 2),
    ("cp_async", "no barrier behind the wait", in_loop(without("barrier")), {"shared-race"}, 2),
    ("cp_async", "a ring that is one buffer too small", lambda _: cp_async(4, ahead=3), {"wgmma-operand-changed", "shared-race"}, 2),
    ("cp_async", "no wait for the products in the loop", in_loop(without(r"wgmma\.wait")), {"wgmma-operand-changed", "shared-race"}, 2),
    ("cp_async", "one group may be incomplete at the end", after("cp.async.wait_all", replace("groups = 0", "groups = 1")), {"wgmma-register"}, 2),
    ("cp_async", "no fence", without(r"wgmma\.fence"), {"missing-wgmma-fence"}, 1),
    ("cp_async", "no commit", without(r"wgmma\.commit"), {"wgmma-not-committed"}, 2),
    ("cp_async", "base of the swizzle", misaligned_b, {"swizzle-base"}, 2),
    ("cp_async", "leading and stride offset exchanged", replace(str(SWIZZLED | STRIDE << 32 | ONE << 16), str(SWIZZLED | ONE << 32 | STRIDE << 16)), {"matrix-descriptor"}, 2),
    ("tensor_map", "no wait for a full buffer", in_loop(without(r"mbarrier\.wait")), {"copy-in-flight"}, 2),
    ("tensor_map", "the other parity", with_constant(r"%parity\d+ = ", 1), {"copy-in-flight"}, 2),
    ("tensor_map", "16 bytes more expected", with_constant(r"mbarrier\.expect \[[^]]*\], %\w+, \(", 16400, 9), {"deadlock"}, 2),
    ("tensor_map", "16 bytes less expected", with_constant(r"mbarrier\.expect \[[^]]*\], %\w+, \(", 16368, 9), {"mbarrier-bytes"}, 2),
    ("tensor_map", "one arrival more", with_constant(r"mbarrier\.init \[[^]]*\], %\w+, \(", 2, 4), {"deadlock"}, 2),
    ("tensor_map", "no barrier before the refill", in_loop(without("barrier")), {"shared-race"}, 2),
    ("tensor_map", "no wait for the products in the loop", in_loop(without(r"wgmma\.wait")), {"wgmma-operand-changed", "shared-race"}, 2),
    ("tensor_map", "no barrier behind the initialisation", without("barrier$"), {"shared-race"}, 2),
    ("tensor_map", "base of the swizzle", misaligned, {"swizzle-base"}, 1),
    ("specialized", "a consumer does not wait for a full buffer", after("} warps 4", without(r"mbarrier\.wait")), {"copy-in-flight"}, 2),
    ("specialized", "the producer does not wait for an empty buffer", without(r"mbarrier\.wait"), {"wgmma-operand-changed", "mbarrier-count", "shared-race", "copy-in-flight"}, 2),
    ("specialized", "a buffer is released while it is read", lambda _: specialized(4, early=True), {"wgmma-operand-changed", "shared-race"}, 2),
    ("specialized", "no wait for the products", in_loop(without(r"wgmma\.wait \{")), {"wgmma-operand-changed", "shared-race"}, 2),
    ("specialized", "one arrival more for an empty buffer", replace("const 8 : i32", "const 9 : i32"), {"deadlock"}, 2),
    ("specialized", "one arrival less for an empty buffer", replace("const 8 : i32", "const 7 : i32"), {"wgmma-operand-changed", "shared-race", "mbarrier-count"}, 2),
    ("specialized", "buffers are not released", without(r"mbarrier\.arrive", 2), {"deadlock"}, 2),
    ("epilogue", "no fence of the async proxy", without(r"fence\.proxy_async"), {"missing-proxy-fence"}, 2),
    ("epilogue", "no barrier behind the fence", after("fence.proxy_async", without("barrier")), {"missing-proxy-fence"}, 2),
    ("epilogue", "no wait for the stores", without(r"bulk\.wait"), {"copy-not-awaited"}, 1),
    ("epilogue", "no commit of the stores", without(r"bulk\.commit"), {"copy-not-awaited"}, 1),
]


def main():
    arguments = command.parse_arguments(__doc__)
    folder = tempfile.mkdtemp()
    failures = []
    try:
        launches = Launches(arguments.lilac, folder)
        for kernel, shape, stages in RIGHT:
            done = launches.run(kernel, shape, stages)
            if done.returncode != 0 or reports(done):
                failures.append("%s of %s" % (kernel, shape))
                print("%s FAILED\n%s%s" % (failures[-1], done.stdout, done.stderr))
        for kernel, what, change, ids, places in WRONG:
            done = launches.run(kernel, (128, 64, 512), 4, change)
            found = reports(done)
            if not any(id in ids and named >= places for id, named in found):
                failures.append("%s: %s" % (kernel, what))
                print("%s NOT FOUND: %s\n%s%s" % (failures[-1], found, done.stdout[-800:], done.stderr[:2000]))
    finally:
        shutil.rmtree(folder)
    command.finish(failures, len(RIGHT) + len(WRONG), "kernels and faults")


if __name__ == "__main__":
    main()
