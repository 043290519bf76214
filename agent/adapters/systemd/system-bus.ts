/**
 * Calls over D-Bus on dbus-next, loaded on demand. The library neither times out a call nor reports a lost bus, so every call has
 * a deadline, and callers with rare calls open a connection for each.
 */
import { unlessAborted } from '../../../daemon/aborted.ts'
import { within } from '../../../daemon/deadline.ts'

export type BusSettings = {
  /** `/run/dbus/system_bus_socket` */
  readonly socketPath: string
  readonly deadlineMs?: number
  /** Receive file descriptors, with native code. Only for that: see `openSystemBus`. */
  readonly withDescriptors?: boolean
}

export type BusObject = { readonly destination: string; readonly path: string; readonly interface: string }

export type BusCall = BusObject & {
  readonly member: string
  /** D-Bus signature of `body`: `ss`. */
  readonly signature?: string
  readonly body?: readonly unknown[]
}

/** Signals of one interface from the owner of this name. `first`: only those whose first argument starts with this text. */
export type BusMatch = { readonly sender: string; readonly interface: string; readonly first?: string }

export type BusSignal = { readonly member: string; readonly body: readonly unknown[] }

export interface SystemBus {
  /** Returns the body of the reply. Throws BusError, also at the deadline. */
  call(request: BusCall): Promise<readonly unknown[]>
  property(of: BusObject, name: string): Promise<unknown>
  /** Calls `onSignal` for each matching signal until the connection ends. */
  listen(match: BusMatch, onSignal: (signal: BusSignal) => void): Promise<void>
  /** Resolves when the connection has ended. A hung bus is detected only by a call. */
  readonly ended: Promise<void>
  close(): void
}

/** `code` is D-Bus' name of the error (`org.freedesktop.systemd1.NoSuchUnit`); '' without a reply. */
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

/** Throws BusError when there is no bus. A connection with descriptors must be used for one call and closed. */
export async function openSystemBus(settings: BusSettings): Promise<SystemBus> {
  const { socketPath, deadlineMs = defaultDeadlineMs, withDescriptors = false } = settings
  const { default: dbus } = await import('dbus-next')
  // `socket=` instead of `path=`: without descriptors, a connection needs no native code.
  const address = withDescriptors ? `unix:path=${socketPath}` : `unix:socket=${socketPath}`
  const bus = dbus.sessionBus({ busAddress: address, negotiateUnixFd: withDescriptors } as Parameters<
    typeof dbus.sessionBus
  >[0])
  // Without a listener an error event would end the program. An AbortSignal, because each race would leave a listener on a
  // promise.
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
    // Closing takes a moment; if it were garbage-collected before that, the program would end.
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
    throw new BusError('The native module that receives file descriptors from the system bus is missing', '')
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
      // No message follows the reply: the library attaches received descriptors to whichever message is parsed next.
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

/** The library's own close waits for the peer, which may hang. */
function streamOf(bus: object): BusStream | undefined {
  const { _connection: connection } = bus as { readonly _connection?: { readonly stream?: BusStream } }
  return connection?.stream
}

type BusStream = {
  destroy(): void
  once(event: string, then: () => void): unknown
  /** A field of usocket, the native module. */
  readonly supportsUnixFd?: boolean
  readonly _wrap?: object
}

/** Opens a connection for one use. */
export async function onSystemBus<T>(settings: BusSettings, use: (bus: SystemBus) => Promise<T>): Promise<T> {
  const bus = await openSystemBus(settings)
  try {
    return await use(bus)
  } finally {
    bus.close()
  }
}
