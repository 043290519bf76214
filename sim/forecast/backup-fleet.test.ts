import { test } from 'tap'
import type { StoredRow } from '../world/store-file.ts'
import { fleetOfBackup } from './backup-fleet.ts'

const row = (resource: string, name: string, object: object | string): StoredRow => {
  const [namespace, version] = [resource === 'nodes' ? '' : 'default', 7]
  return { resource, namespace, name, version, body: typeof object === 'string' ? object : JSON.stringify(object) }
}
const node = row('nodes', 'pi-1', {
  metadata: {
    name: 'pi-1',
    labels: { 'topology.kubernetes.io/zone': 'house' },
    annotations: { 'bramble.dev/hardware-identity': '{"boardSerial":"1000","machineID":"m1"}' },
  },
  spec: { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] },
  status: {
    capacity: { cpu: '4', memory: '2Gi', 'ephemeral-storage': '20Gi' },
    nodeInfo: { architecture: 'amd64', machineID: 'm1', systemUUID: 's1' },
  },
})
const pod = (name: string, more: object, annotations: object = {}) =>
  row('pods', name, {
    kind: 'Pod',
    metadata: { name, namespace: 'default', annotations },
    spec: {
      nodeName: 'pi-1',
      containers: [{ name: 'main', env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'key', key: 'token' } } }] }],
    },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: 'True' },
      ],
    },
    ...more,
  })

test('the machines of a backup have their size, their zone and their hardware', (t) => {
  const { machines } = fleetOfBackup({ rows: [node], reserved: 9 }, '2026-03-01T12:00:00Z')
  t.match(machines, [
    {
      ...{ name: 'pi-1', cpus: 4, memoryBytes: 2 * 1024 ** 3, storageBytes: 20 * 1024 ** 3, architecture: 'amd64' },
      labels: { 'topology.kubernetes.io/zone': 'house' },
      hardware: { boardSerial: '1000', machineID: 'm1' },
    },
  ])
  t.end()
})

test('the simulation begins with all machines on, and with pods that start', (t) => {
  const rows = [
    node,
    pod('web', {}),
    pod('done', { status: { phase: 'Succeeded' } }),
    pod('static', {}, { 'kubernetes.io/config.mirror': 'x' }),
    pod('leaving', { metadata: { name: 'leaving', deletionTimestamp: '2026-03-01T12:00:00Z' } }),
    row('events', 'old', {}),
    row('rockets.example.com', 'r1', {}),
    row('validatingwebhookconfigurations', 'w1', {}),
    row('secrets', 'key', 'sealed, and not opened'),
  ]
  const { contents, notes } = fleetOfBackup({ rows, reserved: 9 }, '2026-03-01T12:00:00Z')
  const kept = new Map(contents.rows.map((one) => [`${one.resource}/${one.name}`, JSON.parse(one.body)]))
  t.same([...kept.keys()], ['nodes/pi-1', 'pods/web', 'pods/done', 'secrets/key'])
  t.same(kept.get('nodes/pi-1').spec, { unschedulable: true })
  t.same(kept.get('pods/web').status, { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] })
  t.equal(kept.get('pods/done').status.phase, 'Succeeded')
  t.same(kept.get('secrets/key').data, { token: 'c2ltdWxhdGVk' })
  t.equal(contents.reserved, 9)
  t.same(notes, [
    'Left out: rockets.example.com, validatingwebhookconfigurations',
    'Left out: 1 static pods of machines',
    '1 Secrets have no content but the keys that pods name',
  ])
  t.end()
})
