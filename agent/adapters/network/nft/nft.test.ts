import { test } from 'tap'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { ownSpace, whyNoRules } from '../../../../test/support/own-space.ts'
import { baseRules } from '../../../network/base-rules.ts'
import { allRules, chainDeletion, ruleChanges } from '../../../network/rule-changes.ts'
import { ipv4Rules } from '../../../network/rule-family.ts'
import { noRules, type RuleChain, type RuleElements, type RuleSet } from '../../../network/rule-set.ts'
import { existingIn, nftTable } from './nft.ts'

const dynamic: RuleElements = {
  kind: 'set',
  type: 'ipv4_addr',
  flags: ['dynamic', 'timeout'],
  timeoutSeconds: 600,
  size: 100,
  elements: undefined,
}

/** Service chains that refer to each other by rules and by the elements of a map, drawn at random. */
function drawn(random: () => number): RuleSet {
  const chosen = ['a', 'b', 'c', 'd'].filter(() => random() < 0.6)
  const verdicts = chosen.flatMap((name, index) =>
    random() < 0.7 ? [[`10.0.0.${index} . tcp . 80`, `goto ${name}`] as const] : [],
  )
  const chains = chosen.map((name, index): [string, RuleChain] => {
    const next = chosen[index + 1]
    const jump = next !== undefined && random() < 0.5 ? [`jump ${next}`] : []
    return [name, { rules: [...jump, `ip saddr 10.0.0.${Math.floor(random() * 3)} drop`] }]
  })
  const entries: RuleElements = {
    kind: 'map',
    type: 'ipv4_addr . inet_proto . inet_service : verdict',
    elements: new Map(verdicts),
  }
  const entry: RuleChain = { rules: ['ip daddr . meta l4proto . th dport vmap @entries'] }
  const isOn = random() < 0.8
  return {
    chains: new Map([...chains, ...(isOn ? [['services-prerouting', entry] as const] : [])]),
    sets: new Map(isOn ? [['entries', entries]] : []),
  }
}

test('the kernel has the same rules after changes as after putting all in place', { skip: whyNoRules() }, async (t) => {
  const [changing, placing] = [await ownSpace(t), await ownSpace(t)]
  const [changed, placed] = [
    nftTable(ipv4Rules, await changing.tool('nft')),
    nftTable(ipv4Rules, await placing.tool('nft')),
  ]
  const printed = async ({ run }: typeof changing) =>
    (await run('nft', '-s', 'list', 'table', 'ip', 'bramble'))
      .split(/\n(?=\t\w)/)
      .map((block) => block.replace(/[}\s]+$/, ''))
      .sort()
  await changed.apply(allRules(undefined, [baseRules(ipv4Rules)], ipv4Rules).commands)
  const random = seededRandom(7)
  let before = noRules
  for (let round = 0; round < 25; round++) {
    const after = drawn(random)
    const { commands, retired } = ruleChanges([{ before, after }], ipv4Rules)
    if (commands !== '') await changed.apply(commands)
    if (retired.length > 0) await changed.apply(chainDeletion(retired, ipv4Rules))
    const whole = allRules(await placed.list(), [baseRules(ipv4Rules), after], ipv4Rules)
    await placed.apply(whole.commands)
    if (whole.retired.length > 0) await placed.apply(chainDeletion(whole.retired, ipv4Rules))
    t.same(await printed(changing), await printed(placing), `round ${round}`)
    before = after
  }
})

test('what packets filled outlives an agent that starts again', { skip: whyNoRules() }, async (t) => {
  const space = await ownSpace(t)
  const table = nftTable(ipv4Rules, await space.tool('nft'))
  const chain: RuleChain = { rules: ['ip saddr @clients accept'] }
  const wanted: RuleSet = { chains: new Map([['services-forward', chain]]), sets: new Map([['clients', dynamic]]) }
  await table.apply(allRules(await table.list(), [baseRules(ipv4Rules), wanted], ipv4Rules).commands)
  await space.run('nft', 'add element ip bramble clients { 192.0.2.7 }')
  await table.apply(allRules(await table.list(), [baseRules(ipv4Rules), wanted], ipv4Rules).commands)
  t.match(await space.run('nft', 'list', 'set', 'ip', 'bramble', 'clients'), /192\.0\.2\.7/)
})

test('a table that another program removed is not intact, nor is one that it emptied on a thorough look', {
  skip: whyNoRules(),
}, async (t) => {
  const space = await ownSpace(t)
  const table = nftTable(ipv4Rules, await space.tool('nft'))
  const intact = async () => [await table.isIntact(false), await table.isIntact(true)]
  t.same(await intact(), [false, false])
  t.equal(await table.list(), undefined)
  const { commands } = allRules(undefined, [baseRules(ipv4Rules)], ipv4Rules)
  await table.apply(commands)
  t.same(await intact(), [true, true])
  await space.run('nft', 'flush', 'table', 'ip', 'bramble')
  t.same(await intact(), [true, false])
  await space.run('nft', 'flush', 'ruleset')
  t.same(await intact(), [false, false])
  await space.run('nft', 'add table ip bramble; add chain ip bramble forward')
  t.equal(await table.isIntact(false), false, 'a chain that the kernel does not enter')
})

test('other tables are neither listed nor touched', { skip: whyNoRules() }, async (t) => {
  const space = await ownSpace(t)
  const table = nftTable(ipv4Rules, await space.tool('nft'))
  await space.run('nft', 'add table ip other; add chain ip other forward; add table ip6 bramble')
  const before = await space.run('nft', 'list', 'ruleset')
  t.equal(await table.list(), undefined)
  await table.apply(allRules(undefined, [baseRules(ipv4Rules)], ipv4Rules).commands)
  await table.remove()
  await table.remove()
  t.equal(await space.run('nft', 'list', 'ruleset'), before)
})

test('a transaction that nft refuses changes nothing, and the error names the cause', {
  skip: whyNoRules(),
}, async (t) => {
  const space = await ownSpace(t)
  const table = nftTable(ipv4Rules, await space.tool('nft'))
  await t.rejects(table.apply('add table ip bramble\nadd rule ip bramble web drop\n'), {
    message: /^Cannot change table ip bramble: .*No such file or directory/,
  })
  t.equal(await table.list(), undefined)
  await t.rejects(nftTable(ipv4Rules, '/nonexistent/nft').list(), { message: '/nonexistent/nft is not installed' })
})

test('chains and sets are read from the lists that nft prints', async (t) => {
  const line = (...objects: readonly unknown[]) => `${JSON.stringify({ nftables: [{ metainfo: {} }, ...objects] })}\n`
  const ours = { family: 'ip', table: 'bramble' }
  const text =
    line({ table: { family: 'ip', name: 'bramble' } }) +
    line({ chain: { ...ours, name: 'forward' } }, { chain: { ...ours, table: 'filter', name: 'FORWARD' } }) +
    line({ set: { ...ours, name: 'clients', type: 'ipv4_addr', timeout: 600 } }) +
    line({ map: { ...ours, name: 'entries', type: ['ipv4_addr', 'inet_proto'], map: 'verdict' } })
  t.same(existingIn(text, ipv4Rules), {
    chains: ['forward'],
    sets: [
      { kind: 'set', name: 'clients', type: 'ipv4_addr', timeoutSeconds: 600 },
      { kind: 'map', name: 'entries', type: 'ipv4_addr . inet_proto : verdict' },
    ],
  })
  t.equal(existingIn(line({ table: { family: 'ip6', name: 'bramble' } }), ipv4Rules), undefined)
})
