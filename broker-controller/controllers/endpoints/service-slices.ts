/** The EndpointSlices of a Service with a selector (staging/src/k8s.io/endpointslice/reconciler.go of Kubernetes). */

import type { Endpoint, EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import type { Service } from '../../../api/network/service.ts'
import type { Pod } from '../../../api/pod.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { eachInTurns, finishedInTurns } from '../../../daemon/limits/turn-limit.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { StoredObject } from '../../store/store.ts'
import {
  familiesOf,
  familyOf,
  hostnameIn,
  isEndpoint,
  isHeadless,
  isServing,
  isTerminating,
  podAddresses,
  podTargetRef,
  targetPortsReader,
} from './pod-endpoints.ts'
import { type Packing, packEndpoints, portsKey, type SlicePorts, type StoredSlice } from './slice-packing.ts'

export const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
export const serviceNameLabel = 'kubernetes.io/service-name'
export const headlessLabel = 'service.kubernetes.io/headless'
export const sliceController = 'endpointslice-controller.k8s.io'
export const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'

/** What is to be written, in this order. A new slice has no name yet. */
export type SliceChanges = {
  readonly create: readonly EndpointSlice[]
  readonly update: readonly EndpointSlice[]
  readonly remove: readonly StoredSlice[]
}

export type ServiceFacts = {
  readonly service: StoredObject<'services'>
  /** Those that it selects. */
  readonly pods: readonly Pod[]
  /** By name, the zone of each node that exists; '': it has none. */
  readonly zones: ReadonlyMap<string, string>
  /** The slices that this controller has written for it. */
  readonly slices: readonly StoredSlice[]
  /** Time of the change that is written, RFC 3339; undefined: not known. */
  readonly triggerTime: string | undefined
}

/** Many pods take several turns of the event loop. */
export async function serviceSliceChanges(facts: ServiceFacts): Promise<SliceChanges> {
  const { service, slices, triggerTime } = facts
  const families = familiesOf(service)
  const own = slices.filter((slice) => isOwned(slice, service))
  const foreign = slices.filter((slice) => !isOwned(slice, service))
  const others = own.filter(({ addressType }) => !families.some((family) => family === addressType))
  const parts: SliceChanges[] = []
  for (const family of families) {
    const present = own.filter(({ addressType }) => addressType === family)
    parts.push(await familyChanges(service, family, present, await groupsOf(facts, family)))
  }
  const changes = recycled({
    create: parts.flatMap(({ create }) => create),
    update: parts.flatMap(({ update }) => update),
    remove: [...others, ...parts.flatMap(({ remove }) => remove)],
  })
  const timed = (slice: EndpointSlice) => withTriggerTime(slice, triggerTime)
  return {
    create: service.metadata.deletionTimestamp === undefined ? changes.create.map(timed) : [],
    update: changes.update.map(timed),
    remove: [...foreign, ...changes.remove],
  }
}

type Group = { readonly ports: SlicePorts; readonly endpoints: Endpoint[] }

type Groups = ReadonlyMap<string, Group>

async function familyChanges(
  service: ServiceFacts['service'],
  family: IPFamily,
  slices: readonly StoredSlice[],
  groups: Groups,
): Promise<SliceChanges> {
  const labels = sliceLabels(service)
  const byPorts = new Map<string, StoredSlice[]>()
  const unused: StoredSlice[] = []
  await eachInTurns(slices, (slice) => {
    const key = portsKey(slice.ports)
    const known = byPorts.get(key)
    if (!groups.has(key)) unused.push(slice)
    else if (known === undefined) byPorts.set(key, [slice])
    else known.push(slice)
  })
  const parts: SliceChanges[] = []
  for (const [key, { ports, endpoints }] of groups) {
    const present = byPorts.get(key) ?? []
    const packing = await finishedInTurns(packEndpoints(present, endpoints))
    const create = packing.create.map((some) => newSlice(service, family, ports, some))
    parts.push({ create, ...changesOf(present, packing, labels) })
  }
  const create = parts.flatMap((part) => part.create)
  const update = parts.flatMap((part) => part.update)
  const remove = [...unused, ...parts.flatMap((part) => part.remove)]
  if (create.length > 0 || remove.length < slices.length) return { create, update, remove }
  // Without endpoints one empty slice remains: clients see that the Service has none.
  const empty = newSlice(service, family, [], [])
  const [only, ...more] = slices
  const isThere = only !== undefined && more.length === 0 && isSame(only, empty)
  return isThere ? { create: [], update: [], remove: [] } : { create: [empty], update, remove }
}

/** What becomes of the slices of one group of endpoints. */
function changesOf(
  present: readonly StoredSlice[],
  packing: Packing,
  labels: ReturnType<typeof sliceLabels>,
): Pick<SliceChanges, 'update' | 'remove'> {
  const update: EndpointSlice[] = []
  const remove: StoredSlice[] = []
  for (const slice of present) {
    const { name } = slice.metadata
    const next = packing.update.get(name)
    if (packing.remove.includes(name)) remove.push(slice)
    else if (next !== undefined || !equalJSON(slice.metadata.labels ?? {}, labels)) {
      const metadata = { ...slice.metadata, labels }
      update.push({ ...slice, endpoints: next ?? slice.endpoints ?? [], metadata })
    }
  }
  return { update, remove }
}

function isSame(slice: StoredSlice, { metadata }: EndpointSlice): boolean {
  const isEmpty = (slice.endpoints ?? []).length === 0 && (slice.ports ?? []).length === 0
  return isEmpty && equalJSON(slice.metadata.labels ?? {}, metadata.labels ?? {})
}

/** The endpoints that listen on the same ports. A named port may have another number in each pod. */
async function groupsOf({ service, pods, zones }: ServiceFacts, family: IPFamily): Promise<Groups> {
  const groups = new Map<string, Group>()
  const portsOf = targetPortsReader(service)
  const keys = new Map<SlicePorts, string>()
  await eachInTurns(pods, (pod) => {
    if (!isEndpoint(pod)) return
    const ports = portsOf(pod)
    const key = keys.get(ports) ?? portsKey(ports)
    keys.set(ports, key)
    const group = groups.get(key) ?? { ports, endpoints: [] }
    groups.set(key, group)
    const zone = zones.get(pod.spec.nodeName ?? '')
    if (zone === undefined && service.spec?.publishNotReadyAddresses !== true) return
    const addresses = podAddresses(pod).filter((address) => familyOf(address) === family)
    if (addresses.length > 0) group.endpoints.push(endpointOf(service, pod, addresses, zone))
  })
  return groups
}

function endpointOf(service: Service, pod: Pod, addresses: readonly string[], zone: string | undefined): Endpoint {
  const serving = isServing(pod)
  const terminating = isTerminating(pod)
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating)
  const hostname = hostnameIn(service, pod)
  const isClose = service.spec?.trafficDistribution === 'PreferClose' && ready
  return {
    addresses: [...addresses],
    conditions: { ready, serving, terminating },
    targetRef: podTargetRef(pod),
    ...(pod.spec.nodeName && { nodeName: pod.spec.nodeName }),
    ...(zone && { zone }),
    ...(hostname !== undefined && { hostname }),
    ...(isClose && zone && { hints: { forZones: [{ name: zone }] } }),
  }
}

function newSlice(
  service: StoredObject<'services'>,
  addressType: IPFamily,
  ports: SlicePorts,
  endpoints: readonly Endpoint[],
): EndpointSlice {
  const { name, namespace = '', uid } = service.metadata
  const owner = { apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { generateName: `${name}-`, namespace, labels: sliceLabels(service), ownerReferences: [owner] },
    addressType,
    endpoints,
    ports,
  }
}

/** Those of the Service, and those by which clients find the slices of a Service (setEndpointSliceLabels). */
function sliceLabels(service: StoredObject<'services'>): { readonly [name: string]: string } {
  const reserved = [managedByLabel, serviceNameLabel, headlessLabel]
  const given = Object.entries(service.metadata.labels ?? {}).filter(([name]) => !reserved.includes(name))
  return {
    ...Object.fromEntries(given),
    ...(isHeadless(service) && { [headlessLabel]: '' }),
    [managedByLabel]: sliceController,
    [serviceNameLabel]: service.metadata.name,
  }
}

function isOwned({ metadata }: StoredSlice, service: StoredObject<'services'>): boolean {
  const owners = metadata.ownerReferences ?? []
  return owners.some(
    ({ uid, kind, apiVersion }) => uid === service.metadata.uid && kind === 'Service' && apiVersion === 'v1',
  )
}

/** A slice that would be removed becomes one that would be created: one write for two. */
export function recycled({ create, update, remove }: SliceChanges): SliceChanges {
  const rewritten: EndpointSlice[] = []
  const taken = new Set<EndpointSlice>()
  const left = new Map<string, EndpointSlice[]>()
  for (const slice of create.toReversed()) {
    const some = left.get(slice.addressType)
    if (some === undefined) left.set(slice.addressType, [slice])
    else some.push(slice)
  }
  const removed = remove.filter((slice) => {
    const created = left.get(slice.addressType)?.pop()
    if (created === undefined) return true
    taken.add(created)
    rewritten.push({ ...created, metadata: { ...slice.metadata, ...withoutName(created) } })
    return false
  })
  return { create: create.filter((slice) => !taken.has(slice)), update: [...update, ...rewritten], remove: removed }
}

function withoutName({ metadata: { generateName: _, ...metadata } }: EndpointSlice) {
  return metadata
}

function withTriggerTime(slice: EndpointSlice, time: string | undefined): EndpointSlice {
  const { annotations = {}, ...metadata } = slice.metadata
  const { [triggerTimeAnnotation]: _, ...others } = annotations
  const all = time === undefined ? others : { ...others, [triggerTimeAnnotation]: time }
  return { ...slice, metadata: { ...metadata, ...(Object.keys(all).length > 0 && { annotations: all }) } }
}
