import { test } from 'tap'
import type { Container, PodSpec, Volume } from '../pod.ts'
import { problemText } from '../problem.ts'
import { mountsProblems, volumeNames, volumesProblems, withVolumeDefaults } from './volume-validation.ts'

const problemTexts = (...volumes: Volume[]) =>
  volumesProblems('spec.volumes', { containers: [], volumes }).map(problemText)

test('a volume is of one kind, has a name of its own, and stays inside itself', async (t) => {
  t.same(
    problemTexts(
      { name: 'a', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      { name: 'b', hostPath: { path: '/srv', type: 'Directory' } },
      { name: 'c', configMap: { name: 'cm', items: [{ key: 'k', path: 'a/b', mode: 0o400 }] } },
      { name: 'd', projected: { sources: [{ secret: { name: 's' } }] } },
    ),
    [],
  )
  t.match(problemTexts({ name: 'a' }), ['spec.volumes[0]: Required value: must specify a volume type'])
  t.match(problemTexts({ name: 'a', emptyDir: {}, hostPath: { path: '/x' } }), [
    /^spec\.volumes\[0\]\.(hostPath|emptyDir): Forbidden/,
  ])
  t.match(problemTexts({ name: 'a', emptyDir: {} }, { name: 'a', emptyDir: {} }), [
    /^spec\.volumes\[1\]\.name: Duplicate/,
  ])
  t.match(problemTexts({ name: 'a', hostPath: { path: '../etc', type: 'Folder' } }), [
    /hostPath\.path: .*absolute/,
    /hostPath\.path: .*must not contain '\.\.'/,
    /hostPath\.type: Unsupported/,
  ])
  const items = [{ key: 'k', path: '../k', mode: 0o1777 }]
  t.match(problemTexts({ name: 'a', secret: { secretName: 's', items } }), [
    /^spec\.volumes\[0\]\.secret\.items\[0\]\.path: .*must not contain '\.\.'/,
    /^spec\.volumes\[0\]\.secret\.items\[0\]\.mode: /,
  ])
  t.match(
    problemTexts({ name: 'a', downwardAPI: { items: [{ path: 'x', fieldRef: { fieldPath: 'status.podIP' } }] } }),
    [/downwardAPI\.items\[0\]\.fieldRef\.fieldPath: Unsupported/],
  )
})

test('a mount names a volume of the pod, and a place of its own', async (t) => {
  const spec: PodSpec = { containers: [], volumes: [{ name: 'v', emptyDir: {} }] }
  const mounts = (...volumeMounts: NonNullable<Container['volumeMounts']>) =>
    mountsProblems('c', { name: 'main', volumeMounts }, volumeNames(spec)).map(problemText)
  t.same(mounts({ name: 'v', mountPath: '/a', subPath: 'x' }, { name: 'v', mountPath: '/b' }), [])
  t.match(mounts({ name: 'w', mountPath: '/a' }), ['c.volumeMounts[0].name: Not found: "w"'])
  t.match(mounts({ name: 'v', mountPath: '/a' }, { name: 'v', mountPath: '/a' }), [
    /\[1\]\.mountPath: .*must be unique/,
  ])
  t.match(mounts({ name: 'v', mountPath: '/a', subPath: '/x', mountPropagation: 'Bidirectional' }), [
    /subPath: .*relative/,
    /mountPropagation: Forbidden/,
  ])
})

test('what is left out is filled in', async (t) => {
  t.same(withVolumeDefaults({ name: 'a' }), { name: 'a', emptyDir: {} })
  t.same(withVolumeDefaults({ name: 'a', secret: { secretName: 's' } }).secret?.defaultMode, 420)
})

test('each mistake in a volume has one cause, at its field', async (t) => {
  const item = { key: 'k', path: 'k' }
  const items = (more: object) => ({ configMap: { name: 'c', items: [{ ...item, ...more }] } })
  const downward = (more: object) => ({ downwardAPI: { items: [{ path: 'x', ...more }] } })
  const fieldRef = { fieldPath: 'metadata.name' }
  const resourceFieldRef = { resource: 'limits.cpu', containerName: 'main' }
  const mode = 'must be a number between 0 and 0777 (octal), both inclusive'
  const cases: readonly (readonly [Omit<Volume, 'name'>, ...string[]])[] = [
    [
      { emptyDir: { medium: 'HugePages' } },
      '.emptyDir.medium: Unsupported value: "HugePages": supported values: "", "Memory"',
    ],
    [{ emptyDir: { sizeLimit: '-1' } }, '.emptyDir.sizeLimit: Forbidden: must be non-negative'],
    [{ emptyDir: { medium: '', sizeLimit: '0' } }],
    [{ hostPath: { path: '' } }, '.hostPath.path: Required value'],
    [{ hostPath: { path: '/', type: '' } }],
    [items({ key: '' }), '.configMap.items[0].key: Required value'],
    [items({ path: '' }), '.configMap.items[0].path: Required value'],
    [items({ path: '/a' }), '.configMap.items[0].path: Invalid value: "/a": must be a relative path'],
    [items({ path: '..a' }), `.configMap.items[0].path: Invalid value: "..a": must not start with '..'`],
    [items({ path: 'a..b/...' })],
    [items({ mode: -1 }), `.configMap.items[0].mode: Invalid value: -1: ${mode}`],
    [items({ mode: 0o1000 }), `.configMap.items[0].mode: Invalid value: 512: ${mode}`],
    [items({ mode: 0 })],
    [items({ mode: 0o777 })],
    [{ secret: { secretName: 's', defaultMode: -1 } }, `.secret.defaultMode: Invalid value: -1: ${mode}`],
    [downward({ fieldRef })],
    [downward({ resourceFieldRef })],
    [
      downward({ fieldRef, resourceFieldRef }),
      '.downwardAPI.items[0]: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
    ],
    [downward({}), '.downwardAPI.items[0].fieldRef: Required value: one of fieldRef and resourceFieldRef is required'],
    [
      downward({ resourceFieldRef: { resource: 'limits.cpu' } }),
      '.downwardAPI.items[0].resourceFieldRef.containerName: Required value',
    ],
    [
      { projected: { sources: [{}, { secret: { name: 's' }, configMap: { name: 'c' } }] } },
      '.projected.sources[0]: Forbidden: must specify exactly one projection type',
      '.projected.sources[1]: Forbidden: must specify exactly one projection type',
    ],
    [
      { projected: { defaultMode: -1, sources: [{ configMap: { name: 'c', items: [{ ...item, path: '' }] } }] } },
      `.projected.defaultMode: Invalid value: -1: ${mode}`,
      '.projected.sources[0].configMap.items[0].path: Required value',
    ],
    [
      {
        projected: {
          sources: [
            { secret: { name: 's', items: [{ ...item, key: '' }] } },
            { downwardAPI: { items: [{ path: '', fieldRef }] } },
          ],
        },
      },
      '.projected.sources[0].secret.items[0].key: Required value',
      '.projected.sources[1].downwardAPI.items[0].path: Required value',
    ],
    [
      {
        projected: {
          sources: [
            { serviceAccountToken: { path: 'a', expirationSeconds: 599 } },
            { serviceAccountToken: { path: '/b', expirationSeconds: 2 ** 32 + 1 } },
            { serviceAccountToken: { path: '', expirationSeconds: 600 } },
            { serviceAccountToken: { path: 'd', expirationSeconds: 2 ** 32 } },
            { serviceAccountToken: { path: 'e' } },
          ],
        },
      },
      '.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
      '.projected.sources[1].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
      '.projected.sources[1].serviceAccountToken.path: Invalid value: "/b": must be a relative path',
      '.projected.sources[2].serviceAccountToken.path: Required value',
    ],
    [
      {
        projected: {
          sources: [
            { secret: { name: 's', items: [item] } },
            { configMap: { name: 'c', items: [item] } },
            { downwardAPI: { items: [{ path: item.path, fieldRef }] } },
            { configMap: { name: 'whole' } },
          ],
        },
      },
      `.projected: Invalid value: "${item.path}": conflicting duplicate paths`,
      `.projected: Invalid value: "${item.path}": conflicting duplicate paths`,
    ],
  ]
  for (const [source, ...causes] of cases) {
    t.same(
      problemTexts({ name: 'a', ...source }),
      causes.map((cause) => `spec.volumes[0]${cause}`),
    )
  }
  t.same(problemTexts({ name: '', emptyDir: {} }), ['spec.volumes[0].name: Required value'])
  t.same(volumesProblems('spec.volumes', { containers: [] }), [])
})

test('each mistake in a mount has one cause, at its field', async (t) => {
  const names = new Set(['v'])
  const cases: readonly (readonly [object, ...string[]])[] = [
    [{}],
    [{ name: '' }, 'name: Required value'],
    [{ mountPath: '' }, 'mountPath: Required value'],
    [{ mountPath: '/' }, `mountPath: Invalid value: "/": must not be '/': the container's own files would be gone`],
    [{ mountPath: '/a:ro' }, `mountPath: Invalid value: "/a:ro": must not contain ':'`],
    [{ subPathExpr: '/x' }, 'subPathExpr: Invalid value: "/x": must be a relative path'],
    [{ subPathExpr: '$(POD)' }],
    [
      { subPath: 'x', subPathExpr: 'y' },
      'subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually exclusive',
    ],
    [
      { mountPropagation: 'Shared' },
      'mountPropagation: Unsupported value: "Shared": supported values: "None", "HostToContainer", "Bidirectional"',
    ],
    [{ mountPropagation: 'None' }],
    [{ mountPropagation: 'HostToContainer' }],
    [
      { mountPropagation: 'Bidirectional' },
      'mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers',
    ],
  ]
  for (const [mount, ...causes] of cases) {
    const container = { name: 'main', volumeMounts: [{ name: 'v', mountPath: '/a', ...mount }] }
    t.same(
      mountsProblems('c', container, names).map(problemText),
      causes.map((cause) => `c.volumeMounts[0].${cause}`),
    )
  }
  const volumeMounts = [{ name: 'v', mountPath: '/a', mountPropagation: 'Bidirectional' }]
  t.same(mountsProblems('c', { name: 'main', volumeMounts, securityContext: { privileged: true } }, names), [])
  t.same(mountsProblems('c', { name: 'main' }, names), [])
})

test('files are readable for all, and a host path is of any type, unless written otherwise', async (t) => {
  const items = [{ path: 'x', fieldRef: { fieldPath: 'metadata.name' } }]
  for (const [written, stored] of [
    [{ configMap: { name: 'c' } }, { configMap: { name: 'c', defaultMode: 0o644 } }],
    [{ configMap: { name: 'c', defaultMode: 0 } }, { configMap: { name: 'c', defaultMode: 0 } }],
    [
      { downwardAPI: { items } },
      {
        downwardAPI: {
          items: [{ path: 'x', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }],
          defaultMode: 0o644,
        },
      },
    ],
    [{ projected: { sources: [] } }, { projected: { sources: [], defaultMode: 0o644 } }],
    [{ projected: {} }, { projected: { defaultMode: 0o644 } }],
    [
      { projected: { sources: [{ serviceAccountToken: { path: 't' } }, { secret: { name: 's' } }] } },
      {
        projected: {
          sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }, { secret: { name: 's' } }],
          defaultMode: 0o644,
        },
      },
    ],
    [
      { projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 700 } }] } },
      { projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 700 } }], defaultMode: 0o644 } },
    ],
    [{ hostPath: { path: '/x' } }, { hostPath: { path: '/x', type: '' } }],
    [{ hostPath: { path: '/x', type: 'File' } }, { hostPath: { path: '/x', type: 'File' } }],
  ] as const) {
    t.same(withVolumeDefaults({ name: 'a', ...written }), { name: 'a', ...stored })
  }
})
