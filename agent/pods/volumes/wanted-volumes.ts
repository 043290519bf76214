/** A pod's volumes → what is to be on this machine, or what is missing for it, in Kubernetes' words. */
import type { Pod, Volume } from '../../../api/pod.ts'
import { quantityToNumber } from '../../../api/quantity.ts'
import type { NodeClaim } from '../../../api/storage/node-claim.ts'
import { type DownwardSources, fieldText, type ResourceFieldRef, resourceValue } from '../options/downward.ts'
import {
  type Contents,
  configMapContents,
  type Found,
  type NamedSources,
  secretContents,
} from '../options/named-data.ts'
import { onlyUser } from '../options/security.ts'
import type { InlineSources } from './csi/wanted-csi.ts'
import { type PodTokens, type TokenProjection, tokenId, tokenNeed } from './token-needs.ts'
import type { VolumeFile, VolumeResult, WantedVolume } from './volume-store.ts'
import { isClaim, wantedClaim, wantedInline, wantedShare } from './wanted-claims.ts'

export type VolumeSources = NamedSources &
  DownwardSources &
  Pick<InlineSources, 'csiDrivers'> & {
    /** undefined: the controller has sent none. */
    readonly claims?: readonly NodeClaim[]
    /** undefined: this node requests none. */
    readonly tokens?: PodTokens
  }

const defaultFileMode = 0o644
/** What a group that owns the volume may do with its files. */
const groupMay = 0o440

export function wantedVolume(pod: Pod, volume: Volume, sources: VolumeSources): VolumeResult<WantedVolume> {
  const { name, emptyDir, hostPath, csi, nfs } = volume
  if (isClaim(volume)) return wantedClaim(pod, volume, sources)
  if (nfs !== undefined) return wantedShare(pod, name, nfs)
  if (emptyDir !== undefined) {
    const memory = emptyDir.medium === 'Memory'
    const sizeBytes = memory ? memorySize(pod, emptyDir.sizeLimit) : undefined
    return { ok: true, value: { name, kind: 'emptyDir', memory, ...(sizeBytes && { sizeBytes }), ...groupOf(pod) } }
  }
  if (hostPath !== undefined) {
    return { ok: true, value: { name, kind: 'hostPath', path: hostPath.path, type: hostPath.type ?? '' } }
  }
  if (csi !== undefined) return wantedInline(pod, name, { inline: csi, sources })
  const parts = partsOf(pod, volume, sources)
  return parts === undefined
    ? { ok: false, message: 'this kind of volume is not supported' }
    : wantedFiles(pod, name, parts)
}

function groupOf({ spec }: Pod): { readonly group?: number } {
  const group = spec.securityContext?.fsGroup
  return group === undefined ? {} : { group }
}

type Part = Found<readonly VolumeFile[]>

/** The files of a volume, by the objects that they come from; undefined: the volume is not made of files. */
function partsOf(pod: Pod, volume: Volume, sources: VolumeSources): readonly Part[] | undefined {
  const { configMap, secret, downwardAPI, projected } = volume
  const { defaultMode = defaultFileMode } = configMap ?? secret ?? downwardAPI ?? projected ?? {}
  if (configMap !== undefined) return [mapFiles(pod, configMap, sources, defaultMode)]
  if (secret !== undefined)
    return [secretFiles(pod, { ...secret, name: secret.secretName ?? '' }, sources, defaultMode)]
  if (downwardAPI !== undefined) return [downwardFiles(pod, downwardAPI.items, sources, defaultMode)]
  return projected && (projected.sources ?? []).map((source) => projectedFiles(pod, source, sources, defaultMode))
}

type ProjectedSource = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

function projectedFiles(pod: Pod, source: ProjectedSource, sources: VolumeSources, defaultMode: number): Part {
  const { configMap, secret, downwardAPI, serviceAccountToken } = source
  if (configMap !== undefined) return mapFiles(pod, configMap, sources, defaultMode)
  if (secret !== undefined) return secretFiles(pod, secret, sources, defaultMode)
  if (downwardAPI !== undefined) return downwardFiles(pod, downwardAPI.items, sources, defaultMode)
  if (serviceAccountToken !== undefined) return tokenFile(pod, serviceAccountToken, sources, defaultMode)
  return { missing: 'this kind of projected source is not supported' }
}

function wantedFiles(pod: Pod, name: string, parts: readonly Part[]): VolumeResult<WantedVolume> {
  const missing = parts.flatMap((part) => ('missing' in part ? [part.missing] : []))
  if (missing.length > 0) return { ok: false, message: missing.join('; ') }
  const files = parts.flatMap((part) => ('missing' in part ? [] : (part.value ?? [])))
  const unsafe = files.find(({ path }) => !isInside(path))
  if (unsafe !== undefined)
    return { ok: false, message: `the path ${JSON.stringify(unsafe.path)} leads out of the volume` }
  const owned = groupOf(pod)
  const readable = (file: VolumeFile) => (owned.group === undefined ? file : { ...file, mode: file.mode | groupMay })
  // Where two files have one path, the later one counts.
  const byPath = new Map(files.map((file) => [file.path, readable(file)]))
  return { ok: true, value: { name, kind: 'files', files: [...byPath.values()], ...owned } }
}

/** A path below something: relative, and without a step up. Names that begin with `..` are our own. */
export function isInside(path: string): boolean {
  if (path === '' || path.startsWith('/') || path.startsWith('..') || path.includes('\0')) return false
  return path.split('/').every((part) => part !== '..')
}

/** Never more than the pod's containers may use together, where all of them are limited. */
function memorySize({ spec }: Pod, sizeLimit: string | number | undefined): number | undefined {
  const limits = spec.containers.map(({ resources }) => resources?.limits?.['memory'])
  const limited = limits.every((limit) => limit !== undefined)
  const most = limited ? limits.reduce<number>((sum, limit) => sum + quantityToNumber(limit ?? 0), 0) : 0
  const sizes = [sizeLimit === undefined ? 0 : quantityToNumber(sizeLimit), most].filter((size) => size > 0)
  return sizes.length === 0 ? undefined : Math.min(...sizes)
}

type Item = { readonly key: string; readonly path: string; readonly mode?: number }
type Named = { readonly name?: string; readonly items?: readonly Item[]; readonly optional?: boolean }

function mapFiles(pod: Pod, named: Named, sources: NamedSources, defaultMode: number): Part {
  const absent = (key: string) => `configmap references non-existent config key: ${key}`
  return filesOf(configMapContents(pod, sources, named), named, defaultMode, absent)
}

function secretFiles(pod: Pod, named: Named, sources: NamedSources, defaultMode: number): Part {
  const absent = (key: string) => `references non-existent secret key: ${key}`
  return filesOf(secretContents(pod, sources, named), named, defaultMode, absent)
}

function filesOf(
  contents: Found<Contents>,
  { items = [], optional = false }: Named,
  defaultMode: number,
  absent: (key: string) => string,
): Part {
  if ('missing' in contents) return contents
  const data: Contents = contents.value ?? new Map()
  if (items.length === 0) {
    return { value: [...data].map(([path, content]) => ({ path, content, mode: defaultMode })) }
  }
  const files: VolumeFile[] = []
  for (const { key, path, mode = defaultMode } of items) {
    const content = data.get(key)
    if (content !== undefined) files.push({ path, content, mode })
    else if (!optional) return { missing: absent(key) }
  }
  return { value: files }
}

/** Only its owner reads it, where the pod's processes are one user or share a group (collectData in pkg/volume/projected). */
function tokenFile(
  pod: Pod,
  { path, ...token }: TokenProjection & { readonly path: string },
  { tokens }: VolumeSources,
  defaultMode: number,
): Part {
  const found = tokens?.get(tokenId(tokenNeed(token))) ?? { missing: 'failed to fetch token: it was not requested' }
  if ('missing' in found) return found
  const owner = onlyUser(pod)
  const isOwned = owner !== undefined || pod.spec.securityContext?.fsGroup !== undefined
  const mode = isOwned ? 0o600 : defaultMode
  return { value: [{ path, content: Buffer.from(found.value), mode, ...(owner !== undefined && { owner }) }] }
}

type DownwardItem = {
  readonly path: string
  readonly fieldRef?: { readonly fieldPath: string }
  readonly resourceFieldRef?: ResourceFieldRef
  readonly mode?: number
}

function downwardFiles(
  pod: Pod,
  items: readonly DownwardItem[] = [],
  sources: DownwardSources,
  defaultMode: number,
): Part {
  const files: VolumeFile[] = []
  for (const { path, fieldRef, resourceFieldRef, mode = defaultMode } of items) {
    const found =
      resourceFieldRef === undefined
        ? fieldText(pod, fieldRef?.fieldPath ?? '', sources)
        : resourceValue(pod, resourceFieldRef, undefined, sources)
    if ('missing' in found) return found
    files.push({ path, content: Buffer.from(found.value ?? ''), mode })
  }
  return { value: files }
}
