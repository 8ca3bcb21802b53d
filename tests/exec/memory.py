"""Peak memory of the command: each of the ten kernels compiles in an address space of 16 MB.

All that a process can touch lies in its address space (program, libraries, heap and stack), so this
bounds its peak from above.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

LIMIT = 16 * 1000 * 1000


def run_within(bytes, words):
    """Exit status of a command in an address space of so many bytes, and its standard error."""
    script = "ulimit -v %d && exec \"$@\"" % (bytes // 1024)
    done = subprocess.run(["sh", "-c", script, "sh"] + words, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, universal_newlines=True, errors="replace")
    return done.returncode, done.stderr


def main():
    arguments = command.parse_arguments(__doc__)
    if run_within(LIMIT // 16, [arguments.lilac, "--version"])[0] == 0:
        print("skipped: this system does not limit address spaces")
        sys.exit(command.SKIPPED)
    cases = command.read_cases(arguments.data)
    failures = []
    for name in command.LAUNCHES:
        source = os.path.join(arguments.data, "corpus", name + ".ttir")
        status, errors = run_within(LIMIT, [arguments.lilac, "compile", source, "-o", os.devnull,
                                            "--num-warps", str(cases[name]["num_warps"])])
        if status != 0:
            failures.append(name)
            print("%-24s FAILED: exit status %d\n%s" % (name, status, errors))
    command.finish(failures, len(command.LAUNCHES), "kernels within 16 MB")


if __name__ == "__main__":
    main()
