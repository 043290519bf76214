/** The disk of a machine: what was not synced when the power was cut is lost, or was written after all. */
import type { RandomSource } from './random-source.ts'
import type { SimulatedTime } from './simulated-time.ts'

export interface MachineDisk {
  read(path: string): string | undefined
  /** Resolves when the file has this content, also after a power cut. */
  replace(path: string, text: string): Promise<void>
  /** Removes the files below this path that are not among these. */
  keepOnly(below: string, paths: ReadonlySet<string>): void
  /** The contents of all files. */
  texts(): readonly string[]
  powerCut(): void
  /** Writes neither fail nor take long. */
  readonly isWell: boolean
  readonly isFull: boolean
  /** Writes take so many times as long. */
  readonly slowness: number
  /** Writes fail from now on. */
  fill(isFull: boolean): void
  /** Writes take this many times as long. */
  slowDown(factor: number): void
}

export function machineDisk(time: SimulatedTime, random: RandomSource): MachineDisk {
  const files = new Map<string, string>()
  const unsynced = new Map<string, string>()
  let isFull = false
  let factor = 1
  return {
    read: (path) => unsynced.get(path) ?? files.get(path),
    async replace(path, text) {
      if (isFull) throw Object.assign(new Error(`ENOSPC: no space left on device, open '${path}'`), { code: 'ENOSPC' })
      unsynced.set(path, text)
      await time.passed(factor * (random.isTrue(0.05) ? random.between(500, 3_000) : random.between(2, 60)))
      if (unsynced.get(path) !== text) return
      unsynced.delete(path)
      files.set(path, text)
    },
    keepOnly(below, paths) {
      for (const path of [...files.keys()]) if (path.startsWith(below) && !paths.has(path)) files.delete(path)
    },
    texts: () => [...new Map([...files, ...unsynced]).values()],
    get isWell() {
      return !isFull && factor === 1
    },
    get isFull() {
      return isFull
    },
    get slowness() {
      return factor
    },
    fill(next) {
      isFull = next
    },
    slowDown(next) {
      factor = next
    },
    powerCut() {
      for (const [path, text] of unsynced) if (random.isTrue(0.5)) files.set(path, text)
      unsynced.clear()
    },
  }
}
