/** Which certificate the proxy shows for which host (SNI), by `spec.tls` of Ingresses. */
import type { Ingress } from '../../../api/network/ingress.ts'
import type { CheckedCertificate } from './certificate-check.ts'
import type { FileRoom, IngressProblem } from './ingress-problem.ts'
import { isHost } from './ingress-routes.ts'

/** `namespace/name` of a Secret → its certificate; undefined: there is no such Secret. */
export type CertificateLookup = (key: string) => CheckedCertificate | undefined

export type Certificates = {
  /** Adds those of this Ingress, after all older ones. Returns what is wrong with it. */
  add(ingress: Ingress): readonly IngressProblem[]
  /** Name of the file → its content. */
  readonly files: ReadonlyMap<string, string>
  /** Host → file. */
  readonly hosts: ReadonlyMap<string, string>
  /** The file that is shown for all other hosts; undefined: a connection to one of them is refused. */
  readonly otherwise: string | undefined
}

export type IngressCertificateSettings = {
  /** `namespace/name` of the Secret for hosts that have none of their own. */
  readonly defaultCertificate: string | undefined
  /** Bytes of all certificates. */
  readonly mostBytes: number
  /** Room for the list of hosts. */
  readonly room: FileRoom
}

/** The Secrets that these Ingresses name, as `namespace/name`. */
export function namedSecrets(ingresses: Iterable<Ingress>): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const { metadata, spec } of ingresses) {
    for (const { secretName } of spec?.tls ?? []) if (secretName) keys.add(`${metadata.namespace ?? ''}/${secretName}`)
  }
  return keys
}

export function ingressCertificates(lookup: CertificateLookup, settings: IngressCertificateSettings): Certificates {
  const files = new Map<string, string>()
  const hosts = new Map<string, string>()
  const owners = new Map<string, string>()
  let total = 0
  /** The file; or what is wrong with the Secret. */
  const fileOf = (key: string): string | IngressProblem => {
    const found = lookup(key) ?? { problem: 'does not exist: create it with kubectl create secret tls' }
    if ('problem' in found) return { reason: 'CertificateUnavailable', message: `Secret ${key} ${found.problem}` }
    if (files.has(found.file)) return found.file
    if (total + found.pem.length > settings.mostBytes) {
      return { reason: 'CertificateUnavailable', message: `Secret ${key}: all certificates together are too large` }
    }
    total += found.pem.length
    files.set(found.file, found.pem)
    return found.file
  }
  const common = settings.defaultCertificate === undefined ? undefined : fileOf(settings.defaultCertificate)
  const otherwise = typeof common === 'string' ? common : undefined
  const without = otherwise === undefined ? 'have no HTTPS' : 'are served with the default certificate'

  const addOne = (ingress: Ingress, names: readonly string[], secretName = ''): readonly IngressProblem[] => {
    const { namespace = '', name = '' } = ingress.metadata
    const shown = names.slice(0, 3).join(', ')
    if (secretName === '') {
      if (otherwise !== undefined) return []
      const remedy = 'name a Secret in spec.tls, or configure ingress.defaultCertificate'
      return [{ reason: 'CertificateUnavailable', message: `Hosts ${shown} ${without}: ${remedy}` }]
    }
    const file = fileOf(`${namespace}/${secretName}`)
    if (typeof file !== 'string') return [{ ...file, message: `${file.message}. Hosts ${shown} ${without}` }]
    const own = `${namespace}/${name}`
    return names.flatMap((host) => {
      const other = owners.get(host)
      if (other !== undefined && hosts.get(host) !== file) {
        const message =
          other === own
            ? `Host ${host} has the certificate of an earlier entry of spec.tls: remove it from one of them`
            : `Host ${host} has the certificate of Ingress ${other}, which is older: change or delete one of them`
        return [{ reason: 'CertificateConflict', message }]
      }
      if (other === undefined && !settings.room.take(host.length + lineLength)) {
        return [
          { reason: 'TooManyIngresses', message: `Host ${host} has no HTTPS: the proxies cannot read more hosts` },
        ]
      }
      hosts.set(host, file)
      owners.set(host, other ?? own)
      return []
    })
  }

  return {
    files,
    hosts,
    otherwise,
    add(ingress) {
      const own = (ingress.spec?.rules ?? []).map(({ host = '' }) => host)
      return (ingress.spec?.tls ?? []).flatMap(({ hosts: given = [], secretName }) => {
        const names = [...new Set(given.length > 0 ? given : own)].filter((host) => host !== '' && isHost(host))
        if (names.length > 0) return addOne(ingress, names, secretName)
        const message = 'An entry of spec.tls has no effect: name its hosts'
        return [{ reason: 'CertificateUnavailable', message }]
      })
    },
  }
}

/**
 * Lines of HAProxy's crt-list: the file of other hosts first, then for each file its hosts. `*` is the default of HAProxy 3.0, and
 * nothing in 2.6, whose default is the first line. Without it the names in that certificate would come before those of the others.
 */
export function certificateList({ hosts, otherwise }: Certificates, folder: string): string {
  const byFile = new Map<string, string[]>()
  for (const [host, file] of hosts) {
    const some = byFile.get(file)
    if (some === undefined) byFile.set(file, [host])
    else some.push(host)
  }
  const lines = otherwise === undefined ? [] : [`${folder}/${otherwise} *`]
  for (const [file, names] of byFile) {
    for (let at = 0; at < names.length; at += hostsOfLine) {
      lines.push([`${folder}/${file}`, ...names.slice(at, at + hostsOfLine)].join(' '))
    }
  }
  return lines.map((line) => `${line}\n`).join('')
}

/** Far below the length that HAProxy reads of a line. */
const hostsOfLine = 50
/** Folder and file of a line, as if each host had one. */
const lineLength = 64
