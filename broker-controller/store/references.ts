/** References from Events to objects. */
import type { ObjectReference } from '../../api/meta.ts'
import type { AnyStored, StoredObject } from './store.ts'

/** As the kubelet refers to nodes: by name also where a uid is meant, which is how kubectl finds them. */
export function nodeReference(name: string): ObjectReference {
  return { kind: 'Node', apiVersion: 'v1', name, uid: name }
}

export function podReference({ metadata }: StoredObject<'pods'>): ObjectReference {
  const { name, uid, resourceVersion, namespace = '' } = metadata
  return { kind: 'Pod', apiVersion: 'v1', namespace, name, uid, resourceVersion }
}

/** A reference to a stored object of any kind. */
export function objectReference({ apiVersion, kind, metadata }: AnyStored): ObjectReference {
  const { name, uid, resourceVersion, namespace } = metadata
  return { kind, apiVersion, ...(namespace !== undefined && { namespace }), name, uid, resourceVersion }
}
