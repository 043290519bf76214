/** Objects as they are stored in etcd: JSON without the version, which etcd has itself; a Secret is encrypted. */
import type { AnyObject } from '../../../api/meta.ts'
import type { AnyStoredObject } from '../changes.ts'
import {
  keyIdOf,
  openValue,
  type SecretKeys,
  sealedPrefix,
  sealedPrefixLength,
  sealValue,
} from '../encryption/secret-keys.ts'
import { frozenCopy } from '../frozen/frozen-copy.ts'
import { type ObjectKey, SecretsKeyError } from '../store.ts'
import type { StoredKey } from './etcd-keys.ts'

/** The kind whose values are encrypted. */
export const sealedKind = 'secrets'

export interface EtcdValues {
  /** Encrypts from now on with the first of these keys, and decrypts with all. */
  use(keys: SecretKeys): void
  encode(key: StoredKey, object: AnyObject): Buffer
  /** The value with JSON in it. Throws SecretsKeyError. */
  bodyOf(key: StoredKey, value: Buffer): string
  /** `version`: the revision of the value. Throws SecretsKeyError, and SyntaxError where it is not JSON. */
  decode(key: StoredKey, value: Buffer, version: number): AnyStoredObject
  encodeBody(key: StoredKey, body: string): Buffer
  /** Whether the first key encrypted this value of a Secret. */
  isCurrent(value: Buffer): boolean
}

/** Until keys are given, Secrets are stored as they are. */
export function etcdValues(): EtcdValues {
  let keys: SecretKeys | undefined
  const encodeBody = (key: StoredKey, body: string) =>
    keys === undefined || key.resource !== sealedKind ? Buffer.from(body) : sealValue(keys[0], key.resource, key, body)
  const bodyOf = (key: StoredKey, value: Buffer) => {
    const id = key.resource === sealedKind ? sealingKeyOf(value) : undefined
    if (id === undefined) return value.toString('utf8')
    const found = keys?.find((one) => one.id === id)
    try {
      if (found === undefined) throw new Error(`There is no key ${id}`)
      return openValue(found, key.resource, key, value)
    } catch (cause) {
      throw unreadableSecret(key, id, cause)
    }
  }
  return {
    use(given) {
      keys = given
    },
    encode(key, object) {
      const { resourceVersion: _, ...others } = object.metadata
      return encodeBody(key, JSON.stringify({ ...object, metadata: others }))
    },
    encodeBody,
    bodyOf,
    decode(key, value, version) {
      const object = JSON.parse(bodyOf(key, value)) as AnyStoredObject
      const metadata = { ...object.metadata, resourceVersion: String(version) }
      return frozenCopy({ ...object, metadata })
    },
    isCurrent: (value) => keys !== undefined && prefixOf(value).startsWith(sealedPrefix(keys[0].id)),
  }
}

/** The ID of the key that encrypted this value; undefined: it is not encrypted. */
export function sealingKeyOf(value: Buffer): string | undefined {
  return keyIdOf(prefixOf(value))
}

function prefixOf(value: Buffer): string {
  return value.subarray(0, sealedPrefixLength).toString('latin1')
}

function unreadableSecret({ namespace, name }: ObjectKey, id: string, cause: unknown): SecretsKeyError {
  return new SecretsKeyError(
    `Cannot decrypt Secret ${namespace}/${name} in etcd with key ${id}: its value was changed outside of the controller, or another controller's secrets.key encrypted it. Put a copy of that file back, or delete the key with etcdctl`,
    { cause },
  )
}
