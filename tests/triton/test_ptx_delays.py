"""PTX with delays and without waits (tests/support/ptx_delays.py), as tests/gpu/programs/stress.py makes it: ptxas
accepts it, serialises no wgmma for it, and each mutation lacks one wait."""

import pathlib
import re
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "gpu" / "programs")]
import ptx_delays  # noqa: E402
import stress  # noqa: E402

KERNELS = ("matmul_f16_NN_512x768x768", "matmul_tf32_NN_256x256x512", "attention_f16_d128_full_1x4x512")

# Bytes: two blocks are asked for, which leave a thread 128 registers, and the delays need some of them.
SPILLED = {"matmul_tf32_NN_256x256x512": 44}

BLOCK = re.compile(r"\t\{\n\t\.reg \.b32 %delay<5>;\n(\t[^\n]*%delay[^\n]*\n)*\t\}\n")


def texts(name, monkeypatch, folder):
    """The PTX of a case's kernels, without tensor maps of the launcher and with them."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    found = []
    case = next(case for case, _ in stress.all_cases() if case.name == name)
    with stress.changed(lambda ptx, maps: found.append((maps, ptx)) or ptx, "texts", True):
        case.launch.compile()
    return [ptx for _, ptx in sorted(found)]


def assembled(ptx, folder):
    """What ptxas says."""
    from triton import knobs

    path = folder / "kernel.ptx"
    path.write_text(ptx)
    done = subprocess.run([knobs.nvidia.ptxas.path, "-v", "--gpu-name=sm_90a", path, "-o", folder / "kernel.cubin"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", KERNELS)
def test_delays(name, monkeypatch, tmp_path):
    kernels = texts(name, monkeypatch, tmp_path / "cache")
    assert len(kernels) == 2
    for ptx in kernels:
        text = ptx_delays.delayed(ptx)
        count = len(ptx_delays.places(ptx.split("\n")))
        assert text.count("nanosleep") == count > 10
        assert BLOCK.subn("", text) == (ptx, count)  # nothing else has changed
        said = assembled(text, tmp_path)
        assert "C75" not in said
        spilled = int(re.search(r"(\d+) bytes spill stores", said).group(1))
        assert spilled <= SPILLED.get(name, 0)


@pytest.mark.parametrize("name", KERNELS)
def test_mutations(name, monkeypatch, tmp_path):
    kinds = set()
    for ptx in texts(name, monkeypatch, tmp_path / "cache"):
        lines = ptx.split("\n")
        for kind in ptx_delays.REMOVED:
            for which, number in enumerate(ptx_delays.waits(ptx, kind)):
                text = ptx_delays.mutated(ptx, kind, which)
                assert text.split("\n") == lines[:number] + lines[number + 1:]
                kinds.add(kind)
    assert kinds == set(ptx_delays.REMOVED)
