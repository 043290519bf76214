/**
 * What another controller needs, encrypted: the authority's folder, the key of Secrets, the configuration, and the certificates
 * for etcd. As kubeadm's `upload-certs`: a Secret holds it, and the key is only in the printed command.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { formatToken, type TokenParts } from '../../api/node/bootstrap-token.ts'
import { mapOf, object, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { type ControllerConfigurationFile, ControllerConfigurationSchema } from '../configuration/configuration.ts'
import { authorityFiles } from '../data-directory/backup.ts'
import { authorityFolderName, secretsKeyName } from '../data-directory/data-directory.ts'
import { openBytes, sealBytes } from '../store/encryption/secret-keys.ts'

/** By path in the data directory. */
export type ControlPlaneBundle = {
  readonly settings: ControllerConfigurationFile
  readonly files: ReadonlyMap<string, Uint8Array>
}

export function bundleSecretName({ id }: Pick<TokenParts, 'id'>): string {
  return `bramble-control-plane-${id}`
}

/** Files of different folders may have one name. */
const etcdFiles = {
  etcdCAFile: 'etcd/ca.crt',
  etcdCertFile: 'etcd/client.crt',
  etcdKeyFile: 'etcd/client.key',
} as const

/** `settings`: of the running controller, as JSON. Rejects where it has no store in etcd, and where a file cannot be read. */
export async function readBundle(dataDir: string, settings: string): Promise<ControlPlaneBundle> {
  const decoded = decode(ControllerConfigurationSchema, parseJson(settings))
  if (!decoded.ok || decoded.value.etcdServers === undefined) {
    throw new Error(
      "The objects of this fleet are in a file, which one controller uses: move them to etcd first ('bramble-controller store migrate --to etcd')",
    )
  }
  const { etcdCAFile: _ca, etcdCertFile: _certificate, etcdKeyFile: _key, ...others } = decoded.value
  const authority = await authorityFiles(join(dataDir, authorityFolderName))
  const files = new Map([...authority].map(([name, body]) => [`${authorityFolderName}/${name}`, body]))
  files.set(secretsKeyName, await readFile(join(dataDir, secretsKeyName)))
  const copied: { -readonly [Field in keyof typeof etcdFiles]?: string } = {}
  for (const field of ['etcdCAFile', 'etcdCertFile', 'etcdKeyFile'] as const) {
    const path = decoded.value[field]
    if (path === undefined) continue
    copied[field] = etcdFiles[field]
    files.set(etcdFiles[field], await readFile(path))
  }
  return { settings: { ...others, ...copied }, files }
}

const bundleSchema = object({ settings: ControllerConfigurationSchema, files: mapOf(text) })

/** `key`: 32 bytes, hexadecimal, as it is printed. */
export function sealBundle({ settings, files }: ControlPlaneBundle, token: TokenParts) {
  const key = randomBytes(32)
  const contents = Object.fromEntries([...files].map(([path, body]) => [path, Buffer.from(body).toString('base64')]))
  const body = Buffer.from(JSON.stringify({ settings, files: contents }))
  return { key: key.toString('hex'), sealed: sealBytes(key, formatToken(token), body) }
}

/** Throws where the key or the token is not the one that it was sealed with, and where a path leads out of the data directory. */
export function openBundle(sealed: Uint8Array, key: string, token: TokenParts): ControlPlaneBundle {
  const decoded = decode(bundleSchema, parseJson(opened(sealed, key, token)))
  if (!decoded.ok) throw new Error('What the controller sent cannot be decoded: it may be of another version')
  const files = new Map(
    Object.entries(decoded.value.files).map(([path, body]) => [path, Buffer.from(body, 'base64')] as const),
  )
  const strange = [...files.keys()].find((path) => !/^((authority|etcd)\/)?[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(path))
  if (strange !== undefined) throw new Error(`What the controller sent has a file ${JSON.stringify(strange)}`)
  return { settings: decoded.value.settings, files }
}

function opened(sealed: Uint8Array, key: string, token: TokenParts): string {
  try {
    return openBytes(Buffer.from(key, 'hex'), formatToken(token), sealed).toString('utf8')
  } catch (cause) {
    throw new Error('The certificate key is not the one that was printed with this token', { cause })
  }
}
