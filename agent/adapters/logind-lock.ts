/**
 * A delay lock of logind: an open file, and as long as anybody has it open the lock is held, whatever becomes of the bus or of
 * logind. Where the native code that takes it is missing, a child process holds it for us.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import type { ShutdownLock } from '../shutdown/inhibitor.ts'
import { type BusCall, BusError, openSystemBus } from './system-bus.ts'
import { within } from './within.ts'

export const lockName = 'bramble-agent'
const why = 'Pods are stopped in order'

export type LockNeeds = {
  readonly socketPath: string
  readonly deadlineMs: number
  readonly manager: Pick<BusCall, 'destination' | 'path' | 'interface'>
}

/** `pid`: of the child that holds it. */
export type DelayLock = ShutdownLock & { readonly pid: number | undefined }

export async function takeDelayLock(needs: LockNeeds): Promise<DelayLock> {
  try {
    return await takeDescriptor(needs)
  } catch (error) {
    try {
      return await lockByChild(needs.deadlineMs)
    } catch {
      throw error
    }
  }
}

async function takeDescriptor({ socketPath, deadlineMs, manager }: LockNeeds): Promise<DelayLock> {
  const bus = await openSystemBus({ socketPath, deadlineMs, withDescriptors: true })
  try {
    const body = ['shutdown', lockName, why, 'delay']
    const [passed] = await bus.call({ ...manager, member: 'Inhibit', signature: 'ssss', body })
    if (typeof passed !== 'number') throw new BusError('logind gave no open file', '')
    // Passed files stay open in every child, and the lock with them: opened anew it does not.
    const own = openSync(`/proc/self/fd/${passed}`, 'a')
    closeSync(passed)
    let isHeld = true
    return {
      how: 'descriptor',
      pid: undefined,
      release() {
        if (isHeld) closeSync(own)
        isHeld = false
      },
    }
  } finally {
    // Its socket would be open in every child, too. The lock needs it no longer.
    bus.close()
  }
}

/** It ends with us, however we end: its input is ours to close. */
export async function lockByChild(deadlineMs: number): Promise<DelayLock> {
  const child = spawn(
    'systemd-inhibit',
    ['--what=shutdown', '--mode=delay', `--who=${lockName}`, `--why=${why}`, 'sh', '-c', 'echo held; exec cat'],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  )
  child.on('error', () => undefined)
  try {
    await within(deadlineMs, 'systemd-inhibit does not hold it', held(child))
  } catch (cause) {
    child.kill('SIGKILL')
    throw new Error('Cannot hold a delay lock by systemd-inhibit', { cause })
  }
  return { how: 'process', pid: child.pid, release: () => void child.stdin?.end() }
}

async function held(child: ChildProcess): Promise<void> {
  const ended = once(child, 'close').then(() => Promise.reject(new Error('It ended at once')))
  ended.catch(() => undefined)
  if (child.stdout !== null) await Promise.race([once(child.stdout, 'data'), ended])
  child.stdout?.resume()
  child.unref()
}
