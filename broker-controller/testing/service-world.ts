/** Services and pods in a store, and the controller of endpoints over it. The test plays scheduler and nodes. */
import type { EndpointSlice } from '../../api/network/endpoint-slice.ts'
import type { Endpoints } from '../../api/network/endpoints.ts'
import type { Service } from '../../api/network/service.ts'
import type { Pod } from '../../api/pod.ts'
import { aNode } from '../../api/testing/builders.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { endpointsController } from '../controllers/endpoints/endpoints-controller.ts'
import type { Store, StoredObject } from '../store/store.ts'
import { type WorkloadWorld, workloadWorld } from './workload-world.ts'

type Labels = { readonly [name: string]: string }

export type PodGiven = {
  readonly labels?: Labels
  readonly ready?: boolean
  readonly ips?: readonly string[]
  readonly node?: string
  readonly phase?: 'Running' | 'Succeeded' | 'Failed'
  readonly spec?: Partial<Pod['spec']>
}

export interface ServiceWorld extends Pick<WorkloadWorld, 'store' | 'clock' | 'needs' | 'settle' | 'edit'> {
  /** Starts the controller; it ends with the test, or when the function is called. */
  start(): () => Promise<void>
  node(name: string, zone?: string): Promise<void>
  /** A Service as a client creates it. Without `spec`: port 80 to the pods with the label `app: NAME`. */
  service(name: string, spec?: Partial<Service['spec']>, labels?: Labels): Promise<StoredObject<'services'>>
  /** Creates a pod that runs on `pi-01`, or writes it again as it is given now. */
  pod(name: string, given: PodGiven): Promise<void>
  /** The pod is being deleted. */
  leave(name: string): Promise<void>
  /** The slices of a Service, by name. */
  slices(service: string): Promise<readonly StoredObject<'endpointslices'>[]>
  endpoints(name: string): Promise<StoredObject<'endpoints'> | undefined>
}

type Test = Parameters<typeof workloadWorld>[0]

export async function serviceWorld(
  t: Test,
  given: { readonly store?: (store: Store) => Store } = {},
): Promise<ServiceWorld> {
  const world = await workloadWorld(t, given)
  const { store, clock } = world
  const at = (name: string) => ({ namespace: 'default', name })
  return {
    ...world,
    start: () => world.start([endpointsController(world.needs)]),
    async node(name, zone) {
      const { metadata, ...node } = aNode({ name })
      const labels: Labels = zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone }
      await store.create('nodes', { ...node, metadata: { name: metadata.name, labels } })
    },
    service: (name, spec = { selector: { app: name }, ports: [{ port: 80 }] }, labels) =>
      world.needs.creation.create(
        'services',
        { apiVersion: 'v1', kind: 'Service', metadata: { ...at(name), ...(labels && { labels }) }, spec },
        'test',
      ),
    async pod(name, { labels = {}, ready = true, ips = [], node = 'pi-01', phase = 'Running', spec = {} }) {
      const before = await store.get('pods', at(name))
      const [podIP] = ips
      const status = ready ? 'True' : 'False'
      const condition = before?.status?.conditions?.[0]
      const lastTransitionTime =
        condition?.status === status ? (condition.lastTransitionTime ?? '') : rfc3339(clock.wallMs())
      const pod: Pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...before?.metadata, ...at(name), labels },
        spec: { containers: [{ name: 'main', image: 'web:1' }], nodeName: node, ...spec },
        status: {
          phase,
          ...(podIP !== undefined && { podIP, podIPs: ips.map((ip) => ({ ip })) }),
          conditions: [{ type: 'Ready', status, lastTransitionTime }],
        },
      }
      if (before === undefined) await store.create('pods', pod)
      else await store.update('pods', pod)
    },
    async leave(name) {
      await world.edit('pods', name, (pod) => ({
        ...pod,
        metadata: { ...pod.metadata, deletionTimestamp: rfc3339(clock.wallMs()), deletionGracePeriodSeconds: 30 },
      }))
    },
    async slices(service) {
      const all = (await store.list('endpointslices', 'default')).items
      return all
        .filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === service)
        .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    },
    endpoints: (name) => store.get('endpoints', at(name)),
  }
}

/** `10.0.0.1:80 10.0.0.2:80 (10.0.0.3:80)`: what is not ready is in brackets. */
export function endpointsText(endpoints: Endpoints | undefined): string | undefined {
  if (endpoints === undefined) return undefined
  return (endpoints.subsets ?? [])
    .flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }) => {
      const numbers = ports.length === 0 ? [''] : ports.map(({ port }) => `:${port}`)
      const text = (ip: string) => numbers.map((number) => `${ip}${number}`)
      const notReady = notReadyAddresses.flatMap(({ ip }) => text(ip)).map((one) => `(${one})`)
      return [...addresses.flatMap(({ ip }) => text(ip)), ...notReady]
    })
    .join(' ')
}

/** `10.0.0.1:80`, and after a slash its conditions that are not as those of a ready pod: `10.0.0.1:80/notready,serving`. */
export function slicesText(slices: readonly EndpointSlice[]): readonly string[] {
  return slices
    .flatMap(({ endpoints, ports }) => {
      const numbers = (ports ?? []).map(({ port }) => `:${port}`).join('')
      return (endpoints ?? []).map(({ addresses, conditions = {} }) => {
        const state = [
          ...(conditions.ready ? [] : ['not ready']),
          ...(conditions.serving === false ? ['not serving'] : []),
          ...(conditions.terminating ? ['terminating'] : []),
        ]
        return [`${addresses.join('+')}${numbers}`, ...state].join(' ')
      })
    })
    .sort()
}
