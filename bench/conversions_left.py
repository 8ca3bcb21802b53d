"""Conversions between layouts that remain in the corpus's kernels, compared with Triton's.

    python3 bench/conversions_left.py --lilac build/tools/lilac/lilac --data tests/data [NAME…]

For every recorded launch without a matrix product: the number of ttg.convert_layout operations after
layouts are assigned, and their total price in clocks of a multiprocessor for one block. Triton's
operations are those of the .ttgir file with the same name as the .ttir file. Both are priced by the
same plans (`lilac convert`), so only the layouts differ. A conversion in a loop counts once.

Exit status 1: a kernel keeps more conversions than Triton's, or all together cost more.
"""

import argparse
import json
import os
import re
import subprocess
import sys

MATRIX = re.compile(r"tt\.dot|warp_group_dot|tc_gen5|descriptor")
ALIAS = re.compile(r"^(#\w+) = (.*)$", re.MULTILINE)
CONVERSION = re.compile(r"ttg\.convert_layout \S+ (?:\{[^}]*\} )?: (tensor<.*>) -> (tensor<.*>)")


def run(words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, encoding="utf-8")


def pairs_of(text):
    """The (source type, target type) of each conversion, with the names of layouts written out."""
    aliases = dict(ALIAS.findall(text))

    def spell(type_text):
        for _ in range(4):  # layouts that contain layouts
            type_text = re.sub(r"#\w+\b(?![.<])", lambda m: aliases.get(m.group(0), m.group(0)),
                               type_text)
        return re.sub(r" loc\(.*", "", type_text)

    return [(spell(source), spell(target)) for source, target in CONVERSION.findall(text)]


def price(lilac, source, target):
    done = run([lilac, "convert", source, target, "--json"])
    if done.returncode != 0:
        raise SystemExit("cannot price %s -> %s\n%s" % (source, target, done.stderr))
    return json.loads(done.stdout)["cycles"]


def theirs(lilac, path):
    with open(path, encoding="utf-8") as file:
        pairs = pairs_of(file.read())
    return len(pairs), sum(price(lilac, *pair) for pair in pairs)


def ours(lilac, path, case):
    """Count and price, or None with the reason when the kernel is refused."""
    done = run([lilac, "compile", path, "--num-warps", str(case["num_warps"]), "--emit", "json"])
    if done.returncode != 0:
        return None, done.stderr.splitlines()[0].split("error: ")[-1]
    left = json.loads(done.stdout)["conversions"]
    return (left["count"], left["cycles"]), None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lilac", required=True)
    parser.add_argument("--data", required=True, help="the folder that has corpus/")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    corpus = os.path.join(arguments.data, "corpus")
    with open(os.path.join(corpus, "cases.json"), encoding="utf-8") as file:
        cases = {case["name"]: case for case in json.load(file)}
    total, worse, refused = [0, 0.0, 0, 0.0], [], []
    print("| kernel | lilac: conversions | cycles | Triton: conversions | cycles |")
    print("|---|---|---|---|---|")
    for name in arguments.names or cases:
        source = os.path.join(corpus, name + ".ttir")
        given = os.path.join(corpus, name + ".ttgir")
        if not os.path.exists(source) or not os.path.exists(given):
            continue
        with open(source, encoding="utf-8") as file:
            if MATRIX.search(file.read()):
                continue
        mine, reason = ours(arguments.lilac, source, cases[name])
        other = theirs(arguments.lilac, given)
        if mine is None:
            refused.append(name)
            print("| %s | refused: %s | | %d | %.1f |" % (name, reason, *other))
            continue
        print("| %s | %d | %.1f | %d | %.1f |" % (name, *mine, *other))
        total = [a + b for a, b in zip(total, (*mine, *other))]
        if mine[0] > other[0]:
            worse.append(name)
    print("| all | %d | %.1f | %d | %.1f |" % tuple(total))
    if worse:
        print("more conversions than Triton: " + ", ".join(worse))
    sys.exit(1 if worse or refused or total[1] > total[3] else 0)


if __name__ == "__main__":
    main()
