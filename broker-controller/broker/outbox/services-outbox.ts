/** Loop: Services and EndpointSlices → one retained message for each shard of the Services, which every node reads. */
import {
  longestFleetMessage,
  type ServicesMessage,
  serviceShardOf,
  serviceShards,
} from '../../../api/network/service-endpoints.ts'
import { runController } from '../../../daemon/controller.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import { fittingTexts } from './fitting-texts.ts'
import type { FleetOutboxNeeds } from './network-outbox.ts'
import { longestWaitMs, type Published, publishWaitMs } from './publish-pace.ts'
import { serviceState } from './service-state.ts'

const serviceNameLabel = 'kubernetes.io/service-name'

export type ServicesOutboxNeeds = FleetOutboxNeeds & {
  /** Nodes that receive the messages. */
  readonly nodeCount: () => number
  /** Pods of the fleet have addresses of both families. */
  readonly ipv6?: boolean
}

type Shard = {
  /** The JSON of each Service as it was published last, by key. */
  readonly texts: Map<string, string>
  /** Keys of Services that may have changed since. */
  readonly changed: Set<string>
  /** Keys of Services that did not fit into the message that was published last. */
  leftOut: readonly string[]
  /** Characters of the message that was published last. */
  length: number
  waitMs: number
  published?: Published
}

/** What a message has besides its Services is shorter. */
const headLength = 1_024

/** Churn may be of all shards. */
function lengthOf(shards: readonly Shard[]): number {
  return shards.reduce((sum, { length }) => sum + length, 0)
}

/** A change costs the work for its Service and a copy of the texts of its shard; a change of nothing that nodes receive is not sent. */
export function servicesOutbox(needs: ServicesOutboxNeeds): Loop {
  const { store, broker, clock, log, epoch, nodeCount, ipv6 = false } = needs
  const queue = workQueue(clock)
  const shards = Array.from(
    { length: serviceShards },
    (): Shard => ({ texts: new Map(), changed: new Set(), leftOut: [], length: 0, waitMs: 0 }),
  )
  const slices = new Map<string, Map<string, StoredObject<'endpointslices'>>>()
  let version = 0

  const changed = (key: string) => {
    const { namespace, name } = keyFrom(key)
    const number = serviceShardOf(namespace, name)
    const shard = shards[number]
    if (shard === undefined) return
    shard.changed.add(key)
    shard.waitMs = publishWaitMs(shard.published, clock.monotonicMs(), longestWaitMs(nodeCount(), lengthOf(shards)))
    queue.addAfter(String(number), shard.waitMs)
  }
  const services = informer({ store, clock, log }, 'services', (present, previous) =>
    changed(keyText((present ?? previous)?.metadata ?? {})),
  )
  const sliceLoop = informer({ store, clock, log }, 'endpointslices', (present, previous) => {
    const [before, after] = [serviceOf(previous), serviceOf(present)]
    if (previous !== undefined && before !== undefined) {
      const known = slices.get(before)
      known?.delete(previous.metadata.name)
      if (known?.size === 0) slices.delete(before)
      changed(before)
    }
    if (present === undefined || after === undefined) return
    const known = slices.get(after) ?? new Map<string, StoredObject<'endpointslices'>>()
    slices.set(after, known.set(present.metadata.name, present))
    changed(after)
  })

  /** Whether the message of the shard changes. In several turns: a shard may have thousands of endpoints. */
  const update = async ({ texts, changed: keys }: Shard): Promise<boolean> => {
    let isOther = false
    for (const key of [...keys]) {
      // What changes between the turns is a change once more.
      keys.delete(key)
      const service = services.get(keyFrom(key))
      const text = service && JSON.stringify(serviceState(service, slicesInOrder(slices.get(key)), ipv6))
      if (text !== texts.get(key)) isOther = true
      if (text === undefined) texts.delete(key)
      else texts.set(key, text)
      await yieldTurn()
    }
    return isOther
  }

  const bodyOf = (shard: Shard): string => {
    const inOrder = new Map([...shard.texts].sort(([a], [b]) => (a < b ? -1 : 1)))
    const { kept, leftOut } = fittingTexts(inOrder, longestFleetMessage - headLength)
    if (leftOut.length > 0 && leftOut.join() !== shard.leftOut.join()) {
      const facts = { services: leftOut.length, first: leftOut.slice(0, 5) }
      log.warn('Services do not fit into their message to nodes: the longest are left out', facts)
    }
    shard.leftOut = leftOut
    const head: ServicesMessage = { epoch, version, services: [] }
    return `${JSON.stringify(head).slice(0, -2)}${kept.join(',')}]}`
  }

  const reconcile = async (key: string) => {
    const shard = shards[Number(key)]
    if (shard === undefined || (!(await update(shard)) && shard.published !== undefined)) return undefined
    version += 1
    const body = bodyOf(shard)
    const previous = shard.published
    // A failed attempt is repeated although nothing changes any more.
    delete shard.published
    shard.length = body.length
    await broker.publish({ kind: 'services', shard: Number(key) }, body)
    shard.published = { atMs: clock.monotonicMs(), waitedMs: previous === undefined ? 0 : shard.waitMs }
    return undefined
  }

  const publishing = async (signal: AbortSignal) => {
    // A node that receives a part of the endpoints would remove the others.
    await Promise.all([services.listed, sliceLoop.listed])
    for (const number of shards.keys()) queue.add(String(number))
    if (!signal.aborted) await runController({ name: 'services-outbox', reconcile }, queue, log, signal)
  }

  return {
    name: 'services-outbox',
    run: (signal) =>
      runLoops(
        [
          { name: 'services-outbox-services', run: services.run },
          { name: 'services-outbox-slices', run: sliceLoop.run },
          { name: 'services-outbox-messages', run: publishing },
        ],
        signal,
        log,
      ),
  }
}

function serviceOf(slice: StoredObject<'endpointslices'> | undefined): string | undefined {
  const name = slice?.metadata.labels?.[serviceNameLabel]
  return name ? keyText({ namespace: slice?.metadata.namespace ?? '', name }) : undefined
}

function slicesInOrder(known: ReadonlyMap<string, StoredObject<'endpointslices'>> = new Map()) {
  return [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, slice]) => slice)
}
