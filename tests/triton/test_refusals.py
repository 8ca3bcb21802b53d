"""What lilac cannot compile: the exception, its place in the user's Python, the fall-back."""

import copy
import inspect
import pickle
import warnings

import kernels
import pytest
import standin
from standin import Pointer
from triton.runtime.errors import OutOfResources

import lilac
import lilac.triton


def increment(size=32, **options):
    return kernels.increment.warmup(Pointer("fp32"), Pointer("fp32"), size, grid=(1,), **options)


def scale(**options):
    return kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,), **options)


def line_of(function, text):
    lines, first = inspect.getsourcelines(function.fn)
    (number,) = [i for i, line in enumerate(lines, first) if text in line]
    return number, lines[number - first]


def test_points_at_the_line():
    lilac.triton.enable()
    with pytest.raises(lilac.CompilationError) as caught:
        increment()
    error = caught.value
    number, line = line_of(kernels.increment, "tl.inline_asm_elementwise")
    (diagnostic,) = error.diagnostics
    assert error.kernel == "increment" and diagnostic.id == "unsupported-operation"
    assert diagnostic.file == kernels.__file__ and diagnostic.line == number
    assert line.index("tl.inline_asm_elementwise") < diagnostic.column <= len(line)
    assert diagnostic.ir_file == "increment.ttir" and diagnostic.ir_line > 1 and "tt.elementwise_inline_asm" in diagnostic.text
    shown = str(error).split("\n")
    assert shown[0] == "lilac cannot compile kernel 'increment'"
    assert shown[1].startswith(f"{kernels.__file__}:{number}:{diagnostic.column}: error: ")
    assert shown[2].strip() == line.strip()
    assert shown[3].rstrip().endswith("^") and len(shown[3]) == 4 + diagnostic.column
    assert any(one.startswith(f"increment.ttir:{diagnostic.ir_line}:") for one in shown[4:])
    (row,) = lilac.triton.report().refused
    assert row.name == "increment" and "constraint '0'" in row.reason


def test_survives_other_processes():
    """torch.compile's workers and deep copies hand exceptions on."""
    with lilac.triton.enabled(), pytest.raises(lilac.CompilationError) as caught:
        increment()
    for other in (pickle.loads(pickle.dumps(caught.value)), copy.deepcopy(caught.value)):
        assert str(other) == str(caught.value) and other.diagnostics == caught.value.diagnostics


def test_falls_back():
    lilac.triton.enable(fallback="triton")
    with pytest.warns(lilac.triton.FallbackWarning) as caught:
        kernel = increment()
    assert len(caught) == 1
    assert "increment" in str(caught[0].message) and "constraint '0'" in str(caught[0].message)
    assert caught[0].filename == kernels.__file__
    assert kernel.asm["cubin"][:4] == b"\x7fELF" and "add.f32" in kernel.asm["ptx"]
    lilac.triton.disable()
    alone = increment()
    assert alone.asm["ptx"] == kernel.asm["ptx"]
    for key in ("shared", "num_warps", "name", "tensordesc_meta", "global_scratch_size", "tmem_size"):
        assert getattr(alone.metadata, key) == getattr(kernel.metadata, key)
    (row,) = lilac.triton.report().triton
    assert row.seconds["triton"] > 0 and row.registers > 0


def test_falls_back_again_from_the_disk():
    from conftest import forget

    for again in (False, True):
        forget(kernels)
        with lilac.triton.enabled("triton"), pytest.warns(lilac.triton.FallbackWarning) as caught:
            increment()
        assert len(caught) == 1


def test_falls_back_only_where_it_must():
    lilac.triton.enable(fallback="triton")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scale()
    assert [row.compiler for row in lilac.triton.report()] == ["lilac"]


def test_other_fallbacks_are_refused():
    with pytest.raises(ValueError):
        lilac.triton.enable(fallback="cuda")
    assert not lilac.triton.is_enabled()


@pytest.mark.parametrize("capability", [70, 75, 110])
def test_unknown_device(capability):
    standin.use(capability)
    with lilac.triton.enabled(), pytest.raises(lilac.CompilationError, match=(
            f"device sm_{capability} is not supported; supported are sm_80, sm_86")) as caught:
        scale()
    assert caught.value.ids == ["unknown-device"]


def test_too_many_threads():
    """Triton's own exception of a launch with more threads than a block can have."""
    import pickle

    from triton.runtime.errors import OutOfResources

    error = refusal(num_warps=128)
    assert isinstance(error, OutOfResources) and (error.required, error.limit) == (4096, 1024)
    assert str(error).startswith("out of resource: threads, Required: 4096, Hardware limit: 1024.")
    assert "128 is no number of warps" in str(error) and str(pickle.loads(pickle.dumps(error))) == str(error)


def test_too_much_shared_memory():
    """Is Triton's exception too, which names the kernel."""
    with lilac.triton.enabled(), pytest.raises(OutOfResources, match="shared memory") as caught:
        kernels.histogram.warmup(Pointer("i32"), Pointer("i32"), 65536, grid=(1,), num_warps=32)
    error = caught.value
    assert isinstance(error, lilac.CompilationError) and error.ids == ["too-much-shared-memory"]
    assert "'histogram'" in str(error) and error.required > error.limit == 232448
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_autotuner_goes_on():
    """… so that the autotuner leaves out what the device has not the memory for."""
    lilac.triton.enable()
    kernels.tuned_histogram.run(Pointer("i32"), Pointer("i32"), grid=(1,), warmup=False)
    (best,) = kernels.tuned_histogram.cache.values()
    assert best.kwargs["SIZE"] == 1024


# ---- ptxas -------------------------------------------------------------------------------------


def own_ptxas(path, release=None, refuses=None):
    """A ptxas that says another release, or refuses PTX with a word in it."""
    from triton import knobs

    lines = ["#!/bin/sh"]
    if release:
        lines.append(f'[ "$1" = --version ] && echo "Cuda compilation tools, release {release}, V{release}.1" && exit 0')
    if refuses:
        lines.append(f'for file; do if [ "${{file%.ptx}}" != "$file" ] && grep -q "{refuses}" "$file"; then '
                     'echo "ptxas $file, line 1; error   : not today" >&2; exit 255; fi; done')
    path.write_text("\n".join([*lines, f'exec "{knobs.nvidia.ptxas.path}" "$@"', ""]))
    path.chmod(0o755)
    return str(path)


REFUSED = "parameter_0"  # a word of lilac's PTX and not of Triton's


def test_what_ptxas_refuses(monkeypatch, tmp_path, capsys):
    """It is lilac's PTX, and Triton's exception too, with all that ptxas said."""
    from triton.runtime.errors import PTXASError

    monkeypatch.setenv("LILAC_PTXAS", own_ptxas(tmp_path / "ptxas", refuses=REFUSED))
    with lilac.triton.enabled(), pytest.raises(PTXASError) as caught:
        scale()
    error = caught.value
    assert isinstance(error, lilac.CompilationError) and error.ids == ["ptx-refused"]
    assert "'scale'" in str(error) and "ptxas refuses the PTX: not today" in str(error)
    assert "share the reproducer" not in capsys.readouterr().out
    assert error.diagnostics[0].file == kernels.__file__
    assert error.diagnostics[0].line == line_of(kernels.scale, "def scale")[0]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    (row,) = lilac.triton.report().refused
    assert "not today" in row.reason


def test_falls_back_from_ptxas(monkeypatch, tmp_path, capsys):
    """Triton's PTX and machine code, a warning that says why, and nothing of lilac's left."""
    from conftest import forget

    alone = scale()
    monkeypatch.setenv("LILAC_PTXAS", own_ptxas(tmp_path / "ptxas", refuses=REFUSED))
    for _ in ("compiled", "from the disk"):
        forget(kernels)
        with lilac.triton.enabled("triton"), pytest.warns(lilac.triton.FallbackWarning) as caught:
            kernel = scale()
        assert len(caught) == 1 and caught[0].filename == kernels.__file__
        assert "ptxas refuses lilac's PTX: not today [ptx-refused]" in str(caught[0].message)
        assert kernel.asm["ptx"] == alone.asm["ptx"] and kernel.asm["cubin"][:4] == b"\x7fELF"
        for key in ("shared", "num_warps", "name", "tensordesc_meta", "global_scratch_size", "tmem_size"):
            assert getattr(alone.metadata, key) == getattr(kernel.metadata, key)
    assert "share the reproducer" not in capsys.readouterr().out
    (row,) = lilac.triton.report().triton
    assert row.seconds["triton"] > 0 and row.seconds["ptxas"] > 0 and row.registers > 0


def test_what_ptxas_refuses_of_tritons(monkeypatch, tmp_path, capsys):
    """Of a kernel that was handed back, that is Triton's own error, printed as ever."""
    from triton.runtime.errors import PTXASError

    monkeypatch.setenv("LILAC_PTXAS", own_ptxas(tmp_path / "ptxas", refuses="version"))
    with lilac.triton.enabled("triton"), pytest.raises(PTXASError) as caught:
        scale()
    assert not isinstance(caught.value, lilac.CompilationError)
    assert capsys.readouterr().out.count("share the reproducer") == 1


def test_autotuner_goes_on_after_ptxas(monkeypatch, tmp_path):
    monkeypatch.setenv("LILAC_PTXAS", own_ptxas(tmp_path / "ptxas", refuses="reqntid 128"))
    lilac.triton.enable()
    kernels.tuned_warps.run(Pointer("fp32"), grid=(1,), warmup=False)
    (best,) = kernels.tuned_warps.cache.values()
    assert best.num_warps == 2


VERSION = {90: "8.0", 100: "8.6", 103: "8.8", 120: "8.7", 121: "8.8"}


@pytest.mark.parametrize("capability", VERSION)
def test_every_device(capability):
    """The ptxas that Triton has for it takes what lilac writes, in the oldest version with the device."""
    standin.use(capability)
    lilac.triton.enable()
    try:
        kernel = scale()
    except lilac.CompilationError as error:
        if error.ids != ["ptx-version"]:
            raise
        pytest.skip(f"the ptxas of this Triton is too old: {error.diagnostics[0].message}")
    assert f".version {VERSION[capability]}\n.target sm_{capability}a\n" in kernel.asm["ptx"]
    assert kernel.asm["cubin"][:4] == b"\x7fELF"


def test_version_of_ptxas(monkeypatch, tmp_path):
    """What ptxas cannot read is refused with both versions and the program's name."""
    from conftest import forget

    own = own_ptxas(tmp_path / "ptxas", release="12.6")
    monkeypatch.setenv("LILAC_PTXAS", own)
    standin.use(100)
    with lilac.triton.enabled(), pytest.raises(lilac.CompilationError) as caught:
        scale()
    assert caught.value.ids == ["ptx-version"]
    message = caught.value.diagnostics[0].message
    assert "sm_100a needs PTX ISA version 8.6" in message and "8.5" in message and f"{own}, release 12.6" in message
    standin.use(90)
    forget(kernels)  # with the device that they were compiled for
    with lilac.triton.enabled():
        assert ".version 8.0\n" in scale().asm["ptx"]
        # The compiler does not read the instructions of assembly: it may use all that ptxas has.
        made = kernels.assembly.warmup(Pointer("fp32"), Pointer("fp32"), 128, grid=(1,))
        assert ".version 8.5\n" in made.asm["ptx"]


# ---- options -----------------------------------------------------------------------------------


def refusal(**options):
    with lilac.triton.enabled(), pytest.raises(lilac.CompilationError) as caught:
        scale(**options)
    return caught.value


def test_options_are_refused_by_name(tmp_path):
    override = tmp_path / "scale.llir"
    override.write_text("")
    error = refusal(ir_override=str(override))
    assert error.ids == ["unsupported-option"] and "ir_override" in str(error)
    assert error.diagnostics[0].file == kernels.__file__
    assert error.diagnostics[0].line == line_of(kernels.scale, "def scale")[0]
    error = refusal(ptx_version=70)
    assert error.ids == ["ptx-version"] and "option ptx_version=70" in str(error)


def test_switches_are_refused_by_name(monkeypatch):
    from triton import knobs

    for name, value in (("instrumentation_mode", "consan"), ("enable_experimental_consan", True), ("enable_asan", True),
                        ("use_ir_loc", "ttgir"), ("dump_ir_extract_di_local_variables", True)):
        if not hasattr(knobs.compilation, name):
            continue  # this Triton has no such switch
        with monkeypatch.context() as patch:
            patch.setattr(knobs.compilation, name, value)
            assert name in str(refusal(num_stages=1 + len(name)))


def test_hook_on_stages(monkeypatch):
    """A hook that only looks is served; one that replaces a stage lilac does not have is refused."""
    from triton import knobs

    if not hasattr(knobs.runtime, "add_stages_inspection_hook"):
        pytest.skip("this Triton has no such hook")
    seen = []
    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", lambda *a: seen.append(a) if a else ("", ""))
    with lilac.triton.enabled():
        scale()
    assert seen

    def replace(*arguments):
        if not arguments:
            return "", ""
        arguments[1]["ttgir"] = lambda src, metadata: src

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", replace)
    error = refusal(num_stages=1)
    assert "add_stages_inspection_hook" in str(error) and "ttgir" in str(error)


def test_overridden_stages(monkeypatch, tmp_path):
    """TRITON_KERNEL_OVERRIDE: files of stages that are there take effect, others are refused."""
    from triton import knobs

    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "files"))
    lilac.triton.enable()
    scale()
    monkeypatch.delenv("TRITON_KERNEL_DUMP")
    (file,) = (tmp_path / "files").glob("*/scale.ptx")
    file.write_text(file.read_text() + "// by hand\n")
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "files"))
    assert knobs.compilation.override
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    kernels.scale.device_caches.clear()
    assert scale().asm["ptx"].endswith("// by hand\n")
    layouts = file.parent / "scale.ttgir"
    assert "arith.mulf" in layouts.read_text()
    layouts.write_text(layouts.read_text().replace("arith.mulf", "arith.addf"))
    file.unlink()
    kernels.scale.device_caches.clear()
    changed = scale().asm
    assert "arith.addf" in changed["ttgir"] and "add.f32" in changed["ptx"] and "mul.f32" not in changed["ptx"]
    (file.parent / "scale.llir").write_text("")
    kernels.scale.device_caches.clear()
    assert "TRITON_KERNEL_OVERRIDE" in str(refusal())


def test_other_device_functions(monkeypatch, tmp_path):
    import shutil

    from triton import knobs
    from triton.backends.nvidia.compiler import CUDAOptions

    arguments = Pointer("fp32"), Pointer("fp32"), 128
    lilac.triton.enable()
    kernels.functions.warmup(*arguments, grid=(1,))
    library = tmp_path / "libdevice.10.bc"
    shutil.copy(dict(CUDAOptions().extern_libs)["libdevice"], library)
    monkeypatch.setattr(knobs.nvidia, "libdevice_path", str(library))
    with pytest.raises(lilac.CompilationError, match="libdevice_path"):
        kernels.functions.warmup(*arguments, grid=(1,), num_stages=2)
    scale()  # which calls none


def test_options_are_honoured(monkeypatch):
    from triton import knobs

    lilac.triton.enable()
    assert ".maxnreg 64" in scale(maxnreg=64).asm["ptx"]
    assert ".version 8.7" in scale(ptx_version=87).asm["ptx"]
    assert ".loc" in scale().asm["ptx"]
    monkeypatch.setattr(knobs.compilation, "disable_line_info", True)
    assert ".loc" not in scale(num_stages=2).asm["ptx"]
    monkeypatch.undo()


def test_products_and_sums_apart():
    def ptx(**options):
        made = kernels.multiply_add.warmup(Pointer("fp32"), Pointer("fp32"), Pointer("fp32"), 128, grid=(1,), **options)
        return made.asm["ptx"]

    lilac.triton.enable()
    fused, apart = ptx(enable_fp_fusion=True), ptx(enable_fp_fusion=False)
    assert "fma." in fused and "fma." not in apart and "mul." in apart and "add." in apart


def test_flushed_subnormals():
    def ptx(**options):
        return kernels.powers.warmup(Pointer("fp32"), Pointer("fp32"), 64, grid=(1,), **options).asm["ptx"]

    lilac.triton.enable()
    assert "ex2.approx.ftz.f32" in ptx() and "ex2.approx.f32" in ptx(enable_reflect_ftz=False)


def test_maxnreg_of_partitions():
    """The limit replaces the registers that partitions request, and leaves room for their warps."""
    import os

    import triton
    from conftest import ROOT

    path = os.path.join(ROOT, "tests", "data", "ttir", "matmul_tma_persistent_ws_kernel-82e73db2.ttir")
    lilac.triton.enable()
    plain, limited = (triton.compile(path, options={"num_warps": 8, **more}) for more in ({}, {"maxnreg": 224}))
    assert plain.metadata.num_warps == limited.metadata.num_warps == 12
    assert "setmaxnreg" in plain.asm["ptx"] and ".maxnreg" not in plain.asm["ptx"]
    assert "setmaxnreg" not in limited.asm["ptx"] and ".maxnreg 168" in limited.asm["ptx"]


def test_maxnreg_holds():
    lilac.triton.enable()
    kernels.row_sums.warmup(Pointer("fp32"), Pointer("fp32"), 64, 256, grid=(1,), num_warps=1, maxnreg=32)
    (row,) = lilac.triton.report().rows
    assert row.registers == 32 and row.spills > 0
