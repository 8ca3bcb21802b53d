"""Random layouts of every kind: lilac's linear layout is Triton's, and what lilac prints is what it read.

Triton runs in a process of its own (layout_oracle.py), because its checks are assertions that end it.
A type that Triton refuses is replaced by another draw, so that the number of compared layouts is exact.
LILAC_TEST_LONG=1 compares 6,000 layouts; LILAC_TEST_SEED changes the draws.
"""

import json
import os
import random
import subprocess
import sys

import pytest
import random_layouts
import triton

import lilac

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARED = 6000 if os.environ.get("LILAC_TEST_LONG") else 300
SEED = int(os.environ.get("LILAC_TEST_SEED", "1"))

pytestmark = pytest.mark.skipif(not triton.__version__.startswith("3.6."),
                                reason=f"the reference is Triton 3.6, not {triton.__version__}")


def ask(types):
    """Triton's layouts of the types, as bases; None where it refuses or aborts."""
    answers = []
    while len(answers) < len(types):
        asked = types[len(answers):]
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "layout_oracle.py")], text=True,
                              input="\n".join(asked) + "\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        lines = done.stdout.splitlines()
        assert done.returncode != 0 or len(lines) == len(asked), done.stderr
        answers += [json.loads(line).get("bases") for line in lines]
        if len(answers) < len(types):
            assert "ImportError" not in done.stderr and "SyntaxError" not in done.stderr, done.stderr
            answers.append(None)
    return answers


def bases_of(layout):
    return {name: [list(basis) for basis in bases] for name, bases in layout.bases.items()}


def as_loaded(bases):
    """Tensor memory as a load of it shows it: see layout_oracle.py."""
    row = [list(basis) for basis in bases["row"]]
    column = [list(basis) for basis in bases["col"] if any(basis)]
    if not any(row[4]) and column:
        row[4] = column.pop()
    return {"row": row, "col": column}


def difference(text, expected):
    """What is wrong with lilac's layout of a type; None when nothing is."""
    try:
        layout = lilac.Layout.from_triton(text)
    except lilac.LayoutError as problem:
        return f"refused: {problem}"
    made = bases_of(layout)
    if "#ttng." in text:
        made = as_loaded(made)
    if made != expected:
        return f"lilac {made}"
    if layout.in_bits == 0:
        return None  # a layout without bases is printed without its rank
    printed = str(layout)
    shape = list(layout.out_dims.values())
    again = lilac.Layout.from_triton(printed, shape)
    return None if again == layout else f"{printed} is read as {again}"


@pytest.mark.parametrize("kind", random_layouts.KINDS)
def test_random_layouts(kind):
    wanted = -(-COMPARED // len(random_layouts.KINDS))
    draws = random.Random(f"{kind} {SEED}")
    compared, drawn, wrong = 0, 0, []
    while compared < wanted:
        types = [random_layouts.draw(draws, kind) for _ in range(wanted - compared)]
        drawn += len(types)
        assert drawn < 4 * wanted + 50, f"Triton takes {compared} of {drawn} only"
        for text, expected in zip(types, ask(types)):
            if expected is None:
                continue
            compared += 1
            problem = difference(text, expected)
            if problem is not None:
                wrong.append(f"{text}\n  Triton {expected}\n  {problem}")
    assert not wrong, f"{len(wrong)} of {compared} differ\n" + "\n".join(wrong[:5])
    print(f"{kind}: {compared} of {compared}")
