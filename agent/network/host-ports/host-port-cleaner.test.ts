import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalPod } from '../policies/policy-rules.ts'
import type { RuleSet } from '../rule-set.ts'
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
  const ipv6HostPortRules = cell<HostPortRules | undefined>(undefined)
  const ipv6AppliedRules = cell<readonly RuleSet[]>([])
  const clock = fakeClock()
  const { run } = hostPortCleaner({
    flows: {
      async list(isWanted, most) {
        kernel.lists++
        if (kernel.failing) throw new Error('conntrack is not installed')
        return kernel.flows.filter(isWanted).slice(0, most)
      },
      async remove(gone) {
        kernel.flows = kernel.flows.filter((flow) => flow !== gone)
      },
    },
    isOwn: async (address) => address.startsWith('fd00:7::'),
    reads: { ipv6HostPortRules, ipv6AppliedRules },
    clock,
    log: quietLog(t, 'Flows of UDP to host ports that changed stay until they time out'),
  })
  const end = new AbortController()
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  const apply = async (...pods: LocalPod[]) => {
    const rules = hostPortRules(new Map(pods.map((one, index) => [`${index}`, one])))
    ipv6HostPortRules.set(rules)
    await clock.settle()
    const lists = kernel.lists
    ipv6AppliedRules.set([rules])
    await clock.settle()
    return kernel.lists - lists
  }
  return { kernel, clock, apply, endpoints: () => kernel.flows.map(({ endpoint }) => endpoint) }
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
