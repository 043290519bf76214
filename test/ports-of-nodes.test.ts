/** What nodes send each other by UDP does not come from their pods: real rules in network namespaces, without an engine or an agent. */
import { type Test, test } from 'tap'
import type { PeerNetwork } from '../agent/network/peers/family-network.ts'
import { peerRules } from '../agent/network/peers/peer-rules.ts'
import { ipv4Rules } from '../agent/network/rule-family.ts'
import { noRules } from '../agent/network/rule-set.ts'
import { probePort } from '../api/network/address-probe.ts'
import { tunnelPort } from '../api/network/pod-network.ts'
import { bareFleet } from './support/bare-nodes.ts'
import { whyNoFlows } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

/** A node that is not there. */
const third = '192.168.7.3'

/** Two nodes with the rules of a fleet of three. */
async function ruledFleet(t: Test, podLink?: string) {
  const { nodes } = await bareFleet(t)
  const [first, second] = nodes
  for (const { address, pods, apply, applyOthers } of nodes) {
    const network: PeerNetwork = {
      address,
      ...{ clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/16', podCIDR: `${pods}0/24` },
      ...{
        nodeAddresses: [first.address, second.address, third],
        routes: [],
        isGuarded: false,
        relays: new Map(),
        gaps: [],
      },
      tunnel: { kind: 'vxlan', address, mac: '02:62:0a:f4:01:00', peers: [] },
    }
    await apply([])
    await applyOthers(peerRules(network, ipv4Rules, podLink) ?? noRules)
  }
  return { nodes, first, second, pod: await first.pod('a') }
}

/** No program of the fleet has it. */
const other = 9_999

test('a pod sends nothing to the ports of nodes with the address of its node', { skip: whyNoFlows() }, async (t) => {
  const { nodes, first, second, pod } = await ruledFleet(t)
  for (const { host } of nodes) for (const port of [tunnelPort, probePort, other]) await host.listen(port, 'udp')
  const asked = (port: number) => ({ address: second.address, port, protocol: 'udp' }) as const
  const patienceMs = 10_000

  t.same(
    await pod.ask({ ...asked(other), patienceMs }),
    [`pi-2 ${first.address}`],
    'it has the address of its node elsewhere',
  )
  for (const port of [tunnelPort, probePort]) {
    t.same(
      await first.host.ask({ ...asked(port), patienceMs }),
      [`pi-2 ${first.address}`],
      `a node reaches UDP port ${port}`,
    )
    t.same(await pod.ask(asked(port)), ['silent'], `a pod does not reach UDP port ${port} of another node`)
    t.same(await pod.ask({ ...asked(port), address: first.address }), ['silent'], `nor UDP port ${port} of its own`)
  }
})

/** Sends to a port each, in order, with the forged address. */
const forger = (to: string) => `
const socket = require('dgram').createSocket('udp4')
socket.bind(0, '${third}', async () => {
  for (const port of [${tunnelPort}, ${probePort}, ${other}]) await new Promise((sent) => socket.send('x', port, '${to}', sent))
  socket.close()
})
`

test('a pod sends nothing to the ports of nodes with the address of another node', {
  skip: whyNoFlows(),
}, async (t) => {
  const { nodes, first, pod } = await ruledFleet(t)
  await first.space.run('sysctl', '-qw', 'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.pods.rp_filter=0')
  await pod.inside.run('ip', 'address', 'add', `${third}/32`, 'dev', 'eth0')
  for (const { name, address, space } of nodes) {
    await space.run('nft', 'add table ip seen; add chain ip seen in { type filter hook input priority 10 ; }')
    for (const port of [tunnelPort, probePort, other])
      await space.run('nft', `add rule ip seen in udp dport ${port} ip saddr ${third} counter`)
    const received = async () => {
      const listed = await space.run('nft', 'list', 'table', 'ip', 'seen')
      return [...listed.matchAll(/packets (\d+)/g)].map(([, count]) => Number(count))
    }
    await pod.inside.run(process.execPath, '-e', forger(address))
    await eventually(`the last one at ${name}`, async () => (await received())[2] === 1)
    t.same(await received(), [0, 0, 1], name)
  }
})

/** Sends one datagram from each of these addresses to each of those. */
const sources = (from: readonly string[], to: readonly string[]) => `
const send = (address, to) => new Promise((done) => {
  const socket = require('dgram').createSocket('udp4')
  socket.bind(0, address, () => socket.send('x', ${other}, to, () => socket.close(done)))
})
const all = async () => {
  for (const from of ${JSON.stringify(from)}) for (const to of ${JSON.stringify(to)}) await send(from, to)
}
all()
`

test('an address of pods of a node, and of the node among them, comes from its own bridge only', {
  skip: whyNoFlows(),
}, async (t) => {
  for (const podLink of [undefined, 'pods']) {
    const { first, second, pod } = await ruledFleet(t, podLink)
    const neighbour = await first.pod('b')
    const far = await second.pod('c')
    const gateway = `${first.pods}1`
    for (const { space } of [first, second])
      await space.run('sysctl', '-qw', 'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.pods.rp_filter=0')
    await pod.inside.run('ip', 'address', 'add', `${gateway}/32`, 'dev', 'eth0')
    await far.inside.run('ip', 'address', 'add', `${pod.ip}/32`, 'dev', 'eth0')
    await neighbour.inside.run('nft', 'add table ip seen; add chain ip seen in { type filter hook input priority 0 ; }')
    for (const source of [gateway, pod.ip, far.ip])
      await neighbour.inside.run('nft', `add rule ip seen in udp dport ${other} ip saddr ${source} counter`)
    const received = async () => {
      const listed = await neighbour.inside.run('nft', 'list', 'table', 'ip', 'seen')
      return [...listed.matchAll(/packets (\d+)/g)].map(([, count]) => Number(count))
    }
    await pod.inside.run(process.execPath, '-e', sources([gateway, pod.ip], [neighbour.ip]))
    await far.inside.run(process.execPath, '-e', sources([pod.ip, far.ip], [neighbour.ip]))
    await eventually('the last one', async () => (await received())[2] === 1)
    t.same(await received(), [0, 1, 1], `the bridge is ${podLink === undefined ? 'not ' : ''}known`)
  }
})
