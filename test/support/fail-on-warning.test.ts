import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'

const repository = fileURLToPath(new URL('../../../', import.meta.url))
const run = promisify(execFile)

test('a test file whose process emits a warning fails with it, and no other file does', async (t) => {
  const [, option = ''] =
    /^node-arg:\n {2}- "(--import=\S+)"$/m.exec(await readFile(join(repository, '.taprc'), 'utf8')) ?? []
  t.match(option, /^--import=/)
  const leak =
    "import { EventEmitter } from 'node:events'\nimport { test } from 'tap'\ntest('passes', async (t) => t.ok(true))\nconst emitter = new EventEmitter()\n"
  // Not of an AbortSignal: later releases of Node.js allow it any number.
  const listening = 'for (let i = 0; i < 11; i++) emitter.on("abort", () => i)\n'
  const folder = t.testdir({
    'warns.test.js': `${leak}${listening}`,
    'passes.test.js': leak,
    'program.js': `${leak}${listening}`,
    'package.json': '{"type": "module"}',
  })
  const outcome = (name: string) =>
    run(process.execPath, [option, join(folder, name)], { cwd: repository }).then(
      () => ({ code: 0, stderr: '' }),
      ({ code, stderr }: { readonly code: number; readonly stderr: string }) => ({ code, stderr }),
    )
  t.match(await outcome('warns.test.js'), {
    code: 1,
    stderr: /This test fails: its process emitted warnings\.\nMaxListenersExceededWarning: .*11 abort listeners/,
  })
  t.match(await outcome('passes.test.js'), { code: 0 })
  t.match(await outcome('program.js'), { code: 0 }, 'a program that is not a test')
})
