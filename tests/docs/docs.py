"""Executes the examples of the documentation: every ```console block of the given pages.

A block contains commands, each on a line that begins with "$ " (a backslash at its end continues it), and
their output, errors included. A line "…" matches any lines, and "…" inside a line any text.
A comment <!-- in FOLDER --> above a block names the folder in which it runs, from the repository's root. Other
blocks run in an empty folder that the blocks of a page share.

A ```c block under a comment <!-- from FILE --> is an excerpt of that file: each of its pieces, which
lines "…" separate, must occur in the file unchanged.

usage: docs.py --lilac LILAC [--program PROGRAM]… PAGE…
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXCERPT = re.compile(r"<!-- from (\S+) -->\n+```c\n(.*?)```", re.S)
BLOCK = re.compile(r"(?:<!-- in (\S+) -->\n+)?```console\n(.*?)```", re.S)


def commands(block):
    """(command, expected lines) of a block."""
    found = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            found.append((command, []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError("a console block must begin with a command")
    return found


def matches(expected, printed):
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part.rstrip()) for part in line.split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed)


def strange_excerpts(text):
    """(file, piece) for each piece of an excerpt that does not occur in its file."""
    for name, excerpt in EXCERPT.findall(text):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            source = file.read()
        for piece in re.split(r"^…\n", excerpt, flags=re.M):
            if piece.strip("\n") not in source:
                yield name, piece


def run_page(path, environment):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    failures = examples = 0
    for name, piece in strange_excerpts(text):
        failures += 1
        print(f"{path}: this does not occur in {name}:\n{piece}")
    with tempfile.TemporaryDirectory() as empty:
        for block in BLOCK.finditer(text):
            folder = os.path.join(ROOT, block.group(1)) if block.group(1) else empty
            for command, expected in commands(block.group(2)):
                done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
                printed = done.stdout
                if printed and not printed.endswith("\n"):
                    printed += "\n"
                examples += 1
                if not matches(expected, printed):
                    failures += 1
                    print(f"{path}: $ {command}\nexpected:\n" + "\n".join(expected) + f"\nprinted:\n{printed}")
    print(f"{os.path.relpath(path, ROOT)}: {examples} examples, {failures} failed")
    if examples == 0:
        print(f"{path}: no examples found")
    return failures == 0 and examples > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lilac", required=True)
    parser.add_argument("--program", action="append", default=[], help="another one that pages run")
    parser.add_argument("pages", nargs="+")
    arguments = parser.parse_args()
    folders = [os.path.dirname(os.path.abspath(path)) for path in [arguments.lilac, *arguments.program]]
    environment = dict(os.environ, PATH=os.pathsep.join([*folders, os.environ["PATH"]]))
    good = [run_page(page, environment) for page in arguments.pages]
    return 0 if all(good) else 1


sys.exit(main())
