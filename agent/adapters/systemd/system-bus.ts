/**
 * Calls over D-Bus, on dbus-next, loaded when first needed. The library neither ends a call by itself nor reports when the bus
 * has gone away: so every call has a deadline, and callers with rare calls open a connection each time and close it.
 */
import { unlessAborted } from '../../../daemon/aborted.ts'
import { within } from '../../../daemon/deadline.ts'

export type BusSettings = {
  /** `/run/dbus/system_bus_socket` */
  readonly socketPath: string
  readonly deadlineMs?: number
  /** Takes open files that are passed, with native code. For this and nothing else: see `openSystemBus`. */
  readonly withDescriptors?: boolean
}

export type BusObject = { readonly destination: string; readonly path: string; readonly interface: string }

export type BusCall = BusObject & {
  readonly member: string
  /** Of `body`, in D-Bus' letters: `ss`. */
  readonly signature?: string
  readonly body?: readonly unknown[]
}

/** Signals of one interface, from the owner of this name. `first`: only those whose body begins with this text. */
export type BusMatch = { readonly sender: string; readonly interface: string; readonly first?: string }

export type BusSignal = { readonly member: string; readonly body: readonly unknown[] }

export interface SystemBus {
  /** What the method gave. Throws BusError, also when there is no answer in time. */
  call(request: BusCall): Promise<readonly unknown[]>
  property(of: BusObject, name: string): Promise<unknown>
  /** Calls `onSignal` with each such signal until the connection ends. */
  listen(match: BusMatch, onSignal: (signal: BusSignal) => void): Promise<void>
  /** Resolves when the connection is known to have ended. A hung one is noticed by a call only. */
  readonly ended: Promise<void>
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

const defaultDeadlineMs = 10_000
const closedMs = 1_000

/** Throws BusError when there is no bus. With descriptors a connection must be used for one call and closed. */
export async function openSystemBus(settings: BusSettings): Promise<SystemBus> {
  const { socketPath, deadlineMs = defaultDeadlineMs, withDescriptors = false } = settings
  const { default: dbus } = await import('dbus-next')
  // `socket=` in the place of `path=`: a connection that passes no descriptors needs no native code.
  const address = withDescriptors ? `unix:path=${socketPath}` : `unix:socket=${socketPath}`
  const bus = dbus.sessionBus({ busAddress: address, negotiateUnixFd: withDescriptors } as Parameters<
    typeof dbus.sessionBus
  >[0])
  // Without a listener an error would end the program. Not a promise: each call that raced it would stay on it.
  const failure = new AbortController()
  bus.on('error', (error) => failure.abort(error))
  const answered = async <T>(work: Promise<T>): Promise<T | undefined> => {
    const answer = await within(deadlineMs, 'No answer', unlessAborted(work, failure.signal))
    failure.signal.throwIfAborted()
    return answer
  }
  const ended = new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) streamOf(bus)?.once(event, () => resolve())
  })
  const native = streamOf(bus)?._wrap
  const close = () => {
    bus.disconnect()
    streamOf(bus)?.destroy()
    // Its close goes on for a moment; collected before that, it would end the program.
    setTimeout(() => native, closedMs).unref()
  }
  const connected = new Promise<void>((resolve) => bus.once('connect', () => resolve()))
  try {
    await answered(connected)
  } catch (cause) {
    close()
    throw new BusError(`Cannot connect to the system bus at ${socketPath}`, '', { cause })
  }
  if (withDescriptors && streamOf(bus)?.supportsUnixFd !== true) {
    close()
    throw new BusError('The native part that takes open files from the system bus is not there', '')
  }
  const call: SystemBus['call'] = async (request) => {
    const { body = [], ...rest } = request
    const message = new dbus.Message({ ...rest, body: [...body] })
    try {
      const reply = await answered(bus.call(message))
      return reply?.body ?? []
    } catch (cause) {
      const { type } = cause as { readonly type?: unknown }
      const tried = `Cannot call ${request.member} of ${request.destination}`
      throw new BusError(tried, typeof type === 'string' ? type : '', { cause })
    }
  }
  if (withDescriptors) {
    try {
      // Behind the answer nothing is on its way: the library gives what is passed to whichever message comes first.
      await call({ ...busItself, member: 'GetId' })
    } catch (error) {
      close()
      throw error
    }
  }
  return {
    call,
    async property({ interface: of, ...object }, name) {
      const get = { ...object, interface: 'org.freedesktop.DBus.Properties', member: 'Get', signature: 'ss' }
      const [variant] = await call({ ...get, body: [of, name] })
      return (variant as { readonly value?: unknown } | undefined)?.value
    },
    async listen({ sender, interface: from, first }, onSignal) {
      bus.on('message', ({ type, interface: of, member, body }) => {
        if (type === dbus.MessageType.SIGNAL && of === from) onSignal({ member: member ?? '', body: body ?? [] })
      })
      const about = first === undefined ? '' : `,arg0='${first}'`
      const rule = `type='signal',sender='${sender}',interface='${from}'${about}`
      await call({ ...busItself, member: 'AddMatch', signature: 's', body: [rule] })
    },
    ended,
    close,
  }
}

const busItself = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
}

/** The library's own end of a connection waits for the other side, which may be what hangs. */
function streamOf(bus: object): BusStream | undefined {
  const { _connection: connection } = bus as { readonly _connection?: { readonly stream?: BusStream } }
  return connection?.stream
}

type BusStream = {
  destroy(): void
  once(event: string, then: () => void): unknown
  /** usocket's, and its native part. */
  readonly supportsUnixFd?: boolean
  readonly _wrap?: object
}

/** A connection for this alone. */
export async function onSystemBus<T>(settings: BusSettings, use: (bus: SystemBus) => Promise<T>): Promise<T> {
  const bus = await openSystemBus(settings)
  try {
    return await use(bus)
  } finally {
    bus.close()
  }
}
