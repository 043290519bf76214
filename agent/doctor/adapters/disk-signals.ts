/** The eviction signals of a machine whose agent may not have run yet. */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hostSignals } from '../../adapters/kernel/host-signals.ts'
import type { Observation } from '../../eviction/observations.ts'

/** `imageDirectory`: undefined where Docker did not report it. */
export async function readDiskSignals(
  dataDirectory: string,
  imageDirectory: string | undefined,
): Promise<readonly Observation[]> {
  const [data, images] = [await existing(dataDirectory), imageDirectory]
  const signals = hostSignals({ root: '/', dataDirectory: data, imageDirectory: () => images })
  return (await signals.observe()).observed
}

/** The folder, or the nearest one above it: the agent will make the folder there. */
async function existing(path: string): Promise<string> {
  const isThere = await stat(path).then(
    () => true,
    () => false,
  )
  return isThere || dirname(path) === path ? path : existing(dirname(path))
}
