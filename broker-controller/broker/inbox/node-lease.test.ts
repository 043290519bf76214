import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { hasReported, isOwnedBy, leaseAfter, renewedLease, restoredLease } from './node-lease.ts'

const nowMs = Date.parse('2026-01-01T00:10:00.500Z')
const connection = (state: 'online' | 'lost' | 'goodbye', more = {}) =>
  ({ kind: 'connection', message: { state, bootID: 'boot-1', agentVersion: '1', ...more } }) as const

test('a heartbeat renews the lease by the controller’s clock and keeps the other fields', async (t) => {
  const first = leaseAfter('pi-1', undefined, { kind: 'heartbeat' }, { nowMs, address: '10.0.0.5' })
  t.match(first, {
    metadata: {
      name: 'pi-1',
      namespace: 'kube-node-lease',
      annotations: { 'bramble.dev/connection': 'online', 'bramble.dev/address': '10.0.0.5' },
    },
    spec: { holderIdentity: 'pi-1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:10:00.500000Z' },
  })
  const longer = { ...first, metadata: { ...first?.metadata, labels: { a: 'b' } }, spec: { leaseDurationSeconds: 90 } }
  const second = leaseAfter('pi-1', longer as typeof first, { kind: 'heartbeat' }, { nowMs })
  t.match(second, { metadata: { labels: { a: 'b' } }, spec: { leaseDurationSeconds: 90 } })
})

test('annotations of the lease show the state of the connection', async (t) => {
  const state = (lease: ReturnType<typeof leaseAfter>) => lease?.metadata.annotations
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  t.same(state(online), { 'bramble.dev/connection': 'online', 'bramble.dev/boot-id': 'boot-1' })
  const lost = leaseAfter('pi-1', online, connection('lost'), { nowMs: nowMs + 5000 })
  t.equal(state(lost)?.['bramble.dev/connection'], 'lost')
  t.equal(lost?.spec?.renewTime, online?.spec?.renewTime, 'a last will does not renew the lease')
  const goodbye = leaseAfter('pi-1', online, connection('goodbye', { reason: 'reboot', expectedBackSeconds: 90 }), {
    nowMs,
  })
  t.match(state(goodbye), { 'bramble.dev/connection-reason': 'reboot', 'bramble.dev/expected-back-seconds': '90' })
  t.same(
    state(leaseAfter('pi-1', goodbye, connection('online'), { nowMs })),
    state(online),
    'the reasons are removed when it is back',
  )
})

test('a connection message of an unknown time shows the state, and renews nothing', async (t) => {
  const retained = (state: 'online' | 'lost' | 'goodbye') => ({ ...connection(state), isRetained: true })
  const first = leaseAfter('pi-1', undefined, retained('online'), { nowMs })
  t.same(first?.metadata.annotations, { 'bramble.dev/connection': 'online', 'bramble.dev/boot-id': 'boot-1' })
  t.equal(first?.spec?.renewTime, undefined)
  const alive = leaseAfter('pi-1', first, { kind: 'heartbeat' }, { nowMs })
  const again = leaseAfter('pi-1', alive, retained('online'), { nowMs: nowMs + 60_000 })
  t.equal(again?.spec?.renewTime, alive?.spec?.renewTime)
  t.match(leaseAfter('pi-1', alive, retained('goodbye'), { nowMs })?.metadata.annotations, {
    'bramble.dev/connection': 'goodbye',
  })
})

test('a node announces the duration of its lease, within limits', async (t) => {
  const announced = (leaseDurationSeconds: number) =>
    leaseAfter('pi-1', undefined, connection('online', { leaseDurationSeconds }), { nowMs })
  t.equal(announced(240)?.spec?.leaseDurationSeconds, 240)
  t.equal(leaseAfter('pi-1', announced(240), { kind: 'heartbeat' }, { nowMs })?.spec?.leaseDurationSeconds, 240)
  for (const limit of [4, 3600]) t.equal(announced(limit)?.spec?.leaseDurationSeconds, limit)
  for (const odd of [-1, 0, 3, 3601, 1e9]) t.equal(announced(odd)?.spec?.leaseDurationSeconds, 40)
  t.equal(leaseAfter('pi-1', announced(240), connection('online'), { nowMs })?.spec?.leaseDurationSeconds, 240)
})

test('only a heartbeat and a connection that begins renew the lease and set address and certificate', async (t) => {
  const peer = { address: '10.0.0.5', certificate: { until: '2026-06-01T00:00:00Z', authority: 'a1' } }
  const first = leaseAfter('pi-1', undefined, connection('online'), { nowMs, ...peer })
  const annotations = {
    'bramble.dev/connection': 'online',
    'bramble.dev/boot-id': 'boot-1',
    'bramble.dev/address': '10.0.0.5',
    'bramble.dev/certificate-until': '2026-06-01T00:00:00Z',
    'bramble.dev/certificate-authority': 'a1',
  }
  t.strictSame(first?.metadata.annotations, annotations)
  t.equal(first?.spec?.renewTime, '2026-01-01T00:10:00.500000Z')

  const silent = leaseAfter('pi-1', first, { kind: 'heartbeat' }, { nowMs: nowMs + 10_000 })
  t.strictSame(silent?.metadata.annotations, annotations, 'a broker that gives neither changes neither')
  t.equal(silent?.spec?.renewTime, '2026-01-01T00:10:10.500000Z')

  const moved = { nowMs, address: '10.0.0.6', certificate: { until: '2026-09-01T00:00:00Z' } }
  const { 'bramble.dev/certificate-authority': _, ...others } = annotations
  t.strictSame(
    leaseAfter('pi-1', first, { kind: 'heartbeat' }, moved)?.metadata.annotations,
    { ...others, 'bramble.dev/address': '10.0.0.6', 'bramble.dev/certificate-until': '2026-09-01T00:00:00Z' },
    'a certificate of an authority that is not identified',
  )
  for (const end of [connection('lost'), connection('goodbye'), { kind: 'disconnected' } as const]) {
    const after = leaseAfter('pi-1', first, end, { ...moved, nowMs: nowMs + 10_000 })
    t.match(after?.metadata.annotations, {
      'bramble.dev/address': '10.0.0.5',
      'bramble.dev/certificate-authority': 'a1',
    })
    t.equal(after?.spec?.renewTime, '2026-01-01T00:10:00.500000Z')
  }
})

test('a heartbeat shows a lost node as online, and leaves a goodbye in place while the node shuts down', async (t) => {
  const beaten = (before: ReturnType<typeof leaseAfter>) =>
    leaseAfter('pi-1', before, { kind: 'heartbeat' }, { nowMs })?.metadata.annotations
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  t.strictSame(beaten(online), { 'bramble.dev/connection': 'online', 'bramble.dev/boot-id': 'boot-1' })
  t.strictSame(
    beaten(leaseAfter('pi-1', online, { kind: 'disconnected' }, { nowMs })),
    { 'bramble.dev/connection': 'online', 'bramble.dev/boot-id': 'boot-1' },
    'the reason is removed',
  )
  t.match(beaten(leaseAfter('pi-1', online, connection('goodbye', { reason: 'reboot' }), { nowMs })), {
    'bramble.dev/connection': 'goodbye',
    'bramble.dev/connection-reason': 'reboot',
  })
})

test('a lease without annotations or spec, as another client can write it, is completed', async (t) => {
  const bare = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'pi-1' } } as const
  t.equal(leaseAfter('pi-1', bare, { kind: 'disconnected' }, { nowMs }), undefined)
  t.equal(renewedLease(bare, nowMs), undefined)
  t.strictSame(leaseAfter('pi-1', bare, { kind: 'heartbeat' }, { nowMs }), {
    ...bare,
    metadata: { name: 'pi-1', annotations: { 'bramble.dev/connection': 'online' } },
    spec: { holderIdentity: 'pi-1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:10:00.500000Z' },
  })
})

test('a connection that ends is lost, unless the node published a goodbye', async (t) => {
  const after = (state: 'online' | 'goodbye') => {
    const before = leaseAfter('pi-1', undefined, connection(state), { nowMs })
    return leaseAfter('pi-1', before, { kind: 'disconnected' }, { nowMs })?.metadata.annotations
  }
  t.match(after('online'), { 'bramble.dev/connection': 'lost', 'bramble.dev/connection-reason': 'connection-closed' })
  t.equal(after('goodbye'), undefined)
  t.equal(leaseAfter('pi-1', undefined, { kind: 'disconnected' }, { nowMs }), undefined)
})

test('a last will after a goodbye does not make the node lost, until it is back', async (t) => {
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  const goodbye = leaseAfter('pi-1', online, connection('goodbye', { reason: 'reboot' }), { nowMs })
  t.equal(leaseAfter('pi-1', goodbye, connection('lost'), { nowMs }), undefined)
  const back = leaseAfter('pi-1', goodbye, connection('online'), { nowMs })
  const lost = leaseAfter('pi-1', back, connection('lost'), { nowMs })
  t.match(lost?.metadata.annotations, { 'bramble.dev/connection': 'lost' })
})

test('only the lease of a node that is online is renewed by its time alone', async (t) => {
  const online = leaseAfter('pi-1', undefined, connection('online'), { nowMs })
  if (online === undefined) return t.fail('no lease')
  t.same(renewedLease(online, nowMs + 10_000), {
    ...online,
    spec: { ...online.spec, renewTime: '2026-01-01T00:10:10.500000Z' },
  })
  const lost = leaseAfter('pi-1', online, connection('lost'), { nowMs })
  t.equal(lost && renewedLease(lost, nowMs), undefined)
})

test('the lease belongs to the Node of this uid, and is given to its successor', async (t) => {
  const owner = (uid: string) => ({ apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid })
  const after = (before: ReturnType<typeof leaseAfter>, nodeUID?: string) =>
    leaseAfter('pi-1', before, { kind: 'heartbeat' }, { nowMs, nodeUID })
  const orphan = after(undefined)
  t.equal(orphan?.metadata.ownerReferences, undefined)
  const first = after(orphan, 'uid-1')
  t.same(first?.metadata.ownerReferences, [owner('uid-1')])
  t.same(after(undefined, 'uid-1')?.metadata.ownerReferences, [owner('uid-1')])
  t.same(after(first)?.metadata.ownerReferences, [owner('uid-1')])
  t.same(after(first, 'uid-2')?.metadata.ownerReferences, [owner('uid-2')])
  if (first === undefined || orphan === undefined) return t.fail('no lease')
  const shared = { ...first, metadata: { ...first.metadata, ownerReferences: [owner('other'), owner('uid-1')] } }
  t.same(after(shared, 'uid-1')?.metadata.ownerReferences, shared.metadata.ownerReferences, 'other owners stay')
  t.same(
    [isOwnedBy(first, 'uid-1'), isOwnedBy(first, 'uid-2'), isOwnedBy(orphan, 'uid-1'), isOwnedBy(shared, 'uid-1')],
    [true, false, false, true],
  )
})

test('after a restart of the controller a node has a lease that was never renewed', async (t) => {
  const node = aNode({ name: 'pi-1' })
  const metadata = { ...node.metadata, uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '1' }
  t.same(restoredLease({ ...node, metadata }), {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: 'pi-1',
      namespace: 'kube-node-lease',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid: 'uid-1' }],
    },
    spec: { holderIdentity: 'pi-1' },
  })
})

test('a node has reported once its Ready condition is its own', async (t) => {
  const reported = (...conditions: readonly (readonly [string, string])[]) => {
    const all = conditions.map(([type, reason]) => ({ type, status: 'Unknown' as const, reason }))
    return hasReported({ ...aNode({ name: 'pi-1' }), status: { conditions: all } })
  }
  t.notOk(hasReported({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } }))
  t.notOk(hasReported({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' }, status: {} }))
  t.notOk(reported())
  t.notOk(reported(['Ready', 'NodeStatusNeverUpdated']), 'the node lifecycle controller wrote it')
  t.notOk(reported(['DockerUnhealthy', 'DockerHangs']))
  t.ok(reported(['DockerUnhealthy', 'DockerHangs'], ['Ready', 'KubeletReady']))
  t.ok(reported(['Ready', 'NodeStatusUnknown']), 'a report came before the silence')
})
