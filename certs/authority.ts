/** The fleet's authority: a key and a certificate in a folder, made once. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { caHash } from './ca-hash.ts'
import { createOnce, readIfThere } from './files.ts'
import {
  authorityConstraints,
  authorityKeyIdentifier,
  keyUsage,
  nameDer,
  signCertificate,
  subjectKeyIdentifier,
} from './x509.ts'

export type Authority = {
  /** PEM. */
  readonly certificate: string
  readonly key: KeyObject
  readonly notAfterMs: number
  /** `sha256:…`, what a joining machine is told. */
  readonly hash: string
}

export type OpenedAuthority = Authority & {
  /** It was made just now, by us. */
  readonly created: boolean
  /** Files that others could read until now. */
  readonly tightened: readonly string[]
}

export const dayMs = 24 * 3600_000
const authorityLifeMs = 10 * 365 * dayMs // as kubeadm's
/** As Kubernetes' signer: a machine whose clock is a little behind takes a new certificate all the same. */
export const backdateMs = 5 * 60_000
/** No clock that is right shows less. A board without a battery clock may believe it is 1970 until it hears better. */
const earliestMs = Date.UTC(2025, 0, 1)

/**
 * The authority in `folder`, made when there is none. The key comes first and decides: any number of programs that start
 * at one moment end with the same one, and whoever finds a key without its certificate finishes the work.
 */
export async function openAuthority(folder: string, nowMs: number): Promise<OpenedAuthority> {
  const paths = { key: join(folder, 'ca.key'), certificate: join(folder, 'ca.crt') }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const keyPem = await keyIn(paths, nowMs)
  const made = await madeCertificate(paths.certificate, keyPem, nowMs)
  const certificate = await readIfThere(paths.certificate)
  const tightened = [...(await tighten(folder, 0o700)), ...(await tighten(paths.key, 0o600))]
  return { ...readAuthority(keyPem, certificate ?? '', paths), created: made, tightened }
}

type Paths = { readonly key: string; readonly certificate: string }

async function keyIn(paths: Paths, nowMs: number): Promise<string> {
  const kept = await readIfThere(paths.key)
  if (kept !== undefined) return kept
  const orphan = (await readIfThere(paths.certificate)) !== undefined
  if (!orphan) {
    if (nowMs < earliestMs) {
      const now = new Date(nowMs).toISOString()
      throw new Error(
        `No authority can be made while this machine's clock says ${now}: set it, or wait until it is set`,
      )
    }
    await createOnce(paths.key, keyText(newKey()), 0o600)
  }
  const key = await readIfThere(paths.key)
  if (key !== undefined) return key
  throw new Error(
    `${paths.certificate} is there, but its key ${paths.key} is not: restore the key, or move the certificate away to make a new authority`,
  )
}

async function madeCertificate(path: string, keyPem: string, nowMs: number): Promise<boolean> {
  if ((await readIfThere(path)) !== undefined) return false
  const key = privateKey(keyPem, path)
  return createOnce(path, authorityCertificate(key, nowMs), 0o644)
}

function authorityCertificate(key: KeyObject, nowMs: number): string {
  const publicKey = createPublicKey(key)
  const name = nameDer({ commonName: 'bramble-ca', organizations: [] })
  return signCertificate(
    {
      serial: randomBytes(16),
      issuer: name,
      subject: name,
      publicKey,
      notBeforeMs: nowMs - backdateMs,
      notAfterMs: nowMs + authorityLifeMs,
      extensions: [
        authorityConstraints(),
        keyUsage('digitalSignature', 'keyCertSign', 'cRLSign'),
        subjectKeyIdentifier(publicKey),
        authorityKeyIdentifier(publicKey),
      ],
    },
    key,
  )
}

function readAuthority(keyPem: string, certificatePem: string, paths: Paths): Authority {
  const key = privateKey(keyPem, paths.key)
  const certificate = readCertificate(certificatePem, paths.certificate)
  if (!certificate.ca) throw new Error(`The certificate in ${paths.certificate} is not an authority's`)
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(`The key in ${paths.key} is not that of the certificate in ${paths.certificate}`)
  }
  const notAfterMs = Date.parse(certificate.validTo)
  return { certificate: certificate.toString(), key, notAfterMs, hash: caHash(certificate) }
}

export function readCertificate(pem: string, from: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw new Error(`There is no certificate in ${from}`, { cause })
  }
}

function privateKey(pem: string, from: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (cause) {
    throw new Error(`There is no private key in ${from}`, { cause })
  }
  if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
  throw new Error(`The key in ${from} is ${key.asymmetricKeyType}; an authority's is ECDSA on P-256`)
}

/** A new ECDSA P-256 key. */
export function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

/** PKCS#8 in PEM. */
export function keyText(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

async function tighten(path: string, mode: number): Promise<readonly string[]> {
  if (((await stat(path)).mode & 0o777 & ~mode) === 0) return []
  await chmod(path, mode)
  return [path]
}
