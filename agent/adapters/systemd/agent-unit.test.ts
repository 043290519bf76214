import { readFileSync } from 'node:fs'
import { test } from 'tap'

const unit = readFileSync(new URL('../../../../systemd/bramble-agent.service', import.meta.url), 'utf8')
const settings = unit.split('\n').flatMap((line) => {
  const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
  return name === '' ? [] : [{ name, value }]
})

/** systemd.exec(5). Each of them, whatever its value, takes something from the agent. */
const breaking: { readonly [what: string]: readonly string[] } = {
  'mkdir and chmod with the set-group-ID mode of an emptyDir with fsGroup': ['RestrictSUIDSGID'],
  'mounts that Docker sees: a mount namespace of its own': [
    'ProtectSystem',
    'ProtectHome',
    'ProtectProc',
    'ProtectKernelTunables',
    'ProtectKernelModules',
    'ProtectKernelLogs',
    'ProtectControlGroups',
    'PrivateTmp',
    'PrivateDevices',
    'PrivateMounts',
    'PrivateIPC',
    'MountFlags',
    'ReadOnlyPaths',
    'ReadWritePaths',
    'InaccessiblePaths',
    'ExecPaths',
    'NoExecPaths',
    'BindPaths',
    'BindReadOnlyPaths',
    'TemporaryFileSystem',
    'RootDirectory',
    'RootImage',
  ],
  'root, and the owners of files': ['User', 'DynamicUser', 'PrivateUsers', 'AmbientCapabilities'],
  "the machine's network": ['PrivateNetwork', 'NetworkNamespacePath', 'IPAddressDeny'],
  'the compiler of Node.js': ['MemoryDenyWriteExecute'],
}

test('the unit of the agent has no setting that breaks what the agent does', async (t) => {
  t.ok(
    settings.some(({ name }) => name === 'ExecStart'),
    'the unit was read',
  )
  for (const [what, names] of Object.entries(breaking)) {
    const found = settings.filter(({ name }) => names.includes(name))
    t.same(found, [], `needed: ${what}`)
  }
})

test('the unit of the agent keeps the capabilities and system calls of mounts, owners and modes', async (t) => {
  const values = (wanted: string) => settings.filter(({ name }) => name === wanted).map(({ value }) => value)
  const [dropped = '', ...others] = values('CapabilityBoundingSet')
  t.same(others, [])
  t.match(dropped, /^~/, 'a list of what is dropped')
  for (const kept of ['SYS_ADMIN', 'CHOWN', 'FOWNER', 'FSETID', 'DAC_OVERRIDE', 'MKNOD', 'NET_ADMIN', 'KILL']) {
    t.notOk(dropped.slice(1).split(' ').includes(`CAP_${kept}`), kept)
  }
  for (const filter of values('SystemCallFilter')) {
    t.match(filter, /^~/, 'a list of what is refused')
    for (const kept of ['@mount', '@chown', '@file-system', '@setuid', 'chmod', 'mount', 'umount2']) {
      t.notOk(filter.slice(1).split(' ').includes(kept), kept)
    }
  }
})
