/** What listens in a world, and how a process reaches it: a connection stands, is refused, or is tried until the caller gives up. */
import type { ProgramLife } from './life.ts'
import type { SimulatedNetwork } from './simulated-network.ts'
import type { ProgramPlace } from './wire.ts'

/** How a server takes one client. Returns what the client gets. */
export type Accept<T> = (client: ProgramPlace) => T

export interface Servers<T> {
  /** Until the life of the place ends. */
  listen(place: ProgramPlace, accept: Accept<T>): void
  /** Rejects where the machine refuses the connection, or when `signal` aborts. */
  connect(client: ProgramPlace, machine: string, signal: AbortSignal): Promise<T>
}

const synAgainMs = 1_000

export function servers<T>(network: SimulatedNetwork): Servers<T> {
  const { time } = network
  const listening = new Map<string, { readonly life: ProgramLife; readonly accept: Accept<T> }>()
  return {
    listen({ life, machine }, accept) {
      listening.set(machine, { life, accept })
      life.onEnd(() => {
        if (listening.get(machine)?.life === life) listening.delete(machine)
      })
    },
    connect: (client, machine, signal) =>
      new Promise((resolve, reject) => {
        const fail = (error: unknown) => void (client.life.isAlive && reject(error))
        const attempt = () => {
          if (signal.aborted) return fail(signal.reason)
          if (!client.life.isAlive) return
          if (!network.passes(client.machine, machine) || !network.passes(machine, client.machine)) {
            time.after(synAgainMs, attempt)
            return
          }
          const server = listening.get(machine)
          if (server === undefined)
            return fail(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
          resolve(server.accept(client))
        }
        signal.addEventListener('abort', () => fail(signal.reason), { once: true })
        time.after(network.delayMs() + network.delayMs(), attempt)
      }),
  }
}
