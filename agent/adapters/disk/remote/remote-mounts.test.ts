import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { isRemote, remoteMountOn } from './remote-mounts.ts'

test('network and FUSE file systems are remote, those of disks and memory are not', async (t) => {
  for (const type of ['nfs', 'nfs4', 'cifs', 'smb3', 'ceph', '9p', 'fuse', 'fuse.sshfs', 'fuse.glusterfs', 'autofs']) {
    t.ok(isRemote({ path: '/mnt', type }), type)
  }
  for (const type of ['ext4', 'xfs', 'btrfs', 'vfat', 'overlay', 'tmpfs', 'proc', 'fusectl', 'nfsd', '']) {
    t.notOk(isRemote({ path: '/mnt', type }), type)
  }
  t.notOk(isRemote({ path: '/', type: 'nfs4' }), 'a machine whose root is remote')
})

test('the remote mount of a path is found without a call on it, also through links', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-remote-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const nas = { path: join(folder, 'nas'), type: 'nfs4', source: '10.0.0.5:/export' }
  const disk = { path: join(folder, 'nas/disk'), type: 'ext4', source: '/dev/sda1' }
  const points = async () => [{ path: '/', type: 'ext4', source: '/dev/root' }, nas, disk]
  await symlink(nas.path, join(folder, 'absolute'))
  await symlink('./absolute/deep', join(folder, 'relative'))
  await symlink('loop', join(folder, 'loop'))
  for (const path of [
    'nas',
    'nas/',
    'nas/none/../x',
    'nas/disk/x',
    'absolute',
    'relative/x',
    'none/../nas',
    './nas/a',
  ]) {
    t.equal(await remoteMountOn(`${folder}/${path}`, points), nas, path)
  }
  for (const path of ['', 'nas2', 'other/nas', 'loop', 'loop/x']) {
    t.equal(await remoteMountOn(`${folder}/${path}`, points), undefined, path)
  }
  t.equal(await remoteMountOn('/', points), undefined)
  t.equal(await remoteMountOn(`/../..${folder}/nas`, points), nas)
})
