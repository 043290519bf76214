/** Runs the bundled test that it is sent, once with each of the mutants, and sends each result. For mutation-decisions.mjs. */
import { createRequire } from 'node:module'
import { runInThisContext } from 'node:vm'
import * as tap from 'tap'

const require = createRequire(import.meta.url)
/** Stryker's: the id of the mutant that is switched on. A mutant that is reached more often than the limit loops without end. */
const stryker = { activeMutant: '', hitCount: 0, hitLimit: 1_000_000 }
globalThis.__stryker__ = stryker

let failed = () => {}
process.on('uncaughtException', () => failed())
process.on('unhandledRejection', () => failed())

process.once('message', async ({ code, ids }) => {
  const evaluate = runInThisContext(`(function (require, module) {${code}\n})`)
  for (const id of ids) {
    stryker.activeMutant = id
    stryker.hitCount = 0
    const result = (await passes(evaluate)) ? 'passed' : 'failed'
    await new Promise((sent) => process.send({ result }, sent))
  }
})

/** Ends at the first assertion that fails. */
async function passes(evaluate) {
  const root = new tap.Test({ name: 'mutant', bail: true })
  root.resume()
  const isPassed = new Promise((resolve) => {
    failed = () => resolve(false)
    root.on('bailout', failed)
    root.on('end', () => resolve(root.results?.ok === true))
  })
  const given = { ...tap, t: root, test: root.test.bind(root) }
  try {
    evaluate((name) => (name === 'tap' ? given : require(name)), { exports: {} })
  } catch {
    return false
  }
  root.end()
  return await isPassed
}
