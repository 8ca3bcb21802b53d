#!/usr/bin/env python3
"""Builds the page: one HTML file with its style, its modules and the library in WebAssembly.

usage: build.py LILAC.WASM PAGE.HTML

Each module becomes a function that returns its exports, so that names of different modules do not meet. The
modules use `import { a, b } from "./x.js"` and `export` in front of declarations only.
"""

import base64
import gzip
import json
import os
import re
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "\./([\w]+)\.js";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const|let) (\w+))", re.M)
AGAIN = re.compile(r"^export \{([^}]*)\};\n", re.M)


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def module(name, done):
    """The text of a module and, before it, of the modules that it imports."""
    if name in done:
        return ""
    done.add(name)
    text = read(f"{name}.js")
    before, uses = "", ""
    for names, whole, other in IMPORT.findall(text):
        before += module(other, done)
        uses += f"const {whole or '{' + names.strip() + '}'} = module_{other};\n"
    exports = [match for match in EXPORT.findall(text)]
    for names in AGAIN.findall(text):
        exports += [word.strip() for word in names.split(",")]
    body = AGAIN.sub("", EXPORT.sub("", IMPORT.sub("", text)))
    if re.search(r"^(import|export)\b", body, re.M):
        sys.exit(f"{name}.js: an import or export in a form that build.py does not know")
    return f"{before}const module_{name} = (() => {{\n{uses}{body}return {{ {', '.join(exports)} }};\n}})();\n"


CORPUS = os.path.join(FOLDER, "..", "..", "tests", "data", "corpus")
SAMPLES = [("softmax", "softmax_float16_4096", 8), ("layer norm", "layer_norm_f16_4096", 8),
           ("transpose", "transpose_float16", 4),
           ("matrix product", "matmul_f16", 8), ("matrix product through descriptors", "matmul_descriptor_f16", 8),
           ("attention", "attention_f16_d64_full", 4)]


def samples():
    """Kernels of the tests as examples, with their source."""
    with open(os.path.join(CORPUS, "kernels.py"), encoding="utf-8") as file:
        source = file.read()
    result = []
    for name, stem, warps in SAMPLES:
        with open(os.path.join(CORPUS, f"{stem}.ttir"), encoding="utf-8") as file:
            result.append({"name": name, "text": file.read(), "warps": warps})
    return json.dumps({"sources": {"kernels.py": source}, "kernels": result}).replace("</", "<\\/")


def page(wasm):
    script = module("main", set())
    if "</script" in script:
        sys.exit("a module contains </script")
    packed = base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode()
    text = read("page.html")
    for place, content in (("/*STYLE*/", read("style.css")), ("/*WASM*/", packed), ("/*SAMPLES*/", samples()),
                           ("/*SCRIPT*/", script)):
        before, after = text.split(place)
        text = before + content + after
    return text


def main():
    wasm_path, out = sys.argv[1:3]
    with open(wasm_path, "rb") as file:
        text = page(file.read())
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{out}: {len(text.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
