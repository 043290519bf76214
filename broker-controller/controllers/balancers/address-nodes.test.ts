import { test } from 'tap'
import { chooseNodes, type HeldAddresses } from './address-nodes.ts'
import type { BalancerNode } from './balancer-nodes.ts'

function node(name: string, given: Partial<BalancerNode> = {}): BalancerNode {
  const address = `192.0.2.${name.slice(3)}`
  return { name, address, segment: '192.0.2.0/24', isReady: true, isExcluded: false, ...given }
}
const three = ['pi-1', 'pi-2', 'pi-3'].map((name) => node(name))
const dual = three.map((one) => ({ ...one, ipv6: `2001:db8::${one.name.slice(3)}` }))

const held = (ip: string, given: Partial<HeldAddresses> = {}): HeldAddresses => ({
  key: `shop/${ip}`,
  policy: 'Cluster',
  endpointNodes: new Set(),
  ips: [ip],
  ...given,
})
function chosen(nodes: readonly BalancerNode[], ...addresses: readonly HeldAddresses[]) {
  const found = chooseNodes(addresses, nodes)
  return addresses.map(({ key }) => found.get(key))
}

test('a node keeps an address as long as it can, and gives it up only to one that can have it', async (t) => {
  const [first, second] = [node('pi-1'), node('pi-2')]
  const lost = { isReady: false }
  const excluded = { isExcluded: true }
  const on = held('192.0.2.240', { node: 'pi-1' })
  const cases: readonly (readonly [title: string, readonly BalancerNode[], HeldAddresses, expected?: string])[] = [
    ['both are ready', [first, second], on, 'pi-1'],
    ['it is not ready', [node('pi-1', lost), second], on, 'pi-2'],
    ['it is excluded', [node('pi-1', excluded), second], on, 'pi-2'],
    ['none is ready', [node('pi-1', lost), node('pi-2', lost)], on, 'pi-1'],
    ['all are excluded', [node('pi-1', excluded), node('pi-2', excluded)], on, 'pi-1'],
    ['it is gone', [second], on, 'pi-2'],
    ['it is gone, and the other is not ready', [node('pi-2', lost)], on],
    ['no node had it', [second], held('192.0.2.240'), 'pi-2'],
    ['no nodes', [], held('192.0.2.240')],
  ]
  for (const [title, nodes, one, expected] of cases) t.same(chosen(nodes, one), [expected], title)
})

test('with the policy Local the node has an endpoint, where a node that can have it does', async (t) => {
  const local = (endpoints: readonly string[], before?: string) =>
    held('192.0.2.240', { policy: 'Local', endpointNodes: new Set(endpoints), ...(before && { node: before }) })
  t.same(chosen(three, local(['pi-3'], 'pi-1')), ['pi-3'])
  t.same(chosen(three, local(['pi-3', 'pi-1'], 'pi-1')), ['pi-1'])
  t.same(chosen(three, local([], 'pi-1')), ['pi-1'], 'there is none')
  t.same(chosen(three, local(['pi-9'], 'pi-1')), ['pi-1'], 'its node is gone')
  t.same(chosen(three, local([])), [undefined])
  t.same(chosen([node('pi-1'), node('pi-2', { isReady: false })], local(['pi-2'], 'pi-1')), ['pi-1'])
})

test('nodes have as many addresses as each other, those that stay counted first', async (t) => {
  const ips = Array.from({ length: 9 }, (_, index) => `192.0.2.${240 + index}`)
  const counts = (names: readonly (string | undefined)[]) =>
    three.map(({ name }) => names.filter((one) => one === name).length)
  t.same(counts(chosen(three, ...ips.map((ip) => held(ip)))), [3, 3, 3])
  const [moving, ...staying] = ips.map((ip, index) => held(ip, index === 0 ? {} : { node: 'pi-1' }))
  if (moving === undefined) throw new Error('no address')
  t.not(chosen(three, moving, ...staying)[0], 'pi-1', 'wherever it is in the list')
})

test('the same addresses get the same nodes, in whatever order the nodes are', async (t) => {
  const one = held('192.0.2.240')
  t.same(chosen(three.toReversed(), one), chosen(three, one))
})

test('addresses of a node that is lost do not all move to the same one', async (t) => {
  const ips = Array.from({ length: 4 }, (_, index) => `192.0.2.${240 + index}`)
  const lost = [node('pi-1', { isReady: false }), node('pi-2'), node('pi-3')]
  const names = chosen(lost, ...ips.map((ip) => held(ip, { node: 'pi-1' })))
  t.same(names.toSorted(), ['pi-2', 'pi-2', 'pi-3', 'pi-3'])
})

test('an address belongs on the link of the nodes beside it, and anywhere where there are none', async (t) => {
  const far = node('pi-1', { address: '198.51.100.1', segment: '198.51.100.0/24' })
  const one = held('192.0.2.240', { node: 'pi-1' })
  t.same(chosen([far, node('pi-2')], one), ['pi-2'])
  t.same(chosen([far, node('pi-2', { isReady: false })], one), ['pi-1'], 'no node of the link can have it')
  t.same(chosen([far], held('192.0.2.240')), ['pi-1'])
})

test('addresses of both families have one node; the IPv4 address decides where none can have both', async (t) => {
  const both = (before?: string) =>
    held('2001:db8::240', { ips: ['2001:db8::240', '192.0.2.240'], ...(before && { node: before }) })
  const [first, second, third] = three
  const [withIPv6] = dual
  if (first === undefined || second === undefined || third === undefined || withIPv6 === undefined) {
    throw new Error('no nodes')
  }
  t.same(chosen([withIPv6, second, third], both('pi-2')), ['pi-1'], 'one has both')
  t.same(chosen(dual, both('pi-2')), ['pi-2'])
  t.same(chosen(three, both('pi-2')), ['pi-2'], 'none has IPv6')
  t.match(chosen(three, both()), [/^pi-/])
  t.same(chosen(three, held('2001:db8::240')), [undefined], 'a single IPv6 address needs a node with it')
  const far = { ...withIPv6, ipv6: '2001:db8:1::1', segment: 'far' }
  t.same(chosen([far, { ...second, ipv6: '2001:db8::2' }], held('2001:db8::240')), ['pi-2'], 'of the link')
})
