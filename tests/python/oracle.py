"""Linear layouts in plain Python, slowly: dictionaries of bases, applied a bit at a time. What the
package says is compared with this."""

import itertools
import random


class Plain:
    """bases: {input: [coordinates of each bit]}; outs: {output: log2 size}."""

    def __init__(self, bases, outs):
        self.bases, self.outs = bases, outs

    def __call__(self, index):
        place = dict.fromkeys(self.outs, 0)
        for name, rows in self.bases.items():
            for bit, row in enumerate(rows):
                if index.get(name, 0) >> bit & 1:
                    for out, coordinate in zip(self.outs, row):
                        place[out] ^= coordinate
        return place

    def indices(self):
        names = list(self.bases)
        for values in itertools.product(*(range(1 << len(rows)) for rows in self.bases.values())):
            yield dict(zip(names, values))

    def sizes(self):
        return {name: 1 << bits for name, bits in self.outs.items()}

    def flat_in(self, index):
        flat, start = 0, 0
        for name, rows in self.bases.items():
            flat |= index[name] << start
            start += len(rows)
        return flat

    def flat_out(self, place):
        flat, start = 0, 0
        for name, bits in self.outs.items():
            flat |= place[name] << start
            start += bits
        return flat


def random_plain(seed, ins=("register", "lane", "warp"), outs=("dim0", "dim1"), bits=3):
    """Any linear map of up to `bits` bits in each dimension."""
    rng = random.Random(seed)
    sizes = {name: rng.randint(0, bits) for name in outs}
    bases = {name: [[rng.randrange(1 << size) for size in sizes.values()]
                    for _ in range(rng.randint(0, bits))] for name in ins}
    return Plain(bases, sizes)


def random_bijection(seed, widths, outs):
    """A random invertible map from {input: bits} to {output: bits}: row operations on the identity."""
    rng = random.Random(seed)
    total = sum(outs.values())
    assert total == sum(widths.values())
    columns = [1 << i for i in range(total)]
    rng.shuffle(columns)
    for _ in range(4 * total if total > 1 else 0):
        to, other = rng.sample(range(total), 2)
        columns[to] ^= columns[other]
    rows = []
    for column in columns:
        row = []
        for bits in outs.values():
            row.append(column & ((1 << bits) - 1))
            column >>= bits
        rows.append(row)
    bases = {}
    for name, width in widths.items():
        bases[name], rows = rows[:width], rows[width:]
    return Plain(bases, dict(outs))
