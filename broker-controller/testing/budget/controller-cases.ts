/** Controllers over the largest objects that the API accepts and over very many pods, each with a change that makes them work. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OwnerReference } from '../../../api/meta.ts'
import type { Pod, PodSpec } from '../../../api/pod.ts'
import type { BuiltInName } from '../../../api/resources.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import type { Loop } from '../../../daemon/run.ts'
import { runLoops } from '../../../daemon/run.ts'
import { type FakeClock, fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { BudgetCase } from '../../../daemon/testing/turn-budget.ts'
import { namespaceDeletion } from '../../apiserver/namespace-deletion.ts'
import { resourceQuotaController } from '../../apiserver/quota/quota-controller.ts'
import { usageLedger } from '../../apiserver/quota/quota-ledger.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { endpointsController } from '../../controllers/endpoints/endpoints-controller.ts'
import { garbageCollector } from '../../controllers/garbage/garbage-collector.ts'
import { disruptionController } from '../../controllers/pods/disruption-controller.ts'
import { podCleanupController } from '../../controllers/pods/pod-cleanup-controller.ts'
import { taintEvictionController } from '../../controllers/pods/taint-eviction-controller.ts'
import { serviceAllocationController } from '../../controllers/service-allocation-controller.ts'
import { type WorkloadNeeds, workloadControllers } from '../../controllers/workloads/workload-controllers.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Store } from '../../store/store.ts'
import { workloadNeeds } from '../workload-world.ts'

/** Each of them has a slice of its own. */
const podsApart = 1_000
/** Requirements of a selector: with the rest of its object nearly as many values as a body may have. */
const requirements = 5_000
const writtenTogether = 250

export type World = {
  readonly store: Store
  /** How many belong to one owner, Service or node. */
  readonly pods: number
  readonly clock: FakeClock
  readonly needs: WorkloadNeeds
  /** How many objects of each kind are there. */
  readonly counts: Counts
}
type Counts = Map<string, number>
export type ControllerCase = {
  readonly what: string
  readonly loops: (needs: WorkloadNeeds, pods: number) => readonly Loop[]
  /** Before the controllers start. */
  readonly fill: (world: World) => Promise<void>
  readonly act: (world: World) => Promise<unknown>
}
/** `log`: of the controllers. `pods`: as in the world of a case. */
export type CaseOptions = { readonly log: WorkloadNeeds['log']; readonly pods: number }

export type EndingCase = BudgetCase & { readonly end: () => Promise<void> }

export function* controllerCases(options: CaseOptions): Generator<EndingCase> {
  for (const one of [...workloadCases, ...otherCases]) yield controllerCase(one, options)
}

export function controllerCase({ what, loops, fill, act }: ControllerCase, { log, pods }: CaseOptions): EndingCase {
  let world: World | undefined
  let end = async () => {}
  return {
    what,
    bytes: 0,
    async prepare() {
      await end()
      const clock = fakeClock()
      const counts: Counts = new Map()
      const store = turningStore(memoryStore({ clock, resources: builtInKinds }), counts)
      const made = { store, clock, needs: workloadNeeds(store, clock, log), counts, pods }
      for (const name of ['default', 'kube-system', 'many']) {
        await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
      }
      await fill(made)
      const stop = new AbortController()
      const running = runLoops(loops(made.needs, pods), stop.signal, log)
      end = async () => {
        end = async () => {}
        stop.abort()
        await clock.settle()
        await running
      }
      await clock.advance(60_000)
      world = made
    },
    async act() {
      if (world === undefined) throw new Error(`${what} was not prepared`)
      await act(world)
      await world.clock.advance(10_000)
    },
    end: () => end(),
  }
}

/** Writes that are asked for together are answered in the next turn, as by a store with a disk. */
function turningStore(store: Store, counts: Counts): Store {
  const count = (resource: string, more: number) => counts.set(resource, (counts.get(resource) ?? 0) + more)
  const later = async <T>(write: Promise<T>): Promise<T> => {
    const result = await write
    await nextTurn()
    return result
  }
  return {
    ...store,
    async create(resource, object) {
      const created = await later(store.create(resource, object))
      count(resource, 1)
      return created
    },
    update: (resource, object) => later(store.update(resource, object)),
    updateStatus: (resource, object) => later(store.updateStatus(resource, object)),
    async delete(resource, key, preconditions) {
      const deleted = await later(store.delete(resource, key, preconditions))
      count(resource, -1)
      return deleted
    },
  }
}

export const labels = { app: 'web' }
const spec: PodSpec = { containers: [{ name: 'main', image: 'web:1' }] }
const template = { metadata: { labels }, spec }
const metadata = { name: 'web', namespace: 'many' }
const selector = { matchLabels: labels }
const largeSelector = {
  matchLabels: labels,
  matchExpressions: Array.from({ length: requirements }, (_, at) => ({
    key: `k${at}`,
    operator: 'DoesNotExist' as const,
  })),
}
const key = { namespace: 'many', name: 'web' }
const ready = [{ type: 'Ready', status: 'True', lastTransitionTime: '2025-12-31T00:00:00Z' }] as const

/** In parts, as a store writes them. */
export async function each(count: number, act: (at: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < count; at += writtenTogether) {
    await Promise.all(Array.from({ length: Math.min(writtenTogether, count - at) }, (_, index) => act(at + index)))
  }
}

function addressAt(at: number): string {
  return `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
}

type Owner = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly uid: string }
}

/** Running pods of this owner, or of none. */
export async function fillPods(
  { store, pods }: World,
  owner: Owner | undefined,
  change: (pod: Pod, at: number) => Pod = (pod) => pod,
  count = pods,
): Promise<void> {
  const reference: OwnerReference | undefined = owner && {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  }
  await each(count, async (at) => {
    const status = {
      phase: 'Running',
      podIP: addressAt(at),
      conditions: ready,
    } as const
    const { metadata: made, ...rest } = aPod({
      name: `web-${at}`,
      namespace: 'many',
      labels,
      nodeName: `pi-${at % 100}`,
      status,
    })
    const { uid: _, resourceVersion: __, ...own } = made
    const pod = { ...rest, metadata: { ...own, ...(reference && { ownerReferences: [reference] }) } }
    await store.create('pods', change(pod as Pod, at))
  })
}

export async function create<R extends BuiltInName>({ store }: World, resource: R, object: object) {
  return (await store.create(resource, object as never)) as unknown as Owner
}

export async function edit(world: World, resource: BuiltInName, change: (object: never) => object): Promise<void> {
  const object = await world.store.get(resource, key)
  if (object === undefined) throw new Error(`no ${resource}`)
  await world.store.update(resource, change(object as never) as never)
}

export async function touchPod({ store }: World): Promise<void> {
  await store.delete('pods', { namespace: 'many', name: 'web-7' })
}

const setOf = (replicas: number, of: object = selector) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata,
  spec: { replicas, selector: of, template },
})
const workload = (what: string, fill: ControllerCase['fill'], act: ControllerCase['act']): ControllerCase => ({
  what,
  loops: (needs) => workloadControllers(needs),
  fill,
  act,
})

const workloadCases: readonly ControllerCase[] = [
  workload(
    'a Deployment of 2,000,000,000 is created',
    (world) => fillPods(world, undefined),
    (world) => create(world, 'deployments', { ...setOf(2_000_000_000), kind: 'Deployment' }),
  ),
  workload(
    'a ReplicaSet of many pods loses one',
    async (world) => fillPods(world, await create(world, 'replicasets', setOf(world.pods))),
    touchPod,
  ),
  workload(
    'a ReplicaSet of many pods with a large selector loses one',
    async (world) => fillPods(world, await create(world, 'replicasets', setOf(world.pods, largeSelector))),
    touchPod,
  ),
  workload(
    'a ReplicaSet of many pods is made smaller',
    async (world) => fillPods(world, await create(world, 'replicasets', setOf(world.pods))),
    (world) =>
      edit(world, 'replicasets', (set: { spec: object }) => ({
        ...set,
        spec: { ...set.spec, replicas: world.pods - 600 },
      })),
  ),
  workload(
    'pods without an owner appear beside owners with large selectors',
    async (world) => {
      for (let at = 0; at < 20; at++) {
        await create(world, 'replicasets', { ...setOf(0, largeSelector), metadata: { ...metadata, name: `web-${at}` } })
      }
    },
    (world) =>
      each(30, (at) =>
        world.store.create('pods', aPod({ name: `p-${at}`, namespace: 'many', labels: { app: 'web' } })),
      ),
  ),
  workload(
    'a Job of many pods loses one',
    async (world) => {
      const job = await create(world, 'jobs', {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata,
        spec: {
          parallelism: 2_000_000_000,
          selector,
          template: { ...template, spec: { ...spec, restartPolicy: 'Never' } },
        },
      })
      await fillPods(world, job)
    },
    touchPod,
  ),
  workload(
    'an indexed Job of many pods loses one',
    async (world) => {
      const job = await create(world, 'jobs', {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata,
        spec: {
          parallelism: world.pods,
          completions: 100_000,
          completionMode: 'Indexed',
          selector,
          template: { ...template, spec: { ...spec, restartPolicy: 'Never' } },
        },
      })
      await fillPods(world, job, (pod, at) => ({
        ...pod,
        metadata: { ...pod.metadata, annotations: { 'batch.kubernetes.io/job-completion-index': String(at) } },
      }))
    },
    touchPod,
  ),
  workload(
    'a StatefulSet of many pods loses one',
    async (world) => {
      const set = await create(world, 'statefulsets', {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata,
        spec: { replicas: 2_000_000_000, serviceName: 'web', podManagementPolicy: 'Parallel', selector, template },
      })
      await fillPods(world, set)
    },
    touchPod,
  ),
  workload(
    'a DaemonSet with many tolerations on many nodes is changed',
    async (world) => {
      await each(1_000, (at) => world.store.create('nodes', aNode({ name: `pi-${at}` })))
      const tolerations = Array.from({ length: 3_000 }, (_, at) => ({ key: `k${at}`, operator: 'Exists' as const }))
      const daemon = { metadata: { labels }, spec: { ...spec, tolerations } }
      await create(world, 'daemonsets', {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata,
        spec: { selector, template: daemon },
      })
    },
    (world) =>
      edit(world, 'daemonsets', (set: { spec: object }) => ({ ...set, spec: { ...set.spec, minReadySeconds: 1 } })),
  ),
  workload(
    'a CronJob missed its times for years',
    async () => {},
    (world) =>
      create(world, 'cronjobs', {
        apiVersion: 'batch/v1',
        kind: 'CronJob',
        metadata: { ...metadata, creationTimestamp: '2016-01-01T00:00:00Z' },
        spec: { schedule: '0 0 29 2 1', jobTemplate: { spec: { template } }, concurrencyPolicy: 'Allow' },
      }),
  ),
]

const owned = async (world: World) => fillPods(world, await create(world, 'replicasets', setOf(world.pods)))
const leaving = (finalizer: string) => async (world: World) =>
  edit(world, 'replicasets', (set: { metadata: object }) => ({
    ...set,
    metadata: { ...set.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer] },
  }))
const budget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata,
  spec: { minAvailable: 1, selector: largeSelector },
}

/** As many as a Service may have. */
const servicePorts = Array.from({ length: 250 }, (_, at) => ({
  name: `p${at}`,
  port: 80 + at,
  protocol: 'TCP',
  targetPort: 80 + at,
}))
const serviceOf = (spec: object) => ({ apiVersion: 'v1', kind: 'Service', metadata, spec })

function serviceCase(
  what: string,
  ports: readonly object[],
  change: (pod: Pod, at: number) => Pod,
  count?: number,
): ControllerCase {
  const address = { clusterIP: '10.96.0.9', clusterIPs: ['10.96.0.9'], ipFamilies: ['IPv4'] }
  return {
    what,
    loops: (needs) => [endpointsController(needs)],
    fill: async (world) => {
      await each(100, (at) => world.store.create('nodes', aNode({ name: `pi-${at}` })))
      await fillPods(world, undefined, change, count)
    },
    act: (world) => create(world, 'services', serviceOf({ selector: labels, ...address, ports })),
  }
}

function endpointsCase(what: string, subsets: readonly object[]): ControllerCase {
  return {
    what,
    loops: (needs) => [endpointsController(needs)],
    fill: async (world) => void (await create(world, 'services', serviceOf({ clusterIP: 'None' }))),
    act: (world) => create(world, 'endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets }),
  }
}

/** Each pod has a slice of its own; then one pod goes, and its slice with it. */
function losing({ fill, act, ...one }: ControllerCase): ControllerCase {
  return {
    ...one,
    fill: async (world) => {
      await fill(world)
      await act(world)
    },
    async act(world) {
      await present(world, 'endpointslices', podsApart)
      await touchPod(world)
      await present(world, 'endpointslices', podsApart - 1)
    },
  }
}

/** Waits until this many objects of the kind are there. */
async function present({ counts, clock }: World, resource: string, wanted: number): Promise<void> {
  while (counts.get(resource) !== wanted) {
    await clock.advance(1_000)
    await nextTurn()
  }
}

const otherCases: readonly ControllerCase[] = [
  {
    what: 'garbage collection: an owner goes',
    loops: collector,
    fill: owned,
    act: ({ store }) => store.delete('replicasets', key),
  },
  {
    what: 'garbage collection: an owner goes after its pods',
    loops: collector,
    fill: owned,
    act: leaving('foregroundDeletion'),
  },
  { what: 'garbage collection: an owner leaves its pods', loops: collector, fill: owned, act: leaving('orphan') },
  {
    what: 'a namespace goes',
    loops: (needs) => [namespaceDeletion({ ...needs, kinds: builtInKinds })],
    fill: (world) => fillPods(world, undefined, (pod) => ({ ...pod, status: { ...pod.status, phase: 'Failed' } })),
    async act({ store }) {
      const name = { namespace: '', name: 'many' }
      const namespace = await store.get('namespaces', name)
      if (namespace === undefined) throw new Error('no namespace')
      const deletionTimestamp = '2026-01-01T00:00:00Z'
      await store.update('namespaces', { ...namespace, metadata: { ...namespace.metadata, deletionTimestamp } })
    },
  },
  serviceCase('a Service of many pods is created', servicePorts.slice(0, 1), (pod) => pod),
  serviceCase('a Service of many ports and many pods is created', servicePorts, (pod) => pod),
  losing(
    serviceCase(
      'a Service loses a pod whose port has another number in each pod',
      [{ name: 'own', port: 1, protocol: 'TCP', targetPort: 'own' }],
      (pod, at) => {
        const ports = [{ name: 'own', containerPort: 1 + at, protocol: 'TCP' }]
        return { ...pod, spec: { ...pod.spec, containers: [{ name: 'main', image: 'web:1', ports }] } }
      },
      podsApart,
    ),
  ),
  endpointsCase('Endpoints of many addresses and ports are written by hand', [
    {
      addresses: Array.from({ length: 4_000 }, (_, at) => ({ ip: addressAt(at) })),
      ports: Array.from({ length: 4_000 }, (_, at) => ({ name: `p${at}`, port: 1 + at })),
    },
  ]),
  endpointsCase(
    'Endpoints of many subsets are written by hand',
    Array.from({ length: 3_000 }, (_, at) => ({ addresses: [{ ip: addressAt(at) }], ports: [{ port: 1 + at }] })),
  ),
  {
    what: 'the addresses of many Services are checked',
    loops: (needs) => [serviceAllocationController(needs, { serviceCIDR: '10.0.0.0/8' })],
    fill: ({ store }) =>
      each(4_000, async (at) => {
        const ports = servicePorts.slice(0, 10).map((port, index) => ({ ...port, nodePort: 30_000 + at * 10 + index }))
        const one = { ...serviceOf({ clusterIP: addressAt(at), ports }), metadata: { ...metadata, name: `s-${at}` } }
        await store.create('services', one as never)
      }),
    act: ({ clock }) => clock.advance(200_000),
  },
  {
    what: 'a PodDisruptionBudget with a large selector is created',
    loops: (needs) => [disruptionController(needs)],
    fill: (world) => fillPods(world, undefined),
    act: (world) => create(world, 'poddisruptionbudgets', budget),
  },
  {
    what: 'a ResourceQuota is created',
    loops: (needs) => [resourceQuotaController({ ...needs, quotas: usageLedger({ ...needs, kinds: builtInKinds }) })],
    fill: (world) => fillPods(world, undefined),
    act: (world) =>
      create(world, 'resourcequotas', {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata,
        spec: { hard: { pods: '10', 'requests.cpu': '1' }, scopes: ['NotTerminating'] },
      }),
  },
  {
    what: 'a node with many pods gets a NoExecute taint',
    loops: (needs) => [taintEvictionController(needs)],
    fill: async (world) => {
      await world.store.create('nodes', aNode({ name: 'pi-0' }))
      const tolerations = Array.from({ length: 200 }, (_, at) => ({ key: `k${at}`, operator: 'Exists' as const }))
      await fillPods(world, undefined, (pod) => ({ ...pod, spec: { ...pod.spec, nodeName: 'pi-0', tolerations } }))
    },
    async act({ store }) {
      const node = await store.get('nodes', { namespace: '', name: 'pi-0' })
      if (node === undefined) throw new Error('no node')
      const taints = [{ key: 'gone', effect: 'NoExecute' as const }]
      await store.update('nodes', { ...node, spec: { ...node.spec, taints } })
    },
  },
  {
    what: 'more pods have ended than are kept',
    loops: (needs, pods) => [podCleanupController(needs, { terminatedPodGCThreshold: pods })],
    fill: (world) => fillPods(world, undefined, (pod) => ({ ...pod, status: { phase: 'Succeeded' } })),
    async act(world) {
      await each(300, (at) => world.store.create('pods', aPod({ name: `p-${at}`, nodeName: 'pi-0', phase: 'Failed' })))
      await world.clock.advance(20_000)
    },
  },
]

function collector(needs: WorkloadNeeds): readonly Loop[] {
  return [garbageCollector({ ...needs, resources: builtInKinds })]
}
