// @ts-check
// The lines that tell two texts apart.

const LARGEST = 2_000;

/**
 * Compare by lines: "=" in both, "-" only in the first, "+" only in the second.
 * @param {string} before @param {string} after @returns {{sign: "="|"-"|"+", text: string}[]}
 */
export function diff(before, after) {
  const one = before ? before.split("\n") : [];
  const two = after ? after.split("\n") : [];
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < two.length - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  const middle = changed(one.slice(start, one.length - end), two.slice(start, two.length - end));
  /** @type {(text: string) => {sign: "=", text: string}} */
  const same = (text) => ({ sign: "=", text });
  return [...one.slice(0, start).map(same), ...middle, ...one.slice(one.length - end).map(same)];
}

/** @param {string[]} one @param {string[]} two @returns {{sign: "="|"-"|"+", text: string}[]} */
function changed(one, two) {
  if (one.length * two.length > LARGEST * LARGEST) return [...one.map(gone), ...two.map(come)];
  const width = two.length + 1;
  const common = new Uint16Array((one.length + 1) * width);
  for (let a = one.length - 1; a >= 0; a--)
    for (let b = two.length - 1; b >= 0; b--)
      common[a * width + b] = one[a] === two[b] ? common[(a + 1) * width + b + 1] + 1
        : Math.max(common[(a + 1) * width + b], common[a * width + b + 1]);
  /** @type {{sign: "="|"-"|"+", text: string}[]} */
  const made = [];
  let a = 0;
  let b = 0;
  while (a < one.length && b < two.length) {
    if (one[a] === two[b]) made.push({ sign: "=", text: one[a++] }) && b++;
    else if (common[(a + 1) * width + b] >= common[a * width + b + 1]) made.push(gone(one[a++]));
    else made.push(come(two[b++]));
  }
  return [...made, ...one.slice(a).map(gone), ...two.slice(b).map(come)];
}

/** @param {string} text @returns {{sign: "-", text: string}} */
const gone = (text) => ({ sign: "-", text });
/** @param {string} text @returns {{sign: "+", text: string}} */
const come = (text) => ({ sign: "+", text });

/** Keep what changed and a few lines around it. @param {{sign: string, text: string}[]} all @param {number} around */
export function folded(all, around = 3) {
  const keep = new Set();
  all.forEach((line, at) => {
    if (line.sign !== "=") for (let near = at - around; near <= at + around; near++) keep.add(near);
  });
  /** @type {{sign: string, text: string}[]} */
  const made = [];
  let skipped = 0;
  all.forEach((line, at) => {
    if (keep.has(at)) {
      if (skipped) made.push({ sign: "@", text: `${skipped} lines as before` });
      skipped = 0;
      made.push(line);
    } else skipped += 1;
  });
  if (skipped && made.length) made.push({ sign: "@", text: `${skipped} lines as before` });
  return made;
}
