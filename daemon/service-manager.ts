/** What systemd is told of us, as sd_notify(3) says it: that we are ready, that we live, what we do. */
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { Loop } from './run.ts'

export interface ServiceManager {
  /** How often it wants to hear that we live, with a margin; undefined when it does not watch. */
  readonly beatMs: number | undefined
  ready(): void
  alive(): void
  stopping(): void
  /** One line, shown by `systemctl status`. */
  status(text: string): void
  close(): void
}

/** As systemd sets it: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
export type ServiceEnvironment = { readonly [name: string]: string | undefined }

/**
 * Undefined when nobody wants to be told. The native datagram socket is loaded only if somebody does; where it cannot be,
 * that is said in the log: systemd will then end a unit of Type=notify.
 */
export async function openServiceManager(
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: microseconds, WATCHDOG_PID: watched }: ServiceEnvironment,
  log: Log,
): Promise<ServiceManager | undefined> {
  if (socket === undefined || socket === '') return undefined
  const opened = await sender(socket, log)
  if (opened === undefined) return undefined
  const { send, close } = opened
  const watches = watched === undefined || watched === String(process.pid)
  const limitMs = watches ? Number(microseconds) / 1000 : Number.NaN
  return {
    beatMs: limitMs > 0 ? limitMs / 3 : undefined,
    ready: () => send('READY=1'),
    alive: () => send('WATCHDOG=1'),
    stopping: () => send('STOPPING=1'),
    status: (text) => send(`STATUS=${text.replaceAll('\n', ' ')}`),
    close,
  }
}

async function sender(socket: string, log: Log) {
  // Abstract names, which only a service manager other than the system's own uses, cannot be reached.
  if (!socket.startsWith('/')) {
    log.warn('The service manager cannot be told anything: its socket is not a path', { socket })
    return undefined
  }
  try {
    const { default: unixDgram } = await import('unix-dgram')
    const own = unixDgram.createSocket('unix_dgram')
    let failed = false
    own.on('error', () => undefined)
    const send = (text: string) => {
      const message = Buffer.from(text)
      own.send(message, 0, message.length, socket, (error) => {
        if (error !== undefined && !failed) log.warn('The service manager was not reached', { error })
        failed = error !== undefined
      })
    }
    return { send, close: () => own.close() }
  } catch (error) {
    log.warn('The service manager cannot be told anything: there is no datagram socket', { error })
    return undefined
  }
}

export type ServiceView = {
  /** Whoever waits for us may go on. */
  readonly ready: () => boolean
  /** Why we are not alive though this code runs; none when we are. */
  readonly problems: () => readonly string[] | Promise<readonly string[]>
  /** One line of what we do. */
  readonly status: () => string
}

const untilReadyMs = 100
const statusMs = 5_000

/** Tells the service manager when we are ready, that we live as long as we do, and what we do when it changes. */
export function serviceLoop(manager: ServiceManager, view: ServiceView, clock: Clock, log: Log): Loop {
  return {
    name: 'service-manager',
    async run(signal) {
      let told = ''
      let isReady = false
      let sick = ''
      while (!signal.aborted) {
        const problems = await view.problems()
        const status = problems.length === 0 ? view.status() : `Hangs: ${problems.join('; ')}`
        if (status !== told) manager.status(status)
        told = status
        if (!isReady && view.ready()) {
          isReady = true
          manager.ready()
        }
        if (problems.length === 0) manager.alive()
        else if (problems.join() !== sick) log.error('The service manager is not told that we live', { problems })
        sick = problems.join()
        await clock.sleep(isReady ? Math.min(statusMs, manager.beatMs ?? statusMs) : untilReadyMs, signal)
      }
      manager.stopping()
    },
  }
}
