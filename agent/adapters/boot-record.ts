/** Was the machine started anew since we last ran? One small file, written once a boot. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../daemon/durable-file.ts'

/** True when another boot is on record. Puts this one on record; a card that takes no writes is no reason to fail. */
export async function rebootedSince(dataDirectory: string, bootID: string): Promise<boolean> {
  const path = join(dataDirectory, 'boot-id')
  const before = await readFile(path, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  )
  if (before === bootID || bootID === '') return false
  await replaceFile(path, `${bootID}\n`).catch(() => undefined)
  return before !== undefined && before !== ''
}
