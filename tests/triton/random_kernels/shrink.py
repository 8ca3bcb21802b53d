"""Reduces a failing program to a smaller one that fails in the same way.

One step removes a store, an atomic operation, a loop or a condition, or replaces a value by a
constant of its type. Then it removes the statements whose results are unused.
"""

from dataclasses import replace

from program import Statement


def uses_of(body):
    used = set()
    for n in body:
        used |= {a for a in (*n.args, *n.bounds, n.mask) if isinstance(a, str)}
        used |= uses_of(n.body) | uses_of(n.otherwise)
    return used


def without_unused(body, used):
    """Statements that have an effect, or a result that is used."""
    kept = []
    for n in body:
        if n.kind == "let" and not used & set(n.names):
            continue
        if n.kind == "assign" and n.names[0] not in used:
            continue
        if n.kind in ("for", "while", "if"):
            n = replace(n, body=without_unused(n.body, used), otherwise=without_unused(n.otherwise, used))
            if not n.body and not n.otherwise:
                continue
            if not n.body:  # an empty branch is no Python
                continue
        kept.append(n)
    return kept


def clean(program):
    body = program.body
    while True:
        smaller = without_unused(body, uses_of(body))
        if smaller == body:
            break
        body = smaller
    text = repr(body)
    buffers = [b for b in program.buffers if f"'{b.name}'" in text]
    return replace(program, body=body, buffers=buffers)


def count(body):
    return sum(1 + count(n.body) + count(n.otherwise) for n in body)


def addresses(body):
    """Names of indices and masks: they keep accesses inside the buffers, so they are not replaced."""
    found = set()
    for n in body:
        if n.kind in ("store", "atomic") or n.op == "load":
            found |= {n.args[0], n.mask}
        found |= addresses(n.body) | addresses(n.otherwise)
    return found


def changed(body, at, fixed):
    """The body with its statement number `at` (in order of the text) dropped or made constant. None:
    that statement has no such change."""
    result = []
    for k, n in enumerate(body):
        if at == 0:
            if (n.kind != "let" or n.op != "full") and not fixed & set(n.names):
                return result + constants(n) + body[k + 1:]
            return None
        inside = count(n.body)
        if at - 1 < inside:
            made = changed(n.body, at - 1, fixed)
            return None if made is None else result + [replace(n, body=made)] + body[k + 1:]
        if at - 1 < inside + count(n.otherwise):
            made = changed(n.otherwise, at - 1 - inside, fixed)
            return None if made is None else result + [replace(n, otherwise=made)] + body[k + 1:]
        at -= 1 + inside + count(n.otherwise)
        result.append(n)
    return None


def constants(n):
    """Constants that replace the results of a statement. Predicates are false, so that the values
    that they guard stay unused."""
    if n.kind in ("let", "atomic"):
        return [Statement("let", "full", (name,), (), (type,), number=int(type.element != "int1"))
                for name, type in zip(n.names, n.types)]
    return []


def shrink(program, fails, budget=300):
    """`fails(program)`: whether it fails in the same way as the first program."""
    program = clean(program)
    progress = True
    while progress and budget > 0:
        progress = False
        at = count(program.body)
        while at > 0 and budget > 0:
            at -= 1
            body = changed(program.body, at, addresses(program.body)) if at < count(program.body) else None
            if body is None:
                continue
            budget -= 1
            smaller = clean(replace(program, body=body))
            if fails(smaller):
                program, progress = smaller, True
    return program
