import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import type { VolumeAttachment, VolumeAttachmentSpec } from '../../../../api/storage/volume-attachment.ts'
import { causes, create } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { volumeAttachmentStrategy } from './volume-attachment.ts'

const apiVersion = 'storage.k8s.io/v1'
const attachment = (spec: Partial<VolumeAttachmentSpec> = {}): VolumeAttachment => ({
  apiVersion,
  kind: 'VolumeAttachment',
  metadata: { name: 'a' },
  spec: { attacher: 'disk.example.com', source: { persistentVolumeName: 'pv' }, nodeName: 'pi-01', ...spec },
})
const path = '/apis/storage.k8s.io/v1'

test('an attachment names one volume, its driver and its node', async (t) => {
  const wrong = (spec: Partial<VolumeAttachmentSpec>) => causes(() => create('volumeattachments', attachment(spec)))
  const csi = { driver: 'disk.example.com', volumeHandle: 'h' }
  const inline = { accessModes: ['ReadWriteOnce'], csi }
  const at = 'spec.source.inlineVolumeSpec'
  const exactlyOne = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  t.same(wrong({ source: { inlineVolumeSpec: inline } }), [])
  t.same(wrong({ source: {} }), [`spec.source: Required value: ${exactlyOne}`])
  t.same(wrong({ source: { persistentVolumeName: 'a', inlineVolumeSpec: inline } }), [
    `spec.source: Forbidden: ${exactlyOne}`,
  ])
  t.same(wrong({ source: { inlineVolumeSpec: { ...inline, capacity: { storage: '1Gi' }, storageClassName: 'a' } } }), [
    `${at}.capacity: Forbidden: may not be specified in the context of inline volumes`,
    `${at}.storageClassName: Forbidden: may not be specified in the context of inline volumes`,
  ])
  t.same(
    wrong({
      source: { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' }, volumeMode: 'Block' } },
    }),
    [
      `${at}.csi: Required value: has to be specified in the context of inline volumes`,
      `${at}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes`,
    ],
  )
  t.same(wrong({ source: { inlineVolumeSpec: { ...inline, persistentVolumeReclaimPolicy: 'Delete' } } }), [
    `${at}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes`,
  ])
  t.same(wrong({ attacher: 'x'.repeat(64) }), ['spec.attacher: Too long: may not be more than 63 bytes'])
  t.match(wrong({ nodeName: 'A' }), [/^spec\.nodeName: Invalid value: "A"/])
})

test('an attachment is what it is; its driver writes the status', async (t) => {
  const { ask } = await anApi(t)
  const at = `${path}/volumeattachments`
  const created = await ask('POST', at, { body: { ...attachment(), status: { attached: true } } })
  t.match(created, { code: 201, body: { status: { attached: false } } })
  const changed = { spec: { nodeName: 'pi-02' } }
  t.match(await ask('PATCH', `${at}/a`, { type: patchTypes.merge, body: changed }), {
    code: 422,
    body: { message: /spec: Invalid value: .*: field is immutable/ },
  })
  const body = { metadata: { labels: { a: 'b' } }, status: { attached: true, attachError: { message: 'late' } } }
  const attached = await ask('PATCH', `${at}/a/status`, { type: patchTypes.merge, body })
  t.match(attached, { code: 200, body: { status: { attached: true, attachError: { message: 'late' } } } })
  t.notMatch(attached.body, { metadata: { labels: { a: 'b' } } }, 'metadata is not written with the status')
  const long = { status: { attached: false, attachError: { message: 'é'.repeat(513) } } }
  t.match(await ask('PATCH', `${at}/a/status`, { type: patchTypes.merge, body: long }), {
    code: 422,
    body: { message: /status\.attachError\.message: Too long: may not be more than 1024 bytes/ },
  })
  t.match(await ask('PATCH', `${at}/a`, { type: patchTypes.merge, body: { status: { attached: false } } }), {
    body: { status: { attached: true } },
  })
})

test('the volume of an attachment has a name, and its driver too', async (t) => {
  const wrong = (spec: Partial<VolumeAttachmentSpec>) => causes(() => create('volumeattachments', attachment(spec)))
  t.match(wrong({ source: { persistentVolumeName: '' } }), [
    'spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName',
    /^spec\.source\.persistentVolumeName: Invalid value: ""/,
  ])
  t.match(wrong({ source: { persistentVolumeName: 'A' } }), [/^spec\.source\.persistentVolumeName: Invalid value: "A"/])
  t.match(wrong({ attacher: '' }), ['spec.attacher: Required value', 'spec.attacher: Required value', /Invalid value/])
})

test('the status of an attachment has bounds', async (t) => {
  const part = volumeAttachmentStrategy.subresources['status']
  if (part?.access !== 'update') throw new Error('The status cannot be written')
  const wrong = (status: Partial<NonNullable<VolumeAttachment['status']>>) =>
    (part.validateUpdate?.(attachment(), { ...attachment(), status: { attached: true, ...status } }) ?? []).map(
      problemText,
    )
  const [message, size] = ['x'.repeat(1024), 256 * 1024]
  t.same(wrong({}), [])
  t.same(
    wrong({ attachError: { message }, detachError: { message }, attachmentMetadata: { a: 'x'.repeat(size - 1) } }),
    [],
  )
  t.same(wrong({ attachError: { message: `${message}x` }, attachmentMetadata: { ab: 'x'.repeat(size - 1) } }), [
    'status.attachmentMetadata: Too long: may not be more than 262144 bytes',
    'status.attachError.message: Too long: may not be more than 1024 bytes',
  ])
  t.same(wrong({ detachError: { message: `${message}x` } }), [
    'status.detachError.message: Too long: may not be more than 1024 bytes',
  ])
})
