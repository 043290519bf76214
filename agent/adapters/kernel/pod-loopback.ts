/**
 * Connections to what listens on the loopback address of a pod. A process is in one network namespace for its life, and Node.js
 * has no setns: a helper process, started within the namespace of the pod by nsenter (util-linux, essential in Debian), connects
 * and hands the connected sockets over. It is one for a pod, not for a connection, and ends when it is not used.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { unlessAborted } from '../../../daemon/aborted.ts'
import { ownExecutable } from '../../../daemon/process/own-executable.ts'
import type { PodLoopback } from '../../sessions/session-types.ts'

export type PodLoopbackNeeds = {
  /** The first process of a container that runs. */
  readonly processOf: (containerID: string) => Promise<number>
}

export type PodLoopbackLimits = {
  /** A page in a browser opens its connections within this time. */
  readonly idleMs: number
  /** Pods at one time. Each helper takes about 10 MB of its own. */
  readonly helpers: number
}

const defaultLimits: PodLoopbackLimits = { idleMs: 30_000, helpers: 8 }

type Waiting = { readonly resolve: (socket: Socket) => void; readonly reject: (error: Error) => void }
type Helper = { readonly child: ChildProcess; readonly waiting: Map<number, Waiting>; readonly idle: NodeJS.Timeout }

export function podLoopback({ processOf }: PodLoopbackNeeds, limits = defaultLimits): PodLoopback {
  const helpers = new Map<string, Promise<Helper>>()
  let requests = 0

  const start = async (containerID: string): Promise<Helper> => {
    const namespace = await networkOf(containerID, await processOf(containerID))
    try {
      const child = spawn('nsenter', ['--net=/proc/self/fd/4', ownExecutable, '-e', program], {
        stdio: ['ignore', 'ignore', 'ignore', 'ipc', namespace.fd],
        env: {},
      })
      const idle = setTimeout(() => void child.kill('SIGKILL'), limits.idleMs).unref()
      const helper: Helper = { child, waiting: new Map(), idle }
      const end = (error: Error) => {
        clearTimeout(idle)
        helpers.delete(containerID)
        for (const { reject } of helper.waiting.values()) reject(error)
        helper.waiting.clear()
      }
      child.once('error', (cause) => end(new Error('nsenter cannot be started', { cause })))
      child.once('exit', () => end(new Error('the process in the network of the pod has ended')))
      child.on('message', (message, handle) => received(helper, message, handle))
      child.unref()
      child.channel?.unref()
      return helper
    } finally {
      await namespace.close()
    }
  }

  const helperIn = (containerID: string): Promise<Helper> => {
    const known = helpers.get(containerID)
    if (known !== undefined) return known
    if (helpers.size >= limits.helpers) throw new Error(`${helpers.size} other pods have such connections already`)
    const starting = start(containerID)
    helpers.set(containerID, starting)
    starting.catch(() => helpers.delete(containerID))
    return starting
  }

  return {
    async connect(containerID, port, signal) {
      const helper = await helperIn(containerID)
      const id = requests++
      const answered = new Promise<Socket>((resolve, reject) => {
        helper.waiting.set(id, { resolve, reject })
        helper.idle.refresh()
        helper.child.send({ id, port }, (error) => error && reject(error))
      })
      const socket = await unlessAborted(answered, signal).finally(() => helper.waiting.delete(id))
      if (socket === undefined) throw new Error('The client is gone')
      return socket
    },
    close() {
      for (const helper of helpers.values()) helper.then(({ child }) => child.kill('SIGKILL')).catch(() => undefined)
    },
  }
}

/** Sockets without a waiting caller are closed. */
function received({ waiting }: Helper, message: unknown, handle: unknown): void {
  const { id, error } = (typeof message === 'object' && message !== null ? message : {}) as {
    readonly id?: unknown
    readonly error?: unknown
  }
  const one = typeof id === 'number' ? waiting.get(id) : undefined
  if (handle instanceof Socket) {
    handle.allowHalfOpen = true
    handle.setNoDelay(true)
    if (one === undefined) handle.destroy()
    else one.resolve(handle)
  } else one?.reject(new Error(String(error)))
}

/**
 * The id of a process may be that of another by now, which is on the network of the machine: the namespace is opened first, and
 * then the process must belong to the container. Rejects where it does not. The caller closes it.
 */
async function networkOf(containerID: string, pid: number): Promise<FileHandle> {
  const namespace = await open(`/proc/${pid}/ns/net`, 'r')
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
  if (pid > 1 && groups.includes(containerID)) return namespace
  await namespace.close()
  throw new Error('the container has ended')
}

/** Nothing is read before the socket is handed over. Without its parent it ends. */
const program = `
const { connect } = require('node:net')
const open = (id, port, [host, ...others]) => {
  const socket = connect({ host, port, allowHalfOpen: true })
  socket.pause()
  socket.setTimeout(10000, () => socket.destroy(new Error('it does not answer')))
  socket.once('connect', () => {
    socket.setTimeout(0)
    process.send({ id }, socket)
  })
  socket.on('error', ({ message }) => (others.length > 0 ? open(id, port, others) : process.send({ id, error: message })))
}
process.on('message', ({ id, port }) => open(id, port, ['127.0.0.1', '::1']))
process.on('disconnect', () => process.exit())
`
