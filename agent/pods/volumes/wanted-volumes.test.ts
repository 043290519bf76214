import { test } from 'tap'
import type { PodSpec, Volume } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeVolumes } from '../../testing/fake-volumes.ts'
import { containerMounts } from './container-mounts.ts'
import { tokenId } from './token-needs.ts'
import { isInside, wantedVolume } from './wanted-volumes.ts'

const metadata = (name: string) => ({ name, namespace: 'default' })
const sources = {
  hostIP: '192.0.2.11',
  podIP: undefined,
  allocatable: { cpu: '4', memory: '4Gi' },
  configMaps: [
    {
      apiVersion: 'v1' as const,
      kind: 'ConfigMap' as const,
      metadata: metadata('settings'),
      data: { 'a.conf': 'one', 'b.conf': 'two' },
      binaryData: { blob: 'AAE=' },
    },
  ],
  secrets: [{ apiVersion: 'v1' as const, kind: 'Secret' as const, metadata: metadata('key'), data: { token: 'aGk=' } }],
}

function wanted(volume: Partial<Volume>, spec: Partial<PodSpec> = {}) {
  return wantedVolume(aPod({ name: 'web', labels: { b: '2', a: 'x"y' }, spec }), { name: 'v', ...volume }, sources)
}

function files(volume: Partial<Volume>, spec: Partial<PodSpec> = {}) {
  const answer = wanted(volume, spec)
  if (!answer.ok || answer.value.kind !== 'files') return answer
  return answer.value.files.map(({ path, content, mode }) => [path, content.toString('latin1'), mode.toString(8)])
}

test('a ConfigMap is all its keys, or the items that are asked for', async (t) => {
  t.same(files({ configMap: { name: 'settings' } }), [
    ['a.conf', 'one', '644'],
    ['b.conf', 'two', '644'],
    ['blob', '\u0000\u0001', '644'],
  ])
  const items = [{ key: 'b.conf', path: 'deep/b', mode: 0o400 }]
  t.same(files({ configMap: { name: 'settings', items, defaultMode: 0o600 } }), [['deep/b', 'two', '400']])
})

test('a missing object is reported, unless it is optional', async (t) => {
  t.match(wanted({ configMap: { name: 'none' } }), { ok: false, message: 'configmap "none" not found' })
  t.same(files({ configMap: { name: 'none', optional: true } }), [])
  const items = [{ key: 'other', path: 'other' }]
  t.match(wanted({ secret: { secretName: 'key', items } }), {
    ok: false,
    message: 'references non-existent secret key: other',
  })
  t.same(files({ secret: { secretName: 'key', items, optional: true } }), [])
  t.match(wanted({ projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }), { ok: false })
})

test('a projected volume puts several things into one folder', async (t) => {
  const items = [
    { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
    { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.cpu', divisor: '1m' } },
  ]
  const projected = {
    defaultMode: 0o440,
    sources: [
      { secret: { name: 'key' } },
      { configMap: { name: 'settings', items: [{ key: 'a.conf', path: 'a' }] } },
      { downwardAPI: { items } },
    ],
  }
  t.same(files({ projected }), [
    ['token', 'hi', '440'],
    ['a', 'one', '440'],
    ['labels', 'a="x\\"y"\nb="2"', '440'],
    ['cpu', '4000', '440'],
  ])
})

test('a token is for the user and the group of the pod', async (t) => {
  const token = { path: 'token', audience: 'vault', expirationSeconds: 3600 }
  const volume = { name: 'v', projected: { defaultMode: 0o444, sources: [{ serviceAccountToken: token }] } }
  const id = tokenId({ audience: 'vault', expirationSeconds: 3600 })
  const file = (securityContext: PodSpec['securityContext'] = {}) => {
    const held = { ...sources, tokens: new Map([[id, { value: 'a.b.c' }]]) }
    const answer = wantedVolume(aPod({ spec: { securityContext } }), volume, held)
    if (!answer.ok || answer.value.kind !== 'files') return answer
    const [{ content, mode, owner } = { content: '', mode: 0, owner: 0 }] = answer.value.files
    return [content.toString(), mode.toString(8), owner]
  }
  t.same(file(), ['a.b.c', '444', undefined])
  t.same(file({ runAsUser: 1000 }), ['a.b.c', '600', 1000])
  t.same(file({ fsGroup: 2000 }), ['a.b.c', '640', undefined])
  t.same(file({ runAsUser: 1000, fsGroup: 2000 }), ['a.b.c', '640', 1000])
  const tokens = new Map([[id, { missing: 'failed to fetch token: refused' }]])
  const without = wantedVolume(aPod(), volume, { ...sources, tokens })
  t.same(without, { ok: false, message: 'failed to fetch token: refused' })
})

test('a group that owns the volumes may read their files', async (t) => {
  t.same(files({ secret: { secretName: 'key', defaultMode: 0o400 } }, { securityContext: { fsGroup: 2000 } }), [
    ['token', 'hi', '440'],
  ])
  t.match(wanted({ emptyDir: {} }, { securityContext: { fsGroup: 2000 } }), { value: { group: 2000, memory: false } })
})

test('memory is given up to the limit of the volume, and of the pod', async (t) => {
  const emptyDir = { medium: 'Memory', sizeLimit: '64Mi' }
  t.match(wanted({ emptyDir }), { value: { kind: 'emptyDir', memory: true, sizeBytes: 64 * 1024 ** 2 } })
  const containers = [{ name: 'main', resources: { limits: { memory: '32Mi' } } }]
  t.match(wanted({ emptyDir }, { containers }), { value: { sizeBytes: 32 * 1024 ** 2 } })
})

test('no path leads out of a volume', async (t) => {
  for (const path of ['', '/etc', '..', '../x', 'a/../../x', '..data', 'a\0'])
    t.notOk(isInside(path), JSON.stringify(path))
  for (const path of ['a', 'a/b', 'a..b', './a']) t.ok(isInside(path), path)
  t.match(wanted({ configMap: { name: 'settings', items: [{ key: 'a.conf', path: '../../etc/passwd' }] } }), {
    ok: false,
  })
})

test('mounts name what is placed; files are read only, paths may be made of variables', async (t) => {
  const store = fakeVolumes()
  const container = {
    name: 'main',
    env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    volumeMounts: [
      { name: 'data', mountPath: '/data', subPathExpr: 'of/$(POD)' },
      { name: 'conf', mountPath: 'etc/conf' },
      { name: 'host', mountPath: '/host', readOnly: true, mountPropagation: 'HostToContainer' },
    ],
  }
  const volumes = [
    { name: 'data', emptyDir: {} },
    { name: 'conf', configMap: { name: 'settings' } },
    { name: 'host', hostPath: { path: '/srv' } },
  ]
  const pod = aPod({ name: 'web', uid: 'u', containers: [container], spec: { volumes } })
  t.same(await containerMounts(pod, container, sources, store), {
    ok: true,
    mounts: [
      { source: '/volumes/u/data/of/web', target: '/data', readOnly: false, propagation: 'rprivate' },
      { source: '/volumes/u/conf', target: '/etc/conf', readOnly: true, propagation: 'rprivate' },
      { source: '/srv', target: '/host', readOnly: true, propagation: 'rslave' },
    ],
    devices: [],
  })
  const asks = (mount: object) =>
    containerMounts(pod, { ...container, volumeMounts: [{ name: 'data', mountPath: '/d', ...mount }] }, sources, store)
  t.match(await asks({ subPath: '../x' }), { ok: false, message: /leads out of volume "data"/ })
  t.match(await asks({ subPathExpr: '$(NONE)' }), { ok: false, message: 'missing value for "NONE"' })
  store.failNext('hostPath type check failed: /srv is not a file')
  t.match(await asks({}), { ok: false, volume: 'data', message: 'hostPath type check failed: /srv is not a file' })
})

test('a volume of a kind that is not supported is refused by name', async (t) => {
  t.same(wanted({}), { ok: false, message: 'this kind of volume is not supported' })
  t.match(wanted({ csi: { driver: 'disk.example.com' } }), {
    ok: false,
    message: /volume mode "Ephemeral" not supported by driver disk\.example\.com \(no CSIDriver object\)$/,
  })
  t.match(wanted({ projected: { sources: [] } }), { ok: true, value: { kind: 'files', files: [] } })
  t.match(wanted({ projected: {} }), { ok: true, value: { kind: 'files', files: [] } })
  t.match(wanted({ hostPath: { path: '/x' } }), { ok: true, value: { kind: 'hostPath', path: '/x', type: '' } })
})

test('a key that a ConfigMap lacks is named in the words of its kind', async (t) => {
  t.match(wanted({ configMap: { name: 'settings', items: [{ key: 'c.conf', path: 'c' }] } }), {
    message: 'configmap references non-existent config key: c.conf',
  })
})

test('a scratch volume in memory has the least of its limit and the limits of its containers', async (t) => {
  const size = (sizeLimit: string | undefined, ...limits: readonly (string | undefined)[]) => {
    const containers = limits.map((memory, i) => ({
      name: `c${i}`,
      ...(memory !== undefined && { resources: memory === '' ? {} : { limits: { memory } } }),
    }))
    const answer = wanted(
      { emptyDir: { medium: 'Memory', ...(sizeLimit !== undefined && { sizeLimit }) } },
      { containers },
    )
    return answer.ok && answer.value.kind === 'emptyDir' ? answer.value.sizeBytes : answer
  }
  const mib = 2 ** 20
  t.equal(size('1Mi', '2Mi', '3Mi'), mib)
  t.equal(size('9Mi', '2Mi', '3Mi'), 5 * mib)
  t.equal(size(undefined, '2Mi', '3Mi'), 5 * mib)
  t.equal(size('9Mi', '2Mi', undefined), 9 * mib, 'one container without a limit may use any amount')
  t.equal(size(undefined, undefined, '2Mi'), undefined)
  t.equal(size(undefined, ''), undefined)
})
