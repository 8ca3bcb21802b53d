"""Checks that the links and paths of the documentation exist.

Checked in every page (README.md, CONTRIBUTING.md, CHANGELOG.md, docs, bench, examples and python):

    [text](FILE)  [text](FILE#heading)  [text](#heading)    the file, and the heading in it
    `src/plan/plan.c`  `tests/sim/`  `src/simt/opt_*.c`      a path from the repository's root, outside
                                                             code blocks; * matches as in the shell

A path with a placeholder in capitals (`src/engine/NAME.c`) is checked up to the folder before it. Links
to other sites are not followed.

usage: links.py [PAGE…]
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["*.md", "docs/*.md", "docs/api/*.md", "bench/*.md", "examples/*/*.md", "python/*.md"]
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*[./#][^)\s]*)\)")
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = "bench|cmake|docs|examples|fuzz|include|python|scripts|src|tests|tools"
PATH = re.compile(rf"(?:{FOLDERS})/[\w./*-]*")
PLACEHOLDER = re.compile(r"[A-Z]{3,}")
HISTORY = "CHANGELOG.md"  # its paths are those of their time


def anchors(path):
    """The anchors of a page's headings, as GitHub and GitLab form them."""
    with open(path, encoding="utf-8") as file:
        text = FENCE.sub("", file.read())
    headings = re.findall(r"^#+ +(.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_link(page, target):
    """What is wrong with a link of a page; None if nothing."""
    if re.match(r"[a-z]+:", target):
        return None
    file, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), file)) if file else page
    if not os.path.exists(path):
        return f"there is no file {file}"
    if anchor and anchor not in anchors(path):
        return f"{file or 'this page'} has no heading #{anchor}"
    return None


def known_part(path):
    """A path up to the folder before its first placeholder."""
    parts = path.split("/")
    for count, part in enumerate(parts):
        if PLACEHOLDER.search(part) and part not in ("README.md", "CMakeLists.txt"):
            return "/".join(parts[:count])
    return path


def findings(page):
    """(line, text) for each broken link or path of a page, and the number of links and paths."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    # Code blocks become empty lines, so that line numbers stay.
    text = FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)
    found, checked = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        for target in LINK.findall(CODE.sub("", line)):
            checked += 1
            problem = broken_link(page, target)
            if problem:
                found.append((number, f"[…]({target}): {problem}"))
        if os.path.basename(page) == HISTORY:
            continue
        for code in CODE.findall(line):
            path = PATH.fullmatch(code)
            if path:
                checked += 1
                if not glob.glob(os.path.join(ROOT, known_part(path.group()))):
                    found.append((number, f"`{code}`: there is no such file"))
    return found, checked


def main():
    pages = sys.argv[1:]
    for pattern in [] if pages else PAGES:
        pages += sorted(glob.glob(os.path.join(ROOT, pattern)))
    broken = checked = 0
    for page in pages:
        found, count = findings(page)
        checked += count
        broken += len(found)
        for number, text in found:
            print(f"{os.path.relpath(page, ROOT)}:{number}: {text}")
    print(f"{len(pages)} pages, {checked} links and paths, {broken} broken")
    return 0 if checked and not broken else 1


sys.exit(main())
