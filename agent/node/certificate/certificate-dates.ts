/** The validity period of a certificate. */
import { X509Certificate } from 'node:crypto'

export type CertificateDates = { readonly validFrom: Date; readonly validTo: Date }

/** Dates of a PEM certificate. A damaged one gets invalid dates: connecting with it reports the reason. */
export function certificateDates(pem: string): CertificateDates {
  try {
    const { validFrom, validTo } = new X509Certificate(pem)
    return { validFrom: new Date(validFrom), validTo: new Date(validTo) }
  } catch {
    return { validFrom: new Date(Number.NaN), validTo: new Date(Number.NaN) }
  }
}
