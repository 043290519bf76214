/**
 * Which address answers for a port of a Service: one that is ready, by chance (ResourceLocation in
 * pkg/registry/core/service/storage/storage.go and apiserver/pkg/util/proxy of Kubernetes, which read the Endpoints, too).
 */
import { ApiError, notFound } from '../../../api/api-error.ts'
import type { EndpointAddress, Endpoints } from '../../../api/network/endpoints.ts'
import type { Service } from '../../../api/network/service.ts'
import { resources } from '../../../api/resources.ts'
import type { ObjectKey, Store, StoredPod } from '../../store/store.ts'

export type ServiceAddress = {
  readonly ip: string
  readonly port: number
  /** undefined: its author names no pod. */
  readonly pod: StoredPod | undefined
}

export type ServiceSearch = {
  readonly key: ObjectKey
  /** A name or a number of the Service's ports; '': the port without a name. */
  readonly port: string
  /** How the client names the Service, for messages. */
  readonly id: string
}

type Needs = { readonly store: Pick<Store, 'get'>; readonly random: () => number }

/** Yields addresses in a random order. Throws the ApiError NotFound or ServiceUnavailable, also after the last address. */
export async function* serviceAddresses(
  { store, random }: Needs,
  { key, port, id }: ServiceSearch,
): AsyncGenerator<ServiceAddress, never> {
  const portName = /^\d+$/.test(port) ? portNameOf(await presentService(store, key), Number(port)) : port
  const endpoints = await store.get('endpoints', key)
  if (endpoints === undefined) throw notFound(resources.endpoints, key.name)
  if ((endpoints.subsets ?? []).length === 0) throw noEndpoints(key.name)
  for (const { address, port: number } of shuffled(readyAddresses(endpoints, portName), random)) {
    const pod = await podAt(store, key.namespace, address)
    // Addresses of pods repeat from node to node: that of a pod which is gone leads somewhere else.
    if (pod !== undefined || address.targetRef?.kind !== 'Pod') yield { ip: address.ip, port: number, pod }
  }
  throw noEndpoints(id)
}

/** Throws NotFound. */
async function presentService(store: Pick<Store, 'get'>, key: ObjectKey): Promise<Service> {
  const service = await store.get('services', key)
  if (service === undefined) throw notFound(resources.services, key.name)
  return service
}

function portNameOf({ metadata, spec = {} }: Service, number: number): string {
  const found = (spec.ports ?? []).find(({ port }) => port === number)
  if (found !== undefined) return found.name ?? ''
  throw new ApiError('ServiceUnavailable', `no service port ${number} found for service "${metadata.name}"`)
}

function noEndpoints(id: string): ApiError {
  return new ApiError('ServiceUnavailable', `no endpoints available for service "${id}"`)
}

type Place = { readonly address: EndpointAddress; readonly port: number }

function readyAddresses({ subsets = [] }: Endpoints, portName: string): readonly Place[] {
  return subsets.flatMap(({ addresses = [], ports = [] }) => {
    const port = ports.find(({ name = '' }) => name === portName)?.port
    return port === undefined ? [] : addresses.map((address) => ({ address, port }))
  })
}

/** From a random one on. */
function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const start = Math.floor(random() * items.length)
  return [...items.slice(start), ...items.slice(0, start)]
}

async function podAt(store: Pick<Store, 'get'>, namespace: string, { ip, targetRef }: EndpointAddress) {
  if (targetRef?.kind !== 'Pod' || targetRef.namespace !== namespace) return undefined
  const pod = await store.get('pods', { namespace, name: targetRef.name ?? '' })
  const { podIP = '', podIPs = [{ ip: podIP }] } = pod?.status ?? {}
  return podIPs.some((one) => one.ip === ip) && pod?.spec.nodeName ? pod : undefined
}
