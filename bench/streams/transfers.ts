/** What kubectl transfers from a pod, in MiB per second of the whole process. `server` are its options for the connection. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, stat } from 'node:fs/promises'

/** A file on standard output, as `logs` and `exec` print it. */
export async function printed(server: readonly string[], ...args: readonly string[]): Promise<number> {
  const beganMs = performance.now()
  const child = spawn('kubectl', [...server, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let bytes = 0
  child.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length
  })
  await once(child, 'close')
  return rate(bytes, beganMs)
}

/** A file that kubectl writes to `to`. */
export async function copied(server: readonly string[], from: string, to: string): Promise<number> {
  const beganMs = performance.now()
  await once(spawn('kubectl', [...server, 'cp', from, to], { stdio: 'ignore' }), 'close')
  const { size } = await stat(to)
  const perSecond = rate(size, beganMs)
  await rm(to)
  return perSecond
}

/** A page of a pod's port 8080, by HTTP through `kubectl port-forward`. */
export async function forwarded(server: readonly string[], pod: string, page: string): Promise<number> {
  const child = spawn('kubectl', [...server, 'port-forward', `pod/${pod}`, ':8080'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'close')
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const port = /:(\d+) ->/.exec(line.toString())?.[1]
    const beganMs = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}${page}`)
    let bytes = 0
    for await (const piece of answer.body ?? []) bytes += piece.length
    return rate(bytes, beganMs)
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

function rate(bytes: number, beganMs: number): number {
  return bytes / 2 ** 20 / ((performance.now() - beganMs) / 1000)
}
