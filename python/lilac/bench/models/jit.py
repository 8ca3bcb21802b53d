"""The kernels that a program launches itself, by Triton's decorators: `@triton.jit`, with or without an autotuner.

`Recorder.compile(run)` calls `run()` and compiles every kernel that it launches under both compilers, at the launch,
where the arguments are at hand. `Recorder.launches(run)` calls it again and returns a `capture.Launch` for each
different pair of a kernel and its arguments. An autotuner measures nothing meanwhile: its kernel runs with the first of
at most CONFIGURATIONS configurations, which a hash of their text chooses, so that neither compiler's choice decides.
All of them are compiled, and measured as the launch options of a generated kernel are.
"""

import contextlib
import hashlib
import threading

from ..runner import NAMES
from .capture import Changed, Launch, copies, shape, store, memory_is_short

CONFIGURATIONS = 3


class Slot(int):
    """The place of a tensor among a launch's tensors."""


def argument(value):
    """Whether a launch with this value can be repeated: a tensor, a number, a text, a descriptor's key or a type."""
    import torch

    return isinstance(value, (torch.Tensor, int, float, str, bool, type(None))) or hasattr(value, "cache_key") \
        or type(value).__module__ == "triton.language.core"


class Call:
    """A launch of a JIT function with all of its arguments, as JITFunction.run gets them."""

    def __init__(self, function, args, grid, options):
        names = [parameter.name for parameter in function.params]
        bound = function.signature.bind(*args, **{k: v for k, v in options.items() if k in names})
        bound.apply_defaults()
        self.function, self.values = function, [bound.arguments[name] for name in names]
        for value in self.values:
            if not argument(value):
                raise Changed(f"{function.__name__} has an argument of type {type(value).__name__}")
        self.options = {k: v for k, v in options.items() if k not in names}
        sizes = list(grid(dict(bound.arguments)) if callable(grid) else grid)
        self.grid = (*sizes, 1, 1)[:3]

    def compile(self):
        """The kernel, by the compiler that is switched on."""
        return self.function.run(*self.values, grid=self.grid, warmup=True, **self.options)


class Launcher:
    """A compiled kernel with the arguments of a call that are no tensors."""

    def __init__(self, kernel, call, slots):
        kernel._init_handles()
        self.kernel, self.grid, self.names = kernel, call.grid, [one.name for one in call.function.params]
        self.values = [slots.get(id(value), value) for value in call.values]
        self.n_regs, self.n_spills, self.shared = kernel.n_regs, kernel.n_spills, kernel.metadata.shared

    def tensor_names(self):
        """The names of the first parameters that are these tensors."""
        found = {}
        for name, value in zip(self.names, self.values):
            if isinstance(value, Slot):
                found.setdefault(value, name)
        return [found[place] for place in sorted(found)]

    def __call__(self, *tensors, stream):
        values = [tensors[value] if isinstance(value, Slot) else value for value in self.values]
        self.kernel[self.grid](*values, stream=stream)


def tensors_of(calls):
    """The different tensors that are arguments of these calls, in order."""
    import torch

    found = {}
    for call in calls.values():
        for value in call.values:
            if isinstance(value, torch.Tensor):
                found.setdefault(id(value), value)
    return list(found.values())


def compiled(calls, slots, name):
    """{options: (launcher, kernel)} of the compiler `name`, which must be switched on."""
    found = {}
    for key, call in calls.items():
        kernel = call.compile()
        maker = (getattr(kernel.metadata, "lilac", None) or {}).get("compiler", "triton")
        if maker != name:
            raise RuntimeError(f"the kernel was compiled by {maker}")
        try:
            found[key] = (Launcher(kernel, call, slots), kernel)
        except Exception:  # it needs more of the GPU than there is, as some configurations of an autotuner do
            continue
    if not found:
        raise RuntimeError("no configuration can be launched")
    return found


def options_of(config):
    return (tuple(sorted(config.kwargs.items())), config.num_warps, config.num_stages)


def chosen(configs):
    """At most CONFIGURATIONS of an autotuner's configurations."""
    return sorted(configs, key=lambda one: hashlib.sha256(str(one).encode()).hexdigest())[:CONFIGURATIONS]


class Recorder:
    def __init__(self, compilers):
        self.compilers, self.made = compilers, {}
        self.collected, self.busy = None, False  # the calls of an autotuner's configurations; in an inner launch

    def key(self, calls):
        first = next(iter(calls.values()))
        return (first.function.__name__, tuple(calls), tuple(map(shape, first.values)), first.grid)

    def compile_calls(self, calls):
        key = self.key(calls)
        if key in self.made:
            return
        slots = {id(one): Slot(place) for place, one in enumerate(tensors_of(calls))}
        self.made[key] = {}
        for name in NAMES:
            try:
                self.made[key][name] = self.compilers(name, compiled)(calls, slots, name)
            except Exception as problem:
                self.made[key][name] = problem

    @contextlib.contextmanager
    def _hooked(self, visit):
        """In this context `visit(calls)` is called before each launch."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        run_function, run_tuned = JITFunction.run, Autotuner.run
        lock = threading.RLock()  # gradients are launched by a thread of their own

        def function(jit, *args, grid, warmup, **options):
            if self.busy:
                return run_function(jit, *args, grid=grid, warmup=warmup, **options)
            call = Call(jit, args, grid, options)
            if self.collected is not None:
                self.collected.append(call)
                return None
            with lock:
                return self._launch({((), call.options.get("num_warps", 4), call.options.get("num_stages", 3)): call},
                                    visit, lambda: run_function(jit, *args, grid=grid, warmup=warmup, **options))

        def tuned(tuner, *args, **options):
            if self.busy or self.collected is not None:
                return run_tuned(tuner, *args, **options)
            with lock:
                tuner.nargs = dict(zip(tuner.arg_names, args))
                configs = chosen(tuner.prune_configs(options) if len(tuner.configs) > 1 else tuner.configs)
                if any(config.pre_hook for config in configs):
                    raise Changed(f"{tuner.base_fn.__name__}: a configuration with a hook")
                calls = {options_of(config): self._collect(
                    lambda config=config: tuner.fn.run(*args, **options, **config.all_kwargs())) for config in configs}
                return self._launch(calls, visit, lambda: tuner.fn.run(*args, **options, **configs[0].all_kwargs()))

        JITFunction.run, Autotuner.run = function, tuned
        try:
            yield
        finally:
            JITFunction.run, Autotuner.run = run_function, run_tuned

    def _collect(self, run):
        """The call that run() would launch."""
        self.collected = []
        try:
            run()
            return self.collected[0]
        finally:
            self.collected = None

    def _launch(self, calls, visit, run):
        self.busy = True
        try:
            visit(calls)
            return run()
        finally:
            self.busy = False

    def compile(self, run):
        """Returns the number of kernels."""
        with self._hooked(self.compile_calls):
            run()
        return len(self.made)

    def launches(self, run):
        """The launches of `run()`, whose kernels were compiled before; `source` is the key in `made`."""
        found = {}

        def visit(calls):
            key = self.key(calls)
            if key not in found:
                tensors = copies(tensors_of(calls))
                found[key] = Launch(key[0], key, store(tensors) if memory_is_short() else tensors, {})
            found[key].count += 1

        with self._hooked(visit):
            run()
        return list(found.values())
