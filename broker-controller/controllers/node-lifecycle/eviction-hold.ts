/** The reasons why a failed node keeps its pods for now. */
import { type LinkSettings, type Suspicion, suspicionText } from './link-suspicion.ts'
import type { NodeHealth } from './node-health.ts'
import { absenceText, isExpectedLater } from './planned-absence.ts'

export type Hold = {
  /** Holds of one key have the same reason: one Event is recorded for them. */
  readonly key: string
  readonly text: string
}

/** Undefined: the usual way. */
export function evictionHold(
  { absence }: Pick<NodeHealth, 'absence'>,
  suspicion: Suspicion | undefined,
  nowMs: number,
  { linkSuspicionPatienceMs }: Pick<LinkSettings, 'linkSuspicionPatienceMs'>,
): Hold | undefined {
  if (absence !== undefined && isExpectedLater(absence, nowMs)) {
    const text = `${absenceText(absence)} Its pods stay until then.`
    return { key: text, text }
  }
  if (suspicion === undefined) return undefined
  const minutes = Math.round(linkSuspicionPatienceMs / 60_000)
  const until = `until one of them is back and the others are not, or for ${minutes} min`
  return { key: suspicion.link, text: `${suspicionText(suspicion)}. Its pods stay ${until}.` }
}
