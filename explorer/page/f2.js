// Vectors over F2 of at most 30 bits, as numbers: addition is xor.

export const MOST_BITS = 30;

const highest = (vector) => 31 - Math.clz32(vector);

/** A basis that is extended vector by vector; `rows[i]` is the vector whose highest bit is i, or 0. */
export class Basis {
  constructor(vectors = []) {
    this.rows = [];
    this.dimension = 0;
    for (const vector of vectors) this.add(vector);
  }

  /** The vector modulo the span: 0 where the span contains it. */
  reduce(vector) {
    while (vector !== 0) {
      const row = this.rows[highest(vector)];
      if (!row) break;
      vector ^= row;
    }
    return vector;
  }

  /** The vector modulo the span, with no highest bit of the basis in it: equal for vectors that are equal
   *  modulo the span. */
  remainder(vector) {
    let rest = 0;
    while (vector !== 0) {
      const bit = highest(vector);
      if (this.rows[bit]) {
        vector ^= this.rows[bit];
      } else {
        rest |= 1 << bit;
        vector ^= 1 << bit;
      }
    }
    return rest;
  }

  has(vector) {
    return this.reduce(vector) === 0;
  }

  /** Adds a vector; false where the span has it already. */
  add(vector) {
    const rest = this.reduce(vector);
    if (rest === 0) return false;
    this.rows[highest(rest)] = rest;
    this.dimension++;
    return true;
  }
}

export const rank = (vectors) => new Basis(vectors).dimension;

/** Those of `vectors` that extend a basis of `within`, in order. */
export function extension(within, vectors) {
  const basis = new Basis(within);
  return vectors.filter((vector) => basis.add(vector));
}

/** A basis of span(a) ∩ span(b). Vectors that are members of both lists come first. */
export function intersection(a, b) {
  const common = extension([], a.filter((vector) => vector !== 0 && b.includes(vector)));
  const found = new Basis(common);
  const result = [...common];
  // Zassenhaus: where a combination of a and b is 0, its part in a is in both spans.
  const rows = [];
  const pairs = [...a.map((vector) => [vector, vector]), ...b.map((vector) => [vector, 0])];
  for (let [sum, part] of pairs) {
    while (sum !== 0 && rows[highest(sum)]) {
      const [otherSum, otherPart] = rows[highest(sum)];
      sum ^= otherSum;
      part ^= otherPart;
    }
    if (sum !== 0) {
      rows[highest(sum)] = [sum, part];
    } else if (found.add(part)) {
      result.push(part);
    }
  }
  return result;
}

/** All 2^n sums of n vectors; element i is the sum over the set bits of i. */
export function sums(vectors) {
  const all = new Int32Array(1 << vectors.length);
  vectors.forEach((vector, bit) => {
    for (let i = 0; i < 1 << bit; i++) all[(1 << bit) + i] = all[i] ^ vector;
  });
  return all;
}

/** The map with these columns, applied to an index. */
export function apply(columns, index) {
  let sum = 0;
  for (let bit = 0; index !== 0; bit++, index >>>= 1) if (index & 1) sum ^= columns[bit];
  return sum;
}

/** A function that writes a vector as a sum of `vectors`: the set of the summands' numbers, as bits; null where there
 *  is none. Of dependent vectors the first ones are taken. */
export function solver(vectors) {
  const rows = [];
  vectors.forEach((vector, i) => {
    let image = vector, source = 1 << i;
    while (image !== 0 && rows[highest(image)]) {
      const row = rows[highest(image)];
      image ^= row[0];
      source ^= row[1];
    }
    if (image !== 0) rows[highest(image)] = [image, source];
  });
  return (vector) => {
    let source = 0;
    while (vector !== 0) {
      const row = rows[highest(vector)];
      if (!row) return null;
      vector ^= row[0];
      source ^= row[1];
    }
    return source;
  };
}

/** The columns of a map that inverts an invertible one, from `bits` bits; null where there is none. */
export function inverse(columns, bits) {
  if (rank(columns) < columns.length) return null;
  const solve = solver(columns);
  const result = Array.from({ length: bits }, (_, bit) => solve(1 << bit));
  return result.includes(null) ? null : result;
}
