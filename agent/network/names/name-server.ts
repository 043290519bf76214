/** Loop: while the fleet has a network, answers the names of its Services, pods and nodes on this node, and forwards the others. */
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { isWithin } from '../../../api/text/cidr.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type BackoffSettings, longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { noServices, type ServiceStates } from '../messages/service-states.ts'
import type { RuleSet } from '../rule-set.ts'
import { answerCache } from './answer-cache.ts'
import { type Answerer, dnsAnswerer } from './answerer.ts'
import { dnsForwarder, type UpstreamSockets } from './forwarder.ts'
import { nameRules } from './name-rules.ts'
import { sourceLimit } from './source-limit.ts'
import { clusterZone, type Zone } from './zone.ts'

/** The listening sockets, and the address that they have. */
export interface NameSockets {
  /** Resolves with the error that ended them. */
  readonly ended: Promise<Error>
  close(): Promise<void>
}

export interface NameHost {
  /** Gives the machine the address, if it has lost it or never had it, and listens there. Rejects with the reason. */
  open(answerer: Answerer): Promise<NameSockets>
  /** Does the machine have the address? */
  hasAddress(): boolean
  /** Takes the address from the machine. */
  release(): Promise<void>
}

export type NameServerNeeds = {
  readonly nodeName: string
  readonly host: NameHost
  readonly sockets: UpstreamSockets
  /** The name servers of the machine. */
  readonly servers: () => Promise<readonly string[]>
  readonly reads: {
    readonly networkMessage: Reader<NetworkMessage | undefined>
    readonly serviceStates: Reader<ServiceStates | undefined>
  }
  readonly writes: {
    /** Why no names are answered; undefined: they are, or the fleet has none. */
    readonly nameProblem: Cell<string | undefined>
    /** Names are answered, or cannot be: a pod that starts need not wait for them. */
    readonly namesTried: Cell<boolean>
    /** undefined: the fleet has no network. */
    readonly nameRules: Cell<RuleSet | undefined>
  }
  readonly clock: Clock
  readonly random: () => number
  readonly randomId: () => number
  readonly log: Log
}

/** Another program may remove the address; that is found within this time, without starting one. */
const verifyMs = 10_000
const retry: BackoffSettings = { firstMs: 500, maxMs: 30_000 }

export function nameServer(needs: NameServerNeeds): Loop {
  const { host, reads, writes, clock, random, log } = needs
  const changed = alarm(clock)
  const zone = currentZone(reads, clock)
  const forwarder = dnsForwarder({ ...needs, cache: answerCache() })
  const isClient = (address: string) => isClientOf(address, needs.nodeName, reads.networkMessage.get())
  const answerer = dnsAnswerer({ zone: zone.get, forwarder, isClient, limit: sourceLimit(clock), random })
  let wasOpen = false

  /**
   * Serves until the network is off, the sockets fail, the address is gone, or `signal` aborts. An agent that ends has other things to
   * end, for seconds perhaps: it answers until its process is gone, which closes the sockets.
   */
  const serve = async (signal: AbortSignal) => {
    const sockets = await host.open(answerer)
    wasOpen = true
    writes.nameProblem.set(undefined)
    writes.namesTried.set(true)
    log.info('Names of the fleet are answered', { address: nodeDnsAddress })
    let failure: Error | undefined
    void sockets.ended.then((error) => {
      failure = error
      changed.ring()
    })
    try {
      while (!signal.aborted && reads.networkMessage.get() !== undefined) {
        if (failure !== undefined) throw failure
        if (!host.hasAddress()) throw new Error(`The address ${nodeDnsAddress} was removed from this machine`)
        await changed.sleep(verifyMs, signal)
      }
    } finally {
      if (!signal.aborted) await sockets.close()
    }
  }

  const release = async () => {
    writes.nameProblem.set(undefined)
    if (!wasOpen) return
    wasOpen = false
    await host.release().catch((error) => log.warn('The address of the name server was not removed', { error }))
  }

  return {
    name: 'name-server',
    async run(signal) {
      const stops = [
        reads.networkMessage.subscribe((message) => {
          writes.nameRules.set(message && nameRules(message, needs.nodeName))
        }),
        reads.networkMessage.onChange(changed.ring),
        zone.follow(),
      ]
      try {
        for (let failures = 0; !signal.aborted; ) {
          if (reads.networkMessage.get() === undefined) {
            await release()
            await changed.sleep(longestTimerMs, signal)
            continue
          }
          try {
            await serve(signal)
            failures = 0
          } catch (error) {
            const problem = storyOf(error)
            if (writes.nameProblem.get() !== problem) log.error('Names of the fleet are not answered', { error })
            writes.nameProblem.set(problem)
            writes.namesTried.set(true)
            await changed.sleep(longestBackoffMs(failures++, retry), signal)
          }
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

/** The zone of the cells as they are, made again at the first question after a change. */
function currentZone({ networkMessage, serviceStates }: NameServerNeeds['reads'], clock: Clock) {
  let made: Zone | undefined
  let serial = Math.floor(clock.wallMs() / 1000) % 2 ** 31
  const outdate = () => {
    made = undefined
    serial += 1
  }
  return {
    get(): Zone {
      const network = networkMessage.get()
      if (network === undefined) return noZone
      const { services, isComplete } = serviceStates.get() ?? noServices
      made ??= clusterZone({ network, services, isComplete, serial })
      return made
    },
    follow() {
      const stops = [networkMessage.onChange(outdate), serviceStates.onChange(outdate)]
      return () => {
        for (const stop of stops) stop()
      }
    },
  }
}

const noZone: Zone = { answer: () => undefined }

/**
 * A pod of this node, or a process of the machine: its packets to one of its own addresses come from that address. The kernel takes
 * packets to it from the whole network of the machine, whose senders must not get answers.
 */
function isClientOf(address: string, nodeName: string, network: NetworkMessage | undefined): boolean {
  if (network === undefined) return false
  if (address === nodeDnsAddress || address.startsWith('127.')) return true
  const own = network.nodes.find(({ name }) => name === nodeName)
  return address === own?.address || isWithin(address, own?.podCIDR ?? network.clusterCIDR)
}
