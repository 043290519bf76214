/** An upgrade in real kernels: the rules that the agent of an earlier version left in its tables are replaced, and connections live on. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { nftTable } from '../agent/adapters/network/nft/nft.ts'
import { balancerRules } from '../agent/network/balancers/balancer-rules.ts'
import { baseRules } from '../agent/network/base-rules.ts'
import { ipv6MdnsRules, mdnsRules } from '../agent/network/mdns/mdns-rules.ts'
import { nameRules } from '../agent/network/names/name-rules.ts'
import { networkManager } from '../agent/network/network-manager.ts'
import { peerNetworkOf } from '../agent/network/peers/peer-network.ts'
import { peerRules } from '../agent/network/peers/peer-rules.ts'
import { policyRules } from '../agent/network/policies/policy-rules.ts'
import { allRules } from '../agent/network/rule-changes.ts'
import type { RuleFamily } from '../agent/network/rule-family.ts'
import type { RuleSet } from '../agent/network/rule-set.ts'
import { rulesOfServices } from '../agent/network/services/rules-of-services.ts'
import { aService, endpointOn } from '../agent/network/testing/services.ts'
import { cell } from '../daemon/cell.ts'
import { systemClock } from '../daemon/clock.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { type AddressPlan, bareFleet, ipv4Plan, ipv6Plan } from './support/bare-nodes.ts'
import { inSpace } from './support/machine-commands.ts'
import { type OwnSpace, ownSpace, whyNoRules } from './support/own-space.ts'
import { eventually } from './support/wait.ts'

/**
 * Both fleets of `bareFleet` in one, with a third node behind VXLAN. `shop/web` and `shop/echo` are Services with an endpoint on pi-1; the
 * earlier agent had another one, `shop/gone`, an address of a load balancer, and a policy that is not there any more.
 */
const message = {
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/16', clusterDomain: 'c' },
  ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
  nodes: [
    node(1, { address: '192.168.7.1', segment: 'home' }, 'fd00:7::1'),
    node(2, { address: '192.168.7.2', segment: 'home' }, 'fd00:7::2'),
    node(3, { address: '203.0.113.9', segment: 'yard' }),
  ],
}

function node(number: number, place: { readonly address: string; readonly segment: string }, ipv6?: string) {
  const ranges = { podCIDR: `10.244.${number}.0/24` }
  const ofIPv6 = { podCIDR: `fd00:10:244:${number}::/64`, ...(ipv6 !== undefined && { address: ipv6 }) }
  return { name: `pi-${number}`, ...place, ...ranges, ipv6: ofIPv6 }
}

function wanted(plan: AddressPlan): readonly [RuleSet | undefined, ...RuleSet[]] {
  const { family } = plan
  const network = peerNetworkOf(message, 'pi-1')
  const isIPv4 = family.family === 'IPv4'
  const service = (name: string, last: number, nodePort: number, affinitySeconds?: number) =>
    aService({
      ...{ name, type: 'NodePort', nodePort, clusterIPs: [plan.serviceRange.replace(/0?\/\d+$/, String(last))] },
      addresses: [endpointOn('pi-1', `${plan.pods(1)}${last}`)],
      ...(affinitySeconds !== undefined && { affinitySeconds }),
    })
  const services = [service('web', 2, 30080, 10_800), service('echo', 3, 30081)]
  const ranges = { clusterCIDR: plan.podRange, serviceCIDR: plan.serviceRange }
  const place = { nodeName: 'pi-1', zone: 'hall', ...ranges, addresses: [`${plan.link}1`], family }
  const policies = [{ namespace: 'shop', name: 'deny', podSelector: {}, ingress: [] }]
  const pod = { ...{ namespace: 'shop', name: 'db', labels: {}, ports: [], isStatic: false } }
  const isolated = new Map([['db', { ...pod, ip: '10.244.1.4', ipv6: 'fd00:10:244:1::4' }]])
  const ofPolicies = { epoch: 'e', version: 1, namespaces: ['shop'], policies, sets: [] }
  return [
    network && peerRules(network, family, 'pods'),
    rulesOfServices(place)(new Map(services.map((one) => [`shop/${one.name}`, one]))),
    balancerRules([], family),
    ...(isIPv4 ? [nameRules(message, 'pi-1'), mdnsRules(message)] : [ipv6MdnsRules(message.ipv6, 'pods')]),
    policyRules(ofPolicies, isolated, family),
  ]
}

/** The table, block by block: that of a new chain is not where it is in a table that was made at once. */
async function printed({ run }: OwnSpace, { ip }: RuleFamily): Promise<readonly string[]> {
  const text = await run('nft', '-s', 'list', 'table', ip, 'bramble')
  return text
    .split(/\n(?=\t\w)/)
    .map((block) => block.replace(/[}\s]+$/, ''))
    .sort()
}

/** What belongs to others: all tables but ours of this family. */
async function others({ run }: OwnSpace, { ip }: RuleFamily): Promise<readonly string[]> {
  const tables = (await run('nft', '-s', 'list', 'ruleset')).split(/^(?=table )/m)
  return tables.filter((table) => !table.startsWith(`table ${ip} bramble {`))
}

/** A connection that stays open: what is sent comes back. */
function conversation(t: Test, space: OwnSpace, address: string, port: number) {
  const client = `const socket = require('net').connect(${port}, '${address}')
process.stdin.pipe(socket).pipe(process.stdout)`
  const program = started(t, space, client)
  return (text: string) => {
    program.write(text)
    return eventually(`${text} comes back`, () => program.printed().includes(text))
  }
}

const echo = `require('net').createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(8080, () => console.log('listening'))`

function started(t: Test, space: OwnSpace, script: string) {
  const [file = '', ...args] = inSpace(space.name, process.execPath, '-e', script)
  const program = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => program.kill('SIGKILL'))
  let text = ''
  program.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return { printed: () => text, write: (line: string) => void program.stdin.write(line) }
}

/** The loop of today's agent. Ends with the test. */
function manage(t: Test, space: OwnSpace, table: ReturnType<typeof nftTable>, rules: ReturnType<typeof wanted>) {
  const [first, ...rest] = rules
  const applied = cell<readonly RuleSet[]>([])
  const { run } = networkManager({
    table,
    reads: {
      rules: [cell(first), ...rest.map((part) => cell(part))],
      rulesCurrent: cell(true),
      policiesReady: cell(true),
    },
    writes: { ruleRemovals: cell(0), ruleProblem: cell<string | undefined>(undefined), appliedRules: applied },
    clock: systemClock,
    log: quietLog(t),
  })
  const stop = new AbortController()
  const ended = run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await ended
  })
  return eventually(`rules of ${space.name}`, () => applied.get().length > 0)
}

for (const plan of [ipv4Plan, ipv6Plan]) {
  const { family } = plan
  test(`rules of ${family.family} that an earlier agent left are replaced`, { skip: whyNoRules() }, async (t) => {
    const fleet = await bareFleet(t, plan)
    const [first, second] = fleet.nodes
    const [web, echoing] = [await first.pod('web'), await first.pod('echo')]
    await web.listen(8080)
    const echoes = started(t, echoing.inside, echo)
    await eventually('it listens', () => echoes.printed() !== '')
    const file = fileURLToPath(new URL(`../../agent/testing/earlier-rules/${family.ip}.nft`, import.meta.url))
    await first.space.run('nft', '-f', file)
    await first.space.run(
      'nft',
      'add table inet house; add chain inet house in { type filter hook input priority 0; }; add rule inet house in counter',
    )
    await first.space.run('iptables', '-I', 'FORWARD', '-m', 'mark', '--mark', '0x8000/0x8000', '-j', 'ACCEPT')

    const at = { address: first.address, port: 30080, patienceMs: 30_000 }
    const answer = `web ${first.pods}1`
    t.same(await fleet.stranger.ask(at), [answer], 'the rules of the earlier agent are in use')
    const echoed = conversation(t, second.space, first.address, 30081)
    await echoed('before')
    const left = await printed(first.space, family)
    const affinity = left.find((block) => /^\tset affinity-/.test(block) && block.includes(fleet.strangerAddress))
    t.ok(affinity, 'packets have filled a set')
    t.ok(
      left.some((block) => block.includes('gone')),
      'there is a Service that is gone by now',
    )
    const before = await others(first.space, family)

    const stopAsking = await second.host.keepAsking(at)
    const rules = wanted(plan)
    const table = nftTable(family, await first.space.tool('nft'))
    await manage(t, first.space, table, rules)
    await echoed('behind')
    const fresh = await ownSpace(t)
    const afresh = nftTable(family, await fresh.tool('nft'))
    const [peers, ...rest] = rules
    const all = [baseRules(family), ...(peers === undefined ? [] : [peers]), ...rest]
    await afresh.apply(allRules(undefined, all, family).commands)
    const names = async (one: typeof table) => {
      const { chains = [], sets = [] } = (await one.list()) ?? {}
      return [...chains, ...sets.map(({ name }) => name)].sort()
    }
    await eventually('chains that nothing uses are deleted', async () => {
      return String(await names(table)) === String(await names(afresh))
    })
    t.same([...(await stopAsking()).keys()], [answer], 'each new connection was answered meanwhile')
    const isAffinity = (block: string) => block.startsWith(affinity?.split(' {')[0] ?? '-')
    const now = await printed(first.space, family)
    t.ok(
      now.some((block) => isAffinity(block) && block.includes(fleet.strangerAddress)),
      'clients stay where they were',
    )
    const unfilled = (blocks: readonly string[]) => blocks.filter((block) => !isAffinity(block))
    t.same(unfilled(now), unfilled(await printed(fresh, family)), 'as where there was no table before')
    t.same(await others(first.space, family), before, 'the rules of others are as they were')
    await echoed('at the end')
  })
}
