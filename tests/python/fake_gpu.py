"""A PyTorch with a GPU whose clock is a number: for tests of the benchmark's runner, which need to know
what a launch takes. Only what the runner calls is here."""

from types import SimpleNamespace


class Clock:
    def __init__(self):
        self.ms = 0.0

    def run(self, ms):
        self.ms += ms


def fake_torch(clock, flush_ms=0.07, copy_ms=0.5):
    class Event:
        def __init__(self, enable_timing=False):
            self.at = None

        def record(self):
            self.at = clock.ms

        def elapsed_time(self, end):
            return end.at - self.at

    class Tensor:
        def zero_(self):
            clock.run(flush_ms)

        def max(self):
            clock.run(flush_ms)

        def copy_(self, other):
            clock.run(copy_ms)

    cuda = SimpleNamespace(
        Event=Event, synchronize=lambda: None, empty_cache=lambda: None, current_device=lambda: 0,
        get_device_properties=lambda device: SimpleNamespace(multi_processor_count=100, clock_rate=1e6))
    return SimpleNamespace(cuda=cuda, int32="i32", uint8="u8", zeros=lambda *a, **k: Tensor(),
                           empty_like=lambda t: Tensor())


class FakeCompilers:
    """In place of the plug-in: which compiler is on is a word that fake cases look at."""

    def __init__(self):
        self.now = "triton"

    def __call__(self, name, function):
        def under(*arguments):
            before, self.now = self.now, name
            try:
                return function(*arguments)
            finally:
                self.now = before
        return under


class FakeCase:
    """Takes `ms[compiler]` on the clock; its check gives `verdict[compiler]`, or raises it."""

    def __init__(self, name, clock, compilers, ms, verdict=None, family=None, bytes=1000, operations=1):
        self.name, self.clock, self.compilers, self.ms = name, clock, compilers, ms
        self.verdict = verdict or {"triton": 0.1, "lilac": 0.2}
        self.bytes, self.operations, self.launched, self.seed, self.freed = bytes, operations, [], None, False
        if family:
            self.family = family

    def make(self, seed):
        self.seed = seed

    def free(self):
        self.freed = True

    def launch(self):
        self.launched.append(self.compilers.now)
        self.clock.run(self.ms[self.compilers.now])

    def check(self):
        self.launch()
        verdict = self.verdict[self.compilers.now]
        if isinstance(verdict, Exception):
            raise verdict
        return verdict
