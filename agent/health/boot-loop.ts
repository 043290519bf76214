/**
 * Does a pod take the machine down again and again? When boots end early and without a shutdown, one suspect at a time is
 * started last and alone: whoever the machine then dies with, three times in a row, is held back.
 */

/** A boot that goes on for so long did not break off. */
export const bootLastsMs = 10 * 60_000

/** One boot, as put on record while it went on. */
export type BootNote = {
  readonly bootID: string
  /** It went on for longer than a boot loop's. */
  readonly lasted?: boolean
  /** The agent was told to stop. */
  readonly ended?: boolean
  /** The pod started last, of those still suspected. */
  readonly last?: string
  /** The pod that was to be started after all others. */
  readonly trial?: string
  /** It was, and has not been harmless for long enough since. */
  readonly began?: boolean
}

export type BootVerdict = {
  /** Worth writing down which pod was started last. */
  readonly watch: boolean
  readonly trial: string | undefined
  /** Found out: to be held back from now on. */
  readonly guilty: string | undefined
  /** The machine went down without them, or long after their start. */
  readonly acquitted: ReadonlySet<string>
  /** Boots in a row that broke off. */
  readonly brokenOff: number
}

const trialAfter = 2
export const guiltyAfter = 3

/** `earlier`: the newest first. */
export function judgeBoots(earlier: readonly BootNote[], held: ReadonlySet<string>): BootVerdict {
  const firstGood = earlier.findIndex(({ lasted, ended }) => lasted || ended)
  const broken = firstGood === -1 ? earlier : earlier.slice(0, firstGood)
  const [newest] = broken
  const acquitted = new Set(broken.flatMap(({ trial, began }) => (trial !== undefined && !began ? [trial] : [])))
  const common = { watch: broken.length > 0, acquitted, brokenOff: broken.length }
  if (newest === undefined || broken.length < trialAfter) return { ...common, trial: undefined, guilty: undefined }
  const suspect = newest.began ? newest.trial : newest.last
  if (suspect === undefined || acquitted.has(suspect) || held.has(suspect)) {
    return { ...common, trial: undefined, guilty: undefined }
  }
  const firstOther = broken.findIndex(({ trial, began }) => trial !== suspect || !began)
  const times = firstOther === -1 ? broken.length : firstOther
  return times >= guiltyAfter
    ? { ...common, trial: undefined, guilty: suspect }
    : { ...common, trial: suspect, guilty: undefined }
}
