import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type Test, test } from 'tap'
import { eventually } from '../../test/support/wait.ts'
import { killTree, treeOf } from './process-tree.ts'

test('a tree has the descendants of a process and the members of its session', async (t) => {
  const processes = [
    { pid: 1, parent: 0, session: 1 },
    { pid: 10, parent: 1, session: 10 },
    { pid: 11, parent: 10, session: 10 },
    { pid: 12, parent: 11, session: 12 },
    { pid: 13, parent: 1, session: 10 },
    { pid: 20, parent: 1, session: 20 },
  ]
  t.same(treeOf(10, processes), [10, 11, 12, 13])
  t.same(treeOf(11, processes), [11, 12], 'one that leads no session')
  t.same(treeOf(99, processes), [99])
})

test('a process ends with its children, and with those whose parent has ended', async (t) => {
  const script = "(sh -c 'sleep 1000 & echo $!' ; setsid sleep 1000 & echo $!; sleep 1000) & wait"
  const { leader, pids } = await started(t, script, 2)
  const ended = once(leader, 'exit')
  await killTree(leader.pid ?? 0, () => true)
  await ended
  await eventually('all have ended', async () => (await Promise.all(pids.map(isRunning))).every((runs) => !runs))
})

test('a process of another owner is left alone', async (t) => {
  const { leader, pids } = await started(t, 'sleep 1000 & echo $!; wait', 1)
  await killTree(leader.pid ?? 0, () => false)
  t.same(await Promise.all(pids.map(isRunning)), [true])
  t.equal(leader.exitCode, null)
})

/** A shell in a session of its own that runs the script, which prints this many process IDs. */
async function started(t: Test, script: string, count: number) {
  const leader: ChildProcess = spawn('sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => killTree(leader.pid ?? 0, () => true))
  let text = ''
  leader.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const pids = () => text.split('\n').filter((line) => line !== '')
  await eventually('it prints what it started', () => pids().length === count)
  return { leader, pids: pids().map(Number) }
}

async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  return stat !== '' && !/\) [ZX]/.test(stat)
}
