/**
 * Was the machine started anew since we last ran, and do its boots last? One small file, written twice a boot: at the first
 * start of the agent and once the boot has lasted. It names boots and no times: the clock may have been wrong in any of them.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../daemon/durable-file.ts'

export interface BootRecord {
  /** Another boot is on record. */
  readonly rebooted: boolean
  /** How many boots before this one did not last, in a row. */
  readonly shortBoots: number
  /** This one does: put on record, once. A card that takes no writes is no reason to fail. */
  lasts(): Promise<void>
}

const kept = 8
const mark = ' lasted'

export async function openBootRecord(dataDirectory: string, bootID: string): Promise<BootRecord> {
  const path = join(dataDirectory, 'boot-id')
  const text = await readFile(path, 'utf8').catch(() => '')
  const lines = text.split('\n').filter((line) => line !== '')
  const isKnown = bootID === '' || lines[0]?.replace(mark, '') === bootID
  const earlier = isKnown ? lines.slice(1) : lines
  const write = (first: string) =>
    replaceFile(path, `${[first, ...earlier].slice(0, kept).join('\n')}\n`).catch(() => undefined)
  if (!isKnown) await write(bootID)
  const firstLasting = earlier.findIndex((line) => line.endsWith(mark))
  let isMarked = bootID === '' || (isKnown && lines[0]?.endsWith(mark) === true)
  return {
    rebooted: !isKnown && lines.length > 0,
    shortBoots: firstLasting === -1 ? earlier.length : firstLasting,
    async lasts() {
      if (isMarked) return
      isMarked = true
      await write(`${bootID}${mark}`)
    },
  }
}
