import { test } from 'tap'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { proxyAddresses } from './ingress-addresses.ts'

test('an Ingress has the addresses of at most 64 nodes', async (t) => {
  const ready = aPod()
  const pods = Array.from({ length: 100 }, (_, index) => ({
    ...ready,
    spec: { ...ready.spec, nodeName: `pi-${index + 100}` },
    status: { ...ready.status, conditions: [{ type: 'Ready', status: 'True' as const }] },
  }))
  const found = proxyAddresses(pods, (name) => aNode({ name, address: `192.168.1.${name.slice(3)}` }))
  t.equal(found.length, 64)
  t.same([found[0], found.at(-1)], ['192.168.1.100', '192.168.1.163'])
})
