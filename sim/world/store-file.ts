/** The file of the store, on a disk of the world: what is written is durable, and a write may be the last thing before a power cut. */
import type { Row, SqliteFile } from '../../broker-controller/store/sqlite/sqlite-file.ts'
import type { Fact } from '../story/facts.ts'
import type { ProgramLife } from './life.ts'

export interface StoreFile {
  rows(): readonly (Row & { readonly body: string })[]
  /** As a controller with this life uses it. */
  openedBy(life: ProgramLife): Pick<SqliteFile, 'write' | 'reserve' | 'reserved' | 'close' | 'freePages'>
  /** The power is cut in the middle of the next write, which then is on the disk or not. `cut`: cuts it. */
  cutAtNextWrite(isWritten: boolean, cut: () => void): void
  /** Writes fail from now on: the disk is full, or cannot be written. */
  refuse(isRefused: boolean): void
  /** The next write has no such end. */
  disarm(): void
  /** What was not synced is lost. */
  powerCut(): void
}

export function storeFile(record: (fact: Fact) => void): StoreFile {
  const rows = new Map<string, Row & { readonly body: string }>()
  let reserved = 0
  /** What the rows were that are not synced, the last one first. */
  let unsynced: readonly (() => void)[] = []
  let isRefused = false
  let armed: { readonly isWritten: boolean; readonly cut: () => void } | undefined

  const put = (written: readonly Row[]) => {
    for (const row of written) {
      const { resource, namespace, name, version, body } = row
      const key = `${resource}/${namespace}/${name}`
      const before = rows.get(key)
      unsynced = [() => void (before === undefined ? rows.delete(key) : rows.set(key, before)), ...unsynced]
      if (body === null) rows.delete(key)
      else rows.set(key, { ...row, body })
      record({
        kind: 'stored',
        resource,
        namespace,
        name,
        version,
        body: body ?? undefined,
      })
    }
    sync()
  }
  const sync = () => {
    unsynced = []
  }

  return {
    rows: () => [...rows.values()],
    cutAtNextWrite(isWritten, cut) {
      armed = { isWritten, cut }
    },
    refuse(next) {
      isRefused = next
    },
    disarm() {
      armed = undefined
    },
    powerCut() {
      for (const takeBack of unsynced) takeBack()
      sync()
    },
    openedBy: (life) => ({
      write(written) {
        if (!life.isAlive) throw new Error('The power is off')
        if (isRefused) throw new Error('disk I/O error')
        const now = armed
        armed = undefined
        if (now === undefined) return put(written)
        if (now.isWritten) put(written)
        now.cut()
        throw new Error('The power is off')
      },
      reserved: () => reserved,
      reserve(version) {
        if (life.isAlive) reserved = version
      },
      freePages: () => 0,
      close: () => undefined,
    }),
  }
}
