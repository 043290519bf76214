import { test } from 'tap'
import type { CSINode, CSINodeDriver } from '../../../../api/storage/csi-node.ts'
import { causes, create, update } from '../../../testing/admitting.ts'

const apiVersion = 'storage.k8s.io/v1'
const node = (...drivers: readonly CSINodeDriver[]): CSINode => ({
  apiVersion,
  kind: 'CSINode',
  metadata: { name: 'pi-01' },
  spec: { drivers },
})

test('a node names each of its drivers once, with its own id in that driver', async (t) => {
  const wrong = (...drivers: readonly CSINodeDriver[]) => causes(() => create('csinodes', node(...drivers)))
  const one: CSINodeDriver = { name: 'd', nodeID: 'n' }
  t.same(wrong(one, { ...one, name: 'e', allocatable: { count: 0 }, topologyKeys: ['example.com/zone'] }), [])
  t.same(wrong(one, one), ['spec.drivers[1].name: Duplicate value: "d"'])
  t.same(wrong({ ...one, nodeID: '' }), ['spec.drivers[0].nodeID: Required value'])
  t.same(wrong({ ...one, nodeID: 'x'.repeat(256) }), [])
  t.match(wrong({ ...one, nodeID: 'x'.repeat(257) }), [/nodeID: Invalid value: .*: must be 256 characters or less$/])
  t.same(wrong({ ...one, allocatable: { count: -1 } }), [
    'spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0',
  ])
  t.match(wrong({ ...one, topologyKeys: ['', 'a', 'a', '-'] }), [
    'spec.drivers[0]: Required value',
    'spec.drivers[0]: Duplicate value: "a"',
    /^spec\.drivers\[0\]: Invalid value: "-"/,
  ])
})

test('a driver of a node is added and removed, and not changed', async (t) => {
  const one: CSINodeDriver = { name: 'd', nodeID: 'n' }
  const old = node(one)
  t.same(
    causes(() => update('csinodes', old, node(one, { name: 'e', nodeID: 'n' }))),
    [],
  )
  t.same(
    causes(() => update('csinodes', old, node())),
    [],
  )
  t.match(
    causes(() => update('csinodes', old, node({ ...one, nodeID: 'm' }))),
    [/^CSINodeDriver: Invalid value: .*: field is immutable$/],
  )
})

test('the name of a driver of a node is that of a driver', async (t) => {
  const wrong = (name: string) => causes(() => create('csinodes', node({ name, nodeID: 'n' })))
  t.same(wrong('Disk.example.com'), [])
  t.match(wrong(''), ['spec.drivers[0].name: Required value', /^spec\.drivers\[0\]\.name: Invalid value: ""/])
  t.same(wrong('x'.repeat(63)), [])
  t.match(wrong('x'.repeat(64)), ['spec.drivers[0].name: Too long: may not be more than 63 bytes'])
})

test('what a driver of a node can attach stays', async (t) => {
  const one: CSINodeDriver = { name: 'd', nodeID: 'n', allocatable: { count: 2 }, topologyKeys: ['zone'] }
  const changed = (more: Partial<CSINodeDriver>) =>
    causes(() => update('csinodes', node(one), node({ ...one, ...more })))
  t.same(changed({}), [])
  for (const more of [{ allocatable: { count: 3 } }, { topologyKeys: ['zone', 'region'] }])
    t.match(changed(more), [/^CSINodeDriver: Invalid value: .*: field is immutable$/])
})
