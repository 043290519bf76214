/** Packets that wait for the acknowledgement of the server, and those that wait until there are fewer of them. */
import type { Packet } from 'mqtt-packet'

export interface RequestsInFlight {
  /** Sends a packet with a free number, in the order of the calls. Resolves with its acknowledgement; rejects when the connection ends. */
  send(encode: (messageId: number) => Buffer): Promise<Packet>
  acknowledged(packet: Packet): void
  /** The connection has ended. */
  end(because: Error): void
}

/** As many as the server has under way to the controller, by its written configuration. */
const usualMost = 1_000

export function requestsInFlight(write: (packet: Buffer) => void, most: number = usualMost): RequestsInFlight {
  const inFlight = new Map<number, Waiting>()
  const turns: Turn[] = []
  let messageId = 0
  let ended: Error | undefined

  /** Numbers are used again after 65,535 packets: never one that still waits. */
  const nextId = (): number => {
    do messageId = (messageId % 65_535) + 1
    while (inFlight.has(messageId))
    return messageId
  }

  return {
    send: (encode) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended)
        const start = () => {
          const id = nextId()
          inFlight.set(id, { resolve, reject })
          write(encode(id))
        }
        if (inFlight.size < most && turns.length === 0) start()
        else turns.push({ start, reject })
      }),
    acknowledged(packet) {
      const id = packet.messageId ?? 0
      const waiting = inFlight.get(id)
      if (waiting === undefined) return
      inFlight.delete(id)
      waiting.resolve(packet)
      turns.shift()?.start()
    },
    end(because) {
      ended = because
      const all = [...inFlight.values(), ...turns.splice(0)]
      inFlight.clear()
      for (const { reject } of all) reject(because)
    },
  }
}

type Waiting = { readonly resolve: (packet: Packet) => void; readonly reject: (error: Error) => void }
type Turn = { readonly start: () => void; readonly reject: (error: Error) => void }
