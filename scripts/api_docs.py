#!/usr/bin/env python3
"""Generates the API pages from the public headers: docs/api/NAME.md for each include/lilac/NAME.h.

    python3 scripts/api_docs.py            writes the pages
    python3 scripts/api_docs.py --check    lists the pages that are out of date and the public functions
                                           without a comment; exit status 1 if there are any

A page contains the header's opening comment, with its drawings unchanged, and then each section with its
declarations and the comment of each declaration.
"""

import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADERS = os.path.join(ROOT, "include", "lilac")
PAGES = os.path.join(ROOT, "docs", "api")
SECTION = re.compile(r"/\* -{4,} (.+?) -+ \*/$")
NOISE = re.compile(r"^(#|LILAC_BEGIN|LILAC_END|\s*$)")


def comment_text(lines):
    """The lines of a comment without its stars."""
    text = [re.sub(r"^\s?\*( |$)|^\s*/\* ?", "", line).rstrip() for line in lines]
    text[-1] = re.sub(r"\s*\*/$", "", text[-1]).rstrip()
    while text and not text[-1]:
        text.pop()
    return text


def blocks(lines):
    """(kind, lines) for each section mark, comment and declaration of a header, in order."""
    at = 0
    while at < len(lines):
        line = lines[at]
        section = SECTION.match(line)
        if section:
            yield "section", [section.group(1)]
            at += 1
        elif line.startswith("/*"):
            end = at
            while "*/" not in lines[end]:
                end += 1
            yield "comment", lines[at:end + 1]
            at = end + 1
        elif line.startswith("#define LILAC_") and not line.startswith("#define LILAC_API"):
            end = at
            while lines[end].endswith("\\"):
                end += 1
            if not re.match(r"#define LILAC_\w+_H$", line):
                yield "declaration", lines[at:end + 1]
            at = end + 1
        elif line.startswith("#"):
            while lines[at].endswith("\\"):
                at += 1
            at += 1
        elif line.strip() == "":
            yield "blank", []
            at += 1
        elif NOISE.match(line):
            at += 1
        else:
            end, depth = at, 0
            while True:
                depth += lines[end].count("{") - lines[end].count("}")
                if depth <= 0 and (";" in lines[end] or "}" in lines[end]):
                    break
                end += 1
            yield "declaration", lines[at:end + 1]
            at = end + 1


def is_drawn(line):
    """A line of a drawing, a table or a formula: its spaces are to be kept."""
    return bool(re.search(r"^ {2,}\S|\S {3,}\S|[─│┌┐└┘├┤┬┴┼▶◀╰╭╯╮]", line))


def escaped(line):
    """A line of prose as Markdown: outside of `code`, stars and the like mean themselves."""
    pieces = re.split(r"(`[^`]*`)", line)
    marks = r"(\\|\*|<(?=[A-Za-z/!])|(?<!\w)_|_(?!\w))"
    pieces[::2] = [re.sub(marks, r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def prose(text):
    """Comment lines as Markdown: paragraphs flow, what is drawn or aligned stays as it is."""
    out, paragraph = [], []

    def flush():
        if any(is_drawn(line) for line in paragraph):
            # sentences above and below a drawing that stand close to it are not part of it
            drawn = [i for i, line in enumerate(paragraph) if is_drawn(line)]
            first, last = drawn[0], drawn[-1]
            for lines, fenced in ((paragraph[:first], False), (paragraph[first:last + 1], True),
                                  (paragraph[last + 1:], False)):
                if fenced:
                    lines = textwrap.dedent("\n".join(lines)).split("\n")
                    out.append("\n".join(["```text", *lines, "```"]) + "\n")
                elif lines:
                    out.append("\n".join(escaped(line) for line in lines) + "\n")
        elif paragraph:
            out.append("\n".join(escaped(line) for line in paragraph) + "\n")
        paragraph.clear()

    for line in drawings_joined(text):
        if line is None:
            flush()
        else:
            paragraph.append(line)
    flush()
    return "\n".join(out)


def drawings_joined(text):
    """The lines, None for a blank one between paragraphs; blank lines inside a drawing stay."""
    for number, line in enumerate(text):
        if line.strip():
            yield line
        else:
            near = [text[i] for i in (number - 1, number + 1) if 0 <= i < len(text)]
            yield "" if len(near) == 2 and all(is_drawn(other) for other in near) else None


def declaration(block):
    """A declaration as a reader wants it: functions without the macros, wrapped anew after commas."""
    if not block[0].startswith("LILAC_API"):
        return "\n".join(line.rstrip() for line in block)
    joined = re.sub(r"\bLILAC_(API|MUST_USE) ", "", " ".join(line.strip() for line in block))
    lines = [""]
    for piece in re.split(r"(?<=,) ", joined):
        if lines[-1] and len(lines[-1]) + 1 + len(piece) > 96:
            lines.append("    " + piece)
        else:
            lines[-1] += " " + piece if lines[-1] else piece
    return "\n".join(lines)


def page(name, source):
    out, bare = [f"# {name}.h\n"], []
    out.append(f"Made from `include/lilac/{name}.h` by `scripts/api_docs.py`; change the header.\n")
    comment, group, opening = None, [], True

    def flush():
        # declarations with no blank line between share the comment above the first
        nonlocal comment
        if group:
            out.append("```c\n" + "\n".join(declaration(block) for block in group) + "\n```\n")
        if comment:
            out.append(prose(comment))
        else:
            bare.extend(" ".join(" ".join(block).split())[:80] for block in group
                        if block[0].startswith("LILAC_API"))
        comment = None
        group.clear()

    for kind, block in blocks(source.split("\n")):
        if kind == "declaration":
            group.append(block)
            continue
        flush()
        if kind == "section":
            out.append(f"## {block[0][0].upper()}{block[0][1:]}\n")
        elif kind == "comment" and opening:
            out.append(prose(comment_text(block)))
            opening = False
        elif kind == "comment":
            comment = comment_text(block)
    flush()
    return "\n".join(out), bare


def main():
    check = "--check" in sys.argv[1:]
    failed = False
    os.makedirs(PAGES, exist_ok=True)
    names = sorted(file[:-2] for file in os.listdir(HEADERS) if file.endswith(".h"))
    for name in names:
        with open(os.path.join(HEADERS, name + ".h"), encoding="utf-8") as file:
            text, bare = page(name, file.read())
        for declaration in bare:
            print(f"include/lilac/{name}.h: no comment for {declaration}")
            failed = True
        path = os.path.join(PAGES, name + ".md")
        old = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                old = file.read()
        if check and old != text:
            print(f"docs/api/{name}.md is out of date: run scripts/api_docs.py")
            failed = True
        elif old != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    for file in sorted(os.listdir(PAGES)):
        if file.endswith(".md") and file[:-3] not in names:
            print(f"docs/api/{file} has no header")
            failed = True
    print(f"{len(names)} headers: {'failed' if failed else 'ok'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
