/** The revocation lists of all authorities that the fleet trusts: one file for each, and their text together. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { certificatesIn } from '../../../api/text/pem.ts'
import type { Authority } from '../../../certs/authority.ts'
import { caHash } from '../../../certs/ca-hash.ts'
import { readIfThere } from '../../../certs/files.ts'
import { type RevokedCertificate, revocationList } from '../../../certs/revocation-list.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'

/** A server whose clock is behind would reject every client by a list of the future. */
const backdateMs = 3600_000

/** `caHash` of each certificate, PEM. */
export function certificateHashes(pem: string): readonly string[] {
  return certificatesIn(pem).map((one) => caHash(one))
}

/**
 * PEM: the list of the authority that signs, and the last ones of the others: their keys are gone. A list is written when other
 * certificates are revoked than those of the last one. `revoked`: of all authorities.
 */
export async function authorityLists(
  folder: string,
  authority: Authority,
  revoked: readonly (RevokedCertificate & { readonly authority: string })[],
  nowMs: number,
): Promise<string> {
  const trusted = certificateHashes(authority.trusted)
  const own = revoked.filter((one) => one.authority === authority.hash)
  const content = [...own.map(({ serial }) => serial)].sort().join(' ')
  const path = (hash: string) => listPath(folder, hash)
  const kept = (await readIfThere(path(authority.hash))) ?? ''
  if (!kept.startsWith(`# ${content}\n`)) {
    const listMs = laterThan(kept, nowMs - backdateMs)
    const list = revocationList(authority, { revoked: own, nowMs: listMs })
    await replaceFile(path(authority.hash), `# ${content}\n# ${listMs}\n${list}`)
  }
  await removeOthers(folder, new Set(trusted.map(path)))
  const texts = await Promise.all(trusted.map((hash) => readIfThere(path(hash))))
  return texts.map((text) => text?.replace(/^#.*\n/gm, '') ?? '').join('')
}

/** The serial numbers in the last lists of the authorities that are trusted and do not sign. */
export async function listedByOthers(folder: string, authority: Authority): Promise<ReadonlySet<string>> {
  const others = certificateHashes(authority.trusted).filter((hash) => hash !== authority.hash)
  const texts = await Promise.all(others.map((hash) => readIfThere(listPath(folder, hash))))
  const serials = texts.flatMap((text) => /^# (.*)\n/.exec(text ?? '')?.[1]?.split(' ') ?? [])
  return new Set(serials.filter((serial) => serial !== ''))
}

function listPath(folder: string, hash: string): string {
  return join(folder, `authority-${hash.replace('sha256:', '')}.crl`)
}

/** OpenSSL uses the later one of two lists, by whole seconds. */
function laterThan(list: string, nowMs: number): number {
  const [, written = ''] = /^# .*\n# (\d+)\n/.exec(list) ?? []
  return Math.max(nowMs, Number(written) + 1_000)
}

async function removeOthers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  const names = (await readdir(folder)).filter((name) => /^authority-[0-9a-f]+\.crl$/.test(name))
  for (const name of names) if (!kept.has(join(folder, name))) await rm(join(folder, name), { force: true })
}
