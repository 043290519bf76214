/** What both runners of mutants share: Stryker's instrumenter, and the dice. */
import { readFileSync } from 'node:fs'

/**
 * The sources with all mutants in them, each switched on by its id; and the mutants, each with its file and what it changes.
 * `instrumenter`: the path of Stryker's module.
 */
export async function mutantsIn(names, instrumenter) {
  const { Instrumenter } = await import(instrumenter)
  const silent = { debug() {}, info() {}, warn() {}, isDebugEnabled: () => false }
  const options = { plugins: null, excludedMutations: ['StringLiteral'], ignorers: [] }
  const files = names.map((name) => ({ name, content: readFileSync(name, 'utf8'), mutate: true }))
  const lines = new Map(files.map(({ name, content }) => [name, content.split('\n')]))
  const result = await new Instrumenter(silent).instrument(files, options)
  const described = ({ id, fileName, location: { start, end }, replacement }) => {
    const line = lines.get(fileName)[start.line]
    const before = start.line === end.line ? line.slice(start.column, end.column) : `${line.slice(start.column)} …`
    return { id, file: fileName, at: `${start.line + 1}:${start.column + 1}`, before, after: replacement }
  }
  return {
    files: result.files.map(({ name, content }) => ({ name, content })),
    mutants: result.mutants.filter(({ status }) => status !== 'Ignored').map(described),
  }
}

/** A change that no assertion notices, as it is printed. */
export function survivor({ file, at, before, after }) {
  return `${file}:${at}\n-   ${before}\n+   ${after.replace(/\s+/g, ' ').slice(0, 200)}`
}

/** The rate of changes that are noticed, with the half-width of its 95 % confidence interval when they are a sample. */
export function score({ failed, late, passed }, isSample) {
  const noticed = failed + late
  const done = noticed + passed
  const rate = noticed / done
  const margin = isSample ? ` ± ${(196 * Math.sqrt((rate * (1 - rate)) / done)).toFixed(1)}` : ''
  return `${noticed} of ${done} noticed (${late} did not end): ${(100 * rate).toFixed(1)}${margin} %`
}

/** Fisher and Yates, with mulberry32 for the dice: the same seed gives the same order. */
export function shuffled(items, seed) {
  const order = [...items]
  let state = seed
  const random = () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = Math.floor(random() * (last + 1))
    ;[order[last], order[chosen]] = [order[chosen], order[last]]
  }
  return order
}
