"""The process of one model: compiles it, waits for its turn, and measures its kernels.

    parent                              worker
                                        builds the model, runs its first step: Inductor compiles it (of a model that is
                                        not compiled, both compilers compile its kernels; there are no files)
                                <-      ("sources", files)      the generated files of its kernels
    compiles the kernels in a pool
    ("load",)                   ->      loads every kernel under both compilers
                                <-      ("prepared", number of kernels)
    ("measure", seconds)        ->      records one step, measures
                                <-      ("rows", rows, cubins) or ("stopped", measured, all)

("failed", reason, trace) may come instead of every answer. Between "prepared" and "measure" the worker keeps the
compiled model and its parameters, and uses neither the processors nor the GPU. A process of its own keeps a failure,
up to an invalid memory access of a kernel, from the other models.
"""

import dataclasses
import os
import signal
import time
import traceback

from ..__main__ import say


@dataclasses.dataclass(frozen=True)
class Settings:
    folder: str     # of the caches of Inductor and Triton in this run
    threads: int    # processes in which Inductor compiles the kernels of a model
    rounds: int
    budget: float
    keep: str = None  # folder of the kernels' files, see keep.py

    def environment(self):
        return {"TORCHINDUCTOR_CACHE_DIR": self.folder, "TRITON_CACHE_DIR": os.path.join(self.folder, "triton"),
                "TORCHINDUCTOR_COMPILE_THREADS": str(self.threads), "OMP_NUM_THREADS": str(self.threads),
                "LILAC_TRITON": "0"}


class Session:
    """What the worker holds between the messages."""

    def __init__(self, model, settings):
        import torch

        from ..runner import Compilers
        from .jit import Recorder
        from .kernels import Measurer

        torch._inductor.config.use_static_cuda_launcher = False  # its kernels keep no machine code to count
        self.torch, self.model = torch, model
        compilers = Compilers()
        self.measurer = Measurer(compilers, rounds=settings.rounds, budget=settings.budget, keep=settings.keep)
        self.recorder = None if model.compiled else Recorder(compilers)
        self.step = None

    def compile(self):
        """Returns the generated files; none of a model that is not compiled, whose kernels are compiled here."""
        from . import capture, step, zoo

        step.seeded(self.torch)
        module, inputs = self.model.build()
        if self.recorder:
            self.step, found = zoo.step_of(self.model, module, inputs), []
            self.recorder.compile(self.step)
            self.measurer.made.update(self.recorder.made)
        else:
            self.step = step.compiled_step(self.torch, self.model, module, inputs)
            with capture.first_options():
                found = capture.sources(self.step)
        self.torch.cuda.synchronize()
        module.zero_grad(set_to_none=True)
        self.torch.cuda.empty_cache()
        return found

    def load(self, sources):
        """Loads the kernels and ends Inductor's processes."""
        from torch._inductor.async_compile import shutdown_compile_workers

        for source in sources:
            self.measurer.prepare(source)
        shutdown_compile_workers()

    def measure(self, seconds):
        """The answer to "measure"."""
        from . import capture
        from .kernels import cubins

        deadline = time.perf_counter() + seconds
        if self.recorder:
            launches = self.recorder.launches(self.step)
        else:
            with capture.first_options():
                launches = capture.launches(self.step)
        self.step = None
        self.torch._dynamo.reset()
        self.torch.cuda.empty_cache()
        self.measurer.start()
        entries = [self.measurer.entry(self.model, launch) for launch in launches]
        began = time.perf_counter()

        def progress(number, entry):
            left = (time.perf_counter() - began) / number * (len(entries) - number)
            say(f"  [{number:3}/{len(entries)}] {entry.launch.name[:60]:<60} {outcome(entry.row)}   "
                f"({left:.0f} s left)")

        done = self.measurer.measure(entries, lambda: time.perf_counter() > deadline, progress)
        if done < len(entries):
            return "stopped", done, len(entries)
        return "rows", [entry.row for entry in entries], cubins(entries)


def outcome(row):
    """What the progress line says of a kernel."""
    failed = "; ".join(f"FAILED under {n}: {row[n]['failure']}" for n in ("triton", "lilac") if "failure" in row[n])
    if failed or "ratio" not in row:
        return failed
    return f"{row['ratio']:.3f}  {1e3 * row['lilac']['ms']:.1f} µs" + ("" if row["timed"] else " (quick)")


def run_session(connection, model, settings):
    session = Session(model, settings)
    sources = session.compile()
    connection.send(("sources", sources))
    connection.recv()
    session.load(sources)
    connection.send(("prepared", len(session.measurer.made)))
    _, seconds = connection.recv()
    connection.send(session.measure(seconds))


def serve(connection, name, settings):
    """The main function of the process. Its standard output is the command's standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers
    os.dup2(2, 1)
    os.environ.update(settings.environment())
    code = 0
    try:
        from . import zoo

        run_session(connection, zoo.by_name()[name], settings)
    except (EOFError, BrokenPipeError):
        code = 1  # the command has ended
    except BaseException as problem:
        from ..runner import reason

        code = 1
        connection.send(("failed", reason(problem), "".join(traceback.format_exception(problem))))
    connection.close()
    os._exit(code)  # what is left to do at an exit, such as to unload modules, may hang on a lost GPU
