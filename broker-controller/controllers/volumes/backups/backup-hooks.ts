/**
 * The commands that pods want to be run before and after a backup, in the annotations of Velero (https://velero.io/docs/v1.15/backup-hooks/), which
 * charts have already: to freeze a file system, or to write a dump of a database into the volume. Pure.
 */

import { readDuration } from '../../../../api/batch/go-duration.ts'
import type { Pod } from '../../../../api/pod.ts'
import { parseJson } from '../../../../api/text/json.ts'

export type BackupHook = {
  readonly container: string
  readonly command: readonly string[]
  readonly timeoutMs: number
  /** The backup is made even if the command fails. */
  readonly mayFail: boolean
}

const usualTimeoutMs = 30_000
const longestTimeoutMs = 3600_000
const longestCommand = 4_096

/** undefined: the pod wants none at this time. */
export function hookOf({ metadata, spec }: Pod, when: 'pre' | 'post'): BackupHook | undefined {
  const own = (name: string) => metadata.annotations?.[`${when}.hook.backup.velero.io/${name}`]
  const written = own('command')
  if (written === undefined || written === '' || written.length > longestCommand) return undefined
  const listed = written.startsWith('[') ? parseJson(written) : undefined
  const isList = Array.isArray(listed) && listed.length > 0 && listed.every((part) => typeof part === 'string')
  const timeout = readDuration(own('timeout') ?? '')
  return {
    container: own('container') ?? spec?.containers[0]?.name ?? '',
    command: isList ? (listed as readonly string[]) : [written],
    timeoutMs: timeout.ok && timeout.ms > 0 ? Math.min(timeout.ms, longestTimeoutMs) : usualTimeoutMs,
    mayFail: own('on-error') === 'Continue',
  }
}
