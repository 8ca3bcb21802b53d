"""Runs the lilac command for a test: where it is comes from the test's own command line."""

import argparse
import json
import os
import subprocess
import sys

LAUNCHES = ["vector_add_f32", "softmax_float16_4096", "softmax_float32_1000",
            "softmax_bfloat16_8192", "layer_norm_f16_4096", "layer_norm_f16_5120",
            "rms_norm_f16_4096", "rms_norm_f16_5120", "swiglu_bf16", "cross_entropy_bf16"]

SKIPPED = 77  # ctest's SKIP_RETURN_CODE of these tests


def parse_arguments(description, **options):
    """`options`: further ones, with their help."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--lilac", required=True, help="the command to test")
    parser.add_argument("--data", required=True, help="the folder tests/data")
    for name, what in options.items():
        parser.add_argument("--" + name, help=what)
    parser.add_argument("names", nargs="*", help="only these")
    arguments = parser.parse_args()
    arguments.lilac = os.path.abspath(arguments.lilac)
    arguments.data = os.path.abspath(arguments.data)
    return arguments


def run(lilac, *words, **options):
    """A finished process: returncode, stdout, stderr (text)."""
    return subprocess.run([lilac] + [str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, encoding="utf-8",
                          errors="replace", **options)


def read_cases(data):
    with open(os.path.join(data, "corpus", "cases.json"), encoding="utf-8") as file:
        return {case["name"]: case for case in json.load(file)}


def finish(failures, count, what):
    """One line at the end, and the exit status."""
    if failures:
        print("%d of %d %s failed: %s" % (len(failures), count, what, ", ".join(failures)))
        sys.exit(1)
    print("%d %s passed" % (count, what))
    sys.exit(0 if count else 1)
