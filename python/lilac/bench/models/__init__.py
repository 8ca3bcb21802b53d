"""Kernels that torch.compile generates for other people's models, under lilac and under Triton.

    python -m lilac.bench models                         all models: kernels, whole steps, first steps
    python -m lilac.bench models --half development      without the held-out half
    python -m lilac.bench models llama swin --kernels    the generated kernels of two models only

`zoo` is the list of models. `scheduler` compiles several of them at once, each in a process of its own (`worker`), and
measures one at a time. `capture` records the kernels of one step with their arguments, `kernels` measures them under
both compilers, `results` compares what they compute, and `machine_code` counts their instructions. `steps` measures
whole steps, in a process for each model and compiler (`step`). `report` writes the tables and the picture. See docs/benchmarks.md.
"""
