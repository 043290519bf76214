/**
 * Loop: the Endpoints and EndpointSlices of Services (pkg/controller/endpoint, endpointslice and endpointslicemirroring of
 * Kubernetes). One queue of Services, which changes of them, of their pods and of what was written for them fill. A visit
 * compares all that is there with all that should be, so the next one completes a visit that was interrupted.
 */
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns, finishedInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import { removeObject } from '../../store/object-removal.ts'
import type { Store, StoredObject, StoredPod } from '../../store/store.ts'
import { type EndpointsNeeds, endpointsWrites } from './endpoints-writes.ts'
import { isLeaderLock, isMirrored, mirroring, mirroringController } from './mirrored-slices.ts'
import { isEndpoint, selectorOf } from './pod-endpoints.ts'
import { serviceEndpoints } from './service-endpoints.ts'
import { servicePods } from './service-pods.ts'
import { serviceSliceChanges, sliceController } from './service-slices.ts'
import { sliceIndex } from './slice-index.ts'
import { type TriggerTimes, triggerTime } from './trigger-times.ts'

/** Pods that become ready within moments are one change. */
const debounceMs = 20
/** A pod whose node is not registered is not an endpoint; its Service is visited again this much later. */
const missingNodeMs = 10_000
/** --concurrent-service-endpoint-syncs. */
const visitsAtOnce = 5
/** Nodes whose zones are read together. */
const nodesAtOnce = 64

export function endpointsController(needs: EndpointsNeeds): Loop {
  return { name: 'endpoints', run: (signal) => runEndpoints(needs, signal) }
}

async function runEndpoints(needs: EndpointsNeeds, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = needs
  const queue = workQueue(clock)
  const index = servicePods()
  const times = new Map<string, TriggerTimes>()
  /** Their Endpoints are to be deleted if the Service does not exist. Other Endpoints without a Service are their author's. */
  const leftBehind = new Set<string>()
  let isStarting = true

  const services = informer({ store, clock, log }, 'services', (present, previous) => {
    if (present !== undefined) index.putService(present)
    else if (previous !== undefined) {
      index.removeService(previous)
      times.delete(keyText(previous.metadata))
      leftBehind.add(keyText(previous.metadata))
    }
    queue.add(keyText((present ?? previous)?.metadata ?? {}))
  })
  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    for (const key of index.putPod(present, previous)) queue.addAfter(key, debounceMs)
  })
  const slices = sliceIndex({ store, clock, log }, (service) => queue.addAfter(service, debounceMs))
  const endpoints = informer({ store, clock, log }, 'endpoints', (present, previous) => {
    const key = keyText((present ?? previous)?.metadata ?? {})
    if (isStarting && present !== undefined && !isLeaderLock(present)) leftBehind.add(key)
    const service = services.get(keyFrom(key))
    // The controller's own writes are of Services with a selector.
    const isByHand = service === undefined || selectorOf(service) === undefined
    if (isByHand || present === undefined) queue.add(key)
  })
  const writes = endpointsWrites(needs, slices)

  const visitSelecting = async (key: string, service: StoredObject<'services'>): Promise<Reconciled> => {
    const zones = await zonesOf(store, index.podsOf(key))
    await yieldTurn()
    for (const source of [pods, slices, endpoints]) source.catchUp()
    const found = index.podsOf(key)
    const own = slices.of(key, sliceController)
    const { time, next } = await finishedInTurns(triggerTime(service, found, times.get(key)))
    const changes = await serviceSliceChanges({ service, pods: found, zones, slices: own, triggerTime: time })
    await writes.selected(service, changes)
    await yieldTurn()
    endpoints.catchUp()
    const object = await serviceEndpoints(service, found, endpoints.get(keyFrom(key)), time)
    if (object !== undefined) await writes.endpoints(object)
    if (services.get(keyFrom(key)) !== undefined) times.set(key, next)
    const isWaiting = found.some((pod) => pod.spec.nodeName && !zones.has(pod.spec.nodeName) && isEndpoint(pod))
    return isWaiting ? { requeueAfterMs: missingNodeMs } : undefined
  }

  const visit = async (key: string): Promise<Reconciled> => {
    for (const source of [services, pods, slices, endpoints]) source.catchUp()
    const service = services.get(keyFrom(key))
    const written = endpoints.get(keyFrom(key))
    const isByHand = service !== undefined && selectorOf(service) === undefined
    // An external name with a selector is neither selected for nor mirrored (syncEndpoints in endpointslicemirroring).
    const hasSelector = Object.keys(service?.spec?.selector ?? {}).length > 0
    const isMirroring = isByHand && !hasSelector && written !== undefined && isMirrored(written)
    const mirrored = slices.of(key, mirroringController)
    if (isMirroring) await writes.mirrored(key, written, await mirroring(written, mirrored))
    else await writes.slices(key, { create: [], update: [], remove: mirrored })
    if (service !== undefined) {
      leftBehind.delete(key)
      return isByHand ? undefined : await visitSelecting(key, service)
    }
    if (leftBehind.has(key) && written !== undefined) await removeObject({ store, clock }, 'endpoints', written)
    leftBehind.delete(key)
    return undefined
  }

  const work = async (until: AbortSignal) => {
    await Promise.all([services, pods, slices, endpoints].map(({ listed }) => listed))
    isStarting = false
    if (!until.aborted) await runController({ name: 'endpoints', reconcile: visit }, queue, log, until, visitsAtOnce)
  }
  // A pod is compared with the Services that are known, so they come first.
  const afterServices = (run: (until: AbortSignal) => Promise<void>) => (until: AbortSignal) =>
    services.listed.then(() => run(until))
  const loops = [
    { name: 'services', run: services.run },
    { name: 'pods', run: afterServices(pods.run) },
    { name: 'slices', run: afterServices(slices.run) },
    { name: 'written', run: afterServices(endpoints.run) },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

/** The zones of the nodes of these pods, by the name of the node. A node that does not exist has none. */
async function zonesOf(store: Store, some: readonly StoredPod[]): Promise<ReadonlyMap<string, string>> {
  const names = new Set<string>()
  await eachInTurns(some, ({ spec: { nodeName } }) => {
    if (nodeName) names.add(nodeName)
  })
  const zones = new Map<string, string>()
  await inParallel(names, nodesAtOnce, async (name) => {
    await yieldTurn()
    const node = await store.get('nodes', { namespace: '', name })
    if (node !== undefined) zones.set(name, node.metadata.labels?.['topology.kubernetes.io/zone'] ?? '')
  })
  return zones
}
