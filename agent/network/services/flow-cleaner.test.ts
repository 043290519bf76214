import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { ipv4Rules } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { flowCleaner } from './flow-cleaner.ts'
import type { ServiceRules } from './service-manager.ts'
import type { UdpFlow } from './stale-flows.ts'

const rules = (...ips: string[]): ServiceRules => {
  const dns = {
    ...aService({ clusterIPs: ['10.96.0.10'] }),
    ports: [{ port: 53, protocol: 'UDP' as const }],
    endpoints: [
      { ports: [{ port: 53, protocol: 'UDP' as const }], addresses: ips.map((ip) => endpointOn('pi-1', ip)) },
    ],
  }
  return { chains: new Map(), sets: new Map(), services: new Map([['shop/web', dns]]) }
}
const flowTo = (endpoint: string): UdpFlow => ({ address: '10.96.0.10', port: 53, endpoint, endpointPort: 53 })

function running(t: Test, ...flows: UdpFlow[]) {
  const kernel = { flows, lists: 0, failing: false }
  const serviceRules = cell<ServiceRules | undefined>(undefined)
  const appliedRules = cell<readonly RuleSet[]>([])
  const clock = fakeClock()
  const { run } = flowCleaner({
    family: ipv4Rules,
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
    reads: { serviceRules, appliedRules },
    clock,
    log: quietLog(t, 'Flows of UDP to endpoints that are gone stay until they time out'),
  })
  const end = new AbortController()
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  const apply = async (wanted: ServiceRules) => {
    serviceRules.set(wanted)
    appliedRules.set([wanted])
    await clock.settle()
  }
  const endpoints = () => kernel.flows.map(({ endpoint }) => endpoint)
  return { kernel, serviceRules, apply, endpoints, clock }
}

test('flows to an endpoint that is gone are removed once the rules lead elsewhere', async (t) => {
  const { kernel, serviceRules, apply, endpoints, clock } = running(t, flowTo('10.244.1.2'), flowTo('10.244.1.3'))
  await apply(rules('10.244.1.2', '10.244.1.3'))
  t.same(endpoints(), ['10.244.1.2', '10.244.1.3'])
  const next = rules('10.244.1.3')
  serviceRules.set(next)
  await clock.advance(60_000)
  t.equal(kernel.flows.length, 2, 'new flows would still go to it')
  await apply(next)
  t.same(endpoints(), ['10.244.1.3'])
})

test('the flows of before the agent are looked through once, and those of now when endpoints change', async (t) => {
  const { kernel, apply, endpoints } = running(t, flowTo('10.244.1.9'))
  await apply(rules('10.244.1.2'))
  t.same(endpoints(), [])
  await apply(rules('10.244.1.2'))
  await apply(rules('10.244.1.2'))
  t.equal(kernel.lists, 1)
  await apply(rules('10.244.1.3'))
  t.equal(kernel.lists, 2)
})

test('more flows than one pass removes are removed in the next ones', async (t) => {
  const { apply, endpoints } = running(t, ...Array.from({ length: 450 }, (_, index) => flowTo(`10.1.1.${index}`)))
  await apply(rules('10.244.1.2'))
  t.same(endpoints(), [])
})

test('after a failure it is tried again, without a change', async (t) => {
  const { kernel, apply, endpoints, clock } = running(t, flowTo('10.244.1.9'))
  kernel.failing = true
  await apply(rules('10.244.1.2'))
  t.same(endpoints(), ['10.244.1.9'])
  kernel.failing = false
  await clock.advance(30_000)
  t.same(endpoints(), [])
})

test('clients of a node port and of a load balancer follow a pod that is replaced, and the first one of a Service', async (t) => {
  const at = (address: string, port: number, endpoint: string, endpointPort = 53): UdpFlow => ({
    ...{ address, port, endpoint, endpointPort },
  })
  const [ofNode, ofBalancer] = [['192.168.1.11', 30053] as const, ['192.168.1.240', 53] as const]
  const balanced = (...ips: string[]): ServiceRules => {
    const { services, ...others } = rules(...ips)
    const states = [...services].map(([name, state]) => {
      const ports = state.ports.map((port) => ({ ...port, nodePort: 30053 }))
      return [name, { ...state, type: 'LoadBalancer' as const, loadBalancerIPs: ['192.168.1.240'], ports }] as const
    })
    return { ...others, services: new Map(states) }
  }
  const { kernel, apply } = running(t)
  await apply(balanced('10.244.1.2'))
  kernel.flows = [at(...ofNode, '10.244.1.2'), at(...ofBalancer, '10.244.1.2')]
  await apply(balanced())
  t.equal(kernel.flows.length, 2, 'nothing would be better')
  kernel.flows.push(at(...ofNode, ...ofNode), at(...ofBalancer, ...ofBalancer))
  await apply(balanced('10.244.1.3'))
  t.same(kernel.flows, [])
})
