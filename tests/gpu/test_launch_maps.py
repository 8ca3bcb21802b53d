"""Products through pointers whose tensor maps the launcher makes: right results, with maps where they are possible and
without where they are not."""

import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "programs" / "launch_maps.py"


def capability():
    import torch

    return torch.cuda.get_device_capability()


@pytest.fixture(scope="module")
def cases(tmp_path_factory, started):
    if capability() != (9, 0):
        pytest.skip("the device has no wgmma")
    made = dict(started) | {"LILAC_TRITON": "1", "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run([sys.executable, PROGRAM], env=made, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = {name: words for name, *words in (line.split() for line in done.stdout.splitlines())}
    if cases["compiler"] == ["False"]:
        pytest.skip("this compiler has no tensor maps of the launcher")
    return cases


KERNELS = ("tutorial", "masked")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case, launches", [("", 1), ("-repeated", 1), ("-edges", 1), ("-pitch", 1), ("-graph", 2)])
def test_with_maps(cases, kernel, case, launches):
    error, *counts, _ = cases[kernel + case]
    assert float(error) == 0 and list(map(int, counts)) == [launches, 0, 0]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case, launches", [("-long", 1), ("-long_graph", 2)])
def test_divided_sums(cases, kernel, case, launches):
    error, *counts, _ = cases[kernel + case]
    assert float(error) == 0 and list(map(int, counts)) == [launches, 0, launches]


@pytest.mark.parametrize("kernel", (*KERNELS, "unmasked"))
@pytest.mark.parametrize("case", ["-joined", "-divided"])
def test_lengths_of_tiles(cases, kernel, case):
    """Tiles of 32, an odd number of them, and of 128. What surrounds the matrices is not read into the sums."""
    error, *counts, _ = cases[kernel + case]
    assert float(error) == 0 and list(map(int, counts)) == [1, 0, 0]


@pytest.mark.parametrize("kernel, case", [(kernel, case) for kernel in KERNELS for case in ("-odd_pitch", "-odd_base")]
                         + [("masked", "-nothing")])
def test_without_maps(cases, kernel, case):
    error, *counts, _ = cases[kernel + case]
    assert float(error) == 0 and int(counts[0]) == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_few_iterations(cases, kernel):
    """The plain kernel is faster."""
    error, *counts, _ = cases[kernel + "-few"]
    assert float(error) == 0 and list(map(int, counts)) == [0, 1, 0]


@pytest.mark.parametrize("kernel", (*KERNELS, "unmasked"))
@pytest.mark.parametrize("case, launches", [("-few_blocks", 1), ("-many_blocks", 0)])
def test_one_block(cases, kernel, case, launches):
    error, maps, *_, one_block = cases[kernel + case]
    assert float(error) == 0 and (int(maps), int(one_block)) == (1, launches)


def test_tensor_of_the_host(cases):
    assert cases["cpu"] == ["ValueError"]


def test_torch_compile(tmp_path, started):
    """A template of Inductor's, whose static launcher does not know maps."""
    if capability() != (9, 0):
        pytest.skip("the device has no wgmma")
    made = dict(started) | {"LILAC_TRITON": "1", "TRITON_CACHE_DIR": str(tmp_path / "triton"),
                            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    done = subprocess.run([sys.executable, PROGRAM.with_name("compiled_product.py")], env=made, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    words = dict(line.split() for line in done.stdout.splitlines())
    assert float(words["error"]) < 1e-2
    assert (words["mapped"], words["plain"]) == ("1", "0")
