/**
 * What one container mounts: its volumes are placed, and each mount becomes a path of this machine and one of its own. A block volume becomes
 * a device of the container.
 */
import type { Container, Pod } from '../../../api/pod.ts'
import type { ContainerDevice, ContainerMount } from '../../runtime/runtime.ts'
import { containerEnv, type EnvSources } from '../options/container-env.ts'
import { expand } from '../options/expansion.ts'
import { setUpFailed } from './mount-step.ts'
import { VolumeError, type VolumeResult, type VolumeStore, type WantedVolume } from './volume-store.ts'
import { isClaim, isReadOnlyClaim } from './wanted-claims.ts'
import { isInside, type VolumeSources, wantedVolume } from './wanted-volumes.ts'

type MountSources = EnvSources & VolumeSources

export type Mounts =
  | { readonly ok: true; readonly mounts: readonly ContainerMount[]; readonly devices: readonly ContainerDevice[] }
  /** `volume`: this one is not there yet, and `event` is the text of its Event. Without one, the container asks for what cannot be. */
  | {
      readonly ok: false
      readonly volume?: string
      readonly event?: string
      /** The controller records it. */
      readonly isQuiet?: true
      readonly message: string
    }

export async function containerMounts(
  pod: Pod,
  container: Container,
  sources: MountSources,
  store: VolumeStore,
): Promise<Mounts> {
  const mounts: ContainerMount[] = []
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const placed = await placedNamed(pod, mount.name, sources, store)
    if (!placed.ok) return placed
    const source = await mountedPath(pod, container, { mount, index, placed }, sources, store)
    if (!source.ok) return { ok: false, message: source.message }
    mounts.push({
      source: source.value,
      target: absolute(mount.mountPath),
      readOnly: mount.readOnly === true || hasFiles(placed.wanted) || isReadOnlyClaim(pod, mount.name, sources),
      propagation: propagationOf(mount.mountPropagation),
    })
  }
  const devices: ContainerDevice[] = []
  for (const { name, devicePath } of container.volumeDevices ?? []) {
    const placed = await placedNamed(pod, name, sources, store)
    if (!placed.ok) return placed
    const isReadOnly = isReadOnlyClaim(pod, name, sources)
    devices.push({ source: placed.value, target: absolute(devicePath), ...(isReadOnly && { readOnly: true }) })
  }
  return { ok: true, mounts, devices }
}

function absolute(path: string): string {
  return path.startsWith('/') ? path : `/${path}`
}

type PlacedMount = { readonly mount: Mount; readonly index: number; readonly placed: PlacedVolume }

/** Where the volume is on this machine, or the part of it that the mount names. */
async function mountedPath(
  pod: Pod,
  container: Container,
  { mount, index, placed }: PlacedMount,
  sources: MountSources,
  store: VolumeStore,
): Promise<VolumeResult<string>> {
  const subPath = subPathOf(pod, container, mount, sources)
  if (!subPath.ok) return subPath
  if (subPath.value === '') return placed
  const place = { containerName: container.name, index }
  const part = await tried(() => store.part(pod.metadata.uid ?? '', placed.wanted, subPath.value, place))
  if (part.ok) return part
  const what = `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}"`
  return { ok: false, message: `${what}: ${part.message}` }
}

type PlacedVolume = { readonly ok: true; readonly wanted: WantedVolume; readonly value: string }

async function placedNamed(
  pod: Pod,
  name: string,
  sources: MountSources,
  store: VolumeStore,
): Promise<PlacedVolume | (Mounts & { readonly ok: false })> {
  const wanted = await volumeNamed(pod, name, sources, store)
  if (!wanted.ok) return { event: failedText(name, wanted), ...wanted, volume: name }
  const placed = await tried(() => store.place(pod.metadata.uid ?? '', wanted.value))
  if (placed.ok) return { ok: true, wanted: wanted.value, value: placed.value }
  const of = wanted.value.kind === 'claim' ? wanted.value.volume : name
  return { ok: false, volume: name, event: failedText(of, placed), message: placed.message }
}

/** Writes the files of a running pod from its current ConfigMaps and Secrets. Files of a missing one stay. */
export async function refreshFiles(pod: Pod, sources: MountSources, store: VolumeStore): Promise<void> {
  await placeAgain(pod, sources, { store, isMeant: ({ kind }) => kind === 'files' })
}

/** Has the volumes mounted again whose drivers ask for that (`requiresRepublish`), and those expanded that are larger. What was mounted before stays if that fails. */
export async function republish(pod: Pod, sources: MountSources, store: VolumeStore): Promise<void> {
  const isMeant = (one: WantedVolume) =>
    one.kind === 'claim' && (one.csi?.republish === true || one.csi?.growth !== undefined)
  await placeAgain(pod, sources, { store, isMeant })
}

type Again = { readonly store: VolumeStore; readonly isMeant: (volume: WantedVolume) => boolean }

async function placeAgain(pod: Pod, sources: MountSources, { store, isMeant }: Again): Promise<void> {
  for (const volume of pod.spec.volumes ?? []) {
    if (!isMounted(pod, volume.name)) continue
    const wanted = wantedVolume(pod, volume, sources)
    if (wanted.ok && isMeant(wanted.value)) await store.place(pod.metadata.uid ?? '', wanted.value)
  }
}

function isMounted({ spec }: Pod, name: string): boolean {
  const containers = [...(spec.initContainers ?? []), ...spec.containers]
  return containers.some(({ volumeMounts = [], volumeDevices = [] }) =>
    [...volumeMounts, ...volumeDevices].some((one) => one.name === name),
  )
}

/**
 * The volume to place. One that was placed before and cannot be now, as its ConfigMap, Secret or claim is gone, is used as it is: the
 * kubelet asks only whether a volume is mounted before it starts a container again, and a failed update leaves it mounted
 * (pkg/kubelet/volumemanager/volume_manager.go, verifyVolumesMounted).
 */
async function volumeNamed(
  pod: Pod,
  name: string,
  sources: MountSources,
  store: VolumeStore,
): Promise<VolumeResult<WantedVolume>> {
  const volume = pod.spec.volumes?.find((one) => one.name === name)
  if (volume === undefined) return { ok: false, message: 'the pod has no such volume' }
  const wanted = wantedVolume(pod, volume, sources)
  if (wanted.ok) return wanted
  const earlier: WantedVolume = { name, kind: isClaim(volume) || volume.csi ? 'earlierClaim' : 'earlierFiles' }
  const placed = await tried(() => store.place(pod.metadata.uid ?? '', earlier))
  return placed.ok ? { ok: true, value: earlier } : wanted
}

function hasFiles({ kind }: WantedVolume): boolean {
  return kind === 'files' || kind === 'earlierFiles'
}

type Mount = NonNullable<Container['volumeMounts']>[number]

function subPathOf(pod: Pod, container: Container, mount: Mount, sources: MountSources): VolumeResult<string> {
  const { subPath = '', subPathExpr = '' } = mount
  if (subPath === '' && subPathExpr === '') return { ok: true, value: '' }
  const expanded =
    subPathExpr === '' ? { ok: true as const, value: subPath } : expandPath(pod, container, subPathExpr, sources)
  if (!expanded.ok || isInside(expanded.value)) return expanded
  return { ok: false, message: `the subPath ${JSON.stringify(expanded.value)} leads out of volume "${mount.name}"` }
}

function expandPath(pod: Pod, container: Container, expression: string, sources: MountSources): VolumeResult<string> {
  const environment = containerEnv(pod, container, sources)
  if (!environment.ok) return { ok: false, message: environment.message }
  const missing = [...expression.matchAll(/(?<!\$)\$\(([^)]*)\)/g)].find(
    ([, name = '']) => !environment.values.has(name),
  )
  if (missing !== undefined) return { ok: false, message: `missing value for "${missing[1]}"` }
  return { ok: true, value: expand(expression, environment.values) }
}

function propagationOf(mode: string | undefined): ContainerMount['propagation'] {
  if (mode === 'HostToContainer') return 'rslave'
  return mode === 'Bidirectional' ? 'rshared' : 'rprivate'
}

type Tried =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly message: string; readonly step: string }

async function tried(work: () => Promise<string>): Promise<Tried> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    if (error instanceof VolumeError) return { ok: false, message: error.message, step: error.step }
    throw error
  }
}

/** The text of the kubelet's Event. */
function failedText(
  volume: string,
  { message, step = setUpFailed }: { readonly message: string; readonly step?: string },
) {
  return `${step} for volume "${volume}" : ${message}`
}
