/** Loop: Services and EndpointSlices → one retained message for each shard of the Services, which every node reads. */
import { type ServicesMessage, serviceShardOf, serviceShards } from '../../../api/network/service-endpoints.ts'
import { runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import type { FleetOutboxNeeds } from './network-outbox.ts'
import { type Published, publishWaitMs } from './publish-pace.ts'
import { serviceState } from './service-state.ts'

const serviceNameLabel = 'kubernetes.io/service-name'

type Shard = {
  /** The JSON of each Service as it was published last, by key. */
  readonly texts: Map<string, string>
  /** Keys of Services that may have changed since. */
  readonly changed: Set<string>
  waitMs: number
  published?: Published
}

/** A change costs the work for its Service and a copy of the texts of its shard; a change of nothing that nodes receive is not sent. */
export function servicesOutbox({ store, broker, clock, log, epoch }: FleetOutboxNeeds): Loop {
  const queue = workQueue(clock)
  const shards = Array.from(
    { length: serviceShards },
    (): Shard => ({ texts: new Map(), changed: new Set(), waitMs: 0 }),
  )
  const slices = new Map<string, Map<string, StoredObject<'endpointslices'>>>()
  let version = 0

  const changed = (key: string) => {
    const { namespace, name } = keyFrom(key)
    const number = serviceShardOf(namespace, name)
    const shard = shards[number]
    if (shard === undefined) return
    shard.changed.add(key)
    shard.waitMs = publishWaitMs(shard.published, clock.monotonicMs())
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

  /** Whether the message of the shard changes. */
  const update = ({ texts, changed: keys }: Shard): boolean => {
    let isOther = false
    for (const key of keys) {
      const service = services.get(keyFrom(key))
      const text = service && JSON.stringify(serviceState(service, slicesInOrder(slices.get(key))))
      if (text === texts.get(key)) continue
      isOther = true
      if (text === undefined) texts.delete(key)
      else texts.set(key, text)
    }
    keys.clear()
    return isOther
  }

  const reconcile = async (key: string) => {
    const shard = shards[Number(key)]
    if (shard === undefined || (!update(shard) && shard.published !== undefined)) return undefined
    version += 1
    const texts = [...shard.texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
    const head: ServicesMessage = { epoch, version, services: [] }
    const body = `${JSON.stringify(head).slice(0, -2)}${texts.join(',')}]}`
    const previous = shard.published
    // A failed attempt is repeated although nothing changes any more.
    delete shard.published
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
