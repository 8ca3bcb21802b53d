"""Executes the Python examples of the documentation: every ```pycon block of the given pages.

The blocks of a page are one session. Lines of output are compared by doctest, where "..." matches any
text, and may be blank. tests/python runs this program where the package is
installed; by hand: python3 tests/docs/python_examples.py [PAGE…]
"""

import doctest
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = [os.path.join(ROOT, "docs", name) for name in ("layouts.md", "python.md")]
BLOCK = re.compile(r"```pycon\n(.*?)```", re.S)


def blank_lines_marked(lines):
    """The lines, with the blank lines of an output, but not those before the next example, in doctest's notation."""
    marked = list(lines)
    for number, line in enumerate(lines):
        rest = [other for other in lines[number:] if other]
        if not line and rest and not rest[0].startswith(">>> "):
            marked[number] = "<BLANKLINE>"
    return marked


def run_page(path):
    """(examples, failures) of a page; failures are printed."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # What is not an example becomes blank lines, so that failures name lines of the page.
    lines = [""] * len(text.split("\n"))
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        examples = blank_lines_marked(block.group(1).split("\n")[:-1])
        lines[first:first + len(examples)] = examples
    test = doctest.DocTestParser().get_doctest("\n".join(lines) + "\n", {}, os.path.basename(path), path, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test)
    return len(test.examples), runner.failures


def main():
    good = True
    for path in sys.argv[1:] or PAGES:
        examples, failures = run_page(path)
        print(f"{os.path.relpath(path, ROOT)}: {examples} examples, {failures} failed")
        good &= examples > 0 and failures == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
