import { test } from 'tap'
import type { CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import type { VolumeAttachment } from '../../../../api/storage/volume-attachment.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { attachmentName } from '../../../store/attachment-name.ts'
import { aStoredClaim, aStoredVolume } from '../../../testing/volume-objects.ts'
import { inlineCsiDrivers, nodeCsiVolume, secretsOfCsi } from './node-csi-volume.ts'

const csi = {
  ...{ driver: 'disk.example.com', volumeHandle: 'h', fsType: 'ext4', volumeAttributes: { a: 'b' } },
  ...{ nodeStageSecretRef: { namespace: 'n', name: 's' }, nodePublishSecretRef: { namespace: 'n', name: 'p' } },
}
const volume = (more: object = {}) => aStoredVolume('pv', { spec: { hostPath: undefined, csi: { ...csi, ...more } } })
const driver = (spec: CSIDriverSpec) => () =>
  ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: csi.driver }, spec }) as const
const name = attachmentName({ driver: csi.driver, handle: 'h', node: 'pi-1' })

test('a node receives the volume of a driver with what its CSIDriver states', async (t) => {
  const csiDriver = driver({ attachRequired: false, podInfoOnMount: true, fsGroupPolicy: 'File' })
  const sent = nodeCsiVolume(volume(), { node: 'pi-1' }, { csiDriver })
  const tokens = [{ audience: 'vault', expirationSeconds: 600 }]
  const asking = driver({ attachRequired: false, tokenRequests: tokens, requiresRepublish: true })
  t.match(nodeCsiVolume(volume(), { node: 'pi-1' }, { csiDriver: asking }), { tokens, republish: true })
  t.match(sent, {
    ...{ driver: 'disk.example.com', handle: 'h', fsType: 'ext4', attributes: { a: 'b' }, podInfo: true },
    ...{ fsGroupPolicy: 'File', stageSecret: { namespace: 'n', name: 's' } },
  })
  t.equal(sent?.notAttached, undefined)
  t.same(secretsOfCsi(sent), ['n/s', 'n/p'])
  t.same(secretsOfCsi(undefined), [])
  const smb = { driver: 'smb.bramble.dev', volumeAttributes: { source: '//nas/a' } }
  t.equal(nodeCsiVolume(volume(smb), { node: 'pi-1' }, {}), undefined, 'the node mounts it itself')
  t.equal(nodeCsiVolume(aStoredVolume('pv'), { node: 'pi-1' }, {}), undefined)
})

test('a volume that must be attached waits for its VolumeAttachment, also without a CSIDriver', async (t) => {
  // sha256 of handle, driver and node.
  t.equal(name, 'csi-cdff2154b0b5e81cc75c326f544bab7adc47607c70a1afaa1d4486499d3f64f4')
  const waits = `volume h is not attached for volume attachment ${name}`
  t.match(nodeCsiVolume(volume(), { node: 'pi-1' }, {}), { notAttached: waits, attachable: true })
  const state = (status: VolumeAttachment['status'], metadata: object = {}) => {
    const found: VolumeAttachment = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name, ...metadata },
      spec: { attacher: csi.driver, nodeName: 'pi-1', source: { persistentVolumeName: 'pv' } },
      ...(status && { status }),
    }
    const attachment = (one: string) => (one === name ? found : undefined)
    const { notAttached, publishContext } =
      nodeCsiVolume(volume(), { node: 'pi-1' }, { csiDriver: driver({}), attachment }) ?? {}
    return [notAttached, publishContext]
  }
  t.same(state(undefined), [waits, undefined])
  t.same(state({ attached: false, attachError: { message: 'no room' } }), ['no room', undefined])
  t.same(state({ attached: true, attachmentMetadata: { device: '/dev/x' } }), [undefined, { device: '/dev/x' }])
  t.same(state({ attached: true }), [undefined, undefined])
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  t.same(state({ attached: true }, { deletionTimestamp }), ['volume attachment is being deleted', undefined])
})

test('a node receives the size of a volume that it is to expand, and of one that several nodes have', async (t) => {
  const [nodeExpandSecretRef, capacity] = [{ namespace: 'n', name: 'e' }, { storage: '2Gi' }]
  const larger = aStoredVolume('pv', { spec: { hostPath: undefined, csi: { ...csi, nodeExpandSecretRef }, capacity } })
  const sent = (status: object, accessModes = ['ReadWriteOnce']) => {
    const claim = { ...aStoredClaim('data', { spec: { accessModes } }), status }
    const { size, grows } = nodeCsiVolume(larger, { node: 'pi-1', claim }, {}) ?? {}
    return [size, grows]
  }
  const step = (storage: string) => ({
    ...{ capacity: { storage: '1Gi' }, allocatedResources: { storage: '2Gi' } },
    allocatedResourceStatuses: { storage },
  })
  t.same(sent(step('NodeResizePending')), ['2Gi', true])
  t.same(sent(step('NodeResizeInProgress')), ['2Gi', true])
  t.same(sent(step('ControllerResizeInProgress')), [undefined, undefined])
  t.same(sent(step('NodeResizeInfeasible')), [undefined, undefined])
  t.same(sent({ capacity: { storage: '1Gi' } }), ['2Gi', true], 'a resizer that writes no steps')
  t.same(sent({ capacity }), [undefined, undefined])
  t.same(sent({ capacity }, ['ReadWriteMany']), ['2Gi', undefined])
  t.same(secretsOfCsi(nodeCsiVolume(larger, {}, {})), ['n/s', 'n/p', 'n/e'])
})

test('a node receives the CSIDrivers of volumes that its pods have inline', async (t) => {
  const pod = (...drivers: readonly string[]) =>
    aPod({ spec: { volumes: drivers.map((one) => ({ name: one, csi: { driver: one } })) } })
  const known = { 'a.example.com': {}, 'b.example.com': { volumeLifecycleModes: ['Ephemeral'], podInfoOnMount: true } }
  const csiDriver = (one: string) => {
    const spec = new Map<string, CSIDriverSpec>(Object.entries(known)).get(one)
    return spec && driver(spec)()
  }
  t.same(inlineCsiDrivers([pod('b.example.com', 'a.example.com'), pod('b.example.com', 'none')], { csiDriver }), [
    { name: 'a.example.com', modes: ['Persistent'] },
    { name: 'b.example.com', modes: ['Ephemeral'], podInfo: true },
  ])
  t.same(inlineCsiDrivers([aPod()], { csiDriver }), [])
})
