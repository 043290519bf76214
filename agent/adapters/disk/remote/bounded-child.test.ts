import { ChildProcess } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { runBounded } from './bounded-child.ts'

/** As one in uninterruptible sleep: signals do not end it. */
class Sleeper extends ChildProcess {
  override readonly stdout = new PassThrough()
  override readonly stderr = new PassThrough()
  readonly signals: unknown[] = []
  isHeld = true
  override kill(signal?: NodeJS.Signals | number): boolean {
    this.signals.push(signal)
    return true
  }
  override unref(): void {
    this.isHeld = false
  }
}

test('a child that SIGKILL does not end is left, and no second one is started until it ends', async (t) => {
  const sleepers: Sleeper[] = []
  const start = () => {
    const sleeper = new Sleeper()
    sleepers.push(sleeper)
    return sleeper
  }
  const run = (key: string) => runBounded({ key, command: ['umount', key], deadlineMs: 1, start })
  await t.rejects(run('/a'), { name: 'NoAnswer', message: 'umount did not end within 0.001 s' })
  const [first] = sleepers
  t.same(first?.signals, ['SIGKILL'])
  t.equal(first?.isHeld, false, 'it does not keep this process from exiting')
  await t.rejects(run('/a'), { name: 'NoAnswer', message: /^an earlier process/ })
  t.equal(sleepers.length, 1)
  await t.rejects(run('/b'), /did not end/, 'another path is not affected')
  first?.emit('exit', null, 'SIGKILL')
  await t.rejects(run('/a'), /did not end/)
  t.equal(sleepers.length, 3)
  for (const sleeper of sleepers) sleeper.emit('exit', null, 'SIGKILL')
})

test('the end of a child is returned with what it printed', async (t) => {
  const start = () => {
    const child = new Sleeper()
    child.stderr.end('mount: no such device\n')
    child.stderr.once('end', () => child.emit('close', 32))
    return child
  }
  const end = await runBounded({ key: '/c', command: ['mount', '/c'], deadlineMs: 60_000, start })
  t.same(end, { code: 32, stdout: '', stderr: 'mount: no such device\n' })
})
