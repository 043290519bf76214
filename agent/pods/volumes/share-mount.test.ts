import { test } from 'tap'
import { type MountedShare, shareMount, shareUser } from './share-mount.ts'

const nfs: MountedShare = { kind: 'nfs', server: '10.0.0.5', path: '/export/db' }
const smb: MountedShare = { kind: 'smb', server: 'nas.lan', path: '/photos/2026' }
const made = (share: MountedShare) => {
  const result = shareMount(share)
  return result.ok ? result.value : result.message
}
const optionsOf = (share: MountedShare, ...mountOptions: string[]) => {
  const result = shareMount({ ...share, mountOptions })
  return result.ok ? result.value.options : result.message
}

test('an NFS share is mounted hard, and its own options come last', async (t) => {
  const usual = ['hard', 'timeo=600', 'retrans=2', 'retry=0', 'noatime', 'nosuid', 'nodev']
  t.same(made(nfs), {
    ...{ helper: 'mount.nfs', package: 'nfs-common', source: '10.0.0.5:/export/db', options: usual, port: 2049 },
  })
  t.same(optionsOf(nfs, 'nfsvers=4.1', 'soft,timeo=50', ''), [...usual, 'nfsvers=4.1', 'soft', 'timeo=50'])
  t.same(optionsOf({ ...nfs, readOnly: true }), [...usual, 'ro'])
  t.match(made({ ...nfs, server: 'fd00::5' }), { source: '[fd00::5]:/export/db' })
  const portOf = (...mountOptions: readonly string[]) => {
    const result = shareMount({ ...nfs, mountOptions })
    return result.ok ? result.value.port : result.message
  }
  t.equal(portOf('port=12049'), 12049)
  t.equal(portOf('port=1,port=2'), 2, 'the last one')
  t.same([portOf('port=0'), portOf('port=x'), portOf('port=1234567')], [2049, 2049, 2049])
})

test('an SMB share is for all users, or for the fsGroup of the pod; options of its owner win', async (t) => {
  const head = ['echo_interval=10', 'nosuid', 'nodev']
  t.match(made(smb), { helper: 'mount.cifs', package: 'cifs-utils', source: '//nas.lan/photos/2026', port: 445 })
  t.same(optionsOf(smb), [...head, 'guest', 'file_mode=0777', 'dir_mode=0777'])
  const user = { username: 'ada', password: 'x' }
  t.same(optionsOf({ ...smb, user, group: 2000 }), [...head, 'gid=2000', 'file_mode=0770', 'dir_mode=0770'])
  const own = ['gid=1', 'file_mode=0600', 'dir_mode=0700', 'sec=krb5']
  t.same(optionsOf({ ...smb, group: 2000 }, ...own), [...head, ...own])
})

test('an option that starts programs, reads files or changes other mounts is refused, and its value is not shown', async (t) => {
  const refusedOptions = [
    ...['bg', 'remount', 'bind', 'move', 'loop=/dev/loop0', 'helper=sh', 'uhelper=sh', 'user', 'users', 'owner'],
    ...['X-mount.mkdir', 'x-mount.subdir=a', 'REMOUNT', 'nfsvers=4 soft', 'a"b', "a'b", 'a\\b', 'a\nb', '=x', '-o'],
  ]
  for (const option of refusedOptions) {
    t.match(optionsOf(nfs, option), /^the mount option ".*" is not allowed$/, option)
    t.match(optionsOf(smb, option), /^the mount option ".*" is not allowed/, option)
  }
  t.match(optionsOf(nfs, 'soft,remount'), /"remount" is not allowed/, 'several in one text')
  for (const option of [
    'password=secret',
    'credentials=/etc/shadow',
    'cred=/etc/shadow',
    'username=a',
    'pass=secret',
  ]) {
    const message = String(optionsOf(smb, option))
    t.match(message, /put username and password into a Secret$/, option)
    t.notMatch(message, /shadow|secret$/)
  }
})

test('servers and paths that the helper could take for something else are refused', async (t) => {
  for (const server of ['', '-o', 'a b', 'a/b', 'a,b', 'nas\n', '[::1]', 'nas:b', '..', 'x'.repeat(300)]) {
    t.match(made({ ...nfs, server }), /is not the name of a server$/, server)
  }
  for (const path of ['', 'export', '/a/../b', '/a\nb', `/${'x'.repeat(1_100)}`]) {
    t.type(made({ ...nfs, path }), 'string', path)
    t.type(made({ ...smb, path }), 'string', path)
  }
  for (const path of ['/', '//x', '/a,uid=0', '/a\\b']) t.match(made({ ...smb, path }), /path of an SMB share$/, path)
})

test('the user of a share is read from its Secret; a value with a line break is refused', async (t) => {
  const data = (values: { readonly [key: string]: string }) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
  t.same(shareUser(data({ username: 'ada', password: 'p,a=s', domain: 'HOME' })), {
    ...{ username: 'ada', password: 'p,a=s', domain: 'HOME' },
  })
  t.same(shareUser(data({ username: 'ada' })), { username: 'ada', password: '' })
  t.match(shareUser(data({ password: 'x' })), { message: 'the Secret of the share has no username' })
  const broken = shareUser(data({ username: 'ada', password: 'x\nusername=root' }))
  t.match(broken, { message: /^the password in the Secret of the share has a line break/ })
})
