/**
 * Calls over D-Bus, on dbus-next, loaded when first needed. The library neither ends a call by itself nor tells when the bus
 * has gone away: so every call has a deadline, and whoever calls now and then opens a connection each time and closes it.
 */
import { within } from './within.ts'

export type BusSettings = {
  /** `/run/dbus/system_bus_socket` */
  readonly socketPath: string
  readonly deadlineMs?: number
}

export type BusCall = {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  /** Of `body`, in D-Bus' letters: `ss`. */
  readonly signature?: string
  readonly body?: readonly unknown[]
}

export interface SystemBus {
  /** What the method gave. Throws BusError, also when there is no answer in time. */
  call(request: BusCall): Promise<readonly unknown[]>
  close(): void
}

/** `code` is D-Bus' own name of the error (`org.freedesktop.systemd1.NoSuchUnit`); '' when there was no answer. */
export class BusError extends Error {
  override readonly name = 'BusError'
  readonly code: string

  constructor(message: string, code: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

export const systemBusSocket = 'run/dbus/system_bus_socket'
const defaultDeadlineMs = 10_000

/** Throws BusError when there is no bus. */
export async function openSystemBus({ socketPath, deadlineMs = defaultDeadlineMs }: BusSettings): Promise<SystemBus> {
  const { default: dbus } = await import('dbus-next')
  // `socket=` in the place of `path=`: a connection that passes no descriptors needs no native code.
  const bus = dbus.sessionBus({ busAddress: `unix:socket=${socketPath}` })
  // Without a listener an error would end the program.
  const failed = new Promise<never>((_, reject) => bus.on('error', reject))
  failed.catch(() => undefined)
  const close = () => {
    bus.disconnect()
    streamOf(bus)?.destroy()
  }
  const connected = new Promise<void>((resolve) => bus.once('connect', () => resolve()))
  try {
    await within(deadlineMs, 'No answer', Promise.race([connected, failed]))
  } catch (cause) {
    close()
    throw new BusError(`Cannot connect to the system bus at ${socketPath}`, '', { cause })
  }
  return {
    async call(request) {
      const { body = [], ...rest } = request
      const message = new dbus.Message({ ...rest, body: [...body] })
      try {
        const reply = await within(deadlineMs, 'No answer', Promise.race([bus.call(message), failed]))
        return reply?.body ?? []
      } catch (cause) {
        const { type } = cause as { readonly type?: unknown }
        const tried = `Cannot call ${request.member} of ${request.destination}`
        throw new BusError(tried, typeof type === 'string' ? type : '', { cause })
      }
    },
    close,
  }
}

/** The library's own end of a connection waits for the other side, which may be what hangs. */
function streamOf(bus: object): { destroy(): void } | undefined {
  const { _connection: connection } = bus as { readonly _connection?: { readonly stream?: { destroy(): void } } }
  return connection?.stream
}

/** One call on a connection of its own. */
export async function callOnce(settings: BusSettings, request: BusCall): Promise<readonly unknown[]> {
  const bus = await openSystemBus(settings)
  try {
    return await bus.call(request)
  } finally {
    bus.close()
  }
}
