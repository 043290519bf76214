/** A connection between two processes, as TCP gives it: in order, sent again while the path is cut, reset by a machine that has no such connection. */
import type { ProgramLife } from './life.ts'
import type { SimulatedNetwork } from './simulated-network.ts'

export type ProgramPlace = { readonly life: ProgramLife; readonly machine: string }

export interface WireEnd<Out, In> {
  readonly isOpen: boolean
  /** `bytes`: its size, for what is not acknowledged yet. */
  send(message: Out, bytes?: number): void
  /** Closes this end: the other one reads what was sent before. */
  close(): void
  /** Closes this end at once: what was not sent is lost. */
  destroy(): void
  readonly waitingBytes: number
  readonly deliveredBytes: number
  /** To be called before anything arrives. `closed`: the other end, or a reset, has ended it. */
  listen(receive: (message: In) => void, closed: (because: Error) => void): void
}

/** The ends of a connection that stands: that of the client, and that of the server. */
export function openWire<Up, Down>(
  network: SimulatedNetwork,
  client: ProgramPlace,
  server: ProgramPlace,
): readonly [WireEnd<Up, Down>, WireEnd<Down, Up>] {
  const up: Direction<Up> = direction(network, [client.machine, server.machine], {
    arrive: (item) => serverEnd.arrive(item),
    refused: () => clientEnd.reset(),
  })
  const down: Direction<Down> = direction(network, [server.machine, client.machine], {
    arrive: (item) => clientEnd.arrive(item),
    refused: () => serverEnd.reset(),
  })
  const clientEnd = ownEnd<Up, Down>(client.life, up)
  const serverEnd = ownEnd<Down, Up>(server.life, down)
  return [clientEnd, serverEnd]
}

/** `message` undefined: the end of the stream. */
type Item<M> = { readonly message: M | undefined; readonly bytes: number }

interface Direction<M> {
  put(item: Item<M>): void
  /** Drops what was not sent yet. */
  drop(): void
  /** Nothing is sent any more. */
  stop(): void
  readonly waitingBytes: number
  readonly deliveredBytes: number
}

function ownEnd<Out, In>(
  life: ProgramLife,
  out: Direction<Out>,
): WireEnd<Out, In> & { arrive(item: Item<In>): boolean; reset(): void } {
  let isOpen = true
  let receive: (message: In) => void = () => undefined
  let closed: (because: Error) => void = () => undefined
  const over = (because: Error) => {
    if (!isOpen) return
    isOpen = false
    out.stop()
    life.whenRunning(() => closed(because))
  }
  const destroy = () => {
    if (!isOpen) return
    isOpen = false
    out.drop()
    out.put({ message: undefined, bytes: 0 })
  }
  life.onEnd((how) => {
    if (how === 'killed') return destroy()
    isOpen = false
    out.stop()
  })
  return {
    get isOpen() {
      return isOpen
    },
    send(message, bytes = 1) {
      if (isOpen) out.put({ message, bytes })
    },
    close() {
      if (!isOpen) return
      isOpen = false
      out.put({ message: undefined, bytes: 0 })
    },
    destroy,
    get waitingBytes() {
      return out.waitingBytes
    },
    get deliveredBytes() {
      return out.deliveredBytes
    },
    listen(onMessage, onClosed) {
      receive = onMessage
      closed = onClosed
    },
    arrive({ message }) {
      if (!isOpen) return false
      if (message === undefined) over(new Error('The connection was closed by the other side'))
      else life.whenRunning(() => receive(message))
      return true
    },
    reset: () => over(new Error('read ECONNRESET')),
  }
}

/** The kernel sends a packet again after this, then after twice that, and so on. */
const retransmitMs = { first: 400, most: 30_000 }

function direction<M>(
  network: SimulatedNetwork,
  [from, to]: readonly [string, string],
  { arrive, refused }: { readonly arrive: (item: Item<M>) => boolean; readonly refused: () => void },
): Direction<M> {
  const { time } = network
  let queue: readonly Item<M>[] = []
  let isSending = false
  let isStopped = false
  let deliveredBytes = 0

  const send = (attempt: number) => {
    isSending = true
    time.after(network.delayMs(), () => {
      const [item] = queue
      if (isStopped || item === undefined) return
      if (!network.passes(from, to)) {
        const waitMs = Math.min(retransmitMs.most, retransmitMs.first * 2 ** attempt)
        time.after(waitMs, () => void (isStopped || send(attempt + 1)))
        return
      }
      queue = queue.slice(1)
      isSending = false
      deliveredBytes += item.bytes
      if (!arrive(item)) return answerReset()
      if (queue.length > 0) send(0)
    })
  }
  const answerReset = () => {
    isStopped = true
    time.after(network.delayMs(), () => void (network.passes(to, from) && refused()))
  }

  return {
    put(item) {
      if (isStopped) return
      queue = [...queue, item]
      if (!isSending) send(0)
    },
    drop() {
      queue = []
      isSending = false
    },
    stop() {
      isStopped = true
      queue = []
    },
    get waitingBytes() {
      return queue.reduce((sum, { bytes }) => sum + bytes, 0)
    },
    get deliveredBytes() {
      return deliveredBytes
    },
  }
}
