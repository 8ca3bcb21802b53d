"""A matrix product by a Triton template of torch.compile: its error, and the launches of its kernel with and without maps."""

import torch
import torch._inductor.config as config

import lilac.triton


def main():
    config.max_autotune_gemm_backends = "TRITON"
    torch.manual_seed(1)
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    product = torch.compile(lambda x, y: x @ y, mode="max-autotune-no-cudagraphs")
    product(a, b)
    lilac.triton.reset_report()
    error = float((product(a, b) - a @ b).abs().max() / (a @ b).abs().max())
    rows = [row for row in lilac.triton.report().rows if row.maps]
    print("error", error)
    print("mapped", sum(row.mapped_launches for row in rows))
    print("plain", sum(sum(row.plain_launches.values()) for row in rows))


if __name__ == "__main__":
    main()
