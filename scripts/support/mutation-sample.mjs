/**
 * A random sample of the mutants of many files, each run against the test beside its file. For scripts/mutate.sh --sample.
 *
 *   node mutation-sample.mjs prepare INSTRUMENTER FILE.ts…    in a copy of the repository: puts all mutants into the files
 *   node mutation-sample.mjs run COUNT SEED                   after they were compiled
 *
 * Each mutant has a process of its own, which an environment variable gives the mutant: tests of adapters start programs and listen.
 */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mutantsIn, score, shuffled, survivor } from './mutants.mjs'

const list = 'mutants.json'
const [step, ...args] = process.argv.slice(2)
if (step === 'prepare') await prepare(args)
else await run(Number(args[0]), Number(args[1]))

async function prepare([instrumenter, ...names]) {
  const { files, mutants } = await mutantsIn(names, instrumenter)
  for (const { name, content } of files) writeFileSync(name, content)
  writeFileSync(list, JSON.stringify(mutants))
  console.log(`${mutants.length} mutants in ${names.length} files`)
}

async function run(count, seed) {
  const mutants = JSON.parse(readFileSync(list, 'utf8'))
  console.log(`A sample of ${count}, seed ${seed}`)
  const usual = new Map()
  const results = { failed: 0, late: 0, passed: 0 }
  let done = 0
  for (const mutant of shuffled(mutants, seed)) {
    const { id, file } = mutant
    if (done === count) break
    if (!usual.has(file)) usual.set(file, await runTest(file, undefined, 120_000))
    const { result: unchanged, ms: usualMs } = usual.get(file)
    if (unchanged !== 'passed') continue
    done++
    const { result } = await runTest(file, id, 3 * usualMs + 20_000)
    results[result]++
    if (result === 'passed') console.log(survivor(mutant))
    // The order is random: what is done so far is a smaller sample.
    if (done % 25 === 0) console.log(score(results, true))
  }
  const left = [...usual].filter(([, { result }]) => result !== 'passed').map(([file]) => file)
  if (left.length > 0) console.log(`Left out, for the test fails without a change: ${left.join(', ')}`)
  console.log(score(results, true))
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
