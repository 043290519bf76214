import { test } from 'tap'
import { csiNodeDrivers, csiNodePatch, csiNodeWrites, topologyCollisions } from './node-drivers.ts'

test('the CSINode has the drivers, and a changed one is taken away before it is written again', async (t) => {
  const node = (drivers: ReturnType<typeof csiNodeDrivers>) =>
    ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: 'n' }, spec: { drivers } }) as const
  const [a, b] = ['a', 'b'].map((name) => ({
    name,
    nodeID: 'n',
    topology: { 'x.example.com/rack': 'r' },
    maxVolumes: 3,
  }))
  if (a === undefined || b === undefined) return t.fail()
  const both = csiNodeDrivers([a, b])
  t.same(both[0], { name: 'a', nodeID: 'n', topologyKeys: ['x.example.com/rack'], allocatable: { count: 3 } })
  t.same(csiNodeDrivers([{ name: 'c', nodeID: 'n', topology: {} }]), [{ name: 'c', nodeID: 'n' }])
  t.same(csiNodeWrites(undefined, both), [both])
  t.same(csiNodeWrites(node([...both].reverse()), both), [])
  t.same(csiNodeWrites(node(both), both.slice(1)), [both.slice(1)])
  const changed = csiNodeDrivers([{ ...a, nodeID: 'other' }, b])
  t.same(csiNodeWrites(node(both), changed), [both.slice(1), changed])
  t.same(csiNodeWrites(node(both.slice(0, 1)), both), [both], 'a new one is added in one write')
  const swapped = csiNodeDrivers([
    { ...a, maxVolumes: 4 },
    { ...b, name: 'c' },
  ])
  t.same(csiNodeWrites(node(both), swapped), [[both[1]], swapped])
  t.same(csiNodeWrites({ ...node([]), spec: { drivers: [] } }, []), [])
  t.same(csiNodeWrites(undefined, []), [[]], 'without drivers it is written too')
})

test('the Node gets the labels of a topology, and one that has another value stays', async (t) => {
  const drivers = [{ name: 'a', nodeID: 'n', topology: { 'x.example.com/rack': 'r' } }]
  const annotations = { 'csi.volume.kubernetes.io/nodeid': '{"a":"n"}' }
  t.same(csiNodePatch({}, drivers), { metadata: { labels: { 'x.example.com/rack': 'r' }, annotations } })
  t.equal(csiNodePatch({ labels: { 'x.example.com/rack': 'r' }, annotations }, drivers), undefined)
  const labels = { 'x.example.com/rack': 's' }
  t.equal(csiNodePatch({ labels, annotations }, drivers), undefined)
  t.match(topologyCollisions({ labels }, drivers), [
    /^detected topology value collision: driver reported "x.example.com\/rack":"r" but existing label is "x.example.com\/rack":"s"$/,
  ])
  t.same(topologyCollisions({}, drivers), [])
  t.same(topologyCollisions({ labels: { 'x.example.com/rack': 'r' } }, drivers), [])
  t.equal(csiNodePatch({}, []), undefined)
  t.same(csiNodePatch({ labels }, drivers), { metadata: { annotations } }, 'the label stays')
  t.same(csiNodePatch({ annotations }, []), { metadata: { annotations: { 'csi.volume.kubernetes.io/nodeid': null } } })
})

test('the CSINode has the keys of a topology in order, and a limit of volumes if the driver has one', async (t) => {
  const topology = { 'x.example.com/rack': 'r', 'topology.kubernetes.io/zone': 'z' }
  t.same(csiNodeDrivers([{ name: 'a', nodeID: 'n', topology }]), [
    { name: 'a', nodeID: 'n', topologyKeys: ['topology.kubernetes.io/zone', 'x.example.com/rack'] },
  ])
  t.same(csiNodeDrivers([]), [])
})

test('the annotation has the ID of each driver, and each missing label is added', async (t) => {
  const drivers = ['a', 'b'].map((name) => ({
    name,
    nodeID: `n-${name}`,
    topology: { [`x.example.com/${name}`]: '1' },
  }))
  t.same(csiNodePatch({ labels: { 'x.example.com/a': '1' } }, drivers), {
    metadata: {
      labels: { 'x.example.com/b': '1' },
      annotations: { 'csi.volume.kubernetes.io/nodeid': '{"a":"n-a","b":"n-b"}' },
    },
  })
})
