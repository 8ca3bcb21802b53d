"""Whether two compilers' results of one kernel agree, and what rounding does to them.

The tolerance compares each element with its own magnitude and with the root mean square of its tensor. It is too
strict for a result that consists of rounding errors, such as the mean of a layer norm's output. A pair of results
beyond the tolerance is therefore compared with the kernel's condition:

    R              Triton's result with the recorded arguments
    R'             the same, each floating-point number of the arguments moved by -1, 0 or 1 unit in the last place
    change         max |R' - R| and rms (R' - R) of each tensor, the largest of DRAWS draws
    excess         max and rms of the elements' differences beyond the tolerance
    passes         excess <= MULTIPLE · change, in both norms

The recorded arguments are themselves rounded to this precision, so a result that a draw changes by `change` is
known no better. MULTIPLE covers the rounding of the operations inside the kernel, which no draw moves. The root mean
square keeps a few ill-conditioned elements from excusing all others. Integers and booleans have no distance: for
them the measure of a change is the number of elements that differ.
"""

import torch

from .capture import copies, memory

# Differences that reassociated sums of these types may have, relative to the root mean square of the result.
TOLERANCE = {"float64": 1e-10, "float32": 2e-3, "float16": 3e-2, "bfloat16": 1e-1}
DRAWS, MULTIPLE = 4, 16
BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def tolerance_of(dtype):
    return TOLERANCE.get(str(dtype).rpartition(".")[2], 0.25)


def scale_of(value):
    """The root mean square of the finite elements; 1 if there are none."""
    finite = value.isfinite()
    count = int(finite.sum())
    return float((torch.where(finite, value, 0.0).square().sum() / count).sqrt()) if count else 1.0


def distances(a, b):
    """(|a - b|, what the tolerance allows) of each element; the distance is infinite where only one is finite."""
    x, y = a.double(), b.double()
    same = (x == y) | (x.isnan() & y.isnan())
    found = torch.where(same, 0.0, torch.where(x.isfinite() & y.isfinite(), (x - y).abs(), float("inf")))
    return found, tolerance_of(a.dtype) * (torch.where(y.isfinite(), y.abs(), 0.0) + scale_of(y))


def difference(a, b):
    """The largest difference of two tensors over the tolerance: above 1 they differ."""
    if torch.equal(a, b):
        return 0.0
    if not a.is_floating_point():
        return float("inf")
    found, allowed = distances(a, b)
    return float(torch.where(found == 0, found, found / allowed).max())


def norms(value):
    """(maximum, root mean square) of numbers that are not negative."""
    return float(value.max()), float(value.square().mean().sqrt())


def change(a, b):
    """The norms of a - b; of integers, twice the number of elements that differ."""
    if torch.equal(a, b):
        return 0.0, 0.0
    if not a.is_floating_point():
        return (float((a != b).sum()),) * 2
    return norms(distances(a, b)[0])


def excess(a, b):
    """The norms of the part of a - b beyond the tolerance."""
    if torch.equal(a, b) or not a.is_floating_point():
        return change(a, b)
    found, allowed = distances(a, b)
    return norms(torch.where(found > allowed, found - allowed, 0.0))


def perturb(value, generator):
    """Moves each finite number other than zero by -1, 0 or 1 unit in the last place, in place. Zeros stay: they are
    mostly exact, as in masks and padding."""
    flat = memory(value)
    bits = flat.view(BITS[flat.element_size()])
    step = torch.randint(-1, 2, bits.shape, generator=generator, device=bits.device, dtype=bits.dtype)
    moved = (bits + step).view(flat.dtype)
    flat.copy_(torch.where((flat != 0) & flat.isfinite() & moved.isfinite(), moved, flat))


def perturbed(args, seed):
    """Copies of the arguments, all floating-point tensors perturbed."""
    made = copies(args)
    generators = {}
    for one in {id(one): one for one in made}.values():
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.element_size() in BITS and one.numel():
            generator = generators.setdefault(one.device, torch.Generator(one.device).manual_seed(seed))
            perturb(one, generator)
    return made


def over(found, allowed):
    """found / allowed; infinite where this is not a number."""
    if found == 0:
        return 0.0
    return found / allowed if 0 < allowed < float("inf") else float("inf")


def rounding(run, args, ours, theirs):
    """What rounding explains of the difference between `ours` and `theirs`: a dict for the row, in which `excess`
    is at most 1 if rounding explains all of it. `run(arguments)` returns Triton's results for these arguments, which
    it may overwrite."""
    changes = [(0.0, 0.0)] * len(theirs)
    for seed in range(DRAWS):
        drawn = run(perturbed(args, seed))
        changes = [tuple(map(max, old, change(a, b))) for old, a, b in zip(changes, drawn, theirs)]
    worst = {"excess": 0.0, "difference": 0.0, "change": 0.0}
    for a, b, allowed in zip(ours, theirs, changes):
        used = max(over(found, MULTIPLE * most) for found, most in zip(excess(a, b), allowed))
        if used > worst["excess"]:
            worst = {"excess": used, "difference": change(a, b)[0], "change": allowed[0]}
    return {**worst, "draws": DRAWS, "multiple": MULTIPLE}
