/** A certificate in a few lines, for an operator. */
import type { X509Certificate } from 'node:crypto'
import { dayMs } from './authority.ts'
import { caHash } from './ca-hash.ts'

/** Names and values, in the order to show them. */
export function describeCertificate(
  certificate: X509Certificate,
  nowMs: number,
): readonly (readonly [string, string])[] {
  const { subject, issuer, subjectAltName, validFrom, validTo, serialNumber, ca } = certificate
  return [
    ['subject', subject.replaceAll('\n', ', ')],
    ['issuer', issuer.replaceAll('\n', ', ')],
    ...(subjectAltName === undefined ? [] : ([['names', subjectAltName]] as const)),
    ['valid', `${day(validFrom)} to ${day(validTo)} (${standing(Date.parse(validFrom), Date.parse(validTo), nowMs)})`],
    ['for', ca ? 'an authority' : usagesOf(certificate)],
    ['serial', serialNumber.toLowerCase()],
    ['hash', caHash(certificate)],
  ]
}

function standing(fromMs: number, toMs: number, nowMs: number): string {
  if (nowMs < fromMs) return 'NOT YET VALID'
  if (nowMs >= toMs) return `EXPIRED ${days(nowMs - toMs)} ago`
  return `${days(toMs - nowMs)} left`
}

function days(ms: number): string {
  const count = Math.floor(ms / dayMs)
  return count === 1 ? '1 day' : `${count} days`
}

function day(validity: string): string {
  return `${new Date(validity).toISOString().slice(0, 19)}Z`
}

/** Node gives extended key usages as numbers; these two are ours. */
function usagesOf({ keyUsage }: X509Certificate): string {
  const words: { readonly [oid: string]: string } = {
    '1.3.6.1.5.5.7.3.1': 'servers',
    '1.3.6.1.5.5.7.3.2': 'clients',
  }
  return (keyUsage ?? []).map((oid) => words[oid] ?? oid).join(', ') || 'any use'
}
