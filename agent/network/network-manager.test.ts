import { type Test, test } from 'tap'
import { cell } from '../../daemon/cell.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { networkManager } from './network-manager.ts'
import { ipv4Rules, ipv6Rules, type RuleFamily } from './rule-family.ts'
import { noRules, type RuleSet } from './rule-set.ts'

const drop: RuleSet = { chains: new Map([['web', { rules: ['drop'] }]]), sets: new Map() }
const logged = 'Cannot apply the rules of the network'

function running(
  t: Test,
  given: { readonly isThere?: boolean; readonly policiesReady?: boolean; readonly family?: RuleFamily } = {},
) {
  const kernel = { applied: [] as string[], isThere: given.isThere ?? false, failing: false, intact: true }
  const peers = cell<RuleSet | undefined>(undefined)
  const services = cell<RuleSet | undefined>(undefined)
  const rulesCurrent = cell(false)
  const policiesReady = cell(given.policiesReady ?? true)
  const ruleProblem = cell<string | undefined>(undefined)
  const ruleRemovals = cell(0)
  const appliedRules = cell<readonly RuleSet[]>([])
  const clock = fakeClock()
  const end = new AbortController()
  const { run } = networkManager({
    table: {
      family: given.family ?? ipv4Rules,
      list: async () => (kernel.isThere ? { chains: [], sets: [] } : undefined),
      async apply(transaction) {
        if (kernel.failing) throw new Error('nft is not installed')
        kernel.applied.push(transaction)
        kernel.isThere = true
        kernel.intact = true
      },
      isIntact: async () => kernel.isThere && kernel.intact,
      async remove() {
        kernel.applied.push('remove')
        kernel.isThere = false
      },
    },
    reads: { rules: [peers, services], rulesCurrent, policiesReady },
    writes: { ruleProblem, ruleRemovals, appliedRules },
    clock,
    log: quietLog(t, logged),
  })
  const ended = run(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  return { kernel, peers, services, rulesCurrent, policiesReady, ruleProblem, ruleRemovals, appliedRules, clock }
}

test('without a network of the fleet the kernel is not touched', async (t) => {
  const { kernel, services, clock } = running(t)
  services.set(drop)
  await clock.advance(120_000)
  t.same(kernel.applied, [])
})

test('the table is made as a whole once, then only changes are applied', async (t) => {
  const { kernel, peers, services, clock } = running(t)
  peers.set(noRules)
  await clock.settle()
  t.match(kernel.applied, [/^add table ip bramble\nadd chain/])
  services.set(drop)
  await clock.settle()
  t.same(kernel.applied.slice(1), ['add chain ip bramble web\nadd rule ip bramble web drop\n'])
  await clock.advance(120_000)
  t.equal(kernel.applied.length, 2)
})

test('the table is removed when the fleet has no network any more, and made again with the next one', async (t) => {
  const { kernel, peers, clock } = running(t)
  peers.set(noRules)
  await clock.settle()
  peers.set(undefined)
  await clock.settle()
  t.same(kernel.applied.slice(1), ['remove'])
  peers.set(noRules)
  await clock.settle()
  t.match(kernel.applied[2], /^add table/)
})

test('rules that another program removed are back within 30 s', async (t) => {
  const { kernel, peers, ruleRemovals, clock } = running(t)
  peers.set(drop)
  await clock.settle()
  kernel.intact = false
  await clock.advance(29_000)
  t.equal(kernel.applied.length, 1)
  await clock.advance(1_000)
  t.match(kernel.applied[1], /^add table ip bramble\nflush table/)
  t.equal(ruleRemovals.get(), 1)
})

test('rules that change meanwhile do not delay that', async (t) => {
  const { kernel, peers, services, clock } = running(t)
  peers.set(noRules)
  await clock.settle()
  await clock.advance(20_000)
  services.set(drop)
  await clock.settle()
  t.equal(kernel.applied.length, 2)
  kernel.intact = false
  await clock.advance(10_000)
  t.match(kernel.applied[2], /^add table ip bramble\nflush table/)
})

test('a failure is the problem until a later attempt succeeds, which applies the whole', async (t) => {
  const { kernel, peers, services, ruleProblem, clock } = running(t)
  peers.set(noRules)
  await clock.settle()
  kernel.failing = true
  services.set(drop)
  await clock.settle()
  t.equal(ruleProblem.get(), 'nft is not installed')
  kernel.failing = false
  await clock.advance(1_000)
  t.equal(ruleProblem.get(), undefined)
  t.match(kernel.applied[1], /^add table ip bramble\nflush table/)
})

test('what the kernel has is known once it was applied, and nothing after the table was removed', async (t) => {
  const { kernel, peers, services, appliedRules, clock } = running(t)
  peers.set(noRules)
  services.set(drop)
  await clock.settle()
  t.ok(appliedRules.get().includes(drop))
  const other: RuleSet = { ...drop, chains: new Map([['web', { rules: ['accept'] }]]) }
  kernel.failing = true
  services.set(other)
  await clock.settle()
  t.notOk(appliedRules.get().includes(other))
  kernel.failing = false
  await clock.advance(1_000)
  t.ok(appliedRules.get().includes(other))
  peers.set(undefined)
  await clock.settle()
  t.same(appliedRules.get(), [])
})

test('a chain that is not used any more is deleted later, unless it is used again', async (t) => {
  const { kernel, peers, services, clock } = running(t)
  peers.set(noRules)
  services.set(drop)
  await clock.settle()
  const deletions = () => kernel.applied.filter((text) => /^delete chain/.test(text))
  services.set(noRules)
  await clock.settle()
  t.same(deletions(), [])
  await clock.advance(2_000)
  t.same(deletions(), ['delete chain ip bramble web\n'])
  services.set(drop)
  await clock.settle()
  services.set(noRules)
  await clock.settle()
  services.set(drop)
  await clock.advance(10_000)
  t.equal(deletions().length, 1)
})

test('rules of an earlier agent stay until those of now are known, for some seconds', async (t) => {
  const { kernel, peers, services, rulesCurrent, clock } = running(t, { isThere: true })
  peers.set(noRules)
  await clock.advance(7_000)
  t.same(kernel.applied, [])
  services.set(drop)
  rulesCurrent.set(true)
  await clock.settle()
  t.equal(kernel.applied.length, 1)
  t.match(kernel.applied[0], /add rule ip bramble web drop/)
})

test('without a controller the rules of the checkpoint replace those of an earlier agent in time for pods', async (t) => {
  const { kernel, peers, clock } = running(t, { isThere: true })
  peers.set(noRules)
  await clock.advance(8_000)
  t.equal(kernel.applied.length, 1)
})

test('rules of policies that an earlier agent left stay until the pods that run are known', async (t) => {
  const { kernel, peers, rulesCurrent, policiesReady, clock } = running(t, { isThere: true, policiesReady: false })
  peers.set(noRules)
  rulesCurrent.set(true)
  await clock.advance(59_000)
  t.same(kernel.applied, [])
  policiesReady.set(true)
  await clock.settle()
  t.equal(kernel.applied.length, 1)
})

test('an engine that does not list its containers does not keep the rules as they are for longer than a minute', async (t) => {
  const { kernel, peers, clock } = running(t, { isThere: true, policiesReady: false })
  peers.set(noRules)
  await clock.advance(60_000)
  t.equal(kernel.applied.length, 1)
})

test('the table of IPv6 is another one', async (t) => {
  const { kernel, peers, services, clock } = running(t, { family: ipv6Rules })
  peers.set(noRules)
  await clock.settle()
  services.set(drop)
  await clock.settle()
  t.match(kernel.applied, [/^add table ip6 bramble\nadd chain ip6/, /^add chain ip6 bramble web\nadd rule ip6/])
})
