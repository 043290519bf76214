/** What the disks of a machine lack before the agent starts: it evicts pods and removes images for that within seconds of its start. */
import { byteText } from '../../api/text/byte-text.ts'
import type { Observation } from './observations.ts'
import { amountOf, pressureOf, type Threshold, thresholdsMet, writtenAmount } from './thresholds.ts'

export type DiskShortageFacts = {
  readonly thresholds: { readonly evictionHard: readonly Threshold[]; readonly evictionSoft: readonly Threshold[] }
  readonly observed: readonly Observation[]
  /** The agent's data. */
  readonly dataDirectory: string
  /** The images and containers; undefined while unknown. */
  readonly imageDirectory: string | undefined
}

/** A sentence for each threshold of a disk that is met, without the last full stop. */
export function diskShortages(facts: DiskShortageFacts): readonly string[] {
  const { evictionHard, evictionSoft } = facts.thresholds
  return [...sentences('evictionHard', evictionHard, facts), ...sentences('evictionSoft', evictionSoft, facts)]
}

function sentences(
  setting: string,
  thresholds: readonly Threshold[],
  { observed, dataDirectory, imageDirectory = '' }: DiskShortageFacts,
): readonly string[] {
  const ofDisks = thresholds.filter(({ signal }) => pressureOf(signal) === 'DiskPressure')
  return thresholdsMet(ofDisks, observed).flatMap(({ signal, value }) => {
    const found = observed.find((one) => one.signal === signal)
    if (found === undefined) return []
    const { available, capacity } = found
    const path = signal.startsWith('imagefs') ? imageDirectory : dataDirectory
    const free = signal.endsWith('.inodesFree')
      ? `${percent(available, capacity)} of its inodes free (${available} of ${capacity})`
      : `${percent(available, capacity)} free (${byteText(available, Math.floor)} of ${byteText(capacity)})`
    const least =
      'percentage' in value ? `${percent(amountOf(value, capacity), capacity)}` : writtenAmount(value, capacity)
    return [`The disk of ${path} has ${free}; the agent evicts pods below ${least} (${setting} ${signal})`]
  })
}

/** Rounded down: 14.9 % must not be shown as 15 %, which is enough. */
function percent(part: number, whole: number): string {
  return `${Math.floor((part / whole) * 1000) / 10} %`
}

/** The remedy for all of them. */
export const diskShortageRemedy =
  "Make room before pods start ('docker system df' and 'du -xh / | sort -h | tail' show what is large), or set evictionHard in the configuration of the agent, with all its thresholds. The agent also removes images that no container uses, those without a registry last"
