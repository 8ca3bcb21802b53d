"""The page's own computations, of bank conflicts and swizzles, agree with the library's."""

# Random layouts, deterministic: a helper that the tests below share.
RANDOM = """
let seed = 11;
const below = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff; return (seed >> 8) % n; };
const shuffled = (list) => {
  for (let i = list.length - 1; i > 0; i--) { const j = below(i + 1); [list[i], list[j]] = [list[j], list[i]]; }
  return list;
};
const { Layout, accessOf, withVector, wavefrontsOf, swizzles, f2, questions } = lilac.model;
const basis = (bits) => {
  const vectors = shuffled(Array.from({ length: bits }, (_, i) => 1 << i));
  for (let k = 0; k < bits; k++) {
    const i = below(bits), j = below(bits);
    if (i !== j && below(3) === 0) vectors[i] ^= vectors[j];
  }
  return vectors;
};
const distributed = (shape, bits, warps) => {
  const layout = new Layout({ register: [], lane: [], warp: [], block: [] }, shape, bits);
  const vectors = basis(layout.bits);
  const lane = vectors.slice(0, 5), warp = vectors.slice(5, 5 + warps), register = vectors.slice(5 + warps);
  Object.assign(layout.columns, { lane, warp, register });
  return layout;
};
const memory = (shape, bits) => {
  const layout = new Layout({ offset: [] }, shape, bits);
  layout.columns.offset = basis(layout.bits);
  return layout;
};
const TYPES = { 8: "i8", 16: "f16", 32: "f32", 64: "f64" };
const problem = () => {
  for (;;) {
    const shape = [2 << below(5), 4 << below(4)], bits = [8, 16, 32, 64][below(4)];
    const total = Math.log2(shape[0] * shape[1]);
    if (total < 6 || shape[0] * shape[1] * bits / 8 > 49152) continue;
    return { shape, bits, warps: Math.min(below(3), total - 5), type: TYPES[bits] };
  }
};
"""


def run(page, body):
    return page.evaluate("() => {" + RANDOM + body + "}")


def test_wavefronts(page):
    """Formula of the page = lanes one by one = the library's formula = the simulator."""
    wrong = run(page, """
      const wrong = [];
      for (let k = 0; k < 300; k++) {
        const { shape, bits, warps, type } = problem();
        const tensor = distributed(shape, bits, warps), place = memory(shape, bits);
        const access = accessOf(tensor, place, bits / 8);
        let counted = 0;
        for (let w = 0; w < access.warps; w++) for (let s = 0; s < access.steps; s++)
          for (const { wavefronts } of wavefrontsOf(access, s, w)) counted += wavefronts.length;
        const answer = lilac.library.conflicts(questions.tensorType(tensor, type), questions.memoryType(place, type));
        const all = [access.wavefronts, counted, answer.wavefronts, answer.simulated_wavefronts];
        if (new Set(all).size > 1 || access.instructions !== answer.instructions) wrong.push([shape, bits, all]);
      }
      return wrong;""")
    assert wrong == []


def test_derivation(page):
    """The algorithm of the paper gives a memory layout that is as good as the library's, where both sides have the
    same vectors of a word or more; elsewhere the page shows the library's. The toggles describe it, and the lemma's
    space has as many elements as there are wavefronts."""
    result = run(page, """
      const result = { compared: 0, adopted: 0, worse: [], toggles: [], lemma: [] };
      for (let k = 0; k < 200; k++) {
        const { shape, bits, warps, type } = problem();
        const a = distributed(shape, bits, warps), b = distributed(shape, bits, warps), widest = [4, 8, 16][below(3)];
        if (widest < bits / 8) continue;
        const steps = swizzles.derive(a, b, bits / 8, widest), toggles = swizzles.togglesOf(steps);
        const made = swizzles.memoryOf(steps);
        const access = (layout) => accessOf(withVector(layout, made, bits / 8, widest), made, bits / 8, widest);
        const own = access(a).wavefronts + access(b).wavefronts;
        const now = swizzles.count(steps, toggles);
        if (now.total !== own) result.toggles.push([shape, bits, widest, now.total, own]);
        for (const [layout, access] of [[now.a, now.store], [now.b, now.load]]) {
          const space = swizzles.conflictSpace(steps, layout, access, now.memory);
          if (2 ** space.length !== access.wavefrontsOfTransaction) result.lemma.push([shape, bits, widest, space.length]);
        }
        const answer = lilac.library.swizzle(questions.tensorType(a, type), questions.tensorType(b, type), { vector: widest });
        const bytes = bits / 8 * 2 ** steps.vector.length, best = answer.store.wavefronts + answer.load.wavefronts;
        if (bytes >= 4 && answer.store.bytes === bytes && answer.load.bytes === bytes) {
          result.compared++;
          if (own !== best) result.worse.push([shape, bits, widest, own, best]);
        } else if (own > best) { // vectors of one side only, or words of several elements: the library's memory
          const given = new Layout({ offset: answer.memory.offset }, shape, bits), adopted = swizzles.adopt(steps, given);
          result.adopted++;
          if (swizzles.count(adopted, swizzles.togglesOf(adopted)).total !== best) result.worse.push([shape, bits, best]);
        }
      }
      return result;""")
    assert result["toggles"] == [] and result["lemma"] == []
    assert result["worse"] == [] and result["compared"] > 30 and result["adopted"] > 10


def test_transpose(page):
    """The transpose of 16 × 32 words: 16, 2 or 1 wavefronts a load, and the family."""
    result = page.evaluate("""() => {
      const { swizzles, Layout } = lilac.model, { a, b } = lilac.examples[0];
      const [first, second] = [a, b].map((text) => lilac.library.layout(lilac.model.readLayout(text, lilac.library).type));
      const steps = swizzles.derive(first, second, 4, 4);
      const xor = (shift) => swizzles.noToggles(steps).map((row, i) => row.map((_, j) => j === i + shift));
      const none = swizzles.count(steps, swizzles.noToggles(steps));
      return {
        loads: [none, swizzles.count(steps, xor(0)), swizzles.count(steps, xor(1))]
          .map(({ load }) => load.wavefrontsOfTransaction),
        stores: [none, swizzles.count(steps, xor(0))].map(({ store }) => store.wavefrontsOfTransaction),
        derived: swizzles.togglesOf(steps), xor: xor(1), shared: first.direction(steps.shared[0]),
        segments: steps.segments.map((segment) => first.direction(segment)),
      };
    }""")
    assert result["loads"] == [16, 2, 1] and result["stores"] == [1, 1]
    assert result["derived"] == result["xor"] and result["shared"] == "n0"
    assert result["segments"] == ["m0⊕n1", "m1⊕n2", "m2⊕n3", "m3⊕n4"]


def test_family(page):
    """Every member that the page finds reaches the same count; neighbours are what one toggle gives."""
    assert run(page, """
      const { shape, bits } = { shape: [16, 32], bits: 32 };
      const a = distributed(shape, bits, 0), b = distributed(shape, bits, 0);
      const steps = swizzles.derive(a, b, 4, 4), best = swizzles.togglesOf(steps), { total } = swizzles.count(steps, best);
      for (let k = 0; k < 20; k++) {
        const other = swizzles.anotherMember(steps, best, () => below(1000) / 1000);
        if (swizzles.count(steps, other).total > total) return false;
      }
      const next = swizzles.neighbours(steps, best), changed = best.map((row) => [...row]);
      changed[1][2] = !changed[1][2];
      return next[1][2] === swizzles.count(steps, changed).total;""")


def test_subspaces(page):
    """Intersections and inverses over F2."""
    assert run(page, """
      for (let k = 0; k < 300; k++) {
        const a = Array.from({ length: below(6) }, () => below(256)), b = Array.from({ length: below(6) }, () => below(256));
        const common = new f2.Basis(f2.intersection(a, b)), first = new f2.Basis(a), second = new f2.Basis(b);
        if (common.dimension !== first.dimension + second.dimension - f2.rank([...a, ...b])) return false;
        for (const vector of f2.intersection(a, b)) if (!first.has(vector) || !second.has(vector)) return false;
        const square = basis(8), back = f2.inverse(square, 8);
        for (let x = 0; x < 256; x += 7) if (f2.apply(back, f2.apply(square, x)) !== x) return false;
      }
      return true;""")
