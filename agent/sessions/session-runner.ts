/**
 * The agent's end of the streams that the controller requests, such as those of `kubectl logs`: connects each by its id and
 * runs the handler of its kind. A session ends with its handler, its stream, the connection to the controller, and after
 * `longestMs`.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'

/** Reads from and writes to the stream until it is done, or `signal` aborts. The stream is destroyed afterwards. */
export type SessionHandler = (stream: Duplex, signal: AbortSignal) => Promise<void>

export type SessionRunnerLimits = {
  readonly atOnce: number
  /** For the connection to the controller. */
  readonly connectMs: number
  readonly longestMs: number
}

/** As the controller's, whose requests are bounded by the same times. */
export const defaultSessionRunnerLimits: SessionRunnerLimits = {
  // The controller requests 64 at most, and gives the place of one that it has ended to the next, while its handler still ends here.
  atOnce: 128,
  connectMs: 15_000,
  longestMs: 4 * 3600_000,
}

export type SessionRunnerNeeds = {
  /** Connects the stream of a session to the controller. */
  readonly dial: (id: string, signal: AbortSignal) => Promise<Duplex>
  readonly clock: Clock
  readonly log: Log
  readonly limits?: SessionRunnerLimits
}

export interface SessionRunner {
  /** Starts a session. False: it runs already, or there are too many. Errors are logged: the controller sees the stream end. */
  start(id: string, handler: SessionHandler): boolean
  /** Sessions that run. */
  readonly size: number
  /** Ends all sessions; resolves when their handlers have ended. */
  end(): Promise<void>
}

export function sessionRunner({
  dial,
  clock,
  log,
  limits = defaultSessionRunnerLimits,
}: SessionRunnerNeeds): SessionRunner {
  const sessions = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>()

  const run = async (id: string, handler: SessionHandler, stop: AbortController) => {
    const { signal } = stop
    const connected = new AbortController()
    const endAfter = async (ms: number, until: AbortSignal) => {
      await clock.sleep(ms, until)
      if (!until.aborted) stop.abort('deadline')
    }
    void endAfter(limits.connectMs, connected.signal)
    void endAfter(limits.longestMs, signal)
    let stream: Duplex | undefined
    try {
      stream = await dial(id, signal)
      connected.abort('connected')
      const opened = stream
      opened.on('error', (error) => log.debug('Stream to the controller failed', { id, error }))
      opened.once('close', () => stop.abort('closed'))
      const close = () => void opened.destroy()
      signal.addEventListener('abort', close, { once: true })
      if (signal.aborted) close()
      else await handler(opened, signal)
    } catch (error) {
      if (!signal.aborted) log.warn('Stream to the controller ended', { id, error })
    } finally {
      connected.abort('ended')
      stop.abort('ended')
      stream?.destroy()
    }
  }

  return {
    start(id, handler) {
      if (sessions.has(id) || sessions.size >= limits.atOnce) return false
      const stop = new AbortController()
      const done = run(id, handler, stop).finally(() => void sessions.delete(id))
      sessions.set(id, { stop, done })
      return true
    },
    get size() {
      return sessions.size
    },
    async end() {
      const ending = [...sessions.values()]
      for (const { stop } of ending) stop.abort('ended')
      await Promise.all(ending.map(({ done }) => done))
    },
  }
}
