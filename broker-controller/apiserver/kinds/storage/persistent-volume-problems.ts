/** Validates PersistentVolumes (ValidatePersistentVolume and ValidatePersistentVolumeUpdate of Kubernetes). */
import { amountNamed } from '../../../../api/limits/resource-amounts.ts'
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../../api/names.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../../../api/storage/persistent-volume.ts'
import { volumeSourceNames } from '../../../../api/storage/volume-source.ts'
import { problemsWith, tooLong } from '../../../../api/validation/metadata-validation.ts'
import { nodeTermsProblems } from '../../../../api/validation/scheduling-validation.ts'
import { hostPathProblems } from '../../../../api/validation/volume-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { accessModeProblems, classNameProblems, positiveAmountProblems, volumeModeProblems } from './volume-problems.ts'

const reclaimPolicies = ['Delete', 'Recycle', 'Retain']

export function persistentVolumeProblems({ spec = {} }: PersistentVolume): readonly Problem[] {
  const { accessModes = [], persistentVolumeReclaimPolicy: policy = '', nodeAffinity, hostPath } = spec
  const isRoot = hostPath !== undefined && /^\/[/.]*$/.test(hostPath.path)
  return [
    ...(accessModes.length === 0 ? [required('spec.accessModes')] : []),
    ...accessModeProblems('spec.accessModes', accessModes),
    ...capacityProblems('spec.capacity', spec.capacity ?? {}),
    ...(policy === '' || reclaimPolicies.includes(policy)
      ? []
      : [notSupported('spec.persistentVolumeReclaimPolicy', policy, reclaimPolicies)]),
    ...(nodeAffinity === undefined ? [] : affinityProblems('spec.nodeAffinity', nodeAffinity)),
    ...sourceProblems(spec),
    ...(isRoot && policy === 'Recycle'
      ? [forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'")]
      : []),
    ...classNameProblems('spec.storageClassName', spec.storageClassName),
    ...volumeModeProblems('spec.volumeMode', spec.volumeMode),
  ]
}

/** Where the data is stays: another place is another volume. */
export function persistentVolumeChangeProblems(old: PersistentVolume, now: PersistentVolume): readonly Problem[] {
  const [before = {}, after = {}] = [old.spec, now.spec]
  const immutable = 'field is immutable'
  const exceptLabels = `${immutable}, except for updating from beta label to GA`
  const hasMoved = !equalJSON(sourceOf(before), sourceOf(withSecretOf(before, after)))
  return [
    ...persistentVolumeProblems(now),
    ...(hasMoved
      ? [forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation')]
      : []),
    ...(before.volumeMode === after.volumeMode ? [] : [invalid('volumeMode', after.volumeMode, immutable)]),
    ...(before.nodeAffinity === undefined || equalJSON(before.nodeAffinity, after.nodeAffinity)
      ? []
      : [invalid('nodeAffinity', after.nodeAffinity, exceptLabels)]),
  ]
}

function sourceOf(spec: PersistentVolumeSpec) {
  return Object.fromEntries(volumeSourceNames.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]])))
}

/** The secret for growing a CSI volume may be added later: `after` without it where `before` has none. */
function withSecretOf(before: PersistentVolumeSpec, after: PersistentVolumeSpec): PersistentVolumeSpec {
  if (before.csi === undefined || after.csi === undefined) return after
  if (before.csi.controllerExpandSecretRef !== undefined) return after
  const { controllerExpandSecretRef: _, ...csi } = after.csi
  return { ...after, csi }
}

function capacityProblems(field: string, capacity: NonNullable<PersistentVolumeSpec['capacity']>): readonly Problem[] {
  const isOfStorage = amountNamed(capacity, 'storage') !== undefined && Object.keys(capacity).length === 1
  return [
    ...(Object.keys(capacity).length === 0 ? [required(field)] : []),
    ...(isOfStorage ? [] : [notSupported(field, capacity, ['storage'])]),
    ...Object.entries(capacity).flatMap(([name, amount]) => positiveAmountProblems(`${field}[${name}]`, amount)),
  ]
}

function affinityProblems(
  field: string,
  { required: terms }: NonNullable<PersistentVolumeSpec['nodeAffinity']>,
): readonly Problem[] {
  if (terms === undefined) return [required(`${field}.required`, 'must specify required node constraints')]
  return nodeTermsProblems(`${field}.required.nodeSelectorTerms`, terms.nodeSelectorTerms)
}

/** Of the kinds of storage that a fleet of small machines has, the fields are checked, too. */
function sourceProblems(spec: PersistentVolumeSpec): readonly Problem[] {
  const [first, ...more] = volumeSourceNames.filter((name) => spec[name] !== undefined)
  if (first === undefined) return [required('spec', 'must specify a volume type')]
  const { hostPath, local, nfs, csi } = spec
  return [
    ...(first === 'hostPath' && hostPath ? hostPathProblems('spec.hostPath', hostPath) : []),
    ...(first === 'nfs' && nfs ? nfsProblems('spec.nfs', nfs) : []),
    ...(first === 'local' && local ? localProblems('spec.local', local, spec) : []),
    ...(first === 'csi' && csi ? csiProblems('spec.csi', csi) : []),
    ...more.map((name) => forbidden(`spec.${name}`, 'may not specify more than 1 volume type')),
  ]
}

function nfsProblems(field: string, { server, path }: NonNullable<PersistentVolumeSpec['nfs']>): readonly Problem[] {
  return [
    ...(server === '' ? [required(`${field}.server`)] : []),
    ...(path === '' ? [required(`${field}.path`)] : []),
    ...(path.startsWith('/') ? [] : [invalid(`${field}.path`, path, 'must be an absolute path')]),
  ]
}

function localProblems(
  field: string,
  { path }: NonNullable<PersistentVolumeSpec['local']>,
  { nodeAffinity }: PersistentVolumeSpec,
): readonly Problem[] {
  return [
    ...(path === '' ? [required(`${field}.path`)] : []),
    ...(path.split('/').includes('..') ? [invalid(`${field}.path`, path, "must not contain '..'")] : []),
    ...(nodeAffinity === undefined ? [required('spec.nodeAffinity', 'Local volume requires node affinity')] : []),
  ]
}

const longestDriver = 63

function csiProblems(field: string, csi: NonNullable<PersistentVolumeSpec['csi']>): readonly Problem[] {
  const { driver, volumeHandle } = csi
  const secrets = ['controllerPublishSecretRef', 'controllerExpandSecretRef', 'nodePublishSecretRef'] as const
  return [
    ...(driver === '' ? [required(`${field}.driver`)] : []),
    ...(driver.length > longestDriver ? [tooLong(`${field}.driver`, longestDriver)] : []),
    ...problemsWith(`${field}.driver`, driver.toLowerCase(), dnsSubdomainProblem),
    ...(volumeHandle === '' ? [required(`${field}.volumeHandle`)] : []),
    ...[...secrets, 'nodeExpandSecretRef' as const].flatMap((name) => secretProblems(`${field}.${name}`, csi[name])),
  ]
}

function secretProblems(
  field: string,
  secret: { readonly name?: string; readonly namespace?: string } | undefined,
): readonly Problem[] {
  if (secret === undefined) return []
  const { name = '', namespace = '' } = secret
  return [
    ...(name === '' ? [required(`${field}.name`)] : problemsWith(`${field}.name`, name, dnsSubdomainProblem)),
    ...(namespace === ''
      ? [required(`${field}.namespace`)]
      : problemsWith(`${field}.namespace`, namespace, dnsLabelProblem)),
  ]
}
