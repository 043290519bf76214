import { test } from 'tap'
import { parseCidr } from '../../api/text/cidr.ts'
import { type NetworkFindings, networkReport, networkText } from './network-report.ts'

const range = (text: string) => {
  const parsed = parseCidr(text)
  if (parsed === undefined) throw new Error(`Not a range: ${text}`)
  return parsed
}
const node = (number: number, segment = 'lan') => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment,
})
const whole: NetworkFindings = {
  nodeName: 'pi-1',
  message: {
    epoch: 'e',
    version: 1,
    clusterCIDR: '10.244.0.0/16',
    serviceCIDR: '10.96.0.0/12',
    clusterDomain: 'cluster.local',
    nodes: [node(1), node(2), node(3, 'attic')],
  },
  links: {
    routes: [
      { interface: 'eth0', range: range('10.244.2.0/24'), gateway: '192.168.1.2', metric: 0 },
      { interface: 'bramble-vxlan', range: range('10.244.3.0/24'), gateway: '10.244.3.0', metric: 0 },
    ],
    hasTunnel: true,
  },
  made: { routes: [], tunnelPeers: [] },
  hasRules: true,
  dockerAccepts: true,
  forwards: true,
  isolated: [],
}

test('a node whose network is whole has no problems', async (t) => {
  const report = networkReport(whole)
  t.same(report.problems, [])
  t.equal(
    networkText(report),
    `Node pi-1: pods 10.244.1.0/24 of 10.244.0.0/16, Services 10.96.0.0/12

NODE  PODS           ADDRESS      BY      STATE
pi-1  10.244.1.0/24  192.168.1.1  none    this node
pi-2  10.244.2.0/24  192.168.1.2  route   in place
pi-3  10.244.3.0/24  192.168.1.3  tunnel  in place
`,
  )
})

test('what is missing is named', async (t) => {
  const report = networkReport({
    ...whole,
    links: { routes: [], hasTunnel: false },
    hasRules: false,
    dockerAccepts: false,
    forwards: false,
  })
  t.match(report.problems, [/table of rules/, /DOCKER-USER/, /ip_forward=1/, /the pods of pi-2, pi-3$/])
  t.match(networkText(report), /pi-2 .* missing\n/)
  t.match(networkText(report), /\n\nProblems:\n- The table/)
})

test('a route of others in the place of ours is a problem', async (t) => {
  const foreign = { interface: 'wg0', range: range('10.244.2.0/24'), metric: 0 }
  const report = networkReport({ ...whole, links: { routes: [foreign], hasTunnel: false } })
  t.ok(report.problems.some((problem) => /10\.244\.2\.0\/24 on wg0/.test(problem)))
  t.match(report.network?.nodes[1], { name: 'pi-2', state: 'missing' })
})

test('without a network of the fleet, or a range for this node, the report states that', async (t) => {
  const none = networkReport({ ...whole, message: undefined, hasRules: false, dockerAccepts: false })
  t.same(none.problems, [])
  t.match(networkText(none), /has no network of its own \(podNetwork: node\)/)
  const shared = { ...node(4), address: '192.168.1.1' }
  const message = whole.message && { ...whole.message, nodes: [node(1), shared] }
  t.match(networkReport({ ...whole, message }).network?.nodes[1], { name: 'pi-4', way: 'none', state: 'not reached' })
  t.match(networkReport({ ...whole, nodeName: 'pi-9' }).problems, [/has not assigned/])
})

test('pods that policies restrict are listed', async (t) => {
  const isolated = [
    { pod: 'shop/db', address: '10.244.1.5', directions: ['ingress', 'egress'] as const },
    { pod: undefined, address: '10.244.1.16', directions: ['ingress'] as const },
  ]
  t.match(
    networkText(networkReport({ ...whole, isolated })),
    `
POD                 ADDRESS      ISOLATED
shop/db             10.244.1.5   ingress, egress
<unknown policies>  10.244.1.16  ingress
`,
  )
})
