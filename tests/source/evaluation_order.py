#!/usr/bin/env python3
"""No call and no initialiser leaves the order of what it builds to the compiler.

usage: evaluation_order.py SOURCE_FOLDER

C does not say in which order the arguments of a call, or the elements of an initialiser, are evaluated
(C17 6.5.2.2, 6.7.9). Where two of them append instructions to a kernel, compilers give them different
orders and numbers, and the command prints different PTX in a browser than on the host.

A maker is a function that returns a value of SIMT or tile IR, or a pair of them, and may change its first
argument, a pointer. Each comma list with makers in two of its elements is an error.
"""

import glob
import os
import re
import sys

VALUES = r"(?:lilac_simt_value|pair|lilac_tile_value|lilac_tile_op)"
FUNCTION = re.compile(r"^(static )?(?:inline )?(?:const )?" + VALUES + r"\s+\*?(\w+)\(\s*([^,)]*)", re.M)
CALL = re.compile(r"\b(\w+)\(")
LIST = re.compile(r"\b(\w+)\(|\{")
QUIET = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^\\'])'", re.S)
FORMULAS = os.path.join("src", "lower", "math", "")
KEYWORDS = ("if", "while", "for", "switch", "return", "sizeof")


def blank(text):
    """The text without comments and strings, at the same places."""
    return QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)


def elements(text, at):
    """The elements of the comma list that starts behind its bracket, or None where it is none."""
    depth, first, found = 0, at, []
    for place in range(at, len(text)):
        letter = text[place]
        if letter in "([{":
            depth += 1
        elif letter in ")]}" and depth > 0:
            depth -= 1
        elif letter in ")]}":
            return found + [text[first:place]]
        elif letter == ";":
            return None
        elif letter == "," and depth == 0:
            found.append(text[first:place])
            first = place + 1
    return None


def makers(texts):
    """The makers that all files see, and those of each file."""
    shared, local = set(), {path: set() for path in texts}
    for path, text in texts.items():
        for is_static, name, parameter in FUNCTION.findall(text):
            if "*" in parameter and not parameter.startswith("const "):
                (local[path] if is_static and path.endswith(".c") else shared).add(name)
    return shared, local


def findings(texts):
    shared, local = makers(texts)
    for path, text in sorted(texts.items()):
        if path.startswith(FORMULAS):
            continue
        names = shared | local[path]
        for found in LIST.finditer(text):
            parts = None if found.group(1) in KEYWORDS else elements(text, found.end())
            made = [part for part in parts or [] if any(name in names for name in CALL.findall(part))]
            if len(made) > 1:
                yield path, text.count("\n", 0, found.start()) + 1, [" ".join(part.split())[:60] for part in made]


def check_the_check():
    """It finds what it is for, and nothing else."""
    before = "static lilac_simt_value make(builder *b, int n) {\n}\nstatic lilac_simt_value seen(const kernel *k) {\n}\n"
    for text, count in (("x = add(b, make(b, 1), make(b, 2));", 1), ("v p[2] = {make(b, 1), make(b, add(2, 3))};", 1),
                        ("x = add(b, make(b, 1), seen(k));", 0), ("if (f(make(b, 1))) { x = make(b, 2), y; }", 0),
                        ("x = make(b, 1); /* add(make(b, 1), make(b, 2)) */", 0)):
        if len(list(findings({"a.c": blank(before + text)}))) != count:
            sys.exit(f"evaluation_order: {count} expected in: {text}")


def main():
    check_the_check()
    folder = sys.argv[1]
    texts = {}
    for path in glob.glob(os.path.join(folder, "src", "**", "*.[ch]"), recursive=True):
        with open(path, encoding="utf-8") as file:
            texts[os.path.relpath(path, folder)] = blank(file.read())
    for path in glob.glob(os.path.join(folder, "include", "**", "*.h"), recursive=True):
        with open(path, encoding="utf-8") as file:
            texts[os.path.relpath(path, folder)] = blank(file.read())
    wrong = list(findings(texts))
    for path, line, made in wrong:
        print(f"{path}:{line}: the order is the compiler's: {'  and  '.join(made)}")
    sys.exit(1 if wrong or len(texts) < 100 else 0)


if __name__ == "__main__":
    main()
