import { test } from 'tap'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { proxyAddresses } from './ingress-addresses.ts'

type Given = {
  readonly podIPs?: readonly string[]
  readonly podCIDRs?: string[]
  readonly internal?: readonly string[]
}

/** The addresses of Ingresses with a proxy that is ready on each of these nodes. */
function shown(nodes: Readonly<Record<string, Given>>, ipv6 = true): readonly string[] {
  const pods = Object.entries(nodes).map(([nodeName, { podIPs = ['10.244.1.5', 'fd00:10:244:1::5'] }]) => {
    const pod = aPod({ name: `haproxy-${nodeName}` })
    const conditions = [{ type: 'Ready', status: 'True' as const }]
    return {
      ...pod,
      spec: { ...pod.spec, nodeName },
      status: { ...pod.status, conditions, podIPs: podIPs.map((ip) => ({ ip })) },
    }
  })
  return proxyAddresses(
    pods,
    (name) => {
      const { podCIDRs = ['10.244.1.0/24', 'fd00:10:244:1::/64'], internal = [] } = nodes[name] ?? {}
      const node = aNode({ name, spec: { podCIDRs } })
      const addresses = internal.map((address) => ({ type: 'InternalIP', address }) as const)
      return { ...node, status: { ...node.status, addresses } }
    },
    ipv6,
  )
}

const numbered = (count: number, internal: (number: number) => readonly string[]) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`pi-${index + 100}`, { internal: internal(index + 100) }]),
  )

test('an Ingress has the addresses of at most 64 nodes', async (t) => {
  const found = shown(
    numbered(100, (number) => [`192.168.1.${number}`]),
    false,
  )
  t.equal(found.length, 64)
  t.same([found[0], found.at(-1)], ['192.168.1.100', '192.168.1.163'])
})

test('with IPv6 an Ingress has both addresses of at most 32 nodes, those of IPv4 first', async (t) => {
  const found = shown(numbered(100, (number) => [`192.168.1.${number}`, `fd00:7::${number}`]))
  t.equal(found.length, 64)
  t.same([found[0], found[31], found[32], found[63]], ['192.168.1.100', '192.168.1.131', 'fd00:7::100', 'fd00:7::131'])
})

test('an IPv6 address is shown where clients reach the proxy by it', async (t) => {
  const internal = ['192.168.1.5', 'FD00:7:0::5']
  t.same(shown({ 'pi-1': { internal } }), ['192.168.1.5', 'fd00:7::5'])
  t.same(shown({ 'pi-1': { internal } }, false), ['192.168.1.5'], 'the fleet has no IPv6 ranges')
  t.same(shown({ 'pi-1': { internal, podCIDRs: ['10.244.1.0/24'] } }), ['192.168.1.5'], 'nor has the node')
  t.same(shown({ 'pi-1': { internal, podIPs: ['10.244.1.5'] } }), ['192.168.1.5'], 'a proxy from before')
  t.same(shown({ 'pi-1': { internal: ['192.168.1.5', 'fe80::5'] } }), ['192.168.1.5'], 'an address of the link')
  t.same(shown({ 'pi-1': { internal: ['fd00:7::5'] } }), [], 'a node without IPv4 is in no network of pods')
})
