import { test } from 'tap'
import { aNode, aPod } from '../testing/builders.ts'
import {
  type AddressRules,
  bridgeRules,
  internalIPProblem,
  specialAddressProblem,
  withOwnAddresses,
  withPossibleAddresses,
} from './reported-addresses.ts'

const routed: AddressRules = {
  isRouted: true,
  podRanges: ['10.244.0.0/16', 'fd00:10:244::/56'],
  serviceRanges: ['10.96.0.0/12', 'fd00:10:96::/112'],
}
const addresses = [
  { type: 'InternalIP', address: '192.168.1.5' },
  { type: 'InternalIP', address: 'fd00:1::5' },
  { type: 'Hostname', address: 'pi-1' },
] as const
const node = aNode({
  name: 'pi-1',
  spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'] },
  status: { addresses },
})
const isOfAnother = (ip: string) => ip === '192.168.1.6'

/** The addresses that are left of those that a pod is reported to have. */
function left(ips: readonly string[], rules: AddressRules, pod = aPod(), of: typeof node | undefined = node) {
  const podIPs = ips.map((ip) => ({ ip }))
  const { status, wrong } = withOwnAddresses({ podIP: ips[0] ?? '', podIPs }, pod, of, rules, isOfAnother)
  return { podIP: status.podIP, podIPs: status.podIPs, wrong }
}

const ofOthers = ['192.168.1.9', '192.168.1.6', '10.244.2.7', '169.254.169.254', '127.0.0.1']

test('a pod of a fleet with a network has addresses of the ranges of its node only', (t) => {
  t.match(left(['10.244.1.7', 'fd00:10:244:1::7'], routed), {
    podIP: '10.244.1.7',
    podIPs: [{ ip: '10.244.1.7' }, { ip: 'fd00:10:244:1::7' }],
    wrong: [],
  })
  for (const ip of [
    ...ofOthers,
    '192.168.1.5',
    '10.96.0.1',
    '10.244.10.7',
    'fd00:10:244:2::7',
    '::1',
    '::ffff:10.244.1.7',
  ]) {
    const { podIP, podIPs, wrong } = left([ip], routed)
    t.same({ podIP, podIPs }, { podIP: undefined, podIPs: [] }, ip)
    t.equal(wrong.length, 1, ip)
  }
  t.match(left(['10.244.1.7', 'fd00:10:244:2::7'], routed), { podIP: '10.244.1.7', podIPs: [{ ip: '10.244.1.7' }] })
  t.same(left(['192.168.1.9'], routed).wrong, [
    'podIP 192.168.1.9 is not in the spec.podCIDRs of the node (10.244.1.0/24, fd00:10:244:1::/64)',
  ])
  t.end()
})

test('a pod of a node without a range, or without a Node, has no address yet', (t) => {
  t.match(left(['10.244.1.7'], routed, aPod(), aNode({ status: { addresses } })).wrong, [/\(none yet\)$/])
  const { wrong } = withOwnAddresses({ hostIP: '192.168.1.5' }, aPod(), undefined, routed, isOfAnother)
  t.match(wrong, [/^hostIP 192\.168\.1\.5 is not an InternalIP of the node \(none yet\)$/])
  t.end()
})

test('a pod in the network of its node has the InternalIPs of that node only', (t) => {
  const pod = aPod()
  const inHost = { ...pod, spec: { ...pod.spec, hostNetwork: true } }
  for (const rules of [routed, bridgeRules]) {
    t.same(left(['192.168.1.5', 'fd00:1::5'], rules, inHost).wrong, [])
    for (const ip of [...ofOthers, '10.244.1.7']) t.same(left([ip], rules, inHost).podIPs, [], ip)
  }
  t.end()
})

test('a pod on a bridge has any address that no node has, and that one machine can have', (t) => {
  for (const ip of ['172.17.0.2', '10.244.2.7', '10.96.0.9']) t.same(left([ip], bridgeRules).podIPs, [{ ip }])
  for (const ip of [
    '192.168.1.6',
    '169.254.169.254',
    '127.0.0.1',
    '224.0.0.1',
    '255.255.255.255',
    'fe80::1',
    'ff02::1',
  ]) {
    t.same(left([ip], bridgeRules).podIPs, [], ip)
  }
  t.end()
})

test('the address of the host of a pod is one of its node', (t) => {
  const given = {
    hostIP: '192.168.1.6',
    hostIPs: [{ ip: '192.168.1.6' }, { ip: 'fd00:1::5' }],
    phase: 'Running',
  } as const
  t.same(withOwnAddresses(given, aPod(), node, routed, isOfAnother), {
    status: { hostIPs: [{ ip: 'fd00:1::5' }], phase: 'Running' },
    wrong: ['hostIP 192.168.1.6 is not an InternalIP of the node (192.168.1.5, fd00:1::5)'],
  })
  t.end()
})

test('a node has no InternalIP of the loopback, the link, a group, or a range of pods and Services', (t) => {
  for (const ip of ['127.0.0.1', '0.0.0.0', '169.254.1.1', '239.1.1.1', '::', '::1', 'fe80::5', 'ff02::1']) {
    t.type(internalIPProblem(ip, bridgeRules), 'string', ip)
  }
  t.equal(internalIPProblem('10.244.3.1', routed), 'is in the range of pods')
  t.equal(internalIPProblem('fd00:10:96::1', routed), 'is in the range of Services')
  t.equal(internalIPProblem('10.96.0.9', bridgeRules), undefined, 'nothing uses the ranges')
  const given = { addresses: [...addresses, { type: 'InternalIP', address: '127.0.0.1' } as const] }
  t.same(withPossibleAddresses(given, routed), {
    status: { addresses },
    wrong: ['InternalIP 127.0.0.1 is a loopback address'],
  })
  t.equal(specialAddressProblem('192.168.1.1'), undefined)
  t.end()
})
