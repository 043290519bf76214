/** The IPv6 rules of host ports in real kernels: who reaches a pod by them, and which address it sees. */
import { test } from 'tap'
import { conntrackFlows } from '../agent/adapters/network/conntrack.ts'
import { type HostPortTargets, hostPortTargets, isStaleHostFlow } from '../agent/network/host-ports/host-port-flows.ts'
import { hostPortRules } from '../agent/network/host-ports/host-port-rules.ts'
import { type LocalPod, type PodHostPort, policyRules } from '../agent/network/policies/policy-rules.ts'
import { ipv6Rules } from '../agent/network/rule-family.ts'
import { noRules, type RuleSet } from '../agent/network/rule-set.ts'
import type { PoliciesMessage } from '../api/network/node-policies.ts'
import { bareFleet, ipv6Plan } from './support/bare-nodes.ts'
import type { Asked, EndpointProgram } from './support/endpoint-programs.ts'
import { whyNoFlows } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

const both = ['tcp', 'udp'] as const

test('IPv6 host ports on a node', { skip: whyNoFlows() }, async (t) => {
  const fleet = await bareFleet(t, ipv6Plan)
  const [first, second] = fleet.nodes
  const { stranger, strangerAddress } = fleet
  const a = await first.pod('a')
  const b = await first.pod('b')
  const c = await second.pod('c')
  for (const protocol of both) for (const endpoint of [a, b]) await endpoint.listen(8080, protocol)
  const otherAddress = 'fd00:7::77'
  await first.space.run('ip', 'address', 'add', `${otherAddress}/64`, 'dev', 'eth0', 'nodad')
  await first.apply([])

  const podOf = (name: string, ipv6: string, ...hostPorts: PodHostPort[]): LocalPod => ({
    ...{ namespace: 'shop', name, ip: '10.244.1.2', ipv6, labels: {}, ports: [], isStatic: false, hostPorts },
  })
  const ports = (hostIP: string, port = 80) =>
    both.map((protocol): PodHostPort => ({ protocol, port, containerPort: 8080, hostIP }))
  let [ofPorts, ofPolicies]: RuleSet[] = [noRules, noRules]
  const apply = () =>
    first.applyOthers({
      chains: new Map([...(ofPorts?.chains ?? []), ...(ofPolicies?.chains ?? [])]),
      sets: new Map([...(ofPorts?.sets ?? []), ...(ofPolicies?.sets ?? [])]),
    })
  const use = async (...pods: LocalPod[]) => {
    ofPorts = hostPortRules(new Map(pods.map((pod) => [pod.name, pod])), 'IPv6')
    await apply()
  }
  const at = (address: string, more: Partial<Asked> = {}): Asked => ({ address, port: 80, patienceMs: 10_000, ...more })
  const asks = async (from: EndpointProgram, asked: Asked) => (await from.ask(asked))[0]
  const refused = { patienceMs: 1_500 }
  await use(podOf('a', a.ip, ...ports('')))
  await eventually(
    'machines that have just got their links find each other',
    async () => (await asks(stranger, at(first.address, { patienceMs: 1_500 }))) === `a ${strangerAddress}`,
  )

  await t.test('without hostIP a pod is reached at each address, and sees its client', async (t) => {
    for (const protocol of both)
      for (const address of [first.address, otherAddress]) {
        t.equal(await asks(stranger, at(address, { protocol })), `a ${strangerAddress}`, `${protocol} ${address}`)
        t.equal(await asks(c, at(address, { protocol })), `a ${c.ip}`, `${protocol} ${address}, a pod of another node`)
        t.equal(await asks(b, at(address, { protocol })), `a ${b.ip}`, `${protocol} ${address}, a pod of the node`)
        t.equal(await asks(a, at(address, { protocol })), `a ${first.pods}1`, `${protocol} ${address}, itself`)
        t.equal(await asks(first.host, at(address, { protocol })), `a ${address}`, `${protocol} ${address}, the node`)
      }
    t.equal(await asks(first.host, at('::1', refused)), 'ECONNREFUSED')
    t.equal(await asks(stranger, at(second.address, refused)), 'ECONNREFUSED', 'another node')
    t.equal(await asks(b, at(second.address, refused)), 'ECONNREFUSED', 'a pod is not led away from other machines')
  })

  await t.test('with a hostIP it is reached there alone', async (t) => {
    await use(podOf('a', a.ip, ...ports(otherAddress)), podOf('b', b.ip, ...ports(first.address)))
    for (const protocol of both) {
      t.equal(await asks(stranger, at(otherAddress, { protocol })), `a ${strangerAddress}`, protocol)
      t.equal(await asks(stranger, at(first.address, { protocol })), `b ${strangerAddress}`, protocol)
    }
    await use(podOf('a', a.ip, ...ports(otherAddress)))
    t.equal(await asks(stranger, at(first.address, refused)), 'ECONNREFUSED')
    await use(podOf('a', a.ip, ...ports(second.address)))
    t.equal(await asks(b, at(second.address, refused)), 'ECONNREFUSED', 'the address of another machine is left to it')
  })

  await t.test('a policy restricts them by the address of the client', async (t) => {
    const pod = podOf('a', a.ip, ...ports(''))
    await use(pod)
    const restrict = async (...ipv6Ranges: string[]) => {
      const ingress = [{ peers: { sets: [], ranges: [], ipv6Ranges } }]
      const policies = [{ namespace: 'shop', name: 'a', podSelector: {}, ingress }]
      const message: PoliciesMessage = { epoch: 'e', version: 1, namespaces: ['shop'], sets: [], policies }
      ofPolicies = policyRules(message, new Map([['a', pod]]), ipv6Rules)
      await apply()
    }
    await restrict(`${c.ip}-${c.ip}`)
    for (const protocol of both) {
      t.equal(await asks(stranger, at(first.address, { protocol, ...refused })), 'silent', protocol)
      t.equal(await asks(b, at(first.address, { protocol, ...refused })), 'silent', `${protocol}, a pod of the node`)
      t.equal(await asks(c, at(first.address, { protocol })), `a ${c.ip}`, protocol)
    }
    t.equal(await asks(a, at(first.address)), `a ${first.pods}1`, 'what it has with itself is allowed')
    await restrict(`${strangerAddress}-${strangerAddress}`)
    t.equal(await asks(stranger, at(first.address)), `a ${strangerAddress}`)
    ofPolicies = noRules
    await apply()
  })

  await t.test('a client of UDP that goes on sending reaches the pod that has the port now', async (t) => {
    const asked = at(first.address, { protocol: 'udp', fromPort: 5000 })
    const rules = (...pods: LocalPod[]) => hostPortTargets(new Map(pods.map((pod) => [pod.name, pod])), 'IPv6')
    const onA = podOf('a', a.ip, ...ports(''))
    const onB = podOf('b', b.ip, ...ports(''))
    await use(onA)
    t.equal(await asks(stranger, asked), `a ${strangerAddress}`)
    await use(onB)
    t.equal(await asks(stranger, asked), `a ${strangerAddress}`, 'the kernel stays with a flow')
    const flows = conntrackFlows(ipv6Rules, await first.space.tool('conntrack'))
    const clean = async (before: HostPortTargets, now: HostPortTargets) => {
      const stale = await flows.list((flow) => isStaleHostFlow(flow, before, now), 10)
      for (const flow of stale) await flows.remove(flow)
      return stale.length
    }
    t.ok((await clean(rules(onA), rules(onB))) > 0)
    t.equal(await asks(stranger, asked), `b ${strangerAddress}`)
    t.equal(await clean(rules(onA), rules(onB)), 0)
    await use()
    t.equal(await clean(rules(onB), rules()), 1)
    t.equal(await asks(stranger, { ...asked, ...refused }), 'ECONNREFUSED', 'no pod has the port')
    await use(onA)
    t.equal(await clean(rules(), rules(onA)), 1, 'a flow to the node itself')
    t.equal(await asks(stranger, asked), `a ${strangerAddress}`)
  })

  await t.test('a connection outlasts a change, and the port is closed once the pod is gone', async (t) => {
    await use(podOf('a', a.ip, ...ports('')), podOf('b', b.ip, ...ports('', 81)))
    t.equal(await asks(stranger, at(first.address, { port: 81 })), `b ${strangerAddress}`)
    const end = await stranger.keepAsking(at(first.address))
    await use(podOf('a', a.ip, ...ports('')))
    await first.apply([], true)
    t.same([...(await end()).keys()], [`a ${strangerAddress}`], 'the port of a pod that stays answers')
    t.equal(await asks(stranger, at(first.address, { port: 81, ...refused })), 'ECONNREFUSED')
    await use()
    t.equal(await asks(stranger, at(first.address, refused)), 'ECONNREFUSED')
    const left = await first.space.run('nft', 'list', 'table', 'ip6', 'bramble')
    t.notMatch(left, /host-port/)
  })
})
