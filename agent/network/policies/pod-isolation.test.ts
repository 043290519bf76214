import { test } from 'tap'
import type { PoliciesMessage } from '../../../api/network/node-policies.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { byFamily, type IPFamily, ipFamilies } from '../../../api/text/ip-address.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { hostPortManager } from '../host-ports/host-port-manager.ts'
import type { HostPortRules } from '../host-ports/host-port-rules.ts'
import { ruleFamilies } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import { type LocalPods, podIsolation } from './pod-isolation.ts'
import { policyManager } from './policy-manager.ts'
import type { PolicyRules } from './policy-rules.ts'
import { closedPolicies, type ReceivedPolicies } from './received-state.ts'

const deny: PoliciesMessage = {
  ...{ epoch: 'e', version: 1, namespaces: ['shop'], sets: [] },
  policies: [{ namespace: 'shop', name: 'deny', podSelector: {}, ingress: [] }],
}
const nothing: PoliciesMessage = { ...deny, policies: [] }
const routed = { isRouted: true }

/** With the manager of rules; `apply` is what puts them into the kernel. */
function world(given: ReceivedPolicies) {
  const clock = fakeClock()
  const policies = cell<ReceivedPolicies>(given)
  const localPods = cell<LocalPods>({ pods: new Map(), isComplete: false })
  const policyRules = byFamily(() => cell<PolicyRules | undefined>(undefined))
  const policiesReady = byFamily(() => cell(false))
  const appliedRules = byFamily(() => cell<readonly RuleSet[]>([]))
  const hostPortRules = byFamily(() => cell<HostPortRules | undefined>(undefined))
  const networkMessage = cell<NetworkMessage | undefined>(undefined)
  const networkObstacle = cell<unknown>(undefined)
  const reads = { policies, localPods, networkMessage, networkObstacle, policyRules, appliedRules, hostPortRules }
  // As the reception of policies does.
  const closePolicies = () => policies.set(policies.get() ?? closedPolicies)
  const isolation = podIsolation({ reads, writes: { localPods }, closePolicies, clock })
  const end = new AbortController()
  const managers = [
    hostPortManager({ reads, writes: { hostPortRules }, clock }),
    ...ipFamilies.map((family) => {
      const writes = { policyRules: policyRules[family], policiesReady: policiesReady[family] }
      return policyManager({ family: ruleFamilies[family], reads, writes, clock })
    }),
  ]
  const apply = (family: IPFamily) =>
    appliedRules[family].set([policyRules[family].get() ?? [], hostPortRules[family].get() ?? []].flat())
  const ended = Promise.all(managers.map(({ run }) => run(end.signal)))
  const observe = (ip: string, pod: Pod = aPod({ name: 'web', namespace: 'shop' }), ipv6?: string) => {
    const { uid = '', namespace, name } = pod.metadata
    isolation.observe(uid, { pod, path: `${namespace}/${name}`, ip, ...(ipv6 !== undefined && { ipv6 }) })
    return uid
  }
  /** What `hold` gives after some seconds. */
  const held = async (uid: string, facts = routed) => {
    const found = isolation.hold(uid, facts)
    await clock.advance(2_000)
    return (await found)?.message
  }
  return {
    ...{ clock, policies, localPods, policyRules, policiesReady, isolation, observe, held },
    ...{ networkMessage, networkObstacle },
    applyIPv6: () => apply('IPv6'),
    apply: () => apply('IPv4'),
    async stop() {
      end.abort()
      await ended
    },
  }
}

test('a pod that no policy selects does not wait', async (t) => {
  for (const policies of ['none', nothing] as const) {
    const { observe, held, stop } = world(policies)
    t.equal(await held(observe('10.244.1.5')), undefined)
    await stop()
  }
})

test('an isolated pod waits until the kernel has its rules, however long', async (t) => {
  const { clock, observe, held, apply, isolation, stop } = world(deny)
  const uid = observe('10.244.1.5')
  t.match(await held(uid), /not in the kernel yet/)
  await clock.advance(300_000)
  t.match(await held(uid), /not in the kernel yet/)
  const found = isolation.hold(uid, routed)
  await clock.advance(100)
  apply()
  await clock.settle()
  t.equal(await found, undefined, 'at once when they are there')
  observe('10.244.1.6')
  t.match(await held(uid), /not in the kernel yet/, 'another address has other rules')
  apply()
  t.equal(await held(uid), undefined)
  await stop()
})

test('a pod of a namespace whose policies are not known waits for 30 s, and has no connections then', async (t) => {
  const { clock, policyRules, observe, held, apply, stop } = world(deny)
  const uid = observe('10.244.1.5', aPod({ name: 'web', namespace: 'new' }))
  t.match(await held(uid), /has not received the network policies of namespace new yet. It waits up to 30 s/)
  t.equal(policyRules.IPv4.get()?.pods.get(uid)?.state, 'closed')
  apply()
  t.match(await held(uid), /has not received/)
  await clock.advance(30_000)
  t.equal(await held(uid), undefined)
  await stop()
})

test('a node of the network that has received nothing for 30 s lets no pod have connections', async (t) => {
  const { clock, observe, held, policies, policyRules, apply, stop } = world(undefined)
  const uid = observe('10.244.1.5')
  t.equal(await held(uid, { isRouted: false }), undefined)
  t.match(await held(uid), /has not received/)
  await clock.advance(30_000)
  t.match(await held(uid), /not in the kernel yet/)
  t.equal(policyRules.IPv4.get()?.pods.get(uid)?.state, 'closed')
  apply()
  t.equal(await held(uid), undefined)
  policies.set(nothing)
  t.equal(await held(uid), undefined)
  await stop()
})

test('pods on the network of their node are not known to policies, and labels of others are followed', async (t) => {
  const selecting = { ...deny, policies: [{ ...deny.policies[0], podSelector: { matchLabels: { app: 'a' } } }] }
  const { clock, localPods, policyRules, observe, isolation, stop } = world(selecting as PoliciesMessage)
  const host = aPod({ name: 'host', namespace: 'shop', uid: 'h' })
  observe('192.168.1.5', { ...host, spec: { ...host.spec, hostNetwork: true } })
  t.equal(localPods.get().pods.size, 0)
  observe('10.244.1.5', aPod({ name: 'web', namespace: 'shop', uid: 'w' }))
  await clock.settle()
  t.equal(policyRules.IPv4.get()?.pods.get('w')?.state, 'open')
  const before = localPods.get()
  observe('10.244.1.5', aPod({ name: 'web', namespace: 'shop', uid: 'w' }))
  t.equal(localPods.get(), before, 'nothing has changed')
  observe('10.244.1.5', aPod({ name: 'web', namespace: 'shop', uid: 'w', labels: { app: 'a' } }))
  await clock.settle()
  t.equal(policyRules.IPv4.get()?.pods.get('w')?.state, 'isolated')
  isolation.observe('w', undefined)
  t.equal(localPods.get().pods.size, 0)
  await stop()
})

test('rules are ready when every pod that runs is known, or where there are none', async (t) => {
  const { clock, policies, policiesReady, isolation, stop } = world(deny)
  t.equal(policiesReady.IPv4.get(), false)
  isolation.observedAll()
  await clock.settle()
  t.equal(policiesReady.IPv4.get(), true)
  policies.set('none')
  await clock.settle()
  t.equal(policiesReady.IPv4.get(), true)
  await stop()
})

const dualStack: NetworkMessage = {
  ...{ epoch: 'e', version: 1, clusterDomain: 'cluster.local', nodes: [] },
  ...{ clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' },
  ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
}

test('a pod with addresses of both families waits for the rules of both', async (t) => {
  const { clock, networkMessage, observe, held, apply, applyIPv6, stop } = world(deny)
  networkMessage.set(dualStack)
  const uid = observe('10.244.1.5', undefined, 'fd00:10:244:1::5')
  await clock.settle()
  apply()
  t.match(await held(uid), /are not in the kernel yet/)
  applyIPv6()
  t.equal(await held(uid), undefined)
  await stop()
})

test('a pod with a host port waits until the kernel leads its IPv6 connections to it', async (t) => {
  const { clock, isolation, observe, held, applyIPv6, stop } = world('none')
  const web = (hostPort: number, hostIP = '') =>
    aPod({
      name: 'web',
      namespace: 'shop',
      containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, hostIP }] }],
    })
  const uid = observe('10.244.1.5', web(8080), 'fd00:10:244:1::5')
  t.equal(await held(uid, { isRouted: false }), undefined, 'without a network of the fleet Docker opens it')
  const waiting = isolation.hold(uid, routed)
  await clock.advance(2_000)
  t.match(await waiting, { reason: 'WaitingForHostPorts', message: /not in the kernel yet/ })
  applyIPv6()
  t.equal(await held(uid), undefined)
  observe('10.244.1.5', web(8081), 'fd00:10:244:1::5')
  t.match(await held(uid), /not in the kernel yet/, 'another port has other rules')
  observe('10.244.1.5', web(8081, '192.0.2.1'), 'fd00:10:244:1::5')
  t.equal(await held(uid), undefined, 'Docker opens those of IPv4')
  observe('10.244.1.5', web(8081))
  t.equal(await held(uid), undefined, 'it has no IPv6 address')
  await stop()
})

test('a pod with the host port of the name server waits for the IPv4 rules, if the fleet has a network', async (t) => {
  const { clock, networkMessage, observe, held, apply, stop } = world('none')
  const containers = [{ name: 'c', ports: [{ containerPort: 53, hostPort: 53, protocol: 'UDP' as const }] }]
  const uid = observe('10.244.1.5', aPod({ name: 'dns', namespace: 'shop', containers }))
  t.equal(await held(uid), undefined)
  networkMessage.set(dualStack)
  await clock.settle()
  t.match(await held(uid), /host ports are not in the kernel yet/)
  apply()
  t.equal(await held(uid), undefined)
  await stop()
})

test('host ports of an earlier agent stay until every pod that runs is known', async (t) => {
  const { clock, networkMessage, policiesReady, isolation, stop } = world('none')
  networkMessage.set(dualStack)
  await clock.settle()
  t.equal(policiesReady.IPv6.get(), false)
  isolation.observedAll()
  await clock.settle()
  t.equal(policiesReady.IPv6.get(), true)
  await stop()
})

test('IPv6 rules are made only while the fleet has it, for the pods that have such an address', async (t) => {
  const { clock, networkMessage, policyRules, policiesReady, isolation, observe, apply, held, stop } = world(deny)
  const uid = observe('10.244.1.5')
  await clock.settle()
  t.equal(policyRules.IPv6.get(), undefined)
  t.equal(policiesReady.IPv6.get(), true)
  apply()
  t.equal(await held(uid), undefined)
  networkMessage.set(dualStack)
  await clock.settle()
  t.equal(policiesReady.IPv6.get(), false, 'not every pod was seen yet')
  t.equal(policyRules.IPv6.get()?.chains.size, 0)
  t.equal(await held(uid), undefined, 'it has no IPv6 address')
  isolation.observedAll()
  observe('10.244.1.5', undefined, 'fd00:10:244:1::5')
  await clock.settle()
  t.equal(policiesReady.IPv6.get(), true)
  t.same([...(policyRules.IPv6.get()?.sets.get('ingress-pods')?.elements?.keys() ?? [])], ['fd00:10:244:1::5'])
  await stop()
})

test('pods of a node that has no part in the network of the fleet wait for no rules, and have none', async (t) => {
  const { policies, policyRules, networkObstacle, clock, observe, held, isolation, stop } = world(deny)
  isolation.observedAll()
  const uid = observe('172.17.0.2')
  await clock.settle()
  t.ok(policyRules.IPv4.get(), 'there are rules')
  networkObstacle.set({ reason: 'OtherAgent' })
  await clock.settle()
  t.equal(policyRules.IPv4.get(), undefined)
  t.equal(await held(uid, { isRouted: false }), undefined)
  policies.set(undefined)
  t.equal(await held(uid, { isRouted: false }), undefined)
  networkObstacle.set(undefined)
  policies.set(deny)
  await clock.settle()
  t.ok(policyRules.IPv4.get(), 'they are back with the network')
  await stop()
})
