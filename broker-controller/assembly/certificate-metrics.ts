/** When the certificates of a controller expire, as metrics: they are renewed by themselves, unless something hinders it. */
import { X509Certificate } from 'node:crypto'
import { gauge, type MetricFamily } from '../../daemon/prometheus-text.ts'
import type { DashboardCertificate } from '../../dashboard/server/dashboard-certificate.ts'
import type { OwnCertificates } from '../own-certificates/own-certificates.ts'

export type ShownCertificates = {
  readonly own: Pick<OwnCertificates, 'authority' | 'tls' | 'administratorCertificate'>
  /** Undefined where none is configured. */
  readonly page: Pick<DashboardCertificate, 'current'> | undefined
}

/** `bramble_certificate_expiration_timestamp_seconds{certificate}`, as they are when the metrics are read. */
export function certificateFamilies({ own, page }: ShownCertificates): readonly MetricFamily[] {
  const certificates: readonly (readonly [name: string, pem: string | undefined])[] = [
    ['authority', own.authority().certificate],
    ['server', own.tls().certificate],
    ['administrator', own.administratorCertificate()],
    ['dashboard', page?.current().certificate],
  ]
  const samples = certificates.flatMap(([certificate, pem]) =>
    // The first certificate of a chain counts: those behind it live longer.
    pem === undefined ? [] : [{ labels: { certificate }, value: Date.parse(new X509Certificate(pem).validTo) / 1000 }],
  )
  const help = 'When a certificate of the controller expires, Unix timestamp.'
  return [gauge('bramble_certificate_expiration_timestamp_seconds', help, samples)]
}
