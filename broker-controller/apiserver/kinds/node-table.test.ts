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
