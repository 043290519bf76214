/**
 * The mutants of decisions, each run against the test beside its file, all those of a file in one process. For
 * scripts/mutate.sh --decisions.
 *
 *   node mutation-decisions.mjs INSTRUMENTER COUNT SEED FILE.ts…    COUNT 0: all mutants, not a sample
 *
 * The test and its code are bundled once, and evaluated again for each mutant: nothing remains of the mutant before, and what a
 * module computes when it is loaded is mutated, too.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { mutantsIn, score, shuffled, survivor } from './mutants.mjs'

const [instrumenter, count, seed, ...names] = process.argv.slice(2)
const isSample = Number(count) > 0
const { files, mutants } = await mutantsIn(names, instrumenter)
console.log(`${mutants.length} mutants in ${names.length} files`)
if (isSample) console.log(`A sample of ${count}, seed ${seed}`)
const drawn = new Set(isSample ? shuffled(mutants, Number(seed)).slice(0, Number(count)) : mutants)
const results = { failed: 0, late: 0, passed: 0 }
const left = []
for (const { name, content } of files) {
  const wanted = mutants.filter((mutant) => mutant.file === name && drawn.has(mutant))
  if (wanted.length > 0) await runFile(name, content, wanted)
}
if (left.length > 0) console.log(`Left out, for the test fails without a change: ${left.join(', ')}`)
console.log(score(results, isSample))

async function runFile(name, content, wanted) {
  const code = await bundled(name, content)
  const startMs = Date.now()
  const [unchanged] = await resultsOf(code, [''], 120_000)
  if (unchanged !== 'passed') return left.push(name)
  const ids = wanted.map(({ id }) => id)
  const found = await resultsOf(code, ids, 3 * (Date.now() - startMs) + 20_000)
  for (const [i, result] of found.entries()) {
    results[result]++
    if (result === 'passed') console.log(survivor(wanted[i]))
  }
  const noticed = found.filter((result) => result !== 'passed').length
  if (!isSample) console.log(`${name}: ${noticed} of ${wanted.length} noticed`)
}

/** The test beside the file, with all that it imports but tap. `content`: the file with its mutants. */
async function bundled(name, content) {
  const root = process.cwd()
  const mutated = {
    name: 'mutants',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const text = path === join(root, name) ? content : readFileSync(path, 'utf8')
        // Paths in tests are relative to the compiled file.
        const compiled = pathToFileURL(path.replace(root, join(root, 'dist')).replace(/\.ts$/, '.js'))
        return { contents: text.replaceAll('import.meta.url', JSON.stringify(compiled.href)), loader: 'ts' }
      })
    },
  }
  const { outputFiles } = await build({
    entryPoints: [name.replace(/\.ts$/, '.test.ts')],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['tap'],
    logLevel: 'error',
    plugins: [mutated],
  })
  return outputFiles[0].text
}

/** For each of the mutants, whether the test failed, passed or was late: not over within the limit. '': none is switched on. */
async function resultsOf(code, ids, limitMs) {
  const found = []
  while (found.length < ids.length) {
    found.push(...(await runWorker(code, ids.slice(found.length), limitMs)))
  }
  return found
}

/** The results until the process ended: at least one. */
function runWorker(code, ids, limitMs) {
  const found = []
  const worker = fork(new URL('./mutation-worker.mjs', import.meta.url), {
    execArgv: ['--max-old-space-size=1024'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const end = () => worker.kill('SIGKILL')
  let timer = setTimeout(end, limitMs)
  worker.send({ code, ids })
  return new Promise((resolve) => {
    worker.on('message', ({ result }) => {
      // tap sends messages of its own.
      if (result === undefined) return
      found.push(result)
      clearTimeout(timer)
      if (found.length === ids.length) end()
      else timer = setTimeout(end, limitMs)
    })
    worker.on('close', (status) => {
      clearTimeout(timer)
      if (found.length < ids.length) found.push(status === null ? 'late' : 'failed')
      resolve(found)
    })
  })
}
