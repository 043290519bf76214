import { test } from 'tap'
import { type BackupManifest, manifestOf, signedManifest } from '../../../api/backups/backup-manifest.ts'
import { backupToAnnotation } from '../../../api/backups/volume-backup.ts'
import { newAgeIdentity } from '../../../daemon/age/age-keys.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { backupKeys } from '../../own-certificates/backup-keys.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { type NodePart, playedNodes, sendingAll } from '../../testing/played-nodes.ts'
import { aStorageClass, aStoredVolume } from '../../testing/volume-objects.ts'
import { fleetBackups } from './fleet-backups.ts'

const keys = backupKeys([newAgeIdentity()])
const [whole, changes] = ['default_db_20261128T030000Z_00000001', 'default_db_20261129T030000Z_00000002']

function manifest(name: string, base?: string, by = keys): BackupManifest {
  const facts = {
    ...{ name, claim: 'default/db', volume: 'pv', accessModes: ['ReadWriteOnce'], time: '2026-11-29T03:00:00Z' },
    ...{ consistency: 'live' as const, bytes: 5, contentBytes: 10, sha256: '00', recipient: by.recipient },
    ...(base !== undefined && { base }),
  }
  return manifestOf(facts, by.sign(signedManifest(facts)))
}

const having = (...all: readonly BackupManifest[]): NodePart => sendingAll(all.map((one) => `${JSON.stringify(one)}\n`))

async function needs(parts: Parameters<typeof playedNodes>[0], ...folders: readonly string[]) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const [ofClass, ...ofVolumes] = folders
  if (ofClass !== undefined) {
    const metadata = { name: 'local-path', annotations: { [backupToAnnotation]: ofClass } }
    await store.create('storageclasses', aStorageClass('local-path', { metadata }))
  }
  for (const [at, folder] of ofVolumes.entries()) {
    const { metadata: _, ...volume } = aStoredVolume('pv')
    const metadata = { name: `pv-${at}`, annotations: { [backupToAnnotation]: folder } }
    await store.create('persistentvolumes', { ...volume, metadata })
  }
  return { store, clock, sessions: playedNodes(parts).sessions, backupKeys: async () => keys }
}

test('the backups are those in all folders that volumes and classes name, each read once', async (t) => {
  const all = await needs(
    { 'pi-1': having(manifest(whole)), 'pi-2': having(manifest(changes)) },
    ...['pi-1:/mnt', 'pi-2:/mnt', 'pi-1:/mnt'],
  )
  const { backups, problems } = await fleetBackups(undefined, all)
  t.same(
    backups.map(({ name, at }) => [name, at]),
    [
      [whole, 'pi-1:/mnt'],
      [changes, 'pi-2:/mnt'],
    ],
  )
  t.same(problems, [])
  t.notOk('mac' in (backups[0] ?? {}), 'nothing that only programs need')
})

test('changes count with what they change, and cannot be restored without it', async (t) => {
  const found = async (...there: readonly BackupManifest[]) =>
    (await fleetBackups('pi-1:/mnt', await needs({ 'pi-1': having(...there) }))).backups.find(
      ({ name }) => name === changes,
    )
  t.match(await found(manifest(changes, whole), manifest(whole)), { contentBytes: 20, problem: undefined })
  t.match(await found(manifest(changes, whole)), { problem: `it has the changes of ${whole}, which is gone` })
  const foreign = backupKeys([newAgeIdentity()])
  t.match(await found(manifest(changes, undefined, foreign)), { problem: /^it was made with another key/ })
})

test('a folder that cannot be read does not hide the others', async (t) => {
  const all = await needs({ 'pi-1': having(manifest(whole)) }, 'pi-1:/mnt', 'pi-2:/mnt', 'pv/nas', 'wrong')
  const { backups, problems } = await fleetBackups(undefined, all)
  t.equal(backups.length, 1)
  t.match(problems, [
    'pi-2:/mnt: node "pi-2" is not connected',
    'pv/nas: the PersistentVolume "nas" for backups does not exist',
    /^"wrong" is not NODE:PATH/,
  ])
})

test('a folder that is given must be one', async (t) => {
  await t.rejects(fleetBackups('/mnt', await needs({})), { reason: 'BadRequest', message: /is not NODE:PATH/ })
})
