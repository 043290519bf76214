/** References from Events to objects. */
import type { ObjectReference } from '../../api/meta.ts'
import type { StoredObject } from './store.ts'

/** As the kubelet refers to nodes: by name also where a uid is meant, which is how kubectl finds them. */
export function nodeReference(name: string): ObjectReference {
  return { kind: 'Node', apiVersion: 'v1', name, uid: name }
}

export function podReference({ metadata }: StoredObject<'pods'>): ObjectReference {
  const { name, uid, resourceVersion, namespace = '' } = metadata
  return { kind: 'Pod', apiVersion: 'v1', namespace, name, uid, resourceVersion }
}
