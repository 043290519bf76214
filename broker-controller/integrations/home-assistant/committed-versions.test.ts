import { test } from 'tap'
import { agentUpdateAnnotation } from '../../../api/node/agent-update.ts'
import type { NodeCondition } from '../../../api/node.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { committedVersions } from './committed-versions.ts'

const running = (sequence: number, ready: NodeCondition['status'] = 'True') =>
  aNode({ ready, annotations: { [agentUpdateAnnotation]: JSON.stringify({ version: `1.${sequence}.0`, sequence }) } })

test('the lowest version of the connected nodes is that of the fleet', async (t) => {
  const versions = committedVersions()
  t.equal(versions.lowest(), undefined)
  versions.count(aNode(), 1)
  t.equal(versions.lowest(), undefined, 'an agent that does not update itself does not count')
  const [away, old, other, fresh] = [running(3, 'Unknown'), running(4, 'False'), running(4), running(5)]
  for (const node of [away, fresh, old, other]) versions.count(node, 1)
  t.same(versions.lowest(), { version: '1.4.0', sequence: 4 })
  versions.count(old, -1)
  t.same(versions.lowest(), { version: '1.4.0', sequence: 4 }, 'another one has it')
  versions.count(other, -1)
  t.same(versions.lowest(), { version: '1.5.0', sequence: 5 })
  versions.count(fresh, -1)
  t.same(versions.lowest(), { version: '1.3.0', sequence: 3 }, 'none is connected')
  versions.count(away, -1)
  t.equal(versions.lowest(), undefined)
})
