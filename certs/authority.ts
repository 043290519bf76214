/** The fleet's authority: a key and a certificate in a folder, made once. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto'
import { chmod, mkdir, rename, stat } from 'node:fs/promises'
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
  /** PEM, one or more: the authorities whose certificates the fleet accepts. The one that signs comes first. */
  readonly trusted: string
  readonly key: KeyObject
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** `sha256:…`, passed to a joining machine. */
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
/** No clock that is right shows less. A board without a battery clock may start in 1970 until a time server answers. */
const earliestMs = Date.UTC(2025, 0, 1)

/**
 * The authority in `folder`, made when there is none. The key comes first and decides: any number of programs that start
 * at one moment end with the same one, and a process that finds a key without its certificate finishes the work.
 */
export async function openAuthority(folder: string, nowMs: number): Promise<OpenedAuthority> {
  const paths = { key: join(folder, 'ca.key'), certificate: join(folder, 'ca.crt') }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const keyPem = await keyIn(paths, nowMs)
  const made = await madeCertificate(paths.certificate, keyPem, nowMs)
  const kept = (await readIfThere(paths.certificate)) ?? ''
  const certificate = (await finishedSwitch(folder, keyPem, kept, paths)) ?? kept
  const others = await Promise.all(['next.crt', 'previous.crt'].map((name) => readIfThere(join(folder, name))))
  const tightened = [...(await tighten(folder, 0o700)), ...(await tighten(paths.key, 0o600))]
  const own = readAuthority(keyPem, certificate, paths)
  const trusted = [own.certificate, ...others.filter((one) => one !== undefined && one.trim() !== certificate.trim())]
  return { ...own, trusted: trusted.map((one) => `${one?.trimEnd()}\n`).join(''), created: made, tightened }
}

type Paths = { readonly key: string; readonly certificate: string }

async function keyIn(paths: Paths, nowMs: number): Promise<string> {
  const kept = await readIfThere(paths.key)
  if (kept !== undefined) return kept
  const orphan = (await readIfThere(paths.certificate)) !== undefined
  if (!orphan) {
    refuseWrongDate(nowMs)
    await createOnce(paths.key, privateKeyPem(newKey()), 0o600)
  }
  const key = await readIfThere(paths.key)
  if (key !== undefined) return key
  throw new Error(
    `${paths.certificate} exists, but its key ${paths.key} does not: restore the key, or move the certificate away to make a new authority`,
  )
}

/**
 * Why the clock cannot be right: it shows a time before this program, or outside the life of the authority that it would
 * sign for. A certificate made by it would be good at the wrong time. undefined: it is not wrong.
 */
export function wrongDate(
  nowMs: number,
  authority?: Pick<Authority, 'notBeforeMs' | 'notAfterMs'>,
): string | undefined {
  const none = `No certificate is made while this machine's clock shows ${new Date(nowMs).toISOString()}`
  if (nowMs < Math.max(earliestMs, authority?.notBeforeMs ?? 0)) return `${none}: set it, or wait until it is set`
  if (authority === undefined || nowMs < authority.notAfterMs) return undefined
  return `${none}: the authority ended on ${new Date(authority.notAfterMs).toISOString()}, if that is right`
}

/** Throws while the clock cannot be right. */
export function refuseWrongDate(nowMs: number): void {
  const wrong = wrongDate(nowMs)
  if (wrong !== undefined) throw new Error(wrong)
}

async function madeCertificate(path: string, keyPem: string, nowMs: number): Promise<boolean> {
  if ((await readIfThere(path)) !== undefined) return false
  const key = privateKey(keyPem, path)
  return createOnce(path, authorityCertificate(key, nowMs), 0o644)
}

/** The certificate, PEM, that an authority with this key signs for itself. */
export function authorityCertificate(key: KeyObject, nowMs: number, commonName = 'bramble-ca'): string {
  const publicKey = createPublicKey(key)
  const name = nameDer({ commonName, organizations: [] })
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

/** A switch to the next authority that was broken off after its key: its certificate follows now. */
async function finishedSwitch(folder: string, keyPem: string, certificate: string, paths: Paths) {
  const path = join(folder, 'next.crt')
  const next = await readIfThere(path)
  if (next === undefined) return undefined
  const key = privateKey(keyPem, paths.key)
  const isHalf = !readCertificate(certificate, paths.certificate).checkPrivateKey(key)
  if (!isHalf || !readCertificate(next, path).checkPrivateKey(key)) return undefined
  await rename(path, paths.certificate)
  return next
}

function readAuthority(keyPem: string, certificatePem: string, paths: Paths): Omit<Authority, 'trusted'> {
  const key = privateKey(keyPem, paths.key)
  const certificate = readCertificate(certificatePem, paths.certificate)
  if (!certificate.ca) throw new Error(`The certificate in ${paths.certificate} is not an authority's`)
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(`The key in ${paths.key} is not that of the certificate in ${paths.certificate}`)
  }
  const [notBeforeMs, notAfterMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  return { certificate: certificate.toString(), key, notBeforeMs, notAfterMs, hash: caHash(certificate) }
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
export function privateKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

async function tighten(path: string, mode: number): Promise<readonly string[]> {
  if (((await stat(path)).mode & 0o777 & ~mode) === 0) return []
  await chmod(path, mode)
  return [path]
}
