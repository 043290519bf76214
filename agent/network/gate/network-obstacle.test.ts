import { test } from 'tap'
import { parseCidr } from '../../../api/text/cidr.ts'
import {
  engineObstacle,
  fleetNetworkReading,
  type GateFacts,
  machineObstacle,
  obstacleText,
  type ToolProblem,
} from './network-obstacle.ts'

const home = parseCidr('10.100.0.0/24')
if (home === undefined) throw new Error('a range')
const free: GateFacts = { ranges: { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }, routes: [] }
const overlap: GateFacts = { ...free, routes: [{ interface: 'wlan0', range: home }] }
const tools: ToolProblem = { reason: 'ProgramsMissing', found: 'nft is not installed', remedy: 'Install it' }

test('the first thing in the way of a machine is named: another agent, then programs, then addresses', async (t) => {
  t.equal(machineObstacle(free), undefined)
  t.match(machineObstacle({ ...overlap, tools, otherAgent: 42 }), {
    ...{ reason: 'OtherAgent', found: /^Another agent of this machine, process 42, has/ },
    remedy: /^To give it to this one, stop the other agent/,
  })
  t.same(machineObstacle({ ...overlap, tools }), tools)
  t.same(machineObstacle(overlap), {
    reason: 'AddressesOverlap',
    found: 'The network 10.100.0.0/24 on wlan0 of this machine has addresses of serviceCIDR 10.96.0.0/12',
    remedy: 'Give the fleet a serviceCIDR that none of its networks has, or renumber wlan0, then restart this agent',
  })
})

test('IPv6 ranges are in the way only of a fleet with IPv6', async (t) => {
  const routes = [{ interface: 'eth0', range: '2001:db8::/48' }]
  t.equal(machineObstacle({ ...free, routes }), undefined)
  const ipv6 = { clusterCIDR: '2001:db8:0:100::/56', serviceCIDR: '2001:db8:1::/112' }
  t.match(machineObstacle({ ...free, routes, ranges: { ...free.ranges, ipv6 } }), {
    found: 'The network 2001:db8::/48 on eth0 of this machine has addresses of clusterCIDR 2001:db8:0:100::/56',
  })
})

test('an engine that drops packets between nodes is in the way', async (t) => {
  for (const backend of [undefined, '', 'iptables', 'iptables+firewalld', 'nftablesque'])
    t.equal(engineObstacle(backend), undefined, String(backend))
  for (const backend of ['nftables', 'nftables+firewalld'])
    t.match(engineObstacle(backend), {
      ...{
        reason: 'FirewallBackend',
        found: /^Docker's firewall backend is nftables/,
        remedy: /^Set "firewall-backend"/,
      },
    })
})

test('a fleet with a network shows what the obstacle means for pods, one without shows nothing', async (t) => {
  const text =
    "nft is not installed. Pods of this node run in Docker's own network: they reach no Services and no pods of other nodes, and no NetworkPolicies apply to them"
  t.equal(obstacleText(tools), text)
  t.equal(fleetNetworkReading(false, tools), undefined)
  t.same(fleetNetworkReading(true, undefined), { obstacle: undefined })
  t.same(fleetNetworkReading(true, tools), { obstacle: { ...tools, found: text } })
})
