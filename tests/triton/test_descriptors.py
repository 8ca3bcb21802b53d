"""Tensor descriptors: the kernel's parameters are those that Triton's launcher passes."""

import re

import kernels
import pytest
from standin import Pointer, Tensor
from test_ttgir import accepts, context  # noqa: F401
from triton.backends.nvidia import driver
from triton.tools.tensor_descriptor import TensorDescriptor

import lilac
import lilac.triton

# The C types of Triton's launcher, as PTX parameters.
PARAMETERS = {"CUdeviceptr": "u64", "int64_t": "u64", "int32_t": "u32", "int8_t": "u8"}


def host(**options):
    source = TensorDescriptor.from_tensor(Tensor((40, 96)), [16, 32], padding="nan")
    target = TensorDescriptor.from_tensor(Tensor((3, 40, 64)), [1, 16, 32])
    return kernels.copy_tile.warmup(7, source, target, 5, grid=(1,), **options), (source, target)


def parameters(ptx):
    return re.findall(r"\.param \.(\w+)", ptx[ptx.index(".entry") : ptx.index(")", ptx.index(".entry"))])


def launcher_parameters(kernel):
    """The parameters of the C function that Triton generates for this kernel."""
    signature = {i: kind for i, kind in enumerate(kernel.src.signature.values())}
    source = driver.make_launcher({}, signature, kernel.metadata.tensordesc_meta)
    listed = re.search(r"static void _launch\(([^)]*)\)", source).group(1).split("profile_scratch, ", 1)[1]
    return [PARAMETERS[one.split()[0]] for one in listed.split(", ")]


def test_parameters_of_host_descriptors():
    with lilac.triton.enabled():
        kernel, (source, target) = host()
    assert not kernel.metadata.tensordesc_meta
    expected = launcher_parameters(kernel)
    # %count, then 1 + 2 + 2 + 1 and 2 + 2 for each descriptor of two dimensions
    assert len(expected) == 2 + (6 + 4) + (8 + 6)
    assert parameters(kernel.asm["ptx"]) == [*expected, "u64", "u64"]
    for descriptor, rank in ((source, 2), (target, 3)):
        passed = driver.make_tensordesc_arg(descriptor, None)
        assert len(passed) == 2 + 4 * rank and passed[2 * rank + 1] is (descriptor.padding == "nan")


def test_host_descriptors_under_triton():
    """Triton's own kernel has other parameters: the tests above do not pass by chance."""
    kernel, _ = host()
    with lilac.triton.enabled():
        ours, _ = host()
    assert kernel.metadata.tensordesc_meta and parameters(kernel.asm["ptx"]) != parameters(ours.asm["ptx"])


def make(fill="zero", columns=64):
    return kernels.copy_rows.warmup(Pointer("fp16"), Pointer("fp16"), 48, columns, fill, grid=(1,))


@pytest.mark.parametrize("fill", ["zero", "nan"])
def test_device_descriptors(fill):
    """They need no scratch memory, and so no allocator."""
    with lilac.triton.enabled():
        kernel = make(fill)
    assert kernel.metadata.global_scratch_size == 0 and not kernel.metadata.tensordesc_meta
    ptx = kernel.asm["ptx"]
    assert parameters(ptx) == ["u64", "u64", "u32", "u32", "u64", "u64"]
    # NaN in every element of a word, where elements may be outside
    assert ("0x7FFF7FFF" in ptx or "2147450879" in ptx) == (fill == "nan")
    assert make(fill).metadata.global_scratch_size > 0  # Triton's own


def test_accesses_are_vectors():
    """Rows of a multiple of 16 elements are loaded and stored 16 bytes at a time."""
    with lilac.triton.enabled():
        kernel = make()
    accesses = re.findall(r"(?:ld|st)\.global\S*", kernel.asm["ptx"])
    assert accesses and all("v4.b32" in one for one in accesses)


def test_ttgir_is_triton_s(context, tmp_path):
    """Triton's parser accepts the attribute of a descriptor's parameter."""
    with lilac.triton.enabled():
        kernel, _ = host()
    ours = lilac.compile(kernel.asm["ttir"], target="sm_90a", tile=True)
    assert "lilac.descriptor = !tt.tensordesc<tensor<16x32xf16>>" in ours.tile
    assert accepts(context, tmp_path / "copy_tile.ttgir", ours)


def test_metadata_names_descriptors():
    with lilac.triton.enabled():
        kernel, _ = host()
    rows = lilac.compile(kernel.asm["ttir"]).metadata["parameters"]
    assert [row["descriptor"] for row in rows if "descriptor" in row] == [
        "!tt.tensordesc<tensor<16x32xf16>>", "!tt.tensordesc<tensor<1x16x32xf16>>"]


def test_launchers_of_other_versions(monkeypatch):
    """Triton 3.4 passes no padding: its launcher's arguments are not the kernel's parameters."""
    monkeypatch.setattr(driver, "make_tensordesc_arg", lambda arg, metadata: [
        arg.base, *arg.shape, *arg.strides, *arg.shape, *arg.strides])
    with lilac.triton.enabled():
        with pytest.raises(lilac.CompilationError, match="passes other arguments for descriptors") as caught:
            host()
        assert caught.value.ids == ["unsupported-descriptor"]
        make()  # descriptors that the kernel makes are no arguments
