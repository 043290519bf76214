/** Prints the state of updates. */
import type { Release, UpdateState } from './update-state.ts'

/** `base`: version of the package. */
export function updateStatusText(
  { committed, trial, rejected, last }: UpdateState,
  base: Pick<Release, 'version' | 'sequence'>,
): string {
  const isCommitted = committed !== undefined && committed.sequence > base.sequence
  const lines: readonly (readonly [string, string])[] = [
    ['package', base.version],
    ['committed', isCommitted ? committed.version : `${base.version} (of the package)`],
    ['on trial', trial === undefined ? 'none' : `${trial.version}, ${trial.attemptsLeft} starts left`],
    ['last trial', last === undefined ? 'none' : `${last.version}: ${last.outcome} (${last.reason})`],
    ...rejected.map(({ version, reason }) => ['rejected', `${version}: ${reason}`] as const),
  ]
  return lines.map(([name, value]) => `${name.padEnd(12)}${value}\n`).join('')
}
