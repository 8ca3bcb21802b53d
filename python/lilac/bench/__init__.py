"""lilac compared with Triton on one GPU, in one process: `python -m lilac.bench`.

`lilac.bench.case` describes a case; the argument of the command is a module that defines `cases()`.
docs/benchmarks.md describes the measurement and the columns of the table.
"""
