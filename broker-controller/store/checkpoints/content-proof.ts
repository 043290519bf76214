/**
 * Proofs that a controller of this fleet has sent a ConfigMap, a Secret or a claim. A node keeps the proof with the object, and returns both to a
 * controller whose store was lost: what a node made up has none. The key comes from that of the fleet's authority, which outlives the store.
 */
import { createHmac, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { ConfigMap } from '../../../api/config-map.ts'
import { contentProofAnnotation } from '../../../api/node/node-checkpoint.ts'
import type { Secret } from '../../../api/secret.ts'
import type { ProvenRecord } from '../../../api/storage/node-claim.ts'
import { contentDigest, isHeld } from './checkpoint-data.ts'

export interface ContentProver {
  /** Undefined: no controller stands for this content yet. */
  proofOf(object: ConfigMap | Secret): string | undefined
  /** A controller of this fleet has sent an object of this name with this content. It may be an earlier content. */
  isProven(object: ConfigMap | Secret): boolean
  /** The same for the record of a claim and its volume. */
  proofOfRecord(record: string): string
  isProvenRecord(record: ProvenRecord): boolean
}

type Current = {
  readonly hash: string
  readonly key: Buffer
  readonly proofs: WeakMap<ConfigMap | Secret, string>
}

/** `authority`: that of now. `hash`: identifies its key. */
export function contentProver(authority: () => { readonly key: KeyObject; readonly hash: string }): ContentProver {
  let current: Current | undefined
  const now = (): Current => {
    const { key, hash } = authority()
    if (hash !== current?.hash) current = { hash, key: keyFrom(key), proofs: new WeakMap() }
    return current
  }
  return {
    proofOf(object) {
      if (isHeld(object)) return undefined
      const { key, proofs } = now()
      // Objects of the store do not change; each is sent to many nodes, many times.
      const known = proofs.get(object) ?? macOf(object, key).toString('base64url')
      proofs.set(object, known)
      return known
    },
    isProven: (object) =>
      isEqual(macOf(object, now().key), object.metadata.annotations?.[contentProofAnnotation] ?? ''),
    proofOfRecord: (record) => macOfRecord(record, now().key).toString('base64url'),
    isProvenRecord: ({ text, proof }) => isEqual(macOfRecord(text, now().key), proof),
  }
}

function isEqual(mac: Buffer, given: string): boolean {
  const proof = Buffer.from(given, 'base64url')
  return proof.length === mac.length && timingSafeEqual(proof, mac)
}

function keyFrom(key: KeyObject): Buffer {
  const der = key.export({ type: 'pkcs8', format: 'der' })
  return Buffer.from(hkdfSync('sha256', der, '', 'bramble.dev/content-proof', 32))
}

function macOf(object: ConfigMap | Secret, key: Buffer): Buffer {
  const { namespace = '', name = '' } = object.metadata
  const text = JSON.stringify([object.kind, namespace, name, contentDigest(object)])
  return createHmac('sha256', key).update(text).digest()
}

/** The text of an object is a list of four. */
function macOfRecord(record: string, key: Buffer): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify(['ClaimRecord', record]))
    .digest()
}
