/** Simulates rollouts of good and of bad releases over a large fleet. `--help` prints the usage. */
import {
  type RolloutRules,
  readRolloutRules,
  usualRules,
} from '../../broker-controller/controllers/rollouts/rollout-rules.ts'
import {
  type SimulatedFleet,
  type SimulatedRollout,
  simulateRollout,
} from '../../broker-controller/controllers/rollouts/testing/simulated-fleet.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const { nodes, seed, ...values } = benchmarkOptions({
  name: 'node dist/bench/rollouts/rollout.js',
  text: `Takes releases of the agent through a simulated fleet: the decisions are those of the controller, the clock and the machines are
simulated. A machine downloads for 20 s to 10 min, and a trial takes 10 to 11 min. A bad board takes back every release, after 1 to 6 min.
Each machine is off now and then, half the times without a goodbye. Prints, for rules of a large fleet and for those of "updates start"
without options, how long it takes until the boards that are not bad have a good release, and how many machines ran a bad one before it
paused; and the CPU time of a decision, with the garbage collector's. The counts are the same for the same seed.`,
  options: {
    nodes: { value: 'N', help: 'number of nodes', range: [10, 100_000], default: '10000' },
    link: { value: 'N', help: 'nodes of a link', range: [1, 10_000], default: '50' },
    bad: { value: 'PERCENT', help: 'boards that take back every release', range: [0, 100], default: '3' },
    off: { value: 'PERCENT', help: 'machines that are off at any moment', range: [0, 90], default: '10' },
    resume: {
      value: 'MINUTES',
      help: 'an operator resumes a good release so long after a pause',
      range: [1, 10_000],
      default: '60',
    },
    seed: { value: 'N', help: 'seed of all that is random', range: [0, 2 ** 31], default: '7' },
  },
})

/** `--ring canary=10,1h --ring early=1%,1h --ring tenth=10%,1h --per-link 10 --failure-count 3 --failure-percent 10` */
const ringRules = checked({
  ...usualRules,
  rings: [
    { name: 'canary', count: 10, soakSeconds: 3600 },
    { name: 'early', percent: 1, soakSeconds: 3600 },
    { name: 'tenth', percent: 10, soakSeconds: 3600 },
  ],
  perLink: 10,
  failureCount: 3,
  failurePercent: 10,
})
const fleets: readonly (readonly [string, RolloutRules])[] = [
  ['rings', ringRules],
  ['usual', usualRules],
]
const releases: readonly (readonly [string, SimulatedFleet['fault']])[] = [
  ['taken back by all', { kind: 'takenBack', percent: 100 }],
  ['taken back by 50 %', { kind: 'takenBack', percent: 50 }],
  ['taken back by 20 %', { kind: 'takenBack', percent: 20 }],
  ['taken back by 5 %', { kind: 'takenBack', percent: 5 }],
  ['ends the network of all', { kind: 'goesAway', percent: 100 }],
  ['ends the network of 20 %', { kind: 'goesAway', percent: 20 }],
]
/** A bad release that has not paused by then is not stopped by its failures. */
const badHours = 12
const decisionsMs: number[] = []

const parts = [50, 90, 95]
console.log(`| good release, rules | ${parts.map((percent) => `${percent} % have it`).join(' | ')} | failed | pauses |`)
console.log('|---|---|---|---|---|---|')
for (const [name, rules] of fleets) {
  const { hoursTo, failed, pauses } = simulated(rules, undefined)
  const times = parts.map((percent) => inHours(hoursTo(percent)))
  console.log(`| ${name} | ${times.join(' | ')} | ${failed} | ${pauses} |`)
}
console.log(
  '\n| bad release | rules | nodes that ran it | failed of them | paused after | in ring |\n|---|---|---|---|---|---|',
)
for (const [release, fault] of releases)
  for (const [name, rules] of fleets) {
    const { ran, failed, hours, plan } = simulated(rules, fault)
    const { phase, message } = plan.status
    const [, ring = ''] = /of ring (\S+)/.exec(message) ?? []
    const end = phase === 'Paused' ? `${inHours(hours)} | ${ring}` : `not in ${badHours} h | `
    console.log(`| ${release} | ${name} | ${ran} | ${failed} | ${end} |`)
  }
const sorted = decisionsMs.toSorted((a, b) => a - b)
const [half, most] = [0.5, 0.99].map((part) => sorted[Math.floor(sorted.length * part)]?.toFixed(1))
console.log(`\n${sorted.length} decisions: half within ${half} ms of CPU, 99 % within ${most} ms`)

function simulated(rules: RolloutRules, fault: SimulatedFleet['fault']): SimulatedRollout {
  const { link: perLink, bad: badPercent, off: offPercent, resume } = values
  const resumeAfterMs = fault === undefined ? resume * 60_000 : undefined
  const fleet = { nodes, seed, perLink, badPercent, offPercent, rules, fault, resumeAfterMs }
  const made = simulateRollout({ ...fleet, enoughPercent: Math.max(...parts) }, fault && badHours)
  for (const one of made.decisionsMs) decisionsMs.push(one)
  return made
}

function checked(rules: RolloutRules): RolloutRules {
  const read = readRolloutRules(rules)
  if (typeof read === 'string') throw new Error(read)
  return read
}

function inHours(hours: number | undefined): string {
  return hours === undefined ? 'never' : `${hours.toFixed(1)} h`
}
