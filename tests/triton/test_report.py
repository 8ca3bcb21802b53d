"""The report, and sources that are not TTIR."""

import json
import os

import kernels
import pytest
from standin import Pointer

import lilac
import lilac.triton

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")


def test_table():
    assert str(lilac.triton.report()) == "lilac: no kernel was compiled"
    with lilac.triton.enabled():
        kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
        with pytest.raises(lilac.CompilationError):
            kernels.increment.warmup(Pointer("fp32"), Pointer("fp32"), 32, grid=(1,))
    report = lilac.triton.report()
    lines = str(report).split("\n")
    assert lines[0].split()[:4] == ["kernel", "where", "compiler", "warps"]
    assert lines[1].split()[:4] == ["scale", f"kernels.py:{report.rows[0].line}", "lilac", "4"]
    assert lines[3].startswith("lilac: 1 compiled by lilac, 1 refused")
    assert "constraint '0'" in lines[4]
    assert {row["name"] for row in json.loads(report.to_json())} == {"scale", "increment"}
    lilac.triton.reset_report()
    assert len(lilac.triton.report()) == 0


def test_pages(tmp_path):
    """The report links to a page for each kernel that lilac compiled."""
    from lilac.explorer import page_path

    with lilac.triton.enabled():
        kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
    report = lilac.triton.report()
    assert "<td>scale</td>" in report._repr_html_() and "href" not in report._repr_html_()
    if page_path() is None:
        with pytest.raises(lilac.Error, match="make explorer"):
            report.pages(tmp_path)
        return
    index, page = report.pages(tmp_path / "pages")
    assert f'<a href="{os.path.basename(page)}">scale</a>' in open(index, encoding="utf-8").read()
    assert f'<a href="{page}">scale</a>' in report._repr_html_()
    text = open(page, encoding="utf-8").read()
    data = json.loads(text.split('id="kernel">')[1].split("</script>")[0])
    assert data["name"] == "scale.ttir" and "kernels.py" in data["sources"] and data["options"]["warps"] == 4


def test_registers_are_those_of_ptxas(tmp_path):
    """Read from the cubin, they are what ptxas -v says."""
    import re
    import subprocess

    from triton import knobs

    from lilac.triton.cubin import Resources, resources

    seen = []
    for options in ({}, {"maxnreg": 32}):
        with lilac.triton.enabled():
            kernel = kernels.row_sums.warmup(Pointer("fp32"), Pointer("fp32"), 64, 256, grid=(1,), num_warps=1,
                                             **options)
        (tmp_path / "kernel.ptx").write_text(kernel.asm["ptx"])
        said = subprocess.run([knobs.nvidia.ptxas.path, "-v", "--gpu-name=sm_90a", str(tmp_path / "kernel.ptx"), "-o",
                               str(tmp_path / "kernel.cubin")], stderr=subprocess.PIPE, text=True).stderr
        found = resources((tmp_path / "kernel.cubin").read_bytes())
        assert found == Resources(int(re.search(r"Used (\d+) registers", said).group(1)),
                                  int(re.search(r"(\d+) bytes stack frame", said).group(1)))
        row = lilac.triton.report().rows[-1]
        assert (row.registers, 4 * row.spills) == resources(kernel.asm["cubin"])
        seen.append(found)
    assert seen[0].registers > 32 == seen[1].registers and seen[0].local_bytes == 0 < seen[1].local_bytes


def test_what_is_no_cubin():
    from lilac.triton.cubin import Resources, resources

    for text in (b"", b"\x7fELF", b"\x7fELF" + bytes(100), b"something else"):
        assert resources(text) == Resources(None, None)


def test_layouts_given_by_hand(tmp_path):
    """A file with layouts goes through triton.compile as Triton's own stages take it."""
    import triton
    from triton.backends.compiler import GPUTarget

    with open(os.path.join(DATA, "transpose_float32.ttgir"), encoding="utf-8") as file:
        text = file.read()
    source = tmp_path / "transpose.ttgir"
    source.write_text(text)
    with lilac.triton.enabled():
        kernel = triton.compile(str(source), target=GPUTarget("cuda", 90, 32))
    assert kernel.asm["cubin"][:4] == b"\x7fELF" and kernel.metadata.lilac["compiler"] == "lilac"
    assert kernel.metadata.num_warps == 4


def test_gluon():
    """Kernels whose layouts are written by hand in Gluon."""
    if not hasattr(kernels.turned, "warmup"):
        pytest.skip("this Triton compiles no such kernels")
    lilac.triton.enable()
    kernel = kernels.turned.warmup(Pointer("fp32"), Pointer("fp32"), 1024, grid=(1,))
    assert "bar.sync" in kernel.asm["ptx"] and {"ttgir", "ptx", "cubin"} < set(kernel.asm)
    (row,) = lilac.triton.report().rows
    assert (row.name, row.compiler, row.file) == ("turned", "lilac", kernels.__file__)
    assert row.line == kernels.turned.fn.__code__.co_firstlineno + 1 and row.seconds["ttgir"] > 0
