import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { until } from '../../testing/until.ts'
import { runTool, runToolOrThrow } from './run-tool.ts'

test('a program gets its input through a pipe, and its end is reported', async (t) => {
  t.same(await runTool('sh', ['-c', 'cat /dev/stdin; echo no >&2; exit 3'], 'text'), {
    code: 3,
    stdout: 'text',
    stderr: 'no\n',
  })
  for (const input of ['text', undefined]) {
    await t.rejects(runTool('/nonexistent/nft', [], input), { message: '/nonexistent/nft is not installed' })
  }
  await t.rejects(runToolOrThrow('Cannot do it', 'sh', ['-c', 'exit 3']), { message: /^Cannot do it: / })
})

test('a program that does not end in time is not left running', async (t) => {
  const own = join(testFolder(t), 'own')
  const program = join(t.testdirName, 'hangs')
  await writeFile(program, `#!/bin/sh\necho $$ >${own}\nexec sleep 300\n`, { mode: 0o700 })
  // With room for a machine that stands still before the program has written its number.
  await t.rejects(runTool(program, [], 'text', 10_000), { message: /hangs did not end within 10 s$/ })
  const pid = (await readFile(own, 'utf8')).trim()
  const isRunning = () => spawnSync('sh', ['-c', `kill -0 ${pid}`]).status === 0
  await until('the program has ended', () => !isRunning())
})
