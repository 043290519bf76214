import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { eventually } from '../../../test/support/wait.ts'
import { pauseProgram, sandboxLayer } from './sandbox-image.ts'

test('the program of the sandbox is an executable of a few bytes for every board', async (t) => {
  for (const [architecture, machine] of [
    ['amd64', 62],
    ['arm64', 183],
    ['arm', 40],
  ] as const) {
    const program = pauseProgram(architecture)
    t.ok(program.length < 300, `${architecture}: ${program.length} bytes`)
    t.equal(program.toString('latin1', 0, 4), '\x7fELF')
    t.equal(program.readUInt16LE(18), machine)
  }
})

test('it sleeps until SIGTERM', { skip: process.arch !== 'x64' && 'written for x64' }, async (t) => {
  const path = join(testFolder(t), 'pause')
  await writeFile(path, pauseProgram('amd64'), { mode: 0o755 })
  const child = spawn(path, { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const inPause = async () => (await readFile(`/proc/${child.pid}/syscall`, 'utf8').catch(() => '')).startsWith('34 ')
  await eventually('it sleeps', inPause, { everyMs: 10 })
  child.kill('SIGTERM')
  t.same(await once(child, 'exit'), [null, 'SIGTERM'])
})

test('its image is one layer with that one file', async (t) => {
  const layer = sandboxLayer('arm64')
  t.equal(layer.length % 512, 0)
  t.equal(layer.toString('latin1', 0, 6), 'pause\0')
  t.ok(layer.subarray(512).indexOf(pauseProgram('arm64')) === 0)
})
