import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import { ipv4Rules, ipv6Rules, type RuleFamily } from '../rule-family.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { openServiceManager, type ServiceRules } from './service-manager.ts'

const network = (zone: string, version = 1): NetworkMessage => ({
  epoch: 'e',
  version,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.11', segment: 's', zone }],
})
const states = (services: readonly ServiceState[], isComplete = true): ServiceStates => ({
  services: new Map(services.map((one) => [`${one.namespace}/${one.name}`, one])),
  changed: [],
  isComplete,
})
const web = aService({
  addresses: [
    { ...endpointOn('pi-1', '10.244.1.2'), zones: ['hall'] },
    { ...endpointOn('pi-2', '10.244.2.2'), zones: ['yard'] },
  ],
})

type Given = { readonly network?: NetworkMessage; readonly states?: ServiceStates; readonly family?: RuleFamily }

async function running(t: Test, given: Given) {
  const networkMessage = cell<NetworkMessage | undefined>(given.network)
  const serviceStates = cell<ServiceStates | undefined>(given.states)
  const serviceRules = cell<ServiceRules | undefined>(undefined)
  const networkCurrent = cell(false)
  const rulesCurrent = cell(false)
  const silentNodes = cell<readonly string[]>([])
  const clock = fakeClock()
  const loop = await openServiceManager({
    nodeName: 'pi-1',
    family: given.family ?? ipv4Rules,
    reads: { networkMessage, serviceStates, networkCurrent, silentNodes },
    writes: { serviceRules, rulesCurrent },
    clock,
  })
  const atOnce = serviceRules.get()
  const written: (ServiceRules | undefined)[] = []
  serviceRules.onChange((rules) => void written.push(rules))
  const end = new AbortController()
  const ended = loop.run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  const chosen = () => serviceRules.get()?.chains.get('cluster-shop/web/tcp/80')?.rules.join()
  const cells = { networkMessage, serviceStates, networkCurrent, silentNodes, serviceRules, rulesCurrent }
  return { ...cells, clock, atOnce, written, chosen }
}

test('what the checkpoint has are rules before the loop runs', async (t) => {
  const { atOnce } = await running(t, { network: network('hall'), states: states([web]) })
  t.ok(atOnce?.chains.has('cluster-shop/web/tcp/80'))
})

test('without a network, or with a part of the Services, there are no rules', async (t) => {
  const { networkMessage, serviceStates, serviceRules, clock } = await running(t, {})
  networkMessage.set(network('hall'))
  await clock.settle()
  t.equal(serviceRules.get(), undefined)
  serviceStates.set(states([web], false))
  await clock.settle()
  t.equal(serviceRules.get(), undefined)
  serviceStates.set(states([web]))
  await clock.settle()
  t.ok(serviceRules.get())
  networkMessage.set(undefined)
  await clock.settle()
  t.equal(serviceRules.get(), undefined)
})

test('messages that arrive together are one change, and keep what did not change', async (t) => {
  const { serviceStates, written, clock } = await running(t, { network: network('hall'), states: states([web]) })
  await clock.settle()
  const before = written.length
  for (let index = 0; index < 16; index++) serviceStates.set(states([web]))
  await clock.settle()
  t.equal(written.length, before + 1)
  const [last, present] = written.slice(-2)
  t.equal(present?.chains.get('cluster-shop/web/tcp/80'), last?.chains.get('cluster-shop/web/tcp/80'))
})

test('the zone of the node is that of the message, also when it changes', async (t) => {
  const { networkMessage, chosen, clock } = await running(t, { network: network('hall'), states: states([web]) })
  t.match(chosen(), /10\.244\.1\.2/)
  t.notMatch(chosen(), /10\.244\.2\.2/)
  networkMessage.set(network('yard', 2))
  await clock.settle()
  t.match(chosen(), /10\.244\.2\.2/)
  t.notMatch(chosen(), /10\.244\.1\.2/)
})

test('rules are current once they are those of messages that were received', async (t) => {
  const { serviceStates, networkCurrent, serviceRules, rulesCurrent, clock } = await running(t, {
    network: network('hall'),
    states: states([]),
  })
  await clock.settle()
  t.equal(rulesCurrent.get(), false)
  let atThatTime: boolean | undefined
  rulesCurrent.onChange(() => {
    atThatTime = serviceRules.get()?.chains.has('cluster-shop/web/tcp/80')
  })
  serviceStates.set(states([web]))
  networkCurrent.set(true)
  await clock.settle()
  t.equal(rulesCurrent.get(), true)
  t.equal(atThatTime, true)
})

test('endpoints of nodes that do not answer are left out, but for the last ones', async (t) => {
  const both = aService({ addresses: [endpointOn('pi-1', '10.244.1.2'), endpointOn('pi-2', '10.244.2.2')] })
  const { silentNodes, chosen, clock } = await running(t, { network: network('hall'), states: states([both]) })
  t.match(chosen(), /10\.244\.2\.2/)
  silentNodes.set(['pi-2'])
  await clock.settle()
  t.notMatch(chosen(), /10\.244\.2\.2/)
  t.match(chosen(), /10\.244\.1\.2/)
  silentNodes.set(['pi-1', 'pi-2'])
  await clock.settle()
  t.match(chosen(), /10\.244\.1\.2/)
  t.match(chosen(), /10\.244\.2\.2/)
})

test('IPv6 rules are those of the Services with a part in it, while the fleet has ranges of it', async (t) => {
  const endpoints = [{ ports: [{ port: 8080, protocol: 'TCP' as const }], addresses: [endpointOn('pi-1', 'fd00::5')] }]
  const both = { ...web, ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints } }
  const old = aService({ name: 'old', addresses: [endpointOn('pi-1', '10.244.1.3')] })
  const { clock, networkMessage, serviceStates, serviceRules } = await running(t, {
    ...{ network: network('hall'), states: states([both, old]), family: ipv6Rules },
  })
  t.equal(serviceRules.get(), undefined)
  const ipv6 = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  networkMessage.set({ ...network('hall', 2), ipv6 })
  await clock.settle()
  const before = serviceRules.get()
  t.same([...(before?.services.keys() ?? [])], ['shop/web'])
  t.same([...(before?.sets.get('service-ips')?.elements?.keys() ?? [])], ['fd00:10:96::7 . tcp . 80'])
  t.equal(before?.sets.get('service-ips')?.type, 'ipv6_addr . inet_proto . inet_service : verdict')
  t.match(before?.chains.get('cluster-shop/web/tcp/80')?.rules, [/map \{ 0 : fd00::5 \. 8080 \}/])
  serviceStates.set(states([both]))
  await clock.settle()
  t.equal(serviceRules.get()?.chains.get('cluster-shop/web/tcp/80'), before?.chains.get('cluster-shop/web/tcp/80'))
  networkMessage.set(network('hall', 3))
  await clock.settle()
  t.equal(serviceRules.get(), undefined)
})
