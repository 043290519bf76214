import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import type { FileOrder, FileReport } from './unit-test-worker.ts'

const worker = fileURLToPath(new URL('unit-test-worker.js', import.meta.url))

/** Test files in a folder from which tap is found, and a process that runs one of them after the other. */
function aWorker(t: Test, files: { readonly [name: string]: string }): (name: string) => Promise<FileReport> {
  const folder = t.testdir(files)
  const child: ChildProcess = fork(worker, ['0'], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  return async (name) => {
    const order: FileOrder = { path: join(folder, name), timeoutMs: 60_000 }
    child.send(order)
    for (;;) {
      const [message] = await once(child, 'message')
      if ('isLast' in message) return message
    }
  }
}

const passing = "import { test } from 'tap'\ntest('passes', async (t) => t.ok(true))\n"

test('a file fails that emits a warning, and the next one does not', async (t) => {
  const run = aWorker(t, {
    'leaks.mjs': `${passing}for (let i = 0; i < 11; i++) process.once('SIGHUP', () => i)
process.removeAllListeners('SIGHUP')\n`,
    'warns.mjs': `${passing}process.emitWarning('old', 'DeprecationWarning', 'DEP0001')\n`,
    'passes.mjs': passing,
  })
  t.match((await run('leaks.mjs')).problems, [/^emits a warning: MaxListenersExceededWarning: .*SIGHUP/])
  const { passed, failed, problems } = await run('warns.mjs')
  t.match({ passed, failed }, { passed: 1, failed: 0 })
  t.equal(problems.length, 1)
  t.match(problems[0], /^emits a warning: DeprecationWarning: old/)
  t.match(await run('passes.mjs'), { passed: 1, failed: 0, problems: [] })
})

test('a file that leaves a listener for warnings fails for that', async (t) => {
  const run = aWorker(t, { 'listens.mjs': `${passing}process.on('warning', () => undefined)\n` })
  const { problems } = await run('listens.mjs')
  t.match(problems, [/^leaves the process changed, from .*"warning \d+".* to .*"warning \d+"/])
})
