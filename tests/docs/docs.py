"""The examples of the documentation, executed: every ```console block of the pages given.

A block is commands, each on a line that begins with "$ " (a backslash at its end continues it), and
what they print, errors included. A line "…" stands for any lines, "…" inside a line for any text.
A comment <!-- in FOLDER --> above a block says where it runs, from the repository's root; otherwise
it runs in an empty folder that the blocks of a page share.

usage: docs.py --lilac LILAC PAGE…
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


def run_page(path, environment):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    failures = examples = 0
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
    parser.add_argument("pages", nargs="+")
    arguments = parser.parse_args()
    folder = os.path.dirname(os.path.abspath(arguments.lilac))
    environment = dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"])
    good = [run_page(page, environment) for page in arguments.pages]
    return 0 if all(good) else 1


sys.exit(main())
