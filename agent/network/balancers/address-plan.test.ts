import { test } from 'tap'
import {
  type AddressPhases,
  type BalancerFacts,
  lifetimeSeconds,
  otherHolderMs,
  planAddresses,
} from './address-plan.ts'

const ip = '192.168.1.240'
const own = '02:00:00:00:00:05'
const other = '02:00:00:00:00:04'

/** A node that is named for `ip`, on a link that answers as the test sets it. Each call of `at` is one plan at that time. */
function node(given: Partial<BalancerFacts> = {}) {
  let phases: AddressPhases = new Map()
  let facts: BalancerFacts = {
    wanted: [ip],
    held: new Set(),
    answers: new Map(),
    mac: own,
    partners: new Map(),
    hasRules: { IPv4: true, IPv6: true },
    isConnected: true,
    ...given,
  }
  return {
    set(changed: Partial<BalancerFacts>) {
      facts = { ...facts, ...changed }
    },
    phase: () => phases.get(ip)?.phase,
    held: () => facts.held,
    /** Names of the steps, which succeed. */
    at(nowMs: number) {
      const plan = planAddresses(phases, facts, nowMs)
      phases = plan.phases
      const steps = plan.steps.map(({ step }) => step)
      const held = new Set(facts.held)
      for (const step of plan.steps) {
        if (step.step === 'take') held.add(step.ip)
        if (step.step === 'release') held.delete(step.ip)
      }
      facts = { ...facts, held }
      return steps
    },
  }
}

const answered = { answers: new Map([[ip, other]]) }
const silent = { answers: new Map<string, string>() }

test('an address for which no machine answers is taken and announced', async (t) => {
  const { at } = node()
  t.same(at(0), ['probe'])
  t.same(at(1_499), [])
  t.same(at(1_500), ['take', 'announce'])
  t.same(at(1_600), [])
})

test('an address for which another machine answers is not taken until that one is silent', async (t) => {
  const { at, set, phase } = node()
  at(0)
  set(answered)
  t.same(at(100), [])
  t.equal(phase(), 'blocked')
  t.same(at(599), [])
  t.same(at(600), ['probe'], 'asked again soon, as the node before gives it up with the same message')
  t.same(at(700), [])
  set(silent)
  t.same(at(1_200), ['probe'])
  t.same(at(2_700), ['take', 'announce'])
})

test('the longer another machine answers, the less often it is asked', async (t) => {
  const { at, set } = node()
  set(answered)
  const probes: number[] = []
  for (let nowMs = 0; nowMs < otherHolderMs + 60_000; nowMs += 250) if (at(nowMs).includes('probe')) probes.push(nowMs)
  const gaps = probes.slice(1).map((probe, index) => probe - (probes[index] ?? 0))
  t.ok(gaps.every((gap, index) => index === 0 || gap >= (gaps[index - 1] ?? 0) - 250))
  t.ok((gaps.at(-1) ?? 0) >= 10_000, `${gaps.at(-1)} ms at last`)
  t.ok(probes.length < 40, `${probes.length} probes`)
})

test('an address that is not wanted any more is given up at once', async (t) => {
  const { at, set } = node({ held: new Set([ip]) })
  at(0)
  set({ wanted: [] })
  t.same(at(1), ['release'])
  t.same(at(2), [])
})

test('an address of an earlier agent is kept without an interruption', async (t) => {
  const { at } = node({ held: new Set([ip]) })
  t.same(at(0), ['renew'])
})

test('a held address is renewed well within its lifetime, and checked for another holder now and then', async (t) => {
  const { at } = node({ held: new Set([ip]) })
  const done: [string, number][] = []
  for (let nowMs = 0; nowMs <= 130_000; nowMs += 250) for (const step of at(nowMs)) done.push([step, nowMs])
  const times = (step: string) => done.filter(([name]) => name === step).map(([, nowMs]) => nowMs)
  const renewals = times('renew')
  t.ok(renewals.every((at, index) => index === 0 || at - (renewals[index - 1] ?? 0) <= (lifetimeSeconds * 1_000) / 2))
  t.ok(times('probe').length >= 3 && times('probe').length <= 5, `${times('probe')}`)
  t.same(times('release'), [])
})

test('of two holders the one with a connection to the controller keeps the address', async (t) => {
  const connected = node({ held: new Set([ip]), isConnected: true })
  connected.at(0)
  t.same(connected.at(1), ['probe'])
  connected.set(answered)
  t.same(connected.at(2), ['announce'])
  const alone = node({ held: new Set([ip]), isConnected: false })
  alone.at(0)
  alone.at(1)
  alone.set(answered)
  t.same(alone.at(2), ['release'])
  t.equal(alone.phase(), 'blocked', 'it is taken again when the other one is gone')
})

test('of two holders without a controller the one with the lower MAC address keeps it', async (t) => {
  const holder = (mac: string, rival: string) => {
    const one = node({ held: new Set([ip]), isConnected: false, mac })
    one.at(0)
    one.at(1)
    one.set({ answers: new Map([[ip, rival]]) })
    return one.at(2)
  }
  t.same(holder(own, other), ['release'])
  t.same(holder(other, own), ['announce'])
})

test('a node that is alone takes and keeps its addresses', async (t) => {
  const { at } = node({ isConnected: false })
  at(0)
  t.same(at(1_500), ['take', 'announce'])
  for (let nowMs = 2_000; nowMs < 600_000; nowMs += 500) t.notOk(at(nowMs).includes('release'))
})

test('a node whose link is gone gives addresses up, and asks before it takes them again', async (t) => {
  const { at, set } = node({ held: new Set([ip]) })
  at(0)
  set({ mac: undefined })
  t.same(at(1), ['release'])
  t.same(at(2), [])
  set({ mac: own })
  t.same(at(3), ['probe'])
})

test('an address that another program removed is probed before it is taken again', async (t) => {
  const { at, set } = node({ held: new Set([ip]) })
  at(0)
  set({ held: new Set() })
  t.same(at(1), ['probe'])
})

test('without rules of Services no address is taken', async (t) => {
  const { at, set } = node({ hasRules: { IPv4: false, IPv6: true } })
  t.same(at(0), [])
  set({ hasRules: { IPv4: true, IPv6: true } })
  t.same(at(1), ['probe'])
})

const ipv6 = 'fd00:9::240'

test('an IPv6 address is taken and renewed like an IPv4 address, and not asked for while it is held', async (t) => {
  const one = node({ wanted: [ipv6] })
  t.same(one.at(0), ['probe'])
  t.same(one.at(1_500), ['take', 'announce'])
  const done: string[] = []
  for (let nowMs = 1_600; nowMs < 200_000; nowMs += 250) done.push(...one.at(nowMs))
  t.same([...new Set(done)], ['renew'])
})

test('without IPv6 rules no IPv6 address is taken, and IPv4 addresses are', async (t) => {
  const one = node({ wanted: [ip, ipv6], hasRules: { IPv4: true, IPv6: false } })
  one.at(0)
  one.at(1_500)
  t.same([...one.held()], [ip])
})

test('an IPv6 address goes with the IPv4 address of its Service to the other holder', async (t) => {
  const partners = new Map([[ipv6, ip]])
  const one = node({ wanted: [ip, ipv6], held: new Set([ip, ipv6]), partners, isConnected: false })
  one.at(0)
  one.at(1)
  one.set(answered)
  t.same(one.at(2), ['release', 'release'])
  t.same([...one.held()], [])
  const until = (endMs: number) => {
    for (let nowMs = endMs - 9_000; nowMs <= endMs; nowMs += 250) one.at(nowMs)
    return [...one.held()]
  }
  t.same(until(9_250), [], 'it is left to the other holder, which probes for it once more')
  t.same(until(18_250), [ipv6], 'and taken where that one has not')
  const apart = node({ wanted: [ip, ipv6], held: new Set([ip, ipv6]), isConnected: false })
  apart.at(0)
  apart.at(1)
  apart.set(answered)
  apart.at(2)
  t.same([...apart.held()], [ipv6], 'one of another Service stays')
})

test('an IPv6 address that two nodes took at one moment is probed by the one that has lost it', async (t) => {
  const one = node({ wanted: [ipv6], isConnected: false })
  one.at(0)
  t.same(one.at(1_500), ['take', 'announce'])
  one.set({ held: new Set() })
  t.same(one.at(3_500), ['probe'], 'the kernel removed it')
  one.set({ answers: new Map([[ipv6, other]]) })
  t.same(one.at(3_750), [])
  t.same([...one.held()], [])
  one.set(silent)
  one.at(4_250)
  t.same(one.at(5_750), ['take', 'announce'], 'when the other one is silent')
})
