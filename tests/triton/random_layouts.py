"""Random types with layouts, as text: every kind that Triton 3.6 reads, on tensors and memory both
smaller and larger than the layout's own tile.

A draw need not be valid: the caller skips what Triton refuses. Where one spelling means something else
in Triton's main branch, and lilac follows that (see include/lilac/encoding.h), it is not drawn.
"""


def listed(values):
    """[1, [0, 2]] as MLIR writes it."""
    return "[" + ", ".join(listed(one) if isinstance(one, list) else str(one) for one in values) + "]"


def fields(**named):
    return "<{" + ", ".join(f"{name} = {value}" for name, value in named.items() if value is not None) + "}>"


def flag(value):
    return "true" if value else "false"


class Draw:
    """The choices of one case; `random` is a random.Random."""

    def __init__(self, random, kind):
        self.random = random
        self.kind = kind
        self.blocks_bits = random.choice([0, 0, 1, 2, 3])
        self.lanes = random.choice([5, 5, 5, 6])
        self.warps = random.randrange(4)

    def power(self, most, least=0):
        return 1 << self.random.randint(least, most)

    def split(self, bits, rank):
        """`bits` bits over `rank` dimensions, as sizes."""
        sizes = [1] * rank
        for _ in range(bits):
            sizes[self.random.randrange(rank)] *= 2
        return sizes

    def order(self, rank):
        order = list(range(rank))
        self.random.shuffle(order)
        return order

    def shape(self, rank, most=10, total=16, least=0):
        sizes = [self.power(most, least) for _ in range(rank)]
        while rank and sizes and self.bits(sizes) > total:
            largest = sizes.index(max(sizes))
            sizes[largest] //= 2
        return sizes

    @staticmethod
    def bits(sizes):
        return sum(size.bit_length() - 1 for size in sizes)

    def blocks(self, rank):
        """CGALayout, or None for one block. Sometimes one that moves along two dimensions at once, or
        whose bases are sums."""
        if not self.blocks_bits:
            return None
        bases, used = [], [1] * rank
        for _ in range(self.blocks_bits):
            basis = [0] * rank
            if self.random.random() < 0.8:
                dim = self.random.randrange(rank)
                basis[dim] = used[dim]
                used[dim] *= 2
            bases.append(basis)
        self.random.shuffle(bases)
        if self.random.random() < 0.03 and rank > 1:
            one = self.random.choice(bases)
            dim = self.random.randrange(rank)
            one[dim] = one[dim] or used[dim]
        return listed(bases)

    # ---- layouts of tensors: text and rank ------------------------------------------------------

    def blocked(self, rank=None):
        rank = rank or self.random.choice([1, 2, 2, 3, 4, 5])
        sizes = self.split(self.random.randint(0, 5), rank)
        return "#ttg.blocked" + fields(sizePerThread=listed(sizes), threadsPerWarp=listed(self.split(self.lanes, rank)),
                                       warpsPerCTA=listed(self.split(self.warps, rank)), order=listed(self.order(rank)),
                                       CGALayout=self.blocks(rank)), rank

    def bases(self, rank, sizes, counts, mixed=False, zeros=0.15):
        """Bases of several inputs that together reach a tensor of `sizes`: lists of counts[i], the first
        grown to what is left and, with `zeros`, to more."""
        wanted = [[0] * d + [1 << bit] + [0] * (rank - 1 - d)
                  for d in range(rank) for bit in range(sizes[d].bit_length() - 1)]
        self.random.shuffle(wanted)
        if mixed:
            for _ in range(self.random.randrange(4)):
                if len(wanted) > 1:
                    a, b = self.random.sample(range(len(wanted)), 2)
                    wanted[a] = [x ^ y for x, y in zip(wanted[a], wanted[b])]
        lists = []
        for count in counts[1:]:
            made = []
            for _ in range(count):
                take = wanted and self.random.random() >= zeros
                made.append(wanted.pop() if take else [0] * rank)
            lists.append(made)
        first = wanted
        for _ in range(self.random.choice([0, 0, 0, 1, 2]) if zeros else 0):
            first.insert(self.random.randint(0, len(first)), [0] * rank)
        return [first] + lists

    def linear(self, rank=None):
        rank = rank or self.random.choice([1, 2, 2, 3, 4])
        sizes = self.shape(rank, most=6, total=10)
        names = ["register", "lane", "warp", "block"]
        lists = self.bases(rank, sizes, [0, self.lanes, self.warps, self.blocks_bits])
        if not any(lists):
            lists[1] = [[0] * rank]
        self.tile = sizes
        return "#ttg.linear" + fields(**{name: listed(one) for name, one in zip(names, lists)}), rank

    def mma2(self, rank=None, rows=(16, 16, 16, 8)):
        rank = rank or self.random.choice([2, 2, 3])
        instr = [1] * (rank - 2) + [self.random.choice(rows), 8]
        return "#ttg.nvidia_mma" + fields(versionMajor=2, versionMinor=0, warpsPerCTA=listed(self.split(self.warps, rank)),
                                          CGALayout=self.blocks(rank), instrShape=listed(instr)), rank

    def mma3(self, rank=2):
        instr = [16, self.power(8, 3), self.random.choice([8, 16, 32])]
        warps = [4 * self.power(1), self.power(1)]
        return "#ttg.nvidia_mma" + fields(versionMajor=3, versionMinor=0, warpsPerCTA=listed(warps),
                                          CGALayout=self.blocks(2), instrShape=listed(instr)), 2

    def mfma(self, rank=None):
        rank = rank or self.random.choice([2, 2, 3])
        self.mfma_shape = instr = self.random.choice([[32, 32, 8], [32, 32, 16], [16, 16, 16], [16, 16, 32], [16, 16, 4],
                                                      [64, 4, 4], [4, 64, 4]])
        transposed = self.random.random() < 0.5 or instr[0] == 64
        tiles = listed(self.split(self.random.randrange(3), rank)) if self.random.random() < 0.4 else None
        wide = 64 if self.random.random() < 0.15 and instr[:2] == [16, 16] else None
        return "#ttg.amd_mfma" + fields(version=self.random.randint(1, 4), warpsPerCTA=listed(self.split(self.warps, rank)),
                                        instrShape=listed(instr), isTransposed=flag(transposed),
                                        CGALayout=self.blocks(rank), tilesPerWarp=tiles, elementBitWidth=wide), rank

    def wmma(self, rank=None):
        rank = rank or self.random.choice([2, 2, 3])
        self.wmma_version = version = self.random.randint(1, 3)
        instr = self.random.choice({1: [[16, 16, 16]], 2: [[16, 16, 16], [16, 16, 32]],
                                    3: [[16, 16, 4], [16, 16, 32], [16, 16, 64], [16, 16, 128]]}[version])
        tiles = listed(self.split(self.random.randrange(3), rank)) if self.random.random() < 0.4 else None
        return "#ttg.amd_wmma" + fields(version=version, isTranspose=flag(self.random.random() < 0.5),
                                        warpsPerCTA=listed(self.split(self.warps, rank)), CGALayout=self.blocks(rank),
                                        tilesPerWarp=tiles, instrShape=listed(instr)), rank

    def operand(self, parent=None):
        parent = parent or self.random.choice(["blocked", "mma2", "mma3", "mfma", "wmma"])
        rank = self.random.choice([2, 3]) if parent == "blocked" else None
        # 3.6 reads operands of the instruction of 8 rows as if they were of 16, its main branch does not.
        text, rank = self.mma2(rows=(16,)) if parent == "mma2" else getattr(self, parent)(rank)
        index = 0 if parent == "mma3" else self.random.randrange(2)
        width = None if parent == "blocked" else self.power(4)
        if parent == "wmma":
            width = self.random.choice({1: [8, 16], 2: [4, 8, 16], 3: [2, 8, 16]}[self.wmma_version])
        return "#ttg.dot_op" + fields(opIdx=index, parent=text, kWidth=width), rank

    def slice(self, parents=("blocked", "linear", "mma2", "mma3", "mfma", "wmma", "operand", "slice")):
        text, rank = getattr(self, self.random.choice(parents))()
        if rank < 2:
            return text, rank
        dim = self.random.randrange(rank)
        if self.tile:
            self.tile = self.tile[:dim] + self.tile[dim + 1:]
        return "#ttg.slice" + fields(dim=dim, parent=text), rank - 1

    # ---- layouts of memory ----------------------------------------------------------------------

    def swizzled(self, kind="swizzled_shared"):
        rank = self.random.choice([1, 2, 2, 3, 4, 5])
        return f"#ttg.{kind}" + fields(vec=self.power(4), perPhase=self.power(3), maxPhase=self.power(4),
                                       order=listed(self.order(rank)), CGALayout=self.blocks(rank)), rank

    def rotating(self):
        return self.swizzled("amd_rotating_shared")

    def nvmma(self):
        rank = self.random.choice([1, 2, 2, 3, 4, 5])
        padded = rank > 1 and self.random.random() < 0.2
        width = 128 if padded else self.random.choice([0, 32, 64, 128]) if rank > 1 else 0
        bits = 8 if padded else self.power(6, 3)
        blocks = self.blocks(rank)
        self.contiguous = (width * 8 // bits).bit_length() - 1 if width else 0
        # 3.6 ignores it where nothing is swizzled, its main branch does not.
        transposed = width != 0 and self.random.random() < 0.5
        self.contiguous_dim = 0 if transposed else rank - 1
        return "#ttg.nvmma_shared" + fields(swizzlingByteWidth=width, transposed=flag(transposed), elementBitWidth=bits,
                                            fp4Padded="true" if padded else None, CGALayout=blocks,
                                            rank=rank), rank

    def memory_bases(self, rank, mixed):
        """Offset and block bases of a tensor, one to one. Blocks are the highest bits of dimensions, as
        Triton's reshape asserts."""
        self.tile = sizes = self.shape(rank, most=6, total=12)
        inner, block = list(sizes), []
        for _ in range(self.blocks_bits):
            dim = self.random.randrange(rank)
            if inner[dim] > 1:
                inner[dim] //= 2
                block.insert(0, [inner[dim] if d == dim else 0 for d in range(rank)])
        (offset,) = self.bases(rank, inner, [0], mixed=mixed, zeros=0)
        return offset, block

    def shared_linear(self):
        rank = self.random.choice([1, 2, 2, 3, 4])
        offset, block = self.memory_bases(rank, mixed=True)
        block = f", block = {listed(block)}" if block or self.random.random() < 0.3 else ""
        return f"#ttg.shared_linear<{{offset = {listed(offset)}{block}}}, alignment = {self.power(8, 4)}>", rank

    def padded(self):
        rank = self.random.choice([1, 2, 2, 3, 4])
        pairs = {}
        for _ in range(self.random.randint(1, 3)):
            pairs[self.power(8, 1)] = self.power(4)
        text = ", ".join(f"{interval}:+{padding}" for interval, padding in sorted(pairs.items()))
        offset, block = self.memory_bases(rank, mixed=False)
        by_order = f"order = {listed(self.order(rank))}, shape = {listed(self.tile)}"
        by_bases = f"offset = {listed(offset)}, block = {listed(block)}"
        return f"#ttg.padded_shared<[{text}] {{{self.random.choice([by_order, by_bases])}}}>", rank

    def accumulator(self):
        split_m, split_n = (self.power(2), self.power(2)) if self.random.random() < 0.5 else (1, 1)
        block, self.stride = self.random.choice([64, 128]), self.power(2)
        # 3.6 and its main branch mean two things by 64 rows and two blocks that CTASplitM does not name.
        two = self.random.random() < 0.4 and (block == 128 or split_m > 1)
        # A load of fewer columns of narrow elements does not show where row bit 4 leads.
        columns = self.power(6, 3 if block == 64 and self.stride > 1 else 0)
        self.least_rows, self.least_columns = block * split_m, columns * split_n
        text = f"blockM = {block}, blockN = {columns}, colStride = {self.stride}"
        text += f", CTASplitM = {split_m}" if split_m != 1 else ""
        text += f", CTASplitN = {split_n}" if split_n != 1 else ""
        text += ", twoCTAs = true" if two else ""
        return f"#ttng.tensor_memory_encoding<{text}>", 2

    def scales(self):
        split_m, split_n = (self.power(2), self.power(2)) if self.random.random() < 0.5 else (1, 1)
        self.stride, self.least_rows, self.least_columns = 4, 32 * split_m, self.power(2) * split_n
        parts = [f"CTASplitM = {split_m}"] * (split_m != 1) + [f"CTASplitN = {split_n}"] * (split_n != 1)
        return f"#ttng.tensor_memory_scales_encoding<{', '.join(parts)}>", 2

    # ---- types ----------------------------------------------------------------------------------

    def layout(self):
        """Text and rank; where the layout has a tile of its own, `tile` is that."""
        self.tile = None
        return getattr(self, self.kind)()

    def any_shape(self, rank):
        if self.tile and len(self.tile) == rank:
            # Its own, or other sizes. Memory by its bases has its own only.
            change = self.random.random() < {"linear": 0.7, "slice": 0.7, "padded": 0.03}.get(self.kind, 0)
            return [size << self.random.randrange(4) >> self.random.randrange(3) or 1 if change else size
                    for size in self.tile]
        if self.kind == "nvmma" and self.random.random() < 0.95:
            # A swizzled layout has at least 8 rows of its width in each block.
            sizes = self.shape(rank, most=6, total=9, least=1)
            sizes[self.contiguous_dim] <<= self.contiguous
            sizes[rank - 1 if self.contiguous_dim == 0 else 0] <<= 3 if self.contiguous else 0
            return [size << self.blocks_bits if d < 2 else size for d, size in enumerate(sizes)]
        if self.kind == "wmma" or self.random.random() < 0.1:
            return self.shape(rank - 2, most=3) + self.shape(2, least=4) if rank > 1 else self.shape(rank)
        return self.shape(rank)

    def type(self):
        text, rank = self.layout()
        if self.kind in TENSOR_MEMORY:
            shape = [self.least_rows << self.random.randrange(3), self.least_columns << self.random.randrange(3)]
            element = {1: "f32", 2: "f16", 4: "i8"}[self.stride]
            return f"!ttg.memdesc<{shape[0]}x{shape[1]}x{element}, {text}, #ttng.tensor_memory, mutable>"
        sizes = "".join(f"{size}x" for size in self.any_shape(rank))
        if self.kind in MEMORY:
            element = self.random.choice(["i8", "f16", "f32"])
            return f"!ttg.memdesc<{sizes}{element}, {text}, #ttg.shared_memory, mutable>"
        return f"tensor<{sizes}{self.random.choice(['i8', 'f16', 'f32', 'i64'])}, {text}>"


TENSOR = ["blocked", "linear", "slice", "operand", "mma2", "mma3", "mfma", "wmma"]
MEMORY = ["swizzled", "rotating", "nvmma", "shared_linear", "padded"]
TENSOR_MEMORY = ["accumulator", "scales"]
KINDS = TENSOR + MEMORY + TENSOR_MEMORY


def draw(random, kind):
    """The text of a type with a layout of this kind."""
    return Draw(random, kind).type()
