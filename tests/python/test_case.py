"""What the benchmark calls right: kernels that are wrong in one place must not pass. The kernels are
Python functions on tensors of the CPU, so PyTorch is all that is needed."""

import math

import pytest

from lilac.bench.case import Buffer, Case, Constant, Expected, Launch, within

torch = pytest.importorskip("torch", reason="references are computed by PyTorch")

N = 1000


class Kernel:
    """As a @triton.jit kernel is launched; the function takes the tensors."""

    def __init__(self, function, names):
        function.__name__ = "kernel"
        self.fn, self.arg_names = function, names

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.fn(*arguments)


def half(function, dtype="f32", fill=None, tolerance=None, reference=lambda a: a.x / 2):
    launch = Launch(Kernel(function, ["x", "y", "n", "B"]), 1,
                    [Buffer(N, dtype), Buffer(N, dtype, fill, output=True), N], B=4)
    case = Case("half", "test", launch, reference, tolerance=within(dtype) if tolerance is None else tolerance)
    case.make(seed=3, device="cpu")
    return case


def right(x, y, n, B):
    y.copy_(x / 2)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_a_right_kernel(dtype):
    case = half(right, dtype)
    assert case.check() <= 1
    assert case.check() <= 1


def test_rounding_once_is_allowed_and_twice_the_distance_is_not():
    rounded = half(lambda x, y, n, B: y.copy_((x.double() / 3).float()), reference=lambda a: a.x / 3)
    assert 0.1 < rounded.check() <= 1
    off = half(lambda x, y, n, B: y.copy_((x.double() / 3 * (1 + 2**-22)).float()),
               reference=lambda a: a.x / 3)
    assert off.check() > 1


def leaves_one_out(x, y, n, B):
    y[:-1] = x[:-1] / 2


def writes_nothing(x, y, n, B):
    pass


def one_place_off(x, y, n, B):
    y.copy_(x.roll(1) / 2)


def one_element_small(x, y, n, B):
    right(x, y, n, B)
    y[17] += 0.01


def writes_after(x, y, n, B):
    right(x, y, n, B)
    torch.as_strided(y, (1,), (1,), y.storage_offset() + N).zero_()


def writes_before(x, y, n, B):
    right(x, y, n, B)
    torch.as_strided(y, (1,), (1,), y.storage_offset() - 1).zero_()


def reads_after(x, y, n, B):
    y.copy_(torch.as_strided(x, (N,), (1,), x.storage_offset() + 1) / 2)


@pytest.mark.parametrize("wrong", [leaves_one_out, writes_nothing, one_place_off, one_element_small,
                                   writes_after, writes_before, reads_after])
def test_wrong_kernels(wrong):
    assert not half(wrong).check() <= 1


def test_what_an_earlier_launch_wrote_does_not_count():
    case = half(right)
    assert case.check() <= 1
    case.launch.kernel.fn = writes_nothing
    assert case.check() == math.inf


def test_small_elements_count_beside_large_ones():
    """One element in a thousand is large: those near zero still have to be right."""
    def peaks(torch, generator, device):
        values = torch.full((N,), 1e-4)
        values[0] = 1.0
        return values

    def flat(x, y):
        y.copy_(x)
        y[1:] = 0

    launch = Launch(Kernel(flat, ["x", "y"]), 1, [Buffer(N, "f32", peaks), Buffer(N, "f32", output=True)])
    case = Case("peaks", "test", launch, lambda a: a.x, tolerance=within("bf16"))
    case.make(device="cpu")
    assert case.check() > 1


def test_integers_are_compared_exactly():
    def count(x, y, n, B):
        y.copy_(x + 1)

    assert half(count, "i32", tolerance=0, reference=lambda a: a.x + 1).check() == 0
    assert half(count, "i32", tolerance=0, reference=lambda a: a.x).check() == math.inf


def test_outputs_that_are_read_start_afresh():
    def add(x, y, n, B):
        y += x

    case = half(add, fill="normal", reference=lambda a: a.x + a.y)
    assert case.check() <= 1
    case.launch()
    assert case.check() <= 1
    assert case.bytes == 3 * 4 * N  # read, read and written


def test_infinities_have_to_agree():
    def infinite(x, y, n, B):
        y.copy_(x / 2)
        y[0] = math.inf

    def reference(a):
        result = a.x / 2
        result[0] = math.inf
        return result

    assert half(infinite).check() == math.inf
    assert half(infinite, reference=reference).check() <= 1
    assert half(right, reference=reference).check() == math.inf


def test_the_same_seed_gives_the_same_inputs():
    one, other = half(right), half(right)
    assert torch.equal(one.launch.tensors["x"].used, other.launch.tensors["x"].used)
    other.make(seed=4, device="cpu")
    assert not torch.equal(one.launch.tensors["x"].used, other.launch.tensors["x"].used)


def test_arguments_have_to_fit_the_kernel():
    kernel = Kernel(right, ["x", "y", "n", "B"])
    x = Buffer(N, "f32")
    Launch(kernel, 1, [x, x, N, Constant(4)])
    with pytest.raises(TypeError, match="n"):
        Launch(kernel, 1, [x, x], B=4)
    with pytest.raises(TypeError, match="C"):
        Launch(kernel, 1, [x, x, N], C=4)
    with pytest.raises(ValueError, match="f33"):
        Buffer(N, "f33")


def test_a_reference_has_to_give_every_output():
    case = half(right, reference=lambda a: {"z": a.x})
    with pytest.raises(ValueError, match="z"):
        case.check()
    with pytest.raises(ValueError, match="shape"):
        half(right, reference=lambda a: a.x[:3]).check()


def test_a_reference_may_say_what_it_allows():
    """Each element has its own limit; the tolerance does not count, nor does an element that is not finite."""
    def off(x, y, n, B):
        y.copy_(x / 2)
        y[3] += 0.5
        y[5] = math.inf

    def allowing(at_three, value=1e-6):
        def reference(a):
            want, allowed = a.x / 2, torch.full_like(a.x, value)
            want[5], allowed[3], allowed[5] = math.inf, at_three, math.nan
            return Expected(want, allowed)
        return reference

    assert 0.9 < half(off, tolerance=0, reference=allowing(0.51)).check() <= 1
    assert half(off, tolerance=10, reference=allowing(0.4)).check() == pytest.approx(1.25, abs=0.01)
    assert half(off, reference=allowing(0)).check() > 1e30
    with pytest.raises(ValueError, match="not a number"):
        half(off, reference=allowing(0.51, math.nan)).check()
