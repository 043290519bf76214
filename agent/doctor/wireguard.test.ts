import { test } from 'tap'
import { type WireguardReading, wireguardFindings } from './wireguard.ts'

const key = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg='
const node = (number: number) => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.${number}.1`,
  segment: `site ${number}`,
})
const message = {
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' },
  ...{ clusterDomain: 'cluster.local', wireguard: { port: 51_871 } },
  nodes: [node(1), { ...node(2), wireguardKey: key }],
}
const whole: WireguardReading = {
  message,
  nodeName: 'pi-1',
  hasProgram: true,
  hasKernel: true,
  state: {
    ...{ publicKey: undefined, port: 51_871 },
    peers: new Map([[key, { endpoint: undefined, ranges: [], handshake: 1, keepaliveSeconds: 0 }]]),
  },
  nowSeconds: 2,
}
const verdicts = (reading: Partial<WireguardReading>) =>
  wireguardFindings({ ...whole, ...reading }).map(({ check, verdict }) => `${check} ${verdict}`)

test('a node whose peers have answered has no problem', async (t) => {
  t.same(verdicts({}), ['wireguard-tools ok', 'wireguard-kernel ok', 'wireguard-peers ok'])
})

test('what is missing for WireGuard is a problem with a remedy', async (t) => {
  t.match(verdicts({ hasProgram: false }), ['wireguard-tools problem'])
  t.match(verdicts({ hasKernel: false })[1], 'wireguard-kernel problem')
  t.match(verdicts({ hasKernel: undefined })[1], 'wireguard-kernel unknown')
  t.equal(verdicts({ state: undefined }).length, 2)
  t.equal(verdicts({ nodeName: undefined }).length, 2)
  t.match(wireguardFindings({ ...whole, hasProgram: false })[0], { remedy: 'apt-get install wireguard-tools' })
})

test('nodes that never answered are one warning', async (t) => {
  const state = { publicKey: undefined, port: 51_871, peers: new Map() }
  t.match(wireguardFindings({ ...whole, state })[2], {
    verdict: 'warning',
    found: 'Pods of other sites may not be reached: node pi-2 has not answered WireGuard at 192.168.2.1:51871 yet',
    remedy: /^Let UDP port 51871 pass/,
  })
  const third = { ...node(3), wireguardKey: 'TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=' }
  const more = { ...message, nodes: [...message.nodes, third] }
  t.match(wireguardFindings({ ...whole, message: more, state })[2], { found: /, and 1 more$/ })
})
