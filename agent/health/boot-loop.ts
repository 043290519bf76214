/**
 * Detects a pod that takes the machine down again and again. When boots end early and without a shutdown, one suspect at a time
 * is started last and alone. A crash after its start proves little: an interrupted or weak power supply has the same effect.
 * Therefore the pod is also delayed for longer than the machine ran with it. A pod is held back only if the machine crashes after
 * about the same time with it each time, and not during that delay.
 */

/** A boot of this length did not break off. */
export const bootLastsMs = 10 * 60_000

/** A pod that takes the machine down does so within this time; a later crash has another cause, such as the power supply. */
export const harmMs = 60_000

/**
 * The running time of a suspect is recorded when it passes each of these seconds, and not more often, because writes wear the
 * card.
 */
export const ranMarks: readonly number[] = [0, 5, 10, 20, 40]

/** One boot, as recorded while it lasted. */
export type BootNote = {
  readonly bootID: string
  /** It lasted longer than the boots of a boot loop. */
  readonly lasted?: boolean
  /** The agent was stopped in an orderly way. */
  readonly ended?: boolean
  /** The pod started last, of those still under suspicion. */
  readonly last?: string
  /** The pod on trial: it was to be started after all others. */
  readonly trial?: string
  /** The pod on trial was started, and has not run long enough since to count as harmless. */
  readonly began?: boolean
  /** Before the trial, the machine ran without the pod for longer than it had run with it. */
  readonly controlled?: boolean
  /** The last of `ranMarks` that the pod on trial passed, in seconds. */
  readonly ran?: number
}

/** In this boot the pod is started after this wait, while everything else runs. */
export type Trial = { readonly uid: string; readonly waitMs: number; readonly controlled: boolean }

export type BootVerdict = {
  /** The pod that is started last is recorded. */
  readonly watch: boolean
  readonly trial: Trial | undefined
  /** The pod that is held back from now on. */
  readonly guilty: string | undefined
  /** Pods cleared of suspicion: the machine crashed without them, or long after their start. */
  readonly acquitted: ReadonlySet<string>
  /** Consecutive boots that broke off. */
  readonly brokenOff: number
}

const trialAfter = 2
/** Boots that broke off alike with the suspect started last; the last two of them after the long wait. */
export const guiltyAfter = 4
const controls = 2
/** The shortest delay of a suspect. A pod must run again within half a minute. */
const quietMs = 10_000
const leastControlMs = 30_000

/** `earlier`: the newest boot first. */
export function judgeBoots(earlier: readonly BootNote[], held: ReadonlySet<string>): BootVerdict {
  const firstGood = earlier.findIndex(({ lasted, ended }) => lasted || ended)
  const broken = firstGood === -1 ? earlier : earlier.slice(0, firstGood)
  const [newest] = broken
  const acquitted = new Set(broken.flatMap(({ trial, began }) => (trial !== undefined && !began ? [trial] : [])))
  const common = { watch: broken.length > 0, acquitted, brokenOff: broken.length, trial: undefined, guilty: undefined }
  if (newest === undefined || broken.length < trialAfter) return common
  const suspect = newest.began ? newest.trial : newest.last
  if (suspect === undefined || acquitted.has(suspect) || held.has(suspect)) return common
  const deaths = alike(broken, suspect)
  const isProven = deaths.length >= guiltyAfter && deaths.slice(0, controls).every(({ controlled }) => controlled)
  if (isProven) return { ...common, guilty: suspect }
  const controlled = deaths.length >= guiltyAfter - controls
  return { ...common, trial: { uid: suspect, waitMs: controlled ? controlMs(deaths) : quietMs, controlled } }
}

/** The newest consecutive boots that broke off with the suspect started last, after about the same time. */
function alike(broken: readonly BootNote[], suspect: string): readonly BootNote[] {
  const marks = new Set<number>()
  const firstOther = broken.findIndex((note) => {
    if (note.trial !== suspect || !note.began) return true
    marks.add(markOf(note))
    return Math.max(...marks) - Math.min(...marks) > 1
  })
  return firstOther === -1 ? broken : broken.slice(0, firstOther)
}

/** Twice the longest time that the machine ran with the suspect. */
function controlMs(deaths: readonly BootNote[]): number {
  const mostMs = Math.max(...deaths.map((note) => (ranMarks[markOf(note) + 1] ?? harmMs / 1000) * 1000))
  return Math.max(leastControlMs, 2 * mostMs)
}

function markOf({ ran = 0 }: BootNote): number {
  return Math.max(0, ranMarks.indexOf(ran))
}
