/** Where backups of volumes are: in a folder of a node, or of a NAS that a PersistentVolume or a StorageClass names. Pure. */
import { dnsSubdomainProblem } from '../names.ts'

export type BackupTarget =
  | { readonly node: string; readonly path: string }
  | { readonly volume: string }
  | { readonly storageClass: string }

const ofVolume = 'pv/'
const ofClass = 'class/'
/** How places are written, for messages. */
export const writtenTargets = 'NODE:PATH, pv/NAME or class/NAME'

const longestPath = 1_024

/** `NODE:PATH`, `pv/NAME` or `class/NAME`, or why it is another text. */
export function backupTarget(written: string): BackupTarget | { readonly problem: string } {
  if (written.startsWith(ofVolume)) {
    const volume = written.slice(ofVolume.length)
    if (dnsSubdomainProblem(volume) === undefined) return { volume }
    return { problem: `${JSON.stringify(written)} does not name a PersistentVolume: pv/NAME` }
  }
  if (written.startsWith(ofClass)) {
    const storageClass = written.slice(ofClass.length)
    if (dnsSubdomainProblem(storageClass) === undefined) return { storageClass }
    return { problem: `${JSON.stringify(written)} does not name a StorageClass: class/NAME` }
  }
  const colon = written.indexOf(':')
  const [node, path] = [written.slice(0, Math.max(colon, 0)), written.slice(colon + 1)]
  if (colon < 1 || dnsSubdomainProblem(node) !== undefined)
    return {
      problem: `${JSON.stringify(written)} is not ${writtenTargets}, like pi-2:/mnt/backup`,
    }
  const problem = folderProblem(path)
  return problem === undefined ? { node, path } : { problem }
}

/** undefined: it is the path of a folder below `/`. */
export function folderProblem(path: string): string | undefined {
  const parts = path.split('/').slice(1)
  const isPath = path.startsWith('/') && path.length <= longestPath && !path.includes('\0')
  const arePlain = parts.length > 0 && parts.every((part) => part !== '' && part !== '.' && part !== '..')
  return isPath && arePlain
    ? undefined
    : `${JSON.stringify(path)} is not the path of a folder: give it whole, without . and .. and without a slash at its end`
}

export function targetText(target: BackupTarget): string {
  if ('volume' in target) return `${ofVolume}${target.volume}`
  return 'storageClass' in target ? `${ofClass}${target.storageClass}` : `${target.node}:${target.path}`
}

/** `written` begins with a place on a NAS, and has more: the name of a backup in it. */
export function isInsideNas(written: string): boolean {
  return [ofVolume, ofClass].some((start) => written.startsWith(start) && written.lastIndexOf('/') > start.length)
}
