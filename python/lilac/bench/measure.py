"""The measurement of run times, and their statistics.

This module imports neither lilac nor Triton nor PyTorch; the module torch is an argument of `Stopwatch`. The
programs of bench/ therefore measure in the same way, and tests need none of these packages.

    round 1    Triton Triton Triton …   lilac lilac lilac …      a median each
    round 2    lilac lilac lilac …      Triton Triton Triton …   a median each
    …                                                            the median of the medians

Before every launch a buffer larger than any L2 cache is written, so that no input of the launch is in the
cache. An event is recorded before the launch and another after it. While the GPU writes the buffer, the host
enqueues the launch, so that only the kernel is measured. If the host is too slow, the buffer is written
several times; if this is not sufficient, `host_bound` is true.
"""

import math
import statistics
import time

FLUSH_BYTES = 256 << 20
MOST_LAUNCHES = 400   # a round and side: enough for any median, few enough for the driver's queue
LEAST_LAUNCHES = 10
MOST_FLUSHES = 4


def geometric_mean(values):
    """Of positive numbers; None of none."""
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def spread(rounds):
    """The range of the rounds' medians, as a fraction of their median."""
    return (max(rounds) - min(rounds)) / statistics.median(rounds)


def ratios(baseline, rounds):
    """(median, least, most) of the baseline's time over the other's, round by round."""
    each = [a / b for a, b in zip(baseline, rounds)]
    return statistics.median(each), min(each), max(each)


def launches_in(budget_ms, turns, rounds, once_ms):
    """How many launches a turn has, if all turns of all rounds are to take `budget_ms`."""
    return int(max(LEAST_LAUNCHES, min(MOST_LAUNCHES, budget_ms / (turns * rounds * once_ms))))


def order(turns, number):
    """The turns of a round: forward in the even ones, backward in the odd ones."""
    return list(range(turns)) if number % 2 == 0 else list(range(turns - 1, -1, -1))


def host_bound(host_ms, flush_ms, kernel_ms):
    """Whether the host needs nearly as long for a launch as the GPU for the flush and the kernel, so
    that a launch may come late."""
    return host_ms > 0.9 * (flush_ms + kernel_ms)


def flushes_for(host_ms, once_ms, kernel_ms):
    """How often the buffer is written before each launch, `once_ms` a time, so that the host keeps up."""
    return next((count for count in range(1, MOST_FLUSHES)
                 if not host_bound(host_ms, count * once_ms, kernel_ms)), MOST_FLUSHES)


class Stopwatch:
    """Times launches on the current CUDA device. With `clean` the buffer is read before each launch
    instead of being written: then the cache holds nothing that the kernel's traffic has to write
    back."""

    def __init__(self, torch, clean=False):
        self.torch, self.clean, self.flushes = torch, clean, 1
        self.buffer = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self.events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                       for _ in range(MOST_LAUNCHES)]
        self.time(lambda: None, LEAST_LAUNCHES)
        self.once_ms = statistics.median(self.time_bare(self.flush, LEAST_LAUNCHES))

    def flush(self):
        for _ in range(self.flushes):
            if self.clean:
                self.buffer.max()
            else:
                self.buffer.zero_()

    @property
    def flush_ms(self):
        return self.flushes * self.once_ms

    def elapsed(self, count):
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in self.events[:count]]

    def record(self, before, launch, count):
        for start, end in self.events[:count]:
            before()
            start.record()
            launch()
            end.record()

    def time(self, launch, count, before=lambda: None):
        """Milliseconds of each of `count` launches, the cache flushed before each, and then `before`
        launched."""
        def flush_first():
            self.flush()
            before()
        self.record(flush_first, launch, count)
        return self.elapsed(count)

    def time_bare(self, launch, count):
        """The same with nothing in between."""
        self.record(lambda: None, launch, count)
        return self.elapsed(count)

    def host_time(self, launch, count=20):
        """Milliseconds that the host needs for a flush, a launch and its two events: few enough of
        them that the driver's queue does not fill and make the host wait."""
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        self.record(self.flush, launch, count)
        seconds = time.perf_counter() - begin
        self.torch.cuda.synchronize()
        return 1e3 * seconds / count

    def bandwidth(self, size=1 << 30, count=20):
        """Bytes a second, read and written, of a large copy: what bounds kernels by their traffic."""
        torch = self.torch
        source = torch.zeros(size, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        best = min(self.time(lambda: target.copy_(source), count))
        return 2e3 * size / best


def in_turn(turns, rounds, budget_ms, extra_ms):
    """Rounds of alternating order. Each turn is a function that takes a number of launches and gives
    the milliseconds of each; `extra_ms` is what a launch takes besides them, the flush.

    Gives the turns' medians, one list a turn with a number a round, and how many launches each
    median is of."""
    for turn in turns:  # clocks, caches, lazily loaded code
        turn(LEAST_LAUNCHES)
    once = statistics.mean(statistics.median(turn(LEAST_LAUNCHES)) for turn in turns) + extra_ms
    count = launches_in(budget_ms, len(turns), rounds, once)
    medians = [[] for _ in turns]
    for number in range(rounds):
        for which in order(len(turns), number):
            medians[which].append(statistics.median(turns[which](count)))
    return medians, count
