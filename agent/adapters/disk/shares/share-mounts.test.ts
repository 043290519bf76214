import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { NodeVolumeOrder } from '../../../../api/storage/volume-messages.ts'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import type { MountedShare } from '../../../pods/volumes/share-mount.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { mountHung, noFuse } from '../../../testing/hung-filesystem.ts'
import { mountMemory, mountPoints, mountsAt, unmount } from '../mounts.ts'
import { remoteFiles } from '../remote/remote-files.ts'
import { shareMounter } from './share-mounter.ts'
import { shareMounts } from './share-mounts.ts'

const skip = skipWithout('root', isRoot())
const nfs: MountedShare = { kind: 'nfs', server: '10.0.0.5', path: '/export' }
const user = { username: 'ada', password: 'top, secret' }
const smb: MountedShare = { kind: 'smb', server: 'nas', path: '/photos', user }

type Ending = { teardown(end: () => unknown): void }

/** Shares whose helpers are these shell programs: `$1` is the source, `$2` the folder, `$4` the options. */
async function shares(t: Ending, helpers: { readonly [name: string]: string }, more = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'bs-'))
  const bin = join(folder, 'bin')
  await mkdir(bin)
  for (const [name, program] of Object.entries(helpers)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${program.replaceAll('FOLDER', folder)}\n`)
    await chmod(join(bin, name), 0o755)
  }
  const path = process.env['PATH'] ?? ''
  process.env['PATH'] = `${bin}:${path}`
  t.teardown(async () => {
    process.env['PATH'] = path
    for (const { path: mounted } of mountsAt(await mountPoints(), folder)) await unmount(mounted)
    await rm(folder, { recursive: true, force: true })
  })
  const needs = { folder, remote: remoteFiles(500), probe: async () => {}, ...more }
  return { folder, needs, mounts: shareMounts(needs) }
}

/** As `shares`, on an NFS server whose `/export` is the folder `server`. */
async function exported(t: Ending) {
  const bind =
    'from=FOLDER/server$(echo "$1" | cut -d : -f 2); [ -d "$from" ] || { echo "mount.nfs: No such file or directory" >&2; exit 32; }; mount --bind "$from" "$2"'
  const made = await shares(t, { 'mount.nfs': bind })
  const server = join(made.folder, 'server/export')
  await mkdir(server, { recursive: true })
  return { ...made, server }
}

const asTmpfs = 'mount -t tmpfs none "$2" && echo "$1 $4" >> FOLDER/log'

test('shares of a NAS', { skip }, async (t) => {
  t.test('a share is mounted once, and unmounted when asked', async (t) => {
    const { folder, mounts } = await shares(t, { 'mount.nfs': asTmpfs })
    const path = await mounts.place('pv-1', nfs)
    t.equal(path, join(folder, 'shares/pv-1'))
    t.equal(await mounts.place('pv-1', nfs), path)
    const log = (await readFile(join(folder, 'log'), 'utf8')).trim().split('\n')
    t.equal(log.length, 1, 'another pod has the same mount')
    t.match(log[0], /^10\.0\.0\.5:\/export hard,/)
    await mounts.check('pv-1')
    await mkdir(join(path, 'export below'))
    await mountMemory(join(path, 'export below'), ['mode=0700'])
    t.same(await mounts.uids(), ['pv-1'], 'what the kernel has mounted below it goes with it')
    await mounts.unmount('pv-1')
    t.same(await mounts.uids(), [])
    t.same(mountsAt(await mountPoints(), folder), [])
    await t.rejects(mounts.check('pv-1'), { message: 'its share is no longer mounted' })
  })

  t.test('a share is held aside until it is released, and what a killed agent has held is unmounted', async (t) => {
    const { folder, needs } = await shares(t, { 'mount.nfs': asTmpfs })
    const killed = shareMounter(needs)
    const left = await killed.hold(nfs)
    const mounter = shareMounter(needs)
    const [one, other] = await Promise.all([mounter.hold(nfs), mounter.hold(nfs)])
    t.not(one.path, other.path)
    const held = async () => mountsAt(await mountPoints(), folder).map(({ path }) => path)
    t.same((await held()).sort(), [one.path, other.path].sort(), 'two sessions each have a mount of their own')
    t.notOk((await held()).includes(left.path))
    for (const each of [one, other, left]) await each.release()
    t.same(await held(), [])
    t.same(await readdir(join(folder, 'held')), [])
    const failing = await shares(t, { 'mount.nfs': 'exit 32' })
    await t.rejects(shareMounter(failing.needs).hold(nfs), { message: /^mount failed: exit status 32/ })
    t.same(await readdir(join(failing.folder, 'held')), [])
  })

  t.test('a folder for backups is made on its share, without a record, and not through a link', async (t) => {
    const { needs, server, folder } = await exported(t)
    const mounter = shareMounter(needs)
    const share: MountedShare = { ...nfs, path: '/export/.bramble/backups', root: '/export' }
    await t.rejects(mounter.hold({ ...nfs, path: '/export/.bramble/backups' }), { message: /No such file/ })
    const held = await mounter.hold(share)
    await writeFile(join(held.path, 'file'), '')
    t.same(mountsAt(await mountPoints(), join(folder, 'roots')), [], 'the whole share is not left mounted')
    await held.release()
    t.same(await readdir(join(server, '.bramble/backups')), ['file'])
    t.same(await readdir(join(server, '.bramble')), ['backups'])
    await rm(join(server, '.bramble'), { recursive: true })
    await symlink('/etc', join(server, '.bramble'))
    await t.rejects(mounter.hold(share), { message: /leads out of the volume/ })
    await t.rejects(stat('/etc/backups'), { code: 'ENOENT' })
    t.same(mountsAt(await mountPoints(), folder), [])
  })

  t.test('the password is in a file for root alone, which exists during the mount only', async (t) => {
    const cifs = `file=\${4##*credentials=}; { cat "$file"; stat --format=%a "$file"; } > FOLDER/seen; ${asTmpfs}`
    const { folder, mounts } = await shares(t, { 'mount.cifs': cifs })
    await mounts.place('pv-1', smb)
    t.equal(await readFile(join(folder, 'seen'), 'utf8'), 'username=ada\npassword=top, secret\n600\n')
    t.notMatch(await readFile(join(folder, 'log'), 'utf8'), /secret/)
    t.same(await readdir(join(folder, 'credentials')), [])
    const failing = await shares(t, { 'mount.cifs': 'echo "mount error(13): Permission denied" >&2; exit 32' })
    const denied = { message: 'mount failed: exit status 32: mount error(13): Permission denied' }
    await t.rejects(failing.mounts.place('pv-1', smb), denied)
    t.same(await readdir(join(failing.folder, 'credentials')), [])
  })

  t.test(
    'the folder of a claim is made once on its share, and never again in the place of one that is missing',
    async (t) => {
      const { folder, mounts } = await exported(t)
      await chmod(join(folder, 'server/export'), 0o777)
      const share: MountedShare = { ...nfs, path: '/export/default/data', root: '/export' }
      await writeFile(join(await mounts.place('pv-1', share), 'file'), '')
      const made = join(folder, 'server/export/default/data')
      t.same(await readdir(made), ['file'])
      t.equal((await stat(made)).mode & 0o777, 0o777, 'as the share itself')
      t.same(await mounts.uids(), ['pv-1'])
      t.same(mountsAt(await mountPoints(), join(folder, 'roots')), [], 'the whole share is not left mounted')
      await mounts.unmount('pv-1')
      await rm(made, { recursive: true })
      const missing = 'the folder default/data was made before and is missing on 10.0.0.5'
      await t.rejects(mounts.place('pv-1', share), { name: 'VolumeError', message: missing })
      await t.rejects(stat(made), { code: 'ENOENT' })
      await mkdir(made, { recursive: true })
      await mounts.place('pv-1', share)
      await symlink('/etc', join(folder, 'server/export/link'))
      await t.rejects(mounts.place('pv-2', { ...share, path: '/export/link/nas-folder' }), {
        message: /leads out of the volume/,
      })
      await t.rejects(stat('/etc/nas-folder'), { code: 'ENOENT' })
      await t.rejects(mounts.place('pv-3', { ...nfs, path: '/export/none' }), { message: /No such file or directory$/ })
    },
  )

  t.test('the folder of a deleted claim goes to the trash of its share, or is deleted', async (t) => {
    const { folder, mounts, server } = await exported(t)
    const at = (path: string) => join(server, path)
    const share: MountedShare = { ...nfs, path: '/export/default/data', root: '/export' }
    const order = (uid: string, more: Partial<NodeVolumeOrder> = {}): NodeVolumeOrder => ({
      ...{ kind: 'share-trash', volume: `pvc-${uid}`, uid, pool: '', folder: 'default/data', share: nfs, claim: 'a/b' },
      ...more,
    })
    await mounts.discard(order('pv-1'), nfs)
    await mounts.place('pv-1', share)
    await writeFile(at('default/data/file'), 'text')
    await mounts.discard(order('pv-1'), nfs)
    t.same(await mounts.uids(), [], 'its mount has ended')
    t.same(mountsAt(await mountPoints(), join(folder, 'roots')), [])
    t.equal(await readFile(at('.bramble/trash/pv-1/data/file'), 'utf8'), 'text')
    t.match(JSON.parse(await readFile(at('.bramble/trash/pv-1/volume.json'), 'utf8')), { claim: 'a/b' })
    t.same(await readdir(at('default')), [])
    await mounts.place('pv-2', share)
    await writeFile(at('default/data/file'), 'of the next claim')
    await mounts.discard(order('pv-1'), nfs)
    await mounts.discard(order('pv-3'), nfs)
    t.equal(await readFile(at('default/data/file'), 'utf8'), 'of the next claim', 'made for another volume')
    await mounts.discard(order('pv-2', { kind: 'share-delete' }), nfs)
    t.same([await readdir(at('default')), await readdir(at('.bramble/trash'))], [[], ['pv-1']])
    t.same(await readdir(at('.bramble/volumes')), [])
  })

  t.test(
    'a folder that several volumes were made with stays until the last one, and no link is followed',
    async (t) => {
      const { mounts, server } = await exported(t)
      const share: MountedShare = { ...nfs, path: '/export/data', root: '/export' }
      const order = (uid: string) => ({ kind: 'share-delete', volume: uid, uid, pool: '', folder: 'data', share: nfs })
      const data = join(server, 'data')
      await mounts.place('pv-1', share)
      await rename(data, join(server, 'moved'))
      await mounts.place('pv-2', share)
      await mounts.discard(order('pv-1'), nfs)
      t.ok((await stat(data)).isDirectory())
      await rm(data, { recursive: true })
      await symlink('moved', data)
      await t.rejects(mounts.discard(order('pv-2'), nfs), {
        name: 'VolumeError',
        message: 'the folder data of /export on 10.0.0.5 cannot be deleted: data is not a folder of the share',
      })
      await rm(data)
      await mkdir(data)
      await rename(join(server, '.bramble/folders'), join(server, 'elsewhere'))
      await symlink('/etc', join(server, '.bramble/trash'))
      await t.rejects(mounts.discard(order('pv-2'), nfs), { message: /\.bramble\/trash is not a folder of the share/ })
      await rm(join(server, '.bramble/trash'))
      await mounts.discard(order('pv-2'), nfs)
      await t.rejects(stat(data), { code: 'ENOENT' })
      t.ok((await stat(join(server, 'moved'))).isDirectory())
    },
  )

  t.test('a missing helper is reported with the package that has it', async (t) => {
    const { mounts } = await shares(t, {})
    const path = process.env['PATH']
    process.env['PATH'] = '/nowhere'
    const missing = 'mount.nfs is not on this machine. Install the package nfs-common'
    await t.rejects(mounts.place('pv-1', nfs), { name: 'VolumeError', message: `mount failed: ${missing}` })
    process.env['PATH'] = path
  })

  t.test('nothing is mounted from a server that does not answer', async (t) => {
    const probe = async () => {
      throw new VolumeError('10.0.0.5 does not answer on port 2049')
    }
    const { folder, mounts } = await shares(t, { 'mount.nfs': asTmpfs }, { probe })
    await t.rejects(mounts.place('pv-1', nfs), { message: '10.0.0.5 does not answer on port 2049' })
    await t.rejects(stat(join(folder, 'log')), { code: 'ENOENT' })
  })

  t.test('a worker does not wait for a slow mount, which goes on', async (t) => {
    const slow = `until [ -e FOLDER/go ]; do sleep 0.05; done; ${asTmpfs}`
    const { folder, mounts } = await shares(t, { 'mount.nfs': slow }, { patienceMs: 10 })
    const late = { message: 'the mount of /export of 10.0.0.5 takes longer than usual' }
    await t.rejects(mounts.place('pv-1', nfs), late)
    await t.rejects(mounts.place('pv-1', nfs), late, 'no second helper is started')
    await writeFile(join(folder, 'go'), '')
    while ((await mounts.uids()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    for (;;) {
      const placed = await mounts.place('pv-1', nfs).catch(() => undefined)
      if (placed !== undefined) break
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    t.equal((await readFile(join(folder, 'log'), 'utf8')).trim().split('\n').length, 1)
  })

  t.test('a helper that hangs is killed with its children, and the next attempt reports it', async (t) => {
    const hangs = 'sleep 1000 & echo $! > FOLDER/child; wait'
    const { folder, mounts } = await shares(t, { 'mount.nfs': hangs }, { deadlineMs: 500 })
    await t.rejects(mounts.place('pv-1', nfs), { message: 'mount failed: mount.nfs did not end within 0.5 s' })
    const child = (await readFile(join(folder, 'child'), 'utf8')).trim()
    const isGone = async () =>
      /^State:\s+[ZX]/m.test(await readFile(`/proc/${child}/status`, 'utf8').catch(() => 'State: X'))
    while (!(await isGone())) await new Promise((resolve) => setTimeout(resolve, 5))
    t.pass('its child is gone, too')
  })

  t.test('a share that the server has replaced is mounted again', async (t) => {
    const { folder, mounts } = await shares(
      t,
      { 'mount.nfs': asTmpfs },
      {
        remote: {
          ...remoteFiles(500),
          kindOf: async () => {
            throw new VolumeError("stat: cannot statx '/x': Stale file handle")
          },
        },
      },
    )
    const path = await mounts.place('pv-1', nfs)
    await writeFile(join(path, 'old'), '')
    await mounts.place('pv-1', nfs)
    t.same(await readdir(path), [])
    t.equal(mountsAt(await mountPoints(), folder).length, 1)
  })

  t.test('a share that hangs is refused in time, and holds up no other', { skip: noFuse }, async (t) => {
    for (const reads of [true, false]) {
      const { folder, mounts } = await shares(t, { 'mount.nfs': asTmpfs })
      const server = await mountHung(t, join(folder, 'shares/pv-1'), { reads })
      await t.rejects(mounts.place('pv-1', nfs), { message: /^the file system mounted at .* does not answer$/ })
      t.equal(await mounts.place('pv-2', nfs), join(folder, 'shares/pv-2'), 'other volumes are not affected')
      t.same([...(await mounts.uids())].sort(), ['pv-1', 'pv-2'])
      server.answer()
    }
  })
})
