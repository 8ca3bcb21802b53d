"""Losses over vocabularies: cross entropy, Kullback-Leibler and Jensen-Shannon divergence, forward and
with gradients. A row a program, a block of classes at a time."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


# ---- cross entropy ---------------------------------------------------------------------------


@triton.jit
def cross_entropy(logits, target, loss, stride, classes, BLOCK: tl.constexpr):
    """The classes pass once: maximum and sum relative to it together."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    label = tl.load(target + row)
    highest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(logits + offsets, mask=offsets < classes, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(value, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(value - higher), axis=0)
        highest = higher
    chosen = tl.load(logits + label).to(tl.float32)
    tl.store(loss + row, highest + tl.log(total) - chosen)


@triton.jit
def cross_entropy_whole(logits, target, loss, stride, classes, BLOCK: tl.constexpr):
    """For few classes: the row stays in registers."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    value = tl.load(logits + row * stride + offsets, mask=offsets < classes,
                    other=-float("inf")).to(tl.float32)
    highest = tl.max(value, axis=0)
    total = tl.sum(tl.exp(value - highest), axis=0)
    chosen = tl.load(logits + row * stride + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, highest + tl.log(total) - chosen)


@triton.jit
def cross_entropy_gradient(logits, target, loss, stride, classes, scale, BLOCK: tl.constexpr):
    """The loss, and its gradient in the place of the logits, so that both passes of a training step
    are one launch."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    label = tl.load(target + row)
    chosen = tl.load(logits + label).to(tl.float32)
    highest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(logits + offsets, mask=offsets < classes, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(value, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(value - higher), axis=0)
        highest = higher
    tl.store(loss + row, highest + tl.log(total) - chosen)
    tl.debug_barrier()  # the label's logit is read before it is overwritten
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < classes
        value = tl.load(logits + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        gradient = tl.exp(value - highest) / total
        gradient = tl.where(offsets == label, gradient - 1.0, gradient) * scale
        tl.store(logits + offsets, gradient.to(logits.dtype.element_ty), mask=mask)


def losses(a):
    return a.logits.logsumexp(-1) - a.logits.gather(1, a.target[:, None])[:, 0]


def cross_entropy_case(dtype, rows, classes, block=4096, num_warps=8, kernel=cross_entropy):
    launch = Launch(kernel, rows,
                    [Buffer((rows, classes), dtype), Buffer(rows, "i64", ("integers", 0, classes)),
                     Buffer(rows, "f32", output=True), classes, classes],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"{launch.name}_{dtype}_{rows}x{classes}", "cross entropy", launch, losses,
                operations=4 * rows * classes, tolerance=within("f32", 64))


def cross_entropy_gradient_case(dtype, rows, classes, block=8192, num_warps=16):
    def reference(a):
        import torch

        gradient = a.logits.softmax(-1)
        row = torch.arange(rows, device=gradient.device)
        gradient[row, a.target] -= 1
        return {"loss": losses(a), "logits": gradient * a.scale}

    launch = Launch(cross_entropy_gradient, rows,
                    [Buffer((rows, classes), dtype, "normal", output=True),
                     Buffer(rows, "i64", ("integers", 0, classes)), Buffer(rows, "f32", output=True),
                     classes, classes, 1.0 / 64], BLOCK=block, num_warps=num_warps)
    return Case(f"cross_entropy_gradient_{dtype}_{rows}x{classes}", "cross entropy", launch, reference,
                operations=8 * rows * classes,
                tolerance={"loss": within("f32", 64), "logits": within(dtype, 96)})


# ---- divergences -----------------------------------------------------------------------------


@triton.jit
def kl_div(predicted, truth, loss, stride, classes, BLOCK: tl.constexpr):
    """predicted: logarithms of probabilities; truth: probabilities. The sum of each row."""
    row = tl.program_id(0).to(tl.int64)
    predicted += row * stride
    truth += row * stride
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < classes
        x = tl.load(predicted + offsets, mask=mask, other=0.0).to(tl.float32)
        p = tl.load(truth + offsets, mask=mask, other=0.0).to(tl.float32)
        total += p * (tl.log(tl.maximum(p, 1e-10)) - x)
    tl.store(loss + row, tl.sum(total, axis=0))


@triton.jit
def kl_div_elements(predicted, truth, loss, stride, classes, BLOCK: tl.constexpr):
    """As above with no reduction; truth holds logarithms too."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, classes, BLOCK):
        offsets = row * stride + start + tl.arange(0, BLOCK)
        mask = start + tl.arange(0, BLOCK) < classes
        x = tl.load(predicted + offsets, mask=mask, other=0.0).to(tl.float32)
        t = tl.load(truth + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(loss + offsets, (tl.exp(t) * (t - x)).to(loss.dtype.element_ty), mask=mask)


@triton.jit
def kl_div_backward(truth, gradient, scale, stride, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, classes, BLOCK):
        offsets = row * stride + start + tl.arange(0, BLOCK)
        mask = start + tl.arange(0, BLOCK) < classes
        p = tl.load(truth + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(gradient + offsets, (-p * scale).to(gradient.dtype.element_ty), mask=mask)


@triton.jit
def jsd(student, teacher, loss, gradient, beta, stride, classes, BLOCK: tl.constexpr):
    """Generalised Jensen-Shannon divergence of two rows of logarithms of probabilities, with M the
    mixture beta P + (1 - beta) Q of teacher and student; and the gradient for the student."""
    row = tl.program_id(0).to(tl.int64)
    student += row * stride
    teacher += row * stride
    gradient += row * stride
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < classes
        x = tl.load(student + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.load(teacher + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        q = tl.exp(x)
        p = tl.exp(y)
        mixture = beta * p + (1 - beta) * q
        log_mixture = tl.log(mixture)
        each = beta * p * (y - log_mixture) + (1 - beta) * q * (x - log_mixture)
        total += tl.where(mask, each, 0.0)
        slope = (1 - beta) * q * (x - log_mixture)
        tl.store(gradient + offsets, slope.to(gradient.dtype.element_ty), mask=mask)
    tl.store(loss + row, tl.sum(total, axis=0))


def probabilities(rows, classes, dtype, logarithms):
    def make(torch, generator, device):
        values = torch.randn((rows, classes), generator=generator, device=device)
        return values.log_softmax(-1) if logarithms else values.softmax(-1)

    return Buffer((rows, classes), dtype, make)


def kl_div_case(dtype, rows, classes, block=4096, num_warps=8):
    launch = Launch(kl_div, rows, [probabilities(rows, classes, dtype, True),
                                   probabilities(rows, classes, dtype, False),
                                   Buffer(rows, "f32", output=True), classes, classes],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"kl_div_{dtype}_{rows}x{classes}", "kl-div", launch,
                lambda a: (a.truth * (a.truth.clamp_min(1e-10).log() - a.predicted)).sum(-1),
                operations=5 * rows * classes, tolerance=within("f32", 64))


def kl_div_elements_case(dtype, rows, classes, block=4096, num_warps=8):
    launch = Launch(kl_div_elements, rows,
                    [probabilities(rows, classes, dtype, True), probabilities(rows, classes, dtype, True),
                     Buffer((rows, classes), dtype, output=True), classes, classes],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"kl_div_elements_{dtype}_{rows}x{classes}", "kl-div", launch,
                lambda a: a.truth.exp() * (a.truth - a.predicted), operations=3 * rows * classes,
                tolerance=within(dtype, 64))


def kl_div_backward_case(dtype, rows, classes, block=4096, num_warps=8):
    launch = Launch(kl_div_backward, rows,
                    [probabilities(rows, classes, dtype, False),
                     Buffer((rows, classes), dtype, output=True), 1.0 / 1024, classes, classes],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"kl_div_backward_{dtype}_{rows}x{classes}", "kl-div", launch,
                lambda a: -a.truth * a.scale, operations=rows * classes, tolerance=within(dtype, 4))


def jsd_case(dtype, rows, classes, beta=0.5, block=4096, num_warps=8):
    def reference(a):
        student, teacher = a.student, a.teacher
        q, p = student.exp(), teacher.exp()
        log_mixture = (beta * p + (1 - beta) * q).log()
        from_student = (1 - beta) * q * (student - log_mixture)
        from_teacher = beta * p * (teacher - log_mixture)
        return {"loss": (from_student + from_teacher).sum(-1), "gradient": from_student}

    launch = Launch(jsd, rows,
                    [probabilities(rows, classes, dtype, True), probabilities(rows, classes, dtype, True),
                     Buffer(rows, "f32", output=True), Buffer((rows, classes), dtype, output=True), beta,
                     classes, classes], BLOCK=block, num_warps=num_warps)
    # The logarithms are near -10, so that their difference is off by some 2**-20 whatever it is; where
    # it is small and the probability is dozens of times the mean, that counts most.
    return Case(f"jsd_{dtype}_{rows}x{classes}", "jsd", launch, reference,
                operations=14 * rows * classes,
                tolerance={"loss": within("f32", 64), "gradient": within(dtype, 2048)})


def cases():
    return [
        cross_entropy_case("bf16", 2048, 128256, block=8192, num_warps=16),
        cross_entropy_case("f16", 4096, 32000),
        cross_entropy_case("f32", 2048, 50257, block=2048, num_warps=4),
        cross_entropy_case("f32", 32768, 1000, block=1024, num_warps=4, kernel=cross_entropy_whole),
        cross_entropy_gradient_case("bf16", 1024, 128256),
        cross_entropy_gradient_case("f32", 2048, 32000, block=4096, num_warps=8),
        kl_div_case("f32", 1024, 32000),
        kl_div_case("bf16", 1024, 50257, block=8192, num_warps=16),
        kl_div_elements_case("bf16", 1024, 50257),
        kl_div_backward_case("f32", 1024, 32000),
        jsd_case("f32", 1024, 32000),
        jsd_case("bf16", 1024, 50257, block=2048, num_warps=8),
    ]
