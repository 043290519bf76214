/** Validates PersistentVolumes (ValidatePersistentVolume and ValidatePersistentVolumeUpdate of Kubernetes). */
import { amountNamed } from '../../../../api/limits/resource-amounts.ts'
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../../api/names.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../../../api/storage/persistent-volume.ts'
import {
  accessModeProblems,
  classNameProblems,
  nfsProblems,
  positiveAmountProblems,
  volumeModeProblems,
} from '../../../../api/storage/volume-problems.ts'
import { volumeSourceNames } from '../../../../api/storage/volume-source.ts'
import { problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { nodeTermsProblems } from '../../../../api/validation/scheduling-validation.ts'
import { csiDriverNameProblems, hostPathProblems } from '../../../../api/validation/volume-validation.ts'
import { equalJSON } from '../../../store/equal-json.ts'

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
    ...sourceProblems('spec', spec),
    ...(isRoot && policy === 'Recycle'
      ? [forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'")]
      : []),
    ...classNameProblems('spec.storageClassName', spec.storageClassName),
    ...volumeModeProblems('spec.volumeMode', spec.volumeMode),
  ]
}

/** Problems of a volume that an attachment describes itself: one of a driver, without what claims and nodes are matched by. */
export function inlineVolumeProblems(at: string, spec: PersistentVolumeSpec): readonly Problem[] {
  const { accessModes = [], persistentVolumeReclaimPolicy: policy = '', volumeMode = 'Filesystem' } = spec
  const inContext = 'in the context of inline volumes'
  const unwanted = [
    ...(spec.claimRef === undefined ? [] : ['claimRef']),
    ...(Object.keys(spec.capacity ?? {}).length === 0 ? [] : ['capacity']),
    ...(spec.nodeAffinity === undefined ? [] : ['nodeAffinity']),
    ...(spec.storageClassName ? ['storageClassName'] : []),
  ]
  return [
    ...unwanted.map((field) => forbidden(`${at}.${field}`, `may not be specified ${inContext}`)),
    ...(spec.csi === undefined ? [required(`${at}.csi`, `has to be specified ${inContext}`)] : []),
    ...(accessModes.length === 0 ? [required(`${at}.accessModes`)] : []),
    ...accessModeProblems(`${at}.accessModes`, accessModes),
    ...(policy === '' || policy === 'Retain'
      ? []
      : [forbidden(`${at}.persistentVolumeReclaimPolicy`, `may only be Retain ${inContext}`)]),
    ...sourceProblems(at, spec),
    ...(volumeMode === 'Filesystem'
      ? []
      : [forbidden(`${at}.volumeMode`, `may not specify volumeMode other than Filesystem ${inContext}`)]),
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
    ...(before.nodeAffinity === undefined || isSameAffinity(before.nodeAffinity, after.nodeAffinity)
      ? []
      : [invalid('nodeAffinity', after.nodeAffinity, exceptLabels)]),
  ]
}

type VolumeAffinity = NonNullable<PersistentVolumeSpec['nodeAffinity']>

/** What may take the place of a label of nodes (betaToGALabel). */
const stableLabels: { readonly [beta: string]: string } = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
}

function isSameAffinity(before: VolumeAffinity, after: VolumeAffinity | undefined): boolean {
  const now = after?.required?.nodeSelectorTerms ?? []
  const nodeSelectorTerms = (before.required?.nodeSelectorTerms ?? []).map((term, index) => {
    if (term.matchExpressions === undefined) return term
    const matchExpressions = term.matchExpressions.map((one, place) => {
      const key = now[index]?.matchExpressions?.[place]?.key
      return key !== undefined && stableLabels[one.key] === key ? { ...one, key } : one
    })
    return { ...term, matchExpressions }
  })
  return equalJSON(before, after) || equalJSON({ required: { nodeSelectorTerms } }, after)
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

/** Checks the fields, too, of the volume sources that a fleet of small machines uses. */
function sourceProblems(at: string, spec: PersistentVolumeSpec): readonly Problem[] {
  const [first, ...more] = volumeSourceNames.filter((name) => spec[name] !== undefined)
  if (first === undefined) return [required(at, 'must specify a volume type')]
  const { hostPath, local, nfs, csi } = spec
  return [
    ...(first === 'hostPath' && hostPath ? hostPathProblems(`${at}.hostPath`, hostPath) : []),
    ...(first === 'nfs' && nfs ? nfsProblems(`${at}.nfs`, nfs) : []),
    ...(first === 'local' && local ? localProblems(at, local, spec) : []),
    ...(first === 'csi' && csi ? csiProblems(`${at}.csi`, csi) : []),
    ...more.map((name) => forbidden(`${at}.${name}`, 'may not specify more than 1 volume type')),
  ]
}

function localProblems(
  at: string,
  { path }: NonNullable<PersistentVolumeSpec['local']>,
  { nodeAffinity }: PersistentVolumeSpec,
): readonly Problem[] {
  const field = `${at}.local`
  return [
    ...(path === '' ? [required(`${field}.path`)] : []),
    ...(path.split('/').includes('..') ? [invalid(`${field}.path`, path, "must not contain '..'")] : []),
    ...(nodeAffinity === undefined ? [required(`${at}.nodeAffinity`, 'Local volume requires node affinity')] : []),
  ]
}

function csiProblems(field: string, csi: NonNullable<PersistentVolumeSpec['csi']>): readonly Problem[] {
  const { driver, volumeHandle } = csi
  const secrets = ['controllerPublishSecretRef', 'controllerExpandSecretRef', 'nodePublishSecretRef'] as const
  return [
    ...csiDriverNameProblems(`${field}.driver`, driver),
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
