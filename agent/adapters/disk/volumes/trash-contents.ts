/** What is in the trash of a pool, as it is reported. */
import { usualTrashSeconds } from '../../../../api/storage/trash-time.ts'
import { mostTrashed, type TrashedVolume } from '../../../../api/storage/volume-messages.ts'
import type { FolderCounter } from '../folder-usage.ts'
import type { PoolTrash } from './pool-trash.ts'

export interface TrashContents {
  /** The latest first. One that was not measured before is measured at each call: its files do not change. */
  read(id: string, trash: PoolTrash): Promise<readonly TrashedVolume[]>
}

export function trashContents(counter: Pick<FolderCounter, 'usage'>): TrashContents {
  /** By the uid of the volume. */
  const sizes = new Map<string, number>()
  return {
    async read(id, trash) {
      const entries = [...(await trash.list())].sort(
        (a, b) => a.keptSeconds - b.keptSeconds || (a.uid < b.uid ? -1 : 1),
      )
      for (const uid of sizes.keys()) if (!entries.some((entry) => entry.uid === uid)) sizes.delete(uid)
      const reported = entries.slice(0, mostTrashed)
      const next = reported.find(({ uid }) => !sizes.has(uid))
      if (next !== undefined) {
        const filled = await counter.usage(trash.dataOf(next.uid))
        if (filled === undefined || filled.incomplete === undefined) sizes.set(next.uid, filled?.usedBytes ?? 0)
      }
      return reported.map(({ claimUID: _, keepSeconds = usualTrashSeconds, ...entry }) => {
        const usedBytes = sizes.get(entry.uid)
        return { ...entry, pool: id, keepSeconds, ...(usedBytes !== undefined && { usedBytes }) }
      })
    },
  }
}
