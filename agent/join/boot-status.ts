/** Writes on the boot partition what a machine without keyboard and screen cannot show otherwise. */
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bootStatusFileName, bootStatusText } from '../../api/node/boot-status.ts'
import type { Log } from '../../daemon/log.ts'

/** Nothing is written if it is the text that is there: a card wears out. A boot partition that takes no writes is logged. */
export async function writeBootStatus(
  folder: string,
  lines: readonly string[],
  { nowMs, log }: { readonly nowMs: number; readonly log: Log },
): Promise<void> {
  const path = join(folder, bootStatusFileName)
  const text = bootStatusText(lines, nowMs)
  const before = await readFile(path, 'utf8').catch(() => '')
  if (withoutTime(before) === withoutTime(text)) return
  try {
    // Not written aside and renamed: on a FAT that is not safer, and a power cut leaves a temporary file.
    const file = await open(path, 'w', 0o644)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
  } catch (error) {
    log.debug('The boot partition does not take the status', { path, error })
  }
}

function withoutTime(text: string): string {
  return text.slice(text.indexOf('\n') + 1)
}
