/** Metadata of objects as extension servers send it, read as documents of strangers: bounded, and with known fields only. */
import { decode } from '../../../api/decode.ts'
import type { OwnerReference } from '../../../api/meta.ts'
import type { ExtensionEvent, ExtensionObject } from '../../../api/registration/extension-object.ts'
import { bool, type Described, field, list, object, optional, text } from '../../../api/schema.ts'
import { isObject } from '../../../api/text/json.ts'

const MetadataSchema = object({
  name: field(1, text),
  namespace: field(2, optional(text)),
  uid: field(3, text),
  resourceVersion: field(4, optional(text)),
  deletionTimestamp: field(5, optional(text)),
  finalizers: field(6, optional(list(text))),
  ownerReferences: field(
    7,
    optional(
      list(
        object({
          apiVersion: field(1, text),
          kind: field(2, text),
          name: field(3, text),
          uid: field(4, text),
          controller: field(5, optional(bool)),
          blockOwnerDeletion: field(6, optional(bool)),
        }),
      ),
    ),
  ),
})
const ObjectSchema = object({ metadata: field(1, MetadataSchema) })

const [longestName, longestUid, longestVersion, longestToken] = [253, 128, 128, 8_192]
const [mostOwners, mostFinalizers] = [64, 64]

/** undefined: it has no name and uid, or more than objects of Kubernetes can have. */
export function extensionObjectIn(document: unknown): ExtensionObject | undefined {
  const decoded = decode(ObjectSchema, document)
  return decoded.ok ? boundedObject(decoded.value) : undefined
}

function boundedObject({ metadata }: Described<typeof ObjectSchema>): ExtensionObject | undefined {
  const { name, namespace = '', uid, resourceVersion = '', deletionTimestamp, ownerReferences = [] } = metadata
  const { finalizers = [] } = metadata
  const isFine =
    isPathName(name) &&
    (namespace === '' || isPathName(namespace)) &&
    isWithin(uid, longestUid) &&
    resourceVersion.length <= longestVersion &&
    ownerReferences.length <= mostOwners &&
    ownerReferences.every(isFineOwner) &&
    finalizers.length <= mostFinalizers &&
    finalizers.every((one) => isWithin(one, longestName))
  if (!isFine) return undefined
  return {
    metadata: {
      ...{ name, uid, resourceVersion },
      ...(namespace !== '' && { namespace }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp: deletionTimestamp.slice(0, longestName) }),
      ...(finalizers.length > 0 && { finalizers }),
      ...(ownerReferences.length > 0 && { ownerReferences }),
    },
  }
}

function isFineOwner({ apiVersion, kind, name, uid }: OwnerReference): boolean {
  return isWithin(uid, longestUid) && [apiVersion, kind, name].every((one) => isWithin(one, longestName))
}

function isWithin(value: string, most: number): boolean {
  return value.length > 0 && value.length <= most
}

/** What can be a part of a path, and of the key of a queue. */
function isPathName(name: string): boolean {
  return isWithin(name, longestName) && name !== '.' && name !== '..' && !/[/%\s\p{Cc}]/u.test(name)
}

export type ExtensionPage = {
  /** Each is read by `extensionObjectIn`. */
  readonly items: readonly unknown[]
  readonly resourceVersion: string
  /** The token of the next part; '': this was the last one. */
  readonly next: string
}

/** Throws where it is not a list. */
export function extensionListIn(document: unknown): ExtensionPage {
  const { items, metadata } = isObject(document) ? document : { items: undefined, metadata: undefined }
  const { resourceVersion = '', continue: next = '' } = isObject(metadata) ? metadata : {}
  const isFine =
    (items === undefined || items === null || Array.isArray(items)) &&
    typeof resourceVersion === 'string' &&
    resourceVersion.length <= longestVersion &&
    typeof next === 'string' &&
    next.length <= longestToken
  if (!isObject(document) || !isFine) throw new Error('its list cannot be read')
  return { items: Array.isArray(items) ? items : [], resourceVersion, next }
}

/** 'expired': the server no longer has the changes since then. undefined: it is not an event. */
export function extensionEventIn(document: unknown): ExtensionEvent | 'expired' | undefined {
  if (!isObject(document)) return undefined
  const { type, object: shown } = document
  switch (type) {
    case 'ERROR':
      return isObject(shown) && shown['code'] === 410 ? 'expired' : undefined
    case 'BOOKMARK':
      return bookmarkIn(shown)
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const found = extensionObjectIn(shown)
      return found && { type, object: found }
    }
    default:
      return undefined
  }
}

function bookmarkIn(shown: unknown): ExtensionEvent | undefined {
  const metadata = isObject(shown) ? shown['metadata'] : undefined
  const version = isObject(metadata) ? metadata['resourceVersion'] : undefined
  const isFine = typeof version === 'string' && isWithin(version, longestVersion)
  return isFine ? { type: 'BOOKMARK', resourceVersion: version } : undefined
}
