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
