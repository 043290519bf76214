import { test } from 'tap'
import { utc } from '../../../api/batch/time-zone.ts'
import type { Namespace } from '../../../api/namespace.ts'
import type { Pod } from '../../../api/pod.ts'
import { aBudget, aLease, aNode, aPod } from '../../../api/testing/builders.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { metricsText } from '../../../daemon/prometheus-text.ts'
import { readMetrics } from '../../../daemon/testing/prometheus-parser.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { type FleetObjects, fleetFamilies, fleetMetrics } from './fleet-metrics.ts'

const none: FleetObjects = {
  ...{ nodes: [], pods: [], namespaces: [], leases: [], budgets: [], volumes: [], claims: [], classes: [] },
  ...{ reportOf: () => undefined, nowMs: 0, zone: utc },
}

function samplesOf(objects: Partial<FleetObjects>) {
  const families = readMetrics([...metricsText(fleetFamilies({ ...none, ...objects }))].join(''))
  return (name: string) => families.get(name)?.samples ?? []
}

test('a node has the metrics of kube-state-metrics', async (t) => {
  const plain = aNode({ name: 'pi-1', ready: 'True' })
  const node = {
    ...plain,
    metadata: { ...plain.metadata, labels: { 'node-role.kubernetes.io/worker': '', secret: 'own' } },
    spec: { unschedulable: true, taints: [{ key: 'a/b', value: 'c', effect: 'NoSchedule' }] },
    status: { ...plain.status, capacity: { cpu: '3500m', memory: '1Gi', pods: '110', 'example.com/cam': '2' } },
  } as const
  const samples = samplesOf({ nodes: [node] })
  t.match(samples('kube_node_info'), [{ labels: { node: 'pi-1', kubelet_version: /./ }, value: 1 }])
  t.same(samples('kube_node_role'), [{ labels: { node: 'pi-1', role: 'worker' }, value: 1 }])
  t.same(samples('kube_node_spec_unschedulable'), [{ labels: { node: 'pi-1' }, value: 1 }])
  t.same(samples('kube_node_spec_taint'), [
    { labels: { node: 'pi-1', key: 'a/b', value: 'c', effect: 'NoSchedule' }, value: 1 },
  ])
  t.same(
    samples('kube_node_status_condition').filter(({ labels }) => labels['condition'] === 'Ready'),
    ['true', 'false', 'unknown'].map((status) => ({
      labels: { node: 'pi-1', condition: 'Ready', status },
      value: status === 'true' ? 1 : 0,
    })),
  )
  t.same(
    samples('kube_node_status_capacity').map(({ labels, value }) => [labels['resource'], labels['unit'], value]),
    [
      ['cpu', 'core', 3.5],
      ['memory', 'byte', 2 ** 30],
      ['pods', 'integer', 110],
      ['example_com_cam', 'integer', 2],
    ],
  )
})

test('a pod and its containers have the metrics of kube-state-metrics', async (t) => {
  const plain = aPod({ name: 'web', nodeName: 'pi-1' })
  const pod: Pod = {
    ...plain,
    metadata: {
      ...plain.metadata,
      uid: 'u1',
      annotations: { anything: 'a user writes' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'web', uid: 'o1', controller: true }],
    },
    spec: {
      ...plain.spec,
      containers: [{ name: 'server', image: 'web:1', resources: { requests: { cpu: '250m', memory: '64Mi' } } }],
    },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [
        {
          name: 'server',
          ready: false,
          restartCount: 3,
          image: 'web:1',
          imageID: 'sha256:1',
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 1, reason: 'not one word' } },
        },
      ],
    },
  }
  const samples = samplesOf({ pods: [pod] })
  const base = { namespace: 'default', pod: 'web', uid: 'u1' }
  const inside = { ...base, container: 'server' }
  t.match(samples('kube_pod_info'), [{ labels: { ...base, node: 'pi-1', created_by_kind: 'DaemonSet' }, value: 1 }])
  t.same(
    samples('kube_pod_status_phase').filter(({ value }) => value === 1),
    [{ labels: { ...base, phase: 'Running' }, value: 1 }],
  )
  t.equal(samples('kube_pod_status_phase').length, 5)
  t.same(samples('kube_pod_status_ready')[1], { labels: { ...base, condition: 'false' }, value: 1 })
  t.same(samples('kube_pod_container_status_restarts_total'), [{ labels: inside, value: 3 }])
  t.same(samples('kube_pod_container_status_waiting_reason'), [
    { labels: { ...inside, reason: 'CrashLoopBackOff' }, value: 1 },
  ])
  t.match(samples('kube_pod_container_status_last_terminated_reason'), [{ labels: { reason: 'Other' } }])
  t.same(samples('kube_pod_container_resource_requests'), [
    { labels: { ...inside, node: 'pi-1', resource: 'cpu', unit: 'core' }, value: 0.25 },
    { labels: { ...inside, node: 'pi-1', resource: 'memory', unit: 'byte' }, value: 64 * 2 ** 20 },
  ])
  t.notOk(JSON.stringify(samples('kube_pod_info')).includes('a user writes'))
})

function aNamespace(name: string, phase?: string): Namespace {
  const metadata = { name, creationTimestamp: '2026-01-01T00:00:00Z' }
  return { apiVersion: 'v1', kind: 'Namespace', metadata, ...(phase !== undefined && { status: { phase } }) }
}

test('a namespace has its creation time and its phase; without a status it is Active', async (t) => {
  const samples = samplesOf({ namespaces: [aNamespace('old', 'Terminating'), aNamespace('new')] })
  t.same(samples('kube_namespace_created'), [
    { labels: { namespace: 'old' }, value: Date.parse('2026-01-01T00:00:00Z') / 1000 },
    { labels: { namespace: 'new' }, value: Date.parse('2026-01-01T00:00:00Z') / 1000 },
  ])
  t.same(samples('kube_namespace_status_phase'), [
    { labels: { namespace: 'old', phase: 'Active' }, value: 0 },
    { labels: { namespace: 'old', phase: 'Terminating' }, value: 1 },
    { labels: { namespace: 'new', phase: 'Active' }, value: 1 },
    { labels: { namespace: 'new', phase: 'Terminating' }, value: 0 },
  ])
})

test('a lease has the time of its renewal and its holder; one that was never renewed has no metric', async (t) => {
  const { spec: _, ...empty } = aLease({ name: 'never-held' })
  const samples = samplesOf({ leases: [aLease({ name: 'pi-1', renewTime: '2026-01-01T00:00:01.500000Z' }), empty] })
  t.same(samples('kube_lease_renew_time'), [
    {
      labels: { lease: 'pi-1', namespace: 'kube-node-lease', lease_holder: 'pi-1' },
      value: Date.parse('2026-01-01T00:00:01.500Z') / 1000,
    },
  ])
})

test('a disruption budget has the counts of its status, and no metric before it was observed', async (t) => {
  const counts = { currentHealthy: 3, desiredHealthy: 2, expectedPods: 4, disruptionsAllowed: 1 }
  const { status: _, ...unobserved } = aBudget({ name: 'unobserved' })
  const samples = samplesOf({ budgets: [aBudget({ name: 'web', status: counts }), unobserved] })
  const labels = { namespace: 'default', poddisruptionbudget: 'web' }
  t.same(samples('kube_poddisruptionbudget_status_current_healthy'), [{ labels, value: 3 }])
  t.same(samples('kube_poddisruptionbudget_status_desired_healthy'), [{ labels, value: 2 }])
  t.same(samples('kube_poddisruptionbudget_status_expected_pods'), [{ labels, value: 4 }])
  t.same(samples('kube_poddisruptionbudget_status_pod_disruptions_allowed'), [{ labels, value: 1 }])
})

test('the metrics of a store are those of all its objects, with a turn for others between two pieces', async (t) => {
  const store = memoryStore({ clock: systemClock })
  for (let pod = 0; pod < 400; pod++) await store.create('pods', aPod({ name: `web-${pod}` }))
  await store.create('nodes', aNode({ name: 'pi-1' }))
  await store.create('namespaces', aNamespace('shop'))
  await store.create('leases', aLease({ name: 'pi-1' }))
  await store.create('poddisruptionbudgets', aBudget({ name: 'web' }))
  let turns = 0
  const others = setInterval(() => turns++, 0)
  t.teardown(() => clearInterval(others))
  const pieces: string[] = []
  for await (const piece of fleetMetrics({ store, clock: systemClock })) pieces.push(piece)
  const families = readMetrics(pieces.join(''))
  t.equal(families.get('kube_pod_info')?.samples.length, 400)
  t.match(families.get('kube_node_info')?.samples, [{ labels: { node: 'pi-1' } }])
  t.match(families.get('kube_namespace_created')?.samples, [{ labels: { namespace: 'shop' } }])
  t.match(families.get('kube_lease_renew_time')?.samples, [{ labels: { lease: 'pi-1' } }])
  t.match(families.get('kube_poddisruptionbudget_status_expected_pods')?.samples, [
    { labels: { poddisruptionbudget: 'web' } },
  ])
  t.ok(turns > 0 && pieces.length > 1)
})
