/** The authority of one controller against the one that the fleet trusts: another one would sign certificates that no node accepts. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { certificatesIn } from '../../api/text/pem.ts'
import { caHash } from '../../certs/ca-hash.ts'
import type { Store } from '../store/store.ts'

/** The message has a remedy; a retry does not help. */
export class ForeignAuthorityError extends Error {
  override readonly name = 'ForeignAuthorityError'
}

/** Throws ForeignAuthorityError where the fleet has an authority, and this folder has none, or another one. */
export async function refuseForeignAuthority(store: Store, folder: string): Promise<void> {
  const certificate = await readFile(join(folder, 'ca.crt'), 'utf8').catch(() => undefined)
  const info = await store.get('configmaps', { namespace: 'kube-public', name: 'cluster-info' })
  const trusted = certificatesIn(info?.data?.['authorities'] ?? '').map((one) => caHash(one))
  if (trusted.length === 0 || (certificate !== undefined && trusted.includes(caHash(certificate)))) return
  const what = certificate === undefined ? `${folder} has no authority` : `The authority in ${folder} is another one`
  throw new ForeignAuthorityError(
    `${what}, and the fleet in this store trusts ${trusted.join(' and ')}. Copy the authority folder and secrets.key of another controller, or of a backup, to this machine`,
  )
}
