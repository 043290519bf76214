import { test } from 'tap'
import type { Node } from '../../../api/node.ts'
import { mostTopics, reportedAddresses } from './reported-addresses.ts'

const rules = { isRouted: true, podRanges: ['10.244.0.0/16'], serviceRanges: ['10.96.0.0/12'] }

function aNode(podCIDR: string): Node {
  const addresses = [{ type: 'InternalIP', address: '192.168.1.5' } as const]
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' }, spec: { podCIDR }, status: { addresses } }
}

test('of pods that come and go with wrong addresses only the latest are remembered', async (t) => {
  const lost: string[] = []
  const addresses = reportedAddresses({
    rules,
    bodies: { recordWrongAddresses: () => undefined },
    digests: { lost: (_, topic) => void lost.push(topic) },
    events: { record: async () => undefined },
  })
  const node = aNode('10.244.1.0/24')
  addresses.nodeChanged(node, undefined)
  for (let number = 0; number < mostTopics + 100; number++) {
    const uid = `u${number}`
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, namespace: 'default', uid } } as const
    const message = { node: 'pi-1', topic: { kind: 'pod', node: 'pi-1', uid }, body: '{}' } as const
    addresses.ofPod(message, { podIP: '10.244.9.9' }, { ...pod, spec: { containers: [] } }, node)
  }
  addresses.nodeChanged(aNode('10.244.9.0/24'), node)
  t.equal(lost.length, mostTopics)
  t.match(lost.at(-1), `u${mostTopics + 99}`)
})
