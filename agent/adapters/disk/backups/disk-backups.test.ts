import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { archiveFile, backupName, manifestFile, manifestOf } from '../../../../api/backups/backup-manifest.ts'
import type { BackupStore } from '../../../../api/backups/backup-sessions.ts'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import type { MountedShare } from '../../../pods/volumes/share-mount.ts'
import type { FolderOfBackups, Pieces } from '../../../pods/volumes/volume-backups.ts'
import { copyResult } from '../volumes/copy-digest.ts'
import { volumePool } from '../volumes/pool.ts'
import { poolFilesOfMachine } from '../volumes/pool-files.ts'
import { dataPool, volumePools } from '../volumes/pools.ts'
import { diskBackups } from './disk-backups.ts'

const skip = skipWithout('root', isRoot())
const signal = new AbortController().signal
const claim = { claim: 'default/db', claimUID: 'uid-claim' }
const huge = { capacityBytes: 2 ** 40, availableBytes: 2 ** 39 }

async function aFolder(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'bkp-'))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** A machine with a pool and a folder for backups. */
async function aMachine(t: Test) {
  const [data, target] = [await aFolder(t), await aFolder(t)]
  const pool = volumePool(dataPool(data), poolFilesOfMachine())
  const pools = volumePools([], { dataDirectory: data, memoryDirectory: join(data, 'memory') }, poolFilesOfMachine())
  const state = { room: huge }
  const held: MountedShare[] = []
  const mounted: MountedShare[] = []
  const shares = {
    async hold(share: MountedShare) {
      held.push(share)
      mounted.push(share)
      const release = async () => void held.splice(held.indexOf(share), 1)
      return { path: target, release }
    },
  }
  const backups = diskBackups({ pools, shares, room: async () => state.room, flush: async () => undefined })
  const { id, path } = await pool.open()
  const folder = await pool.folder({
    ...{ pool: id, uid: 'uid-pv', path: '/x/default_db_pv', ...claim },
    hasGroup: false,
  })
  const place = { uid: 'uid-pv', pool: id, folder: 'default_db_pv', ...claim }
  const read = async (backup: { id: string; since?: string; held?: string }) => {
    const pieces: Buffer[] = []
    const contentBytes = await backups.read({ ...place, ...backup }, async (piece) => void pieces.push(piece), signal)
    return { archive: Buffer.concat(pieces), contentBytes }
  }
  /** As a controller, which would encrypt it; `day`: of the date. */
  const store = async (
    { archive, contentBytes }: { readonly archive: Buffer; readonly contentBytes: number },
    {
      id: backup,
      day = 1,
      sha256 = createHash('sha256').update(archive).digest('hex'),
      next = pieces(archive),
      ...more
    }: {
      readonly id: string
      readonly day?: number
      readonly sha256?: string
      readonly next?: Pieces
    } & Partial<BackupStore>,
  ) => {
    const name = more.name ?? backupName('default/db', Date.UTC(2026, 10, day), backup)
    const manifest = manifestOf(
      {
        ...{ name, claim: 'default/db', volume: 'pv', accessModes: ['ReadWriteOnce'], consistency: 'live' },
        ...{ time: new Date(Date.UTC(2026, 10, day)).toISOString(), bytes: archive.length, contentBytes, sha256 },
        ...(more.base !== undefined && { base: more.base }),
        recipient: 'age1x',
      },
      'mac',
    )
    const marks: string[] = []
    let earlier: string | undefined
    const incoming = {
      async opened(mark: string, made: string | undefined) {
        marks.push(mark)
        earlier = made
      },
      next,
      manifest: async () => JSON.stringify(manifest),
    }
    const removed = await backups.store({ path: target, uid: 'uid-pv', id: backup, name, ...more }, incoming, signal)
    return { name, removed, mark: marks[0], made: earlier }
  }
  const fetch = async (name: string, folder: FolderOfBackups = { path: target }) => {
    const all: Buffer[] = []
    await backups.fetch({ ...folder, name }, async (piece) => void all.push(piece), signal)
    return Buffer.concat(all)
  }
  const list = async (folder: FolderOfBackups = { path: target }) => {
    const all: Buffer[] = []
    await backups.list(folder, async (piece) => void all.push(piece), signal)
    const text = Buffer.concat(all).toString()
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).name as string]))
  }
  const restore = (archives: readonly Buffer[], contentBytes: number, over: { uid?: string; folder?: string } = {}) => {
    const wanted = { ...place, uid: 'uid-new', folder: 'default_db_new', ...over, id: '0123abcd' }
    return backups.restore({ ...wanted, archives: archives.length, contentBytes }, pieces(...archives), signal)
  }
  return {
    pool,
    id,
    path,
    folder,
    target,
    held,
    mounted,
    state,
    backups,
    read,
    store,
    fetch,
    list,
    restore,
    restored: join(path, 'default_db_new'),
  }
}

/** Each archive ends with an undefined piece. */
function pieces(...archives: readonly Buffer[]): Pieces {
  const all = archives.flatMap((archive) => {
    const parts: (Buffer | undefined)[] = []
    for (let at = 0; at < archive.length; at += 50_000) parts.push(archive.subarray(at, at + 50_000))
    return [...parts, undefined]
  })
  return async () => all.shift()
}

const digestOf = (folder: string) =>
  copyResult(folder, 1, { hashes: new Map(), beforeMs: 0 }, signal).then(({ digest, files }) => ({ digest, files }))

/** Everything that a file system can hold for a database and a little more. */
async function fill(folder: string): Promise<void> {
  await mkdir(join(folder, 'sub', 'deep'), { recursive: true })
  await chmod(join(folder, 'sub'), 0o2770)
  await chown(join(folder, 'sub'), 1001, 1002)
  await writeFile(join(folder, 'sub', 'deep', 'data'), Buffer.alloc(300_000, 'abc'))
  await chown(join(folder, 'sub', 'deep', 'data'), 999, 998)
  await utimes(join(folder, 'sub', 'deep', 'data'), 1_000_000.25, 1_000_000.25)
  await link(join(folder, 'sub', 'deep', 'data'), join(folder, 'hard'))
  await symlink('/etc/passwd', join(folder, 'out'))
  await symlink('sub/deep', join(folder, 'in'))
  await writeFile(join(folder, 'setuid'), 'x')
  await chmod(join(folder, 'setuid'), 0o4755)
  await writeFile(join(folder, 'sparse'), '')
  await truncate(join(folder, 'sparse'), 50 * 2 ** 20)
  await writeFile(join(folder, 'name with\nnewline'), '')
  execFileSync('mkfifo', [join(folder, 'fifo')])
  execFileSync('mknod', [join(folder, 'device'), 'c', '1', '3'])
  setAttribute(join(folder, 'hard'), 'kept')
}

const perl = (code: string, ...args: readonly string[]) =>
  execFileSync('perl', [
    '-e',
    `require "syscall.ph"; my ($path, $value) = @ARGV; my $name = "user.note"; ${code}`,
    ...args,
  ])

function setAttribute(path: string, value: string): void {
  perl('syscall(&SYS_setxattr, $path, $name, $value, length($value), 0) == 0 or die $!', path, value)
}

function attribute(path: string): string {
  return perl(
    'my $b = "\\0" x 64; my $n = syscall(&SYS_getxattr, $path, $name, $b, 64); print substr($b, 0, $n)',
    path,
  ).toString()
}

test('a backup has all that the volume has, and so has the volume that is made from it', { skip }, async (t) => {
  const machine = await aMachine(t)
  await fill(machine.folder)
  const copy = await machine.read({ id: '00000001' })
  const { name } = await machine.store(copy, { id: '00000001' })
  t.same((await readdir(join(machine.target, name))).sort(), [manifestFile, archiveFile].sort())
  t.same(await machine.list(), [name])
  await machine.restore([await machine.fetch(name)], copy.contentBytes)
  t.same(await digestOf(machine.restored), await digestOf(machine.folder))
  const [one, other] = [
    await lstat(join(machine.restored, 'hard')),
    await lstat(join(machine.restored, 'sub/deep/data')),
  ]
  t.equal(one.ino, other.ino, 'a hard link')
  t.equal(attribute(join(machine.restored, 'hard')), 'kept')
  t.ok((await lstat(join(machine.restored, 'sparse'))).blocks < 1_000, 'holes')
  t.equal((await lstat(join(machine.restored, 'setuid'))).mode & 0o7777, 0o4755)
  await machine.restore([], 0)
  t.pass('the second time nothing comes')
})

test('the next backup has what has changed, and restores with the one before it', { skip }, async (t) => {
  const machine = await aMachine(t)
  await fill(machine.folder)
  await writeFile(join(machine.folder, 'large'), Buffer.alloc(2 ** 21, 'xyz'))
  const whole = await machine.read({ id: '00000001' })
  const { name: base, mark } = await machine.store(whole, { id: '00000001' })
  await rm(join(machine.folder, 'out'))
  await rename(join(machine.folder, 'sub'), join(machine.folder, 'renamed'))
  await writeFile(join(machine.folder, 'new'), 'new')
  const changes = await machine.read({ id: '00000002', since: '00000001' })
  t.ok(changes.contentBytes < whole.contentBytes / 4, `${changes.contentBytes} of ${whole.contentBytes}`)
  const { name } = await machine.store(changes, { id: '00000002', day: 2, base, ...(mark && { mark }) })
  const archives = [await machine.fetch(base), await machine.fetch(name)]
  await machine.restore(archives, whole.contentBytes + changes.contentBytes)
  t.same(await digestOf(machine.restored), await digestOf(machine.folder))
  await t.rejects(machine.read({ id: '00000003', since: '00000009' }), { message: /no list of the files/ })
  await t.rejects(machine.store(changes, { id: '00000003', base: name.replace('02', '03') }), { message: /is not in/ })
})

test('a folder of a NAS is mounted for each session, with the user of its Secret, and is named as its volume', {
  skip,
}, async (t) => {
  const machine = await aMachine(t)
  const share = { kind: 'smb' as const, server: 'nas', path: '/backups', secret: { namespace: 'storage', name: 'nas' } }
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const folder = { path: 'pv/nas', nas: { share, secret: { username: encoded('ada'), password: encoded('x') } } }
  const copy = await machine.read({ id: '00000001' })
  let during: readonly MountedShare[] = []
  const all = pieces(copy.archive)
  const next = async () => {
    during = [...machine.held]
    return all()
  }
  const { name } = await machine.store(copy, { id: '00000001', next, ...folder })
  const { secret: _, ...mounted } = share
  t.same(during, [{ ...mounted, user: { username: 'ada', password: 'x' } }])
  t.same(machine.held, [], 'it is unmounted')
  t.same(await machine.list(folder), [name])
  t.same(await machine.fetch(name, folder), copy.archive)
  const failing = machine.store(copy, { id: '00000002', sha256: '00', ...folder })
  await t.rejects(failing, { message: 'what was written to pv/nas is not what is read there: check its disk' })
  await t.rejects(machine.list({ path: 'pv/nas', nas: { share, secret: { username: encoded('a\nb') } } }), {
    message: /has a line break/,
  })
  t.same(machine.held, [], 'also after it has failed')
})

test('only a backup makes the folder of a class on its share', { skip }, async (t) => {
  const machine = await aMachine(t)
  const share = { kind: 'nfs' as const, server: 'nas', path: '/export/.bramble/backups', root: '/export' }
  const folder = { path: 'class/nas', nas: { share } }
  const copy = await machine.read({ id: '00000001' })
  let during: readonly MountedShare[] = []
  const all = pieces(copy.archive)
  const next = async () => {
    during = [...machine.held]
    return all()
  }
  await machine.store(copy, { id: '00000001', next, ...folder })
  t.same(during, [share])
  machine.mounted.length = 0
  await machine.list(folder)
  const { root: _, ...bare } = share
  t.same(machine.mounted, [bare], 'a list of it does not')
})

test('others of the claim go by the rule, never the base of one that stays', { skip }, async (t) => {
  const machine = await aMachine(t)
  const copy = await machine.read({ id: '00000001' })
  const [first, second] = [
    await machine.store(copy, { id: '00000001' }),
    await machine.store(copy, { id: '00000002', day: 2 }),
  ]
  await mkdir(join(machine.target, 'photos'))
  const third = await machine.store(copy, { id: '00000003', day: 3, base: first.name, keep: 'last=1' })
  t.same(third.removed, [second.name])
  t.same((await readdir(machine.target)).sort(), ['bramble-backups.json', 'photos', first.name, third.name].sort())
})

test('a folder that is not there, or is not the one of before, gets no backup', { skip }, async (t) => {
  const machine = await aMachine(t)
  const copy = await machine.read({ id: '00000001' })
  const { name } = await machine.store(copy, { id: '00000001' })
  const again = (more: Partial<BackupStore>) => machine.store(copy, { id: '00000002', day: 2, ...more })
  await t.rejects(again({ mark: 'another-one' }), {
    message: /not the folder of the earlier backups: another one is there/,
  })
  await t.rejects(again({ path: join(machine.target, 'none') }), { message: /does not exist: mount its disk/ })
  await t.rejects(again({ path: '/x/../etc' }), { message: /not the path of a folder/ })
  const before = await readFile(join(machine.target, name, archiveFile))
  const other = { ...copy, archive: Buffer.from('other') }
  const taken = await machine.store(other, { id: '00000002', name })
  t.match(JSON.parse(taken.made ?? ''), { name }, 'it was made before')
  t.same(await readFile(join(machine.target, name, archiveFile)), before, 'nothing is overwritten')
  await writeFile(join(machine.target, 'bramble-backups.json'), 'x')
  await t.rejects(again({}), { message: /is not the identity/ })
  await rm(join(machine.target, 'bramble-backups.json'))
  await t.rejects(again({ mark: 'another-one' }), { message: /it has no bramble-backups.json/ })
  t.same(await readdir(machine.target), [name], 'and nothing is left there')
})

test('an attempt that ends early leaves nothing, and what a killed agent has left goes with the next', {
  skip,
}, async (t) => {
  const machine = await aMachine(t)
  const copy = await machine.read({ id: '00000001' })
  await writeFile(join(machine.target, 'bramble-backups.json'), '')
  await writeFile(join(machine.target, '.bramble-backups.json-0001'), '{"id":')
  const cut = async () => {
    throw new Error('The copy was cut')
  }
  await t.rejects(machine.store(copy, { id: '00000001', next: cut }), { message: 'The copy was cut' })
  await t.rejects(machine.store(copy, { id: '00000001', sha256: '00' }), {
    message: /not what is read there: check its disk/,
  })
  t.same(await readdir(machine.target), ['bramble-backups.json'])
  await mkdir(join(machine.target, '.part-uid-pv-00000000'))
  await symlink('/etc', join(machine.target, '.part-uid-pv-00000009'))
  await mkdir(join(machine.target, '.part-uid-other-00000000'))
  const { name } = await machine.store(copy, { id: '00000001' })
  t.same((await readdir(machine.target)).sort(), ['.part-uid-other-00000000', 'bramble-backups.json', name])
  t.ok((await readdir('/etc')).length > 0)
})

test('a full disk is named, and what was written there goes', { skip }, async (t) => {
  const machine = await aMachine(t)
  const copy = await machine.read({ id: '00000001' })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', machine.target])
  t.teardown(() => execFileSync('umount', [machine.target]))
  const large = { ...copy, archive: Buffer.alloc(2 ** 20, 1) }
  await t.rejects(machine.store(large, { id: '00000001' }), { message: /is full: remove backups/ })
  t.same(await readdir(machine.target), ['bramble-backups.json'])
  machine.state.room = { capacityBytes: 2 ** 40, availableBytes: 0 }
  await t.rejects(machine.restore([copy.archive], copy.contentBytes), { message: /not enough free space/ })
})

test('links that somebody has put into the folder are not followed', { skip }, async (t) => {
  const machine = await aMachine(t)
  const elsewhere = await aFolder(t)
  const copy = await machine.read({ id: '00000001' })
  const { name } = await machine.store(copy, { id: '00000001' })
  await rename(join(machine.target, name), join(elsewhere, name))
  await symlink(join(elsewhere, name), join(machine.target, name))
  t.same(await machine.list(), [])
  await t.rejects(machine.fetch(name), { message: /missing, or is a link/ })
  await rm(join(machine.target, name))
  await mkdir(join(machine.target, name))
  await symlink('/etc/shadow', join(machine.target, name, archiveFile))
  await symlink('/etc/shadow', join(machine.target, name, manifestFile))
  t.same(await machine.list(), [])
  await t.rejects(machine.fetch(name), { message: /cannot be used/ })
})

test('an archive writes nothing outside of the volume, and not more than is in its manifest', { skip }, async (t) => {
  const machine = await aMachine(t)
  const [work, victim] = [await aFolder(t), await aFolder(t)]
  await writeFile(join(victim, 'file'), 'mine')
  const archiveOf = (...args: readonly string[]) =>
    gzipSync(execFileSync('tar', ['--create', '--absolute-names', `--directory=${work}`, ...args]))
  await writeFile(join(work, 'evil'), 'evil')
  await symlink(victim, join(work, 'link'))
  await mkdir(join(work, 'tree', 'link'), { recursive: true })
  await writeFile(join(work, 'tree', 'link', 'file'), 'evil')
  const hostile: Readonly<Record<string, Buffer>> = {
    absolute: archiveOf(`--transform=s,evil,${victim}/file,`, 'evil'),
    upwards: archiveOf(`--transform=s,evil,../../../../../../../..${victim}/file,`, 'evil'),
    'through a link': gzipSync(
      Buffer.concat([
        execFileSync('tar', ['--create', '--absolute-names', `--directory=${work}`, 'link']).subarray(0, 512),
        execFileSync('tar', ['--create', `--directory=${join(work, 'tree')}`, 'link/file']),
      ]),
    ),
    'no archive': gzipSync(Buffer.alloc(4_096, 'x')),
    'not compressed': Buffer.alloc(4_096, 'x'),
  }
  for (const [what, archive] of Object.entries(hostile)) {
    const name = `uid-${what.replaceAll(' ', '-')}`
    await machine.restore([archive], 2 ** 20, { uid: name, folder: `default_${name}` }).catch((error: unknown) => {
      if (!(error instanceof Error && error.name === 'VolumeError')) throw error
    })
    t.equal(await readFile(join(victim, 'file'), 'utf8'), 'mine', what)
    t.same(await readdir(victim), ['file'], what)
    t.same(await readdir(join(machine.path, '.bramble', 'incoming')), [], 'nothing half is left')
  }
  const bomb = gzipSync(Buffer.alloc(20 * 2 ** 20))
  await t.rejects(machine.restore([bomb], 2 ** 20, { uid: 'uid-bomb', folder: 'default_bomb' }), {
    message: /more than the 1048576 bytes/,
  })
})

test('a volume that is there is not made from a backup, and one that was removed is not made again', {
  skip,
}, async (t) => {
  const machine = await aMachine(t)
  await writeFile(join(machine.folder, 'file'), 'present')
  const copy = await machine.read({ id: '00000001' })
  const taken = { uid: 'uid-new', folder: 'default_db_pv' }
  await t.rejects(machine.restore([copy.archive], copy.contentBytes, taken), {
    message: /is there, and is not from the backup/,
  })
  t.equal(await readFile(join(machine.folder, 'file'), 'utf8'), 'present')
  await machine.restore([copy.archive], copy.contentBytes)
  await rm(machine.restored, { recursive: true })
  await t.rejects(machine.restore([copy.archive], copy.contentBytes), { message: /does not exist/ })
  await t.rejects(machine.read({ id: '00000002', held: '0123abcd' }), { message: /not held/ })
  t.equal(await readlink('/proc/self/cwd'), process.cwd())
})

test('an agent that is killed before it has noted the new folder goes on with it', { skip }, async (t) => {
  const machine = await aMachine(t)
  await writeFile(join(machine.folder, 'file'), 'x')
  const copy = await machine.read({ id: '00000001' })
  const own = join(machine.path, '.bramble')
  const received = JSON.stringify({ round: 1, files: 0, bytes: copy.contentBytes, digest: '' })
  const placed = async () => {
    t.equal(await readFile(join(machine.restored, 'file'), 'utf8'), 'x')
    t.same(await readdir(join(own, 'incoming')), [])
    t.ok((await readdir(join(own, 'volumes'))).includes('uid-new.json'))
  }
  await machine.restore([copy.archive], copy.contentBytes)
  await placed()
  // After the rename, and before the record.
  await rm(join(own, 'volumes', 'uid-new.json'))
  await mkdir(join(own, 'incoming', 'uid-new', '0123abcd'), { recursive: true })
  await writeFile(join(own, 'incoming', 'uid-new', '0123abcd', 'copy.json'), received)
  await machine.restore([], copy.contentBytes)
  await placed()
  // Before the rename.
  await rm(join(own, 'volumes', 'uid-new.json'))
  await mkdir(join(own, 'incoming', 'uid-new', '0123abcd'), { recursive: true })
  await rename(machine.restored, join(own, 'incoming', 'uid-new', '0123abcd', 'data'))
  await writeFile(join(own, 'incoming', 'uid-new', '0123abcd', 'copy.json'), received)
  await machine.restore([], copy.contentBytes)
  await placed()
})

test('what an agent that was killed during a restore has left goes when the volume is deleted', { skip }, async (t) => {
  const machine = await aMachine(t)
  const incoming = join(machine.path, '.bramble', 'incoming')
  for (const uid of ['uid-new', 'uid-other']) {
    await mkdir(join(incoming, uid, '0123abcd', 'data'), { recursive: true })
    await writeFile(join(incoming, uid, '0123abcd', 'data', 'half'), 'x')
  }
  const order = { kind: 'trash', volume: 'pv', uid: 'uid-new', pool: machine.id, folder: 'default_db_new', ...claim }
  await machine.pool.discard(order)
  t.same(await readdir(incoming), ['uid-other'])
  await machine.pool.discard(order)
  t.same(await readdir(join(machine.path, '.bramble', 'trash')).catch(() => []), [], 'it does not go to the trash')
})
