import { test } from 'tap'
import type { NodeSpec } from '../node.ts'
import type { PodStatus } from '../pod.ts'
import type { Problem } from '../problem.ts'
import { aNode, aPod } from '../testing/builders.ts'
import { nodeRangeProblems, podAddressProblems, withPairedPodIPs, withPairedRanges } from './address-pairs.ts'

const texts = (problems: readonly Problem[]) => problems.map(({ field, message }) => `${field}: ${message}`)

test('a Node has at most one range of pods of each IP family', async (t) => {
  const wrong = (...podCIDRs: readonly string[]) => texts(nodeRangeProblems(aNode({ spec: { podCIDRs } })))
  t.same(wrong(), [])
  t.same(wrong('fd00:7::/64'), [])
  t.same(wrong('10.244.1.0/24', 'fd00:7::/64'), [])
  t.same(wrong('10.244.1.0'), [
    'spec.podCIDRs[0]: Invalid value: "10.244.1.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
  ])
  const most = 'may specify no more than one CIDR for each IP family'
  t.same(wrong('10.244.1.0/24', '10.244.2.0/24'), [
    `spec.podCIDRs: Invalid value: ["10.244.1.0/24","10.244.2.0/24"]: ${most}`,
  ])
  t.same(wrong('10.244.1.0/24', '10.244.1.0/24').slice(1), ['spec.podCIDRs[1]: Duplicate value: "10.244.1.0/24"'])
})

test('the ranges of a Node are paired, and podCIDR wins', async (t) => {
  const paired = (spec: NodeSpec) => withPairedRanges(aNode({ spec })).spec
  t.match(paired({ podCIDR: '10.1.0.0/24' }), { podCIDRs: ['10.1.0.0/24'] })
  t.match(paired({ podCIDRs: ['10.1.0.0/24', 'fd00::/64'] }), { podCIDR: '10.1.0.0/24' })
  t.match(paired({ podCIDR: '10.1.0.0/24', podCIDRs: ['10.2.0.0/24'] }), { podCIDRs: ['10.1.0.0/24'] })
  t.notOk('podCIDRs' in (paired({}) ?? {}))
})

test('a Pod has at most one address of each IP family, and its node too', async (t) => {
  const wrong = (status: PodStatus) => texts(podAddressProblems(aPod({ status })))
  const ips = (...all: readonly string[]) => all.map((ip) => ({ ip }))
  t.same(wrong({ podIPs: ips('10.1.0.5', 'fd00::5'), hostIP: '192.0.2.1', hostIPs: ips('192.0.2.1', 'fd00::1') }), [])
  t.same(wrong({ podIPs: ips('10.1.0.256') }), [
    'status.podIPs[0]: Invalid value: "10.1.0.256": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ])
  const most = 'may specify no more than one IP for each IP family'
  t.same(wrong({ podIPs: ips('10.1.0.5', '10.1.0.6') }), [
    `status.podIPs: Invalid value: [{"IP":"10.1.0.5"},{"IP":"10.1.0.6"}]: ${most}`,
  ])
  t.same(wrong({ podIPs: ips('fd00::5', 'fd00::5') }).slice(1), ['status.podIPs[1]: Duplicate value: {"IP":"fd00::5"}'])
  t.same(wrong({ hostIP: '192.0.2.1', hostIPs: ips('192.0.2.2') }), [
    'status.hostIPs[0].ip: Invalid value: "192.0.2.2": must be equal to `hostIP`',
  ])
})

test('the addresses of a Pod are paired, and podIP wins', async (t) => {
  t.same(withPairedPodIPs({ podIP: '10.1.0.5' }), { podIP: '10.1.0.5', podIPs: [{ ip: '10.1.0.5' }] })
  t.match(withPairedPodIPs({ podIPs: [{ ip: '10.1.0.5' }, { ip: 'fd00::5' }] }), { podIP: '10.1.0.5' })
  t.match(withPairedPodIPs({ podIP: '10.1.0.5', podIPs: [{ ip: '10.1.0.6' }] }), { podIPs: [{ ip: '10.1.0.5' }] })
  t.same(withPairedPodIPs({}), {})
})
