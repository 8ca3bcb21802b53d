"""The library in the page answers what the native command answers, byte by byte."""

import json
import os
import random

from conftest import CORPUS, SOURCE, lilac

RUN = """(questions) => questions.map(([words, text]) => {
  const { status, out, err } = globalThis.lilac.library.command.run(words, text);
  return [status, out, err];
})"""


def compare(page, questions, same=lambda answer: answer):
    for first in range(0, len(questions), 50):
        part = questions[first:first + 50]
        answers = page.evaluate(RUN, part)
        for (words, text), answer in zip(part, answers):
            assert same(answer) == same(lilac(*words, text=text)), words
    return len(questions)


def recorded_types():
    """The types of the recorded layouts: named layouts of all kinds."""
    types = []
    with open(os.path.join(SOURCE, "tests", "data", "goldens", "layouts.jsonl"), encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            types.append(record["type"] if "type" in record else None)
    return [kind for kind in types if kind]


def test_layouts(page):
    types = random.Random(17).sample(recorded_types(), 500)
    assert compare(page, [[["layout", "--json", kind], ""] for kind in types]) == 500
    compare(page, [[["layout", "--as", "cute", kind], ""] for kind in types[:50]])


def test_kernels(page):
    """TTIR and TTGIR of the corpus, to PTX, to tile IR, and explained."""
    questions = []
    for name in sorted(os.listdir(CORPUS)):
        if name.endswith((".ttir", ".ttgir")):
            with open(os.path.join(CORPUS, name), encoding="utf-8") as file:
                text = file.read()
            questions += [[["compile", "-", "--emit", form], text] for form in ("ptx", "tile")]
            questions.append([["explain", "-", "--json"], text])
    assert compare(page, questions) >= 3 * 50


def test_plans(page):
    """Conversions with their simulation, swizzles and bank conflicts."""
    with open(os.path.join(SOURCE, "tests", "data", "conversions.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if "\t" in line]
    pairs = [line[-2:] for line in lines if line[-1].startswith("tensor") and line[-2].startswith("tensor")]
    pairs = random.Random(3).sample(pairs, min(20, len(pairs)))
    assert pairs
    compare(page, [[[command, *pair], ""] for pair in pairs for command in ("convert", "swizzle")])


def test_diagnostics(page):
    compare(page, [
        [["layout", "tensor<16x16xf32, #ttg.blocked<{sizePerThread = [2]}>>"], ""],
        [["layout", "nothing"], ""],
        [["compile", "-"],
         "module {\n  tt.func public @k(%p: !tt.ptr<f32>) {\n    %v = tt.lod %p : f32\n    tt.return\n  }\n}\n"],
        [["compile"], ""],
        [["convert", "--vector", "3", "a", "b"], ""],
    ])


def test_no_files(page):
    status, out, err = page.evaluate(RUN, [[["compile", "/etc/hostname"], ""]])[0]
    assert (status, out) == (1, "") and "no files" in err
