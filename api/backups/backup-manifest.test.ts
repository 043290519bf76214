import { test } from 'tap'
import {
  type BackupManifestFacts,
  backupName,
  isBackupName,
  manifestOf,
  readManifest,
  signedManifest,
} from './backup-manifest.ts'
import { backupTarget, targetText } from './backup-target.ts'

const name = backupName('default/db', Date.UTC(2026, 10, 29, 3), '0123abcd')
const facts: BackupManifestFacts = {
  ...{ name, claim: 'default/db', volume: 'pvc-1', storageClass: 'local-path', capacity: '5Gi' },
  ...{ accessModes: ['ReadWriteOnce'], time: '2026-11-29T03:00:00Z', consistency: 'live' },
  ...{ bytes: 10, contentBytes: 20, sha256: 'ab', recipient: 'age1x' },
}

test('the name of a backup has its claim and its time, and fits a file name', async (t) => {
  t.equal(name, 'default_db_20261129T030000Z_0123abcd')
  t.ok(isBackupName(name))
  const long = backupName(`${'n'.repeat(63)}/${'c'.repeat(253)}`, 0, '0123abcd')
  t.ok(isBackupName(long) && long.length <= 240, long)
  for (const wrong of ['', '..', 'default_db', `.${name}`, `a/${name}`, `${name}\n`])
    t.notOk(isBackupName(wrong), wrong)
})

test('a manifest is that of its folder, or none', async (t) => {
  const manifest = manifestOf(facts, 'mac')
  t.same(readManifest(name, JSON.stringify(manifest)), manifest)
  t.match(manifest.read, /^age --decrypt .* \| tar --extract/)
  const wrong = [
    ...[{ name: 'other' }, { kind: 'x' }, { bytes: -1 }, { contentBytes: 1.5 }, { time: 'yesterday' }],
    ...[{ base: '../x' }, { volume: 'x'.repeat(9_000) }, { consistency: 'perhaps' }],
  ]
  for (const over of wrong)
    t.equal(readManifest(name, JSON.stringify({ ...manifest, ...over })), undefined, JSON.stringify(over).slice(0, 40))
  t.equal(readManifest(name, '{'), undefined)
})

test('each field changes what is signed', async (t) => {
  const before = signedManifest(facts)
  const changes: readonly Partial<BackupManifestFacts>[] = [
    ...[{ name: 'x' }, { claim: 'x' }, { volume: 'x' }, { storageClass: 'x' }, { capacity: 'x' }, { accessModes: [] }],
    ...[{ time: 'x' }, { consistency: 'hooks' as const }, { base: 'x' }, { bytes: 1 }, { contentBytes: 1 }],
    ...[{ sha256: 'x' }, { recipient: 'x' }],
  ]
  for (const change of changes) t.not(signedManifest({ ...facts, ...change }), before, JSON.stringify(change))
})

test('a target is a node and a whole path, a volume or a class', async (t) => {
  t.same(backupTarget('pi-2:/mnt/backup'), { node: 'pi-2', path: '/mnt/backup' })
  t.same(backupTarget('pv/nas'), { volume: 'nas' })
  t.same(backupTarget('class/nas'), { storageClass: 'nas' })
  for (const written of ['pv/nas', 'class/nas', 'pi-2:/mnt/a:b']) {
    const target = backupTarget(written)
    t.equal('problem' in target ? target.problem : targetText(target), written)
  }
  t.same(backupTarget('pi-2:/mnt/a:b'), { node: 'pi-2', path: '/mnt/a:b' })
  for (const wrong of [
    '',
    'pi-2',
    ':/mnt',
    'pi-2:',
    'pi-2:mnt',
    'pi-2:/',
    'pi-2:/mnt/',
    'pi-2:/mnt/../etc',
    'pi-2:/a//b',
    'Pi:/mnt',
    'pi-2:/a\0',
    'pv/',
    'pv/nas/sub',
    'pv/Nas',
    'class/',
    'class/nas/sub',
  ])
    t.match(backupTarget(wrong), { problem: /./ }, wrong)
})
