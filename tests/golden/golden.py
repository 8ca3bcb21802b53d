"""Golden files: input, commands and expected output in one file.

A golden file is a source text of lilac's, so it is its own input. After the input come commands and
what each printed, in comments:

    //$ lilac compile %s --emit tile --num-warps 1
    //| a line of standard output
    //! a line of standard error
    //= 1        the exit status, where it is not 0

%s stands for the file's own name. With --rewrite the expectations are replaced by what the commands
print now; read the difference before you commit it.
"""

import argparse
import difflib
import os
import shlex
import subprocess
import sys


def split(text):
    """The input, and the commands in it."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("//$ ")), len(lines))
    commands = [line[4:] for line in lines[first:] if line.startswith("//$ ")]
    return lines[:first], commands


def marked(mark, text):
    return [(mark + " " + line).rstrip() for line in text.splitlines()]


def execute(lilac, folder, name, command):
    """The lines that a golden file should hold for one command."""
    words = [name if word == "%s" else word for word in shlex.split(command)]
    if not words or words[0] != "lilac":
        sys.exit("%s: a command must begin with lilac: %s" % (name, command))
    done = subprocess.run([lilac] + words[1:], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, encoding="utf-8")
    lines = ["//$ " + command] + marked("//|", done.stdout) + marked("//!", done.stderr)
    if done.returncode != 0:
        lines.append("//= %d" % done.returncode)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lilac", required=True, help="the command to test")
    parser.add_argument("--rewrite", action="store_true", help="take what is printed as expected")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    lilac = os.path.abspath(arguments.lilac)
    failed = False
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        lines, commands = split(before)
        if not commands:
            sys.exit("%s: no command (a line that begins with //$) in it" % path)
        folder, name = os.path.split(os.path.abspath(path))
        for command in commands:
            lines += execute(lilac, folder, name, command)
        after = "\n".join(lines) + "\n"
        if after == before:
            continue
        if arguments.rewrite:
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
            print("rewrote %s" % path)
            continue
        failed = True
        sys.stdout.writelines(difflib.unified_diff(
            before.splitlines(True), after.splitlines(True), path, path + " (now)"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
