/**
 * Where the kubelet has the volumes of a pod: below `pods/UID/volumes` of its folder (GetPodVolumeDir in pkg/kubelet/kubelet_getters.go).
 * Backup programs look for them there. Pure.
 */
import type { ClaimVolume } from './volume-store.ts'

/** The parts of its path. */
export type KubeletPlace = readonly string[]

export type ShownVolume = {
  readonly place: KubeletPlace
  /** Where it is on this machine. */
  readonly path: string
}

const plugins = { local: 'kubernetes.io~local-volume', nfs: 'kubernetes.io~nfs', csi: 'kubernetes.io~csi' }
const emptyDir = 'kubernetes.io~empty-dir'

/** The folders in which `kubeletPlaceOf` and `emptyDirPlace` put volumes. */
export const kubeletPlugins: readonly string[] = [...Object.values(plugins), emptyDir]

/** undefined: a driver puts it there, or the kubelet has no folder for it, such as for a hostPath. */
export function kubeletPlaceOf({
  volume,
  source,
  share,
  isBlock,
}: Pick<ClaimVolume, 'volume' | 'source' | 'share' | 'isBlock'>): KubeletPlace | undefined {
  if (source === 'local' && !isBlock) return [plugins.local, volume]
  if (share?.kind === 'nfs') return [plugins.nfs, volume]
  // Its PersistentVolume has the source `csi`: it is where programs expect that of a driver.
  return share?.kind === 'smb' ? [plugins.csi, volume, 'mount'] : undefined
}

export function emptyDirPlace(name: string): KubeletPlace {
  return [emptyDir, name]
}

/** A pod with this hostPath sees the folders of other pods. One with the whole file system of the machine looks at other things. */
export function seesPods(path: string, kubeletDirectory: string): boolean {
  const [found, kubelet] = [path, kubeletDirectory].map(plainPath)
  return found === kubelet || `${found}/`.startsWith(`${kubelet}/pods/`)
}

function plainPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  return `/${parts.join('/')}`
}
