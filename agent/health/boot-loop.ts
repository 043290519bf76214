/**
 * Does a pod take the machine down again and again? When boots end early and without a shutdown, one suspect at a time is
 * started last and alone. That the machine then goes down proves little: a hand at the plug, or a weak supply, does the
 * same. So the pod is also made to wait for longer than the machine lived with it. Only a pod with which the machine goes
 * down about as fast each time, and not during that wait, is held back.
 */

/** A boot that goes on for so long did not break off. */
export const bootLastsMs = 10 * 60_000

/** A pod that takes the machine down does so within this time; later it is the supply, or somebody's hand. */
export const harmMs = 60_000

/** How long the suspect ran is put on record when it passes each of these, and no more often: cards wear. */
export const ranMarks: readonly number[] = [0, 5, 10, 20, 40]

/** One boot, as put on record while it went on. */
export type BootNote = {
  readonly bootID: string
  /** It went on for longer than a boot loop's. */
  readonly lasted?: boolean
  /** The agent was stopped in order. */
  readonly ended?: boolean
  /** The pod started last, of those still suspected. */
  readonly last?: string
  /** The pod that was to be started after all others. */
  readonly trial?: string
  /** It was, and has not been harmless for long enough since. */
  readonly began?: boolean
  /** Before that the machine lived without it for longer than it had with it. */
  readonly controlled?: boolean
  /** The last of `ranMarks`, in seconds, that it passed. */
  readonly ran?: number
}

/** For this boot: the pod waits so long before it is started, while everything else runs. */
export type Trial = { readonly uid: string; readonly waitMs: number; readonly controlled: boolean }

export type BootVerdict = {
  /** Worth writing down which pod was started last. */
  readonly watch: boolean
  readonly trial: Trial | undefined
  /** Found out: to be held back from now on. */
  readonly guilty: string | undefined
  /** The machine went down without them, or long after their start. */
  readonly acquitted: ReadonlySet<string>
  /** Boots in a row that broke off. */
  readonly brokenOff: number
}

const trialAfter = 2
/** Alike, with the suspect started last; the last two of them after the long wait. */
export const guiltyAfter = 4
const controls = 2
/** A suspect waits so long for the machine to go down without it; a pod is to be back within half a minute. */
const quietMs = 10_000
const leastControlMs = 30_000

/** `earlier`: the newest first. */
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

/** The newest boots in a row that ended with the suspect started last, after about the same time. */
function alike(broken: readonly BootNote[], suspect: string): readonly BootNote[] {
  const marks = new Set<number>()
  const firstOther = broken.findIndex((note) => {
    if (note.trial !== suspect || !note.began) return true
    marks.add(markOf(note))
    return Math.max(...marks) - Math.min(...marks) > 1
  })
  return firstOther === -1 ? broken : broken.slice(0, firstOther)
}

/** Twice as long as the machine lived at most with the suspect. */
function controlMs(deaths: readonly BootNote[]): number {
  const mostMs = Math.max(...deaths.map((note) => (ranMarks[markOf(note) + 1] ?? harmMs / 1000) * 1000))
  return Math.max(leastControlMs, 2 * mostMs)
}

function markOf({ ran = 0 }: BootNote): number {
  return Math.max(0, ranMarks.indexOf(ran))
}
