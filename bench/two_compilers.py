"""What programs of bench/ have in common that call whole programs under both compilers: each compiler has a process and
caches of its own, and a process prints its measurements as JSON, on the last line."""

import argparse
import json
import os
import statistics
import subprocess
import sys

COMPILERS = ("triton", "lilac")
WRITES = 16  # of 256 MiB before a launch: 1.2 ms, and the host takes 0.1 to 0.6 ms for a launch


def clock(torch, function, launches):
    """The median of the device's times for a call, in microseconds. The cache is flushed before each call, for longer than
    the host takes for it."""
    flushed = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(launches + 5):
        for _ in range(WRITES):
            flushed.zero_()
        begin.record()
        function()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[5:])


def parser_of(description):
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--launches", type=int, default=40)
    parser.add_argument("--json", metavar="FILE", help="where the times go")
    parser.add_argument("--compiler", choices=COMPILERS, help="measure under this compiler alone, and print JSON")
    return parser


def enable(compiler):
    """In the process of a compiler, before it compiles anything."""
    if compiler == "lilac":
        import lilac.triton

        lilac.triton.enable()


def run(program, compiler, caches, *words):
    """What the program measures under a compiler. `caches`: a folder for the caches of both."""
    folders = {name: os.path.join(caches, compiler, name) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    done = subprocess.run([sys.executable, program, "--compiler", compiler, *words], capture_output=True, text=True,
                          env={**os.environ, **folders})
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])
