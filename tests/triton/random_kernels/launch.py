"""One program through Triton's front end, lilac and its simulator, against NumPy."""

import json
import os
import re
import shlex
import subprocess

import numpy as np

from program import expected, signature_of, source_of


def device_rows(lilac):
    """(name, lanes of a warp) of each device that the command knows."""
    done = subprocess.run([lilac, "--list-devices"], stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    return [(row[0], int(row[1])) for row in rows]


class Failure(Exception):
    """`kind` is wrong, trapped, refused or front-end."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def write_inputs(program, folder):
    for b in program.buffers:
        np.save(os.path.join(folder, f"{b.name}.npy"), b.data)


def parameters_of(folder):
    """The kernel's parameters in order. The front end names a parameter after the last variable that
    it was assigned to."""
    with open(os.path.join(folder, "kernel.ttir"), encoding="utf-8") as file:
        header = next(line for line in file if "tt.func public" in line)
    return re.findall(r"[(,] ?%([\w$.-]+): ", header)


def command_of(program, lilac, folder):
    names = parameters_of(folder)
    words = [lilac, "run", "kernel.ttir", "--json", "--threads", "1", "--target", program.device,
             "--num-warps", str(program.warps), "--grid", str(program.grid)]
    values = [f"@{b.name}.npy" for b in program.buffers] + [value for _, value in program.scalars.values()]
    for name, value in zip(names, values):
        words += ["--arg", f"{name}={value}"]
    for name, b in zip(names, program.buffers):
        words += ["--save", f"{name}=after_{b.name}.npy"] if b.is_output else []
    return words


def compare(program, folder):
    wanted, determined = expected(program)
    for b in program.buffers:
        if not determined[b.name].all():
            raise Failure("generator", f"{b.name} has elements that no rule determines")
        if not b.is_output:
            continue
        got = np.load(os.path.join(folder, f"after_{b.name}.npy")).view(b.data.dtype)
        wrong = np.flatnonzero(got != wanted[b.name])
        if len(wrong):
            at = wrong[0]
            raise Failure("wrong", f"{len(wrong)} of {len(got)} elements of {b.name} are wrong; the first is element "
                                   f"{at}: {got[at]}, not {wanted[b.name][at]} (before the launch {b.data[at]})")


def check(program, front_end, lilac, folder):
    """Raises a Failure where anything differs."""
    os.makedirs(folder, exist_ok=True)
    try:
        ttir = front_end.compile(folder, source_of(program), signature_of(program))
    except Exception as problem:  # noqa: BLE001: whatever the front end raises, the generator is to blame
        raise Failure("front-end", f"{type(problem).__name__}: {problem} {problem.__cause__ or ''}") from problem
    with open(os.path.join(folder, "kernel.ttir"), "w", encoding="utf-8") as file:
        file.write(ttir)
    write_inputs(program, folder)
    done = subprocess.run(command_of(program, lilac, folder), cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    if done.returncode != 0:
        kind = "crashed" if done.returncode < 0 else "trapped" if "trap" in done.stderr else "refused"
        raise Failure(kind, f"exit status {done.returncode}\n{done.stderr}")
    counters = json.loads(done.stdout)["counters"]
    if counters["races"]:
        raise Failure("trapped", f"{counters['races']} races\n{done.stderr}")
    compare(program, folder)


def reproducer(program, folder, lilac):
    """What a failure is reported with: the kernel's text and how it is run."""
    text = f"{source_of(program)}\n# in {folder}, with the signature {signature_of(program)}\n"
    if not os.path.exists(os.path.join(folder, "kernel.ttir")):
        return text
    return text + " ".join(shlex.quote(word) for word in command_of(program, lilac, folder))
