"""The same launch under both compilers, element by element: where the results differ, and by how
much. Needs a GPU and PyTorch.

    python compare.py
"""

import kernels
import torch

import lilac.triton


def both(launch, *outputs):
    """The outputs of `launch` as Triton's code computes them, and as lilac's does."""
    results = []
    for switch in (lilac.triton.disable, lilac.triton.enable):
        switch()
        for output in outputs:
            output.fill_(float("nan"))  # what is not written shows
        launch()
        results.append([output.clone() for output in outputs])
    lilac.triton.disable()
    return results


if __name__ == "__main__":
    x = torch.randn(512, 1000, device="cuda")
    y = torch.empty_like(x)
    (triton,), (ours,) = both(lambda: kernels.softmax[(512,)](y, x, 1000, 1000, BLOCK=1024), y)
    error = (ours.double() - triton.double()).abs()
    print(f"largest difference {error.max().item():.3g}, at {divmod(error.argmax().item(), 1000)}")
    print(f"{torch.isnan(ours).sum().item()} elements that lilac's code did not write")
