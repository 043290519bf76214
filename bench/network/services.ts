/**
 * Measures the rules of Services on one node: 100, 1,000 and 5,000 Services of three endpoints each, put in place as a whole, again
 * by an agent that starts, and after one endpoint changed; and what a connection by a ClusterIP costs among all of them, against
 * one straight to the endpoint. In network namespaces of its own; needs root and nftables. Prints a table.
 */
import { nftTable } from '../../agent/adapters/network/nft.ts'
import { baseRules } from '../../agent/network/base-rules.ts'
import { allRules, ruleChanges } from '../../agent/network/rule-changes.ts'
import type { RuleSet } from '../../agent/network/rule-set.ts'
import { rulesOfServices } from '../../agent/network/services/rules-of-services.ts'
import { aService, endpointOn } from '../../agent/network/testing/services.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { bareFleet } from '../../test/support/bare-nodes.ts'
import { ownSpace } from '../../test/support/own-space.ts'

const node = {
  nodeName: 'pi-1',
  zone: '',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/16',
  addresses: ['192.168.7.1'],
}
const sizes = [100, 1000, 5000]
const endpointsOfEach = 3
const changes = 20
const connections = 2000

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
  const table = nftTable(await (await ownSpace(place)).tool('nft'))
  const rulesOf = rulesOfServices(node)
  const services = new Map(Array.from({ length: size }, (_, index) => [`shop/web-${index}`, serviceAt(index)]))
  let rules: RuleSet = rulesOf(services)
  let text = ''
  const make = await msOf(async () => {
    text = allRules(undefined, [baseRules, rulesOfServices(node)(services)]).commands
  })
  const first = await msOf(() => table.apply(text))
  const again = await msOf(async () => table.apply(allRules(await table.list(), [baseRules, rules]).commands))
  const agent: number[] = []
  const kernel: number[] = []
  for (let change = 0; change < changes; change++) {
    const changed = (change * 37) % size
    services.set(`shop/web-${changed}`, serviceAt(changed, change + 2))
    let transaction = ''
    agent.push(
      cpuOf(() => {
        const after = rulesOf(new Map(services))
        transaction = ruleChanges([{ before: rules, after }]).commands
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
    return `${((tookMs * 1000) / connections).toFixed(0)} us`
  }
  await costs(server.ip, 8080)
  const direct = [await costs(server.ip, 8080), await costs(server.ip, 8080)]
  const service = [await costs('10.96.255.1', 80), await costs('10.96.255.1', 80)]
  console.log(
    `connection and answer, straight: ${direct.join(', ')}; by a ClusterIP among ${size}: ${service.join(', ')}`,
  )
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

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0
}
