import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { changedPods } from './desired-pods.ts'

const metadata = (name: string) => ({ name, namespace: 'default' })
const configMap = (name: string, text: string) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata(name), data: { text } }) as const
const secret = (name: string, text: string) =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: metadata(name), data: { text } }) as const

const withMap = aPod({
  name: 'with-map',
  uid: 'map',
  spec: { volumes: [{ name: 'v', configMap: { name: 'settings' } }] },
})
const withKey = aPod({
  name: 'with-key',
  uid: 'key',
  spec: { volumes: [{ name: 'v', secret: { secretName: 'key' } }] },
})
const elsewhere = aPod({ name: 'elsewhere', namespace: 'other', uid: 'elsewhere', spec: withMap.spec })
const plain = aPod({ name: 'plain', uid: 'plain' })
const pods = [withMap, withKey, elsewhere, plain]
const before = {
  ...{ epoch: 'one', version: 1, pods },
  configMaps: [configMap('settings', 'a'), configMap('other', 'a')],
  secrets: [secret('key', 'a')],
}

test('a ConfigMap or Secret that changes is a change of the pods that refer to it only', (t) => {
  t.same(changedPods(before, structuredClone(before)), [])
  t.same(changedPods(before, { ...before, configMaps: [configMap('settings', 'b'), configMap('other', 'a')] }), ['map'])
  t.same(changedPods(before, { ...before, secrets: [secret('key', 'b')] }), ['key'])
  t.same(changedPods(before, { ...before, configMaps: [configMap('settings', 'a')] }), [], 'no pod refers to the other')
  t.same(changedPods(before, { ...before, configMaps: [] }), ['map'], 'it is gone')
  t.same(changedPods({ ...before, secrets: [] }, before), ['key'], 'it came')
  t.same(changedPods(before, { ...before, configMaps: before.configMaps.toReversed() }), [])
  t.end()
})

test('a claim that is bound, or changes, is a change of the pods that use it', (t) => {
  const pod = aPod({
    ...{ name: 'db', uid: 'db' },
    spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] },
  })
  const scratch = aPod({ name: 'job', uid: 'job', spec: { volumes: [{ name: 'tmp', ephemeral: {} }] } })
  const claim = { namespace: 'default', uid: 'u1' }
  const data = { ...claim, name: 'data', refusal: 'PVC is not bound' }
  const own = { ...claim, name: 'job-tmp', refusal: 'PVC is not bound' }
  const now = { ...before, pods: [pod, scratch, plain], claims: [data, own] }
  t.same(changedPods(now, structuredClone(now)), [])
  t.same(changedPods(now, { ...now, claims: [{ ...data, refusal: 'PVC is being deleted' }, own] }), ['db'])
  t.same(changedPods(now, { ...now, claims: [data] }), ['job'])
  t.end()
})

test('a pod that came, went or is another one has changed, and all have where none were known', (t) => {
  const other = { ...plain, spec: { ...plain.spec, nodeName: 'pi-2' } }
  t.same(changedPods(before, { ...before, pods: [withMap, withKey, other] }).toSorted(), ['elsewhere', 'plain'])
  t.same(changedPods({ ...before, pods: [] }, before), ['map', 'key', 'elsewhere', 'plain'])
  t.same(changedPods(undefined, before), ['map', 'key', 'elsewhere', 'plain'])
  t.end()
})

test('a CSIDriver or a Secret that changes is a change of the pods with an inline volume of it', async (t) => {
  const csi = { driver: 'disk.example.com', nodePublishSecretRef: { name: 'key' } }
  const inline = aPod({ name: 'inline', uid: 'inline', spec: { volumes: [{ name: 'v', csi }] } })
  const now = { ...before, pods: [inline, plain], csiDrivers: [{ name: 'disk.example.com' }] }
  t.same(changedPods(now, { ...now, csiDrivers: [{ name: 'disk.example.com', podInfo: true }] }), ['inline'])
  t.same(changedPods(now, { ...now, csiDrivers: [...now.csiDrivers, { name: 'other.example.com' }] }), [])
  t.same(changedPods(now, { ...now, secrets: [secret('key', 'b')] }), ['inline'])
})
