import { test } from 'tap'
import { baseRules, jumpPoints } from './base-rules.ts'
import { allRules, chainDeletion, ruleChanges } from './rule-changes.ts'
import { ipv4Rules } from './rule-family.ts'
import { noRules, type RuleChain, type RuleElements, type RuleSet } from './rule-set.ts'

const rules = (
  chains: { readonly [name: string]: RuleChain },
  sets: { readonly [name: string]: RuleElements } = {},
): RuleSet => ({ chains: new Map(Object.entries(chains)), sets: new Map(Object.entries(sets)) })
const map = (elements: { readonly [key: string]: string }): RuleElements => ({
  kind: 'map',
  type: 'ipv4_addr : verdict',
  elements: new Map(Object.entries(elements)),
})
const change = (before: RuleSet, after: RuleSet) =>
  ruleChanges([{ before, after }], ipv4Rules).commands.split('\n').slice(0, -1)

test('equal rules need no transaction, whether or not they are the same objects', async (t) => {
  const one = () => rules({ web: { rules: ['drop'] } }, { entries: map({ '10.0.0.1': 'goto web' }) })
  const same = one()
  t.same(ruleChanges([{ before: same, after: same }], ipv4Rules), { commands: '', retired: [] })
  t.same(ruleChanges([{ before: one(), after: one() }], ipv4Rules), { commands: '', retired: [] })
})

test('a chain is added before what refers to it, and deleted in a transaction of its own after it', async (t) => {
  const with_ = rules({ web: { rules: ['drop'] } }, { entries: map({ '10.0.0.1': 'goto web' }) })
  const without = rules({}, { entries: map({}) })
  t.same(change(without, with_), [
    'add chain ip bramble web',
    'add element ip bramble entries { 10.0.0.1 : goto web }',
    'add rule ip bramble web drop',
  ])
  t.same(change(with_, without), [
    'flush chain ip bramble web',
    'delete element ip bramble entries { 10.0.0.1 : goto web }',
  ])
  const { retired } = ruleChanges([{ before: with_, after: without }], ipv4Rules)
  t.same(retired, ['web'])
  t.equal(chainDeletion(retired, ipv4Rules), 'delete chain ip bramble web\n')
})

test('only the chain and the elements that differ are written', async (t) => {
  const other: RuleChain = { rules: ['accept'] }
  t.same(
    change(
      rules(
        { web: { rules: ['drop'] }, other },
        { entries: map({ '10.0.0.1': 'goto web', '10.0.0.2': 'goto web', '10.0.0.3': 'goto web' }) },
      ),
      rules(
        { web: { rules: ['accept', 'drop'] }, other },
        { entries: map({ '10.0.0.1': 'goto other', '10.0.0.2': 'goto web', '10.0.0.4': 'goto web' }) },
      ),
    ),
    [
      'flush chain ip bramble web',
      'delete element ip bramble entries { 10.0.0.1 : goto web, 10.0.0.3 : goto web }',
      'add element ip bramble entries { 10.0.0.1 : goto other, 10.0.0.4 : goto web }',
      'add rule ip bramble web accept',
      'add rule ip bramble web drop',
    ],
  )
})

test('a set with another definition, or a chain with another hook, is made again', async (t) => {
  const set = (timeoutSeconds: number): RuleElements => ({
    kind: 'set',
    type: 'ipv4_addr',
    flags: ['dynamic', 'timeout'],
    timeoutSeconds,
    size: 100,
    elements: undefined,
  })
  t.same(change(rules({}, { clients: set(60) }), rules({}, { clients: set(90) })), [
    'delete set ip bramble clients',
    'add set ip bramble clients { type ipv4_addr ; flags dynamic,timeout ; timeout 90s ; size 100 ; }',
  ])
  const hooked = (priority: number): RuleChain => ({ base: { type: 'filter', hook: 'output', priority }, rules: [] })
  t.same(change(rules({ early: hooked(-20) }), rules({ early: hooked(-30) })), [
    'flush chain ip bramble early',
    'delete chain ip bramble early',
    'add chain ip bramble early { type filter hook output priority -30 ; }',
  ])
})

test('a chain that the base jumps to is emptied and not deleted', async (t) => {
  const filled = rules({ 'services-forward': { rules: ['accept'] } })
  t.same(ruleChanges([{ before: filled, after: noRules }], ipv4Rules), {
    commands: 'flush chain ip bramble services-forward\n',
    retired: [],
  })
})

test('the changes of all parts are one transaction, in the order that references demand', async (t) => {
  const { commands, retired } = ruleChanges(
    [
      { before: rules({ a: { rules: ['drop'] } }), after: noRules },
      { before: noRules, after: rules({ b: { rules: ['drop'] } }) },
    ],
    ipv4Rules,
  )
  t.same(commands.split('\n').slice(0, 2), ['flush chain ip bramble a', 'add chain ip bramble b'])
  t.same(retired, ['a'])
})

test('from an unknown state everything is put in place again, and what packets filled is kept', async (t) => {
  const clients = { kind: 'set', type: 'ipv4_addr', timeoutSeconds: 60 } as const
  const entries = { kind: 'map', type: 'ipv4_addr : verdict' } as const
  const wanted = rules(
    { web: { rules: ['drop'] } },
    {
      clients: { ...clients, flags: ['dynamic', 'timeout'], elements: undefined },
      entries: map({ '10.0.0.1': 'drop' }),
    },
  )
  const from = (...sets: readonly { readonly name: string; readonly timeoutSeconds: number }[]) =>
    allRules(
      {
        chains: ['old', 'web', 'forward', 'peers-input'],
        sets: [...sets.map((set) => ({ ...clients, ...set })), { ...entries, name: 'entries' }],
      },
      [baseRules(ipv4Rules), wanted],
      ipv4Rules,
    )
  const { commands, retired } = from({ name: 'clients', timeoutSeconds: 60 }, { name: 'gone', timeoutSeconds: 60 })
  t.same(commands.split('\n').slice(0, 5), [
    'add table ip bramble',
    'flush table ip bramble',
    'flush map ip bramble entries',
    'delete set ip bramble gone',
    'delete chain ip bramble forward',
  ])
  t.same(retired, ['old'])
  t.notMatch(commands, /clients|add map/)
  t.match(commands, /add element ip bramble entries \{ 10\.0\.0\.1 : drop \}\n/)
  t.match(commands, /add chain ip bramble web\nadd/)
  const made = from({ name: 'clients', timeoutSeconds: 90 }).commands
  t.equal(made.match(/ set ip bramble clients/g)?.length, 2, 'deleted and added')
  const fresh = allRules(undefined, [baseRules(ipv4Rules), wanted], ipv4Rules)
  t.notMatch(fresh.commands, /flush|delete/)
  t.same(fresh.retired, [])
  for (const name of jumpPoints) t.ok(fresh.commands.includes(`add chain ip bramble ${name}\n`), name)
  const at = (text: string) => fresh.commands.indexOf(text)
  t.ok(at('add chain ip bramble peers-input') < at('add rule ip bramble input jump peers-input'))
})

test('a set with flags or a size that the kernel does not list is made again', async (t) => {
  const ranges: RuleElements = { kind: 'set', type: 'ipv4_addr', flags: ['interval'], elements: new Map() }
  const existing = { chains: [], sets: [{ kind: 'set', name: 'ranges', type: 'ipv4_addr' } as const] }
  t.match(
    allRules(existing, [rules({}, { ranges })], ipv4Rules).commands,
    /delete set ip bramble ranges\n(.*\n)*add set .*interval/,
  )
})
