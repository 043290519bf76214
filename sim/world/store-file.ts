/** The file of the store, on a disk of the world: what is written is durable, and a write may be the last thing before a power cut. */
import type { Row, SqliteFile } from '../../broker-controller/store/sqlite/sqlite-file.ts'
import type { StoreOrigin } from '../../broker-controller/store/store.ts'
import type { Fact } from '../story/facts.ts'
import type { ProgramLife } from './life.ts'

export type StoredRow = Row & { readonly body: string }

/** What a backup has. */
export type StoreContents = {
  readonly rows: readonly StoredRow[]
  /** The last version that may be in use. */
  readonly reserved: number
}

export interface StoreFile {
  readonly origin: StoreOrigin
  rows(): readonly StoredRow[]
  contents(): StoreContents
  /** In place of what it has: what `bramble-controller restore` makes of a backup. No controller has it open. */
  restore(backup: StoreContents, nowMs: number): void
  /** As a controller with this life uses it. */
  openedBy(life: ProgramLife): Pick<SqliteFile, 'write' | 'reserve' | 'reserved' | 'close' | 'freePages'>
  /** The power is cut in the middle of the next write, which then is on the disk or not. `cut`: cuts it. */
  cutAtNextWrite(isWritten: boolean, cut: () => void): void
  /** Writes fail from now on: the disk is full, or cannot be written. */
  refuse(isRefused: boolean): void
  readonly isRefused: boolean
  /** The next write has no such end. */
  disarm(): void
  /** What was not synced is lost. */
  powerCut(): void
}

const nothing: StoreContents = { rows: [], reserved: 0 }
/** As `sqlite-backup.ts`: versions since the backup are not used again. */
const versionLeap = 1_000_000_000

export function storeFile(record: (fact: Fact) => void, contents = nothing): StoreFile {
  const rows = new Map(contents.rows.map((row) => [keyOf(row), row]))
  let { reserved } = contents
  let origin: StoreOrigin = { id: 'store-of-the-world', acceptsCheckpoints: false }
  let restores = 0
  /** What the rows were that are not synced, the last one first. */
  let unsynced: readonly (() => void)[] = []
  let isRefused = false
  let armed: { readonly isWritten: boolean; readonly cut: () => void } | undefined

  const put = (written: readonly Row[]) => {
    for (const row of written) {
      const { resource, namespace, name, version, body } = row
      const key = keyOf(row)
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
    get origin() {
      return origin
    },
    rows: () => [...rows.values()],
    contents: () => ({ rows: [...rows.values()], reserved }),
    restore(backup, nowMs) {
      rows.clear()
      for (const row of backup.rows) rows.set(keyOf(row), row)
      sync()
      reserved = backup.reserved + versionLeap
      restores += 1
      const sinceMs = Math.floor(nowMs / 1000) * 1000
      origin = { id: `store-of-restore-${restores}`, acceptsCheckpoints: true, sinceMs }
      record({ kind: 'restored', rows: backup.rows, version: reserved })
    },
    cutAtNextWrite(isWritten, cut) {
      armed = { isWritten, cut }
    },
    get isRefused() {
      return isRefused
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

function keyOf({ resource, namespace, name }: Row): string {
  return `${resource}/${namespace}/${name}`
}
