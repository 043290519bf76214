import { test } from 'tap'
import type { Event } from '../../../api/event.ts'
import type { Node } from '../../../api/node.ts'
import type { ContainerStatus, Pod } from '../../../api/pod.ts'
import type { BuiltInName, BuiltInTypes } from '../../../api/resources.ts'
import { aLease, aNode, aPod } from '../../../api/testing/builders.ts'
import { kinds } from '../../assembly/control-plane.ts'
import { humanDuration } from './cells.ts'
import { tableOf } from './tables.ts'

const nowMs = Date.parse('2026-01-01T00:10:00Z')
const options = { nowMs, listMeta: { resourceVersion: '7' }, includeObject: 'Metadata' } as const

const row = (resource: BuiltInName, object: BuiltInTypes[BuiltInName]) => {
  const { columnDefinitions, rows } = tableOf(kinds[resource], [object], options)
  const names = columnDefinitions.map(({ name }) => name)
  return Object.fromEntries((rows[0]?.cells ?? []).map((cell, index) => [names[index], cell]))
}

test('a duration is printed as kubectl does', async (t) => {
  const durations: [number, string][] = [
    [-2.5, '<invalid>'],
    [-1, '0s'],
    [119, '119s'],
    [120, '2m'],
    [125, '2m5s'],
    [600, '10m'],
    [10_799, '179m'],
    [10_800, '3h'],
    [12_000, '3h20m'],
    [28_800, '8h'],
    [172_799, '47h'],
    [172_800, '2d'],
    [180_000, '2d2h'],
    [8 * 86_400, '8d'],
    [700 * 86_400, '700d'],
    [731 * 86_400, '2y1d'],
    [730 * 86_400, '2y'],
    [9 * 365 * 86_400, '9y'],
  ]
  for (const [seconds, words] of durations) t.equal(humanDuration(seconds * 1000), words)
})

test('a table describes its columns, and the object of each row', async (t) => {
  const node = aNode()
  const table = tableOf(kinds.nodes, [node], options)
  t.match(table, { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata: { resourceVersion: '7' } })
  t.match(table.columnDefinitions[0], { name: 'Name', type: 'string', format: 'name', priority: 0 })
  t.equal(table.columnDefinitions.find(({ name }) => name === 'Internal-IP')?.priority, 1)
  t.same(table.rows[0]?.object, {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: node.metadata,
  })
  t.equal(tableOf(kinds.nodes, [node], { ...options, includeObject: 'Object' }).rows[0]?.object, node)
  t.notOk('object' in (tableOf(kinds.nodes, [node], { ...options, includeObject: 'None' }).rows[0] ?? {}))
})

test('the row of a node shows its status, its roles and its versions', async (t) => {
  t.same(row('nodes', aNode({ name: 'pi-01' })), {
    Name: 'pi-01',
    Status: 'Ready',
    Roles: '<none>',
    Age: '10m',
    Version: 'v1.32.4-bramble',
    'Internal-IP': '192.0.2.11',
    'External-IP': '<none>',
    'OS-Image': 'Debian GNU/Linux 12 (bookworm)',
    'Kernel-Version': '6.6.51+rpt-rpi-v8',
    'Container-Runtime': 'docker://27.3.1',
  })
  const seen = (node: Node, column: string) => row('nodes', node)[column]
  t.equal(seen(aNode({ ready: 'Unknown', unschedulable: true }), 'Status'), 'NotReady,SchedulingDisabled')
  t.equal(seen(aNode({ conditions: [] }), 'Status'), 'Unknown')
  const labels = {
    'node-role.kubernetes.io/worker': '',
    'node-role.kubernetes.io/edge': '',
    'kubernetes.io/role': 'db',
  }
  t.equal(seen(aNode({ labels }), 'Roles'), 'db,edge,worker')
  t.equal(seen({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' } }, 'OS-Image'), '<unknown>')
})

const running = (over: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'main',
  ready: true,
  restartCount: 0,
  image: 'i',
  imageID: 'i',
  state: { running: {} },
  ...over,
})
const podWith = (containerStatuses: readonly ContainerStatus[], status: Pod['status'] = {}) =>
  aPod({ phase: 'Running', status: { containerStatuses, ...status } })
const ready = { conditions: [{ type: 'Ready', status: 'True' }] } as const

test('the status of a pod sums up its containers in one word', async (t) => {
  const word = (pod: Pod) => row('pods', pod)['Status']
  t.equal(word(aPod()), 'Pending')
  t.equal(word(podWith([running()])), 'Running')
  t.equal(word(aPod({ phase: 'Failed', status: { reason: 'Evicted' } })), 'Evicted')
  const waiting = running({ ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } })
  t.equal(word(podWith([waiting])), 'CrashLoopBackOff')
  t.equal(word(podWith([waiting, running({ state: { waiting: { reason: 'ErrImagePull' } } })])), 'CrashLoopBackOff')
  const done = running({ ready: false, state: { terminated: { exitCode: 0, reason: 'Completed' } } })
  t.equal(word(podWith([done])), 'Completed')
  t.equal(word(podWith([done, running()], ready)), 'Running', 'another one is still there')
  t.equal(word(podWith([done, running()])), 'NotReady')
  t.equal(word(podWith([running({ state: { terminated: { exitCode: 3 } } })])), 'ExitCode:3')
  t.equal(word(podWith([running({ state: { terminated: { exitCode: 137, signal: 9 } } })])), 'Signal:9')
  const deleted = { deletionTimestamp: '2026-01-01T00:09:00Z' }
  t.equal(word(aPod({ metadata: deleted, phase: 'Running' })), 'Terminating')
  t.equal(word(aPod({ metadata: deleted, phase: 'Running', status: { reason: 'NodeLost' } })), 'Unknown')
  t.equal(word(aPod({ metadata: deleted, phase: 'Succeeded' })), 'Succeeded')
  const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' } as const
  t.equal(word(aPod({ status: { conditions: [gated] } })), 'SchedulingGated')
})

test('a pod that initializes shows its progress', async (t) => {
  const initContainers = [{ name: 'one' }, { name: 'two' }]
  const word = (...initContainerStatuses: ContainerStatus[]) =>
    row('pods', aPod({ spec: { initContainers }, status: { initContainerStatuses } }))['Status']
  const over = running({ name: 'one', state: { terminated: { exitCode: 0 } } })
  t.equal(word(running({ name: 'one' })), 'Init:0/2')
  t.equal(word(over, running({ name: 'two', state: { waiting: { reason: 'PodInitializing' } } })), 'Init:1/2')
  t.equal(word(over, running({ name: 'two', state: { waiting: { reason: 'ErrImagePull' } } })), 'Init:ErrImagePull')
  t.equal(word(over, running({ name: 'two', state: { terminated: { exitCode: 2 } } })), 'Init:ExitCode:2')
})

test('the row of a pod shows ready containers, restarts and addresses', async (t) => {
  const crashed = { terminated: { exitCode: 1, finishedAt: '2026-01-01T00:05:00Z' } }
  const pod = aPod({
    nodeName: 'pi-01',
    phase: 'Running',
    containers: [{ name: 'main' }, { name: 'side' }],
    status: {
      podIP: '10.1.0.5',
      containerStatuses: [running({ restartCount: 2, lastState: crashed }), running({ name: 'side', ready: false })],
    },
  })
  t.same(row('pods', pod), {
    Name: 'a-pod',
    Ready: '1/2',
    Status: 'Running',
    Restarts: '2 (5m ago)',
    Age: '10m',
    IP: '10.1.0.5',
    Node: 'pi-01',
    'Nominated Node': '<none>',
    'Readiness Gates': '<none>',
  })
  const over = tableOf(kinds.pods, [aPod({ phase: 'Succeeded' })], options)
  t.match(over.rows[0], { conditions: [{ type: 'Completed', status: 'True', reason: 'Succeeded' }] })
})

test('the row of an event shows its time, reason and object', async (t) => {
  const event: Event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'pi-01.1', namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'pi-01' },
    reason: 'NodeReady',
    message: ' Node is ready\n',
    type: 'Normal',
    firstTimestamp: '2026-01-01T00:05:00Z',
    lastTimestamp: '2026-01-01T00:09:00Z',
    source: { component: 'kubelet', host: 'pi-01' },
  }
  t.same(row('events', event), {
    'Last Seen': '60s',
    Type: 'Normal',
    Reason: 'NodeReady',
    Object: 'node/pi-01',
    Subobject: '',
    Source: 'kubelet, pi-01',
    Message: 'Node is ready',
    'First Seen': '5m',
    Count: 1,
    Name: 'pi-01.1',
  })
})

test('the other kinds have their few columns', async (t) => {
  const metadata = { name: 'x', creationTimestamp: '2026-01-01T00:00:00Z' }
  t.same(row('leases', aLease()), { Name: 'pi-01', Holder: 'pi-01', Age: '10m' })
  t.same(row('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata, status: { phase: 'Active' } }), {
    Name: 'x',
    Status: 'Active',
    Age: '10m',
  })
  t.same(
    row('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' }, binaryData: { b: '' } }),
    {
      Name: 'x',
      Data: 2,
      Age: '10m',
    },
  )
  t.same(row('secrets', { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: { a: 'c2VjcmV0' } }), {
    Name: 'x',
    Type: 'Opaque',
    Data: 1,
    Age: '10m',
  })
  const request = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata,
    spec: {
      request: '',
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      username: 'system:bootstrap:abcdef',
    },
    status: { conditions: [{ type: 'Approved', status: 'True' }], certificate: 'LS0t' },
  } as const
  t.same(row('certificatesigningrequests', request), {
    Name: 'x',
    Age: '10m',
    SignerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    Requestor: 'system:bootstrap:abcdef',
    RequestedDuration: '<none>',
    Condition: 'Approved,Issued',
  })
  t.equal(row('certificatesigningrequests', { ...request, status: {} })['Condition'], 'Pending')
  const important = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata, value: 1000 } as const
  t.same(row('priorityclasses', { ...important, preemptionPolicy: 'Never' }), {
    Name: 'x',
    Value: 1000,
    'Global-Default': false,
    Age: '10m',
    PreemptionPolicy: 'Never',
  })
})
