/**
 * The key of a certificate request that waits for an operator: kept until there is an answer, so that a join that was
 * interrupted continues with its request.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { object, text } from '../../api/schema.ts'
import { privateKeyPem } from '../../certs/authority.ts'
import { replaceFile } from '../../daemon/durable-file.ts'

const PendingKeySchema = object({ nodeName: text, caHash: text, key: text })

/** The node name and the fleet that the key was made for: another request gets another key. */
export type KeyPurpose = { readonly dataDir: string; readonly nodeName: string; readonly caHash: string }

/** Undefined where none is kept for this node in this fleet, or it cannot be read. */
export async function readPendingKey({ dataDir, nodeName, caHash }: KeyPurpose): Promise<KeyObject | undefined> {
  try {
    const decoded = decode(PendingKeySchema, JSON.parse(await readFile(pendingKeyPath(dataDir), 'utf8')))
    if (!decoded.ok || decoded.value.nodeName !== nodeName || decoded.value.caHash !== caHash) return undefined
    return createPrivateKey(decoded.value.key)
  } catch {
    return undefined
  }
}

/** For its owner alone. Rejects when the data directory cannot be written. */
export async function keepPendingKey({ dataDir, nodeName, caHash }: KeyPurpose, key: KeyObject): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const content = JSON.stringify({ nodeName, caHash, key: privateKeyPem(key) })
  await replaceFile(pendingKeyPath(dataDir), `${content}\n`, 0o600)
}

/** The request is answered, or given up. */
export async function removePendingKey(dataDir: string): Promise<void> {
  await rm(pendingKeyPath(dataDir), { force: true })
}

function pendingKeyPath(dataDir: string): string {
  return join(dataDir, 'join-key.json')
}
