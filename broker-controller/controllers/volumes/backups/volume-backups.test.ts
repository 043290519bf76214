import { test } from 'tap'
import { backupScheduleAnnotation, backupToAnnotation } from '../../../../api/backups/volume-backup.ts'
import { localProvisioner, poolAnnotation } from '../../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../../api/storage/volume-names.ts'
import { runLoops } from '../../../../daemon/run.ts'
import { fakeClock } from '../../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { sessionBoard } from '../../../sessions/session-board.ts'
import { memoryStore } from '../../../store/memory-store.ts'
import { freshBackupKeys } from '../../../testing/fresh-backup-keys.ts'
import { aStorageClass, aStoredVolume, claimRefTo } from '../../../testing/volume-objects.ts'
import { workloadNeeds } from '../../../testing/workload-world.ts'
import { storageBoard } from '../../../usage/storage-board.ts'
import { claimPods } from '../claim-pods.ts'
import { volumeBackups } from './volume-backups.ts'

const count = 300

test('a volume that waits for its time is visited once an hour, and not by what happens meanwhile', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  let visits = 0
  const counted = {
    ...clock,
    wallMs() {
      visits += 1
      return clock.wallMs()
    },
  }
  const annotations = { [backupToAnnotation]: 'pi-1:/mnt', [backupScheduleAnnotation]: '@every 100h' }
  await store.create('storageclasses', aStorageClass('local-path', { metadata: { name: 'local-path', annotations } }))
  for (let at = 0; at < count; at++) {
    const { metadata: _, ...volume } = aStoredVolume(`pv-${at}`, {
      spec: { local: { path: `/p/${at}` }, claimRef: claimRefTo(`db-${at}`), storageClassName: 'local-path' },
    })
    const own = { [volumeAnnotations.provisionedBy]: localProvisioner, [poolAnnotation]: 'pool-1' }
    await store.create('persistentvolumes', { ...volume, metadata: { name: `pv-${at}`, annotations: own } })
  }
  const storage = storageBoard()
  const needs = { ...workloadNeeds(store, clock, quietLog(t)), storage, backupKeys: freshBackupKeys() }
  const pods = claimPods(needs)
  const stop = new AbortController()
  const backups = volumeBackups({ ...needs, clock: counted, sessions: sessionBoard(needs) }, pods)
  const running = runLoops([{ name: 'pods', run: pods.run }, backups], stop.signal, needs.log)
  t.teardown(async () => {
    stop.abort()
    await clock.settle()
    await running
  })
  await clock.settle()
  t.equal(visits, count)
  for (let minute = 0; minute < 59; minute++) {
    storage.receive('pi-1', { done: [], refused: [], volumes: [{ uid: 'x', usedBytes: minute * 2 ** 30 }] })
    await clock.advance(60_000)
  }
  t.equal(visits, count, 'no report and no minute visits it')
  await clock.advance(120_000)
  t.equal(visits, 2 * count)
})
