/** Creates certificate requests (PKCS#10) for nodes. `certs/csr-check.ts` reads them. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { derInteger, encode, sequence, tagged, toPem } from './der.ts'
import { csrLabel, nameDer, publicKeyDer, signed } from './x509.ts'

export type CSRSubject = { readonly commonName: string; readonly organization: string; readonly key: KeyObject }

/** The request, PEM, signed with the key that it is for. */
export function createCSR({ commonName, organization, key }: CSRSubject): string {
  const body = sequence(
    derInteger(Uint8Array.of(0)), // version 1
    nameDer({ commonName, organizations: [organization] }),
    publicKeyDer(createPublicKey(key)),
    tagged(0), // no attributes
  )
  return toPem(csrLabel, encode(signed(body, key)))
}
