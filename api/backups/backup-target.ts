/** Where backups of volumes are: a folder of a node. Pure. */
import { dnsSubdomainProblem } from '../names.ts'

export type BackupTarget = { readonly node: string; readonly path: string }

const longestPath = 1_024

/** `NODE:PATH`, or why it is not one. */
export function backupTarget(written: string): BackupTarget | { readonly problem: string } {
  const colon = written.indexOf(':')
  const [node, path] = [written.slice(0, Math.max(colon, 0)), written.slice(colon + 1)]
  if (colon < 1 || dnsSubdomainProblem(node) !== undefined)
    return { problem: `${JSON.stringify(written)} is not NODE:PATH, like pi-2:/mnt/backup` }
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

export function targetText({ node, path }: BackupTarget): string {
  return `${node}:${path}`
}
