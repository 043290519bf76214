/** The rules of Services in real kernels: who answers, and which address the endpoint sees. */

import { test } from 'tap'
import { conntrackFlows } from '../agent/adapters/network/conntrack.ts'
import { ipv4Rules } from '../agent/network/rule-family.ts'
import {
  type NodeAnswer,
  type ProbeRecords,
  recordAnswers,
  silentNodes,
} from '../agent/network/services/silent-nodes.ts'
import { isStaleFlow, udpTargets } from '../agent/network/services/stale-flows.ts'
import { aService, endpointOn, type GivenService } from '../agent/network/testing/services.ts'
import { type BareNode, bareFleet } from './support/bare-nodes.ts'
import type { Asked, EndpointProgram } from './support/endpoint-programs.ts'
import { probedFrom } from './support/node-probes.ts'
import { whyNoFlows } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

const clusterIP = { address: '10.96.0.7', port: 80 }

test('Services on two nodes', { skip: whyNoFlows() }, async (t) => {
  const fleet = await bareFleet(t)
  const [first, second] = fleet.nodes
  const a = await first.pod('a')
  const b = await first.pod('b')
  const c = await second.pod('c')
  for (const endpoint of [a, b, c, first.host, second.host]) await endpoint.listen(8080)
  const [onA, onB, onC] = [endpointOn('pi-1', a.ip), endpointOn('pi-1', b.ip), endpointOn('pi-2', c.ip)]
  const [onFirst, onSecond] = [endpointOn('pi-1', first.address), endpointOn('pi-2', second.address)]
  const use = async (given: GivenService) => {
    for (const node of fleet.nodes) await node.apply([aService(given)])
  }
  const answers = async (from: EndpointProgram, asked: Asked) =>
    [...new Set(await from.ask({ times: 12, ...asked }))].sort()
  const at = ({ address }: BareNode) => ({ address, port: 30080 })

  t.test('a pod and a node reach every endpoint by the ClusterIP', async (t) => {
    await use({ addresses: [onA, onC, onSecond] })
    const times = 40
    t.same(await answers(b, { ...clusterIP, times }), [`a ${b.ip}`, `c ${b.ip}`, `pi-2 ${b.ip}`], 'the address is kept')
    t.same(await answers(first.host, { ...clusterIP, times }), [
      'a 10.244.1.1',
      `c ${first.address}`,
      `pi-2 ${first.address}`,
    ])
    t.same(await answers(second.host, { ...clusterIP, times }), [
      `a ${second.address}`,
      'c 10.244.2.1',
      `pi-2 ${second.address}`,
    ])
  })

  t.test('an endpoint reaches itself', async (t) => {
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080 })
    t.same(await answers(a, clusterIP), ['a 10.244.1.1'])
    t.same(await answers(a, at(first)), ['a 10.244.1.1'])
    await use({ addresses: [onFirst] })
    t.match(await answers(first.host, clusterIP), [/^pi-1 /])
  })

  t.test('an endpoint on the network of a node answers pods and nodes, of its own node and of the other', async (t) => {
    await use({ addresses: [onFirst], type: 'NodePort', nodePort: 30080 })
    t.same(await answers(a, clusterIP), [`pi-1 ${a.ip}`])
    t.same(await answers(c, clusterIP), [`pi-1 ${c.ip}`])
    t.same(await answers(second.host, clusterIP), [`pi-1 ${second.address}`])
    t.same(await answers(a, at(second)), [`pi-1 ${second.address}`])
    t.same(await answers(c, at(first)), [`pi-1 ${c.ip}`])
    t.same(await answers(fleet.stranger, at(first)), [`pi-1 ${fleet.strangerAddress}`], 'it never left the node')
    t.same(await answers(fleet.stranger, at(second)), [`pi-1 ${second.address}`])
  })

  t.test('a stranger with a route reaches endpoints of other nodes by the ClusterIP', async (t) => {
    await use({ addresses: [onA, onC] })
    t.same(await answers(fleet.stranger, { ...clusterIP, times: 40 }), ['a 10.244.1.1', `c ${first.address}`])
  })

  t.test('a NodePort answers on each node, whichever has the endpoint', async (t) => {
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080 })
    t.same(await answers(fleet.stranger, at(first)), ['a 10.244.1.1'])
    t.same(await answers(fleet.stranger, at(second)), [`a ${second.address}`])
    t.same(await answers(b, at(second)), [`a ${second.address}`])
    t.same(await answers(c, at(first)), ['a 10.244.1.1'])
    t.same(await answers(c, at(second)), [`a ${second.address}`])
    t.same(await answers(second.host, at(second)), [`a ${second.address}`])
    t.same(
      await answers(first.host, { address: '127.0.0.1', port: 30080 }),
      ['ECONNREFUSED'],
      'as kube-proxy: not on loopback',
    )
  })

  t.test('a Local NodePort keeps the client’s address, and answers where the endpoint is', async (t) => {
    await use({ addresses: [onA], type: 'NodePort', nodePort: 30080, externalTrafficPolicy: 'Local' })
    t.same(await answers(fleet.stranger, at(first)), [`a ${fleet.strangerAddress}`])
    t.same(await answers(fleet.stranger, { ...at(second), times: 1 }), ['silent'])
    t.same(await answers(c, at(second)), [`a ${c.ip}`], 'a pod is not subject to the policy')
    t.same(await answers(second.host, at(second)), [`a ${second.address}`], 'nor is the node')
  })

  t.test('a Local ClusterIP answers where the endpoint is, and drops elsewhere', async (t) => {
    await use({ addresses: [onA], internalTrafficPolicy: 'Local' })
    t.same(await answers(b, clusterIP), [`a ${b.ip}`])
    t.same(await answers(c, { ...clusterIP, times: 1 }), ['silent'])
    t.same(await answers(second.host, { ...clusterIP, times: 1 }), ['silent'])
  })

  t.test('without endpoints, and at ports that no Service has, connections are refused at once', async (t) => {
    await use({ addresses: [], type: 'NodePort', nodePort: 30080, externalIPs: ['192.0.2.1'] })
    const external = { address: '192.0.2.1', port: 80 }
    const refused = async (from: EndpointProgram, ...asked: Asked[]) => {
      for (const one of asked) t.same(await answers(from, { ...one, times: 2 }), ['ECONNREFUSED'], JSON.stringify(one))
    }
    await refused(
      a,
      clusterIP,
      { ...clusterIP, port: 81 },
      { ...clusterIP, protocol: 'udp' },
      external,
      at(first),
      at(second),
    )
    await refused(first.host, clusterIP, { ...clusterIP, port: 81 }, external, at(first), at(second))
    await refused(fleet.stranger, clusterIP, at(first), at(second))
    t.same(
      await answers(a, { address: '10.96.0.99', port: 80, times: 1 }),
      ['silent'],
      'an address that no Service has',
    )
  })

  t.test('an external IP that leads to a node answers, also for pods and nodes', async (t) => {
    await use({ addresses: [onC], externalIPs: ['192.0.2.1'] })
    await first.space.run('ip', 'address', 'add', '192.0.2.1/32', 'dev', 'eth0')
    const external = { address: '192.0.2.1', port: 80 }
    t.same(await answers(a, external), [`c ${first.address}`])
    t.same(await answers(second.host, external), ['c 10.244.2.1'])
    await first.space.run('ip', 'address', 'delete', '192.0.2.1/32', 'dev', 'eth0')
  })

  t.test('the address of a load balancer admits its source ranges', async (t) => {
    const balanced = {
      addresses: [onA],
      type: 'LoadBalancer',
      nodePort: 30080,
      loadBalancerIPs: ['192.0.2.1'],
    } as const
    const balancer = { address: '192.0.2.1', port: 80 }
    await use({ ...balanced, sourceRanges: ['192.168.7.0/24'] })
    t.same(await answers(fleet.stranger, balancer), ['a 10.244.1.1'])
    t.same(await answers(b, { ...balancer, times: 1 }), ['silent'], 'a pod is outside of the range')
    await use({ ...balanced, sourceRanges: ['203.0.113.0/24', '10.244.1.0/24', '10.244.0.0/16'] })
    t.same(await answers(fleet.stranger, { ...balancer, times: 1 }), ['silent'])
    t.same(await answers(b, balancer), ['a 10.244.1.1'])
    t.same(await answers(fleet.stranger, at(first)), ['a 10.244.1.1'], 'NodePorts are not subject to ranges')
  })

  t.test('zones are kept', async (t) => {
    await use({
      addresses: [
        { ...onA, zones: ['hall'] },
        { ...onC, zones: ['yard'] },
      ],
    })
    t.same(await answers(b, clusterIP), [`a ${b.ip}`])
    t.same(await answers(second.host, clusterIP), ['c 10.244.2.1'])
  })

  t.test(
    'a client stays with its endpoint over 50 changes, a whole replacement and a change of other endpoints',
    async (t) => {
      const kept = aService({ addresses: [onA, onB, onC], affinitySeconds: 600 })
      const other = (round: number) =>
        aService({ name: 'other', clusterIPs: ['10.96.0.8'], addresses: round % 2 === 0 ? [onA] : [onB, onC] })
      const ask = () => answers(b, clusterIP)
      await first.apply([kept])
      const chosen = await ask()
      t.equal(chosen.length, 1)
      for (let round = 0; round < 50; round++) await first.apply([kept, other(round)])
      t.same(await ask(), chosen)
      await first.apply([kept], true)
      t.same(await ask(), chosen, 'an agent that starts again')
      const used = [onA, onB, onC].filter(({ ip }) => chosen[0]?.startsWith(nameOf(ip)))
      await first.apply([aService({ addresses: used, affinitySeconds: 600 })])
      t.same(await ask(), chosen, 'other endpoints left')
      await first.apply([
        aService({ addresses: [onA, onB, onC].filter((one) => !used.includes(one)), affinitySeconds: 600 }),
      ])
      const next = await ask()
      t.equal(next.length, 1)
      t.not(next[0], chosen[0], 'its own endpoint left')
    },
  )

  t.test('a client is free again after the timeout of its affinity', async (t) => {
    // With room for a client that gets no turn for some seconds between two connections.
    await first.apply([aService({ addresses: [onA, onC], affinitySeconds: 8 })])
    const seen = new Set(await answers(b, { ...clusterIP, times: 20 }))
    t.equal(seen.size, 1, 'it stays within the time')
    // Each connection begins the 8 s again, and half of them choose the same endpoint.
    await eventually('the other endpoint', async () => new Set([...seen, ...(await ask())]).size === 2, {
      withinMs: 240_000,
      everyMs: 8_500,
    })
    async function ask() {
      return await answers(b, { ...clusterIP, times: 1 })
    }
  })

  t.test('a flow of UDP to an endpoint that is gone goes to another once it is removed', async (t) => {
    for (const endpoint of [a, c]) await endpoint.listen(5353, 'udp')
    const udp = { port: 53, protocol: 'UDP' as const, nodePort: 30053 }
    const dns = (...addresses: (typeof onA)[]) => ({
      ...aService({ type: 'NodePort' }),
      ports: [udp],
      endpoints: [{ ports: [{ port: 5353, protocol: 'UDP' as const }], addresses }],
    })
    const asked = { address: '10.96.0.7', port: 53, protocol: 'udp', times: 1, fromPort: 5000 } as const
    const byNode = { ...asked, address: first.address, port: 30053 }
    const both = async () => [await answers(b, asked), await answers(fleet.stranger, byNode)]
    await first.apply([dns(onA)])
    const before = [[`a ${b.ip}`], ['a 10.244.1.1']]
    t.same(await both(), before)
    await first.apply([dns(onC)])
    t.same(await both(), before, 'the kernel stays with a flow')
    const flows = conntrackFlows(ipv4Rules, await first.space.tool('conntrack'))
    const targets = udpTargets([dns(onC)], ipv4Rules)
    const stale = await flows.list((flow) => isStaleFlow(flow, targets), 10)
    t.equal(stale.length, 2)
    for (const flow of stale) await flows.remove(flow)
    t.same(await both(), [[`c ${b.ip}`], [`c ${first.address}`]])
    t.same(await flows.list((flow) => isStaleFlow(flow, targets), 10), [])
    await flows.remove({ address: '192.0.2.1', port: 1, endpoint: '192.0.2.2', endpointPort: 1 })
  })

  t.test('endpoints of a node that does not answer are left out, but for the last ones, and used again', async (t) => {
    let records: ProbeRecords = new Map()
    const rounds = async (service: GivenService, times: number) => {
      const answers: NodeAnswer[] = []
      for (let round = 0; round < times; round++) answers.push(await probedFrom(first.space, second.address))
      records = answers.reduce((last, answer) => recordAnswers(last, new Map([['pi-2', answer]])), records)
      await first.apply([aService(service)], false, silentNodes(records))
      return answers
    }
    const both = { addresses: [onA, onC] }
    t.same(await rounds(both, 1), ['answers'])
    t.same(await answers(b, { ...clusterIP, times: 40 }), [`a ${b.ip}`, `c ${b.ip}`])
    const cut = ['ip', 'arp'].map(
      (family) =>
        `add table ${family} cut; add chain ${family} cut arriving { type filter hook input priority 0; policy drop; }`,
    )
    await second.space.run(
      'nft',
      [...cut, 'add chain ip cut passing { type filter hook forward priority 0; policy drop; }'].join('; '),
    )
    await first.space.run('ip', 'neighbour', 'flush', 'all')
    t.same(await rounds(both, 3), ['unreachable', 'unreachable', 'unreachable'])
    t.same(await answers(b, { ...clusterIP, times: 40 }), [`a ${b.ip}`])
    await rounds({ addresses: [onC] }, 0)
    t.notSame(await answers(b, { ...clusterIP, times: 1 }), ['ECONNREFUSED'], 'the only endpoint stays')
    await second.space.run('nft', 'delete table arp cut')
    await first.space.run('ip', 'neighbour', 'flush', 'all')
    records = new Map()
    t.same(await rounds(both, 1), ['silent'], 'a firewall')
    t.same(silentNodes(records), [])
    await second.space.run('nft', 'delete table ip cut')
    t.same(await rounds(both, 1), ['answers'])
    t.same(await answers(b, { ...clusterIP, times: 40 }), [`a ${b.ip}`, `c ${b.ip}`])
  })

  function nameOf(ip: string): string {
    return ip === a.ip ? 'a ' : ip === b.ip ? 'b ' : 'c '
  }
})
