"""Attention as people write it, under lilac and under Triton: Triton's tutorial, forward and backward, and FlexAttention.

    python bench/attention_programs.py --tutorial 06-fused-attention.py --json times.json      on a GPU of sm_90, with PyTorch

The tutorial is a file of Triton's repository (python/tutorials); FlexAttention comes with PyTorch. Each compiler has its own process,
and the processes alternate, `--rounds` times. Results and gradients are compared with those of PyTorch's attention. Times are medians in
microseconds; before each launch 256 MiB are written sixteen times, which takes longer than the host takes for the launch. A
backward pass has the launches of its preprocessing. The tutorial's kernels are autotuned among four configurations.
"""

import importlib.util
import json
import pathlib
import sys
import tempfile

from two_compilers import COMPILERS, clock, enable, parser_of, run

SHAPE = (4, 16, 4096)  # batch, heads, length
TOLERANCE = 2e-2       # f16 and bf16: of results, and of gradients, sums of 4096 terms, over the largest one
CONFIGURATIONS = ((128, 64, 4), (128, 64, 8), (128, 128, 8), (64, 64, 4))  # rows, columns, warps
TUTORIAL_END = "\nTORCH_HAS_FP8"  # what follows draws its plots


def load_tutorial(path):
    """The tutorial's module. triton.jit reads the source of its functions from a file."""
    import triton

    folder = tempfile.TemporaryDirectory()
    file = pathlib.Path(folder.name, "fused_attention.py")
    file.write_text(pathlib.Path(path).read_text().split(TUTORIAL_END)[0])
    spec = importlib.util.spec_from_file_location("fused_attention", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.folder = folder  # as long as the module
    hook = module._host_descriptor_pre_hook
    module._attn_fwd.configs = [triton.Config({"BLOCK_M": rows, "BLOCK_N": columns}, num_stages=3, num_warps=warps, pre_hook=hook)
                                for rows, columns, warps in CONFIGURATIONS]
    return module


def inputs(torch, elements, dtype, gradients=False):
    torch.manual_seed(elements)
    return [torch.randn(*SHAPE, elements, device="cuda", dtype=dtype, requires_grad=gradients) for _ in range(3)]


def differ(one, other):
    return float((one - other).abs().max())


def differ_most(gradients, wanted):
    return max(differ(one, other) / float(other.abs().max()) for one, other in zip(gradients, wanted, strict=True))


def backward_case(torch, name, result, wanted, operands, launches):
    slope = torch.randn_like(result)
    wanted_gradients = torch.autograd.grad(wanted, operands, slope, retain_graph=True)
    gradients = torch.autograd.grad(result, operands, slope, retain_graph=True)
    times = [clock(torch, lambda r=r: torch.autograd.grad(r, operands, slope, retain_graph=True), launches) for r in (result, wanted)]
    return {"name": f"{name}_backward", "us": times[0], "pytorch_us": times[1], "error": differ_most(gradients, wanted_gradients)}


def tutorial_cases(torch, path, launches):
    module = load_tutorial(path)
    reference = torch.nn.functional.scaled_dot_product_attention
    for elements in (64, 128):
        for causal in (False, True):
            operands = inputs(torch, elements, torch.float16, gradients=True)
            result = module.attention(*operands, causal, elements**-0.5, False)
            wanted = reference(*operands, is_causal=causal)
            name = f"tutorial_d{elements}_{'causal' if causal else 'full'}"
            alone = [operand.detach() for operand in operands]
            forward = clock(torch, lambda o=alone, c=causal, e=elements: module.attention(*o, c, e**-0.5, False), launches)
            yield {"name": f"{name}_forward", "us": forward, "error": differ(result, wanted),
                   "pytorch_us": clock(torch, lambda o=operands, c=causal: reference(*o, is_causal=c), launches)}
            yield backward_case(torch, name, result, wanted, operands, launches)


def flex_cases(torch, launches):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    reference = torch.nn.functional.scaled_dot_product_attention
    for elements in (64, 128):
        for causal in (False, True):
            torch._dynamo.reset()
            operands = inputs(torch, elements, torch.bfloat16, gradients=True)
            mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, SHAPE[2], SHAPE[2], device="cuda") if causal else None
            compiled = torch.compile(flex_attention, dynamic=False)
            result, wanted = compiled(*operands, block_mask=mask), reference(*operands, is_causal=causal)
            name = f"flex_d{elements}_{'causal' if causal else 'full'}"
            alone = [operand.detach() for operand in operands]
            yield {"name": f"{name}_forward", "error": differ(result, wanted),
                   "us": clock(torch, lambda c=compiled, o=alone, m=mask: c(*o, block_mask=m), launches),
                   "pytorch_us": clock(torch, lambda o=operands, c=causal: reference(*o, is_causal=c), launches)}
            yield backward_case(torch, name, result, wanted, operands, launches)


def measure(options):
    import torch

    enable(options.compiler)
    found = list(flex_cases(torch, options.launches))
    found += tutorial_cases(torch, options.tutorial, options.launches) if options.tutorial else []
    wrong = [case["name"] for case in found if case["error"] > TOLERANCE]
    if wrong:
        sys.exit(f"{options.compiler}: wrong results: {', '.join(wrong)}")
    print(json.dumps(found))


def compare(options):
    rounds, words = [], ["--launches", str(options.launches), *(["--tutorial", options.tutorial] if options.tutorial else [])]
    with tempfile.TemporaryDirectory() as caches:
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            rounds.append({compiler: run(__file__, compiler, caches, *words) for compiler in COMPILERS})
    rows = []
    for position, first in enumerate(rounds[0]["lilac"]):
        times = {compiler: [one[compiler][position]["us"] for one in rounds] for compiler in COMPILERS}
        least = {compiler: min(values) for compiler, values in times.items()}
        library = [one["lilac"][position]["pytorch_us"] for one in rounds]
        rows.append({"name": first["name"], **{f"{compiler}_us": values for compiler, values in times.items()},
                     "ratio": least["triton"] / least["lilac"], "pytorch_us": min(library)})
        print(f"{first['name']:32} {least['lilac']:9.1f} {least['triton']:9.1f} us {rows[-1]['ratio']:6.3f}"
              + f"   PyTorch {rows[-1]['pytorch_us']:.1f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"shape": SHAPE, "rows": rows}, indent=1))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--tutorial", help="06-fused-attention.py of Triton's tutorials; without it FlexAttention alone")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    measure(options) if options.compiler else compare(options)


if __name__ == "__main__":
    main()
