"""Kernels with one loop, of which it makes two, one behind the other."""

import re

LOOP = re.compile(r"^( *)(%\w+)(:\d+)? = scf\.for (%\w+) = (%\w+) to (%\w+) step (%\w+) iter_args\((.*?)\) -> (.*?)^\1}.*?$",
                  re.M | re.S)
PRODUCT = re.compile(r"^( *)(%\w+) = tt\.dot .* -> (tensor<(\d+x\d+)xf32>)[^\n]*$", re.M)
PARTS = {"none": 0, "half": 1, "all": 2}  # of two
FORMS = ("apart", "equal", "masked")


def masked(body, counter):
    """The body with a mask of the first product in it that is true in all iterations of the second loop."""
    product = PRODUCT.search(body)
    if product is None:
        return body
    indent, name, kind, shape = product.groups()
    flags = {"d": name, "t": kind, "i": "tensor<%sxi32>" % shape, "b": "tensor<%sxi1>" % shape, "c": counter}
    lines = ["%%d_counter = tt.splat %(c)s : i32 -> %(i)s", "%%d_least = tt.splat %%d_middle : i32 -> %(i)s",
             "%%d_mask = arith.cmpi sge, %%d_counter, %%d_least : %(i)s", "%%d_other = arith.constant dense<7.0> : %(t)s",
             "%%d_masked = arith.select %%d_mask, %(d)s, %%d_other : %(b)s, %(t)s"]
    made = "".join("\n" + indent + line % flags for line in lines)
    rest = re.sub(re.escape(name) + r"\b", "%d_masked", body[product.end():])
    return body[:product.end()] + made + rest


def divided(text, part, form="apart"):
    """The text with its only loop divided."""
    found = list(LOOP.finditer(text))
    assert len(found) == 1, "expected one loop"
    whole = found[0]
    _, result, _, counter, lower, upper, step, carried, rest = whole.groups()
    names = [tuple(one.split(" = ")) for one in carried.split(", ")]
    front = result + "_front"
    lines = ["%d_whole = arith.subi {u}, {l} : i32", "%d_two = arith.constant 2 : i32",
             "%d_steps = arith.divsi %d_whole, {s} : i32", "%d_parts = arith.constant {p} : i32",
             "%d_some = arith.muli %d_steps, %d_parts : i32", "%d_first = arith.divsi %d_some, %d_two : i32",
             "%d_length = arith.muli %d_first, {s} : i32", "%d_middle = arith.addi {l}, %d_length : i32"]
    bounds = "\n".join(lines).format(u=upper, l=lower, s=step, p=part)
    if part == PARTS["all"]:  # a last iteration may be a part of one
        bounds = bounds.replace("%d_middle = arith.addi {l}, %d_length".format(l=lower),
                                "%d_zero = arith.constant 0 : i32\n%d_middle = arith.addi {u}, %d_zero".format(u=upper))

    def loop(name, first, last, inits, rest):
        return "%s:%d = scf.for %s = %s to %s step %s iter_args(%s) -> %s}" % (
            name, len(names), counter, first, last, step, ", ".join("%s = %s" % pair for pair in inits), rest)

    first = loop(front, lower, "%d_middle", names, rest)
    second = loop(result, "%d_middle", upper, [(name, "%s#%d" % (front, i)) for i, (name, _) in enumerate(names)],
                  masked(rest, counter) if form == "masked" else rest)
    if form == "apart":
        second += " {tt.disallow_acc_multi_buffer}"
    return text[:whole.start()] + "\n".join((bounds, first, second)) + text[whole.end():]
