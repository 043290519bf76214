import { test } from 'tap'
import { contentProofAnnotation } from '../../../api/node/node-checkpoint.ts'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { projectConfigMap, projectSecret, referencedData, referencedDataIndex } from './referenced-data.ts'

const born = { uid: 'uid-a', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z' }
const metadata = { name: 'a', namespace: 'default', labels: { app: 'web' }, ...born }

test('whatever a pod refers to reaches its node, from every place in its specification', async (t) => {
  const main = { name: 'main', image: 'busybox:1.36' }
  const fromSecret = { ...main, env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'a', key: 'k' } } }] }
  const fromMap = { ...main, env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'a', key: 'k' } } }] }
  const secret = { secrets: ['default/a'] }
  const map = { configMaps: ['default/a'] }
  const inVolume = (one: object): PodOverrides => ({ spec: { volumes: [{ name: 'v', ...one }] } })
  const cases: readonly (readonly [title: string, PodOverrides, expected: object])[] = [
    ['nothing', {}, {}],
    ['a key of a Secret', { containers: [fromSecret] }, secret],
    ['a key of a ConfigMap', { containers: [fromMap] }, map],
    ['a plain value', { containers: [{ ...main, env: [{ name: 'A', value: 'a' }] }] }, {}],
    ['all keys of a Secret', { containers: [{ ...main, envFrom: [{ secretRef: { name: 'a' } }] }] }, secret],
    ['all keys of a ConfigMap', { containers: [{ ...main, envFrom: [{ configMapRef: { name: 'a' } }] }] }, map],
    ['an init container', { spec: { initContainers: [fromSecret] } }, secret],
    ['an ephemeral container', { spec: { ephemeralContainers: [fromMap] } }, map],
    ['a password for images', { spec: { imagePullSecrets: [{ name: 'a' }] } }, secret],
    ['a volume of a Secret', inVolume({ secret: { secretName: 'a' } }), secret],
    ['a volume of a ConfigMap', inVolume({ configMap: { name: 'a' } }), map],
    ['an inline CSI volume', inVolume({ csi: { driver: 'd', nodePublishSecretRef: { name: 'a' } } }), secret],
    [
      'a projected volume',
      inVolume({ projected: { sources: [{ secret: { name: 'a' } }, { configMap: { name: 'a' } }, {}] } }),
      { ...secret, ...map },
    ],
    ['a name that is empty', { spec: { imagePullSecrets: [{ name: '' }] } }, {}],
  ]
  for (const [title, over, expected] of cases) {
    t.same(referencedData([aPod(over)]), { configMaps: [], secrets: [], ...expected }, title)
  }
})

test('each is named once for all pods, by its namespace, in a stable order', async (t) => {
  const pulling = (namespace: string, ...names: readonly string[]) =>
    aPod({ namespace, spec: { imagePullSecrets: names.map((name) => ({ name })) } })
  const secrets = ['batch/b', 'default/a', 'default/b']
  t.same(referencedData([pulling('default', 'b', 'a'), pulling('batch', 'b'), pulling('default', 'a')]), {
    configMaps: [],
    secrets,
  })
})

test('a node receives the content of an object, and none of its other metadata', async (t) => {
  const head = { apiVersion: 'v1', metadata: { name: 'a', namespace: 'default' } }
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata } as const
  t.same(projectConfigMap({ ...map, data: { k: 'v' }, binaryData: { b: 'AA==' }, immutable: true }), {
    ...{ ...head, kind: 'ConfigMap', data: { k: 'v' }, binaryData: { b: 'AA==' } },
  })
  t.same(projectConfigMap({ ...map }), { ...head, kind: 'ConfigMap' })
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata } as const
  t.same(projectSecret({ ...secret, type: 'Opaque', data: { k: 'AA==' } }), {
    ...{ ...head, kind: 'Secret', type: 'Opaque', data: { k: 'AA==' } },
  })
})

test('an object is projected once for all nodes, until its proof is another', async (t) => {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { k: 'v' } } as const
  const [plain, proven] = [projectConfigMap(map), projectConfigMap(map, 'one')]
  t.equal(plain.metadata.annotations, undefined)
  t.same(proven.metadata.annotations, { [contentProofAnnotation]: 'one' })
  t.equal(projectConfigMap(map, 'one'), proven)
  t.same(projectConfigMap(map, 'two').metadata.annotations, { [contentProofAnnotation]: 'two' })
  t.not(projectConfigMap({ ...map }, 'two'), projectConfigMap(map, 'two'), 'another version of it')
})

test('a change of an object concerns the nodes whose pods refer to it', async (t) => {
  const { update, nodesReferencing } = referencedDataIndex()
  const pod = (name: string, nodeName: string | undefined, secret = 'a') =>
    aPod({ name, ...(nodeName !== undefined && { nodeName }), spec: { imagePullSecrets: [{ name: secret }] } })
  const nodes = () => nodesReferencing('secrets', 'default/a')
  update(pod('waiting', undefined), undefined)
  t.same(nodes(), [], 'it has no node')
  update(pod('waiting', 'pi-1'), pod('waiting', undefined))
  update(pod('second', 'pi-1'), undefined)
  update(pod('third', 'pi-2'), undefined)
  t.same([nodes(), nodesReferencing('configMaps', 'default/a')], [['pi-1', 'pi-2'], []])
  update(pod('third', 'pi-2', 'b'), pod('third', 'pi-2'))
  update(undefined, pod('second', 'pi-1'))
  t.same(nodes(), ['pi-1'], 'one of its two pods is there')
  update(undefined, pod('waiting', 'pi-1'))
  t.same([nodes(), nodesReferencing('secrets', 'default/b')], [[], ['pi-2']])
})
