/** What the backups of volumes depend on: volumes, claims, classes, nodes and their reports. */
import { backupOf, type LastBackup, lastBackupOf, restoreOf } from '../../../../api/backups/volume-backup.ts'
import { keySets } from '../../../store/indexes/key-sets.ts'
import { informer } from '../../../store/informer.ts'
import type { StoredObject } from '../../../store/store.ts'
import type { StoredClaim } from '../bind-writes.ts'
import { type PoolHolders, poolHolders } from '../pool-holders.ts'
import type { StoredVolume } from '../volume-index.ts'
import type { VolumeBackupNeeds } from './volume-backup-needs.ts'

export interface BackupSourcesOfFleet {
  readonly holders: PoolHolders
  volume(name: string): StoredVolume | undefined
  /** That it is bound to. */
  claimOf(volume: StoredVolume): StoredClaim | undefined
  classOf(volume: StoredVolume): StoredObject<'storageclasses'> | undefined
  /** How many are being made. */
  backingUp(): number
  /** The identity that the folder must have; undefined: none is known, or a person gives this folder to the volume now. */
  markOf(to: string, facts: { readonly last: LastBackup | undefined; readonly isWanted: boolean }): string | undefined
  catchUp(): void
  readonly listed: Promise<unknown>
  readonly loops: readonly { readonly name: string; readonly run: (signal: AbortSignal) => Promise<void> }[]
}

/** `visit`: the volume is to be looked at. */
export function backupSources(needs: VolumeBackupNeeds, visit: (volume: string) => void): BackupSourcesOfFleet {
  /** Volumes of which a backup is made, or whose data comes from one. */
  const active = new Map<string, Activity>()
  /** The latest backup in each folder. */
  const latest = new Map<string, Pick<LastBackup, 'mark' | 'time'>>()
  const byClass = keySets()
  const rememberLatest = (last: LastBackup | undefined) => {
    if (last !== undefined && Date.parse(last.time) >= Date.parse(latest.get(last.to)?.time ?? '1970-01-01'))
      latest.set(last.to, last)
  }
  const volumes = informer(needs, 'persistentvolumes', (present, previous) => {
    const { name } = (present ?? previous)?.metadata ?? { name: '' }
    byClass.delete(previous?.spec?.storageClassName ?? '', name)
    if (present !== undefined) {
      byClass.add(present.spec?.storageClassName ?? '', name)
      rememberLatest(lastBackupOf(present))
    }
    const activity = present && activityOf(present)
    if (activity === undefined) active.delete(name)
    else active.set(name, activity)
    visit(name)
  })
  const claims = informer(needs, 'persistentvolumeclaims', (present, previous) => {
    const name = (present ?? previous)?.spec?.volumeName
    if (name) visit(name)
  })
  const classes = informer(needs, 'storageclasses', (present, previous) => {
    for (const name of byClass.of((present ?? previous)?.metadata.name ?? '')) visit(name)
  })
  const nodes = informer(needs, 'nodes', () => undefined)
  const visitActive = () => {
    for (const name of active.keys()) visit(name)
  }
  needs.storage.onReport(visitActive)
  needs.hold?.onRelease(visitActive)
  const all = { volumes, claims, classes, nodes }
  return {
    holders: poolHolders(nodes, needs.storage),
    volume: (name) => volumes.get({ namespace: '', name }),
    claimOf({ spec }) {
      const { namespace = '', name = '', uid } = spec?.claimRef ?? {}
      const claim = name === '' ? undefined : claims.get({ namespace, name })
      return claim?.metadata.uid === uid ? claim : undefined
    },
    classOf: ({ spec }) => classes.get({ namespace: '', name: spec?.storageClassName ?? '' }),
    backingUp: () => [...active.values()].filter((what) => what === 'backup').length,
    markOf: (to, { last, isWanted }) => (isWanted && last?.to !== to ? undefined : latest.get(to)?.mark),
    catchUp() {
      for (const one of Object.values(all)) one.catchUp()
    },
    listed: Promise.all(Object.values(all).map(({ listed }) => listed)),
    loops: Object.entries(all).map(([name, { run }]) => ({ name, run })),
  }
}

type Activity = 'backup' | 'restore'

function activityOf(volume: StoredVolume): Activity | undefined {
  if (backupOf(volume) !== undefined) return 'backup'
  return restoreOf(volume) === undefined ? undefined : 'restore'
}
