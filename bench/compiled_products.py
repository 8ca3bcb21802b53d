"""Matrix products by the Triton templates of torch.compile (max_autotune), under lilac and under Triton, beside cuBLAS.

    python bench/compiled_products.py --json times.json      on a GPU of sm_90, with PyTorch

Each compiler has its own process and caches, and chooses among Inductor's configurations by its own times. Times are medians in
microseconds; before each launch 256 MiB are written sixteen times, which takes longer than the host takes for the launch.
"""

import json
import pathlib
import sys
import tempfile

from two_compilers import COMPILERS, clock, enable, parser_of, run

SHAPES = ((4096, 4096, 4096), (8192, 2048, 1024), (512, 4096, 4096))  # m, n, k; bf16
TOLERANCE = 1e-2  # of the largest element


def measure(options):
    import torch
    import torch._inductor.config as config

    enable(options.compiler)
    config.max_autotune_gemm_backends = "TRITON"
    found = []
    for m, n, k in SHAPES:
        torch._dynamo.reset()
        torch.manual_seed(m)
        a, b = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
        product = torch.compile(lambda x, y: x @ y, mode="max-autotune-no-cudagraphs")
        wanted = a @ b
        if float((product(a, b) - wanted).abs().max() / wanted.abs().max()) > TOLERANCE:
            sys.exit(f"{options.compiler}: wrong product of {m} x {n} x {k}")
        found.append({"name": f"bf16_{m}x{n}x{k}", "us": clock(torch, lambda p=product, x=a, y=b: p(x, y), options.launches),
                      "cublas_us": clock(torch, lambda x=a, y=b: x @ y, options.launches)})
    print(json.dumps(found))


def compare(options):
    with tempfile.TemporaryDirectory() as caches:
        made = {compiler: run(__file__, compiler, caches, "--launches", str(options.launches)) for compiler in COMPILERS}
    rows = [{"name": mine["name"], "lilac_us": mine["us"], "triton_us": other["us"],
             "cublas_us": min(mine["cublas_us"], other["cublas_us"])}
            for mine, other in zip(made["lilac"], made["triton"])]
    for row in rows:
        print("{name:24} {lilac_us:8.1f} {triton_us:8.1f} us".format(**row)
              + f" {row['triton_us'] / row['lilac_us']:6.3f}   cuBLAS {row['cublas_us']:.1f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows}, indent=1))


def main():
    options = parser_of(__doc__).parse_args()
    measure(options) if options.compiler else compare(options)


if __name__ == "__main__":
    main()
