"""A matrix product by a Triton template of torch.compile: its error, and the launches of its kernel with and without maps."""

import torch
import torch._inductor.config as config

import lilac.triton


def launches():
    rows = [row for row in lilac.triton.report().rows if row.maps]
    return sum(row.mapped_launches for row in rows), sum(sum(row.plain_launches.values()) for row in rows)


def main():
    config.max_autotune_gemm_backends = "TRITON"
    torch.manual_seed(1)
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    product = torch.compile(lambda x, y: x @ y, mode="max-autotune-no-cudagraphs")
    product(a, b)
    before = launches()
    made, wanted = product(a, b), a @ b
    after = launches()
    print("error", float((made - wanted).abs().max() / wanted.abs().max()))
    print("mapped", after[0] - before[0])
    print("plain", after[1] - before[1])


if __name__ == "__main__":
    main()
