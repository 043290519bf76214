/**
 * The authority of the front proxy: by certificates that it signs, extension servers recognize this API, which names users to them in
 * headers. It must not be the fleet's authority: with it, the holder of any client certificate could name any user.
 */
import { createPrivateKey } from 'node:crypto'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Authority,
  authorityCertificate,
  dayMs,
  newKey,
  privateKeyPem,
  readCertificate,
  refuseWrongDate,
} from './authority.ts'
import { caHash } from './ca-hash.ts'
import { createOnce, readIfThere, replaceWhole } from './files.ts'

/** The names of kubeadm. */
const keyName = 'front-proxy-ca.key'
const certificateName = 'front-proxy-ca.crt'
const commonName = 'bramble-front-proxy-ca'
/** A certificate with so little left is made again, with the same key: what it has signed stays valid. */
const renewedBeforeMs = 2 * 365 * dayMs

/** The authority in `folder`, made where there is none. Rejects while the clock cannot be right and one would have to be made. */
export async function openFrontProxyAuthority(folder: string, nowMs: number): Promise<Authority> {
  const paths = { key: join(folder, keyName), certificate: join(folder, certificateName) }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if ((await readIfThere(paths.key)) === undefined) {
    refuseWrongDate(nowMs)
    await createOnce(paths.key, privateKeyPem(newKey()), 0o600)
  }
  if (((await stat(paths.key)).mode & 0o077) !== 0) await chmod(paths.key, 0o600)
  const key = privateKey((await readIfThere(paths.key)) ?? '', paths.key)
  const kept = await readIfThere(paths.certificate)
  const present = kept === undefined ? undefined : readCertificate(kept, paths.certificate)
  const isGood = present?.checkPrivateKey(key) && Date.parse(present.validTo) - nowMs > renewedBeforeMs
  if (!isGood) {
    refuseWrongDate(nowMs)
    await replaceWhole(paths.certificate, authorityCertificate(key, nowMs, commonName), 0o644)
  }
  const certificate = readCertificate((await readIfThere(paths.certificate)) ?? '', paths.certificate)
  const pem = certificate.toString()
  const [notBeforeMs, notAfterMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  return { certificate: pem, trusted: pem, key, notBeforeMs, notAfterMs, hash: caHash(certificate) }
}

function privateKey(pem: string, path: string) {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
  } catch (cause) {
    throw new Error(`There is no private key in ${path}: restore it from a backup, or remove the file`, { cause })
  }
  throw new Error(`The key in ${path} is not of the curve P-256: restore it from a backup, or remove the file`)
}
