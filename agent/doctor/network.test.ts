import { test } from 'tap'
import { type NetworkReading, networkFindings, savedNetworkMessage } from './network.ts'

const whole: NetworkReading = {
  isOn: true,
  forwarding: '1\n',
  bridgeFilter: '1\n',
  missing: [],
  arpIgnore: new Map([
    ['all', '0\n'],
    ['eth0', '0\n'],
  ]),
  hasDockerChain: true,
  overlaps: [],
  firewallBackend: undefined,
}
const verdicts = (reading: Partial<NetworkReading>) =>
  Object.fromEntries(networkFindings({ ...whole, ...reading }).map(({ check, verdict }) => [check, verdict]))

test('a node of a fleet without a network needs none of it', async (t) => {
  t.same(networkFindings({ ...whole, isOn: false, forwarding: '0', missing: ['nft'] }), [])
})

test('a node with all parts has no problem', async (t) => {
  t.same(verdicts({}), {
    'ip-forward': 'ok',
    'bridge-netfilter': 'ok',
    'network-programs': 'ok',
    'udp-flows': 'ok',
    'docker-rules': 'ok',
    'arp-answers': 'ok',
    'home-networks': 'ok',
  })
})

test('what is missing is a problem with a remedy', async (t) => {
  t.match(verdicts({ forwarding: '0\n' }), { 'ip-forward': 'problem' })
  t.match(verdicts({ forwarding: undefined }), { 'ip-forward': 'unknown' })
  t.match(verdicts({ bridgeFilter: '0\n' }), { 'bridge-netfilter': 'problem' })
  t.match(verdicts({ hasDockerChain: false }), { 'docker-rules': 'problem' })
  t.match(verdicts({ hasDockerChain: undefined }), { 'docker-rules': 'unknown' })
  t.match(verdicts({ missing: ['conntrack'] }), { 'network-programs': 'ok', 'udp-flows': 'warning' })
  const findings = networkFindings({ ...whole, bridgeFilter: undefined, missing: ['nft', 'ip'] })
  t.match(findings[1], { verdict: 'problem', found: /br_netfilter is not loaded/, remedy: /modprobe br_netfilter/ })
  t.match(findings[2], { found: /^nft and ip are not installed/, remedy: 'apt-get install nftables iproute2' })
  t.match(networkFindings({ ...whole, missing: ['nft'] })[2], { found: /^nft is not installed/ })
})

test('a network with addresses of the fleet is a problem with its remedy', async (t) => {
  const overlaps = ['the network 10.100.0.0/24 on wg0 has addresses of serviceCIDR: it hurts; renumber wg0']
  t.match(networkFindings({ ...whole, overlaps }).at(-1), {
    verdict: 'problem',
    found: 'The network 10.100.0.0/24 on wg0 has addresses of serviceCIDR: it hurts',
    remedy: 'Renumber wg0',
  })
})

test('a Docker with nftables is a problem, also where it left the chain of its iptables', async (t) => {
  const found = (firewallBackend: string) =>
    networkFindings({ ...whole, firewallBackend }).find(({ check }) => check === 'docker-rules')
  for (const backend of ['iptables', 'iptables+firewalld']) t.match(found(backend), { verdict: 'ok' }, backend)
  for (const backend of ['nftables', 'nftables+firewalld']) {
    t.match(found(backend), { verdict: 'problem', remedy: /"firewall-backend": "iptables" in \/etc\/docker/ }, backend)
  }
})

test('a kernel that does not answer for addresses of the loopback interface is a warning with the settings', async (t) => {
  const arpIgnore = new Map([
    ['all', '0\n'],
    ['eth0', '1\n'],
  ])
  const [finding] = networkFindings({ ...whole, arpIgnore }).filter(({ check }) => check === 'arp-answers')
  t.match(finding, {
    verdict: 'warning',
    found: /net.ipv4.conf.eth0.arp_ignore is set/,
    remedy: /sysctl -w net.ipv4.conf.eth0.arp_ignore=0/,
  })
})

test('the message of the network is read from the checkpoint', async (t) => {
  const message = {
    ...{
      epoch: 'e',
      version: 1,
      clusterCIDR: '10.244.0.0/16',
      serviceCIDR: '10.96.0.0/12',
      clusterDomain: 'cluster.local',
    },
    nodes: [],
  }
  t.same(savedNetworkMessage(`{"sha256":"x"}\n${JSON.stringify(message)}\n`), message)
  for (const text of [undefined, '', 'x', '{}', '{}\n{}\n']) t.equal(savedNetworkMessage(text), undefined)
})

test('a kernel that forwards no IPv6 is a problem where pods have IPv6 addresses', async (t) => {
  t.notOk('ipv6-forwarding' in verdicts({}), 'no check where they have none')
  t.match(verdicts({ ipv6Forwarding: '1\n' }), { 'ipv6-forwarding': 'ok' })
  t.match(verdicts({ ipv6Forwarding: '0\n' }), { 'ipv6-forwarding': 'problem' })
})
