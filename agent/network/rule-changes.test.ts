import { test } from 'tap'
import { baseRules, jumpPoints } from './base-rules.ts'
import { allRules, ruleChanges } from './rule-changes.ts'
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
const change = (before: RuleSet, after: RuleSet) => ruleChanges([{ before, after }]).split('\n').slice(0, -1)

test('equal rules need no transaction, whether or not they are the same objects', async (t) => {
  const one = () => rules({ web: { rules: ['drop'] } }, { entries: map({ '10.0.0.1': 'goto web' }) })
  const same = one()
  t.equal(ruleChanges([{ before: same, after: same }]), '')
  t.equal(ruleChanges([{ before: one(), after: one() }]), '')
})

test('a chain is added before what refers to it, and deleted after it', async (t) => {
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
    'delete chain ip bramble web',
  ])
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
  t.same(change(filled, noRules), ['flush chain ip bramble services-forward'])
})

test('the changes of all parts are one transaction, in the order that references demand', async (t) => {
  const text = ruleChanges([
    { before: rules({ a: { rules: ['drop'] } }), after: noRules },
    { before: noRules, after: rules({ b: { rules: ['drop'] } }) },
  ])
  t.same(text.split('\n').slice(0, 3), [
    'flush chain ip bramble a',
    'delete chain ip bramble a',
    'add chain ip bramble b',
  ])
})

test('from an unknown state everything is put in place again, and what packets filled is kept', async (t) => {
  const clients = { kind: 'set', type: 'ipv4_addr', timeoutSeconds: 60 } as const
  const wanted = rules({}, { clients: { ...clients, flags: ['dynamic', 'timeout'], elements: undefined } })
  const from = (...sets: readonly { readonly name: string; readonly timeoutSeconds: number }[]) =>
    allRules({ chains: ['old'], sets: sets.map((set) => ({ ...clients, ...set })) }, [baseRules, wanted]).split('\n')
  const kept = from({ name: 'clients', timeoutSeconds: 60 }, { name: 'gone', timeoutSeconds: 60 })
  t.same(kept.slice(0, 4), [
    'add table ip bramble',
    'flush table ip bramble',
    'delete set ip bramble gone',
    'delete chain ip bramble old',
  ])
  t.notOk(kept.some((line) => line.includes('clients')))
  const made = from({ name: 'clients', timeoutSeconds: 90 })
  t.equal(made.filter((line) => / set ip bramble clients/.test(line)).length, 2, 'deleted and added')
  const fresh = allRules(undefined, [baseRules, wanted])
  t.notMatch(fresh, /flush|delete/)
  for (const name of jumpPoints) t.ok(fresh.includes(`add chain ip bramble ${name}\n`), name)
  t.ok(fresh.indexOf('add chain ip bramble peers-input') < fresh.indexOf('add rule ip bramble input jump peers-input'))
})
