/** One program at a time changes the state of updates. The kernel releases the lock with the process, however that ends. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Runs `action` while flock(1) holds the lock. Rejects if it is not free within `waitSeconds`. */
export async function withUpdateLock<T>(path: string, action: () => Promise<T>, waitSeconds = 30): Promise<T> {
  const holding = ['--wait', String(waitSeconds), path, 'sh', '-c', 'echo held; read -r _']
  const holder = spawn('flock', holding, { stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = once(holder, 'exit')
  holder.stdin.on('error', () => undefined)
  const first = await Promise.race([once(holder.stdout, 'data'), ended])
  if (String(first[0]) !== 'held\n') throw new Error(`Another program holds ${path}`)
  try {
    return await action()
  } finally {
    holder.stdin.end('\n')
    await ended
  }
}
