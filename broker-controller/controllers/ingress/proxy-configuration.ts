/** Ingresses, Services and certificates → the files of the proxy. */
import { createHash } from 'node:crypto'
import type { Ingress } from '../../../api/network/ingress.ts'
import { backendText, type ServiceLookup } from './ingress-backends.ts'
import { type CertificateLookup, certificateList, ingressCertificates } from './ingress-certificates.ts'
import { fileRoom, type IngressProblem } from './ingress-problem.ts'
import { ingressRoutes, type RouteTables } from './ingress-routes.ts'
import { fixedText, proxyFiles } from './proxy-text.ts'

export type ProxyInput = {
  readonly service: ServiceLookup
  readonly certificate: CertificateLookup
  readonly settings: {
    readonly httpsPort: number
    readonly accessLog: boolean
    readonly defaultCertificate: string | undefined
    /** Pods of the fleet have addresses of both families. */
    readonly ipv6: boolean
  }
  /** Bytes that the files, and all certificates, may have; what would exceed the first is left out. */
  readonly limits: { readonly files: number; readonly certificates: number }
}

export type ProxyConfiguration = {
  /** Name of a file → its content; all but the certificates. */
  readonly files: ReadonlyMap<string, string>
  /** Name of a file → its content. */
  readonly certificates: ReadonlyMap<string, string>
}

export type ProxyBuilder = {
  /** Adds an Ingress, after all older ones (`oldestFirst`). Returns what is wrong with it. Takes a few ms at most. */
  add(ingress: Ingress): readonly IngressProblem[]
  finish(): ProxyConfiguration
}

/** Pure: equal inputs give equal files. */
export function proxyConfiguration({ service, certificate, settings, limits }: ProxyInput): ProxyBuilder {
  const room = fileRoom(limits.files)
  const { defaultCertificate } = settings
  const routes = ingressRoutes(service, room, settings.ipv6)
  const certificates = ingressCertificates(certificate, { defaultCertificate, mostBytes: limits.certificates, room })
  return {
    add(ingress) {
      const found = routes.add(ingress)
      return found === undefined ? [noRoom] : [...found, ...certificates.add(ingress)]
    },
    finish() {
      const backends = [...routes.backends.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(backendText)
      const files = new Map([
        [proxyFiles.configuration, [fixedText(settings, certificates.otherwise), ...backends].join('\n')],
        ...tableFiles(routes.tables),
        [proxyFiles.certificateList, certificateList(certificates, proxyFiles.certificateFolder)],
      ])
      const digest = createHash('sha256')
      for (const [name, text] of files) digest.update(`${name}\n${text}\n`)
      files.set(proxyFiles.version, `${digest.digest('hex').slice(0, 16)}\n`)
      return { files, certificates: certificates.files }
    },
  }
}

const noRoom: IngressProblem = {
  reason: 'TooManyIngresses',
  message: 'The Ingress is left out: all Ingresses together are larger than the proxies can read. Delete some of them',
}

function tableFiles(tables: RouteTables): readonly (readonly [string, string])[] {
  const text = (table: ReadonlyMap<string, string>) => [...table].map(([key, value]) => `${key} ${value}\n`).join('')
  return [
    [proxyFiles.exact, text(tables.exact)],
    [proxyFiles.prefix, text(tables.prefix)],
    [proxyFiles.fallback, text(tables.fallback)],
  ]
}
