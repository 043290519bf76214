/** Validates the volumes of a pod, and their mounts in its containers. */
import { dataKeyProblem, dnsLabelProblem, dnsSubdomainProblem } from '../names.ts'
import type { Container, PodSpec, Volume } from '../pod.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { compareQuantities, zeroQuantity } from '../quantity.ts'
import { claimVolumeProblems } from '../storage/pod-volume-problems.ts'
import { nfsProblems } from '../storage/volume-problems.ts'
import { fileFieldProblems, objectNameProblems, resourceProblems } from './env-validation.ts'
import { problemsWith, tooLong } from './metadata-validation.ts'
import { repeatedPlaces } from './repeated.ts'

/** `field` is the path of the list, as `spec.volumes`. */
export function volumesProblems(field: string, { volumes = [] }: PodSpec): readonly Problem[] {
  const repeated = repeatedPlaces(volumes.map(({ name }) => name))
  return volumes.flatMap((volume, index) => {
    const at = `${field}[${index}]`
    return [
      ...(volume.name === '' ? [required(`${at}.name`)] : problemsWith(`${at}.name`, volume.name, dnsLabelProblem)),
      ...(repeated.has(index) ? [duplicate(`${at}.name`, volume.name)] : []),
      ...sourceProblems(at, volume),
    ]
  })
}

function sourceProblems(at: string, volume: Volume): readonly Problem[] {
  const { name: _, ...sources } = volume
  const kinds = Object.entries(sources).filter(([, source]) => source !== undefined)
  if (kinds.length === 0) return [required(at, 'must specify a volume type')]
  if (kinds.length > 1) {
    return kinds.slice(1).map(([kind]) => forbidden(`${at}.${kind}`, 'may not specify more than 1 volume type'))
  }
  const { emptyDir, hostPath, configMap, secret, downwardAPI, projected, csi, nfs } = sources
  return [
    ...(emptyDir ? emptyDirProblems(`${at}.emptyDir`, emptyDir) : []),
    ...(hostPath ? hostPathProblems(`${at}.hostPath`, hostPath) : []),
    ...(configMap ? filesProblems(`${at}.configMap`, 'name', configMap.name, configMap) : []),
    ...(secret ? filesProblems(`${at}.secret`, 'secretName', secret.secretName, secret) : []),
    ...(downwardAPI ? downwardProblems(`${at}.downwardAPI`, downwardAPI) : []),
    ...(projected ? projectedProblems(`${at}.projected`, projected) : []),
    ...(csi ? csiProblems(`${at}.csi`, csi) : []),
    ...(nfs ? nfsProblems(`${at}.nfs`, nfs) : []),
    ...claimVolumeProblems(at, volume),
  ]
}

/** As in Kubernetes, the path of a wrong name of a Secret leaves out the reference. */
function csiProblems(at: string, { driver, nodePublishSecretRef }: NonNullable<Volume['csi']>): readonly Problem[] {
  const { name = '' } = nodePublishSecretRef ?? {}
  return [
    ...csiDriverNameProblems(`${at}.driver`, driver),
    ...(nodePublishSecretRef !== undefined && name === '' ? [required(`${at}.nodePublishSecretRef.name`)] : []),
    ...(name === '' ? [] : problemsWith(`${at}.name`, name, dnsSubdomainProblem)),
  ]
}

const longestDriverName = 63

/** Problems with the name of a driver of volumes (ValidateCSIDriverName). */
export function csiDriverNameProblems(field: string, name: string): readonly Problem[] {
  return [
    ...(name === '' ? [required(field)] : []),
    ...(name.length > longestDriverName ? [tooLong(field, longestDriverName)] : []),
    ...problemsWith(field, name.toLowerCase(), dnsSubdomainProblem),
  ]
}

function emptyDirProblems(at: string, { medium = '', sizeLimit }: NonNullable<Volume['emptyDir']>): readonly Problem[] {
  return [
    ...(['', 'Memory'].includes(medium) ? [] : [notSupported(`${at}.medium`, medium, ['', 'Memory'])]),
    ...(sizeLimit !== undefined && compareQuantities(sizeLimit, zeroQuantity) < 0
      ? [forbidden(`${at}.sizeLimit`, 'must be non-negative')]
      : []),
  ]
}

const hostPathTypes = [
  ...['', 'DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'],
]

/** Also of a PersistentVolume. */
export function hostPathProblems(at: string, { path, type = '' }: NonNullable<Volume['hostPath']>): readonly Problem[] {
  return [
    ...(path === '' ? [required(`${at}.path`)] : []),
    ...(path === '' || path.startsWith('/') ? [] : [invalid(`${at}.path`, path, 'must be an absolute path')]),
    ...(path.split('/').includes('..') ? [invalid(`${at}.path`, path, "must not contain '..'")] : []),
    ...(hostPathTypes.includes(type) ? [] : [notSupported(`${at}.type`, type, hostPathTypes)]),
  ]
}

type Item = { readonly key: string; readonly path: string; readonly mode?: number }
type Files = { readonly items?: readonly Item[]; readonly defaultMode?: number }

function filesProblems(at: string, nameField: string, name: string | undefined, { items = [], defaultMode }: Files) {
  return [
    ...objectNameProblems(`${at}.${nameField}`, name),
    ...modeProblems(`${at}.defaultMode`, defaultMode),
    ...items.flatMap(({ key, path, mode }, index) => [
      ...(key === ''
        ? [required(`${at}.items[${index}].key`)]
        : problemsWith(`${at}.items[${index}].key`, key, dataKeyProblem)),
      ...insideProblems(`${at}.items[${index}].path`, path),
      ...modeProblems(`${at}.items[${index}].mode`, mode),
    ]),
  ]
}

type Downward = Pick<NonNullable<Volume['downwardAPI']>, 'items' | 'defaultMode'>

function downwardProblems(at: string, { items = [], defaultMode }: Downward): readonly Problem[] {
  return [
    ...modeProblems(`${at}.defaultMode`, defaultMode),
    ...items.flatMap(({ path, fieldRef, resourceFieldRef, mode }, index) => {
      const item = `${at}.items[${index}]`
      return [
        ...insideProblems(`${item}.path`, path),
        ...modeProblems(`${item}.mode`, mode),
        ...(fieldRef && resourceFieldRef
          ? [invalid(item, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')]
          : []),
        ...(fieldRef || resourceFieldRef
          ? []
          : [required(`${item}.fieldRef`, 'one of fieldRef and resourceFieldRef is required')]),
        ...(fieldRef ? fileFieldProblems(`${item}.fieldRef`, fieldRef) : []),
        ...(resourceFieldRef ? resourceProblems(`${item}.resourceFieldRef.resource`, resourceFieldRef.resource) : []),
        ...(resourceFieldRef && !resourceFieldRef.containerName
          ? [required(`${item}.resourceFieldRef.containerName`)]
          : []),
      ]
    }),
  ]
}

function projectedProblems(
  at: string,
  { sources = [], defaultMode }: NonNullable<Volume['projected']>,
): readonly Problem[] {
  return [
    ...modeProblems(`${at}.defaultMode`, defaultMode),
    ...repeatedPaths(sources).map((path) => invalid(at, path, 'conflicting duplicate paths')),
    ...sources.flatMap((source, index): readonly Problem[] => {
      const each = `${at}.sources[${index}]`
      const kinds = Object.entries(source).filter(([, one]) => one !== undefined)
      if (kinds.length !== 1) return [forbidden(each, 'must specify exactly one projection type')]
      return [
        ...(source.configMap
          ? filesProblems(`${each}.configMap`, 'name', source.configMap.name, source.configMap)
          : []),
        ...(source.secret ? filesProblems(`${each}.secret`, 'name', source.secret.name, source.secret) : []),
        ...(source.downwardAPI ? downwardProblems(`${each}.downwardAPI`, source.downwardAPI) : []),
        ...(source.serviceAccountToken ? tokenProblems(`${each}.serviceAccountToken`, source.serviceAccountToken) : []),
      ]
    }),
  ]
}

type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

/** Paths that more than one item names. Keys of a whole ConfigMap or Secret are not known here. */
function repeatedPaths(sources: readonly Projection[]): readonly string[] {
  const paths = sources
    .flatMap(({ secret, configMap, downwardAPI }) => [secret, configMap, downwardAPI])
    .flatMap((source): readonly { readonly path: string }[] => source?.items ?? [])
    .map(({ path }) => path)
    .filter((path) => path !== '')
  return [...repeatedPlaces(paths)].flatMap((place) => paths[place] ?? [])
}

const shortestTokenSeconds = 600
const longestTokenSeconds = 2 ** 32
const defaultTokenSeconds = 3600

type TokenProjection = NonNullable<Projection['serviceAccountToken']>

function tokenProblems(
  at: string,
  { expirationSeconds = defaultTokenSeconds, path }: TokenProjection,
): readonly Problem[] {
  const field = `${at}.expirationSeconds`
  return [
    ...(expirationSeconds < shortestTokenSeconds
      ? [invalid(field, expirationSeconds, 'may not specify a duration less than 10 minutes')]
      : []),
    ...(expirationSeconds > longestTokenSeconds
      ? [invalid(field, expirationSeconds, 'may not specify a duration larger than 2^32 seconds')]
      : []),
    ...insideProblems(`${at}.path`, path),
  ]
}

function modeProblems(at: string, mode: number | undefined): readonly Problem[] {
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return []
  return [invalid(at, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
}

function insideProblems(at: string, path: string): readonly Problem[] {
  if (path === '') return [required(at)]
  if (path.startsWith('/')) return [invalid(at, path, 'must be a relative path')]
  const steps = path.split('/')
  if (steps.includes('..')) return [invalid(at, path, "must not contain '..'")]
  return path.startsWith('..') ? [invalid(at, path, "must not start with '..'")] : []
}

/** What a pod's mounts may name; made once for all its containers. */
export function volumeNames({ volumes = [] }: PodSpec): ReadonlySet<string> {
  return new Set(volumes.map(({ name }) => name))
}

export function mountsProblems(
  field: string,
  { volumeMounts = [], securityContext }: Container,
  names: ReadonlySet<string>,
) {
  const repeated = repeatedPlaces(volumeMounts.map(({ mountPath }) => mountPath))
  const privileged = securityContext?.privileged === true
  return volumeMounts.flatMap((mount, index): readonly Problem[] => {
    const at = `${field}.volumeMounts[${index}]`
    return [
      ...mountNameProblems(`${at}.name`, mount, names),
      ...mountPathProblems(`${at}.mountPath`, mount, repeated.has(index)),
      ...subPathProblems(at, mount),
      ...propagationProblems(`${at}.mountPropagation`, mount, privileged),
    ]
  })
}

type VolumeMount = NonNullable<Container['volumeMounts']>[number]

function mountNameProblems(at: string, { name }: VolumeMount, names: ReadonlySet<string>): readonly Problem[] {
  if (name === '') return [required(at)]
  if (names.has(name)) return []
  return [{ field: at, reason: 'FieldValueInvalid', message: `Not found: ${JSON.stringify(name)}` }]
}

function mountPathProblems(at: string, { mountPath }: VolumeMount, isRepeated: boolean): readonly Problem[] {
  const problems: Problem[] = []
  if (mountPath === '') problems.push(required(at))
  if (mountPath === '/') {
    problems.push(invalid(at, mountPath, "must not be '/': the container's own files would be gone"))
  }
  if (mountPath.includes(':')) problems.push(invalid(at, mountPath, "must not contain ':'"))
  if (isRepeated) problems.push(invalid(at, mountPath, 'must be unique'))
  return problems
}

function subPathProblems(at: string, { subPath = '', subPathExpr = '' }: VolumeMount): readonly Problem[] {
  const problems: Problem[] = []
  if (subPath !== '') problems.push(...insideProblems(`${at}.subPath`, subPath))
  if (subPathExpr !== '') problems.push(...insideProblems(`${at}.subPathExpr`, subPathExpr))
  if (subPath !== '' && subPathExpr !== '') {
    const because = 'subPathExpr and subPath are mutually exclusive'
    problems.push(invalid(`${at}.subPathExpr`, subPathExpr, because))
  }
  return problems
}

const mountPropagations: readonly string[] = ['None', 'HostToContainer', 'Bidirectional']

function propagationProblems(
  at: string,
  { mountPropagation = '' }: VolumeMount,
  isPrivileged: boolean,
): readonly Problem[] {
  if (mountPropagation === 'Bidirectional' && !isPrivileged) {
    return [forbidden(at, 'Bidirectional mount propagation is available only to privileged containers')]
  }
  if (mountPropagation === '' || mountPropagations.includes(mountPropagation)) return []
  return [notSupported(at, mountPropagation, mountPropagations)]
}

/** What the author of a volume left out, as Kubernetes fills it in. */
export function withVolumeDefaults(volume: Volume): Volume {
  const { configMap, secret, downwardAPI, projected, hostPath, ephemeral } = volume
  const kinds = Object.entries(volume).filter(([field, source]) => field !== 'name' && source !== undefined)
  if (kinds.length === 0) return { ...volume, emptyDir: {} }
  const readable = <T extends { readonly defaultMode?: number }>(source: T) => ({
    ...source,
    defaultMode: source.defaultMode ?? 0o644,
  })
  return {
    ...volume,
    ...(configMap && { configMap: readable(configMap) }),
    ...(secret && { secret: readable(secret) }),
    ...(downwardAPI && { downwardAPI: readable(withFieldVersions(downwardAPI)) }),
    ...(projected && { projected: readable(withProjectionDefaults(projected)) }),
    ...(hostPath && { hostPath: { ...hostPath, type: hostPath.type ?? '' } }),
    ...(ephemeral?.volumeClaimTemplate && { ephemeral: withClaimDefaults(ephemeral) }),
  }
}

function withClaimDefaults(ephemeral: NonNullable<Volume['ephemeral']>): NonNullable<Volume['ephemeral']> {
  const { spec = {}, ...template } = ephemeral.volumeClaimTemplate ?? {}
  return {
    ...ephemeral,
    volumeClaimTemplate: { ...template, spec: { ...spec, volumeMode: spec.volumeMode ?? 'Filesystem' } },
  }
}

function withProjectionDefaults(projected: NonNullable<Volume['projected']>): NonNullable<Volume['projected']> {
  const { sources } = projected
  if (sources === undefined) return projected
  const withExpiration = (token: TokenProjection) => ({
    ...token,
    expirationSeconds: token.expirationSeconds ?? defaultTokenSeconds,
  })
  return {
    ...projected,
    sources: sources.map((source) => ({
      ...source,
      ...(source.serviceAccountToken && { serviceAccountToken: withExpiration(source.serviceAccountToken) }),
      ...(source.downwardAPI && { downwardAPI: withFieldVersions(source.downwardAPI) }),
    })),
  }
}

type FileOfField = { readonly fieldRef?: { readonly apiVersion?: string } }

function withFieldVersions<D extends { readonly items?: readonly FileOfField[] }>(downwardAPI: D): D {
  const { items } = downwardAPI
  if (items === undefined) return downwardAPI
  return {
    ...downwardAPI,
    items: items.map((item) => (item.fieldRef ? { ...item, fieldRef: withFieldVersion(item.fieldRef) } : item)),
  }
}

/** SetDefaults_ObjectFieldSelector. */
export function withFieldVersion<R extends { readonly apiVersion?: string }>(fieldRef: R): R {
  return { ...fieldRef, apiVersion: fieldRef.apiVersion || 'v1' }
}
