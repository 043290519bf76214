/**
 * Loop: the Service `default/kubernetes`, its Endpoints and its EndpointSlice, with which clients find the API
 * (pkg/controlplane/controller/kubernetesservice and pkg/controlplane/reconcilers of kube-apiserver).
 */
import { isIP } from 'node:net'
import { isApiError } from '../../api/api-error.ts'
import type { EndpointSlice } from '../../api/network/endpoint-slice.ts'
import type { Endpoints } from '../../api/network/endpoints.ts'
import type { Service } from '../../api/network/service.ts'
import { kubernetesServiceAddress } from '../../api/network/service-range.ts'
import type { ResourceName, ResourceTypes } from '../../api/resources.ts'
import { parseCidr } from '../../api/text/cidr.ts'
import type { Clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { equalJSON } from '../store/equal-json.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store, StoredObject } from '../store/store.ts'

export type KubernetesServiceNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

export type ApiLocation = {
  /** The range of the addresses of Services. */
  readonly serviceCIDR: string
  /** Where other machines reach the API: an IP address, or a name. */
  readonly address: string
  readonly port: number
  /** Addresses of other controllers that run, with the same port; names are left out. */
  readonly others?: () => Promise<readonly string[]>
}

/** As kube-apiserver's DefaultEndpointReconcilerInterval. */
const periodMs = 10_000

/** A name is not an endpoint: with an advertised name the Service has no Endpoints and no EndpointSlice. */
export function kubernetesServiceController(needs: KubernetesServiceNeeds, location: ApiLocation): Loop {
  const { clock, log } = needs
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await reconcile(needs, location).catch((error) =>
        log.warn('Service default/kubernetes not written', { error: storyOf(error) }),
      )
      await clock.sleep(periodMs, signal)
    }
  }
  return { name: 'kubernetes-service', run }
}

const key = { namespace: 'default', name: 'kubernetes' }

async function reconcile(needs: KubernetesServiceNeeds, location: ApiLocation): Promise<void> {
  const addresses = addressesOf(location.address, (await location.others?.()) ?? [])
  const service = kubernetesService(location)
  await removeFromOtherRange(needs, service)
  await ensure(needs, 'services', service, (present) => {
    const ports = service.spec?.ports ?? []
    return equalJSON(present.spec?.ports ?? [], ports) ? undefined : { ...present, spec: { ...present.spec, ports } }
  })
  if (isIP(location.address) === 0) return
  const endpoints = kubernetesEndpoints(location, addresses)
  await ensure(needs, 'endpoints', endpoints, (present) => {
    const subsets = endpoints.subsets ?? []
    return equalJSON(present.subsets ?? [], subsets) ? undefined : { ...present, subsets }
  })
  const slice = kubernetesEndpointSlice(location, addresses)
  await ensure(needs, 'endpointslices', slice, (present) => {
    const { addressType, endpoints: wanted, ports = [] } = slice
    const same = equalJSON([present.endpoints, present.ports ?? []], [wanted, ports])
    return same ? undefined : { ...present, addressType, endpoints: wanted, ports }
  })
}

/**
 * An address cannot be changed, and after a change of `serviceCIDR` the certificate of the API has that of the new range: clients in
 * pods would get the old one, and could not verify it. (kube-apiserver leaves it to an operator to delete the Service.)
 */
async function removeFromOtherRange({ store, log }: KubernetesServiceNeeds, wanted: Service): Promise<void> {
  const present = await store.get('services', key)
  const [before, after] = [present?.spec?.clusterIP, wanted.spec?.clusterIP]
  if (present === undefined || before === after) return
  const { uid, resourceVersion } = present.metadata
  await store.delete('services', key, { uid, resourceVersion })
  log.info('Service default/kubernetes has another address: the range of Services was changed', { before, after })
}

/** Creates the object, or changes the one that is there. */
async function ensure<R extends ResourceName>(
  { store, clock }: KubernetesServiceNeeds,
  kind: R,
  object: ResourceTypes[R],
  change: (present: StoredObject<R>) => ResourceTypes[R] | undefined,
): Promise<void> {
  if ((await store.get(kind, key)) === undefined) {
    try {
      await store.create(kind, object)
      return
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error
    }
  }
  await rewrite({ store, clock }, kind, { key, change })
}

const labels = { component: 'apiserver', provider: 'kubernetes' }

/** Throws TypeError for a range that `serviceCidrProblem` refuses. */
export function kubernetesService({ serviceCIDR, port }: ApiLocation): Service {
  const range = parseCidr(serviceCIDR)
  if (range === undefined) throw new TypeError(`${serviceCIDR} is not a CIDR`)
  const clusterIP = kubernetesServiceAddress(range)
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...key, labels },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: port }],
    },
    status: { loadBalancer: {} },
  }
}

/** In one order, whichever controller writes them. */
function addressesOf(address: string, others: readonly string[]): readonly string[] {
  const same = others.filter((other) => isIP(other) !== 0 && isIP(other) === isIP(address))
  return [...new Set([address, ...same])].sort()
}

function kubernetesEndpoints({ port }: ApiLocation, addresses: readonly string[]): Endpoints {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    // Its EndpointSlice is written here, and by no controller that mirrors Endpoints.
    metadata: { ...key, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: addresses.map((ip) => ({ ip })), ports: [{ name: 'https', port, protocol: 'TCP' }] }],
  }
}

function kubernetesEndpointSlice({ address, port }: ApiLocation, addresses: readonly string[]): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...key, labels: { 'kubernetes.io/service-name': key.name } },
    addressType: isIP(address) === 6 ? 'IPv6' : 'IPv4',
    endpoints: addresses.map((one) => ({ addresses: [one], conditions: { ready: true } })),
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  }
}
