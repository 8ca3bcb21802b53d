#!/usr/bin/env python3
"""API pages from the public headers: docs/api/NAME.md for each include/lilac/NAME.h.

    python3 scripts/api_docs.py            writes the pages
    python3 scripts/api_docs.py --check    says which are out of date, and which public functions
                                           have no comment above them; exit status 1 if any

A page holds the header's opening comment as it stands (its drawings are text), then each section with
its declarations and what the comment above each says.
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


def prose(text):
    """Comment lines as Markdown: what is drawn or aligned stays as it is."""
    drawn = any(re.search(r"\S {3,}\S|[─│▶╰╭╯╮→⊕]|^ {3,}", line) for line in text)
    if drawn:
        return "```text\n" + "\n".join(text) + "\n```\n"
    return "\n".join(re.sub(r"([*_<>|])", r"\\\1", line) for line in text) + "\n"


def declaration(block):
    """A declaration as a reader wants it: functions without the macros, wrapped anew."""
    if not block[0].startswith("LILAC_API"):
        return "\n".join(block)
    joined = re.sub(r"\bLILAC_(API|MUST_USE) ", "", " ".join(line.strip() for line in block))
    return textwrap.fill(joined, 96, subsequent_indent="    ", break_long_words=False)


def page(name, source):
    lines = source.split("\n")
    out, bare = [], []
    comment, documented, opening = None, False, True
    out.append(f"# {name}.h\n")
    out.append(f"Made from `include/lilac/{name}.h` by `scripts/api_docs.py`; change the header.\n")
    for kind, block in blocks(lines):
        if kind == "section":
            out.append(f"## {block[0]}\n")
            comment = None
        elif kind == "comment":
            if opening:
                out.append("```text\n" + "\n".join(comment_text(block)) + "\n```\n")
                opening = False
                continue
            if comment:
                out.append(prose(comment))
            comment = comment_text(block)
        elif kind == "blank":
            if comment:
                out.append(prose(comment))
            comment, documented = None, False
        else:
            # declarations with no blank line between share the comment above the first
            documented = documented or comment is not None
            out.append("```c\n" + declaration(block) + "\n```\n")
            if comment:
                out.append(prose(comment))
            if not documented and block[0].startswith("LILAC_API"):
                bare.append(" ".join(" ".join(block).split())[:80])
            comment = None
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
