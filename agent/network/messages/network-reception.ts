/**
 * Listener and loop: the messages of the fleet's network → two cells, and a checkpoint of them, so that routes, Services and names
 * stand after a reboot without a controller.
 */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { type ServicesMessage, serviceShards } from '../../../api/network/service-endpoints.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { noServices, type ServiceStates, serviceKey, withShard } from './service-states.ts'

/** `shards`: by their number. */
export type NetworkMessages = {
  readonly network: NetworkMessage | undefined
  readonly shards: ReadonlyMap<number, ServicesMessage>
}

export interface NetworkCheckpoint {
  /** What is saved; a file that is missing or damaged is left out. Never rejects. */
  load(): Promise<NetworkMessages>
  saveNetwork(message: NetworkMessage): Promise<void>
  saveShard(shard: number, message: ServicesMessage): Promise<void>
  /** Removes all of it. */
  clear(): Promise<void>
}

export type NetworkReceptionNeeds = {
  readonly writes: {
    readonly networkMessage: Cell<NetworkMessage | undefined>
    readonly serviceStates: Cell<ServiceStates | undefined>
    /** The other cells have what the controller publishes, and not only what the checkpoint had. */
    readonly networkCurrent: Cell<boolean>
  }
  readonly checkpoint: NetworkCheckpoint
  readonly clock: Clock
  readonly log: Log
}

export interface NetworkReception extends Loop {
  /** Reads the checkpoint into the cells; once, before messages arrive. Never rejects. */
  load(): Promise<void>
  network(message: NetworkMessage): void
  services(shard: number, message: ServicesMessage): void
  /** The controller publishes no messages of a network: the cells and the checkpoint are emptied. */
  networkOff(): void
}

/**
 * Each of 16 files is tens of kB, and any pod of the fleet that becomes ready changes one. A change is saved soon; under lasting
 * churn each wait is twice as long as the one before, and a card is written once a minute.
 */
const saveMs = { soon: 2_000, most: 60_000 }

export function networkReception({ writes, checkpoint, clock, log }: NetworkReceptionNeeds): NetworkReception {
  const { networkMessage, serviceStates, networkCurrent } = writes
  const isReceived = reception(networkCurrent)
  const shards = new Map<number, KnownShard>()
  const unsaved = new Set<number | 'network'>()
  const wake = alarm(clock)
  let isOff = false

  const takeShard = (shard: number, message: ServicesMessage) => {
    const before = shards.get(shard)?.keys ?? []
    shards.set(shard, knownShard(message))
    const known = serviceStates.get() ?? noServices
    serviceStates.set(withShard(known, before, message.services, shards.size === serviceShards))
  }

  const mustSave = (part: number | 'network') => {
    isOff = false
    if (unsaved.size === 0) wake.ring()
    unsaved.add(part)
  }

  const savePart = async (part: number | 'network') => {
    const message = part === 'network' ? networkMessage.get() : undefined
    const shard = part === 'network' ? undefined : shards.get(part)
    if (message !== undefined) await checkpoint.saveNetwork(message)
    if (part !== 'network' && shard !== undefined)
      await checkpoint.saveShard(part, messageOf(shard, serviceStates.get()))
  }

  let hasFailed = false
  /** What cannot be written stays unsaved. */
  const save = async () => {
    try {
      if (isOff) await checkpoint.clear()
      isOff = false
      for (const part of [...unsaved]) {
        unsaved.delete(part)
        await savePart(part).catch((error) => {
          unsaved.add(part)
          throw error
        })
      }
      hasFailed = false
    } catch (error) {
      const what = 'The checkpoint of the network was not saved'
      if (hasFailed) log.debug(what, { error })
      else log.warn(what, { error })
      hasFailed = true
    }
  }

  return {
    name: 'network-reception',
    async load() {
      const found = await checkpoint.load()
      networkMessage.set(found.network)
      for (const [shard, message] of found.shards) takeShard(shard, message)
    },
    network(message) {
      if (isNewerMessage(networkMessage.get(), message)) {
        networkMessage.set(message)
        mustSave('network')
      }
      isReceived('network')
    },
    services(shard, message) {
      if (isNewerMessage(shards.get(shard), message)) {
        takeShard(shard, message)
        mustSave(shard)
      }
      isReceived(shard)
    },
    networkOff() {
      networkCurrent.set(true)
      if (networkMessage.get() === undefined && serviceStates.get() === undefined) return
      shards.clear()
      unsaved.clear()
      networkMessage.set(undefined)
      serviceStates.set(undefined)
      isOff = true
      wake.ring()
    },
    async run(signal) {
      let waitMs = saveMs.soon
      let savedAtMs = Number.NEGATIVE_INFINITY
      while (!signal.aborted) {
        if (unsaved.size === 0 && !isOff) {
          await wake.sleep(longestTimerMs, signal)
          continue
        }
        const isCalm = clock.monotonicMs() - savedAtMs >= saveMs.most
        waitMs = isCalm ? saveMs.soon : Math.min(saveMs.most, waitMs * 2)
        await clock.sleep(waitMs, signal)
        await save()
        savedAtMs = clock.monotonicMs()
      }
      if (unsaved.size > 0 || isOff) await save()
    },
  }
}

/** A shard without its Services: those that did not change are in the cell as the objects of earlier messages, and need no second ones. */
type KnownShard = Versioned & { readonly keys: readonly string[] }

function knownShard({ epoch, version, services }: ServicesMessage): KnownShard {
  return { epoch, version, keys: services.map(serviceKey) }
}

function messageOf({ epoch, version, keys }: KnownShard, states: ServiceStates | undefined): ServicesMessage {
  const services = keys.flatMap((key) => states?.services.get(key) ?? [])
  return { epoch, version, services }
}

/** Called after the cells have a part of the messages: the network, or a shard. */
function reception(networkCurrent: Cell<boolean>): (part: number | 'network') => void {
  const received = new Set<number | 'network'>()
  return (part) => {
    received.add(part)
    if (received.size > serviceShards) networkCurrent.set(true)
  }
}

type Versioned = { readonly epoch: string; readonly version: number }

/** Each is a whole state: within one epoch of the controller the higher version counts, and a new epoch always does. */
function isNewerMessage(known: Versioned | undefined, message: Versioned): boolean {
  return known === undefined || known.epoch !== message.epoch || known.version < message.version
}
