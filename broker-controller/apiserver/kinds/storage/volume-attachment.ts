/** storage.k8s.io/v1 VolumeAttachment (pkg/registry/storage/volumeattachment/strategy.go, pkg/apis/storage/validation/validation.go). */
import { dnsSubdomainProblem } from '../../../../api/names.ts'
import { forbidden, invalid, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import type {
  VolumeAttachment,
  VolumeAttachmentSpec,
  VolumeAttachmentStatus,
} from '../../../../api/storage/volume-attachment.ts'
import { problemsWith, tooLong } from '../../../../api/validation/metadata-validation.ts'
import { csiDriverNameProblems } from '../../../../api/validation/volume-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, replaceStatus } from '../../handlers/strategy.ts'
import { inlineVolumeProblems } from './persistent-volume-problems.ts'

const volumeAttachmentTable: TableOf<VolumeAttachment> = {
  columns: tableColumns('Name', 'Attacher', 'PV', 'Node', 'Attached?', 'Age'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    spec.attacher,
    spec.source.persistentVolumeName ?? '',
    spec.nodeName,
    status?.attached ?? false,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const volumeAttachmentStrategy: KindStrategy<VolumeAttachment> = {
  ...resources.volumeattachments,
  needsVersion: true,
  returnsDeletedObject: true,
  table: volumeAttachmentTable,
  selectableFields: [],
  subresources: {
    status: {
      access: 'update',
      writes: 'status',
      change: (stored, wanted) => replaceStatus(stored, wanted.status),
      validateUpdate: (_, { status }) => statusProblems(status),
    },
  },
  resetFields: { '': ['status'], status: ['metadata', 'spec'] },
  emptyStatus: { attached: false },
  prepareForCreate: ({ status: _, ...attachment }) => attachment,
  validateCreate: ({ spec }) => [...specProblems(spec), ...newSpecProblems(spec)],
  validateUpdate: (old, now) => [
    ...specProblems(now.spec),
    ...(equalJSON(old.spec, now.spec) ? [] : [invalid('spec', now.spec, 'field is immutable')]),
  ],
}

function specProblems({ attacher, source, nodeName }: VolumeAttachmentSpec): readonly Problem[] {
  return [
    ...(attacher === '' ? [required('spec.attacher')] : []),
    ...sourceProblems('spec.source', source),
    ...problemsWith('spec.nodeName', nodeName, dnsSubdomainProblem),
  ]
}

function sourceProblems(field: string, source: VolumeAttachmentSpec['source']): readonly Problem[] {
  const { persistentVolumeName: name, inlineVolumeSpec: inline } = source
  const exactlyOne = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  if (name === undefined && inline === undefined) return [required(field, exactlyOne)]
  if (name !== undefined && inline !== undefined) return [forbidden(field, exactlyOne)]
  if (inline !== undefined) return inlineVolumeProblems(`${field}.inlineVolumeSpec`, inline)
  if (name !== '') return []
  return [required(`${field}.persistentVolumeName`, 'must specify non empty persistentVolumeName')]
}

/** Not of attachments that an earlier version of the API took. */
function newSpecProblems({ attacher, source: { persistentVolumeName } }: VolumeAttachmentSpec): readonly Problem[] {
  return [
    ...csiDriverNameProblems('spec.attacher', attacher),
    ...(persistentVolumeName === undefined
      ? []
      : problemsWith('spec.source.persistentVolumeName', persistentVolumeName, dnsSubdomainProblem)),
  ]
}

const mostMetadataBytes = 256 * 1024
const longestMessageBytes = 1024

function statusProblems(status: VolumeAttachmentStatus | undefined): readonly Problem[] {
  const { attachmentMetadata = {}, attachError, detachError } = status ?? {}
  const bytes = Object.entries(attachmentMetadata).reduce((sum, entry) => sum + Buffer.byteLength(entry.join('')), 0)
  const isTooLong = (error: typeof attachError) => Buffer.byteLength(error?.message ?? '') > longestMessageBytes
  return [
    ...(bytes > mostMetadataBytes ? [tooLong('status.attachmentMetadata', mostMetadataBytes)] : []),
    ...(isTooLong(attachError) ? [tooLong('status.attachError.message', longestMessageBytes)] : []),
    ...(isTooLong(detachError) ? [tooLong('status.detachError.message', longestMessageBytes)] : []),
  ]
}
