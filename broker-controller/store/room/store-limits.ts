/** The bounds of a store and of one namespace: what is refused at them, and the warning before. */
import type { Resource } from '../../../api/resources.ts'
import { byteText } from '../../../api/text/byte-text.ts'
import type { DraftChange } from '../changes.ts'
import { NamespaceFullError, StoreFullError } from '../store.ts'
import { growthOf } from './growth.ts'
import type { ObjectSizes } from './object-sizes.ts'

/** Bytes of the objects' JSON. */
export type StoreLimits = {
  /** Limit of all objects. */
  readonly maxBytes: number
  /** Limit of the objects of one namespace. */
  readonly namespaceBytes: number
}

/** No namespace can fill the store alone, nor can three. */
const namespaceShare = 1 / 4
/** What small growth may take beyond a bound, so that the pods that run do not suffer from it. */
const smallShare = 1 / 16
/** Time to act before creations are refused. */
const warningShare = 0.8

export const defaultStoreMaxBytes = 2 * 2 ** 30

export function storeLimits(maxBytes: number): StoreLimits {
  return { maxBytes, namespaceBytes: Math.floor(maxBytes * namespaceShare) }
}

/** Throws StoreFullError beyond the bound of the store, NamespaceFullError beyond that of a namespace. What frees space is always accepted. */
export function refuseBeyond(
  { maxBytes, namespaceBytes }: StoreLimits,
  sizes: ObjectSizes,
  resource: Resource,
  draft: DraftChange,
  part: 'whole' | 'status',
): void {
  const { name = '', namespace = '' } = draft.object.metadata
  const inNamespace = namespace === '' ? 0 : sizes.of(namespace)
  if (sizes.total < maxBytes && inNamespace < namespaceBytes) return
  const growth = growthOf(draft, part)
  if (growth === 'none') return
  const isBeyond = (bytes: number, limit: number) => bytes >= (growth === 'small' ? limit * (1 + smallShare) : limit)
  if (isBeyond(inNamespace, namespaceBytes)) {
    const kind = resource.group === '' ? resource.name : `${resource.name}.${resource.group}`
    const message = `${kind} "${name}" is forbidden: the objects of namespace ${namespace} have ${byteText(inNamespace)}, and one namespace may have ${byteText(namespaceBytes)}, a quarter of storeMaxSize of the controller. Delete objects that are not needed`
    throw new NamespaceFullError(message, {
      name,
      kind: resource.name,
      ...(resource.group && { group: resource.group }),
    })
  }
  if (isBeyond(sizes.total, maxBytes)) {
    throw new StoreFullError(
      `The objects of the fleet have ${byteText(sizes.total)}, and storeMaxSize of the controller is ${byteText(maxBytes)}: objects cannot be created or grow. Delete objects that are not needed, or raise it`,
    )
  }
}

/** undefined: there is enough. */
export function limitWarning({ maxBytes, namespaceBytes }: StoreLimits, sizes: ObjectSizes): string | undefined {
  const largest = sizes.largest()
  const most = largest && `most are in namespace ${largest.namespace}, ${byteText(largest.bytes)}`
  if (sizes.total >= maxBytes * warningShare) {
    return `the objects of the fleet have ${byteText(sizes.total)} of the ${byteText(maxBytes)} of storeMaxSize, beyond which creations are refused${most ? `; ${most}` : ''}. Delete objects that are not needed, or raise it`
  }
  if (largest !== undefined && largest.bytes >= namespaceBytes * warningShare) {
    return `the objects of namespace ${largest.namespace} have ${byteText(largest.bytes)} of the ${byteText(namespaceBytes)} that one namespace may have, beyond which creations in it are refused. Delete objects that are not needed, or raise storeMaxSize`
  }
  return undefined
}
