"""lilac beside Triton on one GPU, in one process: `python -m lilac.bench`.

`lilac.bench.case` describes a case; a module that defines `cases()` is what the command takes. How
times are taken and what the table's columns mean: docs/benchmarks.md.
"""
