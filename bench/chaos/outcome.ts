/** What a fault did to the containers of a fleet, by the records that they write. Pure. */
import { median } from '../figures/median.ts'

/** One run of a container. `role`: `web` for all replicas of one workload, and a name of its own for each one with data. Seconds of the kernel's clock. */
export type ContainerRun = {
  readonly role: string
  readonly node: string
  readonly firstS: number
  readonly lastS: number
}

export type Round = {
  /** Replicas of `web` that shall run. */
  readonly replicas: number
  /** The roles with data: one container of each shall run. */
  readonly withData: readonly string[]
  /** The machine that has the fault. */
  readonly victim: string
  readonly startS: number
  readonly endS: number
  readonly runs: readonly ContainerRun[]
  /** Records that were synced on a volume, and are not on it. */
  readonly lostRecords: number
}

export type Outcome = {
  /** Seconds since the fault began, when again as many containers ran as shall; 0 where none was missed; undefined: not at the end of the round. */
  readonly allRanS: number | undefined
  /** Containers that ended on machines without the fault. */
  readonly endedElsewhere: number
  /** Replicas of `web` that were started on machines without the fault. */
  readonly moved: number
  /** Two containers of one role with data ran at one time. */
  readonly ranTwice: number
  readonly lostRecords: number
}

/** Containers record five times a second; a busy machine may be late. */
const silentS = 1.5
const stepS = 0.25

export function outcomeOf(round: Round): Outcome {
  const { victim, startS, endS, runs } = round
  const ended = runs.filter((run) => run.firstS < startS && run.lastS >= startS && isOver(run, endS))
  const started = runs.filter(({ firstS }) => firstS >= startS)
  const isElsewhere = ({ node }: ContainerRun) => node !== victim
  return {
    allRanS: lastShortage(round),
    endedElsewhere: ended.filter(isElsewhere).length,
    moved: started.filter((run) => run.role === 'web' && isElsewhere(run)).length,
    ranTwice: overlapping(runs.filter(({ role, lastS }) => round.withData.includes(role) && lastS >= startS)),
    lostRecords: round.lostRecords,
  }
}

/** Whether as many containers of each role run at the moment `atS` as shall. */
export function allRun(
  { replicas, withData, runs }: Pick<Round, 'replicas' | 'withData' | 'runs'>,
  atS: number,
): boolean {
  const now = runs.filter((run) => run.firstS <= atS && !isOver(run, atS))
  const count = (wanted: string) => now.filter(({ role }) => role === wanted).length
  return count('web') >= replicas && withData.every((role) => count(role) > 0)
}

function isOver({ lastS }: ContainerRun, atS: number): boolean {
  return lastS + silentS < atS
}

function lastShortage(round: Round): number | undefined {
  if (!allRun(round, round.endS)) return undefined
  for (let atS = round.endS; atS > round.startS; atS -= stepS) {
    if (!allRun(round, atS)) return atS + stepS - round.startS
  }
  return 0
}

function overlapping(runs: readonly ContainerRun[]): number {
  const together = (one: ContainerRun, other: ContainerRun) =>
    one.role === other.role && other.firstS <= one.lastS && one.firstS <= other.lastS
  return runs.flatMap((one, index) => runs.slice(index + 1).filter((other) => together(one, other))).length
}

/** The cells of a table for the rounds with one fault: see `report.ts`. */
export function summaryOf(outcomes: readonly Outcome[]): readonly string[] {
  const sum = (of: (outcome: Outcome) => number) => String(outcomes.reduce((total, outcome) => total + of(outcome), 0))
  const times = outcomes.flatMap(({ allRanS }) => allRanS ?? [])
  const seconds = times.length === 0 ? '' : `${median(times).toFixed(1)} s; ${Math.max(...times).toFixed(1)} s`
  return [
    String(outcomes.length),
    seconds,
    String(outcomes.length - times.length),
    sum(({ endedElsewhere }) => endedElsewhere),
    sum(({ moved }) => moved),
    sum(({ ranTwice }) => ranTwice),
    sum(({ lostRecords }) => lostRecords),
  ]
}
