"""The TTGIR of lilac: Triton's parser and verifier accept it, it names layouts as Triton does, and lilac
reads it back to the same code."""

import glob
import os
import re

import kernels
import pytest
import standin
from standin import Pointer

import lilac
import lilac.triton

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
FILES = sorted(glob.glob(os.path.join(DATA, "corpus", "*.ttir")) + glob.glob(os.path.join(DATA, "control", "*.ttir"))
               + glob.glob(os.path.join(DATA, "ttir", "*.ttir")))


@pytest.fixture(scope="module")
def context():
    from triton._C.libtriton import ir, nvidia

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    return context


def compiled(path, **options):
    try:
        return lilac.compile(path, target="sm_90a", tile=True, **options)
    except lilac.CompilationError as error:
        pytest.skip(f"lilac refuses it: {error.ids[0]}")


def without_products(kernel):
    """Skips kernels with matrix products: Triton's verifier accepts products in its own layouts only
    (#ttg.nvidia_mma and #ttg.dot_op), and lilac names the layouts of products #ttg.linear."""
    if re.search(r"\b(tt\.dot|ttng\.warp_group_dot) ", kernel.tile):
        pytest.skip("Triton refuses linear layouts of matrix products")
    return kernel


def accepts(context, file, kernel):
    from triton._C.libtriton import ir

    file.write_text(kernel.tile)
    return ir.parse_mlir_module(str(file), context).verify() is not False


@pytest.mark.parametrize("path", FILES, ids=os.path.basename)
def test_triton_accepts_it(context, tmp_path, path):
    assert accepts(context, tmp_path / "kernel.ttgir", without_products(compiled(path)))


@pytest.mark.parametrize("path", [path for path in FILES if "corpus" in path], ids=os.path.basename)
@pytest.mark.parametrize("num_warps", [1, 2, 16])
def test_other_numbers_of_warps(context, tmp_path, path, num_warps):
    assert accepts(context, tmp_path / "kernel.ttgir", without_products(compiled(path, num_warps=num_warps)))


@pytest.mark.parametrize("path", FILES, ids=os.path.basename)
def test_lilac_reads_it(tmp_path, path):
    """The text says all that lilac decided: it compiles, and to a kernel with the same launch."""
    kernel = compiled(path)
    again = lilac.compile(kernel.tile, tile=True)
    assert (again.num_warps, again.name, again.target[:5]) == (kernel.num_warps, kernel.name, kernel.target[:5])
    assert again.shared == kernel.shared


def test_names_and_attributes():
    with lilac.triton.enabled():
        text = kernels.gather.warmup(Pointer("fp32"), Pointer("i32"), Pointer("fp32"), 1024, grid=(1,)).asm["ttgir"]
    assert re.search(r"^#blocked = #ttg\.blocked<\{sizePerThread = \[\d+\]", text, re.MULTILINE)
    head = re.search(r"^module attributes \{(.*)\} \{$", text, re.MULTILINE).group(1)
    assert head == ('"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", '
                    '"ttg.threads-per-warp" = 32 : i32')


@pytest.mark.parametrize("columns", [32, 64, 128])
def test_reductions_of_loops(columns):
    """As Triton's text does, lilac's has one reduction within threads in the loop and one behind it."""
    with lilac.triton.enabled():
        text = kernels.long_row_sums.warmup(Pointer("fp32"), Pointer("fp32"), 1024, 32, columns, grid=(1,)).asm["ttgir"]
    assert text.count('"tt.reduce"') == 2


PARTITIONS = """
tt.func public @kernel(%x: !tt.ptr<i32>) {
  %c42 = arith.constant 42 : i32
  ttg.warp_specialize(%x) attributes {requestedRegisters = array<i32: 24, 40>}
  default {
    tt.store %x, %c42 : !tt.ptr<i32>
    ttg.warp_yield
  }
  partition0(%y: !tt.ptr<i32>) num_warps(1) {
    %c1 = arith.constant 1 : i32
    %p = tt.addptr %y, %c1 : !tt.ptr<i32>, i32
    tt.store %p, %c1 : !tt.ptr<i32>
    ttg.warp_return
  }
  partition1(%y: !tt.ptr<i32>) num_warps(2) {
    ttg.warp_return
  } : (!tt.ptr<i32>) -> ()
  tt.return
}
"""


def test_partitions(context, tmp_path):
    """Triton's parser accepts them, and the launcher gets the warps of all."""
    kernel = lilac.compile(PARTITIONS, target="sm_90a", tile=True)
    assert "ttg.warp_specialize(" in kernel.tile and accepts(context, tmp_path / "kernel.ttgir", kernel)
    assert kernel.num_warps == 8 and kernel.ptx.count("setmaxnreg.dec") == 3


def test_flatten_changes_nothing():
    with lilac.triton.enabled():
        codes = [kernels.flattened.warmup(Pointer("fp32"), Pointer("fp32"), 64, 1024, 128, flatten, grid=(1,)).asm["ptx"]
                 for flatten in (False, True)]
    assert re.sub(r"//.*", "", codes[0]) == re.sub(r"//.*", "", codes[1])


@pytest.mark.parametrize("capability", [80, 86, 89, 90, 100])
def test_target(capability):
    standin.use(capability)
    with lilac.triton.enabled():
        text = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,)).asm["ttgir"]
    assert f'ttg.target = "cuda:{capability}"' in text


def test_absent_stage():
    with lilac.triton.enabled():
        kernel = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
        with pytest.raises(KeyError, match="lilac writes PTX without LLVM IR"):
            kernel.asm["llir"]
        with pytest.raises(KeyError, match="Unknown key: 'amdgcn'"):
            kernel.asm["amdgcn"]


def test_of_a_fallback():
    """A kernel that Triton compiles has Triton's TTGIR."""
    with lilac.triton.enabled("triton"), pytest.warns(lilac.triton.FallbackWarning):
        kernel = kernels.increment.warmup(Pointer("fp32"), Pointer("fp32"), 32, grid=(1,))
    alone = kernels.increment.warmup(Pointer("fp32"), Pointer("fp32"), 32, grid=(1,))
    assert "llir" in alone.asm and kernel.asm["ttgir"] == alone.asm["ttgir"]
