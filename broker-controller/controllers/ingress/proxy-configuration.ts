/** Ingresses, Services and certificates → the files of the proxy. Pure: equal inputs give equal files. */
import { createHash } from 'node:crypto'
import type { Ingress } from '../../../api/network/ingress.ts'
import { backendText, type ServiceLookup } from './ingress-backends.ts'
import { type CertificateLookup, certificateList, ingressCertificates } from './ingress-certificates.ts'
import { type IngressProblem, oldestFirst } from './ingress-problem.ts'
import { ingressRoutes, type RouteTables } from './ingress-routes.ts'
import { fixedText, proxyFiles } from './proxy-text.ts'

export type ProxyInput<I extends Ingress = Ingress> = {
  /** Those that the proxy serves, in any order. */
  readonly ingresses: readonly I[]
  readonly service: ServiceLookup
  readonly certificate: CertificateLookup
  readonly settings: {
    readonly httpsPort: number
    readonly accessLog: boolean
    readonly defaultCertificate: string | undefined
  }
  /** Bytes that the files, and all certificates, may have; an Ingress that would exceed the first is left out. */
  readonly limits: { readonly files: number; readonly certificates: number }
}

export type ProxyConfiguration<I extends Ingress = Ingress> = {
  /** Name of a file → its content; all but the certificates. */
  readonly files: ReadonlyMap<string, string>
  /** Name of a file → its content. */
  readonly certificates: ReadonlyMap<string, string>
  readonly problems: ReadonlyMap<I, readonly IngressProblem[]>
}

/** A few thousand Ingresses take some 10 ms. */
export function proxyConfiguration<I extends Ingress>(input: ProxyInput<I>): ProxyConfiguration<I> {
  const { ingresses, service, certificate, settings, limits } = input
  const routes = ingressRoutes(service, limits.files)
  const certificates = ingressCertificates(certificate, {
    defaultCertificate: settings.defaultCertificate,
    mostBytes: limits.certificates,
  })
  const problems = new Map<I, readonly IngressProblem[]>()
  for (const ingress of [...ingresses].sort(oldestFirst)) {
    const found = routes.add(ingress)
    const wrong = found === undefined ? [noRoom] : [...found, ...certificates.add(ingress)]
    if (wrong.length > 0) problems.set(ingress, wrong)
  }
  const backends = [...routes.backends.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  const files = new Map([
    [proxyFiles.configuration, [fixedText(settings, certificates.otherwise), ...backends.map(backendText)].join('\n')],
    ...tableFiles(routes.tables),
    [proxyFiles.certificateList, certificateList(certificates, proxyFiles.certificateFolder)],
  ])
  const digest = createHash('sha256')
  for (const [name, text] of files) digest.update(`${name}\n${text}\n`)
  files.set(proxyFiles.version, `${digest.digest('hex').slice(0, 16)}\n`)
  return { files, certificates: certificates.files, problems }
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
