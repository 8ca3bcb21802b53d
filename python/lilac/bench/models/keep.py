"""The files of measured kernels, for a study without a GPU (`--keep FOLDER`).

    FOLDER/MODEL/NUMBER.json                            the row, the options of each configuration, the grid, the parameters
    FOLDER/MODEL/NUMBER.CONFIGURATION.ttir              what both compilers compile
    FOLDER/MODEL/NUMBER.CONFIGURATION.COMPILER.ptx
    FOLDER/MODEL/NUMBER.py                              the generated file, where there is one

A parameter is {name, same, value}, or of a tensor {name, same, size, stride, dtype, remainder} and the least and the
greatest value, mean and deviation of its elements. `same` is the first parameter that is the same tensor.
"""

import contextlib
import inspect
import json
import os

from ..runner import NAMES
from .capture import ALIGNMENT


class _Seen(Exception):
    """Ends a launch before the driver is called."""


@contextlib.contextmanager
def _intercepted(launcher):
    """In this context the launcher's call of the driver's launcher is only recorded."""
    scope, found = launcher.__globals__, []

    def record(*values, **more):
        found.extend(values)
        raise _Seen

    before, scope["runner"] = scope["runner"], record
    try:
        yield found
    finally:
        scope["runner"] = before


def grid(launcher, args, options):
    """The grid of a launch."""
    if hasattr(launcher, "grid"):
        return list(launcher.grid)
    with _intercepted(launcher) as found, contextlib.suppress(_Seen):
        launcher(*args, **options, stream=0)
    return [int(size) for size in found[:3]]


def described(torch, value):
    if not isinstance(value, torch.Tensor):
        return {"value": value}
    found = {"size": list(value.size()), "stride": list(value.stride()), "dtype": str(value.dtype),
             "remainder": value.data_ptr() % ALIGNMENT}
    if value.numel():
        numbers = value.double()
        found.update(least=numbers.min().item(), greatest=numbers.max().item(), mean=numbers.mean().item(),
                     deviation=numbers.std(correction=0).item())
    return found


def keep(torch, folder, number, entry, args):
    """Writes the files of one kernel. `args` are the arguments of its launch, on the device."""
    folder = os.path.join(folder, entry.row["model"])
    os.makedirs(folder, exist_ok=True)
    stem, written, configurations = f"{number:03}", set(), []
    same = {id(value): place for place, value in reversed(list(enumerate(args)))}
    for place, key in enumerate(entry.best["triton"]):
        values, warps, stages = key
        launcher, kernel = entry.made["triton"][key]
        configurations.append({"values": dict(values), "num_warps": warps, "num_stages": stages,
                               "grid": grid(launcher, args, entry.launch.options), "name": kernel.metadata.name,
                               "signature": {str(k): str(v) for k, v in kernel.src.signature.items()},
                               "ms": {name: entry.best[name].get(key) for name in NAMES}})
        for name in NAMES:
            if key not in entry.made[name]:
                continue
            asm = entry.made[name][key][1].asm
            if place not in written and "ttir" in asm:
                written.add(place)
                _write(folder, f"{stem}.{place}.ttir", asm["ttir"])
            if "ptx" in asm:
                _write(folder, f"{stem}.{place}.{name}.ptx", asm["ptx"])
    if isinstance(entry.launch.source, str):
        names = list(inspect.signature(launcher).parameters)
        with open(entry.launch.source, encoding="utf-8") as file:
            _write(folder, stem + ".py", file.read())
    else:
        names = launcher.tensor_names()
    parameters = [{"name": names[place], **described(torch, value), "same": same[id(value)]}
                  for place, value in enumerate(args)]
    _write(folder, stem + ".json", json.dumps({"row": entry.row, "configurations": configurations,
                                               "parameters": parameters}, indent=1, default=str))


def _write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
