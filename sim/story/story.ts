/** The story of a world in plain lines, and the facts of it, which the invariants judge as they come. */
import { type Facts, type Log, storyOf } from '../../daemon/log.ts'
import type { Judge } from '../invariants/invariant.ts'
import type { SimulatedTime } from '../world/simulated-time.ts'
import { evictionFinder } from './evictions.ts'
import type { Fact } from './facts.ts'

export interface Story {
  /** A line: what happened, and on which machine. */
  note(machine: string, text: string): void
  record(fact: Fact): void
  /** The log of a program, whose lines are part of the story. */
  log(machine: string): Log
  /** Something is as it must not be. */
  violated(what: string): void
  readonly lines: readonly string[]
  /** What must never happen, and has. */
  readonly violations: readonly string[]
}

/** `shown`: called with each line as it comes. */
export function openStory(
  time: SimulatedTime,
  judges: readonly Judge[],
  shown: (line: string) => void = () => undefined,
): Story {
  const lines: string[] = []
  const violations: string[] = []
  const note = (machine: string, text: string) => {
    const line = `${clockText(time.nowMs)} ${machine.padEnd(10)} ${text}`
    lines.push(line)
    shown(line)
  }
  const logOf = (machine: string, bound: Facts): Log => {
    const writer =
      (level: string) =>
      (message: string, facts: Facts = {}) => {
        const all = Object.entries({ ...bound, ...facts }).map(([name, fact]) => `${name}=${storyOf(fact)}`)
        note(machine, `${level} ${[message, ...all].join(' ')}`)
      }
    return {
      error: writer('error'),
      warn: writer('warn'),
      info: writer('info'),
      debug: () => undefined,
      with: (facts) => logOf(machine, { ...bound, ...facts }),
    }
  }
  const violated = (what: string) => {
    violations.push(what)
    note('!', `VIOLATION ${what}`)
  }
  const evictionIn = evictionFinder()
  const record = (fact: Fact) => {
    const timed = { ...fact, atMs: time.nowMs }
    const text = factText(fact)
    if (text !== undefined) note(...text)
    for (const judge of judges) {
      const violation = judge(timed)
      if (violation !== undefined) violated(violation)
    }
    const eviction = evictionIn(fact)
    if (eviction !== undefined) record(eviction)
  }
  return {
    note,
    record,
    violated,
    log: (machine) => logOf(machine, {}),
    lines,
    violations,
  }
}

/** Facts that a reader of the story needs. */
function factText(fact: Fact): [machine: string, text: string] | undefined {
  switch (fact.kind) {
    case 'started':
      return [fact.node, `container ${fact.container} of pod ${fact.pod} (${fact.podUID}) started`]
    case 'ended':
      return [fact.node, `container ${fact.container} of pod ${fact.pod} (${fact.podUID}) ended with ${fact.exitCode}`]
    case 'evicted':
      return ['controller', `pod ${fact.pod} is evicted from ${fact.node}`]
    case 'answered':
      return ['user', `the write of ${fact.resource} ${fact.name} was answered with version ${fact.version}`]
    case 'data':
      return [fact.node, `the data ${fact.data}: ${fact.place}`]
    case 'fault':
      return [fact.target, `FAULT ${fact.number}: ${fact.what}, for ${fact.seconds} s`]
    case 'crashed':
      return [fact.program, `ended by itself: ${fact.because}`]
    default:
      return undefined
  }
}

/** `00:01:02.345` */
function clockText(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23)
}
