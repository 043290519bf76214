/** Notifications to systemd as in sd_notify(3): ready, watchdog, stopping, status. */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Loop } from '../run.ts'

export interface SystemdNotifier {
  /** Interval of the watchdog's pings, with a margin; undefined where systemd does not watch this process. */
  readonly beatMs: number | undefined
  ready(): void
  alive(): void
  stopping(): void
  /** One line, shown by `systemctl status`. */
  status(text: string): void
  close(): void
}

/** As systemd sets it: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
export type NotifyEnvironment = { readonly [name: string]: string | undefined }

/**
 * Undefined without NOTIFY_SOCKET. The native datagram socket is loaded only with it; a failure to do so is logged: systemd
 * then ends a unit of Type=notify.
 */
export async function openSystemdNotifier(
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: microseconds, WATCHDOG_PID: watched }: NotifyEnvironment,
  log: Log,
): Promise<SystemdNotifier | undefined> {
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
    log.warn('Cannot notify systemd: its socket is not a path', { socket })
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
        if (error !== undefined && !failed) log.warn('Cannot notify systemd', { error })
        failed = error !== undefined
      })
    }
    return { send, close: () => own.close() }
  } catch (error) {
    log.warn('Cannot notify systemd: the datagram socket is not available', { error })
    return undefined
  }
}

export type NotifierView = {
  /** Units that wait for this one may start. */
  readonly ready: () => boolean
  /** Why the process is unhealthy although this code runs; none when it is healthy. */
  readonly problems: () => readonly string[] | Promise<readonly string[]>
  /** One line for `systemctl status`. */
  readonly status: () => string
}

const untilReadyMs = 100
const statusMs = 5_000

/** Reports readiness, sends the watchdog's pings while the process is healthy, and the status when it changes. */
export function notifierLoop(notifier: SystemdNotifier, view: NotifierView, clock: Clock, log: Log): Loop {
  let sent = ''
  let isReady = false
  let logged = ''
  const report = async () => {
    const problems = await view.problems()
    const status = problems.length === 0 ? view.status() : `Hangs: ${problems.join('; ')}`
    if (status !== sent) notifier.status(status)
    sent = status
    if (!isReady && view.ready()) {
      isReady = true
      notifier.ready()
    }
    if (problems.length === 0) notifier.alive()
    else if (problems.join() !== logged) log.error('Unhealthy: withholding the systemd watchdog ping', { problems })
    logged = problems.join()
  }
  return {
    name: 'systemd-notifier',
    async run(signal) {
      while (!signal.aborted) {
        await report()
        await clock.sleep(isReady ? Math.min(statusMs, notifier.beatMs ?? statusMs) : untilReadyMs, signal)
      }
      notifier.stopping()
    },
  }
}
