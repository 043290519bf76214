/**
 * EndpointSlices of Endpoints that a client writes for a Service without a selector
 * (pkg/controller/endpointslicemirroring/reconciler.go of Kubernetes): one for each family of addresses and set of ports.
 */

import { isIP } from 'node:net'
import type { Endpoint, EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import type { EndpointAddress, EndpointSubset, Endpoints } from '../../../api/network/endpoints.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { StoredObject } from '../../store/store.ts'
import { packedSubsets } from './endpoint-subsets.ts'
import { familyOf } from './pod-endpoints.ts'
import {
  managedByLabel,
  recycled,
  type SliceChanges,
  serviceNameLabel,
  triggerTimeAnnotation,
} from './service-slices.ts'
import { packEndpoints, portsKey, type SlicePorts, type StoredSlice } from './slice-packing.ts'

export const mirroringController = 'endpointslicemirroring-controller.k8s.io'

/** Endpoints that only hold the lock of a leader have no addresses to mirror (resourcelock.LeaderElectionRecordAnnotationKey). */
export function isLeaderLock({ metadata }: Endpoints): boolean {
  return metadata.annotations?.['control-plane.alpha.kubernetes.io/leader'] !== undefined
}

export function isMirrored(endpoints: Endpoints): boolean {
  return endpoints.metadata.labels?.['endpointslice.kubernetes.io/skip-mirror'] !== 'true' && !isLeaderLock(endpoints)
}

/** --mirroring-max-endpoints-per-subset. */
const mostAddresses = 1000

export type Mirroring = {
  readonly changes: SliceChanges
  /** Addresses beyond the first 1,000 of their subset. */
  readonly skipped: number
}

type Group = { readonly ports: SlicePorts; readonly family: IPFamily; readonly endpoints: readonly Endpoint[] }

/** `slices`: those that this controller has written for the Service. */
export async function mirroring(
  endpoints: StoredObject<'endpoints'>,
  slices: readonly StoredSlice[],
): Promise<Mirroring> {
  const { groups, skipped } = groupsOf(await packedSubsets(endpoints.subsets ?? []))
  const byKey = new Map([...slices].reverse().map((slice) => [groupKey(slice.addressType, slice.ports), slice]))
  const labels = {
    ...endpoints.metadata.labels,
    [serviceNameLabel]: endpoints.metadata.name,
    [managedByLabel]: mirroringController,
  }
  const annotations = annotationsOf(endpoints)
  const create: EndpointSlice[] = []
  const update: EndpointSlice[] = []
  const kept = new Set<StoredSlice>()
  await eachInTurns(groups, ({ ports, family, endpoints: wanted }) => {
    const present = byKey.get(groupKey(family, ports))
    if (present === undefined) {
      create.push(newSlice(endpoints, family, ports, wanted, labels, annotations))
      return
    }
    kept.add(present)
    const { update: other, create: more } = finished(packEndpoints([present], wanted, mostAddresses))
    const isSame =
      other.size === 0 &&
      more.length === 0 &&
      equalJSON(present.metadata.labels ?? {}, labels) &&
      equalJSON(present.metadata.annotations ?? {}, annotations) &&
      present.metadata.ownerReferences?.some(({ uid }) => uid === endpoints.metadata.uid) === true
    if (isSame) return
    const next = newSlice(endpoints, family, ports, wanted, labels, annotations)
    const { generateName: _, ...metadata } = next.metadata
    update.push({ ...next, metadata: { ...present.metadata, ...metadata } })
  })
  const remove = slices.filter((slice) => !kept.has(slice))
  const changes = recycled({ create, update, remove })
  const isLeaving = endpoints.metadata.deletionTimestamp !== undefined
  return { changes: isLeaving ? { ...changes, create: [] } : changes, skipped }
}

function groupKey(family: string, ports: SlicePorts | undefined): string {
  return `${family} ${portsKey(ports)}`
}

/** `subsets`: packed, so that no two have the same ports. */
function groupsOf(subsets: readonly EndpointSubset[]): { readonly groups: readonly Group[]; readonly skipped: number } {
  const groups: Group[] = []
  let skipped = 0
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    const slicePorts = ports.map(({ name = '', protocol = 'TCP', ...port }) => ({ name, protocol, ...port }))
    const all = [
      ...addresses.map((address) => endpointOf(address, true)),
      ...notReadyAddresses.map((address) => endpointOf(address, false)),
    ].filter(({ addresses: [ip = ''] }) => isIP(ip) !== 0)
    skipped += Math.max(0, all.length - mostAddresses)
    const mirrored = all.slice(0, mostAddresses)
    for (const family of ['IPv4', 'IPv6'] as const) {
      const endpoints = mirrored.filter(({ addresses: [ip = ''] }) => familyOf(ip) === family)
      if (endpoints.length > 0) groups.push({ ports: slicePorts, family, endpoints })
    }
  }
  return { groups, skipped }
}

function endpointOf({ ip, targetRef, nodeName, hostname = '' }: EndpointAddress, ready: boolean): Endpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(hostname !== '' && { hostname }),
    ...(targetRef && { targetRef }),
    ...(nodeName !== undefined && { nodeName }),
  }
}

/** Without those that a client or a controller keeps about the Endpoints themselves. */
function annotationsOf({ metadata }: Endpoints): { readonly [name: string]: string } {
  const own = [triggerTimeAnnotation, 'kubectl.kubernetes.io/last-applied-configuration']
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([name]) => !own.includes(name)))
}

function newSlice(
  { metadata: { name, namespace = '', uid } }: StoredObject<'endpoints'>,
  addressType: IPFamily,
  ports: SlicePorts,
  endpoints: readonly Endpoint[],
  labels: { readonly [name: string]: string },
  annotations: { readonly [name: string]: string },
): EndpointSlice {
  const owner = { apiVersion: 'v1', kind: 'Endpoints', name, uid, controller: true, blockOwnerDeletion: true }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      generateName: `${name}-`,
      namespace,
      labels,
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ownerReferences: [owner],
    },
    addressType,
    endpoints: endpoints.slice(0, mostAddresses),
    ports,
  }
}
