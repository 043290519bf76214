/** The checkpoint of the pod manager on a disk of the world, in the form of its files. */
import { checkpointIndex, hashesIn, readCheckpoint } from '../../agent/adapters/disk/pod-checkpoint/checkpoint-index.ts'
import { contentHash } from '../../agent/adapters/disk/pod-checkpoint/content-folder.ts'
import type { PodCheckpoint } from '../../agent/pods/wanted/pod-checkpoint.ts'
import type { ProgramLife } from '../world/life.ts'
import type { MachineDisk } from '../world/machine-disk.ts'

const indexPath = 'desired.json'
const contentPath = (hash: string) => `${indexPath}.contents/${hash}`

export function simulatedCheckpoint(life: ProgramLife, disk: MachineDisk): PodCheckpoint {
  let written: string | undefined
  return {
    async load() {
      const text = disk.read(indexPath)
      if (text === undefined) return undefined
      return readCheckpoint(
        text,
        new Map([...hashesIn(text)].map((hash) => [hash, disk.read(contentPath(hash)) ?? ''])),
      )
    },
    save: (data) =>
      life.within(async () => {
        const { text, essence, parts } = checkpointIndex(data, (part) => contentHash(JSON.stringify(part)))
        if (essence === written) return
        for (const [hash, part] of parts) {
          if (disk.read(contentPath(hash)) === undefined) await disk.replace(contentPath(hash), JSON.stringify(part))
          if (!life.isAlive) return
        }
        await disk.replace(indexPath, text)
        if (!life.isAlive) return
        written = essence
        disk.keepOnly(`${indexPath}.contents/`, new Set([...parts.keys()].map(contentPath)))
      }),
    keepCopy: async () => undefined,
  }
}
