#!/usr/bin/env python3
"""Random integer kernels in Triton's language, on the simulator of every device, against NumPy.

usage: random_kernels.py --lilac COMMAND --source FOLDER --work FOLDER [--count N] [--first SEED] …

The kernel of seed k is compiled for row k (modulo their number) of the table of devices,
src/arch/devices.def. With LILAC_TEST_LONG=1 in the environment there are 5,000 kernels; LILAC_TEST_SEED=N
runs one. A failing kernel is reduced and printed with the command that runs it. NumPy and Triton are
needed. Where they are missing, the environment of the other tests of this folder is used; the test
is skipped if that environment cannot be made.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_FAILURES = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lilac", required=True, help="the command to test")
    parser.add_argument("--source", required=True, help="the root of the source tree")
    parser.add_argument("--work", required=True, help="a folder for files")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--every", type=int, default=1, help="the step from one seed to the next, to divide a run among processes")
    parser.add_argument("--device", help="this device only")
    parser.add_argument("--keep", action="store_true", help="do not reduce failing kernels, and do not stop after five")
    arguments = parser.parse_args()
    if os.environ.get("LILAC_TEST_LONG"):
        arguments.count = 5000
    if os.environ.get("LILAC_TEST_SEED"):
        arguments.first, arguments.count = int(os.environ["LILAC_TEST_SEED"]), 1
    arguments.lilac, arguments.work = os.path.abspath(arguments.lilac), os.path.abspath(arguments.work)
    return arguments


def in_environment():
    """Runs this script again in the environment of run.py."""
    sys.path.insert(0, os.path.join(HERE, "..", "support"))
    import python_package
    import run

    work = os.path.join(os.path.abspath(sys.argv[sys.argv.index("--work") + 1]), "..")
    python = python_package.environment(os.path.join(work, f"venv-{run.VERSION}"), run.NEEDED)
    done = subprocess.run([python, "-B", os.path.abspath(__file__), *sys.argv[1:]],
                          env=dict(os.environ, LILAC_RANDOM_KERNELS_HERE="1"))
    sys.exit(done.returncode)


class Session:
    def __init__(self, arguments):
        from frontend import FrontEnd
        from launch import device_rows

        self.arguments = arguments
        self.front_end = FrontEnd()
        self.rows = device_rows(arguments.lilac)
        if arguments.device:
            self.rows = [row for row in self.rows if row[0] == arguments.device]
        self.failures = []

    def program(self, seed):
        from generate import generate

        device, lanes = self.rows[seed % len(self.rows)]
        return generate(seed, device, lanes)

    def failure_of(self, program, folder):
        from launch import Failure, check

        try:
            check(program, self.front_end, self.arguments.lilac, folder)
        except Failure as failure:
            return failure
        return None

    def one(self, seed):
        program = self.program(seed)
        folder = os.path.join(self.arguments.work, f"{seed}")
        failure = self.failure_of(program, folder)
        if failure is None:
            shutil.rmtree(folder)
            return
        self.failures.append(seed)
        self.report(seed, program, failure)

    def report(self, seed, program, failure):
        from launch import reproducer
        from shrink import shrink

        folder = os.path.join(self.arguments.work, f"{seed}")
        if not self.arguments.keep:
            def fails(smaller):
                other = self.failure_of(smaller, folder)
                return other is not None and other.kind == failure.kind

            program = shrink(program, fails)
            failure = self.failure_of(program, folder) or failure
        print(f"seed {seed} ({program.device}, {program.warps} warps): {failure.kind}: {failure}")
        print(reproducer(program, folder, self.arguments.lilac), flush=True)


def main():
    arguments = parse_arguments()
    if not os.environ.get("LILAC_RANDOM_KERNELS_HERE"):
        try:
            import numpy  # noqa: F401
            import triton  # noqa: F401
        except ImportError:
            in_environment()
    sys.path.insert(0, os.path.join(HERE, "random_kernels"))
    os.makedirs(arguments.work, exist_ok=True)
    session = Session(arguments)
    began, tried = time.monotonic(), 0
    for seed in range(arguments.first, arguments.first + arguments.count, arguments.every):
        session.one(seed)
        tried += 1
        if len(session.failures) >= MOST_FAILURES and not arguments.keep:
            break
    print(f"{tried} kernels on {len(session.rows)} devices, {len(session.failures)} failed"
          f"{': seeds ' + ', '.join(map(str, session.failures)) if session.failures else ''}; "
          f"{time.monotonic() - began:.0f} s")
    sys.exit(1 if session.failures else 0)


if __name__ == "__main__":
    main()
