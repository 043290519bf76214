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

/**
 * `name` stands for any of these machines that is ready, as behind a load balancer: each attempt of a client is the turn of the next one, or
 * of the first after it that does not refuse.
 */
export function anyOf<T>(
  all: Servers<T>,
  name: string,
  machines: readonly string[],
  isReady: (machine: string) => boolean,
): Servers<T> {
  const turns = new Map<string, number>()
  return {
    listen: all.listen,
    async connect(client, machine, signal) {
      if (machine !== name) return all.connect(client, machine, signal)
      let refusal: unknown = Object.assign(new Error('No server is ready'), { code: 'ECONNREFUSED' })
      for (let attempt = 0; attempt < machines.length; attempt++) {
        const turn = turns.get(client.machine) ?? 0
        turns.set(client.machine, turn + 1)
        const server = machines[turn % machines.length] ?? name
        if (!isReady(server)) continue
        try {
          return await all.connect(client, server, signal)
        } catch (error) {
          if (signal.aborted) throw error
          refusal = error
        }
      }
      throw refusal
    },
  }
}
