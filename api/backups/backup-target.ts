/** Where backups of volumes are: in a folder of a node, or of a NAS that a PersistentVolume names. Pure. */
import { dnsSubdomainProblem } from '../names.ts'

export type BackupTarget = { readonly node: string; readonly path: string } | { readonly volume: string }

const ofVolume = 'pv/'

const longestPath = 1_024

/** `NODE:PATH`, or `pv/NAME`, or why it is neither. */
export function backupTarget(written: string): BackupTarget | { readonly problem: string } {
  if (written.startsWith(ofVolume)) {
    const volume = written.slice(ofVolume.length)
    if (dnsSubdomainProblem(volume) === undefined) return { volume }
    return { problem: `${JSON.stringify(written)} does not name a PersistentVolume: pv/NAME` }
  }
  const colon = written.indexOf(':')
  const [node, path] = [written.slice(0, Math.max(colon, 0)), written.slice(colon + 1)]
  if (colon < 1 || dnsSubdomainProblem(node) !== undefined)
    return { problem: `${JSON.stringify(written)} is neither NODE:PATH, like pi-2:/mnt/backup, nor pv/NAME` }
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
  return 'volume' in target ? `${ofVolume}${target.volume}` : `${target.node}:${target.path}`
}
