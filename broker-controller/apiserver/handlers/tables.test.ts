import { test } from 'tap'
import type { BuiltInName, BuiltInTypes } from '../../../api/resources.ts'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import { kinds } from '../../assembly/control-plane.ts'
import { tableOf } from './tables.ts'

const nowMs = Date.parse('2026-01-01T00:10:00Z')
const options = { nowMs, listMeta: { resourceVersion: '7' }, includeObject: 'Metadata' } as const

const row = (resource: BuiltInName, object: BuiltInTypes[BuiltInName]) => {
  const { columnDefinitions, rows } = tableOf(kinds[resource], [object], options)
  const names = columnDefinitions.map(({ name }) => name)
  return Object.fromEntries((rows[0]?.cells ?? []).map((cell, index) => [names[index], cell]))
}

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
