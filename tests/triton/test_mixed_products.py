"""bench/mixed_products.py: the cases of the paper's table, the numbers, and a case of each pair of types on the
simulator."""

import os
import sys

import pytest
from conftest import ROOT

numpy = pytest.importorskip("numpy")
sys.path.insert(0, os.path.join(ROOT, "bench"))
import mixed_products as mixed  # noqa: E402


def test_counts_are_the_paper_s():
    assert mixed.count_agrees() and len(mixed.cases()) == 784 == len(set(mixed.cases()))


@pytest.mark.parametrize("name, bits", [("f16", "int16"), ("f32", "int32"), ("f64", "int64")])
def test_encoding(name, bits):
    values = numpy.array([0, 1, -1, 0.75, -0.25, 1.5, -2])
    expected = values.astype("float" + name[1:]).view(bits)
    assert (mixed.encoded(values, mixed.FORMATS[name]) == expected).all()


def test_encoding_of_bytes():
    values = numpy.array([0, 1, -1, 0.75, -0.25, 1.5])
    for name, expected in (("e4m3", [0, 0x38, 0xB8, 0x34, 0xA8, 0x3C]), ("e5m2", [0, 0x3C, 0xBC, 0x3A, 0xB4, 0x3E]),
                           ("e4b15", [0, 0x78, 0xF8, 0x74, 0xE8, 0x7C])):
        assert mixed.encoded(values, mixed.FORMATS[name]).view("uint8").tolist() == expected


def small():
    """The smallest case of each pair of types on each side."""
    first = {}
    for case in mixed.cases():
        first.setdefault((case.integer, case.float, case.left), case)
    return first.values()


@pytest.mark.parametrize("case", small(), ids=mixed.name)
def test_product(case):
    assert mixed.attempt((case, "lilac", True)) is None
