import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalPods } from '../policies/pod-isolation.ts'
import type { LocalPod } from '../policies/policy-rules.ts'
import type { RuleSet } from '../rule-set.ts'
import type { FlowTable } from '../services/flow-cleaner.ts'
import type { UdpFlow } from '../services/stale-flows.ts'
import { hostPortCleaner } from './host-port-cleaner.ts'
import { type HostPortRules, hostPortRules } from './host-port-rules.ts'

const node = 'fd00:7::1'
const pod = (ipv6: string, hostIP = '', protocol: 'udp' | 'tcp' = 'udp'): LocalPod => ({
  ...{ namespace: 'shop', name: 'log', ip: '10.244.1.5', ipv6, labels: {}, ports: [], isStatic: false },
  hostPorts: [{ protocol, port: 514, containerPort: 5514, hostIP }],
})
const flowTo = (endpoint: string, endpointPort = 5514, address = node): UdpFlow => ({
  ...{ address, port: 514, endpoint, endpointPort },
})

function running(t: Test, ...flows: UdpFlow[]) {
  const kernel = { flows, lists: 0, failing: false }
  const localPods = cell<LocalPods>({ pods: new Map(), isComplete: true })
  const hostPorts = { IPv6: cell<HostPortRules | undefined>(undefined) }
  const appliedRules = { IPv6: cell<readonly RuleSet[]>([]) }
  const clock = fakeClock()
  const warnings = quietLog(t, 'Flows of UDP to host ports that changed stay until they time out')
  const tableOf = (family: 'IPv4' | 'IPv6'): FlowTable => ({
    async list(isWanted, most) {
      kernel.lists++
      if (kernel.failing) throw new Error('conntrack is not installed')
      const isOfFamily = ({ address }: UdpFlow) => address.includes(':') === (family === 'IPv6')
      return kernel.flows.filter((flow) => isOfFamily(flow) && isWanted(flow)).slice(0, most)
    },
    async remove(gone) {
      kernel.flows = kernel.flows.filter((flow) => flow !== gone)
    },
  })
  const { run } = hostPortCleaner({
    flows: { IPv4: tableOf('IPv4'), IPv6: tableOf('IPv6') },
    isOwn: async (address) =>
      address.startsWith('fd00:7::') || address.startsWith('192.0.2.') || address === '127.0.0.1',
    reads: { localPods, hostPortRules: hostPorts, appliedRules },
    clock,
    log: warnings,
  })
  const end = new AbortController()
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  const byUid = (pods: readonly LocalPod[]) => new Map(pods.map((one, index) => [one.labels?.uid ?? `${index}`, one]))
  const apply = async (...pods: LocalPod[]) => {
    const rules = hostPortRules(byUid(pods), 'IPv6')
    hostPorts.IPv6.set(rules)
    await clock.settle()
    const lists = kernel.lists
    appliedRules.IPv6.set([rules])
    await clock.settle()
    return kernel.lists - lists
  }
  /** As Docker's: their ports are open once they have an address. */
  const start = async (...pods: LocalPod[]) => {
    const { lists } = kernel
    localPods.set({ pods: byUid(pods), isComplete: true })
    await clock.settle()
    return kernel.lists - lists
  }
  return { kernel, clock, apply, start, endpoints: () => kernel.flows.map(({ endpoint }) => endpoint) }
}

test('flows go to the pod that has the port now, once the kernel has its rules', async (t) => {
  const { apply, endpoints } = running(t, flowTo('fd00:10:244:1::5'), flowTo(node, 514), flowTo('fd00:10:244:1::6'))
  await apply(pod('fd00:10:244:1::6'))
  t.same(endpoints(), ['fd00:10:244:1::6'], 'neither to the pod before it, nor to the node, which had no rules yet')
})

test('a flow to another machine stays, whatever its port', async (t) => {
  const { apply, endpoints } = running(t, flowTo('2001:db8::5', 514, '2001:db8::5'))
  await apply(pod('fd00:10:244:1::6'))
  t.same(endpoints(), ['2001:db8::5'])
})

test('flows to a pod that is gone are removed, and those that never had a pod stay', async (t) => {
  const { apply, endpoints } = running(t, flowTo('fd00:10:244:1::5'), flowTo(node, 514, 'fd00:7::2'))
  await apply(pod('fd00:10:244:1::5', node))
  t.same(endpoints(), ['fd00:10:244:1::5', node])
  await apply()
  t.same(endpoints(), [node])
})

test('flows are listed only when a port of UDP has changed', async (t) => {
  const { apply } = running(t)
  t.equal(await apply(), 0)
  t.equal(await apply(pod('fd00:10:244:1::5', '', 'tcp')), 0)
  t.equal(await apply(pod('fd00:10:244:1::5')), 1)
  t.equal(await apply(pod('fd00:10:244:1::5')), 0)
})

test('a failure is tried again', async (t) => {
  const { kernel, clock, apply, endpoints } = running(t, flowTo('fd00:10:244:1::5'))
  kernel.failing = true
  await apply(pod('fd00:10:244:1::6'))
  t.same(endpoints(), ['fd00:10:244:1::5'])
  kernel.failing = false
  await clock.advance(30_000)
  t.same(endpoints(), [])
})

const address = '192.0.2.1'
const ofIPv4 = (ip: string, hostIP = '', uid = ip): LocalPod => ({
  ...{ namespace: 'shop', name: 'log', ip, labels: { uid }, ports: [], isStatic: false },
  hostPorts: [{ protocol: 'udp', port: 514, containerPort: 5514, hostIP }],
})

test('IPv4 flows go to the pod that has the port now, without rules of the agent', async (t) => {
  const atNode = flowTo(address, 514, address)
  const { start, endpoints } = running(
    t,
    flowTo('10.244.1.5', 5514, address),
    atNode,
    flowTo('10.244.1.6', 5514, address),
  )
  await start(ofIPv4('10.244.1.6'))
  t.same(
    endpoints(),
    ['10.244.1.6'],
    "neither to the pod before it, nor to Docker's proxy, which has the bridge's address",
  )
})

test('IPv4 flows to a pod that is gone are removed', async (t) => {
  const { kernel, start, endpoints } = running(t)
  await start(ofIPv4('10.244.1.5', address))
  kernel.flows = [flowTo('10.244.1.5', 5514, address), flowTo('10.244.1.5', 5514, '192.0.2.2')]
  await start()
  t.same(endpoints(), ['10.244.1.5'], 'at the address of its host port')
})

test('a flow that began between two pods is removed, also if both have one address', async (t) => {
  const { kernel, start, endpoints } = running(t)
  await start(ofIPv4('10.244.1.5', '', 'one'))
  kernel.flows = [flowTo(address, 514, address)]
  await start(ofIPv4('10.244.1.5', '', 'other'))
  t.same(endpoints(), [])
})

test('IPv4 flows to loopback, to other machines and to IPv6 ports alone stay', async (t) => {
  const others = [flowTo('127.0.0.1', 514, '127.0.0.1'), flowTo('198.51.100.1', 514, '198.51.100.1')]
  const { start, endpoints } = running(t, ...others)
  await start(ofIPv4('10.244.1.6'))
  t.same(endpoints(), ['127.0.0.1', '198.51.100.1'])
  const alone = running(t, flowTo(address, 514, address))
  await alone.start(ofIPv4('10.244.1.6', '::'))
  t.same(alone.endpoints(), [address])
})

test('flows to thousands of other machines do not hide those to a pod', async (t) => {
  const others = Array.from({ length: 2_500 }, (_, index) => `198.51.${index >> 8}.${index & 255}`)
  const { kernel, start } = running(t, ...others.map((ip) => flowTo(ip, 514, ip)), flowTo(address, 514, address))
  await start(ofIPv4('10.244.1.6'))
  t.equal(kernel.flows.length, others.length)
  t.notOk(kernel.flows.some((flow) => flow.address === address))
})

test('a change of a pod without a UDP host port does not list IPv4 flows', async (t) => {
  const { start } = running(t)
  t.equal(await start(ofIPv4('10.244.1.5')), 1)
  t.equal(await start(ofIPv4('10.244.1.5'), { ...ofIPv4('10.244.1.6'), hostPorts: [] }), 0)
})
