"""A case: a launch of a Triton kernel, its expected result, and the least work for it.

    @triton.jit
    def double(x, y, n, BLOCK: tl.constexpr): ...

    launch = Launch(double, grid=1024, arguments=[Buffer(n, "f32"), Buffer(n, "f32", output=True), n],
                    BLOCK=1024, num_warps=4)
    case = Case("double_f32", "pointwise", launch, lambda a: 2 * a.x, operations=n, tolerance=1e-7)

    case.make(seed=1)   # tensors, on the GPU
    case.check()        # one launch on poisoned outputs: the error over what is allowed; right is <= 1
    case.launch()       # one launch
    case.free()

The module of `python -m lilac.bench MODULE` defines `cases()`, which returns such cases or any
objects with `name`, `launch`, `check`, `bytes` and `operations`. PyTorch is imported when tensors are
made, so a machine without it (or without a GPU) can still compile every case: `case.launch.compile()`.
"""

import itertools
import math
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

DataType = namedtuple("DataType", "torch triton bytes")

DATA_TYPES = {
    #                   PyTorch's name  Triton's  bytes
    "f64":    DataType("float64",       "fp64",    8),
    "f32":    DataType("float32",       "fp32",    4),
    "f16":    DataType("float16",       "fp16",    2),
    "bf16":   DataType("bfloat16",      "bf16",    2),
    "f8e4m3": DataType("float8_e4m3fn", "fp8e4nv", 1),
    "f8e5m2": DataType("float8_e5m2",   "fp8e5",   1),
    "i64":    DataType("int64",         "i64",     8),
    "i32":    DataType("int32",         "i32",     4),
    "i16":    DataType("int16",         "i16",     2),
    "i8":     DataType("int8",          "i8",      1),
    "u8":     DataType("uint8",         "u8",      1),
    "i1":     DataType("bool",          "i1",      1),
}  # fmt: skip

# Half the distance between 1 and the next number: the relative error of one rounding.
ROUNDING = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8,
            "f8e4m3": 2.0**-4, "f8e5m2": 2.0**-3}  # fmt: skip

# Half the distance of the numbers next to zero, which is as far as rounding moves small results.
SMALLEST = {"f64": 0.0, "f32": 2.0**-150, "f16": 2.0**-25, "bf16": 2.0**-134, "f8e4m3": 2.0**-10,
            "f8e5m2": 2.0**-17}  # fmt: skip


def within(dtype, steps=0):
    """The tolerance of a result of this type that `steps` roundings in f32 lead to."""
    return 1.001 * ROUNDING[dtype] + steps * ROUNDING["f32"]


# Before and after every buffer, to notice accesses outside: NaN in each floating-point type.
GUARD = 4096
POISON = 0xFF


@dataclass(frozen=True)
class Buffer:
    """A tensor argument.

    `fill` says what it holds before a launch: "normal" (mean 0, deviation 1), "uniform" (0 to 1),
    ("integers", low, high) with high not among them, "zeros", or a function(torch, generator, device)
    that gives a tensor of this shape; when left out, "normal" or the integers of a byte. An output is
    poisoned before each checked launch, unless the kernel also reads it: then `fill` says what it
    finds there. With `block`, the kernel is given a tensor descriptor with blocks of this shape.
    """

    shape: tuple
    dtype: str
    fill: object = None
    output: bool = False
    block: tuple = None

    def __post_init__(self):
        shape = (self.shape,) if isinstance(self.shape, int) else tuple(self.shape)
        object.__setattr__(self, "shape", shape)
        if self.dtype not in DATA_TYPES:
            raise ValueError(f"no such type of elements: {self.dtype} (one of {', '.join(DATA_TYPES)})")
        if self.fill is None and not self.output:
            first = {"u8": 0, "i1": 0}.get(self.dtype, -128)
            integers = ("integers", first, 2 if self.dtype == "i1" else first + 256)
            object.__setattr__(self, "fill", "normal" if self.dtype in ROUNDING else integers)

    @property
    def elements(self):
        return math.prod(self.shape)

    @property
    def bytes(self):
        return self.elements * DATA_TYPES[self.dtype].bytes

    @property
    def read(self):
        """Whether the kernel finds something here that it may read."""
        return self.fill is not None


@dataclass(frozen=True)
class Constant:
    """A tl.constexpr argument among the positional arguments."""

    value: object


class Launch:
    """One launch of a @triton.jit kernel: `arguments` in the kernel's order, its tl.constexpr arguments
    as Constant or by keyword."""

    def __init__(self, kernel, grid, arguments, *, num_warps=4, num_stages=3, num_ctas=1, **constants):
        self.kernel = kernel
        self.grid = (grid,) if isinstance(grid, int) else tuple(grid)
        self.options = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
        names = kernel.arg_names
        given = [name for name in names if name not in constants]
        if len(given) != len(arguments) or len(given) + len(constants) != len(names):
            raise TypeError(f"{self.name}: given {len(arguments)} arguments and "
                            f"{sorted(constants)} for the parameters {names}")
        placed = {**dict(zip(given, arguments)), **{k: Constant(v) for k, v in constants.items()}}
        self.arguments = {name: placed[name] for name in names}
        self.tensors = None

    @property
    def name(self):
        return self.kernel.fn.__name__

    @property
    def buffers(self):
        return {name: a for name, a in self.arguments.items() if isinstance(a, Buffer)}

    @property
    def outputs(self):
        return {name: a for name, a in self.buffers.items() if a.output}

    # ---- compiled with no GPU and no PyTorch

    def specialization(self):
        """(signature, constants, attributes) as Triton's launcher would find them: integers that 16
        divides and aligned pointers are marked, an integer that is 1 is a constant. They are part of the key in
        Triton's cache, so empty attributes count too."""
        aligned = [["tt.divisibility", 16]]
        signature, constants, attributes = {}, {}, {}
        for index, (parameter, argument) in enumerate(zip(self.kernel.params, self.arguments.values())):
            name, plain = parameter.name, parameter.do_not_specialize
            if isinstance(argument, Buffer) and argument.block:
                signature[name] = f"tensordesc<{DATA_TYPES[argument.dtype].triton}{list(argument.block)}>"
            elif isinstance(argument, Buffer):
                signature[name] = "*" + DATA_TYPES[argument.dtype].triton
                attributes[(index,)] = aligned  # as every allocation is
            elif isinstance(argument, Constant):
                signature[name], constants[name] = "constexpr", argument.value
                if isinstance(argument.value, str):  # the launcher takes any string here for attributes
                    attributes[(index,)] = aligned if "D" in argument.value else []
            elif isinstance(argument, bool):
                signature[name] = "u1"
            elif isinstance(argument, float):
                signature[name] = "fp32"
            elif argument == 1 and not plain:
                signature[name], constants[name] = "constexpr", 1
            else:
                signature[name] = "i32" if -(2**31) <= argument < 2**31 else "i64"
                if not plain:
                    divided = argument % 16 == 0 and not parameter.do_not_specialize_on_alignment
                    attributes[(index,)] = aligned if divided else []
        return signature, constants, attributes

    def source(self):
        """The argument of triton.compile."""
        from triton.compiler import ASTSource

        return ASTSource(self.kernel, *self.specialization())

    def compile(self, target=None):
        """Triton's compiled kernel, for an H200 unless another target is given; no GPU is needed."""
        import triton
        from triton.backends.compiler import GPUTarget

        return triton.compile(self.source(), target=target or GPUTarget("cuda", 90, 32),
                              options=dict(self.options))

    # ---- launched

    def make(self, seed=0, device="cuda"):
        """Creates the tensors and fills them; equal seeds lead to equal contents."""
        import torch

        generator = torch.Generator(device=device)
        tensors = {name: Tensor(torch, buffer, device) for name, buffer in self.buffers.items()}
        for number, tensor in enumerate(tensors.values()):
            generator.manual_seed(1000003 * seed + number)
            tensor.fill(generator)
        self.use(tensors)

    def use(self, tensors):
        """Takes these tensors, by parameter, as those that it is launched on."""
        self.tensors = tensors
        self._values = [self.tensors[name].passed() if isinstance(argument, Buffer) else
                        argument.value if isinstance(argument, Constant) else argument
                        for name, argument in self.arguments.items()]

    def free(self):
        self.tensors = self._values = None

    def reset(self):
        """Outputs as they are before a checked launch."""
        for tensor in self.tensors.values():
            if tensor.buffer.output:
                tensor.reset()

    def __call__(self):
        """Launches once on the existing tensors; returns Triton's compiled kernel."""
        if self.tensors is None:
            self.make()
        return self.kernel[self.grid](*self._values, **self.options)

    def simulate(self, target="sm_90a", launch_maps=False):
        """Launches once on lilac's simulator, on tensors of the CPU; returns the report of lilac.run. launch_maps: the
        kernel that has tensor maps of the launcher, if there is one; SimulationError where the launch cannot have them."""
        import lilac
        import lilac.triton

        with lilac.triton.enabled():
            text = self.compile().asm["ttir"]
        signature = self.specialization()[0]
        passed, more = {}, itertools.count()
        for (name, argument), value in zip(self.arguments.items(), self._values):
            if isinstance(argument, Buffer):
                tensor = self.tensors[name].used
                passed[name] = memory(tensor)
                if argument.block:  # Triton appends shape and strides, numbered through all descriptors
                    passed.update({f"{name}_{next(more)}": number for number in (*tensor.shape, *tensor.stride())})
            elif signature[name] != "constexpr":
                passed[name] = value
        kernel = lilac.compile(text, num_warps=self.options["num_warps"], target=target, launch_maps=launch_maps)
        return lilac.run(kernel, self.grid, passed)

    def inputs(self):
        """What the kernel is given, by name, for references: floating point as doubles, integers as
        64-bit integers, of outputs only those that are read, as they are before a launch."""
        values = {}
        for (name, argument), value in zip(self.arguments.items(), self._values):
            if not isinstance(argument, Buffer):
                values[name] = value
            elif argument.read:
                tensor = self.tensors[name]
                value = tensor.used if tensor.before is None else tensor.before
                values[name] = value.double() if value.is_floating_point() else \
                    value if argument.dtype == "i1" else value.long()
        return SimpleNamespace(**values)


class Tuned:
    """A launch that has several configurations on the same tensors, of which each compiler takes the one that is
    fastest under it, as with @triton.autotune. `configurations` are Launches, by a name that describes each."""

    def __init__(self, configurations):
        self.configurations = dict(configurations)
        self.first = next(iter(self.configurations.values()))
        self.chosen = {}   # a configuration's name, by compiler
        self.current = self.first

    def __getattr__(self, name):
        """What does not depend on the configuration: kernel, buffers, outputs, tensors, inputs, reset."""
        return getattr(self.first, name)

    def make(self, seed=0, device="cuda"):
        self.first.make(seed, device)
        for launch in self.configurations.values():
            launch.use(self.first.tensors)

    def free(self):
        for launch in self.configurations.values():
            launch.free()

    def choose(self, compiler, time):
        """Takes the configuration with the least of `time(launch, limit)`, in milliseconds; a time above `limit`, the
        least so far, need not be exact. A configuration that cannot be launched, for instance for lack of shared memory, is left out; if none
        can, raises what was wrong with the last."""
        least, problem = math.inf, ValueError("no configuration can be timed")
        for name, launch in self.configurations.items():
            try:
                ms = time(launch, least)
            except Exception as error:
                problem = error
                continue
            if ms < least:
                least, self.chosen[compiler] = ms, name
        if compiler not in self.chosen:
            raise problem
        return self.chosen[compiler]

    def select(self, compiler):
        """Launches are of this compiler's choice from now on."""
        self.current = self.configurations[self.chosen[compiler]]

    def __call__(self):
        return self.current()


class Sequence:
    """Launches one behind the other that are one operator. Parameters of the same name are one tensor: a buffer that
    one of them has as an output is an output of all, and its contents are those of the first that has it."""

    def __init__(self, launches):
        self.launches = list(launches)
        self.buffers = {}
        for launch in self.launches:
            for name, buffer in launch.buffers.items():
                known = self.buffers.setdefault(name, buffer)
                if (known.shape, known.dtype) != (buffer.shape, buffer.dtype):
                    raise ValueError(f"{name} is {known.shape} {known.dtype} and {buffer.shape} {buffer.dtype}")
        self.tensors = None

    @property
    def outputs(self):
        return {name: buffer for name, buffer in self.buffers.items() if buffer.output}

    def make(self, seed=0, device="cuda"):
        import torch

        generator = torch.Generator(device=device)
        self.tensors = {name: Tensor(torch, buffer, device) for name, buffer in self.buffers.items()}
        for number, tensor in enumerate(self.tensors.values()):
            generator.manual_seed(1000003 * seed + number)
            tensor.fill(generator)
        for launch in self.launches:
            launch.use(self.tensors)

    def free(self):
        self.tensors = None
        for launch in self.launches:
            launch.free()

    def reset(self):
        for tensor in self.tensors.values():
            if tensor.buffer.output:
                tensor.reset()

    def inputs(self):
        """As those of a Launch; of buffers that an earlier launch writes, none."""
        values = {}
        for launch in self.launches:
            for name, value in vars(launch.inputs()).items():
                if not (name in self.outputs and not self.buffers[name].read):
                    values.setdefault(name, value)
        return SimpleNamespace(**values)

    def compile(self, target=None):
        """The last one's compiled kernel."""
        return [launch.compile(target) for launch in self.launches][-1]

    def simulate(self, target="sm_90a", launch_maps=False):
        """The report of the last launch."""
        return [launch.simulate(target, launch_maps) for launch in self.launches][-1]

    def __call__(self):
        return [launch() for launch in self.launches][-1]


def memory(tensor):
    """A tensor of the CPU as a NumPy array on the same memory, types that NumPy lacks as integers."""
    import torch

    bits = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}
    return tensor.view(bits.get(tensor.dtype, tensor.dtype)).numpy()


class Tensor:
    """A buffer's memory with a guard on each side."""

    def __init__(self, torch, buffer, device):
        self.torch, self.buffer, self.before = torch, buffer, None
        self.memory = torch.full((buffer.bytes + 2 * GUARD,), POISON, dtype=torch.uint8, device=device)
        inside = self.memory[GUARD:GUARD + buffer.bytes]
        self.used = inside.view(getattr(torch, DATA_TYPES[buffer.dtype].torch)).view(buffer.shape)

    def fill(self, generator):
        torch, how, shape = self.torch, self.buffer.fill, self.buffer.shape
        device = self.memory.device
        if how is None:
            return
        if callable(how):
            values = how(torch, generator, device)
        elif how == "normal":
            values = torch.randn(shape, generator=generator, device=device)
        elif how == "uniform":
            values = torch.rand(shape, generator=generator, device=device)
        elif how == "zeros":
            values = torch.zeros(shape, device=device)
        elif isinstance(how, tuple) and how[0] == "integers":
            values = torch.randint(how[1], how[2], shape, generator=generator, device=device)
        else:
            raise ValueError(f"no such way to fill a buffer: {how!r}")
        if tuple(values.shape) != shape:
            raise ValueError(f"the buffer has shape {shape}, its contents {tuple(values.shape)}")
        self.used.copy_(values)
        if self.buffer.output:
            self.before = self.used.clone()

    def passed(self):
        """The launch's argument."""
        if not self.buffer.block:
            return self.used
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor.from_tensor(self.used, list(self.buffer.block))

    def reset(self):
        self.memory.fill_(POISON)
        if self.before is not None:
            self.used.copy_(self.before)

    def result(self):
        """The contents, with elements of one bit as the bytes they are stored in."""
        return self.used.view(self.torch.uint8) if self.buffer.dtype == "i1" else self.used

    def written_outside(self):
        end = GUARD + self.buffer.bytes
        return bool((self.memory[:GUARD] != POISON).any() or (self.memory[end:] != POISON).any())


# The operator in a library: its name, and a function that takes the launch's tensors (by parameter, as attributes) and
# returns one with no arguments that computes the operator on them. `collect` is for libraries that cannot write into the
# launch's outputs: from what that function returns, a dict of the outputs that the library computes, in any shape.
Library = namedtuple("Library", "name prepare collect", defaults=(None,))

# Of an output: the numbers, and how far each may be off beside the rounding of numbers near zero.
Expected = namedtuple("Expected", "value allowed")


class Case:
    """A launch, its answer, and the least it must do.

    `reference` takes what the launch is given (by the parameters' names, see Launch.inputs) and gives
    the expected output, or a dict of them by name. An element may be off by `tolerance` (a number, or
    one for each output by name) times its magnitude or the output's mean magnitude, whichever is
    larger, and by the rounding of numbers near zero; 0 asks for the very numbers. An output that the
    reference gives as Expected(value, allowed) may be off by `allowed`, a tensor of its shape, and
    `tolerance` says nothing about it. `bytes` are what any
    program for this operator must move between the processor and memory, by default every buffer
    once; `operations` the arithmetic. `unit` is the type of the operands that a matrix unit multiplies
    (a key of runner.MATRIX_UNITS), or None for arithmetic in f32. `libraries` are the
    Libraries that have the operator, too.
    """

    def __init__(self, name, family, launch, reference, bytes=None, operations=0, tolerance=0, unit=None,
                 libraries=()):
        self.name, self.family, self.launch, self.reference = name, family, launch, reference
        self.operations, self.tolerance, self.unit, self.libraries = operations, tolerance, unit, libraries
        self.bytes = bytes if bytes is not None else sum(
            b.bytes * (2 if b.output and b.read else 1) for b in launch.buffers.values())
        self.expected = None

    def make(self, seed=0, device="cuda"):
        self.launch.make(seed, device)
        self.expected = None

    def free(self):
        self.launch.free()
        self.expected = None

    def errors(self, launch=None):
        """Launches once on poisoned outputs (by `launch`, as launch.simulate); the error of each output over
        what is allowed."""
        if self.launch.tensors is None:
            self.make()
        if self.expected is None:
            expected = self.reference(self.launch.inputs())
            outputs = list(self.launch.outputs)
            self.expected = expected if isinstance(expected, dict) else {outputs[0]: expected}
            if sorted(self.expected) != sorted(outputs):
                raise ValueError(f"{self.name}: outputs {outputs}, expected {sorted(self.expected)}")
        self.launch.reset()
        (launch or self.launch)()
        found = {}
        for name, want in self.expected.items():
            tensor = self.launch.tensors[name]
            tolerance = self.tolerance.get(name, 0) if isinstance(self.tolerance, dict) else self.tolerance
            want, allowed = want if isinstance(want, Expected) else (want, None)
            found[name] = math.inf if tensor.written_outside() else \
                error(tensor.result(), want, tolerance, SMALLEST.get(tensor.buffer.dtype, 0.0), allowed)
        return found

    def check(self):
        """The largest of the errors; the result is right when it is at most 1."""
        return max(self.errors().values())


def error(got, want, tolerance, smallest=0.0, allowed=None):
    """The largest difference over what is allowed (see Case); infinite where one side is not finite
    and the other is not the same."""
    if tuple(got.shape) != tuple(want.shape):
        raise ValueError(f"the output has shape {tuple(got.shape)}, the reference {tuple(want.shape)}")
    if tolerance == 0 and allowed is None:
        return 0.0 if bool((got == want).all()) else math.inf
    got, want = got.double(), want.double()
    finite = want.isfinite()
    if not bool(((got == want) | (finite & got.isfinite())).all()):
        return math.inf
    zero = want.new_zeros(())
    got, want = got.where(finite, zero), want.where(finite, zero)
    if allowed is None:
        allowed = tolerance * want.abs().clamp_min(max(want.abs().mean().item(), 1e-300))
    elif not bool((allowed.where(finite, zero) >= 0).all()):  # NaN too
        raise ValueError("the reference allows an error that is not a number")
    # Where the result is not finite, nothing is compared but that.
    return ((got - want).abs() / (allowed.where(finite, zero) + max(smallest, 1e-300))).max().item()
