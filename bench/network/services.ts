/** Measures the rules of Services on one node. `--help` prints the usage. */

import { nftTable } from '../../agent/adapters/network/nft/nft.ts'
import { baseRules } from '../../agent/network/base-rules.ts'
import { allRules, ruleChanges } from '../../agent/network/rule-changes.ts'
import { ipv4Rules } from '../../agent/network/rule-family.ts'
import type { RuleSet } from '../../agent/network/rule-set.ts'
import { rulesOfServices } from '../../agent/network/services/rules-of-services.ts'
import { aService, endpointOn } from '../../agent/network/testing/services.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { bareFleet } from '../../test/support/bare-nodes.ts'
import { ownSpace } from '../../test/support/own-space.ts'
import { median } from '../figures/median.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const node = {
  nodeName: 'pi-1',
  family: ipv4Rules,
  zone: '',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/16',
  addresses: ['192.168.7.1'],
}
const endpointsOfEach = 3
const { services: sizes } = benchmarkOptions({
  name: 'node dist/bench/network/services.js',
  text: `Measures the rules of Services of ${endpointsOfEach} endpoints each on one node: put in place as a whole, again by an agent that starts, and
after one endpoint changed; and what a connection by a ClusterIP costs among all of them, against one straight to the endpoint. In network namespaces
of its own. Prints a table. Needs root and nft.`,
  options: {
    services: {
      value: 'N',
      help: 'number of Services',
      range: [1, 20_000],
      repeated: true,
      default: ['100', '1000', '5000'],
    },
  },
})
const changes = 20
/** Connections of a round: straight to the endpoint, and as many by the ClusterIP. */
const connections = 1000
const rounds = 12

const teardowns: (() => unknown)[] = []
const place = { teardown: (end: () => unknown) => void teardowns.push(end) }
const rows: string[] = []
try {
  for (const size of sizes) rows.push(await measureRules(size))
  console.log('| Services | rules, text | first | again | one endpoint: agent | one endpoint: nft | found intact |')
  console.log('|---|---|---|---|---|---|---|')
  console.log(rows.join('\n'))
  await measureConnections()
} finally {
  for (const end of teardowns.reverse()) await end()
}

async function measureRules(size: number): Promise<string> {
  const table = nftTable(ipv4Rules, await (await ownSpace(place)).tool('nft'))
  const rulesOf = rulesOfServices(node)
  const services = new Map(Array.from({ length: size }, (_, index) => [`shop/web-${index}`, serviceAt(index)]))
  let rules: RuleSet = rulesOf(services)
  let text = ''
  const make = await msOf(async () => {
    text = allRules(undefined, [baseRules(ipv4Rules), rulesOfServices(node)(services)], ipv4Rules).commands
  })
  const first = await msOf(() => table.apply(text))
  const again = await msOf(async () =>
    table.apply(allRules(await table.list(), [baseRules(ipv4Rules), rules], ipv4Rules).commands),
  )
  const agent: number[] = []
  const kernel: number[] = []
  for (let change = 0; change < changes; change++) {
    const changed = (change * 37) % size
    services.set(`shop/web-${changed}`, serviceAt(changed, change + 2))
    let transaction = ''
    agent.push(
      cpuOf(() => {
        const after = rulesOf(new Map(services))
        transaction = ruleChanges([{ before: rules, after }], ipv4Rules).commands
        rules = after
      }),
    )
    kernel.push(await msOf(() => table.apply(transaction)))
  }
  const intact = await msOf(() => table.isIntact(false))
  const cells = [
    size,
    `${make.toFixed(0)} ms, ${(text.length / 1000).toFixed(0)} kB`,
    `${first.toFixed(0)} ms`,
    `${again.toFixed(0)} ms`,
    `${median(agent).toFixed(1)} ms of CPU`,
    `${median(kernel).toFixed(0)} ms`,
    `${intact.toFixed(0)} ms`,
  ]
  return `| ${cells.join(' | ')} |`
}

/** Among the most Services: the last one leads to a pod on the same node. */
async function measureConnections() {
  const { nodes } = await bareFleet(place)
  const [first] = nodes
  const server = await first.pod('server')
  const client = await first.pod('client')
  await server.listen(8080)
  const size = Math.max(...sizes)
  const all = Array.from({ length: size }, (_, index) => serviceAt(index))
  const used = aService({ addresses: [endpointOn('pi-1', server.ip)], clusterIPs: ['10.96.255.1'], name: 'used' })
  await first.apply([...all, used])
  const costs = async (address: string, port: number) => {
    const tookMs = await msOf(() => client.ask({ address, port, times: connections }))
    return (tookMs * 1000) / connections
  }
  const direct: number[] = []
  const service: number[] = []
  await costs(server.ip, 8080)
  // In turns, and each first in every second round: what else the machine does falls on both.
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) direct.push(await costs(server.ip, 8080))
    service.push(await costs('10.96.255.1', 80))
    if (round % 2 === 1) direct.push(await costs(server.ip, 8080))
  }
  const ratios = service.map((us, round) => us / (direct[round] ?? Number.NaN))
  console.log(`\nconnection and answer, ${rounds} rounds of ${connections} in turns: median (smallest to largest)`)
  console.log(`straight to a pod: ${spread(direct, 0)} us`)
  console.log(`by a ClusterIP among ${size} Services: ${spread(service, 0)} us`)
  console.log(`ratio within a round: ${spread(ratios, 2)}`)
}

function spread(values: readonly number[], digits: number): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits))
  return `${median(values).toFixed(digits)} (${least} to ${most})`
}

function serviceAt(index: number, last = 2): ServiceState {
  const [high, low] = [Math.floor(index / 250), index % 250]
  const addresses = Array.from({ length: endpointsOfEach }, (_, at) =>
    endpointOn(`pi-${at + 2}`, `10.244.${high * 4 + at}.${at === endpointsOfEach - 1 ? last : low + 2}`),
  )
  return aService({ name: `web-${index}`, clusterIPs: [`10.96.${high}.${low + 1}`], addresses })
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}

function cpuOf(work: () => void): number {
  const from = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1000
}
