/** Docker's refusals as messages for the author of the pod: without Docker's internals, and with what to change. */
import { refusalRemedy } from '../../runtime/refusals.ts'

/** Prefixes that Docker, containerd and runc add to their errors. */
const noise = [
  /failed to create (?:shim )?task(?: for container)?: /,
  /OCI runtime create failed: /,
  /runc create failed: /,
  /container_linux\.go:\d+: /,
  /starting container process caused(?: ".*?")?: /,
  /unable to start container process: /,
  /error during container init: /,
  /driver failed programming external connectivity on endpoint \S+ \([0-9a-f]+\): /,
  /Error starting userland proxy: /,
]
const storages: ReadonlySet<string> = new Set(['overlay2', 'overlayfs', 'aufs', 'btrfs', 'vfs', 'snapshots'])

/** Errors contain parts of the pod, which may be of any length. */
const mostText = 2_048
const mostTail = 512

/** Shortens the middle of a long text: Docker begins with the operation and ends with the cause. */
export function shortened(text: string): string {
  return text.length <= mostText ? text : `${text.slice(0, mostText - mostTail)} … ${text.slice(-mostTail)}`
}

/** The same text for the same refusal of any container. Takes a shortened text. */
export function plainText(text: string): string {
  const bare = noise.reduce((rest, words) => rest.replace(words, ''), text).replace(/: unknown(?=$|:|\.)/, '')
  const clean = bare.replace(/\/[^\s"]+/g, insideImage).trim()
  const remedy = refusalRemedy(text)
  return remedy === undefined ? clean : `${clean} (${remedy})`
}

/** The path of an image's layers changes with each try: only the path below the image's root is kept. */
function insideImage(path: string): string {
  const parts = path.split('/')
  const storage = parts.findLastIndex((part) => storages.has(part))
  const root = parts.findIndex((part, index) => index > storage && /^(?:merged|rootfs|fs)(?=$|:)/.test(part))
  if (storage < 0 || root < 0) return path
  return parts
    .slice(root)
    .join('/')
    .replace(/^(?:merged|rootfs|fs)/, '')
}
