/**
 * A delay lock of logind: an open file. The lock is held while any process has the file open, even if the bus or logind stops. If
 * the native code that receives the file is missing, or the agent may not reopen it, a child process holds the lock.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { within } from '../../../daemon/deadline.ts'
import type { ShutdownLock } from '../../shutdown/inhibitor.ts'
import { BusError, onSystemBus } from './system-bus.ts'
import { logindManager } from './systemd-bus.ts'

export const lockName = 'bramble-agent'
const why = 'Pods are stopped in order'

export type LockNeeds = {
  readonly socketPath: string
  readonly deadlineMs: number
}

export async function takeDelayLock(needs: LockNeeds): Promise<ShutdownLock> {
  try {
    return await lockByDescriptor(needs)
  } catch (error) {
    try {
      return await lockByChild(needs)
    } catch {
      throw error
    }
  }
}

/** The lock outlives the connection, whose socket would be open in every child too. */
async function lockByDescriptor(needs: LockNeeds): Promise<ShutdownLock> {
  const own = await onSystemBus({ ...needs, withDescriptors: true }, async (bus) => {
    const body = ['shutdown', lockName, why, 'delay']
    const [passed] = await bus.call({ ...logindManager, member: 'Inhibit', signature: 'ssss', body })
    if (typeof passed !== 'number') throw new BusError('logind returned no file descriptor', '')
    return reopened(passed)
  })
  return { how: 'descriptor', pid: process.pid, release: () => closeSync(own) }
}

/** Received files are inherited by child processes, and the lock with them. A reopened file is not; reopening needs root. */
function reopened(passed: number): number {
  try {
    return openSync(`/proc/self/fd/${passed}`, 'a')
  } finally {
    closeSync(passed)
  }
}

/** The child ends with the agent, however the agent ends, because its standard input closes. */
async function lockByChild({ socketPath, deadlineMs }: LockNeeds): Promise<ShutdownLock> {
  const command = ['systemd-inhibit', '--what=shutdown', '--mode=delay', `--who=${lockName}`, `--why=${why}`]
  const child = spawn(
    'env',
    [`DBUS_SYSTEM_BUS_ADDRESS=unix:path=${socketPath}`, ...command, 'sh', '-c', 'echo held; exec cat'],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  )
  child.on('error', () => undefined)
  try {
    await within(deadlineMs, 'systemd-inhibit does not hold it', held(child))
  } catch (cause) {
    child.kill('SIGKILL')
    throw new Error('Cannot hold a delay lock by systemd-inhibit', { cause })
  }
  return { how: 'process', pid: child.pid ?? 0, release: () => void child.stdin.destroy() }
}

async function held(child: ChildProcess): Promise<void> {
  const ended = once(child, 'close').then(() => Promise.reject(new Error('It ended at once')))
  ended.catch(() => undefined)
  if (child.stdout !== null) await Promise.race([once(child.stdout, 'data'), ended])
  child.stdout?.resume()
  child.unref()
}
