/** Rules of Services drawn at random: the kernel takes each of them, and changes lead to what the whole would be. */

import { test } from 'tap'
import { nftTable } from '../agent/adapters/network/nft/nft.ts'
import { baseRules } from '../agent/network/base-rules.ts'
import { allRules, chainDeletion, type RuleTransaction, ruleChanges } from '../agent/network/rule-changes.ts'
import { ipv4Rules } from '../agent/network/rule-family.ts'
import { noRules } from '../agent/network/rule-set.ts'
import { rulesOfServices } from '../agent/network/services/rules-of-services.ts'
import { aService, endpointOn } from '../agent/network/testing/services.ts'
import type { ServiceState } from '../api/network/service-endpoints.ts'
import { seededRandom } from '../daemon/testing/seeded-random.ts'
import { type OwnSpace, ownSpace, whyNoRules } from './support/own-space.ts'

const rounds = 40
const node = {
  nodeName: 'pi-1',
  family: ipv4Rules,
  zone: 'hall',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  addresses: ['192.168.1.11'],
}

test('changes of Services lead to the rules that the whole would be', { skip: whyNoRules() }, async (t) => {
  const [changing, placing] = [await ownSpace(t), await ownSpace(t)]
  const [changed, placed] = [await applierIn(changing), await applierIn(placing)]
  const rulesOf = rulesOfServices(node)
  const random = seededRandom(20)
  await changed.apply(allRules(undefined, [baseRules(ipv4Rules)], ipv4Rules))
  let services: ReadonlyMap<string, ServiceState> = new Map()
  let before = noRules
  for (let round = 0; round < rounds; round++) {
    services = drawn(services, random)
    const after = rulesOf(services)
    await changed.apply(ruleChanges([{ before, after }], ipv4Rules))
    await placed.apply(
      allRules(await placed.list(), [baseRules(ipv4Rules), rulesOfServices(node)(services)], ipv4Rules),
    )
    t.same(await printed(changing), await printed(placing), `round ${round}`)
    before = after
  }
})

async function applierIn(space: OwnSpace) {
  const table = nftTable(ipv4Rules, await space.tool('nft'))
  return {
    list: table.list,
    async apply({ commands, retired }: RuleTransaction) {
      if (commands !== '') await table.apply(commands)
      if (retired.length > 0) await table.apply(chainDeletion(retired, ipv4Rules))
    },
  }
}

/** The chains, sets and maps of the table, whichever came first. */
async function printed({ run }: OwnSpace): Promise<readonly string[]> {
  const text = await run('nft', '-s', 'list', 'table', 'ip', 'bramble')
  return text
    .split(/\n(?=\t\w)/)
    .map((block) =>
      block
        .replace(/[}\s]+$/, '')
        .split(/,\s+/)
        .sort()
        .join(),
    )
    .sort()
}

/** Some Services are others, new or gone; the rest are the same objects. */
function drawn(before: ReadonlyMap<string, ServiceState>, random: () => number): ReadonlyMap<string, ServiceState> {
  const after = new Map(before)
  for (let at = 0; at < 6; at++) {
    if (random() < 0.5) continue
    const name = `web-${at}`
    if (random() < 0.2) after.delete(name)
    else after.set(name, serviceAt(at, random))
  }
  return after
}

function serviceAt(at: number, random: () => number): ServiceState {
  const oneOf = <T>(first: T, ...others: readonly T[]): T =>
    [first, ...others][Math.floor(random() * (others.length + 1))] ?? first
  const addresses = Array.from({ length: Math.floor(random() * 4) }, (_, index) => ({
    ...endpointOn(oneOf('pi-1', 'pi-2'), `10.244.${index}.${oneOf(2, 3)}`),
    ...oneOf(
      { ready: true, serving: true, terminating: false },
      { ready: false, serving: false, terminating: false },
      { ready: false, serving: true, terminating: true },
    ),
    ...oneOf({}, { zones: ['hall'] }, { zones: ['yard'] }),
  }))
  return aService({
    name: `web-${at}`,
    clusterIPs: [`10.96.0.${at + 1}`],
    type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer'),
    internalTrafficPolicy: oneOf('Cluster', 'Local'),
    externalTrafficPolicy: oneOf('Cluster', 'Local'),
    externalIPs: oneOf([], ['192.0.2.1']),
    loadBalancerIPs: oneOf([], [`192.168.1.${240 + at}`]),
    sourceRanges: oneOf([], ['203.0.113.0/24'], ['192.168.0.0/16', '192.168.1.0/24']),
    addresses,
    ...oneOf({}, { nodePort: 30_080 + at }),
    ...oneOf({}, {}, { affinitySeconds: 60 }, { affinitySeconds: 10_800 }),
  })
}
