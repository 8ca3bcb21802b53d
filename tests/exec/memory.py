"""Peak memory of the command: under 16 MB for each of the ten kernels.

The kernel counts a process's peak from before its exec, so what this script itself takes is a floor
to the measure; it is a few MB below the limit.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

LIMIT = 16 << 20


def peak(words):
    """Exit status and peak resident memory, in bytes, of a command."""
    child = os.posix_spawn(words[0], words, os.environ)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


def main():
    arguments = command.parse_arguments(__doc__)
    floor = peak([arguments.lilac, "--version"])[1]
    if floor > LIMIT:
        print("skipped: this script alone takes %.1f MB" % (floor / 1e6))
        sys.exit(command.SKIPPED)
    cases = command.read_cases(arguments.data)
    failures = []
    for name in command.LAUNCHES:
        source = os.path.join(arguments.data, "corpus", name + ".ttir")
        status, size = peak([arguments.lilac, "compile", source, "-o", os.devnull, "--num-warps",
                             str(cases[name]["num_warps"])])
        print("%-24s %5.1f MB" % (name, size / 1e6))
        if status != 0 or size > LIMIT:
            failures.append(name)
    command.finish(failures, len(command.LAUNCHES), "kernels within 16 MB")


if __name__ == "__main__":
    main()
