import { test } from 'tap'
import type { PodSpec } from '../pod.ts'
import { problemText } from '../problem.ts'
import { osProblems } from './os-validation.ts'

const texts = (spec: Partial<PodSpec>) =>
  osProblems('spec', { containers: [{ name: 'main' }], ...spec }).map(problemText)

test('the system of a pod is linux or windows', async (t) => {
  for (const os of [undefined, { name: 'linux' }, { name: 'windows' }]) t.same(texts({ ...(os && { os }) }), [])
  t.same(texts({ os: { name: '' } }), ['spec.os.name: Required value: cannot be empty'])
  t.same(texts({ os: { name: 'plan9' } }), [
    'spec.os: Unsupported value: "plan9": supported values: "linux", "windows"',
  ])
})

test('a windows pod has nothing that only linux has', async (t) => {
  const windows = { os: { name: 'windows' } }
  const fields = (spec: Partial<PodSpec>) => {
    const found = texts({ ...windows, ...spec })
    t.ok(found.every((text) => text.endsWith(': Forbidden: cannot be set for a windows pod')))
    return found.map((text) => text.slice(0, text.indexOf(':')))
  }
  t.same(
    fields({
      securityContext: {
        appArmorProfile: { type: 'Unconfined' },
        seLinuxOptions: {},
        seccompProfile: { type: 'Unconfined' },
        fsGroup: 0,
        fsGroupChangePolicy: 'Always',
        sysctls: [],
        runAsUser: 0,
        runAsGroup: 0,
        runAsNonRoot: true,
        supplementalGroups: [],
        supplementalGroupsPolicy: 'Merge',
        seLinuxChangePolicy: 'Recursive',
      },
      hostUsers: true,
      hostPID: true,
      hostIPC: true,
      shareProcessNamespace: false,
    }),
    [
      ...['appArmorProfile', 'seLinuxOptions', 'seccompProfile', 'fsGroup', 'fsGroupChangePolicy', 'sysctls'].map(
        (name) => `spec.securityContext.${name}`,
      ),
      ...['runAsUser', 'runAsGroup', 'supplementalGroups', 'supplementalGroupsPolicy', 'seLinuxChangePolicy'].map(
        (name) => `spec.securityContext.${name}`,
      ),
      ...['spec.hostUsers', 'spec.hostPID', 'spec.hostIPC', 'spec.shareProcessNamespace'],
    ],
  )
  t.same(fields({ hostPID: false, hostIPC: false }), [])
  const securityContext = {
    appArmorProfile: { type: 'Unconfined' },
    seLinuxOptions: {},
    seccompProfile: { type: 'Unconfined' },
    capabilities: {},
    readOnlyRootFilesystem: false,
    privileged: false,
    allowPrivilegeEscalation: true,
    procMount: 'Default',
    runAsUser: 1,
    runAsGroup: 1,
  }
  const one = { name: 'one', securityContext }
  const found = fields({ initContainers: [one], containers: [one], ephemeralContainers: [one] })
  t.equal(found.length, 30)
  t.same(found.slice(0, 2), [
    'spec.initContainers[0].securityContext.appArmorProfile',
    'spec.initContainers[0].securityContext.seLinuxOptions',
  ])
  t.equal(found.at(-1), 'spec.ephemeralContainers[0].securityContext.runAsGroup')
})

test('a linux pod has no windows options; a pod without a system may have them', async (t) => {
  const windowsOptions = { runAsUserName: 'ContainerUser' }
  const spec = {
    securityContext: { windowsOptions },
    containers: [{ name: 'main', securityContext: { windowsOptions } }],
  }
  t.same(texts({ ...spec, os: { name: 'linux' } }), [
    'spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
    'spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
  ])
  t.same(texts(spec), [])
  t.same(texts({ ...spec, os: { name: 'windows' } }), [])
})

test('the name of a user on windows', async (t) => {
  const own = (runAsUserName: string) =>
    texts({ securityContext: { windowsOptions: { runAsUserName } } }).map((text) =>
      text.slice(text.lastIndexOf(': runAsUserName') + 2),
    )
  const inDomain = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}`
  const good = ['a', 'u'.repeat(104), 'NT AUTHORITY\\SYSTEM', 'my-domain.example\\user', `${inDomain}\\u`]
  for (const name of good) t.same(own(name), [], name)
  t.same(own(''), ['runAsUserName cannot be an empty string'])
  for (const name of ['a\n', '\u0000', 'a\u007f'])
    t.same(own(name), ['runAsUserName cannot contain control characters'])
  t.same(own('a\\b\\c'), ['runAsUserName cannot contain more than one backslash'])
  t.same(own(`${inDomain}d\\u`), [
    "runAsUserName's Domain length must be under 256 characters",
    "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
  ])
  for (const domain of ['', '.a', 'a:b', '-x'.repeat(9)]) {
    t.same(own(`${domain}\\u`), ["runAsUserName's Domain doesn't match the NetBios nor the DNS format"], domain)
  }
  t.same(own('a\\'), ["runAsUserName's User cannot be empty"])
  t.same(own('u'.repeat(105)), ["runAsUserName's User length must not be longer than 104 characters"])
  t.same(own('. .'), ["runAsUserName's User cannot contain only periods or spaces"])
  for (const letter of '"/:;|=,+*?<>@[]') {
    t.same(
      own(`a${letter}`),
      [`runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`],
      letter,
    )
  }
})

test('the credentials of a group managed account', async (t) => {
  const own = (windowsOptions: NonNullable<NonNullable<PodSpec['securityContext']>['windowsOptions']>) =>
    texts({ securityContext: { windowsOptions } })
  t.same(own({ gmsaCredentialSpecName: 'a.b', gmsaCredentialSpec: 'x'.repeat(64 * 1024) }), [])
  t.match(own({ gmsaCredentialSpecName: 'A' }), [
    /^spec\.securityContext\.windowsOptions\.gmsaCredentialSpecName: Invalid value: "A"/,
  ])
  t.match(own({ gmsaCredentialSpec: '' }), [/: gmsaCredentialSpec cannot be an empty string$/])
  t.match(own({ gmsaCredentialSpec: 'x'.repeat(64 * 1024 + 1) }), [/: gmsaCredentialSpec size must be under 64 KiB$/])
})

test('all containers of a pod are processes of the host, or none', async (t) => {
  const container = (hostProcess?: boolean) => ({
    name: 'main',
    ...(hostProcess !== undefined && { securityContext: { windowsOptions: { hostProcess } } }),
  })
  const pod = (hostProcess: boolean) => ({ securityContext: { windowsOptions: { hostProcess } } })
  t.same(texts({ ...pod(true), hostNetwork: true, containers: [container(), container(true)] }), [])
  t.same(texts({ ...pod(false), containers: [container(), container(false)] }), [])
  t.same(texts({ hostNetwork: true, containers: [container(true), container()] }), [
    'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
  ])
  t.same(texts({ containers: [container(true)] }), [
    'spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers',
  ])
  t.match(texts({ ...pod(true), hostNetwork: true, containers: [container(false)] }), [
    'spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true',
  ])
})
