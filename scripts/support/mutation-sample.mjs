/**
 * A random sample of the mutants of many files, each run against the test beside its file. For scripts/mutate.sh --sample.
 *
 *   node mutation-sample.mjs prepare INSTRUMENTER FILE.ts…    in a copy of the repository: puts all mutants into the files
 *   node mutation-sample.mjs run COUNT SEED                   after they were compiled
 *
 * The instrumenter is Stryker's: all mutants are in the code, and an environment variable switches one of them on.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const list = 'mutants.json'
const [step, ...args] = process.argv.slice(2)
if (step === 'prepare') await prepare(args)
else await run(Number(args[0]), Number(args[1]))

async function prepare([instrumenter, ...names]) {
  const { Instrumenter } = await import(instrumenter)
  const silent = { debug() {}, info() {}, warn() {}, isDebugEnabled: () => false }
  const options = { plugins: null, excludedMutations: ['StringLiteral'], ignorers: [] }
  const files = names.map((name) => ({ name, content: readFileSync(name, 'utf8'), mutate: true }))
  const result = await new Instrumenter(silent).instrument(files, options)
  for (const { name, content } of result.files) writeFileSync(name, content)
  const described = ({ id, fileName, location, replacement }) => {
    const { start, end } = location
    const lines = files
      .find(({ name }) => name === fileName)
      .content.split('\n')
      .slice(start.line, end.line + 1)
    const before = lines.length === 1 ? lines[0].slice(start.column, end.column) : `${lines[0].slice(start.column)} …`
    return { id, file: fileName, at: `${start.line + 1}:${start.column + 1}`, before, after: replacement }
  }
  const mutants = result.mutants.filter(({ status }) => status !== 'Ignored').map(described)
  writeFileSync(list, JSON.stringify(mutants))
  console.log(`${mutants.length} mutants in ${names.length} files`)
}

async function run(count, seed) {
  const mutants = JSON.parse(readFileSync(list, 'utf8'))
  console.log(`A sample of ${count}, seed ${seed}`)
  const usual = new Map()
  let [failed, late, done] = [0, 0, 0]
  const score = () =>
    `${failed + late} of ${done} noticed (${late} did not end): ${((100 * (failed + late)) / done).toFixed(1)} %`
  for (const { id, file, at, before, after } of shuffled(mutants, seed)) {
    if (done === count) break
    if (!usual.has(file)) usual.set(file, await runTest(file, undefined, 120_000))
    const { result: unchanged, ms: usualMs } = usual.get(file)
    if (unchanged !== 'passed') continue
    done++
    const { result } = await runTest(file, id, 3 * usualMs + 20_000)
    if (result === 'failed') failed++
    else if (result === 'late') late++
    else console.log(`${file}:${at}\n-   ${before}\n+   ${after.replace(/\s+/g, ' ').slice(0, 200)}`)
    // The order is random: what is done so far is a smaller sample.
    if (done % 25 === 0) console.log(score())
  }
  const left = [...usual].filter(([, { result }]) => result !== 'passed').map(([file]) => file)
  if (left.length > 0) console.log(`Left out, for the test fails without a change: ${left.join(', ')}`)
  console.log(score())
}

/** The result of the test beside the file, and how long it took, in ms. */
function runTest(file, mutant, limitMs) {
  const startMs = Date.now()
  const env = { ...process.env, TAP_BAIL: '1', ...(mutant !== undefined && { __STRYKER_ACTIVE_MUTANT__: mutant }) }
  const child = spawn(process.execPath, [`dist/${file.replace(/\.ts$/, '.test.js')}`], { env, stdio: 'ignore' })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    child.kill('SIGKILL')
  }, limitMs)
  return new Promise((resolve) => {
    child.on('exit', (code) => {
      clearTimeout(timer)
      resolve({ result: isLate ? 'late' : code === 0 ? 'passed' : 'failed', ms: Date.now() - startMs })
    })
  })
}

/** Fisher and Yates, with mulberry32 for the dice: the same seed gives the same order. */
function shuffled(items, seed) {
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
