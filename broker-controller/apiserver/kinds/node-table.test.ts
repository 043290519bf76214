import { test } from 'tap'
import type { Node } from '../../../api/node.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { nodeTable } from './node-table.ts'

const nowMs = Date.parse('2026-01-01T00:10:00Z')
const row = (object: Node) => {
  const cells = nodeTable.cells(object, nowMs)
  return Object.fromEntries(nodeTable.columns.map(({ name }, index) => [name, cells[index]]))
}

test('the row of a node shows its status, its roles and its versions', async (t) => {
  t.same(row(aNode({ name: 'pi-01' })), {
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
  const seen = (node: Node, column: string) => row(node)[column]
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

test('every cell of a node is there before its first report', async (t) => {
  t.same(row({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' } }), {
    Name: 'new',
    Status: 'Unknown',
    Roles: '<none>',
    Age: '<unknown>',
    Version: '',
    'Internal-IP': '<none>',
    'External-IP': '<none>',
    'OS-Image': '<unknown>',
    'Kernel-Version': '<unknown>',
    'Container-Runtime': '<unknown>',
  })
})

test('a node shows the first address of each type, of either family', async (t) => {
  const addresses = [
    { type: 'Hostname', address: 'pi-01' },
    { type: 'InternalIP', address: '2001:db8::11' },
    { type: 'InternalIP', address: '192.0.2.11' },
    { type: 'ExternalIP', address: '198.51.100.11' },
  ] as const
  t.match(row(aNode({ status: { addresses } })), { 'Internal-IP': '2001:db8::11', 'External-IP': '198.51.100.11' })
})

test('a role without a name is left out, and each is shown once', async (t) => {
  const roles = (labels: { readonly [key: string]: string }) => row(aNode({ labels }))['Roles']
  t.equal(roles({ 'node-role.kubernetes.io/': '', 'kubernetes.io/role': '' }), '<none>')
  t.equal(roles({ 'node-role.kubernetes.io/edge': 'true', 'kubernetes.io/role': 'edge' }), 'edge')
})

test('a node that cannot run pods shows that beside whether it is ready', async (t) => {
  const status = (over: Parameters<typeof aNode>[0]) => row(aNode(over))['Status']
  t.equal(status({ ready: 'False' }), 'NotReady')
  t.equal(status({ unschedulable: true }), 'Ready,SchedulingDisabled')
  t.equal(status({ conditions: [], unschedulable: true }), 'Unknown,SchedulingDisabled')
})
